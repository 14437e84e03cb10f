//! What a run needs next from a person. Pure.

use crate::ledger::{RowState, Run, RunId, StateCounts};

/// The states of rows whose outcome nobody knows.
pub const IN_DOUBT_STATES: [RowState; 2] = [RowState::InDoubt, RowState::Unresolved];
/// The states of rows whose message was refused or could not be sent.
pub const FAILED_STATES: [RowState; 4] = [RowState::Rejected, RowState::Failed, RowState::NotSent, RowState::Invalid];

/// What a person does next about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// It is being sent.
    Wait,
    /// It can go on.
    Resume,
    /// The gateway can be asked about rows in doubt.
    Reconcile,
    /// Rows wait for a decision: everything that could be asked was asked.
    Decide,
    /// Rows in these states are worth a look.
    Review(Vec<RowState>),
    /// Nothing is left to do; its results tell all.
    Nothing,
}

impl NextStep {
    /// What is to be done about rows whose outcome nobody knows, if there are any.
    #[must_use]
    pub fn for_doubt(counts: &StateCounts) -> Option<Self> {
        let any = |state| counts.get(state) > 0;
        match () {
            () if any(RowState::InDoubt) => Some(Self::Reconcile),
            () if any(RowState::Unresolved) => Some(Self::Decide),
            () => None,
        }
    }

    /// What is to be done about a run with which nothing goes on.
    #[must_use]
    pub fn for_ended_run(counts: &StateCounts) -> Self {
        let states: Vec<RowState> =
            IN_DOUBT_STATES.into_iter().chain(FAILED_STATES).filter(|state| counts.get(*state) > 0).collect();
        if states.is_empty() { Self::Nothing } else { Self::Review(states) }
    }
}

/// A run with rows whose outcome nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInDoubt {
    /// The run's name.
    pub run: String,
    /// How many rows.
    pub rows: u64,
    /// What is to be done about them.
    pub step: NextStep,
}

/// The live runs, besides this one, that have rows whose outcome nobody knows.
#[must_use]
pub fn find_runs_in_doubt(runs: &[Run], besides: Option<RunId>) -> Vec<RunInDoubt> {
    let others = runs.iter().filter(|run| Some(run.key) != besides && run.live);
    let doubtful = others.filter_map(|run| {
        let (counts, _) = run.counts.as_ref()?;
        let step = NextStep::for_doubt(counts)?;
        Some(RunInDoubt {
            run: run.name(),
            rows: IN_DOUBT_STATES.into_iter().map(|state| counts.get(state)).sum(),
            step,
        })
    });
    doubtful.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_doubt_come_before_failed_rows() {
        let counts = |states: &[RowState]| {
            let mut counts = StateCounts::default();
            states.iter().for_each(|state| counts.add(*state, 1));
            counts
        };
        let both = counts(&[RowState::InDoubt, RowState::Unresolved]);
        assert_eq!(NextStep::for_doubt(&both), Some(NextStep::Reconcile));
        assert_eq!(NextStep::for_doubt(&counts(&[RowState::Unresolved, RowState::Failed])), Some(NextStep::Decide));
        assert_eq!(NextStep::for_doubt(&counts(&[RowState::Rejected])), None);
        let refused = counts(&[RowState::Invalid, RowState::Unresolved, RowState::Accepted]);
        assert_eq!(NextStep::for_ended_run(&refused), NextStep::Review(vec![RowState::Unresolved, RowState::Invalid]));
        assert_eq!(NextStep::for_ended_run(&counts(&[RowState::Accepted, RowState::Skipped])), NextStep::Nothing);
    }
}
