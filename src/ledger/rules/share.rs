//! Who may draw shares of a run.

use crate::ledger::{Run, RunProgress};

/// Whether a process may draw shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger) enum DrawReadiness {
    /// It may.
    Now,
    /// Not now: somebody has the whole run, to look at it or to share it out anew.
    Later,
    /// Not any more.
    NoMore,
}

/// Whether a process that knows this sharing out of a run may draw shares of it.
pub(in crate::ledger) fn check_draw(run: &Run, known: i64) -> DrawReadiness {
    let Some(sharing) = run.sharding.as_ref().filter(|sharing| sharing.id == known) else {
        return DrawReadiness::NoMore;
    };
    if run.progress != RunProgress::Open || run.stop_requested || run.ended_at.is_some() {
        return DrawReadiness::NoMore;
    }
    match run.epoch {
        Some(owner) if owner != sharing.by => DrawReadiness::Later,
        _ => DrawReadiness::Now,
    }
}
