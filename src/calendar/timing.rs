//! The local times of a schedule, as they are written: `at`, `every`, `cron`.

use std::borrow::Cow;
use std::fmt;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::ToSpan as _;
use jiff::civil::{DateTime, date};

use super::every;
use super::misordered::suggest_date_order;

/// Local times, on whatever clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing(TimingKind);

#[derive(Clone, Debug, PartialEq)]
enum TimingKind {
    /// Once.
    Once(DateTime),
    /// Again and again; the pattern has five fields.
    Recurring(Box<Cron>),
}

/// Why a text says no local times, and what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimingError {
    /// What is wrong, to stand behind the key and its value.
    pub why: String,
    /// What to write.
    pub help: Cow<'static, str>,
}

const AT_HELP: &str = "write a date and a time, as in `2026-12-01 10:00`";
const CRON_HELP: &str = "write five fields: minute, hour, day of the month, month and day of the week; for example, `0 \
    10 * * MON` is every Monday at 10:00";

impl Timing {
    /// One local time: `2026-12-01 10:00`.
    ///
    /// # Errors
    /// When it is none, or has seconds or a zone of its own.
    pub fn parse_at(text: &str) -> Result<Self, TimingError> {
        let no = |why: &str| TimingError { why: why.to_owned(), help: AT_HELP.into() };
        let formats = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"];
        let read = formats.iter().find_map(|format| DateTime::strptime(format, text).ok());
        match read {
            Some(at) => Ok(Self(TimingKind::Once(at))),
            None if jiff::civil::Date::strptime("%Y-%m-%d", text).is_ok() => Err(no("has no time")),
            None if text.parse::<jiff::Timestamp>().is_ok() => {
                Err(no("has a UTC offset, but times in a campaign are always in its `timezone`"))
            }
            None => Err(match suggest_date_order(text) {
                Some(help) => {
                    TimingError { why: "is not a date and time in the expected order".to_owned(), help: help.into() }
                }
                None => no("is not a valid date and time"),
            }),
        }
    }

    /// Times in words: `Mon 10:00`, `day 9:30`, `weekdays 18:00`, `1st 10:00`.
    ///
    /// # Errors
    /// When they are no such words.
    pub fn parse_every(text: &str) -> Result<Self, TimingError> {
        let no = |why| TimingError { why, help: every::HELP.into() };
        let pattern = every::parse_pattern(text).map_err(no)?;
        Self::parse_pattern(&pattern).map_err(no)
    }

    /// The times of a cron line with five fields.
    ///
    /// # Errors
    /// When it has other fields, or no moment ever fits.
    pub fn parse_cron(text: &str) -> Result<Self, TimingError> {
        let no = |why: String| TimingError { why, help: CRON_HELP.into() };
        match text.split_whitespace().count() {
            5 => Self::parse_pattern(text).map_err(no),
            1 => Err(no("is not a cron expression with five fields".to_owned())),
            fields => Err(no(format!("has {fields} fields, but needs five"))),
        }
    }

    fn parse_pattern(text: &str) -> Result<Self, String> {
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(text).map_err(|error| format!("is not valid: {error}"))?;
        // A leap year in it, and the days of the week that its last day falls on.
        match cron.find_next_occurrence(&date(2000, 1, 1).at(0, 0, 0, 0), true) {
            Ok(_) => Ok(Self(TimingKind::Recurring(Box::new(cron)))),
            Err(_) => Err("specifies a day that does not exist in any year".to_owned()),
        }
    }

    /// The first of its times that is not before this one.
    pub(super) fn first_from(&self, from: DateTime) -> Option<DateTime> {
        match &self.0 {
            TimingKind::Once(at) => Some(*at).filter(|at| *at >= from),
            TimingKind::Recurring(cron) => {
                // Whole minutes: what has begun is over.
                let whole = from.date().at(from.hour(), from.minute(), 0, 0);
                let first = if whole < from { whole.checked_add(1.minute()).ok()? } else { whole };
                cron.find_next_occurrence(&first, true).ok()
            }
        }
    }

    /// The time, where there is only one.
    #[must_use]
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
