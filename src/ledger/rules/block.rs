//! Which rows of a shared run are drawn next, and whose an intent is.

use crate::domain::Row;
use crate::ledger::{Rows, Run};

/// The next rows of a shared run, so many at most, where `drawn` is the last that ever was; nothing if none is left.
pub(in crate::ledger) fn next_rows(run: &Run, drawn: Option<Row>, rows: u32) -> Option<Rows> {
    let first = drawn.map_or(Row::FIRST, |last| Row::new(last.get().saturating_add(1)));
    let last = Row::new(first.get().saturating_add(rows.max(1) - 1)).min(run.last_row());
    (first <= last).then_some(Rows { first, last })
}

/// Whether an intent for these rows is of who has this block; with the block it falls into doubt, and with no other.
pub(in crate::ledger) fn owns(block: Rows, intent: Rows) -> bool {
    block.contain(intent.first) && block.contain(intent.last)
}
