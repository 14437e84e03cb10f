//! Tera as messages use it: which of its filters there are, and the limits that it does not have.
//!
//! Tera has no fuel, so a text could loop or double a value until memory or patience ends. Here a
//! text has a number of steps, counted in tags and not in time, so that a row gives the same result
//! on every machine; `meter` puts the counting into the source. Nothing here reads a clock, the
//! environment, a file or chance.

use std::cell::Cell;
use std::io;

use tera::{Error, Kwargs, State, Tera, TeraResult, Value};

use super::regional::{format_date, format_money};

/// The most steps of one text, counted as tokens of its tags, each round of a loop anew.
pub(super) const MAX_STEPS: usize = 10_000;
/// The most bytes of a cell, of a value that a text sets, and of a message.
pub(super) const MAX_BYTES: usize = 20_000;
/// The most items of a list that a text makes.
const MAX_ITEMS: usize = 1_000;
/// The deepest nesting of lists in lists.
const MAX_DEPTH: usize = 16;

/// The beginnings of our own messages, which people see unchanged.
pub(super) const OWN_MESSAGES: [&str; 5] = [
    "the loops take too many steps",
    "a value is longer than",
    "a list has more than",
    "`range` cannot count",
    "unknown language",
];

/// The function that `meter` calls in each round of a loop, and the filter on each value that is set.
pub(super) const ROUND: &str = "__round";
pub(super) const KEEP: &str = "__kept";

/// The filters of messages: those of tera, without those for web pages, and those for amounts and dates.
pub(super) const FILTERS: [&str; 34] = [
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
/// The arguments of filters: those that are required, then the others. Other filters have none.
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

/// The arguments that a filter requires, and the others that it has.
pub(super) fn filter_arguments(filter: &str) -> (&'static [&'static str], &'static [&'static str]) {
    let known = ARGUMENTS.iter().find(|(name, ..)| *name == filter);
    known.map_or((&[], &[]), |(_, required, optional)| (required, optional))
}

/// Tera's filters that messages do not have, because a message is plain text.
pub(super) const WEB_FILTERS: [&str; 5] = ["escape", "escape_html", "escape_xml", "indent", "newlines_to_br"];
/// The tests of messages, all of them tera's.
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
/// The functions of messages.
pub(super) const FUNCTIONS: [&str; 3] = ["range", "super", "throw"];

thread_local! {
    /// The steps that the text being filled on this thread has left. Tera hands its functions no
    /// state that they could change, and a text is filled on one thread from start to end.
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// Gives the next text that is filled on this thread its steps.
pub(super) fn reset_steps() {
    STEPS.set(MAX_STEPS);
}

/// Tera without templates, without escaping and with the limits.
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
        Some(left) => {
            STEPS.set(left);
            Ok(())
        }
        None => Err(Error::message("the loops take too many steps; use lists with fewer items")),
    }
}

fn long_value_error() -> Error {
    Error::message(format!("a value is longer than {MAX_BYTES} bytes"))
}

/// The value itself, if it is small enough to be built upon.
fn keep_if_small(value: &Value, _: Kwargs, _: &State) -> TeraResult<Value> {
    let mut room = MAX_BYTES;
    measure_value(value, MAX_DEPTH, &mut room).map(|()| value.clone()).ok_or_else(long_value_error)
}

fn measure_value(value: &Value, depth: usize, room: &mut usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    *room = room.checked_sub(value.as_str().map_or(1, str::len))?;
    if let Some(items) = value.as_array() {
        return items.iter().try_for_each(|item| measure_value(item, depth, room));
    }
    let mut entries = value.as_map().into_iter().flatten();
    entries.try_for_each(|(key, item)| {
        *room = room.checked_sub(key.as_str().map_or(1, str::len))?;
        measure_value(item, depth, room)
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
    let mut room = MAX_BYTES;
    let separators = items.len().saturating_sub(1).saturating_mul(separator.len());
    let fit = items.iter().try_for_each(|item| measure_value(item, MAX_DEPTH, &mut room));
    if fit.is_none() || separators > MAX_BYTES {
        return Err(long_value_error());
    }
    Ok(items.iter().map(Value::to_string).collect::<Vec<_>>().join(separator))
}

/// A number with that many decimals; without `precision`, a whole number without a decimal point.
fn round_filter(number: f64, kwargs: Kwargs, _: &State) -> TeraResult<Value> {
    let precision: i32 = kwargs.get("precision")?.unwrap_or(0);
    let scale = 10_f64.powi(precision.clamp(-15, 15));
    let rounded = match kwargs.get("method")? {
        None => (number * scale).round(),
        Some("ceil") => (number * scale).ceil(),
        Some("floor") => (number * scale).floor(),
        Some(_) => return Err(Error::message("Invalid argument for `method`")),
    } / scale;
    // Every whole number up to here has a value of its own.
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
        false => (end..start).rev().map(|n| n + 1).step_by(stride).take(MAX_ITEMS + 1).collect(),
    };
    check_item_count(numbers.len()).map(|()| numbers)
}

fn check_item_count(count: usize) -> TeraResult<()> {
    if count <= MAX_ITEMS { Ok(()) } else { Err(Error::message(format!("a list has more than {MAX_ITEMS} items"))) }
}

/// A writer that refuses what is longer than any message.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn render_text(source: &str) -> Result<String, String> {
        reset_steps();
        create_engine().render_str(source, &tera::Context::new(), false).map_err(|error| error.to_string())
    }

    #[test]
    fn every_name_is_known_to_tera() {
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
    fn own_filters_behave_as_tera_documents() {
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
    fn values_have_size_limits() {
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
