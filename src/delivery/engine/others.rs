//! What the engine tells those who send the run too, and learns of them.

use super::{Engine, unwritten};
use crate::delivery::stop::{Stop, StopKind};
use crate::delivery::together::{AROUND, doubtful_in_a_row};
use crate::domain::{Outcome, one_or, plural};
use crate::gateway::Reply;
use crate::ledger::LedgerError;

impl Engine {
    /// Tells that the gateway takes messages, once it does; stops where answers of all are in doubt one after another.
    pub(super) async fn tell_others(&mut self, number: u32, reply: &Reply) {
        if let Err(error) = self.tell(number, reply).await {
            self.halt(unwritten(&error));
        }
    }

    async fn tell(&mut self, number: u32, reply: &Reply) -> Result<(), LedgerError> {
        let run = self.route.lease.run;
        let is_taken = |outcome: &Outcome| matches!(outcome, Outcome::Accepted { .. } | Outcome::Queued { .. });
        if !self.proven && self.course.stopped().is_none() && reply.outcomes.iter().any(is_taken) {
            self.proven = true;
            self.route.ledger.prove(run).await?;
        }
        if reply.is_doubtful() && self.course.stopped().is_none() {
            let around = number.saturating_sub(AROUND).max(1)..=number.saturating_add(AROUND);
            let in_a_row = doubtful_in_a_row(&self.route.ledger.envelopes(run, around).await?);
            if in_a_row >= self.most_doubtful {
                let (requests, are) = (plural(in_a_row.into(), "request"), one_or(in_a_row.into(), "is", "are"));
                let reason = format!("{requests} in a row {are} in doubt across all processes of the run");
                self.halt(Stop::new(StopKind::Breaker, reason));
            }
        }
        Ok(())
    }
}
