//! Which rows of a shared run are drawn next, and whose an intent is.

use crate::domain::Row;
use crate::ledger::{RowSpan, Run};

/// The next rows of a shared run, so many at most, where `last` is the last that ever was drawn; nothing if none is left.
pub(in crate::ledger) fn next_rows(run: &Run, last: Option<Row>, rows: u32) -> Option<RowSpan> {
    let first = last.map_or(Row::FIRST, |last| Row::new(last.get().saturating_add(1)));
    let last = Row::new(first.get().saturating_add(rows.max(1) - 1)).min(run.last_row());
    (first <= last).then_some(RowSpan { first, last })
}

/// An hour in microseconds.
pub(in crate::ledger) const HOUR: i64 = 3_600_000_000;

/// When the next block may be drawn, where so many at most are within an hour; nothing if it may be now.
///
/// `drawn` are the times of earlier ones, the first first; all times are microseconds since 1970.
pub(in crate::ledger) fn next_draw_time(drawn: &[i64], now: i64, per_hour: u32) -> Option<i64> {
    let within: Vec<i64> = drawn.iter().copied().filter(|at| at.saturating_add(HOUR) > now).collect();
    let over = within.len().checked_sub(usize::try_from(per_hour).unwrap_or(usize::MAX))?;
    Some(within.get(over).map_or(now, |at| *at).saturating_add(HOUR))
}

/// Whether an intent for these rows is of whoever has this block: when that process ends, it falls into doubt, and when
/// another one ends, it does not.
pub(in crate::ledger) fn owns_rows(block: RowSpan, intent: RowSpan) -> bool {
    block.contains(intent.first) && block.contains(intent.last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hourly_draw_limit_is_kept_without_needless_waits(
            asked in prop::collection::vec(0..HOUR / 2, 1..80),
            per_hour in 0_u32..6,
        ) {
            let (mut now, mut drawn) = (1_800_000_000_000_000, Vec::new());
            for wait in asked {
                now += wait;
                let within = drawn.iter().filter(|at| **at > now - HOUR).count();
                match next_draw_time(&drawn, now, per_hour) {
                    None => drawn.push(now),
                    Some(next) => {
                        prop_assert!(within >= per_hour as usize && next > now && next <= now + HOUR);
                        let then = drawn.iter().filter(|at| **at > next - HOUR).count();
                        prop_assert!(then < per_hour as usize || per_hour == 0);
                    }
                }
                prop_assert!(drawn.iter().filter(|at| **at > now - HOUR).count() <= per_hour as usize);
            }
        }
    }
}
