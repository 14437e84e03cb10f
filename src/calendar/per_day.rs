//! How many messages leave on a day.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};

/// How many messages may leave on a day of a time zone: the first count on the first day on which something leaves, and so
/// on; the last one holds from then on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DailyLimits {
    counts: Vec<u32>,
    #[serde(with = "jiff::fmt::serde::tz::required")]
    zone: TimeZone,
}

impl DailyLimits {
    /// These counts on the days of this zone; nothing where there are none.
    #[must_use]
    pub fn new(counts: Vec<u32>, zone: TimeZone) -> Option<Self> {
        (!counts.is_empty()).then_some(Self { counts, zone })
    }

    /// How many may leave on a day after so many days on which something left.
    #[must_use]
    pub fn limit(&self, days_before: usize) -> u64 {
        let count = self.counts.get(days_before).or(self.counts.last());
        count.copied().unwrap_or_default().into()
    }

    /// The day that a moment is on.
    #[must_use]
    pub fn local_date(&self, moment: Timestamp) -> Date {
        moment.to_zoned(self.zone.clone()).date()
    }

    /// When the day after a moment begins, on its clocks; in some zones and years not at midnight.
    #[must_use]
    pub fn next_day_start(&self, moment: Timestamp) -> Zoned {
        let next = self.local_date(moment).tomorrow().and_then(|day| day.to_zoned(self.zone.clone()));
        next.unwrap_or_else(|_| Timestamp::MAX.to_zoned(self.zone.clone()))
    }

    /// On how many days so many messages leave, where none have left yet.
    #[must_use]
    pub fn count_days(&self, messages: u64) -> u64 {
        let (mut left, mut days) = (messages, 0);
        for count in &self.counts {
            if left == 0 {
                return days;
            }
            left = left.saturating_sub(u64::from(*count));
            days += 1;
        }
        days + left.div_ceil(self.limit(usize::MAX).max(1))
    }

    /// The name of its zone, as the database has it.
    #[must_use]
    pub fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per_day(counts: &[u32], zone: &str) -> DailyLimits {
        DailyLimits::new(counts.to_vec(), TimeZone::get(zone).unwrap()).unwrap()
    }

    #[test]
    fn daily_limit_grows_and_its_last_count_stays() {
        let growing = per_day(&[1_000, 3_000, 5_000], "Europe/Kyiv");
        assert_eq!([0, 1, 2, 3, 99].map(|days| growing.limit(days)), [1_000, 3_000, 5_000, 5_000, 5_000]);
        assert_eq!(
            [0, 1, 1_000, 1_001, 9_000, 9_001, 19_000].map(|messages| growing.count_days(messages)),
            [0, 1, 1, 2, 3, 4, 5]
        );
        assert_eq!(DailyLimits::new(Vec::new(), TimeZone::UTC), None);
    }

    #[test]
    fn next_day_starts_by_the_clocks_of_the_zone() {
        for (zone, moment, day, next) in [
            ("Europe/Kyiv", "2026-11-23T21:59:59Z", "2026-11-23", "2026-11-23T22:00:00Z"),
            ("Europe/Kyiv", "2026-11-23T22:00:00Z", "2026-11-24", "2026-11-24T22:00:00Z"),
            ("UTC", "2026-11-23T22:00:00Z", "2026-11-23", "2026-11-24T00:00:00Z"),
            // A day of 25 hours, and one that begins at one o'clock.
            ("Europe/Kyiv", "2026-10-25T00:00:00Z", "2026-10-25", "2026-10-25T22:00:00Z"),
            ("America/Asuncion", "2023-09-30T12:00:00Z", "2023-09-30", "2023-10-01T04:00:00Z"),
        ] {
            let (days, moment): (_, Timestamp) = (per_day(&[1], zone), moment.parse().unwrap());
            assert_eq!(
                (
                    days.local_date(moment).to_string().as_str(),
                    days.next_day_start(moment).timestamp().to_string().as_str()
                ),
                (day, next),
                "{zone}"
            );
        }
    }
}
