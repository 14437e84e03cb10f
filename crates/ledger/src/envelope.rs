//! Envelopes: intents, permits to send, settlements and stored records.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::vec::IntoIter;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::bounds::may_have_been_sent;
use super::{
    AccountRateLimit, Allowance, Bound, Bounds, ENDED_EARLY, Lease, Ledger, LedgerError, OptOut, RowState, Run, RunId,
    SlotWait,
};
use campaign_core::domain::{Addressee, Amount, Chain, OperationKind, OperationOutcome, Row};

/// A row of an envelope.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentRow {
    /// The row of the recipient in the run.
    pub row: Row,
    /// The recipient.
    pub to: Addressee,
    /// The first bytes of the hash of its encoded operation.
    pub digest: [u8; 8],
    /// The channels of a pipeline, which the ledger stores in a separate column. Unknown for other kinds, whose type
    /// names the channels.
    #[serde(skip)]
    pub chain: Chain,
}

/// The intent of an envelope, recorded before its first byte is sent.
#[derive(Clone, Debug)]
pub struct Intent {
    /// The lease of the sender.
    pub lease: Lease,
    /// The kind of its operations.
    pub kind: OperationKind,
    /// The account whose rate limit applies.
    pub account: Allowance,
    /// The rows, in the order of the envelope's operations.
    pub rows: Vec<SentRow>,
    /// The cost of each row on its most expensive channel. Empty if prices are unknown.
    pub costs: Vec<Amount>,
    /// The bounds within which the envelope must stay, if there are any.
    pub bounds: Option<Arc<Bounds>>,
    /// The deadline for sending, if there is one.
    pub leave_by: Option<Timestamp>,
}

impl std::fmt::Debug for SentRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SentRow").field("row", &self.row).field("to", &self.to).finish_non_exhaustive()
    }
}

/// The ledger's answer to an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// The intent is recorded, and the envelope may be sent.
    Granted {
        /// The number within the run, from 1. Every attempt is a new envelope.
        envelope: u32,
        /// The wait for its slot.
        wait: SlotWait,
    },
    /// Refused: a stop was requested.
    StopRequested,
    /// Refused: another process claimed the rows.
    Lost,
    /// Refused: the recipients of these rows opted out. The rows are skipped from now on.
    OptedOut(Vec<Row>),
    /// Refused: the numbers of these rows reached a cap. The rows are skipped from now on.
    Capped(Vec<Row>),
    /// Refused: the numbers of these rows are outside the allowed countries. The rows are skipped from now on.
    OutsideCountries(Vec<Row>),
    /// Refused: only some of the first rows fit within a bound.
    BoundExceeded {
        /// The number of rows that fit.
        fits: usize,
        /// The bound that the next row exceeds.
        bound: Bound,
    },
    /// Refused: in its slot, the envelope would be sent at this time, which is not before the deadline.
    TooLate(Timestamp),
}

/// Whether the writer still holds the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The writer still holds the lease, and the write is recorded.
    Held,
    /// Another process claimed the rows, and nothing was recorded.
    Lost,
}

/// The outcome of an envelope.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// The run that sent the envelope.
    pub run: RunId,
    /// The number of the envelope.
    pub envelope: u32,
    /// The outcome of each row, in the order of the intent.
    pub outcomes: Vec<OperationOutcome>,
    /// The beginning of the body of the answer, if it needs a manual review.
    pub evidence: Option<String>,
    /// Opt-outs that the gateway reported by rejecting messages. The same commit records them.
    pub opt_outs: Vec<OptOut>,
}

/// The range of rows of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeSummary {
    /// The number of the envelope.
    pub envelope: u32,
    /// The smallest row.
    pub first: Row,
    /// The largest row.
    pub last: Row,
}

/// An envelope with its rows and their outcomes.
#[derive(Clone, Debug)]
pub struct EnvelopeRecord {
    /// The number of the envelope.
    pub envelope: u32,
    /// The kind of its operations.
    pub kind: OperationKind,
    /// The time at which the intent was recorded.
    pub begun_at: Timestamp,
    /// The rows, in the order of the intent.
    pub rows: Vec<SentRow>,
    /// The cost of each row on its most expensive channel. Empty if prices were unknown.
    pub costs: Vec<Amount>,
    /// The time of the settlement, and the outcome of each row. `None` for an open intent.
    pub settled: Option<(Timestamp, Vec<OperationOutcome>)>,
    /// The beginning of the body of the answer, if it was kept for a manual review.
    pub evidence: Option<String>,
}

/// Selects envelopes of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopeFilter {
    /// The envelopes with these numbers.
    Numbers(RangeInclusive<u32>),
    /// The undamaged envelopes with this row. Loading fails if there are none and a damaged envelope might contain the
    /// row.
    Row(Row),
}

impl EnvelopeRecord {
    /// The channels of a row's message, as sent.
    pub fn chain(&self, sent: &SentRow) -> Chain {
        match self.kind {
            OperationKind::Pipeline => sent.chain,
            kind => Chain::from(kind),
        }
    }

    /// The rows with their outcomes. An open intent has no outcomes.
    pub fn iter_rows(&self) -> impl Iterator<Item = (&SentRow, Option<&OperationOutcome>)> {
        let outcomes = self.settled.as_ref().map_or(&[][..], |(_, outcomes)| outcomes);
        self.rows.iter().enumerate().map(|(index, sent)| (sent, outcomes.get(index)))
    }

    /// The number of messages that were or might have been sent.
    pub fn count_possibly_sent(&self) -> u64 {
        let sent = self.settled.as_ref().map_or(self.rows.len(), |(_, outcomes)| {
            outcomes.iter().filter(|outcome| may_have_been_sent(outcome)).count()
        });
        sent as u64
    }

    /// The reason for doubt if the stored outcomes are corrupt.
    pub(super) const DAMAGED: &'static str = "the record of its outcome is corrupt";

    /// Whether the stored outcomes are corrupt, so that all rows count as in doubt.
    pub fn is_damaged(&self) -> bool {
        let outcomes = self.settled.iter().flat_map(|(_, outcomes)| outcomes);
        outcomes
            .into_iter()
            .any(|outcome| matches!(outcome, OperationOutcome::InDoubt { reason } if **reason == *Self::DAMAGED))
    }
}

/// The number of envelopes that are read at once.
pub(crate) const ENVELOPES_PER_READ: u32 = 256;

/// Reads the envelopes of a run in order, a few at a time. Later attempts follow earlier ones.
pub struct EnvelopeReader<'a> {
    ledger: &'a dyn Ledger,
    run: RunId,
    /// The number of the next envelope to read.
    next: u32,
    /// The envelopes that were read and not returned yet.
    buffer: IntoIter<EnvelopeRecord>,
}

impl<'a> EnvelopeReader<'a> {
    /// A reader for all envelopes of a run.
    pub fn new(ledger: &'a dyn Ledger, run: RunId) -> Self {
        Self { ledger, run, next: 1, buffer: Vec::new().into_iter() }
    }

    /// The next envelope. `None` at the end.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn next_envelope(&mut self) -> Result<Option<EnvelopeRecord>, LedgerError> {
        if self.buffer.as_slice().is_empty() {
            let numbers = self.next..=self.next.saturating_add(ENVELOPES_PER_READ - 1);
            self.buffer = self.ledger.load_envelopes(self.run, EnvelopeFilter::Numbers(numbers)).await?.into_iter();
            self.next = self.buffer.as_slice().last().map_or(self.next, |last| last.envelope.saturating_add(1));
        }
        Ok(self.buffer.next())
    }
}

/// The reason why no intent can be recorded for a run. `None` if an intent can be recorded. `is_leased` says whether
/// the sender's lease covers the rows.
pub(crate) fn find_refusal(run: &Run, is_leased: bool) -> Option<Permit> {
    match is_leased {
        false => Some(Permit::Lost),
        true => run.stop_requested.then_some(Permit::StopRequested),
    }
}

/// Whether an envelope takes a slot of the account's rate limit, because the account has a rate or the gateway
/// requested a wait. Times are in microseconds since 1970.
pub(crate) fn takes_slot(account: &Allowance, not_before: i64, now: i64) -> bool {
    account.rate.is_some() || not_before > now
}

/// The time at which an envelope is sent if it takes its slot at `now`, in microseconds since 1970.
pub(crate) fn departure_time(intent: &Intent, limit: AccountRateLimit, now: i64) -> Timestamp {
    let account = &intent.account;
    let count = u32::try_from(intent.rows.len()).unwrap_or(u32::MAX);
    let waits = takes_slot(account, limit.not_before, now);
    let wait = if waits { limit.reserve(now, count, account.rate).wait.time } else { std::time::Duration::ZERO };
    let at = now.saturating_add(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX));
    Timestamp::from_microsecond(at).unwrap_or(Timestamp::MAX)
}

/// Refuses an envelope that would be sent at or after its deadline. `None` if the envelope may be sent.
pub(crate) fn check_deadline(intent: &Intent, departs_at: Timestamp) -> Option<Permit> {
    (departs_at >= intent.leave_by?).then_some(Permit::TooLate(departs_at))
}

/// The outcomes of an open intent after another process claimed its rows.
pub(crate) fn in_doubt_outcomes(rows: usize) -> Vec<OperationOutcome> {
    let reason: Arc<str> = ENDED_EARLY.into();
    vec![OperationOutcome::InDoubt { reason }; rows]
}

/// Merges a later answer into a settled envelope. An outcome is replaced only if the later answer proves more.
pub(crate) fn merge_outcomes(known: Vec<OperationOutcome>, answer: Vec<OperationOutcome>) -> Vec<OperationOutcome> {
    let mut answer = answer.into_iter();
    known
        .into_iter()
        .map(|known| match answer.next() {
            Some(later) if is_new_proof(&known, &later) => later,
            _ => known,
        })
        .collect()
}

/// Whether a later answer proves more than the known outcome.
///
/// Late proof that nothing was sent does not count, because a decision about the row may have been made in the
/// meantime.
fn is_new_proof(known: &OperationOutcome, later: &OperationOutcome) -> bool {
    RowState::from_outcome(later) != RowState::Planned
        && RowState::from_outcome(known).can_become(RowState::from_outcome(later))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_missing_from_a_short_answer_stay_in_doubt() {
        let rejected = OperationOutcome::Rejected { error: "No route".into() };
        assert_eq!(
            merge_outcomes(in_doubt_outcomes(2), vec![rejected.clone()]),
            [rejected, in_doubt_outcomes(1).remove(0)]
        );
    }
}
