//! When a campaign is due: schedules as people write them, and their occurrences in a time zone; and when its messages may
//! leave: windows.
//!
//! Pure, and it uses nothing of ours: no clock, no file, no ledger. What fires, and what is skipped, is decided elsewhere.

mod capacity;
mod country;
mod every;
mod inverted;
mod misordered;
mod occurrences;
mod outlook;
mod per_day;
#[cfg(test)]
mod tests;
mod timing;
mod window;

pub use capacity::Capacity;
pub use country::zone_of_country;
pub use inverted::InvertedZone;
pub use misordered::suggest_date_order;
pub use occurrences::{Occurrence, Occurrences};
pub use outlook::{MessageGroup, OccurrenceOutlook, Outlook, RunDeadline, RunLimits, ScheduledRun};
pub use per_day::DailyLimits;
pub use timing::{Timing, TimingError};
pub use window::{DailyHours, Days, Window, Windows};

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// When a campaign is due, and how long each time waits for what it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The local times.
    pub timing: Timing,
    /// The zone whose clocks they are read on.
    pub zone: TimeZone,
    /// The last day of an occurrence, if there is one.
    pub ends: Option<Date>,
    /// How late an occurrence may begin.
    pub grace: Duration,
    /// How long an occurrence waits for its list; without it the list has to be there.
    pub wait_for_file: Option<Duration>,
}

impl Schedule {
    /// The occurrences after a moment, the first first.
    #[must_use]
    pub fn occurrences_after(&self, moment: Timestamp) -> Occurrences<'_> {
        Occurrences::new(self, moment)
    }

    /// How long after its moment an occurrence may begin at the latest: that late only one whose list came late.
    #[must_use]
    pub fn latest_delay(&self) -> Duration {
        self.grace.max(self.wait_for_file.unwrap_or_default())
    }

    /// Whether there is more than one occurrence after a moment.
    #[must_use]
    pub fn repeats_after(&self, moment: Timestamp) -> bool {
        self.occurrences_after(moment).nth(1).is_some()
    }

    /// The name of its zone, as the database has it.
    #[must_use]
    pub fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }
}
