//! The platform tells by itself what became of messages, and a server takes it: at once or late, again and again, in any
//! order, about messages whose process is gone; and the server dies before its commit, or before it could acknowledge.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use super::chance::Chance;
use super::judge::Breach;
use super::life::wall;
use super::mistake::Mistake;
use super::platform::Executed;
use super::sighting::Sighting;
use super::story::World;
use crate::delivery::{Doubts, Snapshot};
use crate::domain::{Arrival, MessageId, Receipt, ReceiptSource, ReportedChannel, Row, Status};
use crate::ledger::{Change, NewReceipt, Reception, RunId, State};

/// How long the platform waits until it tells again what nobody acknowledged.
const AGAIN: Duration = Duration::from_secs(5);

/// What was acknowledged.
#[derive(Default)]
pub(super) struct Acknowledged(Mutex<Vec<Told>>);

/// A webhook that was acknowledged.
#[derive(Clone)]
struct Told {
    run: RunId,
    row: Row,
    order: Option<u32>,
    receipt: Receipt,
    at: Timestamp,
}

/// What becomes of a try to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Try {
    /// The server dies before the commit.
    Lost,
    /// It dies after the commit, before anybody hears of it.
    Unheard,
    Acknowledged,
}

impl Told {
    fn arrived(&self) -> bool {
        matches!(self.receipt.status.arrival(), Arrival::Delivered | Arrival::Read)
    }
}

impl World {
    /// Has the platform tell of what it executes from now on, in half of the worlds.
    pub(super) fn tell(self: &Arc<Self>, mut executed: UnboundedReceiver<Executed>) {
        let (world, mut chance) = (Arc::clone(self), self.plan.chance(4));
        if !self.plan.tells() {
            return;
        }
        tokio::spawn(async move {
            while let Some(message) = executed.recv().await {
                for (number, (happens, channel, status)) in (1..).zip(world.way(&message, &mut chance)) {
                    // Channels tell the time by clocks of their own.
                    let wrong = if channel.is_some() { chance.below(3_600) as i64 - 1_800 } else { 0 };
                    let updated = wall() + SignedDuration::from_secs(number + wrong);
                    let (updated, source) = (Some(updated), ReceiptSource::Webhook);
                    let receipt = Receipt { updated, channel, ..Receipt::new(source, status) };
                    for _ in 0..=chance.below(2) {
                        let longest = chance.of(&[50, 20_000, 600_000]);
                        let after = message.late + happens + Duration::from_millis(chance.below(longest));
                        let tries = tries(&mut chance);
                        tokio::spawn(Arc::clone(&world).bring(message.id, receipt.clone(), after, tries));
                    }
                }
            }
        });
    }

    /// What the platform tells of a message, in the order in which it happens: how long after it was executed, and of which
    /// channel.
    fn way(&self, message: &Executed, chance: &mut Chance) -> Vec<(Duration, Option<ReportedChannel>, Status)> {
        let first = self.plan.kind.channels().first().copied().map(ReportedChannel::Known);
        if message.refused {
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
        self.saw(if fallback.reaches { Sighting::FellBack } else { Sighting::FailedOnEveryChannel }, 1);
        let mut told = Vec::new();
        for (happens, report) in fallback.steps() {
            if chance.once_in(4) {
                continue;
            }
            let status = Status::from_name(report.status);
            // Of the last channel a platform may speak without naming it; of another one it had better name it.
            let nameless = match status.is_failure() && fallback.goes_on_after(report) {
                true => self.plan.names_no_channel(),
                false => chance.once_in(4),
            };
            let channel = report.channel.filter(|_| !nameless).map(ReportedChannel::Known);
            told.push((happens, channel, status));
        }
        told
    }

    async fn bring(self: Arc<Self>, id: u64, receipt: Receipt, after: Duration, tries: Vec<Try>) {
        sleep(after).await;
        for one in tries {
            if self.take_in(id, &receipt, one) {
                return;
            }
            sleep(AGAIN).await;
        }
    }

    /// One try to tell; whether it was acknowledged.
    fn take_in(&self, id: u64, receipt: &Receipt, one: Try) -> bool {
        let mut disk = self.disk.lock().unwrap();
        let Some(origin) = MessageId::new(id).and_then(|id| Some((id, disk.contents.find(id)?))) else { return true };
        let run = origin.1.run;
        let Some((row, order)) = disk.book(run).run.message_of(origin.0) else { return true };
        let hasty = self.mistake == Some(Mistake::AcknowledgedBeforeTheCommit);
        if one != Try::Lost {
            let before = disk.state(run, row);
            let new = NewReceipt { run, row, order, receipt: receipt.clone(), opt_out: None };
            let reception = disk.contents.receive(wall().as_microsecond(), vec![new]).expect("a run that is there");
            let after = disk.state(run, row);
            if !is_forward(before, after) {
                self.judge.broken(Breach::WentBack, &format!("row {row}: {before:?} -> {after:?}"));
            }
            let doubtful = |state| matches!(state, Some(State::InDoubt | State::Unresolved | State::AssumedSent));
            self.saw(Sighting::ToldAgain, u64::from(reception[0] == Reception::Known));
            self.saw(Sighting::DoubtProven, u64::from(doubtful(before) && !doubtful(after)));
            self.saw(Sighting::ToldEarly, u64::from(disk.is_open(run, row)));
        }
        let acknowledged = one == Try::Acknowledged || hasty;
        if acknowledged {
            let told = Told { run, row, order, receipt: receipt.clone(), at: wall() };
            self.acknowledged.0.lock().unwrap().push(told);
        }
        acknowledged
    }

    /// Holds what the ledger says of the run that is being sent against what was acknowledged.
    pub(super) fn hold_to_receipts(&self, snapshot: &Snapshot) {
        let disk = self.disk.lock().unwrap();
        for told in self.acknowledged.0.lock().unwrap().iter() {
            let book = disk.book(told.run);
            let kept = book.receipts.get(&told.row);
            let same = kept
                .is_some_and(|kept| kept.iter().any(|kept| kept.order == told.order && kept.receipt == told.receipt));
            if !same {
                self.judge.broken(Breach::ReceiptLost, &format!("row {}: {:?}", told.row, told.receipt));
            }
            let new_message =
                book.events.iter().any(|event| event.row == told.row && matches!(event.change, Change::Retry { .. }));
            let state = snapshot.state(told.row);
            let forgotten = match told.receipt.status.arrival() {
                Arrival::Read => state != State::Read,
                Arrival::Delivered => !matches!(state, State::Delivered | State::Read),
                Arrival::Pending | Arrival::Failed => false,
            };
            if told.run == self.run() && !new_message && forgotten {
                self.judge.broken(Breach::WentBack, &format!("row {} is {state}: {:?}", told.row, told.receipt));
            }
        }
    }

    /// Of the rows that are to be asked about none was proven before `since`, unless it went out again after that.
    pub(super) fn nothing_proven_is_asked(&self, since: Timestamp, run: RunId, doubts: &Doubts) {
        let disk = self.disk.lock().unwrap();
        for told in self.acknowledged.0.lock().unwrap().iter().filter(|told| told.run == run && told.at < since) {
            let asked = doubts.rows.iter().find(|doubt| {
                doubt.row == told.row && disk.book(run).run.message_of(doubt.id).is_some_and(|of| of.1 == told.order)
            });
            let begun = asked.and_then(|doubt| disk.book(run).envelopes.get(&doubt.envelope));
            if begun.is_some_and(|envelope| envelope.begun_at < told.at) {
                self.judge.broken(Breach::AskedThoughProven, &format!("row {}: {:?}", told.row, told.receipt));
            }
        }
    }

    /// Of the rows that a start is about to send none had arrived before `since`.
    pub(super) fn nothing_that_arrived_is_sent(&self, since: Timestamp, run: RunId, rows: impl Iterator<Item = Row>) {
        let told = self.acknowledged.0.lock().unwrap();
        for row in rows {
            let arrived = |told: &&Told| told.run == run && told.row == row && told.at < since && told.arrived();
            if let Some(told) = told.iter().find(arrived) {
                self.judge.broken(Breach::SentThoughProven, &format!("row {row}: {:?}", told.receipt));
            }
        }
    }
}

/// The tries until the first that is acknowledged; some are never.
fn tries(chance: &mut Chance) -> Vec<Try> {
    let mut tries = Vec::new();
    while chance.once_in(3) {
        tries.push(chance.of(&[Try::Lost, Try::Unheard]));
    }
    if !chance.once_in(20) {
        tries.push(Try::Acknowledged);
    }
    tries
}

/// Whether a receipt may move a message so.
fn is_forward(before: Option<State>, after: Option<State>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return before == after };
    before == after
        || match before {
            State::Accepted | State::Queued => matches!(after, State::Delivered | State::Read | State::Failed),
            State::Failed | State::Rejected => matches!(after, State::Delivered | State::Read),
            State::Delivered => after == State::Read,
            State::Planned
            | State::Sending
            | State::InDoubt
            | State::Unresolved
            | State::AssumedSent
            | State::NotSent => after.has_operation(),
            State::Skipped | State::Invalid | State::Read => false,
        }
}
