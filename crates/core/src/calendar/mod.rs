//! Schedules and sending windows: when a campaign is due in its time zone, and when its messages may be sent.
//!
//! This file defines schedules and their occurrences: the moments at which a campaign is due, across clock changes. The
//! code is pure: it reads no clock, file or ledger. The scheduler decides which occurrences fire.

mod due;
mod outlook;
mod timing;
mod window;
mod zones;

use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Timestamp, ToSpan as _, Zoned};

pub use due::{DueOccurrences, lateness};
pub use outlook::{
    DailyLimits, DailyUsage, MessageGroup, OccurrenceOutlook, Outlook, RunDeadline, RunLimits, ScheduledRun, SentByDay,
};
pub use timing::{Timing, TimingError, suggest_date_order};
pub use window::{DailyHours, Days, Window, Windows};
pub use zones::{InvertedZone, country_of_zone, zone_of_area_code, zone_of_country};

/// The earliest year of a date in a file of opt-outs or purchases. An earlier year is a year with two digits, as in
/// `05.03.26`.
pub const EARLIEST_YEAR: i16 = 1990;

/// A campaign's schedule, with the maximum delay of an occurrence.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The local times.
    pub timing: Timing,
    /// The time zone of the local times.
    pub zone: TimeZone,
    /// The last day with an occurrence, if there is one.
    pub ends: Option<Date>,
    /// The maximum delay with which an occurrence may begin.
    pub grace: Duration,
    /// The time that an occurrence waits for its list. `None` if the list must exist at the start.
    pub wait_for_file: Option<Duration>,
}

impl Schedule {
    /// The occurrences after a moment, earliest first.
    pub fn occurrences_after(&self, moment: Timestamp) -> Occurrences<'_> {
        Occurrences::new(self, moment)
    }

    /// The maximum delay of an occurrence. Only an occurrence that waits for its list can exceed `grace`.
    pub fn max_delay(&self) -> Duration {
        self.grace.max(self.wait_for_file.unwrap_or_default())
    }

    /// Whether an occurrence can still start within `grace` if the previous run lasts until `previous_ends`.
    pub fn can_start_after(&self, occurrence: &Occurrence, previous_ends: Timestamp) -> bool {
        occurrence.at.checked_add(self.grace).is_ok_and(|latest| previous_ends < latest)
    }

    /// Whether there is more than one occurrence after a moment.
    pub fn repeats_after(&self, moment: Timestamp) -> bool {
        self.occurrences_after(moment).nth(1).is_some()
    }

    /// The name of the zone in the IANA database.
    pub fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }
}

/// One firing of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The scheduled local time. A clock change can skip it.
    pub nominal: DateTime,
    /// The moment at which the occurrence fires.
    pub at: Timestamp,
    zone: TimeZone,
}

impl Occurrence {
    /// The moment as RFC 3339, with the offset of the zone.
    pub fn format_moment(&self) -> String {
        self.local_time().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }

    /// The occurrence at a local time. `None` if the time is outside the supported range.
    ///
    /// A local time that a clock change skips moves to the moment of the change. If a clock change repeats the local
    /// time, the first of the two moments is used.
    pub fn at_local_time(nominal: DateTime, zone: &TimeZone) -> Option<Self> {
        Some(Self { nominal, at: resolve_local_time(nominal, zone)?.0, zone: zone.clone() })
    }

    /// The local time at the moment of the occurrence.
    pub fn local_time(&self) -> Zoned {
        self.at.to_zoned(self.zone.clone())
    }

    /// The name of the zone in the IANA database.
    pub fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The scheduled local time: `2026-12-01 10:00`.
    pub fn format_nominal_time(&self) -> String {
        self.nominal.strftime("%Y-%m-%d %H:%M").to_string()
    }
}

/// The occurrences of a schedule after a moment, earliest first, each moment once.
#[derive(Debug)]
pub struct Occurrences<'s> {
    schedule: &'s Schedule,
    after: Timestamp,
    /// The first local time that has not been examined yet.
    from: Option<DateTime>,
}

impl<'s> Occurrences<'s> {
    pub(super) fn new(schedule: &'s Schedule, after: Timestamp) -> Self {
        // No earlier local time can resolve to a later moment. An ambiguous local time resolves to the first of its two
        // moments, and a skipped local time to the moment of the clock change.
        let from = Some(after.to_zoned(schedule.zone.clone()).datetime());
        Self { schedule, after, from }
    }

    /// The first scheduled local time at or after `from`, with its moment, and whether that local time exists.
    fn find_next_time(&self, from: DateTime) -> Option<(DateTime, Timestamp, bool)> {
        let nominal = self.schedule.timing.first_from(from)?;
        if self.schedule.ends.is_some_and(|last| nominal.date() > last) {
            return None;
        }
        let (at, exists) = resolve_local_time(nominal, &self.schedule.zone)?;
        Some((nominal, at, exists))
    }
}

impl Iterator for Occurrences<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        loop {
            let (mut nominal, at, mut exists) = {
                let from = self.from.take()?;
                self.find_next_time(from)?
            };
            self.from = next_minute(nominal);
            // All skipped local times map to the same moment as the first local time after the change.
            while let Some((later, later_at, later_exists)) =
                self.from.filter(|_| !exists).and_then(|from| self.find_next_time(from))
                && later_at == at
            {
                self.from = next_minute(later);
                if later_exists {
                    (nominal, exists) = (later, true);
                }
            }
            if at > self.after {
                return Some(Occurrence { nominal, at, zone: self.schedule.zone.clone() });
            }
        }
    }
}

fn next_minute(local: DateTime) -> Option<DateTime> {
    let minute: Span = 1.minute();
    local.checked_add(minute).ok()
}

/// The moment of a local time, and whether that local time exists. If a clock change skips the local time, returns the
/// moment of the change.
fn resolve_local_time(local: DateTime, zone: &TimeZone) -> Option<(Timestamp, bool)> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        AmbiguousOffset::Gap { before, .. } => {
            let beyond = before.to_timestamp(local).ok()?.checked_add(1.second()).ok()?;
            let change = zone.preceding(beyond).next()?;
            Some((change.timestamp(), false))
        }
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => Some((ambiguous.earlier().ok()?, true)),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use jiff::civil::date;
    use proptest::prelude::*;

    use super::*;

    fn schedule(zone: &str, timing: Timing) -> Schedule {
        Schedule {
            timing,
            zone: TimeZone::get(zone).unwrap(),
            ends: None,
            grace: Duration::from_secs(3600),
            wait_for_file: None,
        }
    }

    fn cron(zone: &str, line: &str) -> Schedule {
        schedule(zone, Timing::parse_cron(line).unwrap())
    }

    fn moment(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Lists the next occurrences, each with its scheduled and its actual local time.
    fn list_occurrences(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
        let describe = |occurrence: Occurrence| {
            format!("{} = {}", occurrence.format_nominal_time(), occurrence.local_time().strftime("%m-%d %H:%M %:z"))
        };
        schedule.occurrences_after(moment(after)).take(count).map(describe).collect()
    }

    #[test]
    fn skipped_local_time_fires_once_when_clocks_change() {
        // In Kyiv 03:00 becomes 04:00 on 29 March 2026.
        let daily = cron("Europe/Kyiv", "30 3 * * *");
        let days = [
            "2026-03-28 03:30 = 03-28 03:30 +02:00",
            "2026-03-29 03:30 = 03-29 04:00 +03:00",
            "2026-03-30 03:30 = 03-30 03:30 +03:00",
        ];
        assert_eq!(list_occurrences(&daily, "2026-03-27T12:00:00Z", 3), days);
        // Occurrences at the same moment are merged into one, with the local time that exists.
        let quarters = cron("Europe/Kyiv", "*/15 3,4 29 3 *");
        assert_eq!(
            list_occurrences(&quarters, "2026-01-01T00:00:00Z", 2),
            ["2026-03-29 04:00 = 03-29 04:00 +03:00", "2026-03-29 04:15 = 03-29 04:15 +03:00"]
        );
        let inside = cron("Europe/Kyiv", "10,20 3 29 3 *");
        assert_eq!(list_occurrences(&inside, "2026-01-01T00:00:00Z", 1), ["2026-03-29 03:10 = 03-29 04:00 +03:00"]);
        // Samoa skipped a whole day.
        let apia = cron("Pacific/Apia", "0 10 * * *");
        let days = [
            "2011-12-29 10:00 = 12-29 10:00 -10:00",
            "2011-12-30 10:00 = 12-31 00:00 +14:00",
            "2011-12-31 10:00 = 12-31 10:00 +14:00",
        ];
        assert_eq!(list_occurrences(&apia, "2011-12-29T00:00:00Z", 3), days);
    }

    #[test]
    fn repeated_local_time_fires_only_the_first_time() {
        // In Kyiv, 04:00 becomes 03:00 on 25 October 2026.
        let daily = cron("Europe/Kyiv", "30 3 * * *");
        let days = ["2026-10-25 03:30 = 10-25 03:30 +03:00", "2026-10-26 03:30 = 10-26 03:30 +02:00"];
        assert_eq!(list_occurrences(&daily, "2026-10-24T12:00:00Z", 2), days);
        assert_eq!(list_occurrences(&daily, "2026-10-25T01:15:00Z", 1), days[1..], "a start within the repeated hour");
        let hourly = cron("Europe/Kyiv", "30 * * * *");
        let hours = ["2026-10-25 03:30 = 10-25 03:30 +03:00", "2026-10-25 04:30 = 10-25 04:30 +02:00"];
        assert_eq!(list_occurrences(&hourly, "2026-10-25T00:00:00Z", 2), hours);
        // On Lord Howe Island, clocks go back by half an hour.
        let lord_howe = cron("Australia/Lord_Howe", "45 1 * * *");
        let days = ["2026-04-05 01:45 = 04-05 01:45 +11:00", "2026-04-06 01:45 = 04-06 01:45 +10:30"];
        assert_eq!(list_occurrences(&lord_howe, "2026-04-04T12:00:00Z", 2), days);
    }

    #[test]
    fn every_expression_matches_its_cron_equivalent() {
        for (words, line) in [
            ("Mon 10:00", "0 10 * * MON"),
            ("monday 10:00", "0 10 * * 1"),
            ("Mondays at 10:00", "0 10 * * 1"),
            ("Mon, Thu 10:00", "0 10 * * MON,THU"),
            ("Mon-Fri 7:05", "5 7 * * 1-5"),
            ("Fri-Mon 7:05", "5 7 * * FRI,SAT,SUN,MON"),
            ("day 9:30", "30 9 * * *"),
            ("daily 09:30", "30 9 * * *"),
            ("weekdays 18:00", "0 18 * * MON-FRI"),
            ("weekend 12:00", "0 12 * * 6,0"),
            ("1st 10:00", "0 10 1 * *"),
            ("1st, 15th 10:00", "0 10 1,15 * *"),
            ("31st 10:00", "0 10 31 1,3,5,7,8,10,12 *"),
            ("last day 18:00", "0 18 L * *"),
        ] {
            let (from_words, from_cron) =
                (schedule("Europe/Kyiv", Timing::parse_every(words).unwrap()), cron("Europe/Kyiv", line));
            let year = |schedule: &Schedule| {
                schedule.occurrences_after(moment("2026-01-01T00:00:00Z")).take(60).collect::<Vec<_>>()
            };
            assert_eq!(year(&from_words), year(&from_cron), "{words}");
        }
    }

    #[test]
    fn single_time_fires_once_and_last_day_is_inclusive() {
        let once = schedule("Europe/Kyiv", Timing::parse_at("2026-12-01 10:00").unwrap());
        assert_eq!(list_occurrences(&once, "2026-11-01T00:00:00Z", 5), ["2026-12-01 10:00 = 12-01 10:00 +02:00"]);
        assert!(list_occurrences(&once, "2026-12-01T08:00:00Z", 5).is_empty(), "the moment itself is excluded");
        assert!(!once.repeats_after(moment("2026-11-01T00:00:00Z")));
        let ending = Schedule { ends: Some(date(2026, 12, 2)), ..cron("Europe/Kyiv", "0 10 * * *") };
        assert_eq!(list_occurrences(&ending, "2026-12-01T00:00:00Z", 5).len(), 2, "the last day is included");
    }

    fn any_zone() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "Europe/Kyiv",
            "Europe/Berlin",
            "America/New_York",
            "Australia/Lord_Howe",
            "Pacific/Apia",
            "Africa/Casablanca",
            "Asia/Kathmandu",
            "America/St_Johns",
            "UTC",
        ])
    }

    fn any_cron_line() -> impl Strategy<Value = String> {
        prop::sample::select(vec!["*", "30", "*/15", "0", "7,59"]).prop_flat_map(|minute| {
            prop::sample::select(vec!["*", "2", "3", "0", "1-4"]).prop_map(move |hour| format!("{minute} {hour} * * *"))
        })
    }

    proptest! {
        #[test]
        fn occurrences_are_ordered_and_unique_from_any_start(
            zone in any_zone(), line in any_cron_line(),
            start in 1_262_304_000_i64..2_000_000_000, steps in 1_usize..40,
        ) {
            let (schedule, start) = (cron(zone, &line), Timestamp::from_second(start).unwrap());
            let occurrences: Vec<Occurrence> = schedule.occurrences_after(start).take(steps).collect();
            let is_ordered = |pair: &[Occurrence]| pair[0].at < pair[1].at && pair[0].nominal < pair[1].nominal;
            prop_assert!(occurrences.windows(2).all(is_ordered));
            prop_assert!(occurrences.iter().all(|occurrence| occurrence.at > start));
            // Asking again after each occurrence returns the same occurrences.
            let mut after = start;
            for occurrence in &occurrences {
                let next = schedule.occurrences_after(after).next();
                prop_assert_eq!(next.as_ref(), Some(occurrence));
                prop_assert_eq!(&Occurrence::at_local_time(occurrence.nominal, &schedule.zone).unwrap(), occurrence);
                after = occurrence.at;
            }
        }

        #[test]
        fn occurrence_fires_when_clocks_first_reach_its_time(
            zone in any_zone(), second in 1_262_304_000_i64..2_000_000_000,
        ) {
            let zone = TimeZone::get(zone).unwrap();
            let nominal = Timestamp::from_second(second - second % 60).unwrap().to_zoned(TimeZone::UTC).datetime();
            let occurrence = Occurrence::at_local_time(nominal, &zone).unwrap();
            let local = |at: Timestamp| -> DateTime { at.to_zoned(zone.clone()).datetime() };
            prop_assert!(local(occurrence.at) >= nominal);
            for hours in 0..26 {
                let before = occurrence.at - SignedDuration::from_hours(hours) - SignedDuration::from_secs(1);
                prop_assert!(local(before) < nominal, "{} before", hours);
            }
        }
    }
}
