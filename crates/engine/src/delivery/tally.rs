//! Tally of one start of a run: rows by state, billed parts, errors, and deviations from the contract. This module
//! does no I/O.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use roaring::RoaringBitmap;
use rustc_hash::FxHashSet;

use campaign_core::domain::{GatewayMessageId, OperationOutcome, Phone, Row};
use campaign_gateway::{ContractDeviation, Envelope, GatewayReply};
use campaign_ledger::{BilledParts, RowState, StateCounts};

pub use campaign_ledger::StopKind;

/// A stop with its reason in plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The kind of stop.
    pub kind: StopKind,
    /// The reason for people: a fragment without a full stop, such as `interrupted`.
    pub reason: String,
    /// Whether the cause is on this machine. A worker then leaves a shared run to processes on other machines.
    pub is_local: bool,
}

impl Stop {
    /// Creates a stop with a kind and a reason.
    pub fn new(kind: StopKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), is_local: false }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// The result of sending.
#[derive(Clone, Debug, Default)]
pub struct SendEnding {
    /// The reason why sending was stopped. `None` if sending ended without a stop.
    pub stopped: Option<Stop>,
    /// The stored row counts of the whole run, by state.
    pub counts: StateCounts,
    /// Messages of this start that were or might have been sent.
    pub sent: u64,
    /// Rows of this start whose recipients opted out after the run was planned.
    pub opted_out: RoaringBitmap,
    /// Recipients who opted out by a reply in a rehearsal.
    pub replied_opt_outs: u64,
    /// The billed parts of this start, if the gateway reported them.
    pub parts: BilledParts,
    /// The errors of this start.
    pub errors: ErrorCounts,
    /// Deviations from the contract in the answers of this start.
    pub deviations: DeviationCounts,
    /// The longest observed delay until the gateway knew a message.
    pub lag: Option<Duration>,
    /// Whether the remaining rows can no longer be sent in time.
    pub expired: bool,
    /// The stored outcome of the last operation. `None` while the operation is in flight.
    pub outcome: Option<OperationOutcome>,
}

impl SendEnding {
    /// Combines this result with a later result of the same run.
    #[must_use]
    pub fn merge(self, next: Self) -> Self {
        let mut errors = self.errors;
        errors.merge(next.errors);
        Self {
            sent: self.sent + next.sent,
            opted_out: self.opted_out | next.opted_out,
            replied_opt_outs: self.replied_opt_outs + next.replied_opt_outs,
            parts: self.parts.plus(next.parts),
            errors,
            deviations: self.deviations.merge(next.deviations),
            lag: self.lag.max(next.lag),
            expired: self.expired || next.expired,
            ..next
        }
    }
}

/// Keeps the figures of sending up to date until sending ends.
pub(super) struct RunTally {
    figures: SendEnding,
}

impl RunTally {
    /// A tally that continues from the counts of the run.
    pub(super) fn new(counts: StateCounts) -> Self {
        Self { figures: SendEnding { counts, ..SendEnding::default() } }
    }

    pub(super) fn counts(&self) -> &StateCounts {
        &self.figures.counts
    }

    /// Counts rows that are now in flight.
    pub(super) fn count_begun(&mut self, rows: usize) {
        self.shift_state(RowState::Planned, RowState::Sending, rows);
        self.figures.outcome = None;
    }

    /// Counts rows that are skipped because the recipients have opted out since the run was planned.
    pub(super) fn count_opted_out(&mut self, rows: &[Row]) {
        self.figures.opted_out.extend(rows.iter().map(|row| row.get()));
    }

    /// Moves rows from one state to another.
    pub(super) fn shift_state(&mut self, from: RowState, to: RowState, rows: usize) {
        self.figures.counts.shift(from, to, rows as u64);
    }

    /// The number of rows in flight.
    pub(super) fn count_sending(&self) -> usize {
        usize::try_from(self.figures.counts.get(RowState::Sending)).unwrap_or(usize::MAX)
    }

    /// Counts rows in flight as in doubt.
    pub(super) fn leave_in_doubt(&mut self) {
        self.shift_state(RowState::Sending, RowState::InDoubt, self.count_sending());
    }

    /// Records the time until the gateway knew a message, if it is the longest time so far.
    pub(super) fn record_lag(&mut self, lag: Option<Duration>) {
        self.figures.lag = self.figures.lag.max(lag);
    }

    /// Counts a recorded reply.
    pub(super) fn count_reply(&mut self, envelope: &Envelope, reply: &GatewayReply) {
        for (operation, outcome) in envelope.operations().iter().zip(&reply.outcomes) {
            match outcome {
                OperationOutcome::Accepted { parts, .. } => self.figures.parts.add(*parts),
                OperationOutcome::Rejected { error } => self.figures.errors.count_error(operation.phone, error),
                OperationOutcome::Queued { .. }
                | OperationOutcome::NotSent { .. }
                | OperationOutcome::InDoubt { .. } => {}
            }
            self.figures.sent += u64::from(!matches!(outcome, OperationOutcome::NotSent { .. }));
            self.shift_state(RowState::Sending, RowState::from_outcome(outcome), 1);
        }
        self.figures.outcome = reply.outcomes.last().cloned();
        self.figures.deviations.observe(reply);
    }

    /// Converts the tally to the result of sending. `is_expired` means that the remaining rows can no longer be sent in
    /// time.
    pub(super) fn into_ending(self, stopped: Option<Stop>, is_expired: bool) -> SendEnding {
        SendEnding { stopped, expired: is_expired, ..self.figures }
    }
}

/// The maximum number of kinds of errors.
const MAX_KINDS: usize = 1_000;
/// The placeholder for a phone number when errors are compared.
const HIDDEN_NUMBER: &str = "…";

/// The number of errors of each kind. Errors that differ only by phone number are of one kind.
#[derive(Clone, Debug, Default)]
pub struct ErrorCounts {
    kinds: BTreeMap<String, ErrorGroup>,
}

#[derive(Clone, Debug)]
struct ErrorGroup {
    /// The first occurrence, with a masked phone number.
    first: String,
    count: u64,
}

impl ErrorCounts {
    /// Counts an error for a message to `phone`.
    pub(super) fn count_error(&mut self, phone: Phone, error: &str) {
        let kind = phone.hide_in_text(error, HIDDEN_NUMBER);
        if let Some(known) = self.kinds.get_mut(kind.as_ref()) {
            known.count += 1;
        } else if self.kinds.len() < MAX_KINDS {
            let first = phone.hide_in_text(error, &phone.format_hint()).into_owned();
            self.kinds.insert(kind.into_owned(), ErrorGroup { first, count: 1 });
        }
    }

    /// Adds the counts of a later result of the same run. New kinds beyond `MAX_KINDS` are dropped.
    pub(super) fn merge(&mut self, other: Self) {
        for (text, kind) in other.kinds {
            let has_room = self.kinds.len() < MAX_KINDS;
            match self.kinds.get_mut(&text) {
                Some(known) => known.count += kind.count,
                None if has_room => drop(self.kinds.insert(text, kind)),
                None => {}
            }
        }
    }

    /// The most frequent errors, each with its count.
    pub fn most_frequent(&self, limit: usize) -> impl Iterator<Item = (&str, u64)> {
        let mut kinds: Vec<&ErrorGroup> = self.kinds.values().collect();
        kinds.sort_by_key(|kind| Reverse(kind.count));
        kinds.into_iter().take(limit).map(|kind| (kind.first.as_str(), kind.count))
    }
}

/// The reply with the recipient's phone number hidden in each error, so that equal errors can be compared.
pub(super) fn hide_numbers<'r>(envelope: &Envelope, reply: &'r GatewayReply) -> Cow<'r, GatewayReply> {
    let mut hidden = Cow::Borrowed(reply);
    for (index, operation) in envelope.operations().iter().enumerate() {
        let Some(OperationOutcome::Rejected { error }) = reply.outcomes.get(index) else { continue };
        if let Cow::Owned(error) = operation.phone.hide_in_text(error, HIDDEN_NUMBER) {
            hidden.to_mut().outcomes[index] = OperationOutcome::Rejected { error };
        }
    }
    hidden
}

/// The maximum number of remembered gateway identifiers. This is enough, because a gateway that repeats identifiers
/// also repeats some of these.
const MAX_REMEMBERED: usize = 10_000;

/// The deviations from the contract in one start.
#[derive(Clone, Debug, Default)]
pub struct DeviationCounts {
    counts: BTreeMap<ContractDeviation, u64>,
    known_ids: FxHashSet<GatewayMessageId>,
}

impl DeviationCounts {
    /// Counts a recorded reply.
    pub(super) fn observe(&mut self, reply: &GatewayReply) {
        for deviation in &reply.deviations {
            *self.counts.entry(*deviation).or_default() += 1;
        }
        for outcome in &reply.outcomes {
            let OperationOutcome::Accepted { msg_id: Some(msg_id), .. } = outcome else { continue };
            if self.known_ids.contains(msg_id) {
                *self.counts.entry(ContractDeviation::RepeatedMsgId).or_default() += 1;
            } else if self.known_ids.len() < MAX_REMEMBERED {
                self.known_ids.insert(msg_id.clone());
            }
        }
    }

    /// The sum of these counts and `next`.
    #[must_use]
    pub(super) fn merge(mut self, next: Self) -> Self {
        for (deviation, count) in next.counts {
            *self.counts.entry(deviation).or_default() += count;
        }
        self.known_ids.extend(next.known_ids);
        self
    }

    /// Returns each kind with its count.
    pub fn counts(&self) -> impl Iterator<Item = (ContractDeviation, u64)> {
        self.counts.iter().map(|(deviation, count)| (*deviation, *count))
    }
}

#[cfg(test)]
mod errors_tests {
    use super::*;

    #[test]
    fn errors_that_differ_only_by_phone_number_are_grouped() {
        let mut errors = ErrorCounts::default();
        for row in 0..3 {
            let phone = Phone::new(380_501_234_567 + row).unwrap();
            errors.count_error(phone, &format!("please enter a valid number, not {phone}"));
        }
        errors.count_error(Phone::new(380_501_234_567).unwrap(), "No route");
        let frequent: Vec<_> = errors.most_frequent(5).collect();
        assert_eq!(frequent, [("please enter a valid number, not 3805…67", 3), ("No route", 1)]);
    }
}

#[cfg(test)]
mod deviations_tests {
    use super::*;
    use campaign_gateway::Signal;

    #[test]
    fn every_deviation_and_every_repeated_id_is_counted() {
        let accepted = |msg_id| OperationOutcome::Accepted {
            msg_id: Some(GatewayMessageId::Number(msg_id)),
            parts: None,
            answer: None,
        };
        let reply = |ids: &[u64], deviations| GatewayReply {
            outcomes: ids.iter().map(|id| accepted(*id)).collect(),
            signal: Signal::Go,
            evidence: None,
            deviations,
        };
        let mut deviations = DeviationCounts::default();
        deviations.observe(&reply(&[1, 2, 3], Vec::new()));
        assert_eq!(deviations.counts().count(), 0);
        deviations.observe(&reply(&[7; 5], vec![ContractDeviation::NumericRequestId]));
        deviations.observe(&reply(&[7, 4], vec![ContractDeviation::NegativeMsgId, ContractDeviation::NegativeMsgId]));
        let counted: Vec<_> = deviations.counts().collect();
        let expected = [
            (ContractDeviation::NumericRequestId, 1),
            (ContractDeviation::NegativeMsgId, 2),
            (ContractDeviation::RepeatedMsgId, 5),
        ];
        assert_eq!(counted, expected);
    }
}
