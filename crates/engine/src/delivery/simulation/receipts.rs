//! Webhooks and opt-outs in a simulated world, and checks of the promises that an acknowledgement makes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use super::judge::{Breach, Sighting, row_phone};
use super::mistakes::Mistake;
use super::plan::{SimulationRandom, WEBHOOKS};
use super::platform::ExecutedMessage;
use super::process::wall_now;
use super::world::SimulatedWorld;
use crate::delivery::{MessagesInDoubt, Snapshot};
use campaign_core::domain::{DeliveryState, MessageId, Phone, Receipt, ReceiptSource, ReportedChannel, Row, Status};
use campaign_ledger::{NewReceipt, OptOut, OptOutReach, OptOutScope, ReceiptOutcome, RowChange, RowState, RunId};

/// The time until the platform repeats an unacknowledged webhook.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The acknowledged receipts.
#[derive(Default)]
pub(super) struct AcknowledgedLog(Mutex<Vec<AcknowledgedReceipt>>);

/// A webhook that was acknowledged.
#[derive(Clone)]
struct AcknowledgedReceipt {
    run: RunId,
    row: Row,
    order: Option<u32>,
    receipt: Receipt,
    at: Timestamp,
}

/// The result of an attempt to deliver a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryAttempt {
    /// The server dies before the commit.
    Lost,
    /// The server dies after the commit, before its answer.
    Unanswered,
    Acknowledged,
}

impl AcknowledgedReceipt {
    fn proves_delivery(&self) -> bool {
        matches!(self.receipt.status.delivery_state(), DeliveryState::Delivered | DeliveryState::Read)
    }
}

impl SimulatedWorld {
    /// Makes the platform send webhooks about messages that it executes from now on, in half of the worlds.
    pub(super) fn start_reporting(self: &Arc<Self>, mut executed: UnboundedReceiver<ExecutedMessage>) {
        let (world, mut chance) = (Arc::clone(self), self.plan.random_for(WEBHOOKS));
        if !self.plan.sends_webhooks() {
            return;
        }
        tokio::spawn(async move {
            while let Some(message) = executed.recv().await {
                for (number, (offset, channel, status)) in (1..).zip(world.plan_reports(&message, &mut chance)) {
                    // Channels have their own clocks.
                    let skew = if channel.is_some() { chance.below(3_600) as i64 - 1_800 } else { 0 };
                    let updated = wall_now() + SignedDuration::from_secs(number + skew);
                    let (updated, source) = (Some(updated), ReceiptSource::Webhook);
                    let receipt = Receipt { updated, channel, ..Receipt::new(source, status) };
                    for _ in 0..=chance.below(2) {
                        let max_delay = chance.pick(&[50, 20_000, 600_000]);
                        let after = message.delay + offset + Duration::from_millis(chance.below(max_delay));
                        let attempts = draw_attempts(&mut chance);
                        tokio::spawn(Arc::clone(&world).deliver_receipt(message.id, receipt.clone(), after, attempts));
                    }
                }
            }
        });
    }

    /// The platform's reports about a message, in order: the time after execution, the channel and the status.
    fn plan_reports(
        &self,
        message: &ExecutedMessage,
        chance: &mut SimulationRandom,
    ) -> Vec<(Duration, Option<ReportedChannel>, Status)> {
        let first = self.plan.kind.channels().first().copied().map(ReportedChannel::Known);
        if message.rejected {
            let channel = first.filter(|_| self.plan.kind.channels().len() > 1 && chance.once_in(2));
            return vec![(Duration::ZERO, channel, Status::Rejected)];
        }
        let fallback = &message.fallback;
        if fallback.steps().next().is_none() {
            let statuses: &[Status] = match chance.below(4) {
                0 => &[],
                1 => &[Status::Routing],
                2 => &[Status::Delivered],
                _ => &[Status::Routing, Status::Delivered, Status::Read],
            };
            return statuses.iter().map(|status| (Duration::ZERO, None, status.clone())).collect();
        }
        let fell_back = fallback
            .steps()
            .any(|(_, report)| Status::from_name(report.status).is_failure() && fallback.continues_after(report));
        if !fallback.reaches {
            self.record_sighting(Sighting::FailedOnEveryChannel, 1);
        } else if fell_back {
            self.record_sighting(Sighting::FellBack, 1);
        }
        let mut reports = Vec::new();
        for (offset, report) in fallback.steps() {
            if chance.once_in(4) {
                continue;
            }
            let status = Status::from_name(report.status);
            // A platform should name the channel of a failure before the last channel. Other reports can omit the name.
            let is_nameless = match status.is_failure() && fallback.continues_after(report) {
                true => self.plan.omits_failed_channel(),
                false => chance.once_in(4),
            };
            let channel = report.channel.filter(|_| !is_nameless).map(ReportedChannel::Known);
            reports.push((offset, channel, status));
        }
        reports
    }

    async fn deliver_receipt(
        self: Arc<Self>,
        id: u64,
        receipt: Receipt,
        after: Duration,
        attempts: Vec<DeliveryAttempt>,
    ) {
        sleep(after).await;
        for attempt in attempts {
            if self.try_receipt(id, &receipt, attempt) {
                return;
            }
            sleep(RETRY_AFTER).await;
        }
    }

    /// Makes one attempt to deliver a receipt. Returns whether the receipt was acknowledged.
    fn try_receipt(&self, id: u64, receipt: &Receipt, attempt: DeliveryAttempt) -> bool {
        let mut disk = self.disk.lock().unwrap();
        let Some(id) = MessageId::new(id) else { return true };
        let Some(run) = disk.contents.find_message(id).map(|origin| origin.run) else { return true };
        let Some((row, order)) = disk.stored_run(run).run.find_message(id) else { return true };
        let acknowledges_early = self.mistake == Some(Mistake::AcknowledgedBeforeCommit);
        if attempt != DeliveryAttempt::Lost {
            let before = disk.row_state(run, row);
            let new = NewReceipt { run, row, order, receipt: receipt.clone(), opt_out: None, opt_in: None };
            let outcomes =
                disk.contents.store_receipts(wall_now().as_microsecond(), vec![new]).expect("a run that is there");
            let after = disk.row_state(run, row);
            if !is_forward(before, after) {
                self.judge.record_breach(Breach::StatusWentBack, &format!("row {row}: {before:?} -> {after:?}"));
            }
            let is_doubtful =
                |state| matches!(state, Some(RowState::InDoubt | RowState::Unresolved | RowState::AssumedSent));
            self.record_sighting(Sighting::ReceiptRepeated, u64::from(outcomes[0] == ReceiptOutcome::Known));
            self.record_sighting(Sighting::DoubtProven, u64::from(is_doubtful(before) && !is_doubtful(after)));
            self.record_sighting(Sighting::ReceiptEarly, u64::from(disk.has_unsettled_envelope(run, row)));
        }
        let acknowledged = attempt == DeliveryAttempt::Acknowledged || acknowledges_early;
        if acknowledged {
            let stored = AcknowledgedReceipt { run, row, order, receipt: receipt.clone(), at: wall_now() };
            self.acknowledged.0.lock().unwrap().push(stored);
        }
        acknowledged
    }

    /// Checks that all acknowledged receipts are stored, and that the states of the current run reflect them.
    pub(super) fn compare_with_receipts(&self, snapshot: &Snapshot) {
        let disk = self.disk.lock().unwrap();
        for stored in self.acknowledged.0.lock().unwrap().iter() {
            let stored_run = disk.stored_run(stored.run);
            let receipts = stored_run.receipts.get(&stored.row);
            let is_stored = receipts.is_some_and(|receipts| {
                receipts.iter().any(|receipt| receipt.order == stored.order && receipt.receipt == stored.receipt)
            });
            if !is_stored {
                self.judge.record_breach(Breach::ReceiptLost, &format!("row {}: {:?}", stored.row, stored.receipt));
            }
            let has_new_message = stored_run
                .events
                .iter()
                .any(|event| event.row == stored.row && matches!(event.change, RowChange::Retry { .. }));
            let state = snapshot.row_state(stored.row);
            let is_behind = match stored.receipt.status.delivery_state() {
                DeliveryState::Read => state != RowState::Read,
                DeliveryState::Delivered => !matches!(state, RowState::Delivered | RowState::Read),
                DeliveryState::Pending | DeliveryState::Failed => false,
            };
            if stored.run == self.current_run() && !has_new_message && is_behind {
                let details = format!("row {} is {state}: {:?}", stored.row, stored.receipt);
                self.judge.record_breach(Breach::StatusWentBack, &details);
            }
        }
    }

    /// Checks that no row in `doubts` was proven before `since`, unless the row was resent later.
    pub(super) fn check_no_proven_row_is_asked(&self, since: Timestamp, run: RunId, doubts: &MessagesInDoubt) {
        let disk = self.disk.lock().unwrap();
        for stored in self.acknowledged.0.lock().unwrap().iter().filter(|stored| stored.run == run && stored.at < since)
        {
            let doubt = doubts.rows.iter().find(|doubt| {
                doubt.row == stored.row
                    && disk.stored_run(run).run.find_message(doubt.id).is_some_and(|(_, order)| order == stored.order)
            });
            let envelope = doubt.and_then(|doubt| disk.stored_run(run).envelopes.get(&doubt.envelope));
            if envelope.is_some_and(|envelope| envelope.begun_at < stored.at) {
                self.judge
                    .record_breach(Breach::AskedAlthoughProven, &format!("row {}: {:?}", stored.row, stored.receipt));
            }
        }
    }

    /// Checks that none of the rows to be sent has a message whose delivery was acknowledged before `since`.
    pub(super) fn check_no_arrived_row_is_resent(&self, since: Timestamp, run: RunId, rows: impl Iterator<Item = Row>) {
        let stored = self.acknowledged.0.lock().unwrap();
        for row in rows {
            let has_arrived = |stored: &&AcknowledgedReceipt| {
                stored.run == run && stored.row == row && stored.at < since && stored.proves_delivery()
            };
            if let Some(stored) = stored.iter().find(has_arrived) {
                self.judge.record_breach(Breach::SentAlthoughProven, &format!("row {row}: {:?}", stored.receipt));
            }
        }
    }
}

/// Draws the attempts to deliver a receipt, up to the first acknowledged attempt. Some receipts are never acknowledged.
fn draw_attempts(chance: &mut SimulationRandom) -> Vec<DeliveryAttempt> {
    let mut attempts = Vec::new();
    while chance.once_in(3) {
        attempts.push(chance.pick(&[DeliveryAttempt::Lost, DeliveryAttempt::Unanswered]));
    }
    if !chance.once_in(20) {
        attempts.push(DeliveryAttempt::Acknowledged);
    }
    attempts
}

/// Whether a receipt can move a message from `before` to `after`.
fn is_forward(before: Option<RowState>, after: Option<RowState>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return before == after };
    before == after
        || match before {
            RowState::Accepted | RowState::Queued => {
                matches!(after, RowState::Delivered | RowState::Read | RowState::Failed)
            }
            RowState::Failed | RowState::Rejected => matches!(after, RowState::Delivered | RowState::Read),
            RowState::Delivered => after == RowState::Read,
            RowState::Planned
            | RowState::Sending
            | RowState::InDoubt
            | RowState::Unresolved
            | RowState::AssumedSent
            | RowState::NotSent => after.is_guarded(),
            RowState::Skipped | RowState::Invalid | RowState::Read => false,
        }
}

impl SimulatedWorld {
    /// Sometimes lets a recipient opt out, within seconds after a process starts sending.
    pub(super) fn schedule_opt_out(self: &Arc<Self>) {
        let (after, row, opts_out) = self.with_random(|chance| {
            let row = Row::new(2 + chance.below(self.plan.rows.into()) as u32);
            (Duration::from_millis(chance.below(5_000)), row, chance.once_in(3))
        });
        if opts_out {
            let world = Arc::clone(self);
            tokio::spawn(async move {
                sleep(after).await;
                world.opt_out(row);
            });
        }
    }

    /// Stores an opt-out on the simulated disk in one step. From then on, the judge reports any new intent for the
    /// recipient.
    fn opt_out(&self, row: Row) {
        let mut disk = self.disk.lock().unwrap();
        let opt_out = OptOut {
            who: Phone::new(row_phone(row)).unwrap().into(),
            scope: OptOutScope::Marketing,
            reach: OptOutReach::AllGateways,
            reason: "STOP".into(),
            source: "a reply".into(),
            at: wall_now(),
        };
        if disk.contents.opt_outs.add_opt_outs(vec![opt_out]).added > 0 {
            self.judge.note_opt_out(row, disk.intents.get(&row).copied().unwrap_or(0));
            self.record_sighting(Sighting::OptedOut, 1);
        }
    }
}
