//! Who may draw shares of a run.

use crate::ledger::{Progress, Run};

/// Whether a process may draw shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger) enum Draws {
    /// It may.
    Now,
    /// Not now: somebody has the whole run, to look at it or to share it out anew.
    Later,
    /// Not any more.
    NoMore,
}

/// Whether a process that knows this sharing out of a run may draw shares of it.
pub(in crate::ledger) fn draws(run: &Run, known: i64) -> Draws {
    let Some(sharing) = run.sharing.as_ref().filter(|sharing| sharing.id == known) else { return Draws::NoMore };
    if run.progress != Progress::Open || run.stop_requested || run.ended_at.is_some() {
        return Draws::NoMore;
    }
    match run.epoch {
        Some(owner) if owner != sharing.by => Draws::Later,
        _ => Draws::Now,
    }
}
