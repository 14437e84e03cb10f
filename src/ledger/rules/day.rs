//! How many messages of a day are left.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;

use crate::calendar::DailyLimits;
use crate::ledger::Bound;

/// How many of so many messages that would leave then still leave today, where so many left on the days before and today, and
/// until when the others wait; nothing where all do.
pub(in crate::ledger) fn find_exceeded_day(
    per_day: &DailyLimits,
    left: &BTreeMap<Date, u64>,
    (now, leaves): (Timestamp, Timestamp),
    rows: usize,
) -> Option<(usize, Bound)> {
    let today = per_day.local_date(now);
    let before = left.iter().filter(|(day, count)| **day < today && **count > 0).count();
    let limit = per_day.limit(before);
    let fits = limit.saturating_sub(left.get(&today).copied().unwrap_or_default());
    // What would leave tomorrow is one of tomorrow's.
    let fits = if per_day.local_date(leaves) > today { 0 } else { usize::try_from(fits).unwrap_or(usize::MAX) };
    if rows <= fits {
        return None;
    }
    let until = per_day.next_day_start(now);
    let wait = Duration::try_from(until.timestamp().duration_since(now)).unwrap_or_default();
    Some((fits, Bound::Day { limit, until, wait }))
}

/// Of two bounds the one of which fewer messages keep within; of equal ones the first.
pub(in crate::ledger) fn tighter_bound(
    one: Option<(usize, Bound)>,
    other: Option<(usize, Bound)>,
) -> Option<(usize, Bound)> {
    [one, other].into_iter().flatten().min_by_key(|(fits, _)| *fits)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn daily_limit_grows_with_each_day_that_sent_messages() {
        let per_day = DailyLimits::new(vec![10, 30, 50], TimeZone::UTC).unwrap();
        let now: Timestamp = "2026-11-23T18:00:00Z".parse().unwrap();
        let fits = |left: &[(i8, u64)]| {
            let left = left.iter().map(|(day, count)| (jiff::civil::date(2026, 11, *day), *count)).collect();
            find_exceeded_day(&per_day, &left, (now, now), 100).map(|(fits, bound)| {
                let Bound::Day { limit, wait, .. } = bound else { panic!("{bound:?}") };
                assert_eq!(wait, Duration::from_hours(6));
                (fits, limit)
            })
        };
        assert_eq!(fits(&[]), Some((10, 10)));
        assert_eq!(fits(&[(23, 4)]), Some((6, 10)));
        assert_eq!(fits(&[(20, 10), (22, 0), (23, 4)]), Some((26, 30)), "a day on which nothing left is none");
        assert_eq!(fits(&[(1, 1), (2, 1), (3, 1), (23, 60)]), Some((0, 50)));
        assert_eq!(fits(&[(24, 7)]), Some((10, 10)), "a clock that was ahead");
        assert_eq!(find_exceeded_day(&per_day, &BTreeMap::new(), (now, now), 10), None);
    }

    #[test]
    fn message_after_midnight_does_not_count_for_today() {
        let per_day = DailyLimits::new(vec![10], TimeZone::get("Europe/Kyiv").unwrap()).unwrap();
        let now: Timestamp = "2026-11-23T21:59:50Z".parse().unwrap();
        let fits = |seconds| {
            let leaves = now + Duration::from_secs(seconds);
            find_exceeded_day(&per_day, &BTreeMap::new(), (now, leaves), 1).map(|(fits, _)| fits)
        };
        assert_eq!([0, 9, 10, 600].map(fits), [None, None, Some(0), Some(0)]);
    }
}
