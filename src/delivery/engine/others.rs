//! What the engine tells those who send the run too, and learns of them.

use super::{Engine, ledger_stop};
use crate::delivery::stop::{Stop, StopKind};
use crate::delivery::together::{DOUBT_WINDOW, count_doubtful_in_a_row};
use crate::domain::{OperationOutcome, choose_plural, format_count};
use crate::gateway::GatewayReply;
use crate::ledger::LedgerError;

impl Engine {
    /// Tells that the gateway takes messages, once it does; stops where answers of all are in doubt one after another.
    pub(super) async fn share_progress(&mut self, number: u32, reply: &GatewayReply) {
        if let Err(error) = self.update_shared_run(number, reply).await {
            self.stop_sending(ledger_stop(&error));
        }
    }

    async fn update_shared_run(&mut self, number: u32, reply: &GatewayReply) -> Result<(), LedgerError> {
        let run = self.route.lease.run;
        let is_taken = |outcome: &OperationOutcome| {
            matches!(outcome, OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. })
        };
        if !self.proven && self.course.stop_reason().is_none() && reply.outcomes.iter().any(is_taken) {
            self.proven = true;
            self.route.ledger.mark_proven(run).await?;
        }
        if reply.is_doubtful() && self.course.stop_reason().is_none() {
            let around = number.saturating_sub(DOUBT_WINDOW).max(1)..=number.saturating_add(DOUBT_WINDOW);
            let in_a_row = count_doubtful_in_a_row(&self.route.ledger.load_envelopes(run, around).await?);
            if in_a_row >= self.most_doubtful {
                let (requests, are) =
                    (format_count(in_a_row.into(), "request"), choose_plural(in_a_row.into(), "is", "are"));
                let reason = format!("{requests} in a row {are} in doubt across all processes of the run");
                self.stop_sending(Stop::new(StopKind::Breaker, reason));
            }
        }
        Ok(())
    }
}
