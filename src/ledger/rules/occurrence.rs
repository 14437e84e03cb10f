//! What fires at most once.

use crate::ledger::OccurrenceOutcome;

/// Whether an occurrence may begin a run: it has no record, or one of a run that was never opened, so that nothing of it was sent.
pub(in crate::ledger) fn may_fire(recorded: Option<&OccurrenceOutcome>, was_opened: bool) -> bool {
    match recorded {
        None => true,
        Some(OccurrenceOutcome::Fired(_)) => !was_opened,
        Some(OccurrenceOutcome::Skipped(_)) => false,
    }
}
