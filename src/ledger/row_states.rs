//! The state of every row of a run, folded from its envelopes. Pure.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{Attempt, BilledParts, EnvelopeRecord, ExcludedRows, KeptReceipt, RowActivities, RowEvents, RowState};
use crate::domain::{Chain, OperationOutcome, Row};

/// How many rows are in each state; their sum is the number of rows.
///
/// Stored and shown by the states' names; only those that occur.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<RowState, u64>", into = "BTreeMap<RowState, u64>")]
pub struct StateCounts([u64; RowState::ALL.len()]);

impl StateCounts {
    /// How many rows are in this state.
    #[must_use]
    pub fn get(&self, state: RowState) -> u64 {
        self.0[state as usize]
    }

    /// Adds rows to a state.
    pub fn add(&mut self, state: RowState, rows: u64) {
        self.0[state as usize] += rows;
    }

    /// Moves rows from one state to another.
    pub fn shift(&mut self, from: RowState, to: RowState, rows: u64) {
        let count = &mut self.0[from as usize];
        *count = count.saturating_sub(rows);
        self.add(to, rows);
    }

    /// Moves planned rows to the skipped ones; returns their number.
    pub fn skip_planned(&mut self) -> u64 {
        let planned = self.get(RowState::Planned);
        self.shift(RowState::Planned, RowState::Skipped, planned);
        planned
    }

    /// The states that occur, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (RowState, u64)> {
        RowState::ALL.into_iter().map(|state| (state, self.get(state))).filter(|(_, count)| *count > 0)
    }

    /// How many messages were delivered, including those that were read: the figure "delivered" for people.
    #[must_use]
    pub fn count_delivered(&self) -> u64 {
        self.iter().filter(|(state, _)| RowState::Delivered.includes_state(*state)).map(|(_, count)| count).sum()
    }

    /// All rows.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl From<BTreeMap<RowState, u64>> for StateCounts {
    fn from(map: BTreeMap<RowState, u64>) -> Self {
        let mut counts = Self::default();
        map.into_iter().for_each(|(state, count)| counts.add(state, count));
        counts
    }
}

impl From<StateCounts> for BTreeMap<RowState, u64> {
    fn from(counts: StateCounts) -> Self {
        counts.iter().collect()
    }
}

/// The state of each row that has an envelope; a row without one is planned or left out.
///
/// Two bytes per row, so the states of five million rows fit into ten megabytes; rows with events cost more.
#[derive(Debug, Default)]
pub struct RowStates {
    activities: RowActivities,
    /// What the records of each row leave it in.
    states: Vec<Option<RecordedState>>,
    /// The chains of the rows' messages, each once.
    chains: Vec<Chain>,
    parts: BilledParts,
    events: RowEvents,
    /// The rows with a failed earlier channel and no report about the last one.
    unreported_fallbacks: RoaringBitmap,
    /// The attempts of each row that has events, or that was not sent by its last attempt.
    attempts: FxHashMap<Row, Vec<Attempt>>,
}

/// The state of a row by its records.
#[derive(Clone, Copy, Debug)]
struct RecordedState {
    state: RowState,
    /// The place of its message's chain among the chains.
    chain: u8,
}

impl RowStates {
    /// The states of a run about which this is being done, and about whose rows these events are known.
    #[must_use]
    pub fn new(activities: impl Into<RowActivities>, events: RowEvents) -> Self {
        Self { activities: activities.into(), events, ..Self::default() }
    }

    /// The events.
    #[must_use]
    pub fn events(&self) -> &RowEvents {
        &self.events
    }

    /// Adds an envelope; envelopes come in the order of their numbers, so the last attempt counts.
    pub fn add_envelope(&mut self, envelope: &EnvelopeRecord) {
        for (index, sent) in envelope.rows.iter().enumerate() {
            let outcome = envelope.settled.as_ref().and_then(|(_, outcomes)| outcomes.get(index));
            if let Some(OperationOutcome::Accepted { parts, .. }) = outcome {
                self.parts.add(*parts);
            }
            let attempt = self.activities.build_attempt(envelope, sent, outcome);
            let unsent = attempt.state == RowState::Planned;
            let judged = if unsent || self.events.has_events(sent.row) || self.attempts.contains_key(&sent.row) {
                let attempts = self.attempts.entry(sent.row).or_default();
                attempts.push(attempt);
                self.events.judge_row(sent.row, attempts, &[])
            } else {
                self.events.judge_row(sent.row, &[attempt], &[])
            };
            let (state, is_unreported) = (judged.state, judged.awaits_fallback());
            self.set_state(sent.row, state, attempt.chain);
            self.note_fallback(sent.row, is_unreported);
        }
    }

    /// Adds the receipts of a row, after all envelopes; those of a row that has none prove nothing.
    pub fn add_receipts(&mut self, row: Row, receipts: &[KeptReceipt]) {
        let Some(RecordedState { state, chain }) = self.states.get(row.get() as usize).copied().flatten() else {
            return;
        };
        let chain = self.chains.get(usize::from(chain)).copied().unwrap_or_default();
        let judged = match self.attempts.get(&row) {
            Some(attempts) => self.events.judge_row(row, attempts, receipts),
            // Nothing but its state is known of a row without events, and nothing else is needed: it has one message.
            None => self.events.judge_row(row, &[Attempt { envelope: 0, state, chain }], receipts),
        };
        let (state, is_unreported) = (judged.state, judged.awaits_fallback());
        self.set_state(row, state, chain);
        self.note_fallback(row, is_unreported);
    }

    fn set_state(&mut self, row: Row, state: RowState, chain: Chain) {
        let index = row.get() as usize;
        if self.states.len() <= index {
            self.states.resize(index + 1, None);
        }
        let place = self.chains.iter().position(|known| *known == chain).unwrap_or_else(|| {
            self.chains.push(chain);
            self.chains.len() - 1
        });
        // A campaign has a chain for each of its few variants; one too many would be unknown.
        let chain = u8::try_from(place).unwrap_or(u8::MAX);
        self.states[index] = Some(RecordedState { state, chain });
    }

    /// The rows whose last report is the failure of an earlier channel.
    #[must_use]
    pub fn unreported_fallbacks(&self) -> &RoaringBitmap {
        &self.unreported_fallbacks
    }

    fn note_fallback(&mut self, row: Row, is_unreported: bool) {
        if is_unreported {
            self.unreported_fallbacks.insert(row.get());
        } else {
            self.unreported_fallbacks.remove(row.get());
        }
    }

    /// The channels of a row's message, as it was sent last; unknown for a row without an envelope.
    #[must_use]
    pub fn chain(&self, row: Row) -> Chain {
        let recorded = self.states.get(row.get() as usize).copied().flatten();
        recorded.and_then(|recorded| self.chains.get(usize::from(recorded.chain)).copied()).unwrap_or_default()
    }

    /// The state of a row.
    #[must_use]
    pub fn row_state(&self, row: Row, left_out: &ExcludedRows) -> RowState {
        match self.recorded_state(row) {
            Some(recorded) => self.activities.row_activity(row).final_state(recorded),
            None => {
                self.activities.row_activity(row).unattempted_state(left_out.find_reason(row).map(|(state, _)| state))
            }
        }
    }

    /// What the records of a row that has an envelope leave it in: its state as soon as its run is open.
    ///
    /// What a finished run gave up is planned here. What sends or decides goes by this, since a decision opens the run.
    #[must_use]
    pub fn recorded_state(&self, row: Row) -> Option<RowState> {
        self.states.get(row.get() as usize).copied().flatten().map(|recorded| recorded.state)
    }

    /// The last attempt of a row that has events.
    #[must_use]
    pub fn last_attempt(&self, row: Row) -> Option<Attempt> {
        self.attempts.get(&row)?.last().copied()
    }

    /// Parts billed, as far as the gateway told.
    #[must_use]
    pub fn billed_parts(&self) -> BilledParts {
        self.parts
    }

    /// Counts over all rows of a run with so many recipients.
    #[must_use]
    pub fn count_states(&self, recipients: u64, left_out: &ExcludedRows) -> StateCounts {
        let mut counts = StateCounts::default();
        for (row, state) in (0..).map(Row::new).zip(&self.states) {
            if let Some(RecordedState { state, .. }) = state {
                counts.add(self.activities.row_activity(row).final_state(*state), 1);
            }
        }
        for (state, _, rows) in left_out.sets() {
            // One that was left out after an attempt is counted as what it came to.
            counts.add(state, rows.iter().filter(|row| self.recorded_state(Row::new(*row)).is_none()).count() as u64);
        }
        counts.add(self.activities.run_activity().unattempted_state(None), recipients.saturating_sub(counts.total()));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_read_back_as_they_are_stored() {
        let mut counts = StateCounts::default();
        counts.add(RowState::Accepted, 7);
        counts.shift(RowState::Accepted, RowState::InDoubt, 2);
        let json = serde_json::to_string(&counts).unwrap();
        assert_eq!(json, r#"{"in_doubt":2,"accepted":5}"#);
        assert_eq!(serde_json::from_str::<StateCounts>(&json).unwrap(), counts);
    }

    #[test]
    fn each_state_keeps_its_own_count() {
        let mut counts = StateCounts::default();
        for state in RowState::ALL {
            counts.add(state, 10 + state as u64);
        }
        let told: Vec<(RowState, u64)> = counts.iter().collect();
        assert_eq!(told, RowState::ALL.map(|state| (state, 10 + state as u64)));
    }
}
