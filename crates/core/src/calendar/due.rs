//! Due and missed occurrences of a schedule.

use std::time::Duration;

use jiff::Timestamp;

use super::{Occurrence, Schedule};

/// The due occurrences of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueOccurrences {
    /// The occurrence that must start now.
    pub current: Option<Occurrence>,
    /// The last missed occurrence.
    pub missed: Option<Occurrence>,
    /// The number of occurrences that were missed before `missed`.
    pub missed_before: usize,
    /// The time of the next occurrence.
    pub next: Option<Timestamp>,
}

impl Schedule {
    /// Finds the due and missed occurrences after `handled`. An occurrence is missed if it is later than the
    /// maximum delay.
    ///
    /// If there are several, only the last occurrence is due, unless it is too late, and all earlier occurrences are
    /// missed. Therefore, a restart never sends a flood of old messages.
    pub fn find_due(&self, handled: Timestamp, now: Timestamp) -> DueOccurrences {
        let mut due = DueOccurrences::default();
        let mut last: Option<Occurrence> = None;
        for occurrence in self.occurrences_after(handled) {
            if occurrence.at > now {
                due.next = Some(occurrence.at);
                break;
            }
            if let Some(earlier) = last.replace(occurrence) {
                due.missed_before += usize::from(due.missed.is_some());
                due.missed = Some(earlier);
            }
        }
        match last {
            Some(last) if lateness(last.at, now) <= self.max_delay() => due.current = Some(last),
            Some(last) => {
                due.missed_before += usize::from(due.missed.is_some());
                due.missed = Some(last);
            }
            None => {}
        }
        due
    }
}

/// Returns the time from `due` to `now`, or zero if `due` is in the future.
pub fn lateness(due: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(due)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use crate::calendar::*;

    fn hourly() -> Schedule {
        let (timing, zone) = (Timing::parse_cron("0 * * * *").unwrap(), TimeZone::get("Europe/Kyiv").unwrap());
        Schedule { timing, zone, ends: None, grace: Duration::from_secs(1800), wait_for_file: None }
    }

    fn timestamp(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn latest_of_several_occurrences_is_due_unless_too_late() {
        let summarize_due = |handled, now| {
            let due = hourly().find_due(timestamp(handled), timestamp(now));
            let name = |occurrence: Option<Occurrence>| occurrence.map(|occurrence| occurrence.at.to_string());
            (name(due.current), name(due.missed), due.missed_before, due.next.map(|next| next.to_string()))
        };
        let at = |hour: u8| Some(format!("2026-12-01T{hour:02}:00:00Z"));
        assert_eq!(summarize_due("2026-12-01T08:00:00Z", "2026-12-01T08:59:59Z"), (None, None, 0, at(9)));
        assert_eq!(summarize_due("2026-12-01T08:00:00Z", "2026-12-01T09:00:00Z"), (at(9), None, 0, at(10)));
        assert_eq!(summarize_due("2026-12-01T08:00:00Z", "2026-12-01T09:30:00Z"), (at(9), None, 0, at(10)));
        assert_eq!(summarize_due("2026-12-01T08:00:00Z", "2026-12-01T09:30:01Z"), (None, at(9), 0, at(10)));
        assert_eq!(summarize_due("2026-12-01T04:00:00Z", "2026-12-01T09:00:00Z"), (at(9), at(8), 3, at(10)));
        assert_eq!(summarize_due("2026-12-01T04:00:00Z", "2026-12-01T09:45:00Z"), (None, at(9), 4, at(10)));
        assert_eq!(
            summarize_due("2026-12-01T09:00:00Z", "2026-12-01T05:00:00Z"),
            (None, None, 0, at(10)),
            "the clock was set back"
        );
    }

    proptest! {
        #[test]
        fn each_occurrence_is_found_once_at_any_polling_interval(steps in prop::collection::vec(1_i64..90_000, 1..60)) {
            let start = timestamp("2026-10-24T00:00:00Z");
            let (mut handled, mut now, mut found_count) = (start, start, 0);
            for step in steps {
                now += SignedDuration::from_secs(step);
                let due = hourly().find_due(handled, now);
                for occurrence in [&due.missed, &due.current].into_iter().flatten() {
                    prop_assert!(handled < occurrence.at && occurrence.at <= now);
                    found_count += 1;
                    handled = occurrence.at;
                }
                found_count += due.missed_before;
                prop_assert!(due.current.is_none_or(|occurrence| lateness(occurrence.at, now) <= hourly().grace));
            }
            let schedule = hourly();
            let all = schedule.occurrences_after(start).take_while(|occurrence| occurrence.at <= now);
            prop_assert_eq!(found_count, all.count());
        }
    }
}
