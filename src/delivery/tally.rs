//! What a start counts: rows by state, parts, errors, oddities. Pure.

use std::time::Duration;

use super::errors::ErrorCounts;
use super::oddities::DeviationCounts;
use super::start::SendEnding;
use super::stop::Stop;
use crate::domain::OperationOutcome;
use crate::gateway::{Envelope, GatewayReply};
use crate::ledger::{BilledParts, RowState, StateCounts};

/// The figures of one start; the counts are those of the whole run.
pub(super) struct RunTally {
    counts: StateCounts,
    sent: u64,
    opted_out: u64,
    parts: BilledParts,
    errors: ErrorCounts,
    oddities: DeviationCounts,
    lag: Option<Duration>,
    /// What became of what was recorded last; nothing once more is on its way.
    outcome: Option<OperationOutcome>,
}

impl RunTally {
    /// A tally that goes on from the counts of the run before this start.
    pub(super) fn new(counts: StateCounts) -> Self {
        Self {
            counts,
            sent: 0,
            opted_out: 0,
            parts: BilledParts::default(),
            errors: ErrorCounts::default(),
            oddities: DeviationCounts::default(),
            lag: None,
            outcome: None,
        }
    }

    pub(super) fn counts(&self) -> &StateCounts {
        &self.counts
    }

    /// So many rows are on their way now.
    pub(super) fn count_begun(&mut self, rows: usize) {
        self.shift_state(RowState::Planned, RowState::Sending, rows);
        self.outcome = None;
    }

    /// The people of so many rows opted out meanwhile.
    pub(super) fn count_opted_out(&mut self, rows: usize) {
        self.opted_out += rows as u64;
    }

    /// So many rows go from one state to another.
    pub(super) fn shift_state(&mut self, from: RowState, to: RowState, rows: usize) {
        self.counts.shift(from, to, rows as u64);
    }

    /// Rows on their way.
    pub(super) fn count_sending(&self) -> usize {
        usize::try_from(self.counts.get(RowState::Sending)).unwrap_or(usize::MAX)
    }

    /// What is on its way is left there.
    pub(super) fn leave_in_doubt(&mut self) {
        self.shift_state(RowState::Sending, RowState::InDoubt, self.count_sending());
    }

    /// How late the gateway was seen to know a message.
    pub(super) fn record_lag(&mut self, lag: Option<Duration>) {
        self.lag = self.lag.max(lag);
    }

    /// Counts an answer that is recorded.
    pub(super) fn count_reply(&mut self, envelope: &Envelope, reply: &GatewayReply) {
        for (operation, outcome) in envelope.operations().iter().zip(&reply.outcomes) {
            match outcome {
                OperationOutcome::Accepted { parts, .. } => self.parts.add(*parts),
                OperationOutcome::Rejected { error } => self.errors.count_error(operation.phone, error),
                OperationOutcome::Queued { .. }
                | OperationOutcome::NotSent { .. }
                | OperationOutcome::InDoubt { .. } => {}
            }
            self.sent += u64::from(!matches!(outcome, OperationOutcome::NotSent { .. }));
            self.shift_state(RowState::Sending, RowState::from_outcome(outcome), 1);
        }
        self.outcome = reply.outcomes.last().cloned();
        self.oddities.observe(reply);
    }

    /// The end of the start.
    pub(super) fn into_ending(self, stopped: Option<Stop>) -> SendEnding {
        let Self { counts, sent, opted_out, parts, errors, oddities, lag, outcome } = self;
        SendEnding { stopped, counts, sent, opted_out, parts, errors, oddities, lag, expired: false, outcome }
    }
}
