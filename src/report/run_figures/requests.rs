//! The requests of a run: how many, how fast, how long until they were answered, and what they use of a budget. Pure.

use std::time::Duration;

use hdrhistogram::Histogram;
use jiff::Timestamp;

use super::timeline::Timeline;
use crate::domain::{Amount, OperationOutcome, Spending};
use crate::ledger::{BilledParts, EnvelopeRecord, RowEvents};

/// The longest time that is told apart from longer ones, in milliseconds: a day.
const MAX_ANSWER_MS: u64 = 86_400_000;

/// The requests of a run.
#[derive(Clone, Debug)]
pub struct RequestFigures {
    /// How many.
    pub requests: u64,
    /// How many of them brought no answer that proves anything, or none at all.
    pub unanswered: u64,
    /// The messages in them, those among them that were sent again.
    pub messages: u64,
    /// The same by the time at which their requests were recorded.
    pub sent: Timeline<()>,
    /// Parts that were billed, as far as the gateway told.
    pub parts: BilledParts,
    /// What the messages use of a budget that went out, or may have, by the dearest channel of each.
    pub used: Spending,
    /// What the messages would have used that did not go out.
    pub given_back: Amount,
    /// Whether it is known of each message what it costs.
    pub priced: bool,
    /// How long the requests took from their record to their answer, in milliseconds.
    pub(super) answers: Histogram<u64>,
}

impl Default for RequestFigures {
    fn default() -> Self {
        Self {
            requests: 0,
            unanswered: 0,
            messages: 0,
            sent: Timeline::default(),
            parts: BilledParts::default(),
            used: Spending::default(),
            given_back: Amount::default(),
            priced: true,
            answers: Histogram::new_with_max(MAX_ANSWER_MS, 3).expect("these bounds are those of a histogram"),
        }
    }
}

impl RequestFigures {
    /// Adds a request; `events` are those of the run's rows.
    pub(in crate::report) fn add_envelope(&mut self, envelope: &EnvelopeRecord, events: &RowEvents) {
        let rows = envelope.rows.len() as u64;
        self.requests += 1;
        self.messages += rows;
        self.sent.add_count(envelope.begun_at, (), rows);
        let outcomes = envelope.settled.as_ref().map_or(&[][..], |(_, outcomes)| outcomes);
        if outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::InDoubt { .. })) {
            self.unanswered += 1;
        } else if let Some((at, _)) = &envelope.settled {
            self.add_answer(envelope.begun_at, *at);
        }
        for outcome in outcomes {
            if let OperationOutcome::Accepted { parts, .. } = outcome {
                self.parts.add(*parts);
            }
        }
        self.priced &= envelope.costs.len() == envelope.rows.len();
        let used = envelope.spending(events);
        let all: Amount = envelope.costs.iter().copied().sum();
        self.used = self.used.add_spending(used);
        self.given_back = self.given_back.saturating_add(all.saturating_sub(used.cost));
    }

    fn add_answer(&mut self, begun_at: Timestamp, at: Timestamp) {
        if let Ok(time) = Duration::try_from(begun_at.duration_until(at)) {
            self.answers.saturating_record(u64::try_from(time.as_millis()).unwrap_or(MAX_ANSWER_MS));
        }
    }

    /// How long so many of a hundred requests took at most from their record to their answer, their turn at the account's pace
    /// among it; nothing where none was answered.
    #[must_use]
    pub fn answer_quantile(&self, of_100: u8) -> Option<Duration> {
        let share = f64::from(of_100) / 100.0;
        (!self.answers.is_empty()).then(|| Duration::from_millis(self.answers.value_at_quantile(share)))
    }
}
