//! One envelope on its way: its turn, the intent, the account's slot, the request; and its settlement.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use super::course::QueuedMessage;
use super::event::{AfterWait, DeliveryEvent, Observer};
use super::gate::Gate;
use super::hours::Hours;
use super::slow_answers::SlowAnswers;
use super::watchdog::{Step, Waiting, Watchdog};
use crate::domain::{Arrival, Outcome, ReportedChannel, Row, Status};
use crate::failpoint;
use crate::gateway::{Envelope, Gateway, MayLeave, Reply, Signal};
use crate::ledger::{
    Allowance, Bound, Bounds, Change, Intent, KeptReceipt, Lease, Ledger, LedgerError, NewRowEvent, Ownership, Permit,
    SentRow, Settlement,
};

/// How much longer than the request's own time-out anybody waits for it.
const GRACE: Duration = Duration::from_secs(5);

/// A longer wait for the account's slot is told.
const TOLD: Duration = Duration::from_secs(2);

/// What every envelope of a start shares.
pub(super) struct Route {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) gateway: Arc<dyn Gateway>,
    pub(super) lease: Lease,
    /// The account whose pace it takes from.
    pub(super) account: Allowance,
    /// What each intent has to keep within.
    pub(super) bounds: Option<Arc<Bounds>>,
    pub(super) gate: Gate,
    /// The campaign's own pace, which several processes keep together.
    pub(super) pace: Option<Allowance>,
    pub(super) timeout: Duration,
    pub(super) watchdog: Watchdog,
    pub(super) slow: SlowAnswers,
    /// Who is told of long waits.
    pub(super) observer: Observer,
    /// When messages may leave; nothing where they may at any time.
    pub(super) hours: Option<Arc<Hours>>,
}

/// How an envelope's way to the gateway ended.
pub(super) enum Submission {
    /// It was sent under this number, and this came back.
    Replied(u32, Reply),
    /// It was called back before its first byte left; the reply says so of each operation.
    HeldBack(u32, Reply),
    /// It was called back before its intent, so nothing is to be recorded.
    Recalled,
    /// Nothing was sent: the people of these rows opted out and are left out; the others go out in another envelope.
    OptedOut(Vec<Row>),
    /// Nothing was sent: the numbers of these rows got as many messages as they may; the others go out in another envelope.
    Capped(Vec<Row>),
    /// Nothing was sent: earlier messages of these rows were delivered meanwhile; the others go out in another envelope.
    Delivered(Vec<Row>),
    /// Nothing was sent: only so many of its first operations keep within the bounds.
    Over(usize, Bound),
    /// Nothing was sent: it would leave at this moment, which is too late for some of its operations.
    Late(Timestamp),
    /// No intent was recorded, so nothing was sent.
    Refused(Permit),
}

impl Route {
    /// Waits for the envelope's turn, records the intent, waits for the account's slot, sends.
    ///
    /// A change of `recalls` calls it back as long as it waits.
    ///
    /// # Errors
    /// When the intent cannot be recorded; nothing was sent then.
    pub(super) async fn send(
        &self,
        envelope: &Envelope,
        mut recalls: watch::Receiver<u64>,
    ) -> Result<Submission, LedgerError> {
        let began = Instant::now();
        let turn = tokio::select! {
            biased;
            _ = recalls.changed() => return Ok(Submission::Recalled),
            turn = self.gate.turn(envelope.operations().len()) => turn,
        };
        if let Some(pace) = &self.pace {
            let count = u32::try_from(envelope.operations().len()).unwrap_or(u32::MAX);
            let wait = self.ledger.reserve(pace, count).await?;
            tokio::select! {
                biased;
                _ = recalls.changed() => return Ok(Submission::Recalled),
                () = tokio::time::sleep(wait.time) => {}
            }
        }
        let leave_by = envelope.operations().iter().filter_map(|operation| operation.leave_by).min();
        let hours = self.hours.clone();
        let late = move || hours.as_ref().map(|hours| hours.now()).filter(|now| leave_by.is_some_and(|by| *now >= by));
        if let Some(now) = late() {
            return Ok(Submission::Late(now));
        }
        let delivered = self.delivered_meanwhile(envelope).await?;
        if !delivered.is_empty() {
            return Ok(Submission::Delivered(delivered));
        }
        let rows = envelope
            .operations()
            .iter()
            .map(|operation| SentRow {
                row: operation.row,
                to: operation.phone.into(),
                digest: operation.digest,
                chain: operation.chain,
            })
            .collect();
        tracing::debug!(waited_ms = millis(began), "has its turn");
        let (account, bounds) = (self.account.clone(), self.bounds.clone());
        let costs = envelope.operations().iter().map_while(|operation| operation.cost).collect();
        let intent = Intent { lease: self.lease, kind: envelope.kind(), account, rows, costs, bounds, leave_by };
        let asked = self.watchdog.asks();
        let begun = self.ledger.begin(intent).await;
        self.watchdog.leaves(asked);
        let (number, wait) = match begun? {
            Permit::Granted { envelope, wait } => (envelope, wait),
            Permit::OptedOut(rows) => {
                failpoint::pass("opt_outs.kept");
                return Ok(Submission::OptedOut(rows));
            }
            Permit::Late(at) => return Ok(Submission::Late(at)),
            Permit::Capped(rows) => return Ok(Submission::Capped(rows)),
            Permit::Over { fits, bound } => return Ok(Submission::Over(fits, bound)),
            refused @ (Permit::StopRequested | Permit::Lost) => return Ok(Submission::Refused(refused)),
        };
        tracing::Span::current().record("number", number);
        failpoint::pass("intent.kept");
        tracing::debug!(slot_in_ms = u64::try_from(wait.time.as_millis()).unwrap_or(u64::MAX), "intent kept");
        if recalls.has_changed().unwrap_or(false) {
            return Ok(Submission::HeldBack(number, held_back(envelope)));
        }
        if !wait.time.is_zero() {
            self.watchdog.enters(Waiting::Envelope(number), Step::Slot);
            if wait.time > TOLD {
                let (reason, time) = (wait.reason.words().to_owned(), wait.time);
                (self.observer)(DeliveryEvent::Waiting { reason, time, next: AfterWait::NEXT });
            }
            tokio::select! {
                biased;
                _ = recalls.changed() => return Ok(Submission::HeldBack(number, held_back(envelope))),
                () = tokio::time::sleep(wait.time) => {}
            }
        }
        // A machine that slept may have slept for long: until it is too late, or another one has the run.
        let (ledger, lease) = (Arc::clone(&self.ledger), self.lease);
        let may_leave: MayLeave = Arc::new(move || late().is_none() && ledger.may_leave(lease));
        failpoint::pass("envelope.leaves");
        self.watchdog.enters(Waiting::Envelope(number), Step::Answer);
        turn.leaves();
        let submitted = self.gateway.submit(envelope, may_leave);
        let reply = self.slow.wait(tokio::time::timeout(self.timeout + GRACE, submitted)).await;
        failpoint::pass("answer.came");
        let Some(reply) = reply.unwrap_or_else(|_| Some(self.silence(envelope))) else {
            return Ok(Submission::HeldBack(number, held_back(envelope)));
        };
        told(&reply, began);
        Ok(Submission::Replied(number, reply))
    }

    /// The rows of an envelope that are sent again, although a delivery of an earlier message was reported by now.
    async fn delivered_meanwhile(&self, envelope: &Envelope) -> Result<Vec<Row>, LedgerError> {
        let repeats =
            || envelope.operations().iter().filter(|operation| operation.repeats).map(|operation| operation.row);
        let (Some(first), Some(last)) = (repeats().min(), repeats().max()) else { return Ok(Vec::new()) };
        let rows = first.get()..last.get().saturating_add(1);
        let mut told = self.ledger.receipts(self.lease.run, rows).await?;
        let is_delivery =
            |kept: &KeptReceipt| matches!(kept.receipt.status.arrival(), Arrival::Delivered | Arrival::Read);
        told.retain(|(row, kept)| kept.iter().any(is_delivery) && repeats().any(|repeated| repeated == *row));
        Ok(told.into_iter().map(|(row, _)| row).collect())
    }

    /// Records what became of the envelope.
    ///
    /// # Errors
    /// When it cannot be recorded; the intent stays, and with it the doubt.
    pub(super) async fn settle(&self, number: u32, reply: &Reply) -> Result<(), LedgerError> {
        self.watchdog.enters(Waiting::Envelope(number), Step::Outcome);
        let outcomes = reply.outcomes.clone();
        let evidence = reply.evidence.clone();
        self.ledger.settle(Settlement { run: self.lease.run, envelope: number, outcomes, evidence }).await?;
        failpoint::pass("outcome.kept");
        tracing::debug!(envelope = number, "outcome kept");
        Ok(())
    }

    /// Records that queued messages of an envelope were refused after all, as its status says.
    ///
    /// # Errors
    /// When it cannot be recorded; they stay queued then.
    pub(super) async fn keep_rejected(
        &self,
        number: u32,
        refused: &[(QueuedMessage, Option<ReportedChannel>)],
    ) -> Result<Ownership, LedgerError> {
        let event = |(message, channel): &(QueuedMessage, Option<ReportedChannel>)| {
            let (status, channel) = (Status::Rejected.name().to_owned(), channel.clone());
            NewRowEvent { row: message.row, envelope: number, change: Change::Found { status, msg_id: None, channel } }
        };
        let events = refused.iter().map(event).collect();
        self.ledger.record(self.lease, events).await
    }

    fn silence(&self, envelope: &Envelope) -> Reply {
        let reason = format!("no answer within {} s", self.timeout.as_secs_f64());
        let doubt = Outcome::InDoubt { reason: reason.as_str().into() };
        Reply::all(envelope.operations().len(), &doubt, Signal::Broken(reason))
    }
}

/// Logs what came of an envelope, in figures alone: texts, numbers and keys stay out of the log.
fn told(reply: &Reply, began: Instant) {
    let count = |is: fn(&Outcome) -> bool| reply.outcomes.iter().filter(|outcome| is(outcome)).count();
    tracing::info!(
        operations = reply.outcomes.len(),
        taken = count(|outcome| matches!(outcome, Outcome::Accepted { .. } | Outcome::Queued { .. })),
        rejected = count(|outcome| matches!(outcome, Outcome::Rejected { .. })),
        not_sent = count(|outcome| matches!(outcome, Outcome::NotSent { .. })),
        in_doubt = count(|outcome| matches!(outcome, Outcome::InDoubt { .. })),
        ms = millis(began),
        "answered"
    );
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The reply to an envelope that never left.
fn held_back(envelope: &Envelope) -> Reply {
    let reason = "withdrawn before it was sent".into();
    Reply::all(envelope.operations().len(), &Outcome::NotSent { reason }, Signal::Go)
}
