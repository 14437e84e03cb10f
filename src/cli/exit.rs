//! Exit codes, and the errors that end a command.

use crate::finding::Finding;
use crate::ledger::{LedgerError, Run, State, StateCounts, StopKind};
use crate::regular::ran_out_of_handles;
use crate::report::{DOUBTFUL, REFUSED, ResultsError};

/// Everything was accepted, queued or skipped.
pub(super) const FINE: u8 = 0;
/// A bug.
pub(super) const BUG: u8 = 1;
/// The command line or an input is wrong; nothing was sent by this call.
pub(super) const WRONG: u8 = 2;
/// Finished, with rejected or invalid rows.
pub(super) const REJECTIONS: u8 = 3;
/// Finished, with rows in doubt.
pub(super) const DOUBT: u8 = 4;
/// Stopped before the end.
pub(super) const STOPPED: u8 = 5;
/// Another process has the run, or there is nothing left to send.
pub(super) const NOTHING: u8 = 6;
/// The gateway refused the key.
pub(super) const KEY: u8 = 7;
/// The ledger or the results could not be written.
pub(super) const STORAGE: u8 = 74;
/// A signal of number n ends with this and n.
pub(super) const SIGNAL: u8 = 128;

/// Why a command ended without its result.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) exit: u8,
    /// One sentence; the findings, where there are any, tell the rest.
    pub(super) message: String,
    pub(super) findings: Vec<Finding>,
}

impl Failure {
    pub(super) fn new(exit: u8, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), findings: Vec::new() }
    }

    /// An input is wrong, or could not be opened for want of a handle, which no input is to blame for.
    pub(super) fn wrong(message: impl Into<String>) -> Self {
        Self::new(if ran_out_of_handles() { STORAGE } else { WRONG }, message)
    }

    /// Inputs are wrong in these ways, as [`Failure::wrong`] judges them.
    pub(super) fn findings(findings: Vec<Finding>) -> Self {
        let errors = findings.iter().filter(|finding| finding.is_error()).count();
        let problems = if errors == 1 { "1 problem".to_owned() } else { format!("{errors} problems") };
        Self { findings, ..Self::wrong(format!("{problems} found; nothing was sent")) }
    }

    /// Something in the state folder or the results could not be written or read.
    pub(super) fn storage(message: impl std::fmt::Display) -> Self {
        Self::new(STORAGE, message.to_string())
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        Self::storage(error)
    }
}

impl From<ResultsError> for Failure {
    fn from(error: ResultsError) -> Self {
        match &error {
            ResultsError::Contradicted { run, .. } => {
                Self::storage(format!("{error}; name another file with `results {run} --out FILE`"))
            }
            _ => Self::storage(error),
        }
    }
}

/// The code of a call to `run` that ended like this. The first that applies.
pub(super) fn code(stopped: Option<StopKind>, counts: &StateCounts) -> u8 {
    let any = |states: &[State]| states.iter().any(|state| counts.get(*state) > 0);
    match stopped {
        Some(StopKind::Ledger | StopKind::ResultsUnwritten) => STORAGE,
        Some(StopKind::Interrupted(signal)) => SIGNAL.saturating_add(signal),
        Some(StopKind::NotOwner) => NOTHING,
        Some(StopKind::KeyRefused) => KEY,
        Some(StopKind::Halted | StopKind::Limit | StopKind::Inconsistent) => STOPPED,
        Some(StopKind::Internal) => BUG,
        None if any(&[State::Planned, State::Sending]) => STOPPED,
        None if any(&DOUBTFUL) => DOUBT,
        None if any(&REFUSED) => REJECTIONS,
        None => FINE,
    }
}

/// The code that the last call to send a run, or to ask or decide about it, ended with; nothing if there is none yet, or
/// it was killed.
pub(super) fn last(run: &Run) -> Option<u8> {
    run.counts.as_ref().map(|(counts, _)| code(run.stop, counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_code_that_applies_is_the_one() {
        let counts = |states: &[State]| {
            let mut counts = StateCounts::default();
            states.iter().for_each(|state| counts.add(*state, 1));
            counts
        };
        let table = [
            (Some(StopKind::Ledger), vec![State::InDoubt], 74),
            (Some(StopKind::ResultsUnwritten), vec![State::Accepted], 74),
            (Some(StopKind::Interrupted(2)), vec![State::Planned], 130),
            (Some(StopKind::Interrupted(15)), vec![State::Planned], 143),
            (Some(StopKind::Interrupted(1)), vec![], 129),
            (Some(StopKind::NotOwner), vec![], 6),
            (Some(StopKind::KeyRefused), vec![State::Planned], 7),
            (Some(StopKind::Internal), vec![State::Planned], 1),
            (Some(StopKind::Limit), vec![State::Planned, State::InDoubt], 5),
            (None, vec![State::Planned], 5),
            (None, vec![State::InDoubt, State::Rejected], 4),
            (None, vec![State::Accepted, State::Invalid], 3),
            (None, vec![State::Accepted, State::Skipped, State::Queued, State::Delivered], 0),
        ];
        for (stopped, states, expected) in table {
            assert_eq!(code(stopped, &counts(&states)), expected, "{stopped:?} {states:?}");
        }
    }
}
