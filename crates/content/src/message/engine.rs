//! The template engine: tera with our filters and limits, and the filters `money` and `date`.
//!
//! Tera has no limits, so a text could loop forever or double a value until memory is full. Here each text has a budget
//! of steps. Steps are counted in tags, not time, so a row has the same result on every machine; `library` inserts the
//! counting into the source. The engine uses no clock, environment variables, files or random numbers.

use std::cell::Cell;
use std::io;

use jiff::civil::Date;
use jiff::fmt::strtime;
use tera::{Error, Kwargs, State, Tera, TeraResult, Value};

use campaign_core::domain::Language;

/// The maximum number of steps of a text: tokens of its tags, counted in each round of a loop.
pub(super) const MAX_STEPS: usize = 10_000;
/// The maximum size of a cell, of a value that a text sets, and of a message, in bytes.
pub(super) const MAX_BYTES: usize = 20_000;
/// The maximum number of items in a list that a text creates.
const MAX_ITEMS: usize = 1_000;
/// The maximum nesting of lists.
const MAX_DEPTH: usize = 16;

/// Prefixes of our own messages, which users see unchanged.
pub(super) const OWN_MESSAGES: [&str; 5] = [
    "the loops take too many steps",
    "a value is longer than",
    "a list has more than",
    "`range` cannot count",
    "unknown language",
];

/// The function that counts each round of a loop.
pub(super) const ROUND: &str = "__round";
/// The filter that limits the size of each value that a text sets.
pub(super) const KEEP: &str = "__kept";

/// The filters that messages can use: tera's, except those for web pages, and `money` and `date`.
pub const FILTERS: [&str; 34] = [
    "abs",
    "capitalize",
    "date",
    "default",
    "first",
    "float",
    "get",
    "group_by",
    "int",
    "join",
    "keys",
    "last",
    "length",
    "lower",
    "money",
    "nth",
    "pairs",
    "pluralize",
    "replace",
    "reverse",
    "round",
    "safe",
    "sort",
    "split",
    "str",
    "title",
    "trim",
    "trim_end",
    "trim_start",
    "truncate",
    "unique",
    "upper",
    "values",
    "wordcount",
];
/// The arguments of filters: required ones, then optional ones. Other filters have none.
const ARGUMENTS: [(&str, &[&str], &[&str]); 17] = [
    ("date", &[], &["format", "language"]),
    ("money", &[], &["language"]),
    ("default", &["value"], &["boolean"]),
    ("get", &["key"], &["default"]),
    ("group_by", &["attribute"], &[]),
    ("int", &[], &["base"]),
    ("join", &[], &["sep"]),
    ("nth", &["n"], &[]),
    ("pluralize", &[], &["singular", "plural"]),
    ("replace", &["from", "to"], &[]),
    ("round", &[], &["method", "precision"]),
    ("sort", &[], &["attribute"]),
    ("split", &["pat"], &[]),
    ("trim", &[], &["pat"]),
    ("trim_end", &[], &["pat"]),
    ("trim_start", &[], &["pat"]),
    ("truncate", &["length"], &["end"]),
];

/// The required and the optional arguments of a filter.
pub fn filter_arguments(filter: &str) -> (&'static [&'static str], &'static [&'static str]) {
    let known = ARGUMENTS.iter().find(|(name, ..)| *name == filter);
    known.map_or((&[], &[]), |(_, required, optional)| (required, optional))
}

/// Tera's filters that messages do not have, because a message is plain text.
pub(super) const WEB_FILTERS: [&str; 5] = ["escape", "escape_html", "escape_xml", "indent", "newlines_to_br"];
/// The tests that messages can use, all from tera.
pub(super) const TESTS: [&str; 17] = [
    "array",
    "bool",
    "containing",
    "defined",
    "divisible_by",
    "ending_with",
    "even",
    "float",
    "integer",
    "iterable",
    "map",
    "none",
    "number",
    "odd",
    "starting_with",
    "string",
    "undefined",
];
/// The functions that messages can use.
pub(super) const FUNCTIONS: [&str; 3] = ["range", "super", "throw"];

thread_local! {
    /// The remaining steps of the text that this thread renders. Tera functions cannot change state, and a text is
    /// rendered on one thread.
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// Resets this thread's step budget for the next text.
pub(super) fn reset_steps() {
    STEPS.set(MAX_STEPS);
}

/// Creates a Tera engine without templates or escaping, but with our limits.
pub(super) fn create_engine() -> Tera {
    let mut tera = Tera::new();
    tera.autoescape_on(Vec::<&str>::new());
    tera.register_function(ROUND, |kwargs: Kwargs, _: &State| spend_steps(kwargs.must_get("cost")?).map(|()| ""));
    tera.register_function("range", range_function);
    tera.register_filter(KEEP, keep_if_small);
    tera.register_filter("replace", replace_filter);
    tera.register_filter("split", split_filter);
    tera.register_filter("join", join_filter);
    tera.register_filter("round", round_filter);
    tera.register_filter("money", format_money);
    tera.register_filter("date", format_date);
    tera
}

fn spend_steps(steps: usize) -> TeraResult<()> {
    match STEPS.get().checked_sub(steps) {
        Some(remaining) => {
            STEPS.set(remaining);
            Ok(())
        }
        None => Err(Error::message("the loops take too many steps; use lists with fewer items")),
    }
}

fn long_value_error() -> Error {
    Error::message(format!("a value is longer than {MAX_BYTES} bytes"))
}

/// Returns the value itself, or an error if the value is too large.
fn keep_if_small(value: &Value, _: Kwargs, _: &State) -> TeraResult<Value> {
    let mut bytes_left = MAX_BYTES;
    deduct_value_size(value, MAX_DEPTH, &mut bytes_left).map(|()| value.clone()).ok_or_else(long_value_error)
}

/// Deducts the size of a value from the remaining bytes. `None` if the value is too large or too deeply nested.
fn deduct_value_size(value: &Value, depth: usize, bytes_left: &mut usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    *bytes_left = bytes_left.checked_sub(value.as_str().map_or(1, str::len))?;
    if let Some(items) = value.as_array() {
        return items.iter().try_for_each(|item| deduct_value_size(item, depth, bytes_left));
    }
    let mut entries = value.as_map().into_iter().flatten();
    entries.try_for_each(|(key, item)| {
        *bytes_left = bytes_left.checked_sub(key.as_str().map_or(1, str::len))?;
        deduct_value_size(item, depth, bytes_left)
    })
}

fn replace_filter(text: &str, kwargs: Kwargs, _: &State) -> TeraResult<String> {
    let (from, to): (&str, &str) = (kwargs.must_get("from")?, kwargs.must_get("to")?);
    let places = text.matches(from).count();
    if text.len() + places.saturating_mul(to.len()) > text.len().max(MAX_BYTES) + places * from.len() {
        return Err(long_value_error());
    }
    Ok(text.replace(from, to))
}

fn split_filter(text: &str, kwargs: Kwargs, _: &State) -> TeraResult<Vec<Value>> {
    let pattern: &str = kwargs.must_get("pat")?;
    let pieces: Vec<Value> = text.split(pattern).take(MAX_ITEMS + 1).map(Value::from).collect();
    check_item_count(pieces.len()).map(|()| pieces)
}

fn join_filter(items: &[Value], kwargs: Kwargs, _: &State) -> TeraResult<String> {
    let separator: &str = kwargs.get("sep")?.unwrap_or("");
    let mut bytes_left = MAX_BYTES;
    let separators = items.len().saturating_sub(1).saturating_mul(separator.len());
    let fit = items.iter().try_for_each(|item| deduct_value_size(item, MAX_DEPTH, &mut bytes_left));
    if fit.is_none() || separators > MAX_BYTES {
        return Err(long_value_error());
    }
    Ok(items.iter().map(Value::to_string).collect::<Vec<_>>().join(separator))
}

/// Rounds a number to `precision` decimals. If `precision` is missing, 0 or negative, returns a whole number without a
/// decimal point.
fn round_filter(number: f64, kwargs: Kwargs, _: &State) -> TeraResult<Value> {
    let precision: i32 = kwargs.get("precision")?.unwrap_or(0);
    let scale = 10_f64.powi(precision.clamp(-15, 15));
    let rounded = match kwargs.get("method")? {
        None => (number * scale).round(),
        Some("ceil") => (number * scale).ceil(),
        Some("floor") => (number * scale).floor(),
        Some(_) => return Err(Error::message("Invalid argument for `method`")),
    } / scale;
    // A float represents every integer up to 2^53 exactly.
    let is_exact = rounded.abs() <= 9_007_199_254_740_992.0;
    Ok(if precision <= 0 && is_exact { Value::from(rounded as i64) } else { Value::from(rounded) })
}

fn range_function(kwargs: Kwargs, _: &State) -> TeraResult<Vec<i64>> {
    let start: i64 = kwargs.get("start")?.unwrap_or(0);
    let end: i64 = kwargs.must_get("end")?;
    let step: i64 = kwargs.get("step_by")?.unwrap_or(1);
    let stride = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
    if stride == 0 || (start > end && step > 0) {
        return Err(Error::message("`range` cannot count from `start` to `end` in steps of `step_by`"));
    }
    let numbers: Vec<i64> = match step > 0 {
        true => (start..end).step_by(stride).take(MAX_ITEMS + 1).collect(),
        // Counts down from `start` to the number after `end`.
        false => (end..start).rev().map(|n| n + 1).step_by(stride).take(MAX_ITEMS + 1).collect(),
    };
    check_item_count(numbers.len()).map(|()| numbers)
}

fn check_item_count(count: usize) -> TeraResult<()> {
    if count <= MAX_ITEMS { Ok(()) } else { Err(Error::message(format!("a list has more than {MAX_ITEMS} items"))) }
}

/// A writer that limits the length of a message.
pub(super) struct CappedWriter<'b>(pub(super) &'b mut Vec<u8>);

impl io::Write for CappedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The variable with the code of the campaign's language. Texts cannot use this name.
pub(super) const LANGUAGE: &str = "__language";
/// The beginning of messages about cells that are not amounts; the reason follows.
pub(super) const NO_AMOUNT: &str = "No amount: ";
/// The beginning of messages about cells that are not dates; the reason follows.
pub(super) const NO_DATE: &str = "No date: ";

/// The spellings of dates in cells.
const DATE_FORMATS: [&str; 3] = ["%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d"];

/// The date in a cell, without a time.
fn parse_day(text: &str) -> Option<Date> {
    let date = DATE_FORMATS.into_iter().find_map(|format| Date::strptime(format, text).ok());
    // A two-digit year would be read as a year of the first century, so years before 1000 are rejected.
    date.filter(|date| date.year() >= 1000)
}

/// A date in any form that `date` reads, in the form `2026-12-05`. `None` for other texts.
pub fn to_iso_date(text: &str) -> Option<String> {
    Some(parse_day(text.trim())?.to_string())
}

/// Whether a text is a date in the form `2026-12-05`, in which dates can be compared as text.
pub(super) fn is_iso_date(text: &str) -> bool {
    to_iso_date(text).is_some_and(|date| date == text.trim())
}

/// The language that the filter call names, or else the language of the campaign.
fn choose_language(kwargs: &Kwargs, state: &State) -> TeraResult<Language> {
    let named: Option<&str> = kwargs.get("language")?;
    match named {
        Some(code) => Language::from_code(code).ok_or_else(|| {
            Error::message(format!(
                "unknown language `{code}`; the supported languages are {}",
                Language::CODES.join(", ")
            ))
        }),
        None => {
            let code: Option<String> = state.get(LANGUAGE)?;
            Ok(code.and_then(|code| Language::from_code(&code)).unwrap_or_default())
        }
    }
}

/// Formats an amount with thousands separators, rounded to hundredths: `4392.66` is `4 392,66` in Ukrainian.
pub(super) fn format_money(value: &Value, kwargs: Kwargs, state: &State) -> TeraResult<String> {
    let language = choose_language(&kwargs, state)?;
    let hundredths = match value.as_str() {
        Some(cell) => parse_hundredths(cell),
        None => number_to_hundredths(&value.to_string()),
    };
    let hundredths = hundredths.map_err(|reason| Error::message(format!("{NO_AMOUNT}{reason}")))?;
    let (thousands, fraction) = language.separators();
    let whole = (hundredths.unsigned_abs() / 100).to_string();
    let mut text = String::from(if hundredths < 0 { "-" } else { "" });
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(thousands);
        }
        text.push(digit);
    }
    match hundredths.unsigned_abs() % 100 {
        0 => {}
        cents => text += &format!("{fraction}{cents:02}"),
    }
    Ok(text)
}

/// Parses an amount into hundredths, or returns the reason why the text is not an amount.
///
/// All groups of three digits must have the same separator, and the decimal separator must be a different one. A single
/// comma or point between one to three digits and three digits is ambiguous, so such an amount is rejected. A 0 before
/// the separator makes it a decimal separator.
fn parse_hundredths(text: &str) -> Result<i128, &'static str> {
    const MAX_WHOLE_DIGITS: usize = 15;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('’', "'");
    if text.is_empty() {
        return Err("empty");
    }
    let (is_negative, amount) = match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text.as_str()),
    };
    let groups: Vec<&str> = amount.split([',', '.', ' ', '\'']).collect();
    let separators: Vec<char> = amount.chars().filter(|c| matches!(c, ',' | '.' | ' ' | '\'')).collect();
    let is_digits = |group: &&str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    if !groups.iter().all(is_digits) {
        return Err("letters");
    }
    let (whole, fraction) = match (groups.as_slice(), separators.as_slice()) {
        ([first, last], [',' | '.']) if last.len() == 3 && (1..=3).contains(&first.len()) && *first != "0" => {
            return Err("unclear");
        }
        ([whole @ .., last], [thousands @ .., ',' | '.']) if are_thousands(whole, thousands, separators.last()) => {
            (whole, *last)
        }
        (whole, thousands) if are_thousands(whole, thousands, None) => (whole, ""),
        _ => return Err("letters"),
    };
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    let whole = whole.concat();
    if whole.len() > MAX_WHOLE_DIGITS {
        return Err("letters");
    }
    let number: i128 = format!("{whole}{thousandths}").parse().map_err(|_| "letters")?;
    let rounded = (number + 5) / 10;
    Ok(if is_negative { -rounded } else { rounded })
}

/// Whether groups of digits are thousands: one group, or groups of three after the first, all with the same separator.
/// The decimal separator must differ from the thousands separator.
fn are_thousands(groups: &[&str], separators: &[char], decimal_separator: Option<&char>) -> bool {
    let is_consistent = separators.windows(2).all(|pair| pair[0] == pair[1])
        && separators.first().is_none_or(|separator| Some(separator) != decimal_separator);
    match groups {
        [] => false,
        [_] => true,
        [first, others @ ..] => {
            is_consistent && (1..=3).contains(&first.len()) && others.iter().all(|group| group.len() == 3)
        }
    }
}

/// Converts a number to hundredths. The number is the result of a calculation in a template.
fn number_to_hundredths(text: &str) -> Result<i128, &'static str> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    // A separator before more than three digits cannot be a thousands separator.
    parse_hundredths(&format!("{whole}.{fraction:0<6}"))
}

/// Formats a date in words, or as `format` specifies: `2026-12-05` is `5 грудня 2026` in Ukrainian.
pub(super) fn format_date(value: &Value, kwargs: Kwargs, state: &State) -> TeraResult<String> {
    let language = choose_language(&kwargs, state)?;
    let text = value.to_string();
    let invalid = |reason: &str| Error::message(format!("{NO_DATE}{reason}"));
    let (day, time) = text.trim().split_once([' ', 'T']).unwrap_or((text.trim(), ""));
    if day.is_empty() {
        return Err(invalid("empty"));
    }
    let is_time = time.is_empty()
        || time.contains(':') && time.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | '.' | '+' | '-' | 'Z'));
    let date = parse_day(day).filter(|_| is_time).ok_or_else(|| invalid("letters"))?;
    let format: Option<&str> = kwargs.get("format")?;
    match format {
        // Otherwise every recipient would read `DD.MM.YYYY` in the message.
        Some(format) if is_unlike_strftime(format) => Err(invalid("format")),
        Some(format) => strtime::format(insert_names(format, date, language), date).map_err(|_| invalid("format")),
        None => Ok(language.format_date(date.day(), date.month(), date.year())),
    }
}

/// Whether a date format has no specifiers, or has the placeholders of another notation, such as `DD.MM.YYYY`.
fn is_unlike_strftime(format: &str) -> bool {
    !format.contains('%') || ["YYYY", "yyyy", "MM", "DD"].iter().any(|placeholder| format.contains(placeholder))
}

/// Replaces the specifiers for names (`%B`, `%b`, `%h`, `%A`, `%a`) with the names in `language`, because `strtime` has
/// only English names. `%^B` produces capital letters.
fn insert_names(format: &str, date: Date, language: Language) -> String {
    let month = usize::try_from(date.month() - 1).unwrap_or_default();
    let weekday = usize::try_from(date.weekday().to_monday_zero_offset()).unwrap_or_default();
    let mut inserted = String::with_capacity(format.len());
    let mut rest = format;
    while let Some((before, specifier)) = rest.split_once('%') {
        inserted.push_str(before);
        let conversion =
            specifier.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '_' | '^' | '#'));
        let flags = &specifier[..specifier.len() - conversion.len()];
        let mut letters = conversion.chars();
        let letter = letters.next();
        rest = letters.as_str();
        let name = match letter {
            Some('B') => language.month_names()[month],
            Some('b' | 'h') => language.month_abbreviations()[month],
            Some('A') => language.weekday_names()[weekday],
            Some('a') => language.weekday_abbreviations()[weekday],
            _ => {
                inserted.push('%');
                inserted.push_str(flags);
                inserted.extend(letter);
                continue;
            }
        };
        if flags.contains('^') {
            inserted.push_str(&name.to_uppercase());
        } else {
            inserted.push_str(name);
        }
    }
    inserted + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_text(source: &str) -> Result<String, String> {
        reset_steps();
        create_engine().render_str(source, &tera::Context::new(), false).map_err(|error| error.to_string())
    }

    #[test]
    fn every_listed_filter_and_test_is_known_to_tera() {
        for filter in FILTERS.into_iter().chain(WEB_FILTERS) {
            let unknown =
                render_text(&format!("{{{{ 1 | {filter} }}}}")).is_err_and(|error| error.contains("Unknown filter"));
            assert!(!unknown, "{filter}");
        }
        for test in TESTS {
            let unknown =
                render_text(&format!("{{{{ 1 is {test} }}}}")).is_err_and(|error| error.contains("Unknown test"));
            assert!(!unknown, "{test}");
        }
    }

    #[test]
    fn reimplemented_filters_match_the_tera_documentation() {
        let table = [
            ("{{ 'a-b' | replace(from='-', to='+') }}", "a+b"),
            ("{{ 'a,b' | split(pat=',') | join(sep=';') }}", "a;b"),
            ("{{ [1, 'x'] | join }}", "1x"),
            ("{{ range(end=3) }}", "[0, 1, 2]"),
            ("{{ range(start=1, end=6, step_by=2) }}", "[1, 3, 5]"),
            ("{{ range(start=3, end=0, step_by=-1) }}", "[3, 2, 1]"),
            ("{{ range(start=5, end=0, step_by=-2) }}", "[5, 3, 1]"),
            ("{{ '12.50' | float | round }}", "13"),
            ("{{ 12.4 | round(method='ceil') }} {{ -12.5 | round(method='floor') }}", "13 -13"),
            ("{{ 12.345 | round(precision=2) }} {{ 1250 | round(precision=-2) }}", "12.35 1300"),
            ("{{ 12 | round }} {{ 0.4 | round }}", "12 0"),
        ];
        for (source, expected) in table {
            assert_eq!(render_text(source).as_deref(), Ok(expected), "{source}");
        }
    }

    #[test]
    fn date_filter_uses_month_and_weekday_names_of_the_language() {
        let table = [
            ("{{ '2026-12-05' | date(format='%-d %B', language='uk') }}", "5 грудня"),
            ("{{ '2026-12-05' | date(format='%A, %d %b', language='uk') }}", "субота, 05 груд."),
            ("{{ '2026-12-05' | date(format='%a %^b', language='pl') }}", "sob. GRU"),
            ("{{ '2026-12-05' | date(format='%A %d %B', language='en') }}", "Saturday 05 December"),
            ("{{ '2026-12-05' | date(format='%h %d%%', language='fr') }}", "déc. 05%"),
            ("{{ '2026-12-05' | date(format='100%% %Bx', language='de') }}", "100% Dezemberx"),
        ];
        for (source, expected) in table {
            assert_eq!(render_text(source).as_deref(), Ok(expected), "{source}");
        }
        for unknown in ["%", "%Q1", "5 %", "DD.MM.YYYY", "d.m.Y", "%d.MM.YYYY", ""] {
            assert!(render_text(&format!("{{{{ '2026-12-05' | date(format='{unknown}') }}}}")).is_err(), "{unknown}");
        }
    }

    #[test]
    fn oversized_values_and_invalid_ranges_are_rejected() {
        let long = "x".repeat(15_000);
        let table = [
            format!("{{{{ '{long}' | replace(from='x', to='yy') }}}}"),
            format!("{{{{ 'abcdef' | replace(from='', to='{long}') }}}}"),
            format!("{{{{ ['{long}', '{long}'] | join }}}}"),
            format!("{{{{ ['a', 'b', 'c'] | join(sep='{long}') }}}}"),
            format!("{{{{ '{long}' | split(pat='') }}}}"),
            format!("{{{{ ('{long}' ~ '{long}') | {KEEP} }}}}"),
            "{{ range(end=1001) }}".into(),
            "{{ range(start=-9223372036854775807, end=9223372036854775807) }}".into(),
            "{{ range(start=1, end=2, step_by=0) }}".into(),
        ];
        for source in table {
            assert!(render_text(&source).is_err(), "{}", &source[..source.len().min(40)]);
        }
    }
}

#[cfg(test)]
mod format_tests {
    use super::*;

    #[test]
    fn amounts_are_read_in_common_formats() {
        for (text, expected) in [
            ("4392.66", Ok(439_266)),
            ("4 392,66", Ok(439_266)),
            ("4\u{a0}392,66", Ok(439_266)),
            ("4,392.66", Ok(439_266)),
            ("4.392,66", Ok(439_266)),
            ("1200", Ok(120_000)),
            ("-12.5", Ok(-1_250)),
            ("12.3456", Ok(1_235)),
            ("1250.000000", Ok(125_000)),
            ("1250.000", Ok(125_000)),
            ("0,125", Ok(13)),
            ("0.125", Ok(13)),
            ("1.234.567", Ok(123_456_700)),
            ("1,234,567", Ok(123_456_700)),
            ("-1.500.000", Ok(-150_000_000)),
            ("1 234 567.8", Ok(123_456_780)),
            ("1’234.50", Ok(123_450)),
            ("", Err("empty")),
            ("1,200", Err("unclear")),
            ("2.500", Err("unclear")),
            ("12 UAH", Err("letters")),
            (".5", Err("letters")),
            ("12.34.56", Err("letters")),
            ("1,2,3", Err("letters")),
            ("192.168.1.1", Err("letters")),
            ("05.12.2026", Err("letters")),
            ("12 34", Err("letters")),
            ("1.234,567,890", Err("letters")),
        ] {
            assert_eq!(parse_hundredths(text), expected, "{text}");
        }
        assert_eq!((number_to_hundredths("2.125"), number_to_hundredths("1200")), (Ok(213), Ok(120_000)));
    }
}
