//! The state of a row, derived from its attempts, events and receipts, the activity of its run, and the rows that the
//! run excludes. The functions are pure.
//!
//! Reports, counts, the guard and the sender all use this module, so they always agree.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{
    CANCELLED, EnvelopeRecord, Judgement, Ledger, LedgerError, REPLACED, RowEvents, RowState, Run, RunProgress,
    SentRow, StoredReceipt,
};
use campaign_core::domain::{Chain, OperationOutcome, Row};

/// The activity of a run, as far as the states of its rows depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunActivity {
    /// A process is sending the run. Open intents are being sent.
    Sending,
    /// No process is sending the run. Open intents are in doubt.
    #[default]
    Idle,
    /// The run is finished. Its unsent rows count as not sent.
    Finished,
    /// The run was stopped for good. Its unsent rows are skipped.
    Cancelled,
    /// Another run replaced this run. Its unsent rows are skipped.
    Replaced,
}

/// An attempt to send a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The number of the envelope.
    pub envelope: u32,
    /// The state according to the outcome of this attempt alone.
    pub state: RowState,
    /// The channels of the message, as sent.
    pub chain: Chain,
}

/// The activity of a run and of the rows that processes have claimed.
#[derive(Clone, Debug, Default)]
pub struct RowActivities {
    run: RunActivity,
    /// The rows that processes have claimed, independent of the run's activity.
    claimed: RoaringBitmap,
    /// The newest envelope before the claims were read. A newer envelope belongs to a later claim.
    newest_envelope: Option<u32>,
}

impl RowActivities {
    /// The current activity of a run. `is_owned` says whether a process is sending the run.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger, run: &Run, is_owned: bool) -> Result<Self, LedgerError> {
        let activities = Self::from(RunActivity::from_progress(run.progress, is_owned));
        if !run.shared && run.sharding.is_none() {
            return Ok(activities);
        }
        let newest = ledger.list_envelope_summaries(run.key).await?.last().map_or(0, |summary| summary.envelope);
        Ok(Self { claimed: ledger.load_claimed_rows(run.key).await?, newest_envelope: Some(newest), ..activities })
    }

    /// The activity of the run, apart from claimed rows.
    pub fn run_activity(&self) -> RunActivity {
        self.run
    }

    /// The activity of the run, or `Sending` for a claimed row.
    pub fn row_activity(&self, row: Row) -> RunActivity {
        if self.claimed.contains(row.get()) { RunActivity::Sending } else { self.run }
    }

    /// The attempt to send a row in an envelope. Without an outcome, the intent is still open.
    pub fn build_attempt(
        &self,
        envelope: &EnvelopeRecord,
        sent: &SentRow,
        outcome: Option<&OperationOutcome>,
    ) -> Attempt {
        self.build_row_attempt(sent.row, envelope.envelope, envelope.chain(sent), outcome)
    }

    /// Like [`RowActivities::build_attempt`], but from the envelope's number and the message's channels.
    pub fn build_row_attempt(
        &self,
        row: Row,
        envelope: u32,
        chain: Chain,
        outcome: Option<&OperationOutcome>,
    ) -> Attempt {
        let is_newer = self.newest_envelope.is_some_and(|newest| envelope > newest);
        let activity = if is_newer { RunActivity::Sending } else { self.row_activity(row) };
        activity.build_attempt(envelope, chain, outcome)
    }
}

impl From<RunActivity> for RowActivities {
    fn from(run: RunActivity) -> Self {
        Self { run, claimed: RoaringBitmap::new(), newest_envelope: None }
    }
}

impl RunActivity {
    /// The activity of a run with this progress. `is_owned` says whether a process has claimed the run.
    pub fn from_progress(progress: RunProgress, is_owned: bool) -> Self {
        match progress {
            RunProgress::Finished => RunActivity::Finished,
            RunProgress::Cancelled => RunActivity::Cancelled,
            RunProgress::Open | RunProgress::Replaced if is_owned => RunActivity::Sending,
            RunProgress::Open => RunActivity::Idle,
            RunProgress::Replaced => RunActivity::Replaced,
        }
    }

    /// The attempt to send a message in an envelope on these channels. Without an outcome, the intent is still open.
    pub fn build_attempt(self, envelope: u32, chain: Chain, outcome: Option<&OperationOutcome>) -> Attempt {
        let state = match (outcome, self) {
            (Some(outcome), _) => RowState::from_outcome(outcome),
            (None, RunActivity::Sending) => RowState::Sending,
            (None, RunActivity::Idle | RunActivity::Finished | RunActivity::Cancelled | RunActivity::Replaced) => {
                RowState::InDoubt
            }
        };
        Attempt { envelope, state, chain }
    }

    /// Judges a row by its attempts and by later events and receipts.
    pub fn judge_row<'e>(
        self,
        row: Row,
        attempts: &[Attempt],
        events: &'e RowEvents,
        receipts: &'e [StoredReceipt],
    ) -> Judgement<'e> {
        let judgement = events.judge_row(self, row, attempts, receipts);
        Judgement { state: self.final_state(judgement.state), ..judgement }
    }

    /// The state of a row with a single attempt and no events.
    pub fn single_attempt_state(self, outcome: Option<&OperationOutcome>) -> RowState {
        self.final_state(self.build_attempt(1, Chain::UNKNOWN, outcome).state)
    }

    /// The state of a row without an attempt. `excluded` is the row's state if the row is excluded.
    pub fn unattempted_state(self, excluded: Option<RowState>) -> RowState {
        self.final_state(excluded.unwrap_or(RowState::Planned))
    }

    /// The state of a row with this recorded state, given the activity of the run.
    pub(super) fn final_state(self, recorded: RowState) -> RowState {
        match (self, recorded) {
            (RunActivity::Finished, RowState::Planned) => RowState::NotSent,
            (RunActivity::Cancelled | RunActivity::Replaced, RowState::Planned) => RowState::Skipped,
            _ => recorded,
        }
    }

    /// Whether the run sends nothing more, because it was cancelled or replaced. This voids orders to send a message
    /// again.
    pub(super) fn is_over(self) -> bool {
        matches!(self, RunActivity::Cancelled | RunActivity::Replaced)
    }

    /// The skip reason for rows that were unsent when the run ended.
    pub fn skip_reason(self) -> &'static str {
        match self {
            RunActivity::Replaced => REPLACED,
            RunActivity::Sending | RunActivity::Idle | RunActivity::Finished | RunActivity::Cancelled => CANCELLED,
        }
    }
}

/// The number of rows in each state. Their sum is the number of rows.
///
/// Stored and displayed by the names of the states, without zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<RowState, u64>", into = "BTreeMap<RowState, u64>")]
pub struct StateCounts([u64; RowState::ALL.len()]);

impl StateCounts {
    /// The number of rows in this state.
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

    /// Counts all planned rows as skipped, and returns their number.
    pub fn skip_planned(&mut self) -> u64 {
        let planned = self.get(RowState::Planned);
        self.shift(RowState::Planned, RowState::Skipped, planned);
        planned
    }

    /// The states that occur, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (RowState, u64)> {
        RowState::ALL.into_iter().map(|state| (state, self.get(state))).filter(|(_, count)| *count > 0)
    }

    /// The number of delivered messages, including messages that were also read: the displayed figure "delivered".
    pub fn count_delivered(&self) -> u64 {
        self.iter().filter(|(state, _)| RowState::Delivered.includes_state(*state)).map(|(_, count)| count).sum()
    }

    /// The total number of rows.
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

/// The states of all rows with an envelope. Rows without an envelope are planned or excluded.
///
/// Uses two bytes per row, so the states of five million rows fit into ten megabytes. Rows with events need more.
#[derive(Debug, Default)]
pub struct RowStates {
    activities: RowActivities,
    /// The recorded state of each row.
    states: Vec<Option<RecordedState>>,
    /// The distinct chains of all messages.
    chains: Vec<Chain>,
    parts: BilledParts,
    events: RowEvents,
    /// The rows with a failed earlier channel and no report about the last channel.
    unreported_fallbacks: RoaringBitmap,
    /// The attempts of rows with events, and of rows with an attempt that was not sent.
    attempts: FxHashMap<Row, Vec<Attempt>>,
}

/// The recorded state of a row.
#[derive(Clone, Copy, Debug)]
struct RecordedState {
    state: RowState,
    /// The index of the message's chain.
    chain: u8,
}

impl RowStates {
    /// The states of a run with this activity and these events.
    pub fn new(activities: impl Into<RowActivities>, events: RowEvents) -> Self {
        Self { activities: activities.into(), events, ..Self::default() }
    }

    /// The events of the run.
    pub fn events(&self) -> &RowEvents {
        &self.events
    }

    /// Adds an envelope. Envelopes must be added in order, because the last attempt counts.
    pub fn add_envelope(&mut self, envelope: &EnvelopeRecord) {
        for (sent, outcome) in envelope.iter_rows() {
            if let Some(OperationOutcome::Accepted { parts, .. }) = outcome {
                self.parts.add(*parts);
            }
            let attempt = self.activities.build_attempt(envelope, sent, outcome);
            let is_unsent = attempt.state == RowState::Planned;
            let activity = self.activities.row_activity(sent.row);
            let judgement = if is_unsent || self.events.has_events(sent.row) || self.attempts.contains_key(&sent.row) {
                let attempts = self.attempts.entry(sent.row).or_default();
                attempts.push(attempt);
                self.events.judge_row(activity, sent.row, attempts, &[])
            } else {
                self.events.judge_row(activity, sent.row, &[attempt], &[])
            };
            let (state, is_unreported) = (judgement.state, judgement.awaits_fallback());
            self.set_state(sent.row, state, attempt.chain);
            self.set_unreported_fallback(sent.row, is_unreported);
        }
    }

    /// Adds the receipts of a row. All envelopes must have been added before. Receipts of rows without an envelope are
    /// ignored.
    pub fn add_receipts(&mut self, row: Row, receipts: &[StoredReceipt]) {
        let Some(RecordedState { state, chain }) = self.states.get(row.get() as usize).copied().flatten() else {
            return;
        };
        let chain = self.chains.get(usize::from(chain)).copied().unwrap_or_default();
        let activity = self.activities.row_activity(row);
        let judgement = match self.attempts.get(&row) {
            Some(attempts) => self.events.judge_row(activity, row, attempts, receipts),
            // A row without events has one message, so its state is sufficient.
            None => self.events.judge_row(activity, row, &[Attempt { envelope: 0, state, chain }], receipts),
        };
        let (state, is_unreported) = (judgement.state, judgement.awaits_fallback());
        self.set_state(row, state, chain);
        self.set_unreported_fallback(row, is_unreported);
    }

    fn set_state(&mut self, row: Row, state: RowState, chain: Chain) {
        let index = row.get() as usize;
        if self.states.len() <= index {
            self.states.resize(index + 1, None);
        }
        let chain_index = self.chains.iter().position(|known| *known == chain).unwrap_or_else(|| {
            self.chains.push(chain);
            self.chains.len() - 1
        });
        // A campaign has one chain for each of its few variants. Chains beyond the limit count as unknown.
        let chain = u8::try_from(chain_index).unwrap_or(u8::MAX);
        self.states[index] = Some(RecordedState { state, chain });
    }

    /// The rows whose last report is the failure of an earlier channel.
    pub fn unreported_fallbacks(&self) -> &RoaringBitmap {
        &self.unreported_fallbacks
    }

    /// Records whether a row has a failed earlier channel and no report about the last channel.
    fn set_unreported_fallback(&mut self, row: Row, is_unreported: bool) {
        if is_unreported {
            self.unreported_fallbacks.insert(row.get());
        } else {
            self.unreported_fallbacks.remove(row.get());
        }
    }

    /// The channels of a row's last message. The channels are unknown for a row without an envelope.
    pub fn chain(&self, row: Row) -> Chain {
        let recorded = self.states.get(row.get() as usize).copied().flatten();
        recorded.and_then(|recorded| self.chains.get(usize::from(recorded.chain)).copied()).unwrap_or_default()
    }

    /// The state of a row. `excluded` matters only for a row without an envelope.
    pub fn row_state(&self, row: Row, excluded: &ExcludedRows) -> RowState {
        match self.recorded_state(row) {
            Some(recorded) => self.activities.row_activity(row).final_state(recorded),
            None => {
                self.activities.row_activity(row).unattempted_state(excluded.find_reason(row).map(|(state, _)| state))
            }
        }
    }

    /// The recorded state of a row with an envelope, which is the row's state whenever the run is open.
    ///
    /// Unsent rows of a finished run count as planned here. Sending and decisions use this state, because a decision
    /// opens the run.
    pub fn recorded_state(&self, row: Row) -> Option<RowState> {
        self.states.get(row.get() as usize).copied().flatten().map(|recorded| recorded.state)
    }

    /// The last attempt of a row with events or with an unsent attempt. `None` for other rows.
    pub fn last_attempt(&self, row: Row) -> Option<Attempt> {
        self.attempts.get(&row)?.last().copied()
    }

    /// Billed parts, as far as the gateway reported them.
    pub fn billed_parts(&self) -> BilledParts {
        self.parts
    }

    /// Counts the rows in each state, for a run with this many recipients.
    pub fn count_states(&self, recipients: u64, excluded: &ExcludedRows) -> StateCounts {
        let mut counts = StateCounts::default();
        for (row, state) in (0..).map(Row::new).zip(&self.states) {
            if let Some(RecordedState { state, .. }) = state {
                counts.add(self.activities.row_activity(row).final_state(*state), 1);
            }
        }
        for (state, _, rows) in excluded.sets() {
            // A row that was skipped after an attempt is counted under its recorded state.
            counts.add(state, rows.iter().filter(|row| self.recorded_state(Row::new(*row)).is_none()).count() as u64);
        }
        counts.add(self.activities.run_activity().unattempted_state(None), recipients.saturating_sub(counts.total()));
        counts
    }
}

/// Billed parts, and the number of messages with reported parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BilledParts {
    /// The number of parts.
    pub billed: u64,
    /// The number of messages with reported parts.
    pub messages: u64,
}

impl BilledParts {
    /// Adds the parts of a message, if they were reported.
    pub fn add(&mut self, parts: Option<u32>) {
        if let Some(parts) = parts {
            self.billed += u64::from(parts);
            self.messages += 1;
        }
    }

    /// The sum of these and the other billed parts.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { billed: self.billed + other.billed, messages: self.messages + other.messages }
    }
}

/// Rows that are `skipped` or `invalid`. Each reason has one set, so the size hardly depends on the number of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExcludedRows {
    /// The state, reason and rows of each set.
    sets: Vec<(RowState, String, RoaringBitmap)>,
    /// The position of each set in `sets`, by state and reason.
    index: HashMap<(RowState, String), usize>,
}

impl ExcludedRows {
    /// Adds a row with its reason.
    pub fn insert(&mut self, row: Row, state: RowState, reason: &str) {
        // Rows with the same reason often follow each other, so the last reason is tried first.
        let position = match self.sets.last() {
            Some((last, text, _)) if *last == state && text == reason => self.sets.len() - 1,
            _ => *self.index.entry((state, reason.to_owned())).or_insert_with(|| {
                self.sets.push((state, reason.to_owned(), RoaringBitmap::new()));
                self.sets.len() - 1
            }),
        };
        let (_, _, rows) = &mut self.sets[position];
        rows.insert(row.get());
    }

    /// Adds a set of rows that are excluded for the same reason.
    pub(super) fn insert_set(&mut self, state: RowState, reason: String, rows: RoaringBitmap) {
        let position = *self.index.entry((state, reason.clone())).or_insert(self.sets.len());
        match self.sets.get_mut(position) {
            Some((_, _, set)) => *set |= rows,
            None => self.sets.push((state, reason, rows)),
        }
    }

    /// The excluded rows for which `is_kept` returns true.
    #[must_use]
    pub fn filter(&self, is_kept: impl Fn(Row, &str) -> bool) -> Self {
        let mut filtered = Self::default();
        for (state, reason, rows) in self.sets() {
            let rows: RoaringBitmap = rows.iter().filter(|row| is_kept(Row::new(*row), reason)).collect();
            if !rows.is_empty() {
                filtered.insert_set(state, reason.to_owned(), rows);
            }
        }
        filtered
    }

    /// Removes these rows. Returns whether any of them was excluded.
    pub(super) fn remove_rows(&mut self, rows: &RoaringBitmap) -> bool {
        let is_affected = self.sets.iter().any(|(_, _, set)| !set.is_disjoint(rows));
        if is_affected {
            *self = self.filter(|row, _| !rows.contains(row.get()));
        }
        is_affected
    }

    /// Excluded rows that are all skipped for the same reason.
    pub(super) fn from_skipped(rows: &[Row], reason: &str) -> Self {
        let mut excluded = Self::default();
        rows.iter().for_each(|row| excluded.insert(*row, RowState::Skipped, reason));
        excluded
    }

    /// The sets of excluded rows, each with its state and reason.
    pub fn sets(&self) -> impl Iterator<Item = (RowState, &str, &RoaringBitmap)> {
        self.sets.iter().map(|(state, reason, rows)| (*state, reason.as_str(), rows))
    }

    /// All excluded rows.
    pub fn rows(&self) -> RoaringBitmap {
        self.sets.iter().fold(RoaringBitmap::new(), |all, (_, _, rows)| all | rows)
    }

    /// The state and reason of a row, if it is excluded.
    pub fn find_reason(&self, row: Row) -> Option<(RowState, &str)> {
        self.sets().find(|(_, _, rows)| rows.contains(row.get())).map(|(state, reason, _)| (state, reason))
    }

    /// The number of rows in this state.
    pub fn count_rows(&self, state: RowState) -> u64 {
        self.sets.iter().filter(|(set_state, ..)| *set_state == state).map(|(_, _, rows)| rows.len()).sum()
    }

    /// The rows in ascending order, with state and reason.
    pub fn iter_by_row(&self) -> impl Iterator<Item = (Row, RowState, &str)> {
        let mut iterators: Vec<_> = self.sets.iter().map(|(_, _, rows)| rows.iter()).collect();
        let mut heads: BinaryHeap<Reverse<(u32, usize)>> = iterators
            .iter_mut()
            .enumerate()
            .filter_map(|(set, rows)| rows.next().map(|row| Reverse((row, set))))
            .collect();
        std::iter::from_fn(move || {
            let Reverse((row, set)) = heads.pop()?;
            heads.extend(iterators[set].next().map(|next| Reverse((next, set))));
            let (state, reason, _) = &self.sets[set];
            Some((Row::new(row), *state, reason.as_str()))
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{Author, ExcludedRows, RowChange, RowEvent, RowStates};
    use campaign_core::domain::{Endpoint, OperationKind, Phone};

    const ACTIVITIES: [RunActivity; 4] =
        [RunActivity::Sending, RunActivity::Idle, RunActivity::Finished, RunActivity::Cancelled];
    const ROW: Row = Row::FIRST;

    fn sent(row: Row) -> SentRow {
        let to = Phone::new(380_501_234_567).unwrap().into();
        SentRow { row, to, digest: [0; 8], chain: Chain::UNKNOWN }
    }

    fn outcomes() -> [Option<OperationOutcome>; 6] {
        [
            None,
            Some(OperationOutcome::Accepted { msg_id: None, parts: None, answer: None }),
            Some(OperationOutcome::Queued { request_id: "r".into() }),
            Some(OperationOutcome::Rejected { error: "No route".into() }),
            Some(OperationOutcome::NotSent { reason: "refused".into() }),
            Some(OperationOutcome::InDoubt { reason: "silence".into() }),
        ]
    }

    fn changes() -> [RowChange; 8] {
        let (by, reason) = (Author::Person("olena".into()), None);
        let found = |status: &str| RowChange::Found { status: status.into(), msg_id: None, channel: None };
        [
            found("DELIVERED"),
            found("REJECTED"),
            RowChange::NotFound { asked: 3 },
            RowChange::Unresolved { asked: 20 },
            RowChange::AssumedSent { by: by.clone(), why: reason.clone() },
            RowChange::NotSent { by: by.clone(), why: reason.clone() },
            RowChange::SendAgain { by: by.clone(), why: reason },
            RowChange::Retry { by, order: 1 },
        ]
    }

    /// No event, each single event, and each pair of events, about either of two envelopes.
    fn events() -> Vec<Vec<RowEvent>> {
        let event = |change, envelope| RowEvent { row: ROW, envelope, at: Timestamp::UNIX_EPOCH, change };
        let single: Vec<RowEvent> =
            changes().into_iter().flat_map(|change| [1, 2].map(|envelope| event(change.clone(), envelope))).collect();
        let pairs = single.iter().flat_map(|first| single.iter().map(|second| vec![first.clone(), second.clone()]));
        [vec![]].into_iter().chain(single.iter().map(|event| vec![event.clone()])).chain(pairs).collect()
    }

    /// The outcomes of one or two attempts. The first of two attempts is always settled.
    fn attempts() -> Vec<Vec<Option<OperationOutcome>>> {
        let settled = outcomes().into_iter().filter(Option::is_some);
        let twice = settled.flat_map(|first| outcomes().map(|second| vec![first.clone(), second]));
        outcomes().map(|only| vec![only]).into_iter().chain(twice).collect()
    }

    /// The states of a row while its run is sending, idle, finished or cancelled.
    fn states(attempts: &[Option<OperationOutcome>], events: &RowEvents) -> [RowState; 4] {
        ACTIVITIES.map(|activity| {
            let attempt = |(envelope, outcome): (u32, &Option<OperationOutcome>)| {
                activity.build_attempt(envelope, OperationKind::Sms.into(), outcome.as_ref())
            };
            let attempts: Vec<Attempt> = (1..).zip(attempts).map(attempt).collect();
            activity.judge_row(ROW, &attempts, events, &[]).state
        })
    }

    fn check_all_cases(check: impl Fn(&[Option<OperationOutcome>], &[RowEvent], [RowState; 4])) {
        let (attempts, events) = (attempts(), events());
        assert!(attempts.len() * events.len() > 9_000, "too few cases");
        for events in &events {
            let folded = RowEvents::new(events.clone(), Endpoint::Sync);
            attempts.iter().for_each(|attempts| check(attempts, events, states(attempts, &folded)));
        }
    }

    #[test]
    fn row_without_events_has_the_state_of_its_last_attempt() {
        let expected = [
            [RowState::Sending, RowState::InDoubt, RowState::InDoubt, RowState::InDoubt],
            [RowState::Accepted; 4],
            [RowState::Queued; 4],
            [RowState::Rejected; 4],
            [RowState::Planned, RowState::Planned, RowState::NotSent, RowState::Skipped],
            [RowState::InDoubt; 4],
        ];
        for (outcome, expected) in outcomes().into_iter().zip(expected) {
            for before in outcomes() {
                assert_eq!(states(&[before, outcome.clone()], &RowEvents::default()), expected, "{outcome:?}");
            }
        }
        let excluded = [None, Some(RowState::Skipped), Some(RowState::Invalid)];
        let reported = excluded.map(|excluded| ACTIVITIES.map(|activity| activity.unattempted_state(excluded)));
        let unsent = [RowState::Planned, RowState::Planned, RowState::NotSent, RowState::Skipped];
        assert_eq!(reported, [unsent, [RowState::Skipped; 4], [RowState::Invalid; 4]]);
    }

    #[test]
    fn open_intent_is_sending_until_there_is_proof() {
        check_all_cases(|attempts, events, [sending, idle, ..]| {
            if attempts.last() != Some(&None) {
                assert_eq!(sending, idle, "{attempts:?} {events:?}: only open intents depend on the owner");
                return;
            }
            let is_proof = |event: &RowEvent| {
                event.envelope as usize == attempts.len() && matches!(event.change, RowChange::Found { .. })
            };
            // `Planned` is possible, because a retry can be ordered after a known failure.
            let ends = [RowState::Accepted, RowState::Failed, RowState::Planned];
            let expected = if events.iter().any(is_proof) { ends } else { [RowState::Sending; 3] };
            assert!(expected.contains(&sending), "{attempts:?} {events:?}: {sending}");
        });
    }

    #[test]
    fn planned_rows_become_not_sent_or_skipped_when_a_run_ends() {
        let mut excluded = ExcludedRows::default();
        excluded.insert(ROW, RowState::Skipped, REPLACED);
        check_all_cases(|attempts, events, [_, idle, finished, cancelled]| {
            let expected = if idle == RowState::Planned { RowState::NotSent } else { idle };
            assert_eq!(finished, expected, "{attempts:?} {events:?}");
            // Orders to send a message again are void, as for a skipped row.
            let events = RowEvents::new(events.to_vec(), Endpoint::Sync).with_excluded_rows(&excluded);
            let [_, skipped, ..] = states(attempts, &events);
            // A person's decision that nothing was sent remains.
            let is_unsent = cancelled == RowState::NotSent && skipped == RowState::Skipped;
            assert!(is_unsent || cancelled == skipped, "{attempts:?} {events:?}: {cancelled}, {skipped}");
        });
    }

    #[test]
    fn cancelled_run_skips_no_row_with_a_message() {
        check_all_cases(|attempts, events, [_, idle, _, cancelled]| {
            let mut changes = events.iter().map(|event| &event.change);
            let is_unsent = matches!(attempts.last(), Some(Some(OperationOutcome::NotSent { .. })))
                || changes.any(|change| matches!(change, RowChange::NotSent { .. } | RowChange::NotFound { .. }));
            if !is_unsent && idle == RowState::Planned {
                assert!(
                    cancelled != RowState::Skipped && cancelled != RowState::Planned,
                    "{attempts:?} {events:?}: {cancelled}"
                );
            }
        });
    }

    #[test]
    fn replaced_run_skips_the_rows_that_it_did_not_send() {
        for state in RowState::ALL {
            let expected = if state == RowState::Planned { RowState::Skipped } else { state };
            assert_eq!(RunActivity::Replaced.final_state(state), expected, "{state}");
        }
        let replaced = RunActivity::from_progress(RunProgress::Replaced, false);
        assert_eq!((replaced, replaced.skip_reason()), (RunActivity::Replaced, REPLACED));
        assert_eq!(replaced.single_attempt_state(None), RowState::InDoubt, "no process owns its requests");
    }

    #[test]
    fn events_about_an_earlier_attempt_do_not_change_the_state() {
        // If an earlier attempt is in doubt, a cancelled run leaves the message in doubt.
        check_all_cases(|attempts, events, [sending, idle, finished, _]| {
            let last = attempts.len();
            let about: Vec<RowEvent> = events.iter().filter(|event| event.envelope as usize == last).cloned().collect();
            let about_last = states(attempts, &RowEvents::new(about, Endpoint::Sync));
            assert_eq!(about_last[..3], [sending, idle, finished], "{attempts:?} {events:?}");
        });
    }

    #[test]
    fn row_in_a_guarded_state_has_a_message() {
        check_all_cases(|attempts, events, reported| {
            let folded = RowEvents::new(events.to_vec(), Endpoint::Sync);
            let all: Vec<Attempt> = (1..)
                .zip(attempts)
                .map(|(envelope, outcome)| {
                    RunActivity::Idle.build_attempt(envelope, OperationKind::Sms.into(), outcome.as_ref())
                })
                .collect();
            let guarded = folded.has_message(RunActivity::Idle, ROW, &all, &[]);
            // A decision about the last attempt does not apply while the attempt is being sent.
            let has_event = events.iter().any(|event| event.envelope as usize == attempts.len());
            let reported = if has_event { &reported[1..] } else { &reported[..] };
            assert!(
                guarded || !reported.iter().any(|state| state.is_guarded()),
                "{attempts:?} {events:?}: {reported:?}"
            );
            let is_any_guarded = all.iter().any(|attempt| attempt.state.is_guarded());
            assert!(
                !events.is_empty() || guarded == is_any_guarded,
                "{attempts:?}: without events, every sent attempt guards"
            );
        });
    }

    #[test]
    fn open_intent_of_a_claimed_row_is_not_in_doubt() {
        let claimed = RoaringBitmap::from([3]);
        let activities = RowActivities { run: RunActivity::Finished, claimed, newest_envelope: Some(7) };
        let accepted = outcomes()[1].clone();
        for (row, envelope, outcome, expected) in [
            (2, 6, None, RowState::InDoubt),
            (3, 7, None, RowState::Sending),
            // This envelope was begun after the claims were read.
            (4, 8, None, RowState::Sending),
            (2, 6, accepted.as_ref(), RowState::Accepted),
            (4, 8, accepted.as_ref(), RowState::Accepted),
        ] {
            let record = EnvelopeRecord {
                envelope,
                kind: OperationKind::Sms,
                begun_at: Timestamp::UNIX_EPOCH,
                rows: vec![sent(Row::new(row))],
                costs: Vec::new(),
                settled: None,
                evidence: None,
            };
            let attempt = activities.build_attempt(&record, &record.rows[0], outcome);
            assert_eq!((attempt.envelope, attempt.state), (envelope, expected), "row {row} {outcome:?}");
        }
    }

    #[test]
    fn run_counts_match_the_states_of_its_rows() {
        check_all_cases(|attempts, events, reported| {
            for (activity, reported) in ACTIVITIES.into_iter().zip(reported) {
                let mut states = RowStates::new(activity, RowEvents::new(events.to_vec(), Endpoint::Sync));
                for (envelope, outcome) in (1..).zip(attempts) {
                    let rows = vec![sent(ROW)];
                    let settled = outcome.clone().map(|outcome| (Timestamp::UNIX_EPOCH, vec![outcome]));
                    states.add_envelope(&EnvelopeRecord {
                        envelope,
                        kind: OperationKind::Sms,
                        begun_at: Timestamp::UNIX_EPOCH,
                        rows,
                        costs: Vec::new(),
                        settled,
                        evidence: None,
                    });
                }
                let none = ExcludedRows::default();
                assert_eq!(states.row_state(ROW, &none), reported, "{attempts:?} {events:?} {activity:?}");
                let mut expected = crate::StateCounts::default();
                [reported, activity.unattempted_state(None)].into_iter().for_each(|state| expected.add(state, 1));
                assert_eq!(states.count_states(2, &none), expected, "{attempts:?} {events:?} {activity:?}");
            }
        });
    }
}

#[cfg(test)]
mod count_tests {
    use super::*;

    #[test]
    fn counts_round_trip_as_json() {
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
        let reported: Vec<(RowState, u64)> = counts.iter().collect();
        assert_eq!(reported, RowState::ALL.map(|state| (state, 10 + state as u64)));
    }
}

#[cfg(test)]
mod excluded_rows_tests {
    use super::*;

    #[test]
    fn excluded_rows_are_listed_in_order_with_their_reasons() {
        let mut excluded = ExcludedRows::default();
        let rows = [
            (7, RowState::Invalid, "empty"),
            (2, RowState::Skipped, "twice"),
            (3, RowState::Invalid, "empty"),
            (9, RowState::Skipped, "sent"),
        ];
        for (row, state, reason) in rows {
            excluded.insert(Row::new(row), state, reason);
        }
        let order: Vec<_> = excluded.iter_by_row().map(|(row, state, reason)| (row.get(), state, reason)).collect();
        assert_eq!(
            order,
            [
                (2, RowState::Skipped, "twice"),
                (3, RowState::Invalid, "empty"),
                (7, RowState::Invalid, "empty"),
                (9, RowState::Skipped, "sent")
            ]
        );
        assert_eq!((excluded.count_rows(RowState::Invalid), excluded.count_rows(RowState::Skipped)), (2, 2));
    }
}
