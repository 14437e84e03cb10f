//! What a run needs next from a person. Pure.

use crate::ledger::{Run, RunId, State, StateCounts};

/// The states of rows whose outcome nobody knows.
pub const DOUBTFUL: [State; 2] = [State::InDoubt, State::Unresolved];
/// The states of rows whose message was refused or could not be sent.
pub const REFUSED: [State; 4] = [State::Rejected, State::Failed, State::NotSent, State::Invalid];

/// What a person does next about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// It is being sent.
    Wait,
    /// It can go on.
    GoOn,
    /// The gateway can be asked about rows in doubt.
    Ask,
    /// Rows wait for a decision: everything that could be asked was asked.
    Decide,
    /// Rows in these states are worth a look.
    LookAt(Vec<State>),
    /// Nothing is left to do; its results tell all.
    Nothing,
}

impl NextStep {
    /// What is to be done about rows whose outcome nobody knows, if there are any.
    #[must_use]
    pub fn of_doubt(counts: &StateCounts) -> Option<Self> {
        let any = |state| counts.get(state) > 0;
        match () {
            () if any(State::InDoubt) => Some(Self::Ask),
            () if any(State::Unresolved) => Some(Self::Decide),
            () => None,
        }
    }

    /// What is to be done about a run with which nothing goes on.
    #[must_use]
    pub fn of_ended(counts: &StateCounts) -> Self {
        let states: Vec<State> = DOUBTFUL.into_iter().chain(REFUSED).filter(|state| counts.get(*state) > 0).collect();
        if states.is_empty() { Self::Nothing } else { Self::LookAt(states) }
    }
}

/// A run with rows whose outcome nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDoubt {
    /// The run's name.
    pub run: String,
    /// How many rows.
    pub rows: u64,
    /// What is to be done about them.
    pub step: NextStep,
}

/// The live runs, besides this one, that have rows whose outcome nobody knows.
#[must_use]
pub fn open_doubts(runs: &[Run], besides: Option<RunId>) -> Vec<OpenDoubt> {
    let others = runs.iter().filter(|run| Some(run.key) != besides && run.live);
    let doubtful = others.filter_map(|run| {
        let (counts, _) = run.counts.as_ref()?;
        let step = NextStep::of_doubt(counts)?;
        Some(OpenDoubt { run: run.name(), rows: DOUBTFUL.into_iter().map(|state| counts.get(state)).sum(), step })
    });
    doubtful.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubt_comes_first_and_what_was_refused_is_looked_at() {
        let counts = |states: &[State]| {
            let mut counts = StateCounts::default();
            states.iter().for_each(|state| counts.add(*state, 1));
            counts
        };
        let both = counts(&[State::InDoubt, State::Unresolved]);
        assert_eq!(NextStep::of_doubt(&both), Some(NextStep::Ask));
        assert_eq!(NextStep::of_doubt(&counts(&[State::Unresolved, State::Failed])), Some(NextStep::Decide));
        assert_eq!(NextStep::of_doubt(&counts(&[State::Rejected])), None);
        let refused = counts(&[State::Invalid, State::Unresolved, State::Accepted]);
        assert_eq!(NextStep::of_ended(&refused), NextStep::LookAt(vec![State::Unresolved, State::Invalid]));
        assert_eq!(NextStep::of_ended(&counts(&[State::Accepted, State::Skipped])), NextStep::Nothing);
    }
}
