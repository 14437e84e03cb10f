//! What a start counts: rows by state, parts, errors, oddities. Pure.

use std::time::Duration;

use super::errors::Errors;
use super::oddities::Oddities;
use super::start::Ending;
use super::stop::Stop;
use crate::domain::Outcome;
use crate::gateway::{Envelope, Reply};
use crate::ledger::{Parts, State, StateCounts};

/// The figures of one start; the counts are those of the whole run.
pub(super) struct Tally {
    counts: StateCounts,
    sent: u64,
    opted_out: u64,
    parts: Parts,
    errors: Errors,
    oddities: Oddities,
    lag: Option<Duration>,
    /// What became of what was recorded last; nothing once more is on its way.
    outcome: Option<Outcome>,
}

impl Tally {
    /// A tally that goes on from the counts of the run before this start.
    pub(super) fn new(counts: StateCounts) -> Self {
        Self {
            counts,
            sent: 0,
            opted_out: 0,
            parts: Parts::default(),
            errors: Errors::default(),
            oddities: Oddities::default(),
            lag: None,
            outcome: None,
        }
    }

    pub(super) fn counts(&self) -> &StateCounts {
        &self.counts
    }

    /// So many rows are on their way now.
    pub(super) fn begun(&mut self, rows: usize) {
        self.shift(State::Planned, State::Sending, rows);
        self.outcome = None;
    }

    /// The people of so many rows opted out meanwhile.
    pub(super) fn opted_out(&mut self, rows: usize) {
        self.opted_out += rows as u64;
    }

    /// So many rows go from one state to another.
    pub(super) fn shift(&mut self, from: State, to: State, rows: usize) {
        self.counts.shift(from, to, rows as u64);
    }

    /// Rows on their way.
    pub(super) fn sending(&self) -> usize {
        usize::try_from(self.counts.get(State::Sending)).unwrap_or(usize::MAX)
    }

    /// What is on its way is left there.
    pub(super) fn leave(&mut self) {
        self.shift(State::Sending, State::InDoubt, self.sending());
    }

    /// How late the gateway was seen to know a message.
    pub(super) fn lagged(&mut self, lag: Option<Duration>) {
        self.lag = self.lag.max(lag);
    }

    /// Counts an answer that is recorded.
    pub(super) fn recorded(&mut self, envelope: &Envelope, reply: &Reply) {
        for (operation, outcome) in envelope.operations().iter().zip(&reply.outcomes) {
            match outcome {
                Outcome::Accepted { parts, .. } => self.parts.add(*parts),
                Outcome::Rejected { error } => self.errors.count(operation.phone, error),
                Outcome::Queued { .. } | Outcome::NotSent { .. } | Outcome::InDoubt { .. } => {}
            }
            self.sent += u64::from(!matches!(outcome, Outcome::NotSent { .. }));
            self.shift(State::Sending, State::of(outcome), 1);
        }
        self.outcome = reply.outcomes.last().cloned();
        self.oddities.observe(reply);
    }

    /// The end of the start.
    pub(super) fn end(self, stopped: Option<Stop>) -> Ending {
        let Self { counts, sent, opted_out, parts, errors, oddities, lag, outcome } = self;
        Ending { stopped, counts, sent, opted_out, parts, errors, oddities, lag, expired: false, outcome }
    }
}
