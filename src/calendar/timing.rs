//! The local times of a schedule, as they are written: `at`, `every`, `cron`.

use std::borrow::Cow;
use std::fmt;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::ToSpan as _;
use jiff::civil::{DateTime, date};

use super::every;
use super::misordered::help_for_misordered;

/// Local times, on whatever clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// Once.
    Once(DateTime),
    /// Again and again; the pattern has five fields.
    Again(Box<Cron>),
}

/// Why a text says no local times, and what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTiming {
    /// What is wrong, to stand behind the key and its value.
    pub why: String,
    /// What to write.
    pub help: Cow<'static, str>,
}

const AT: &str = "write a date and a time, as in `2026-12-01 10:00`";
const CRON: &str = "write five fields: minute, hour, day of the month, month and day of the week; for example, `0 \
    10 * * MON` is every Monday at 10:00";

impl Timing {
    /// One local time: `2026-12-01 10:00`.
    ///
    /// # Errors
    /// When it is none, or has seconds or a zone of its own.
    pub fn at(text: &str) -> Result<Self, NoTiming> {
        let no = |why: &str| NoTiming { why: why.to_owned(), help: AT.into() };
        let formats = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"];
        let read = formats.iter().find_map(|format| DateTime::strptime(format, text).ok());
        match read {
            Some(at) => Ok(Self(Kind::Once(at))),
            None if jiff::civil::Date::strptime("%Y-%m-%d", text).is_ok() => Err(no("has no time")),
            None if text.parse::<jiff::Timestamp>().is_ok() => {
                Err(no("has a UTC offset, but times in a campaign are always in its `timezone`"))
            }
            None => Err(match help_for_misordered(text) {
                Some(help) => {
                    NoTiming { why: "is not a date and time in the expected order".to_owned(), help: help.into() }
                }
                None => no("is not a valid date and time"),
            }),
        }
    }

    /// Times in words: `Mon 10:00`, `day 9:30`, `weekdays 18:00`, `1st 10:00`.
    ///
    /// # Errors
    /// When they are no such words.
    pub fn every(text: &str) -> Result<Self, NoTiming> {
        let no = |why| NoTiming { why, help: every::HELP.into() };
        let pattern = every::pattern(text).map_err(no)?;
        Self::pattern(&pattern).map_err(no)
    }

    /// The times of a cron line with five fields.
    ///
    /// # Errors
    /// When it has other fields, or no moment ever fits.
    pub fn cron(text: &str) -> Result<Self, NoTiming> {
        let no = |why: String| NoTiming { why, help: CRON.into() };
        match text.split_whitespace().count() {
            5 => Self::pattern(text).map_err(no),
            1 => Err(no("is not a cron expression with five fields".to_owned())),
            fields => Err(no(format!("has {fields} fields, but needs five"))),
        }
    }

    fn pattern(text: &str) -> Result<Self, String> {
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(text).map_err(|error| format!("is not valid: {error}"))?;
        // A leap year in it, and the days of the week that its last day falls on.
        match cron.find_next_occurrence(&date(2000, 1, 1).at(0, 0, 0, 0), true) {
            Ok(_) => Ok(Self(Kind::Again(Box::new(cron)))),
            Err(_) => Err("specifies a day that does not exist in any year".to_owned()),
        }
    }

    /// The first of its times that is not before this one.
    pub(super) fn from(&self, from: DateTime) -> Option<DateTime> {
        match &self.0 {
            Kind::Once(at) => Some(*at).filter(|at| *at >= from),
            Kind::Again(cron) => {
                // Whole minutes: what has begun is over.
                let whole = from.date().at(from.hour(), from.minute(), 0, 0);
                let first = if whole < from { whole.checked_add(1.minute()).ok()? } else { whole };
                cron.find_next_occurrence(&first, true).ok()
            }
        }
    }

    /// The time, where there is only one.
    #[must_use]
    pub fn once(&self) -> Option<DateTime> {
        match self.0 {
            Kind::Once(at) => Some(at),
            Kind::Again(_) => None,
        }
    }
}

impl fmt::Display for NoTiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}
