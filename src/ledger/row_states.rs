//! The state of every row of a run, folded from its envelopes. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{EnvelopeRecord, LeftOut, Outcome, State};
use crate::domain::Row;

/// How many rows are in each state; their sum is the number of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateCounts(BTreeMap<State, u64>);

impl StateCounts {
    /// How many rows are in this state.
    #[must_use]
    pub fn get(&self, state: State) -> u64 {
        self.0.get(&state).copied().unwrap_or(0)
    }

    /// Adds rows to a state.
    pub fn add(&mut self, state: State, rows: u64) {
        if rows > 0 {
            *self.0.entry(state).or_insert(0) += rows;
        }
    }

    /// Moves rows from one state to another.
    pub fn shift(&mut self, from: State, to: State, rows: u64) {
        if let Some(count) = self.0.get_mut(&from) {
            *count = count.saturating_sub(rows);
        }
        self.0.retain(|_, count| *count > 0);
        self.add(to, rows);
    }

    /// The states that occur, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (State, u64)> {
        self.0.iter().map(|(&state, &count)| (state, count))
    }

    /// All rows.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

/// The state of each row that has an envelope; a row without one is planned or left out.
///
/// One byte per row, so the states of five million rows fit into five megabytes.
#[derive(Debug, Default)]
pub struct RowStates {
    states: Vec<Option<State>>,
    parts: u64,
}

impl RowStates {
    /// Adds an envelope; envelopes come in the order of their numbers, so the last attempt counts.
    ///
    /// An intent without an outcome is `sending` while its run has a living owner, and in doubt otherwise.
    pub fn add(&mut self, envelope: &EnvelopeRecord, owned: bool) {
        let pending = if owned { State::Sending } else { State::InDoubt };
        for (index, sent) in envelope.rows.iter().enumerate() {
            let outcome = envelope.settled.as_ref().and_then(|(_, outcomes)| outcomes.get(index));
            if let Some(Outcome::Accepted { parts: Some(parts), .. }) = outcome {
                self.parts += u64::from(*parts);
            }
            self.set(sent.row, outcome.map_or(pending, Outcome::state));
        }
    }

    fn set(&mut self, row: Row, state: State) {
        let index = row.get() as usize;
        if self.states.len() <= index {
            self.states.resize(index + 1, None);
        }
        self.states[index] = Some(state);
    }

    /// The state of a row that has an envelope.
    #[must_use]
    pub fn get(&self, row: Row) -> Option<State> {
        self.states.get(row.get() as usize).copied().flatten()
    }

    /// Parts billed, as far as the gateway told.
    #[must_use]
    pub fn parts(&self) -> u64 {
        self.parts
    }

    /// Counts over all rows of a run with so many recipients.
    #[must_use]
    pub fn counts(&self, recipients: u64, left_out: &LeftOut) -> StateCounts {
        let mut counts = StateCounts::default();
        for state in self.states.iter().flatten() {
            counts.add(*state, 1);
        }
        for state in [State::Skipped, State::Invalid] {
            counts.add(state, left_out.count(state));
        }
        counts.add(State::Planned, recipients.saturating_sub(counts.total()));
        counts
    }
}
