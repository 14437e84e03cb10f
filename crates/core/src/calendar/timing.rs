//! The local times of a schedule, in the forms `at`, `every` and `cron`.

use std::borrow::Cow;
use std::fmt;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime, Time, date};

/// Scheduled local times, without a time zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing(TimingKind);

#[derive(Clone, Debug, PartialEq)]
enum TimingKind {
    /// A single time.
    Once(DateTime),
    /// Recurring times: a cron pattern with five fields.
    Recurring(Box<Cron>),
}

/// The reason why a text is not a valid time, with help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimingError {
    /// The reason, phrased to follow the key and its value.
    pub why: String,
    /// The help text.
    pub help: Cow<'static, str>,
}

const AT_HELP: &str = "write a date and a time, as in `2026-12-01 10:00`";
const CRON_HELP: &str = "write five fields: minute, hour, day of the month, month and day of the week; for example, `0 \
    10 * * MON` is every Monday at 10:00";

impl Timing {
    /// Parses a single local time: `2026-12-01 10:00`.
    ///
    /// # Errors
    /// If the text is not a date and time, or contains seconds or a UTC offset.
    pub fn parse_at(text: &str) -> Result<Self, TimingError> {
        let invalid = |reason: &str| TimingError { why: reason.to_owned(), help: AT_HELP.into() };
        let formats = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"];
        let parsed = formats.iter().find_map(|format| DateTime::strptime(format, text).ok());
        match parsed {
            Some(at) => Ok(Self(TimingKind::Once(at))),
            None if jiff::civil::Date::strptime("%Y-%m-%d", text).is_ok() => Err(invalid("has no time")),
            None if text.parse::<jiff::Timestamp>().is_ok() => {
                Err(invalid("has a UTC offset, but times in a campaign are always in its `timezone`"))
            }
            None => Err(match suggest_date_order(text) {
                Some(help) => TimingError { why: "has a date in the wrong format".to_owned(), help: help.into() },
                None => invalid("is not a valid date and time"),
            }),
        }
    }

    /// Parses times in words: `Mon 10:00`, `day 9:30`, `weekdays 18:00`, `1st 10:00`.
    ///
    /// # Errors
    /// If the days or the time are unknown.
    pub fn parse_every(text: &str) -> Result<Self, TimingError> {
        let invalid = |reason| TimingError { why: reason, help: EVERY_HELP.into() };
        let pattern = translate_every(text).map_err(invalid)?;
        Self::parse_pattern(&pattern).map_err(invalid)
    }

    /// Parses a cron expression with five fields.
    ///
    /// # Errors
    /// If the text does not have exactly five fields, a field is not valid, or no date ever matches.
    pub fn parse_cron(text: &str) -> Result<Self, TimingError> {
        let invalid = |reason: String| TimingError { why: reason, help: CRON_HELP.into() };
        let has_value = |field: &str| field.split(',').any(|value| !value.is_empty());
        match text.split_whitespace().count() {
            5 if text.split_whitespace().all(has_value) => Self::parse_pattern(text).map_err(invalid),
            // The parser would treat a field of only commas as empty and search for a date until the year 5000.
            5 => Err(invalid("has a field that contains only commas".to_owned())),
            1 => Err(invalid("is not a cron expression with five fields".to_owned())),
            fields => Err(invalid(format!("has {fields} fields, but needs five"))),
        }
    }

    fn parse_pattern(text: &str) -> Result<Self, String> {
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(text).map_err(|error| format!("is not valid: {error}"))?;
        // Starting in a leap year covers 29 February on every day of the week.
        match cron.find_next_occurrence(&date(2000, 1, 1).at(0, 0, 0, 0), true) {
            Ok(_) => Ok(Self(TimingKind::Recurring(Box::new(cron)))),
            Err(_) => Err("specifies a day that does not exist in any year".to_owned()),
        }
    }

    /// The first time at or after `from`.
    pub(super) fn first_from(&self, from: DateTime) -> Option<DateTime> {
        match &self.0 {
            TimingKind::Once(at) => Some(*at).filter(|at| *at >= from),
            TimingKind::Recurring(cron) => {
                // Cron works in whole minutes, so a minute that has already started is skipped.
                let minute_start = from.date().at(from.hour(), from.minute(), 0, 0);
                let first = if minute_start < from { minute_start.checked_add(1.minute()).ok()? } else { minute_start };
                cron.find_next_occurrence(&first, true).ok()
            }
        }
    }

    /// The scheduled time, if the timing has only one.
    pub fn single_time(&self) -> Option<DateTime> {
        match self.0 {
            TimingKind::Once(at) => Some(at),
            TimingKind::Recurring(_) => None,
        }
    }
}

impl fmt::Display for TimingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// The help for an invalid `every` expression.
const EVERY_HELP: &str = "write days and a time, as in `Mon 10:00`, `Mon-Fri 10:00`, `day 9:30`, `weekdays \
                               18:00`, `weekend 12:00`, `1st 10:00` or `last day 18:00`; put several days in quotes, \
                               as in `\"Mon, Thu 10:00\"` or `\"1st, 15th 10:00\"`";

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Translates an `every` expression into a cron pattern: `weekdays 18:00` becomes `0 18 * * MON-FRI`.
fn translate_every(text: &str) -> Result<String, String> {
    let lower = text.trim().to_lowercase();
    let (days, time) = lower.rsplit_once(char::is_whitespace).ok_or("needs both days and a time")?;
    let days = days.trim().trim_end_matches(" at").trim();
    let time = Time::strptime("%H:%M", time).map_err(|_| format!("ends with `{time}`, which is not a valid time"))?;
    Ok(format!("{} {} {}", time.minute(), time.hour(), parse_day_fields(days)?))
}

/// Parses days into the cron fields for day of the month, month and day of the week.
fn parse_day_fields(days: &str) -> Result<String, String> {
    match days {
        "day" | "days" | "daily" => return Ok("* * *".to_owned()),
        "weekday" | "weekdays" => return Ok("* * MON-FRI".to_owned()),
        "weekend" | "weekends" => return Ok("* * SAT,SUN".to_owned()),
        "last" | "last day" => return Ok("L * *".to_owned()),
        _ => {}
    }
    let items: Vec<&str> = days.split(',').map(str::trim).collect();
    let weekdays: Option<Vec<String>> = items.iter().map(|item| parse_weekdays(item)).collect();
    if let Some(weekdays) = weekdays {
        return Ok(format!("* * {}", weekdays.join(",")));
    }
    let month_days: Option<Vec<String>> = items.iter().map(|item| parse_day_of_month(item)).collect();
    match month_days {
        Some(month_days) => Ok(format!("{} * *", month_days.join(","))),
        None => Err(format!("contains unknown days: `{days}`")),
    }
}

/// Converts a day of the week or a range of days to cron syntax.
fn parse_weekdays(item: &str) -> Option<String> {
    match item.split_once('-') {
        // Cron does not support ranges across the end of the week.
        Some((first, last)) => {
            let (first, last) = (parse_weekday(first.trim())?, parse_weekday(last.trim())?);
            let days = (0..7).map(|step| (first + step) % 7).take((last + 7 - first) % 7 + 1);
            Some(days.map(cron_weekday).collect::<Vec<_>>().join(","))
        }
        None => parse_weekday(item).map(cron_weekday),
    }
}

/// The index of a day of the week, from at least three letters of its name. Monday is 0.
fn parse_weekday(name: &str) -> Option<usize> {
    let singular = name.strip_suffix('s').filter(|name| name.ends_with("day")).unwrap_or(name);
    WEEKDAYS.iter().position(|day| singular.len() >= 3 && day.starts_with(singular))
}

fn cron_weekday(day: usize) -> String {
    WEEKDAYS[day][..3].to_uppercase()
}

/// Parses a day of the month, such as `1st`, `2nd` or `15th`.
fn parse_day_of_month(item: &str) -> Option<String> {
    let digits = item.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    let number: u8 = digits.parse().ok()?;
    let ending = match (number % 10, number) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    let fits = (1..=31).contains(&number) && !digits.starts_with('+') && item == format!("{number}{ending}");
    fits.then(|| number.to_string())
}

/// Help for a date in another order, such as `05.12.2031 10:00` or `12/5/2031`.
///
/// In a date with slashes, the month can come first. If both readings are possible, the help shows both.
pub fn suggest_date_order(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let (date, clock) = (words.next()?, words.next());
    if words.next().is_some() {
        return None;
    }
    // Times in campaign files have no seconds.
    let time = match clock {
        Some(clock) => {
            let without_seconds = clock.match_indices(':').nth(1).map_or(clock, |(colon, _)| &clock[..colon]);
            Some(Time::strptime("%H:%M", without_seconds).ok()?)
        }
        None => None,
    };
    let separator = date.chars().find(|c| !c.is_ascii_digit()).filter(|c| "./-".contains(*c))?;
    let parts: Vec<&str> = date.split(separator).collect();
    let [first, second, third] = parts.as_slice() else { return None };
    let parse_number = |part: &str| part.parse::<i8>().ok();
    let parse_date = |year: &str, month: &str, day: &str| {
        (year.len() == 4).then_some(())?;
        Date::new(year.parse().ok()?, parse_number(month)?, parse_number(day)?).ok()
    };
    let format_date = |date: Date| match time {
        Some(time) => format!("`{date} {}`", time.strftime("%H:%M")),
        None => format!("`{date}`"),
    };
    let by_day = parse_date(third, second, first);
    let by_month = parse_date(third, first, second).filter(|date| separator != '.' && Some(*date) != by_day);
    let by_year = parse_date(first, second, third).filter(|_| separator != '-');
    match (by_day.or(by_year), by_month) {
        (Some(by_day), Some(by_month)) => Some(format!(
            "write {} for {}, or {} for {}; the order is year, month, day",
            format_date(by_day),
            by_day.strftime("%-d %B"),
            format_date(by_month),
            by_month.strftime("%-d %B"),
        )),
        (Some(date), None) | (None, Some(date)) => {
            Some(format!("write {}; the order is year, month, day", format_date(date)))
        }
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn misordered_date_is_shown_in_the_expected_order() {
        let order = "; the order is year, month, day";
        for (text, expected) in [
            ("05.12.2031 10:00", "write `2031-12-05 10:00`"),
            ("5.12.2031 9:05:00", "write `2031-12-05 09:05`"),
            ("25.12.2031", "write `2031-12-25`"),
            ("25/12/2031", "write `2031-12-25`"),
            ("12/25/2031 20:00", "write `2031-12-25 20:00`"),
            ("2031/12/25 20:00", "write `2031-12-25 20:00`"),
            ("7/12/2031 20:00", "write `2031-12-07 20:00` for 7 December, or `2031-07-12 20:00` for 12 July"),
            ("07-12-2031", "write `2031-12-07` for 7 December, or `2031-07-12` for 12 July"),
            ("7/7/2031", "write `2031-07-07`"),
        ] {
            assert_eq!(suggest_date_order(text), Some(format!("{expected}{order}")), "{text}");
        }
        for other in [
            "",
            "2031-12-25",
            "2031-02-30",
            "tomorrow",
            "10:00",
            "32.12.2031",
            "1.13.2031",
            "5.12.31",
            "5.12.2031 25:00",
            "1.2.3.2031",
            "5.12.2031 10:00 EET",
            "5.12/2031",
            "٥.12.2031",
        ] {
            assert_eq!(suggest_date_order(other), None, "{other}");
        }
    }

    #[test]
    fn invalid_time_is_rejected_with_help() {
        for words in [
            "",
            "10:00",
            "Mon",
            "Mon 25:00",
            "Mon 10",
            "Mo 10:00",
            "Moonday 10:00",
            "1nd 10:00",
            "32nd 10:00",
            "0th 10:00",
            "Mon,1st 10:00",
            "Mon 10:00 Europe/Kyiv",
            "every Mon 10:00",
        ] {
            assert!(Timing::parse_every(words).unwrap_err().help.contains("`weekdays 18:00`"), "{words}");
        }
        for line in [
            "",
            "@daily",
            "10:00",
            "0 10 * *",
            "0 0 10 * * *",
            "60 * * * *",
            "0 24 * * *",
            "0 0 30 2 *",
            "0 0 31 4 *",
            ", * 10 * 6",
            "0 10 * * ,,",
            "a b c d e",
        ] {
            assert!(Timing::parse_cron(line).unwrap_err().help.contains("five fields"), "{line}");
        }
        for (text, reason) in [
            ("2026-12-01", "no time"),
            ("2026-02-30 10:00", "is not a valid date"),
            ("2026-12-01 24:30", "is not a valid date"),
            ("2026-12-01T10:00:00+02:00", "has a UTC offset"),
            ("tomorrow", "is not a valid date"),
        ] {
            assert!(Timing::parse_at(text).unwrap_err().why.contains(reason), "{text}");
        }
        assert_eq!(Timing::parse_at("2026-12-01 9:05"), Timing::parse_at("2026-12-01T09:05"));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "[a-z0-9:, *#L/@-]{0,24}", any: String) {
            for text in [text, any] {
                let _ = (Timing::parse_at(&text), Timing::parse_every(&text), Timing::parse_cron(&text));
            }
        }
    }
}
