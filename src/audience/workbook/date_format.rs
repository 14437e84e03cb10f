//! Dates, times and durations as a cell's number format shows them.

use std::fmt::Write as _;

use calamine::ExcelDateTime;

use super::number_format::FormatToken;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// As they stand behind a day.
const MONTHS_IN_UKRAINIAN: [&str; 12] = [
    "січня",
    "лютого",
    "березня",
    "квітня",
    "травня",
    "червня",
    "липня",
    "серпня",
    "вересня",
    "жовтня",
    "листопада",
    "грудня",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const DAYS_IN_UKRAINIAN: [&str; 7] = ["неділя", "понеділок", "вівторок", "середа", "четвер", "п'ятниця", "субота"];
/// The language of Ukraine in formats.
const UKRAINIAN: &str = "422";

/// The format of a date, a time or a duration.
#[derive(Debug)]
pub(super) struct DateFormat {
    parts: Vec<DatePart>,
    ukrainian: bool,
    /// Whether hours go from 1 to 12.
    halves: bool,
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
    /// Fractions of a second, so many digits of them.
    Fraction(usize),
    HalfDay,
    /// All hours, minutes or seconds.
    All(char),
}

impl DateFormat {
    pub(super) fn new(tokens: &[FormatToken], language: &str) -> Self {
        let mut parts = Vec::new();
        let mut fraction = None;
        let runs = |token: &&FormatToken| matches!(token, FormatToken::Run(..) | FormatToken::Elapsed(_));
        for (at, token) in tokens.iter().enumerate() {
            let before = tokens[..at].iter().rev().find(runs);
            let behind = tokens[at + 1..].iter().find(runs);
            let is_minute = matches!(before, Some(FormatToken::Run('h', _) | FormatToken::Elapsed('h')))
                || matches!(behind, Some(FormatToken::Run('s', _) | FormatToken::Elapsed('s')));
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
                FormatToken::Elapsed(letter) => DatePart::All(*letter),
                FormatToken::HalfDay => DatePart::HalfDay,
                FormatToken::Point
                    if matches!(before, Some(FormatToken::Run('s', _)))
                        && matches!(tokens.get(at + 1), Some(FormatToken::Digit('0'))) =>
                {
                    let digits = tokens[at + 1..].iter().take_while(|token| **token == FormatToken::Digit('0')).count();
                    fraction = Some(at + digits);
                    DatePart::Fraction(digits.min(3))
                }
                FormatToken::Point => DatePart::Text(".".to_owned()),
                FormatToken::Digit(digit) if fraction.is_none_or(|last| at > last) => DatePart::Text(digit.to_string()),
                FormatToken::Digit(_) | FormatToken::General | FormatToken::Unsupported => continue,
            });
        }
        let halves = tokens.contains(&FormatToken::HalfDay);
        Self { parts, ukrainian: language.trim_start_matches('0').eq_ignore_ascii_case(UKRAINIAN), halves }
    }

    /// What is shown of a time; a fraction of a second that is not shown is rounded into what is.
    pub(super) fn format_time(&self, time: &ExcelDateTime) -> String {
        let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
        let (months, days) = if self.ukrainian { (MONTHS_IN_UKRAINIAN, DAYS_IN_UKRAINIAN) } else { (MONTHS, DAYS) };
        let month_name = months[usize::from(month.clamp(1, 12)) - 1];
        let mut shown = String::new();
        for part in &self.parts {
            let _ = match *part {
                DatePart::Text(ref text) => write!(shown, "{text}"),
                DatePart::Year(1 | 2) => write!(shown, "{:02}", year % 100),
                DatePart::Year(_) => write!(shown, "{year:04}"),
                DatePart::Month(1) => write!(shown, "{month}"),
                DatePart::Month(2) => write!(shown, "{month:02}"),
                DatePart::Month(3) => write!(shown, "{}", first_letters(month_name, 3)),
                DatePart::Month(5) => write!(shown, "{}", first_letters(month_name, 1)),
                DatePart::Month(_) => write!(shown, "{month_name}"),
                DatePart::Day(1) => write!(shown, "{day}"),
                DatePart::Day(2) => write!(shown, "{day:02}"),
                DatePart::Day(3) => write!(shown, "{}", first_letters(days[find_weekday(year, month, day)], 3)),
                DatePart::Day(_) => write!(shown, "{}", days[find_weekday(year, month, day)]),
                DatePart::Hour(length) => {
                    let hour = if self.halves { (hour + 11) % 12 + 1 } else { hour };
                    write!(shown, "{hour:0length$}")
                }
                DatePart::Minute(length) => write!(shown, "{minute:0length$}"),
                DatePart::Second(length) => write!(shown, "{second:0length$}"),
                DatePart::Fraction(digits) => write!(shown, ".{}", &format!("{milli:03}")[..digits]),
                DatePart::HalfDay => write!(shown, "{}", if hour < 12 { "AM" } else { "PM" }),
                DatePart::All(letter) => write!(shown, "{}", count_elapsed(time, letter)),
            };
        }
        shown
    }
}

/// A time as it is shown where no format says more: a date by day, month and year, and a time that is not midnight.
pub(super) fn format_default(time: &ExcelDateTime) -> String {
    let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
    let clock =
        if second > 0 { format!("{hour:02}:{minute:02}:{second:02}") } else { format!("{hour:02}:{minute:02}") };
    if time.is_duration() {
        return format!("{}:{minute:02}:{second:02}", count_elapsed(time, 'h'));
    }
    match (time.as_f64() < 1.0, clock == "00:00") {
        (true, _) => clock,
        (false, true) => format!("{day:02}.{month:02}.{year:04}"),
        (false, false) => format!("{day:02}.{month:02}.{year:04} {clock}"),
    }
}

/// All hours, minutes or seconds of a duration.
fn count_elapsed(time: &ExcelDateTime, letter: char) -> f64 {
    let in_a_day = match letter {
        'h' => 24.0,
        'm' => 1440.0,
        _ => 86_400.0,
    };
    (time.as_f64() * in_a_day + 1e-6).floor().max(0.0)
}

fn first_letters(name: &str, count: usize) -> String {
    name.chars().take(count).collect()
}

/// The day of the week of a date, from Sunday.
fn find_weekday(year: u16, month: u8, day: u8) -> usize {
    let parts = (i16::try_from(year), i8::try_from(month), i8::try_from(day));
    let (Ok(year), Ok(month), Ok(day)) = parts else { return 0 };
    let date = jiff::civil::Date::new(year, month, day);
    date.map_or(0, |date| usize::try_from(date.weekday().to_sunday_zero_offset()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use calamine::{ExcelDateTime, ExcelDateTimeType};

    use super::super::number_format::NumberFormat;

    #[test]
    fn time_is_shown_in_its_format() {
        for (code, id, value, shown) in [
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
        ] {
            let time = ExcelDateTime::new(value, ExcelDateTimeType::DateTime, false);
            assert_eq!(NumberFormat::parse(code, id).format_time(&time), shown, "{code} of {value}");
        }
    }
}
