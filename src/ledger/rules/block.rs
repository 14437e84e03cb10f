//! Which rows of a shared run are drawn next, and whose an intent is.

use crate::domain::Row;
use crate::ledger::{Rows, Run};

/// The next rows of a shared run, so many at most, where `last` is the last that ever was drawn; nothing if none is left.
pub(in crate::ledger) fn next_rows(run: &Run, last: Option<Row>, rows: u32) -> Option<Rows> {
    let first = last.map_or(Row::FIRST, |last| Row::new(last.get().saturating_add(1)));
    let last = Row::new(first.get().saturating_add(rows.max(1) - 1)).min(run.last_row());
    (first <= last).then_some(Rows { first, last })
}

/// Whether an intent for these rows is of whoever has this block: when that process ends, it falls into doubt, and when
/// another one ends, it does not.
pub(in crate::ledger) fn owns(block: Rows, intent: Rows) -> bool {
    block.contain(intent.first) && block.contain(intent.last)
}
