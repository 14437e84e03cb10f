//! One envelope on its way: its turn, the intent, the account's slot, the request; and its settlement.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use super::course::QueuedMessage;
use super::event::{AfterWait, DeliveryEvent, DeliveryObserver};
use super::gate::RateGate;
use super::hours::SendingHours;
use super::slow_answers::SlowAnswers;
use super::watchdog::{WaitStep, Watchdog, WatchedEnvelope};
use crate::domain::{DeliveryState, OperationOutcome, ReportedChannel, Row, Status};
use crate::failpoint;
use crate::gateway::{Envelope, Gateway, GatewayReply, MayLeave, Signal};
use crate::ledger::{
    Allowance, Bound, Bounds, Intent, KeptReceipt, Lease, Ledger, LedgerError, NewRowEvent, Ownership, Permit,
    RowChange, SentRow, Settlement,
};

/// How much longer than the request's own time-out anybody waits for it.
const GRACE: Duration = Duration::from_secs(5);

/// A longer wait for the account's slot is told.
const ANNOUNCE_AFTER: Duration = Duration::from_secs(2);

/// What every envelope of a start shares.
pub(super) struct Submitter {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) gateway: Arc<dyn Gateway>,
    pub(super) lease: Lease,
    /// The account whose pace it takes from.
    pub(super) account: Allowance,
    /// What each intent has to keep within.
    pub(super) bounds: Option<Arc<Bounds>>,
    pub(super) gate: RateGate,
    /// The campaign's own pace, which several processes keep together.
    pub(super) pace: Option<Allowance>,
    pub(super) timeout: Duration,
    pub(super) watchdog: Watchdog,
    pub(super) slow: SlowAnswers,
    /// Who is told of long waits.
    pub(super) observer: DeliveryObserver,
    /// When messages may leave; nothing where they may at any time.
    pub(super) hours: Option<Arc<SendingHours>>,
}

/// How an envelope's way to the gateway ended.
pub(super) enum SubmissionEnd {
    /// It was sent under this number, and this came back.
    Replied(u32, GatewayReply),
    /// It was called back before its first byte left; the reply says so of each operation.
    HeldBack(u32, GatewayReply),
    /// It was called back before its intent, so nothing is to be recorded.
    Recalled,
    /// Nothing was sent: the people of these rows opted out and are left out; the others go out in another envelope.
    OptedOut(Vec<Row>),
    /// Nothing was sent: the numbers of these rows got as many messages as they may; the others go out in another envelope.
    Capped(Vec<Row>),
    /// Nothing was sent: earlier messages of these rows were delivered meanwhile; the others go out in another envelope.
    Delivered(Vec<Row>),
    /// Nothing was sent: only so many of its first operations keep within the bounds.
    OverBound(usize, Bound),
    /// Nothing was sent: it would leave at this moment, which is too late for some of its operations.
    TooLate(Timestamp),
    /// No intent was recorded, so nothing was sent.
    Refused(Permit),
}

impl Submitter {
    /// Waits for the envelope's turn, records the intent, waits for the account's slot, sends.
    ///
    /// A change of `recalls` calls it back as long as it waits.
    ///
    /// # Errors
    /// When the intent cannot be recorded; nothing was sent then.
    pub(super) async fn send_envelope(
        &self,
        envelope: &Envelope,
        mut recalls: watch::Receiver<u64>,
    ) -> Result<SubmissionEnd, LedgerError> {
        let began = Instant::now();
        let turn = tokio::select! {
            biased;
            _ = recalls.changed() => return Ok(SubmissionEnd::Recalled),
            turn = self.gate.wait_turn(envelope.operations().len()) => turn,
        };
        if let Some(pace) = &self.pace {
            let count = u32::try_from(envelope.operations().len()).unwrap_or(u32::MAX);
            let wait = self.ledger.reserve_rate(pace, count).await?;
            tokio::select! {
                biased;
                _ = recalls.changed() => return Ok(SubmissionEnd::Recalled),
                () = tokio::time::sleep(wait.time) => {}
            }
        }
        let leave_by = envelope.operations().iter().filter_map(|operation| operation.leave_before).min();
        let hours = self.hours.clone();
        let late = move || hours.as_ref().map(|hours| hours.now()).filter(|now| leave_by.is_some_and(|by| *now >= by));
        if let Some(now) = late() {
            return Ok(SubmissionEnd::TooLate(now));
        }
        let delivered = self.find_delivered(envelope).await?;
        if !delivered.is_empty() {
            return Ok(SubmissionEnd::Delivered(delivered));
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
        tracing::debug!(waited_ms = elapsed_millis(began), "has its turn");
        let (account, bounds) = (self.account.clone(), self.bounds.clone());
        let costs = envelope.operations().iter().map_while(|operation| operation.cost).collect();
        let intent = Intent { lease: self.lease, kind: envelope.kind(), account, rows, costs, bounds, leave_by };
        let asked = self.watchdog.register();
        let begun = self.ledger.begin_envelope(intent).await;
        self.watchdog.remove(asked);
        let (number, wait) = match begun? {
            Permit::Granted { envelope, wait } => (envelope, wait),
            Permit::OptedOut(rows) => {
                failpoint::pass("opt_outs.kept");
                return Ok(SubmissionEnd::OptedOut(rows));
            }
            Permit::TooLate(at) => return Ok(SubmissionEnd::TooLate(at)),
            Permit::Capped(rows) => return Ok(SubmissionEnd::Capped(rows)),
            Permit::BoundExceeded { fits, bound } => return Ok(SubmissionEnd::OverBound(fits, bound)),
            refused @ (Permit::StopRequested | Permit::Lost) => return Ok(SubmissionEnd::Refused(refused)),
        };
        tracing::Span::current().record("number", number);
        failpoint::pass("intent.kept");
        tracing::debug!(slot_in_ms = u64::try_from(wait.time.as_millis()).unwrap_or(u64::MAX), "intent kept");
        if recalls.has_changed().unwrap_or(false) {
            return Ok(SubmissionEnd::HeldBack(number, withdrawn_reply(envelope)));
        }
        if !wait.time.is_zero() {
            self.watchdog.enter_step(WatchedEnvelope::Envelope(number), WaitStep::Slot);
            if wait.time > ANNOUNCE_AFTER {
                let (reason, time) = (wait.reason.describe().to_owned(), wait.time);
                (self.observer)(DeliveryEvent::Waiting { reason, time, next: AfterWait::NEXT });
            }
            tokio::select! {
                biased;
                _ = recalls.changed() => return Ok(SubmissionEnd::HeldBack(number, withdrawn_reply(envelope))),
                () = tokio::time::sleep(wait.time) => {}
            }
        }
        // A machine that slept may have slept for long: until it is too late, or another one has the run.
        let (ledger, lease) = (Arc::clone(&self.ledger), self.lease);
        let may_leave: MayLeave = Arc::new(move || late().is_none() && ledger.may_still_send(lease));
        failpoint::pass("envelope.leaves");
        self.watchdog.enter_step(WatchedEnvelope::Envelope(number), WaitStep::Answer);
        turn.mark_left();
        let submitted = self.gateway.submit(envelope, may_leave);
        let reply = self.slow.wait_for(tokio::time::timeout(self.timeout + GRACE, submitted)).await;
        failpoint::pass("answer.came");
        let Some(reply) = reply.unwrap_or_else(|_| Some(self.silence_reply(envelope))) else {
            return Ok(SubmissionEnd::HeldBack(number, withdrawn_reply(envelope)));
        };
        log_reply(&reply, began);
        Ok(SubmissionEnd::Replied(number, reply))
    }

    /// The rows of an envelope that are sent again, although a delivery of an earlier message was reported by now.
    async fn find_delivered(&self, envelope: &Envelope) -> Result<Vec<Row>, LedgerError> {
        let repeats =
            || envelope.operations().iter().filter(|operation| operation.repeats).map(|operation| operation.row);
        let (Some(first), Some(last)) = (repeats().min(), repeats().max()) else { return Ok(Vec::new()) };
        let rows = first.get()..last.get().saturating_add(1);
        let mut told = self.ledger.load_receipts(self.lease.run, rows).await?;
        let is_delivery = |kept: &KeptReceipt| {
            matches!(kept.receipt.status.delivery_state(), DeliveryState::Delivered | DeliveryState::Read)
        };
        told.retain(|(row, kept)| kept.iter().any(is_delivery) && repeats().any(|repeated| repeated == *row));
        Ok(told.into_iter().map(|(row, _)| row).collect())
    }

    /// Records what became of the envelope.
    ///
    /// # Errors
    /// When it cannot be recorded; the intent stays, and with it the doubt.
    pub(super) async fn record_outcome(&self, number: u32, reply: &GatewayReply) -> Result<(), LedgerError> {
        self.watchdog.enter_step(WatchedEnvelope::Envelope(number), WaitStep::Outcome);
        let outcomes = reply.outcomes.clone();
        let evidence = reply.evidence.clone();
        self.ledger.settle_envelope(Settlement { run: self.lease.run, envelope: number, outcomes, evidence }).await?;
        failpoint::pass("outcome.kept");
        tracing::debug!(envelope = number, "outcome kept");
        Ok(())
    }

    /// Records that queued messages of an envelope were refused after all, as its status says.
    ///
    /// # Errors
    /// When it cannot be recorded; they stay queued then.
    pub(super) async fn record_late_rejections(
        &self,
        number: u32,
        refused: &[(QueuedMessage, Option<ReportedChannel>)],
    ) -> Result<Ownership, LedgerError> {
        let event = |(message, channel): &(QueuedMessage, Option<ReportedChannel>)| {
            let (status, channel) = (Status::Rejected.name().to_owned(), channel.clone());
            NewRowEvent {
                row: message.row,
                envelope: number,
                change: RowChange::Found { status, msg_id: None, channel },
            }
        };
        let events = refused.iter().map(event).collect();
        self.ledger.record_events(self.lease, events).await
    }

    fn silence_reply(&self, envelope: &Envelope) -> GatewayReply {
        let reason = format!("no answer within {} s", self.timeout.as_secs_f64());
        let doubt = OperationOutcome::InDoubt { reason: reason.as_str().into() };
        GatewayReply::for_all(envelope.operations().len(), &doubt, Signal::Broken(reason))
    }
}

/// Logs what came of an envelope, in figures alone: texts, numbers and keys stay out of the log.
fn log_reply(reply: &GatewayReply, began: Instant) {
    let count = |is: fn(&OperationOutcome) -> bool| reply.outcomes.iter().filter(|outcome| is(outcome)).count();
    tracing::info!(
        operations = reply.outcomes.len(),
        taken = count(|outcome| matches!(outcome, OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. })),
        rejected = count(|outcome| matches!(outcome, OperationOutcome::Rejected { .. })),
        not_sent = count(|outcome| matches!(outcome, OperationOutcome::NotSent { .. })),
        in_doubt = count(|outcome| matches!(outcome, OperationOutcome::InDoubt { .. })),
        ms = elapsed_millis(began),
        "answered"
    );
}

fn elapsed_millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The reply to an envelope that never left.
fn withdrawn_reply(envelope: &Envelope) -> GatewayReply {
    let reason = "withdrawn before it was sent".into();
    GatewayReply::for_all(envelope.operations().len(), &OperationOutcome::NotSent { reason }, Signal::Go)
}
