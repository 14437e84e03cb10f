//! Displayed text of cells: number formats, dates and times (ECMA-376 part 1, 18.8.31).
//!
//! Separators are shown as the format writes them, because a workbook does not record its reader's language. If a
//! format would hide digits of a whole number (`3.8E+11`), all digits are shown.

use std::fmt::Write as _;

use calamine::{DataRef, ExcelDateTime, ExcelDateTimeType};

use campaign_core::domain::Language;

/// Built-in formats whose dates depend on the reader's language.
const LOCAL_DATE: u32 = 14;
const LOCAL_DATE_AND_TIME: u32 = 22;
/// The maximum number of characters of a number without a format.
const GENERAL_WIDTH: usize = 11;

#[derive(Debug)]
pub(super) struct NumberFormat {
    sections: Vec<FormatSection>,
}

#[derive(Debug)]
struct FormatSection {
    /// The comparison operator and the operand that limit the section to certain numbers, if any.
    condition: Option<(String, f64)>,
    tokens: Vec<FormatToken>,
    dates: Option<DateFormat>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum FormatToken {
    Text(String),
    /// A placeholder for a digit: `0`, `#` or `?`.
    Digit(char),
    Point,
    Comma,
    Percent,
    /// The number as it would be without a format.
    General,
    /// Not shown literally: powers of ten, fractions.
    Unsupported,
    /// A run of one letter of a date, and its length.
    Run(char, usize),
    /// The total of a duration in the unit of this letter: `[h]`, `[m]` or `[s]`.
    Elapsed(char),
    /// `AM/PM`.
    HalfDay,
}

impl NumberFormat {
    /// The format `General`, which applies to cells without a format of their own.
    pub(super) fn general() -> Self {
        Self::parse("General", None)
    }

    /// Parses the code of a number format. `id` identifies the built-in formats.
    pub(super) fn parse(code: &str, id: Option<u32>) -> Self {
        let code = match id {
            Some(LOCAL_DATE) => "dd.mm.yyyy",
            Some(LOCAL_DATE_AND_TIME) => "dd.mm.yyyy h:mm",
            _ => code,
        };
        Self { sections: split_sections(code).into_iter().map(FormatSection::parse).collect() }
    }

    pub(super) fn format_number(&self, value: f64) -> String {
        let (index, section) = self.choose_section(value);
        let text = section.map_or_else(|| format_general(value.abs()), |section| section.format_number(value.abs()));
        let sign =
            if value < 0.0 && index == 0 && text.bytes().any(|byte| matches!(byte, b'1'..=b'9')) { "-" } else { "" };
        format!("{sign}{text}").trim().to_owned()
    }

    pub(super) fn format_time(&self, time: &ExcelDateTime) -> String {
        let (_, section) = self.choose_section(time.as_f64());
        match section.and_then(|section| section.dates.as_ref()) {
            Some(dates) => dates.format_time(time).trim().to_owned(),
            None => format_default(time),
        }
    }

    /// The section that applies to a number, and the index of that section.
    fn choose_section(&self, value: f64) -> (usize, Option<&FormatSection>) {
        let numbers = &self.sections[..self.sections.len().min(3)];
        if numbers.iter().any(|section| section.condition.is_some()) {
            let fits = |section: &FormatSection| {
                section.condition.as_ref().is_none_or(|(operator, operand)| meets_condition(value, operator, *operand))
            };
            let index = numbers.iter().position(fits).unwrap_or(numbers.len().saturating_sub(1));
            return (index, numbers.get(index));
        }
        let index = match numbers.len() {
            3 if value == 0.0 => 2,
            2 | 3 if value < 0.0 => 1,
            _ => 0,
        };
        (index, numbers.get(index))
    }
}

impl FormatSection {
    fn parse(code: &str) -> Self {
        let (mut tokens, mut condition, mut language) = (Vec::new(), None, String::new());
        let mut rest = code.chars().peekable();
        let push_text = |tokens: &mut Vec<FormatToken>, more: &str| match tokens.last_mut() {
            Some(FormatToken::Text(text)) => text.push_str(more),
            _ => tokens.push(FormatToken::Text(more.to_owned())),
        };
        while let Some(character) = rest.next() {
            match character {
                '"' => {
                    let quoted: String = rest.by_ref().take_while(|&next| next != '"').collect();
                    push_text(&mut tokens, &quoted);
                }
                '\\' => push_text(&mut tokens, &rest.next().map(String::from).unwrap_or_default()),
                '_' => {
                    rest.next();
                    push_text(&mut tokens, " ");
                }
                '*' => drop(rest.next()),
                '[' => {
                    let bracketed: String = rest.by_ref().take_while(|&next| next != ']').collect();
                    let lower = bracketed.to_lowercase();
                    if let Some(money) = bracketed.strip_prefix('$') {
                        let (money, locale) = money.split_once('-').unwrap_or((money, ""));
                        locale.clone_into(&mut language);
                        push_text(&mut tokens, money);
                    } else if bracketed.starts_with(['<', '>', '=']) {
                        let operator = bracketed.trim_end_matches(|c: char| !matches!(c, '<' | '>' | '='));
                        let operand = bracketed[operator.len()..].trim().parse().ok();
                        condition = operand.map(|operand| (operator.to_owned(), operand));
                    } else if let Some(letter @ ('h' | 'm' | 's')) = lower.chars().next()
                        && lower.chars().all(|other| other == letter)
                    {
                        tokens.push(FormatToken::Elapsed(letter));
                    }
                }
                '0' | '#' | '?' => tokens.push(FormatToken::Digit(character)),
                '.' => tokens.push(FormatToken::Point),
                ',' => tokens.push(FormatToken::Comma),
                '%' => tokens.push(FormatToken::Percent),
                'E' | 'e' if matches!(rest.peek(), Some('+' | '-')) => tokens.push(FormatToken::Unsupported),
                '@' => tokens.push(FormatToken::General),
                'G' | 'g' if starts_with(&rest, "eneral") => {
                    rest.nth(5);
                    tokens.push(FormatToken::General);
                }
                // `AM/PM` or `A/P`.
                'A' | 'a' if starts_with(&rest, "m/pm") || starts_with(&rest, "/p") => {
                    rest.nth(if starts_with(&rest, "/p") { 1 } else { 3 });
                    tokens.push(FormatToken::HalfDay);
                }
                letter if matches!(letter.to_ascii_lowercase(), 'y' | 'm' | 'd' | 'h' | 's') => {
                    let letter = letter.to_ascii_lowercase();
                    let mut length = 1;
                    while rest.next_if(|next| next.to_ascii_lowercase() == letter).is_some() {
                        length += 1;
                    }
                    tokens.push(FormatToken::Run(letter, length));
                }
                '/' if matches!(tokens.last(), Some(FormatToken::Digit(_))) => tokens.push(FormatToken::Unsupported),
                other => push_text(&mut tokens, other.encode_utf8(&mut [0; 4])),
            }
        }
        let is_date = tokens.iter().any(|token| matches!(token, FormatToken::Run(..) | FormatToken::Elapsed(_)));
        let dates = is_date.then(|| DateFormat::new(&tokens, &language));
        Self { condition, tokens, dates }
    }

    /// Formats a non-negative number with this section.
    fn format_number(&self, value: f64) -> String {
        if self.dates.is_some() || self.tokens.contains(&FormatToken::Unsupported) {
            return format_general(value);
        }
        let is_digit = |token: &FormatToken| matches!(token, FormatToken::Digit(_));
        let point = self.tokens.iter().position(|token| *token == FormatToken::Point).unwrap_or(self.tokens.len());
        let last_digit = self.tokens.iter().rposition(is_digit);
        let comma_position = |(at, token): (usize, &FormatToken)| (*token == FormatToken::Comma).then_some(at);
        let commas: Vec<usize> = self.tokens.iter().enumerate().filter_map(comma_position).collect();
        // A comma after the last digit divides the number by a thousand. A comma before the last digit groups digits.
        let thousands = commas.iter().filter(|&&at| last_digit.is_some_and(|last| at > last)).count();
        let is_grouped = commas.iter().any(|&at| last_digit.is_some_and(|last| at < last));
        let percents = self.tokens.iter().filter(|token| **token == FormatToken::Percent).count();
        let decimals = self.tokens[point..].iter().filter(|token| is_digit(token)).count();
        let power = 2 * i32::try_from(percents).unwrap_or(0) - 3 * i32::try_from(thousands).unwrap_or(0);
        let (whole, fraction) = round_digits(value, power, decimals);
        let placeholders = self.tokens[..point].iter().filter(|token| is_digit(token)).count();
        let digits = whole.bytes().map(char::from).collect();
        let mut whole_digits = WholeDigits { digits, placeholders, is_grouped };
        let kinds = self.tokens[point..].iter().filter_map(|token| match token {
            FormatToken::Digit(kind) => Some(*kind),
            _ => None,
        });
        let mut fraction: Vec<char> = fraction.chars().collect();
        for kind in kinds.collect::<Vec<_>>().into_iter().rev() {
            if kind == '0' || fraction.last() != Some(&'0') {
                break;
            }
            fraction.pop();
        }
        let (mut output, mut fraction) = (String::new(), fraction.into_iter());
        for (at, token) in self.tokens.iter().enumerate() {
            match token {
                FormatToken::Text(text) => output.push_str(text),
                FormatToken::General => output.push_str(&format_general(value)),
                FormatToken::Percent => output.push('%'),
                FormatToken::Point => output.push('.'),
                FormatToken::Digit(kind) if at < point => whole_digits.push_placeholder_digits(&mut output, *kind),
                FormatToken::Digit(_) => output.extend(fraction.next()),
                FormatToken::Comma
                | FormatToken::Unsupported
                | FormatToken::Run(..)
                | FormatToken::Elapsed(_)
                | FormatToken::HalfDay => {}
            }
        }
        output
    }
}

/// The digits before the decimal point, to be distributed to placeholders.
struct WholeDigits {
    digits: Vec<char>,
    /// Remaining placeholders.
    placeholders: usize,
    /// Whether commas separate groups of three digits.
    is_grouped: bool,
}

impl WholeDigits {
    /// Writes the digits for a placeholder: one digit or none, except that the first placeholder also gets all surplus
    /// digits.
    fn push_placeholder_digits(&mut self, output: &mut String, kind: char) {
        let start = self.digits.len().saturating_sub(self.placeholders - 1);
        let digits: Vec<char> = self.digits.drain(..start).collect();
        if digits.is_empty() && kind == '0' {
            self.push_digit(output, '0', self.placeholders - 1);
        }
        let after = self.placeholders - 1;
        for (at, digit) in digits.iter().enumerate() {
            self.push_digit(output, *digit, after + digits.len() - 1 - at);
        }
        self.placeholders = after;
    }

    fn push_digit(&self, output: &mut String, digit: char, digits_after: usize) {
        output.push(digit);
        if self.is_grouped && digits_after > 0 && digits_after.is_multiple_of(3) {
            output.push(',');
        }
    }
}

fn meets_condition(value: f64, operator: &str, operand: f64) -> bool {
    match operator {
        "<" => value < operand,
        "<=" => value <= operand,
        ">" => value > operand,
        ">=" => value >= operand,
        "<>" => (value - operand).abs() > f64::EPSILON,
        _ => (value - operand).abs() <= f64::EPSILON,
    }
}

/// Whether the rest starts with this ASCII text in any case.
fn starts_with(rest: &std::iter::Peekable<std::str::Chars<'_>>, prefix: &str) -> bool {
    let mut rest = rest.clone();
    prefix.chars().all(|expected| rest.next().is_some_and(|next| next.eq_ignore_ascii_case(&expected)))
}

/// Splits a format code into sections. Quoted and escaped semicolons do not separate sections.
fn split_sections(code: &str) -> Vec<&str> {
    let (mut sections, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, character) in code.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' | '_' | '*' if !quoted => escaped = true,
            '"' => quoted = !quoted,
            ';' if !quoted => {
                sections.push(&code[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    sections.push(&code[start..]);
    sections
}

/// Formats a non-negative number like a cell without a format, but with all digits before the decimal point.
fn format_general(value: f64) -> String {
    let (whole, _) = round_digits(value, 0, 0);
    let decimals = if value.fract() == 0.0 { 0 } else { (GENERAL_WIDTH - 1).saturating_sub(whole.len().max(1)) };
    let (whole, fraction) = round_digits(value, 0, decimals);
    let fraction = fraction.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { &whole };
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// The digits before and after the decimal point of `value` times ten to the power of `power`, rounded half up. If the
/// part before the decimal point is 0, it has no digits.
///
/// A spreadsheet keeps fifteen digits. A whole number with more digits keeps all of them.
fn round_digits(value: f64, power: i32, decimals: usize) -> (String, String) {
    /// More leading zeros cannot change the displayed digits.
    const MAX_ZEROS: usize = 400;
    if !value.is_finite() {
        return (String::new(), "0".repeat(decimals));
    }
    let (mut digits, exponent) = if value.fract() == 0.0 && value >= 1e15 {
        let digits = format!("{value:.0}");
        let length = i32::try_from(digits.len()).unwrap_or(i32::MAX);
        (digits, length)
    } else {
        let text = format!("{value:.14e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        (mantissa.replace('.', ""), exponent.parse::<i32>().unwrap_or(0) + 1)
    };
    // The number of digits before the decimal point.
    let mut point = exponent + power;
    if point < 0 {
        digits = "0".repeat(usize::try_from(-point).unwrap_or(0).min(MAX_ZEROS)) + &digits;
        point = 0;
    }
    let point = usize::try_from(point).unwrap_or(0);
    let length = point + decimals;
    let rounds_up = digits.as_bytes().get(length).is_some_and(|digit| *digit >= b'5');
    let mut digits: Vec<u8> = digits.bytes().chain(std::iter::repeat(b'0')).take(length).collect();
    let mut carry = rounds_up;
    for digit in digits.iter_mut().rev() {
        if !carry {
            break;
        }
        carry = *digit == b'9';
        *digit = if carry { b'0' } else { *digit + 1 };
    }
    let mut whole: String = digits[..point].iter().map(|&digit| char::from(digit)).collect();
    if carry {
        whole.insert(0, '1');
    }
    let fraction = digits[point..].iter().map(|&digit| char::from(digit)).collect();
    (whole.trim_start_matches('0').to_owned(), fraction)
}

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const DAYS_IN_UKRAINIAN: [&str; 7] = ["неділя", "понеділок", "вівторок", "середа", "четвер", "п'ятниця", "субота"];
/// The code of the Ukrainian language in formats.
const UKRAINIAN: &str = "422";

/// The format of a date, a time or a duration.
#[derive(Debug)]
pub(super) struct DateFormat {
    parts: Vec<DatePart>,
    is_ukrainian: bool,
    /// Whether hours are from 1 to 12.
    is_12_hour: bool,
}

#[derive(Debug)]
enum DatePart {
    Text(String),
    Year(usize),
    Month(usize),
    Day(usize),
    Hour(usize),
    Minute(usize),
    Second(usize),
    /// Fractions of a second, with this many digits.
    Fraction(usize),
    HalfDay,
    /// The total hours, minutes or seconds of a duration, depending on the letter.
    Elapsed(char),
}

impl DateFormat {
    pub(super) fn new(tokens: &[FormatToken], language: &str) -> Self {
        let mut parts = Vec::new();
        // The index of the last digit of the fraction of a second.
        let mut fraction_end = None;
        let is_unit = |token: &&FormatToken| matches!(token, FormatToken::Run(..) | FormatToken::Elapsed(_));
        for (at, token) in tokens.iter().enumerate() {
            let before = tokens[..at].iter().rev().find(is_unit);
            let after = tokens[at + 1..].iter().find(is_unit);
            let is_minute = matches!(before, Some(FormatToken::Run('h', _) | FormatToken::Elapsed('h')))
                || matches!(after, Some(FormatToken::Run('s', _) | FormatToken::Elapsed('s')));
            parts.push(match token {
                FormatToken::Text(text) => DatePart::Text(text.clone()),
                FormatToken::Comma => DatePart::Text(",".to_owned()),
                FormatToken::Percent => DatePart::Text("%".to_owned()),
                FormatToken::Run('y', length) => DatePart::Year(*length),
                FormatToken::Run('m', length) if is_minute && *length <= 2 => DatePart::Minute(*length),
                FormatToken::Run('m', length) => DatePart::Month(*length),
                FormatToken::Run('d', length) => DatePart::Day(*length),
                FormatToken::Run('h', length) => DatePart::Hour(*length),
                FormatToken::Run(_, length) => DatePart::Second(*length),
                FormatToken::Elapsed(letter) => DatePart::Elapsed(*letter),
                FormatToken::HalfDay => DatePart::HalfDay,
                FormatToken::Point
                    if matches!(before, Some(FormatToken::Run('s', _)))
                        && matches!(tokens.get(at + 1), Some(FormatToken::Digit('0'))) =>
                {
                    let digits = tokens[at + 1..].iter().take_while(|token| **token == FormatToken::Digit('0')).count();
                    fraction_end = Some(at + digits);
                    DatePart::Fraction(digits.min(3))
                }
                FormatToken::Point => DatePart::Text(".".to_owned()),
                FormatToken::Digit(digit) if fraction_end.is_none_or(|end| at > end) => {
                    DatePart::Text(digit.to_string())
                }
                FormatToken::Digit(_) | FormatToken::General | FormatToken::Unsupported => continue,
            });
        }
        let is_12_hour = tokens.contains(&FormatToken::HalfDay);
        Self { parts, is_ukrainian: language.trim_start_matches('0').eq_ignore_ascii_case(UKRAINIAN), is_12_hour }
    }

    /// Formats a time in this format. Like Excel, rounds a time of day half up to the second, or to the fraction of a
    /// second that the format shows. A date without a time of day is not rounded.
    pub(super) fn format_time(&self, time: &ExcelDateTime) -> String {
        let time = &self.count_decimals().map_or(*time, |decimals| round_time(time, decimals));
        let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
        let (language, days) = if self.is_ukrainian { (Language::Uk, DAYS_IN_UKRAINIAN) } else { (Language::En, DAYS) };
        let month_name = language.month_names()[usize::from(month.clamp(1, 12)) - 1];
        let mut output = String::new();
        for part in &self.parts {
            let _ = match *part {
                DatePart::Text(ref text) => write!(output, "{text}"),
                DatePart::Year(1 | 2) => write!(output, "{:02}", year % 100),
                DatePart::Year(_) => write!(output, "{year:04}"),
                DatePart::Month(1) => write!(output, "{month}"),
                DatePart::Month(2) => write!(output, "{month:02}"),
                DatePart::Month(3) => write!(output, "{}", first_letters(month_name, 3)),
                DatePart::Month(5) => write!(output, "{}", first_letters(month_name, 1)),
                DatePart::Month(_) => write!(output, "{month_name}"),
                DatePart::Day(1) => write!(output, "{day}"),
                DatePart::Day(2) => write!(output, "{day:02}"),
                DatePart::Day(3) => write!(output, "{}", first_letters(days[find_weekday(year, month, day)], 3)),
                DatePart::Day(_) => write!(output, "{}", days[find_weekday(year, month, day)]),
                DatePart::Hour(length) => {
                    let hour = if self.is_12_hour { (hour + 11) % 12 + 1 } else { hour };
                    write!(output, "{hour:0length$}")
                }
                DatePart::Minute(length) => write!(output, "{minute:0length$}"),
                DatePart::Second(length) => write!(output, "{second:0length$}"),
                DatePart::Fraction(digits) => write!(output, ".{}", &format!("{milli:03}")[..digits]),
                DatePart::HalfDay => write!(output, "{}", if hour < 12 { "AM" } else { "PM" }),
                DatePart::Elapsed(letter) => write!(output, "{}", count_elapsed(time, letter)),
            };
        }
        output
    }

    /// The number of decimals of a second in this format. `None` if it shows no time of day.
    fn count_decimals(&self) -> Option<usize> {
        let decimals = self.parts.iter().filter_map(|part| match part {
            DatePart::Fraction(decimals) => Some(*decimals),
            DatePart::Hour(_)
            | DatePart::Minute(_)
            | DatePart::Second(_)
            | DatePart::HalfDay
            | DatePart::Elapsed(_) => Some(0),
            _ => None,
        });
        decimals.max()
    }
}

/// The number of milliseconds of a day.
const DAY_IN_MILLISECONDS: f64 = 86_400_000.0;

/// Rounds a time half up to the second, or to this number of decimals of a second.
fn round_time(time: &ExcelDateTime, decimals: usize) -> ExcelDateTime {
    // A date and time in one number is not exact, so fractions of a millisecond are errors.
    let milliseconds = (time.as_f64() * DAY_IN_MILLISECONDS).round();
    let unit = [1000.0, 100.0, 10.0, 1.0][decimals.min(3)];
    let days = (milliseconds / unit + 0.5).floor() * unit / DAY_IN_MILLISECONDS;
    let kind = if time.is_duration() { ExcelDateTimeType::TimeDelta } else { ExcelDateTimeType::DateTime };
    // The library does not expose the epoch, but its comparison includes the epoch.
    let is_1904 = *time != ExcelDateTime::new(time.as_f64(), kind, false);
    ExcelDateTime::new(days, kind, is_1904)
}

/// Formats a time without a specific format, rounded to the second: the date as day, month and year, and the time
/// unless it is midnight. A time of day or a duration is shown without a date.
pub(super) fn format_default(time: &ExcelDateTime) -> String {
    let is_time_of_day = time.as_f64() < 1.0;
    let time = &round_time(time, 0);
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    let clock =
        if second > 0 { format!("{hour:02}:{minute:02}:{second:02}") } else { format!("{hour:02}:{minute:02}") };
    if time.is_duration() {
        return format!("{}:{minute:02}:{second:02}", count_elapsed(time, 'h'));
    }
    match (is_time_of_day, clock == "00:00") {
        (true, _) => clock,
        (false, true) => format!("{day:02}.{month:02}.{year:04}"),
        (false, false) => format!("{day:02}.{month:02}.{year:04} {clock}"),
    }
}

/// The total hours, minutes or seconds of a duration, depending on `letter`.
fn count_elapsed(time: &ExcelDateTime, letter: char) -> f64 {
    let in_a_day = match letter {
        'h' => 24.0,
        'm' => 1440.0,
        _ => 86_400.0,
    };
    // The addend compensates for times that are slightly too small as binary fractions.
    (time.as_f64() * in_a_day + 1e-6).floor().max(0.0)
}

fn first_letters(name: &str, count: usize) -> String {
    name.chars().take(count).collect()
}

/// The index of a date's day of the week, counted from Sunday.
fn find_weekday(year: u16, month: u8, day: u8) -> usize {
    let parts = (i16::try_from(year), i8::try_from(month), i8::try_from(day));
    let (Ok(year), Ok(month), Ok(day)) = parts else { return 0 };
    let date = jiff::civil::Date::new(year, month, day);
    date.map_or(0, |date| usize::try_from(date.weekday().to_sunday_zero_offset()).unwrap_or(0))
}

/// Formats a cell as it looks in a wide column, with all digits of a number.
pub(super) fn format_cell(value: &DataRef<'_>, format: &NumberFormat) -> String {
    match value {
        DataRef::Empty => String::new(),
        DataRef::String(text) => text.clone(),
        DataRef::SharedString(text) => (*text).to_owned(),
        DataRef::Bool(yes) => if *yes { "TRUE" } else { "FALSE" }.to_owned(),
        #[expect(clippy::cast_precision_loss, reason = "a sheet has no other numbers")]
        DataRef::Int(number) => format.format_number(*number as f64),
        DataRef::Float(number) => format.format_number(*number),
        DataRef::DateTime(time) => format.format_time(time),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text.clone(),
        DataRef::Error(error) => error.to_string(),
    }
}

#[cfg(test)]
mod number_format_tests {
    use super::*;

    #[test]
    fn number_is_shown_in_its_format() {
        for (code, value, expected) in [
            ("General", 380_501_234_567.0, "380501234567"),
            ("General", 0.1 + 0.2, "0.3"),
            ("General", 1.0 / 3.0, "0.333333333"),
            ("General", 1_234.567_890_12, "1234.56789"),
            ("General", -12.5, "-12.5"),
            ("General", 0.0, "0"),
            ("General", 9_007_199_254_740_991.0, "9007199254740991"),
            ("@", 7.0, "7"),
            ("0", 501_234_567.0, "501234567"),
            ("0000000000", 501_234_567.0, "0501234567"),
            ("+00 000 000 00 00", 380_501_234_567.0, "+38 050 123 45 67"),
            ("[<=9999999]###\\-####;\\(###\\)\\ ###\\-####", 2_025_550_123.0, "(202) 555-0123"),
            ("0.00E+00", 380_501_234_567.0, "380501234567"),
            ("# ?/?", 0.5, "0.5"),
            ("0%", 0.15, "15%"),
            ("0.0%", 0.155, "15.5%"),
            ("0.00", 1.005, "1.01"),
            ("0.00", 1234.5, "1234.50"),
            ("#,##0.00", 1234.5, "1,234.50"),
            ("#,##0", 1_234_567.0, "1,234,567"),
            ("#,##0", 12.0, "12"),
            ("#,##0.00\\ \"₴\"", 1234.5, "1,234.50 ₴"),
            ("#,##0.00\\ [$₴-422]", -1234.5, "-1,234.50 ₴"),
            ("#,##0.00;[Red]\\(#,##0.00\\)", -3.5, "(3.50)"),
            ("0;-0;\"немає\"", 0.0, "немає"),
            ("_(* #,##0_);_(* \\(#,##0\\);_(* \"-\"_);_(@_)", 5.0, "5"),
            ("0.##", 2.0, "2."),
            ("0.0#", 2.5, "2.5"),
            ("#", 0.0, ""),
            ("0,", 12_345.0, "12"),
            ("0.999", 0.0, "0.999"),
            ("General\" грн\"", 5.5, "5.5 грн"),
            ("000", 1_234_567.0, "1234567"),
        ] {
            assert_eq!(NumberFormat::parse(code, None).format_number(value), expected, "{code} of {value}");
        }
    }
}

#[cfg(test)]
mod date_format_tests {
    use calamine::{ExcelDateTime, ExcelDateTimeType};

    use crate::audience::workbook::cell_format::NumberFormat;

    #[test]
    fn time_is_shown_in_its_format() {
        for (code, id, value, expected) in [
            ("mm-dd-yy", Some(14), 46_357.0, "01.12.2026"),
            ("dd\\.mm\\.yyyy;@", None, 46_357.0, "01.12.2026"),
            ("yyyy\\-mm\\-dd", None, 46_357.0, "2026-12-01"),
            ("[$-422]d\\ mmmm\\ yyyy;@", None, 46_357.0, "1 грудня 2026"),
            ("d-mmm-yy", Some(15), 46_357.0, "1-Dec-26"),
            ("dddd", None, 46_357.0, "Tuesday"),
            ("h:mm", None, 0.75, "18:00"),
            ("h:mm AM/PM", None, 0.75, "6:00 PM"),
            ("hh:mm:ss", None, 46_357.5, "12:00:00"),
            ("[h]:mm:ss", None, 1.5, "36:00:00"),
            ("mm:ss.0", None, 0.000_011_574_1, "00:01.0"),
            ("yyyy-mm-dd hh:mm", None, 46_357.5, "2026-12-01 12:00"),
            ("General", None, 46_357.0, "01.12.2026"),
            ("General", None, 46_357.5, "01.12.2026 12:00"),
            // 23:59:59.6 on 31 December 2026, and 10:00:00.5 and 10:00:00.4 as times.
            ("dd.mm.yyyy hh:mm:ss", None, 46_387.0 + 86_399.6 / 86_400.0, "01.01.2027 00:00:00"),
            ("dd.mm.yyyy hh:mm", None, 46_387.0 + 86_399.6 / 86_400.0, "01.01.2027 00:00"),
            ("dd.mm.yyyy hh:mm:ss.0", None, 46_387.0 + 86_399.6 / 86_400.0, "31.12.2026 23:59:59.6"),
            ("dd.mm.yyyy", None, 46_387.0 + 86_399.6 / 86_400.0, "31.12.2026"),
            ("General", None, 46_387.0 + 86_399.6 / 86_400.0, "01.01.2027"),
            ("General", None, 86_399.6 / 86_400.0, "00:00"),
            ("h:mm:ss", None, 36_000.5 / 86_400.0, "10:00:01"),
            ("h:mm:ss", None, 36_000.4 / 86_400.0, "10:00:00"),
            ("mm:ss.0", None, 59.96 / 86_400.0, "01:00.0"),
            ("[h]:mm:ss", None, 86_399.6 / 86_400.0, "24:00:00"),
        ] {
            let time = ExcelDateTime::new(value, ExcelDateTimeType::DateTime, false);
            assert_eq!(NumberFormat::parse(code, id).format_time(&time), expected, "{code} of {value}");
        }
    }
}
