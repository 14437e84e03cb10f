//! Exit codes.

use crate::gateway::FailureCause;
use crate::ledger::{LedgerError, RowState, Run, RunProgress, StateCounts, StopKind};
use crate::report::{FAILED_STATES, IN_DOUBT_STATES, ResultsError};
use crate::runs::{
    BackupRefusal, Error, InputChanges, NothingLeft, ReconciledRun, ReleasedRun, RetryRefusal, StaleResults,
    TemplateRefusal,
};

/// Everything was accepted, queued or skipped.
pub(super) const SUCCESS: u8 = 0;
/// A bug.
pub(super) const BUG: u8 = 1;
/// The command line or an input is wrong; nothing was sent by this call.
pub(super) const INVALID: u8 = 2;
/// Finished, with rejected or invalid rows.
pub(super) const REJECTIONS: u8 = 3;
/// Finished, with rows in doubt.
pub(super) const IN_DOUBT: u8 = 4;
/// Stopped before the end.
pub(super) const STOPPED: u8 = 5;
/// Another process has the run.
pub(super) const BUSY: u8 = 6;
/// The gateway refused the key.
pub(super) const REFUSED_KEY: u8 = 7;
/// The ledger or the results could not be written.
pub(super) const STORAGE: u8 = 74;
/// A signal of number n ends with this and n.
pub(super) const SIGNAL: u8 = 128;

/// The code of a call to `run` that ended like this. The first that applies.
pub(super) fn code_of_end(stopped: Option<StopKind>, counts: &StateCounts) -> u8 {
    let any = |states: &[RowState]| states.iter().any(|state| counts.get(*state) > 0);
    match stopped {
        Some(StopKind::Ledger | StopKind::ResultsUnwritten) => STORAGE,
        Some(StopKind::Interrupted(signal)) => SIGNAL.saturating_add(signal),
        Some(StopKind::LeaseLost) => BUSY,
        Some(StopKind::KeyRefused) => REFUSED_KEY,
        Some(StopKind::Internal) => BUG,
        Some(
            StopKind::StopRequested
            | StopKind::Breaker
            | StopKind::Unreachable
            | StopKind::OffContract
            | StopKind::Credit
            | StopKind::Budget
            | StopKind::Window
            | StopKind::Halted
            | StopKind::Inconsistent,
        ) => STOPPED,
        None if any(&[RowState::Planned, RowState::Sending]) => STOPPED,
        // What was asked for is through: what is left of it says how.
        Some(StopKind::Limit | StopKind::DeadlineReached) | None if any(&IN_DOUBT_STATES) => IN_DOUBT,
        // Somebody was left.
        Some(StopKind::DeadlineReached) => REJECTIONS,
        Some(StopKind::Limit) | None if any(&FAILED_STATES) => REJECTIONS,
        Some(StopKind::Limit) | None => SUCCESS,
    }
}

/// The code of an error.
pub(super) fn code_of_error(error: &Error) -> u8 {
    match error {
        Error::KeyRefused(_) => REFUSED_KEY,
        Error::Unanswered { failure, .. } | Error::Template(TemplateRefusal::Unclear { failure, .. }) => {
            code_of_inquiry(failure.cause)
        }
        Error::Template(TemplateRefusal::NothingDeleted { .. }) => REJECTIONS,
        Error::TooManyThisHour { .. }
        | Error::TooManyQuestions { .. }
        | Error::Retry(RetryRefusal::Unconfirmed { said: None, .. }) => STOPPED,
        Error::Busy { .. }
        | Error::BusyRun { .. }
        | Error::NothingToStopYet { .. }
        | Error::Taken { .. }
        | Error::SinglesOnTheirWay { .. } => BUSY,
        Error::InputsChanged(changed) if matches!(changed.changes, InputChanges::Copies { damaged: true, .. }) => {
            STORAGE
        }
        Error::Ledger(LedgerError::Purged { .. })
        | Error::Results(ResultsError::Ledger(LedgerError::Purged { .. })) => INVALID,
        // The inputs of a client were checked before.
        Error::Client(_)
        | Error::Backup(BackupRefusal::NotRestored { .. })
        | Error::LedgerLost { .. }
        | Error::Ledger(_)
        | Error::Results(_)
        | Error::Storage(_) => STORAGE,
        Error::Interrupted { signal, .. } => SIGNAL.saturating_add(*signal),
        Error::Internal(_) => BUG,
        Error::Findings(_)
        | Error::UnknownGateway { .. }
        | Error::Input(_)
        | Error::Template(TemplateRefusal::NoSuchTemplate { .. } | TemplateRefusal::TextUnknown { .. })
        | Error::IdTaken
        | Error::SandboxAccount
        | Error::NoGateway
        | Error::SeveralGateways(_)
        | Error::NoSuchRun { .. }
        | Error::RoundUnfinished { .. }
        | Error::Retry(_)
        | Error::Cancelled { .. }
        | Error::SingleRun { .. }
        | Error::NoCampaign(_)
        | Error::OtherFile { .. }
        | Error::RunsElsewhere { .. }
        | Error::TextChanged { .. }
        | Error::NoGatewayNamed
        | Error::InputsChanged(_)
        | Error::NotConfirmed { .. }
        | Error::OtherNumber { .. }
        | Error::TooManyRecipients { .. }
        | Error::NoSuchRow { .. }
        | Error::Decision(_)
        | Error::RehearsalForgotten { .. }
        | Error::NothingToCancel { .. }
        | Error::HostChanged { .. }
        | Error::WeakerApproval(_)
        | Error::OtherReach { .. }
        | Error::Backup(BackupRefusal::MaySendTwice { .. })
        | Error::ResultsPlace(_)
        | Error::Policy(_)
        | Error::Plan(_)
        | Error::Schedule(_) => INVALID,
    }
}

/// The code of a question that the gateway did not answer.
fn code_of_inquiry(cause: FailureCause) -> u8 {
    match cause {
        FailureCause::KeyRefused => REFUSED_KEY,
        FailureCause::Refused => REJECTIONS,
        FailureCause::NotConnected | FailureCause::SlowDown(_) | FailureCause::TimedOut | FailureCause::Unclear => {
            STOPPED
        }
    }
}

/// The code of a call that had nobody to send to.
pub(super) fn code_of_nothing(nothing: &NothingLeft) -> u8 {
    let code = code_of_end(None, &nothing.meant);
    if nothing.doubt { graver_code(code, IN_DOUBT) } else { code }
}

/// Of two codes of one call the one that stands higher in the table.
pub(super) fn graver_code(one: u8, other: u8) -> u8 {
    let place = |code: u8| match code {
        STORAGE => 0,
        SIGNAL.. => 1,
        INVALID => 2,
        BUSY => 3,
        REFUSED_KEY => 4,
        STOPPED => 5,
        IN_DOUBT => 6,
        REJECTIONS => 7,
        SUCCESS => 8,
        _ => 1,
    };
    if place(other) < place(one) { other } else { one }
}

/// The code that `run` would exit with for this run as it stands.
pub(super) fn code_of_run(run: &Run, counts: &StateCounts, owned: bool) -> u8 {
    match (owned, run.progress) {
        (true, _) => BUSY,
        // One that was given up exits as it did then: nothing goes on with it.
        (false, RunProgress::Finished) if run.stop_reason.is_some() => code_of_end(run.stop, counts),
        (false, RunProgress::Open) if counts.get(RowState::Planned) > 0 => STOPPED,
        (false, _) => {
            let mut counts = counts.clone();
            // What a replaced run left is nobody's task any more.
            let planned = counts.get(RowState::Planned);
            counts.shift(RowState::Planned, RowState::Skipped, planned);
            // What others have on its way in a shared run is theirs.
            let sending = if run.shared { counts.get(RowState::Sending) } else { 0 };
            counts.shift(RowState::Sending, RowState::Skipped, sending);
            code_of_end(None, &counts)
        }
    }
}

/// The code that `run` would exit with for a run after it was asked or decided about; its results may have failed.
pub(super) fn code_of_released(released: &ReleasedRun) -> u8 {
    match released.stale_results {
        Some(StaleResults::Failed(_)) => STORAGE,
        _ if released.reopened => STOPPED,
        _ => code_of_run(&released.run, &released.snapshot.counts, false),
    }
}

/// The exit code of `reconcile`: that of `run` for the current state of the run, or 0 if no rows are in doubt and
/// nothing was asked.
/// `polled` is how many unfinished messages were asked about.
pub(super) fn code_of_reconciled(ReconciledRun { learnt, released }: &ReconciledRun, polled: u64) -> u8 {
    let counts = &released.snapshot.counts;
    let is_clear = learnt.asked + polled == 0 && IN_DOUBT_STATES.iter().all(|state| counts.get(*state) == 0);
    match released.stale_results {
        Some(StaleResults::Failed(_)) => STORAGE,
        _ if is_clear => SUCCESS,
        _ => code_of_released(released),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graver_stop_decides_the_exit_code() {
        // A bug is told as such whatever else there was.
        let kinds = StopKind::ALL.into_iter().filter(|kind| *kind != StopKind::Internal);
        let code = |kind: StopKind| code_of_end(Some(kind), &StateCounts::default());
        for (one, other) in kinds.clone().flat_map(|one| kinds.clone().map(move |other| (one, other))) {
            if one.gravity() > other.gravity() {
                assert_eq!(graver_code(code(one), code(other)), code(one), "{one:?} beside {other:?}");
                assert_ne!(code(one), code(other), "{one:?} beside {other:?}");
            }
        }
    }

    #[test]
    fn first_applicable_exit_code_wins() {
        let counts = |states: &[RowState]| {
            let mut counts = StateCounts::default();
            states.iter().for_each(|state| counts.add(*state, 1));
            counts
        };
        let table = [
            (Some(StopKind::Ledger), vec![RowState::InDoubt], 74),
            (Some(StopKind::ResultsUnwritten), vec![RowState::Accepted], 74),
            (Some(StopKind::Interrupted(2)), vec![RowState::Planned], 130),
            (Some(StopKind::Interrupted(15)), vec![RowState::Planned], 143),
            (Some(StopKind::Interrupted(1)), vec![], 129),
            (Some(StopKind::LeaseLost), vec![], 6),
            (Some(StopKind::KeyRefused), vec![RowState::Planned], 7),
            (Some(StopKind::Internal), vec![RowState::Planned], 1),
            (Some(StopKind::StopRequested), vec![RowState::Planned, RowState::InDoubt], 5),
            (Some(StopKind::Limit), vec![RowState::Planned, RowState::Rejected, RowState::InDoubt], 4),
            (Some(StopKind::Limit), vec![RowState::Planned, RowState::Rejected], 3),
            (Some(StopKind::Limit), vec![RowState::Planned, RowState::Accepted], 0),
            (None, vec![RowState::Planned], 5),
            (None, vec![RowState::InDoubt, RowState::Rejected], 4),
            (None, vec![RowState::Accepted, RowState::Invalid], 3),
            (None, vec![RowState::Accepted, RowState::Skipped, RowState::Queued, RowState::Delivered], 0),
        ];
        for (stopped, states, expected) in table {
            assert_eq!(code_of_end(stopped, &counts(&states)), expected, "{stopped:?} {states:?}");
        }
    }
}
