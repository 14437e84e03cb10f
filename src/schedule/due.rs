//! What is due of a schedule at a moment, and what was missed. Pure.

use std::time::Duration;

use jiff::Timestamp;

use crate::calendar::{Occurrence, Schedule};

/// What is due of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueOccurrences {
    /// What begins now.
    pub begins: Option<Occurrence>,
    /// The last one that was missed.
    pub missed: Option<Occurrence>,
    /// How many were missed before that.
    pub before: usize,
    /// The next one after this moment.
    pub next: Option<Timestamp>,
}

/// What is due by now of what comes after `handled`, where each may begin so much later than it was due.
///
/// Of several the last is due, if it is not too late; the others were missed: never a flood of what was not sent in its time.
#[must_use]
pub fn find_due(schedule: &Schedule, handled: Timestamp, now: Timestamp, patience: Duration) -> DueOccurrences {
    let mut found = DueOccurrences::default();
    let mut last: Option<Occurrence> = None;
    for occurrence in schedule.occurrences_after(handled) {
        if occurrence.at > now {
            found.next = Some(occurrence.at);
            break;
        }
        if let Some(earlier) = last.replace(occurrence) {
            found.before += usize::from(found.missed.is_some());
            found.missed = Some(earlier);
        }
    }
    match last {
        Some(last) if lateness(last.at, now) <= patience => found.begins = Some(last),
        Some(last) => {
            found.before += usize::from(found.missed.is_some());
            found.missed = Some(last);
        }
        None => {}
    }
    found
}

/// How late it is for what was due at a moment.
#[must_use]
pub fn lateness(due: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(due)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::*;
    use crate::calendar::Timing;

    fn hourly() -> Schedule {
        let (timing, zone) = (Timing::parse_cron("0 * * * *").unwrap(), TimeZone::get("Europe/Kyiv").unwrap());
        Schedule { timing, zone, ends: None, grace: Duration::from_secs(1800), wait_for_file: None }
    }

    fn timestamp(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn last_of_several_is_due_unless_too_late() {
        let look = |handled, now| {
            let due = find_due(&hourly(), timestamp(handled), timestamp(now), hourly().grace);
            let name = |one: Option<Occurrence>| one.map(|one| one.at.to_string());
            (name(due.begins), name(due.missed), due.before, due.next.map(|next| next.to_string()))
        };
        let at = |hour: u8| Some(format!("2026-12-01T{hour:02}:00:00Z"));
        assert_eq!(look("2026-12-01T08:00:00Z", "2026-12-01T08:59:59Z"), (None, None, 0, at(9)));
        assert_eq!(look("2026-12-01T08:00:00Z", "2026-12-01T09:00:00Z"), (at(9), None, 0, at(10)));
        assert_eq!(look("2026-12-01T08:00:00Z", "2026-12-01T09:30:00Z"), (at(9), None, 0, at(10)));
        assert_eq!(look("2026-12-01T08:00:00Z", "2026-12-01T09:30:01Z"), (None, at(9), 0, at(10)));
        assert_eq!(look("2026-12-01T04:00:00Z", "2026-12-01T09:00:00Z"), (at(9), at(8), 3, at(10)));
        assert_eq!(look("2026-12-01T04:00:00Z", "2026-12-01T09:45:00Z"), (None, at(9), 4, at(10)));
        assert_eq!(
            look("2026-12-01T09:00:00Z", "2026-12-01T05:00:00Z"),
            (None, None, 0, at(10)),
            "a clock that went back"
        );
    }

    proptest! {
        #[test]
        fn each_occurrence_is_seen_once_at_any_interval(steps in prop::collection::vec(1_i64..90_000, 1..60)) {
            let start = timestamp("2026-10-24T00:00:00Z");
            let (mut handled, mut now, mut seen) = (start, start, 0);
            for step in steps {
                now += SignedDuration::from_secs(step);
                let due = find_due(&hourly(), handled, now, hourly().grace);
                for one in [&due.missed, &due.begins].into_iter().flatten() {
                    prop_assert!(handled < one.at && one.at <= now);
                    seen += 1;
                    handled = one.at;
                }
                seen += due.before;
                prop_assert!(due.begins.is_none_or(|one| lateness(one.at, now) <= hourly().grace));
            }
            prop_assert_eq!(seen, hourly().occurrences_after(start).take_while(|one| one.at <= now).count());
        }
    }
}
