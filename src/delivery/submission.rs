//! One envelope on its way: intent, both gates, the request; and its settlement.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::gate::Gate;
use crate::gateway::{Envelope, Gateway, Reply, Signal, Verdict};
use crate::ledger::{Begun, Intent, Ledger, LedgerError, Outcome, Owner, RunId, SentRow, Settlement};

/// How much longer than the request's own time-out anybody waits for it.
const GRACE: Duration = Duration::from_secs(5);

/// What every envelope of a start shares.
pub(super) struct Route {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) gateway: Arc<dyn Gateway>,
    pub(super) run: RunId,
    pub(super) owner: Owner,
    /// The account, and its operations per second; `None` does not wait.
    pub(super) account: (Arc<str>, Option<f64>),
    pub(super) gate: Gate,
    pub(super) timeout: Duration,
    /// Becomes true when no envelope is to go out any more.
    pub(super) stopping: watch::Receiver<bool>,
}

/// How an envelope's way to the gateway ended.
pub(super) enum Sent {
    /// It was sent, and this came back.
    Replied(Reply),
    /// No intent was recorded, so nothing was sent.
    Refused(Begun),
}

impl Route {
    /// Records the intent, waits for the gates, sends.
    ///
    /// # Errors
    /// When the intent cannot be recorded; nothing was sent then.
    pub(super) async fn send(&self, number: u32, envelope: &Envelope) -> Result<Sent, LedgerError> {
        let rows = envelope
            .operations()
            .iter()
            .map(|operation| SentRow { row: operation.row, phone: operation.phone, digest: operation.digest })
            .collect();
        let account = self.account.clone();
        let intent = Intent { run: self.run, envelope: number, owner: self.owner, account, rows };
        match self.ledger.begin(intent).await? {
            Begun::After(wait) => {
                let mut stopping = self.stopping.clone();
                tokio::select! {
                    biased;
                    () = self.pass_gates(wait, envelope) => {}
                    _ = stopping.wait_for(|&stopping| stopping) => return Ok(Sent::Replied(held_back(envelope))),
                }
            }
            refused => return Ok(Sent::Refused(refused)),
        }
        let reply = tokio::time::timeout(self.timeout + GRACE, self.gateway.submit(envelope)).await;
        Ok(Sent::Replied(reply.unwrap_or_else(|_| self.silence(envelope))))
    }

    async fn pass_gates(&self, wait: Duration, envelope: &Envelope) {
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        self.gate.pass(envelope.operations().len()).await;
    }

    /// Records what became of the envelope.
    ///
    /// # Errors
    /// When it cannot be recorded; the intent stays, and with it the doubt.
    pub(super) async fn settle(&self, number: u32, reply: &Reply) -> Result<(), LedgerError> {
        let outcomes = reply.verdicts.iter().map(outcome).collect();
        let evidence = reply.evidence.clone();
        self.ledger.settle(Settlement { run: self.run, envelope: number, outcomes, evidence }).await
    }

    fn silence(&self, envelope: &Envelope) -> Reply {
        let reason = format!("no answer within {} s", self.timeout.as_secs_f64());
        let doubt = Verdict::InDoubt { reason: reason.as_str().into() };
        Reply::all(envelope.operations().len(), &doubt, Signal::Broken(reason))
    }
}

/// The reply to an envelope that never left because the run stopped first.
fn held_back(envelope: &Envelope) -> Reply {
    let reason = "the run stopped before it was sent".into();
    Reply::all(envelope.operations().len(), &Verdict::NotSent { reason }, Signal::Go)
}

fn outcome(verdict: &Verdict) -> Outcome {
    match verdict.clone() {
        Verdict::Accepted { msg_id, parts, answer } => Outcome::Accepted { msg_id, parts, answer },
        Verdict::Queued { request_id } => Outcome::Queued { request_id },
        Verdict::Rejected { error } => Outcome::Rejected { error },
        Verdict::NotSent { reason } => Outcome::NotSent { reason },
        Verdict::InDoubt { reason } => Outcome::InDoubt { reason },
    }
}
