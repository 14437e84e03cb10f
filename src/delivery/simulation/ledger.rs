//! The ledger as one process sees it: each change takes time, and may or may not be on the disk when the process ends.

use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use roaring::{RoaringBitmap, RoaringTreemap};
use tokio::time::sleep;

use super::disk::Disk;
use super::life::{Life, wall};
use super::mistake::Mistake;
use super::places::Leases;
use crate::domain::{Addressee, Cap, MessageId, Outcome, Phone, Row};
use crate::ledger::memory::{Book, Contents};
use crate::ledger::{
    AccountPace, Additions, Allowance, ApprovalRules, AskedRow, BlockRequest, Claim, Contacts, Copies, DrawRefusal,
    Drawn, EntryRemoval, EnvelopeRecord, EnvelopeSummary, Hold, Intent, KeptApprovalRule, Lease, Ledger, LedgerError,
    LedgerFuture, LeftOut, NewCopies, NewNotification, NewReceipt, NewRowEvent, NewRun, Notification,
    NotificationQueue, NumberSet, OptOut, OptOuts, OptedOut, Origin, Ownership, Permit, QuestionTurn, Receipts,
    Reception, Removal, RepeatGuard, RetryOrder, RowEvent, RowReceipts, Rows, Run, RunEnd, RunFilter, RunId,
    Settlement, SharedRun, StateCounts, StrayCopies, SuppressionList, Told, Upkeep, Wait,
};

/// How long a commit takes before and after the instant at which it cannot be lost any more.
const COMMIT: Duration = Duration::from_millis(2);

/// One process's way to the disk.
pub(super) struct ProcessLedger {
    pub(super) disk: Arc<Mutex<Disk>>,
    pub(super) life: Arc<Life>,
    pub(super) leases: Arc<Leases>,
    pub(super) mistake: Option<Mistake>,
}

impl ProcessLedger {
    pub(super) fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap()
    }

    /// A change: a process may end before it, and between the commit and its return.
    pub(super) async fn write<T>(
        &self,
        change: impl FnOnce(&mut Disk, i64) -> Result<T, LedgerError> + Send,
    ) -> Result<T, LedgerError> {
        self.life.step().await;
        sleep(COMMIT).await;
        self.life.step().await;
        let told = change(&mut self.disk(), wall().as_microsecond());
        sleep(COMMIT).await;
        self.life.step().await;
        told
    }

    async fn read<T>(&self, look: impl FnOnce(&Contents) -> T + Send) -> Result<T, LedgerError> {
        self.life.step().await;
        Ok(look(&self.disk().contents))
    }

    /// A change that is told before it is on the disk.
    pub(super) async fn tell_before<T>(
        &self,
        told: T,
        change: impl FnOnce(&mut Disk, i64) -> Result<(), LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let (disk, life) = (Arc::clone(&self.disk), Arc::clone(&self.life));
        tokio::spawn(async move {
            sleep(Duration::from_millis(50)).await;
            life.step().await;
            change(&mut disk.lock().unwrap(), wall().as_microsecond())
        });
        Ok(told)
    }
}

impl Receipts for ProcessLedger {
    fn receive(&self, receipts: Vec<NewReceipt>) -> LedgerFuture<'_, Vec<Reception>> {
        Box::pin(async move { self.write(|disk, now| disk.contents.receive(now, receipts)).await })
    }

    fn keep_hook_secrets<'a>(&'a self, address: &'a str, check_values: Vec<String>) -> LedgerFuture<'a, ()> {
        Box::pin(async move {
            self.write(|disk, _| {
                disk.contents.hooks.insert(address.to_owned(), check_values);
                Ok(())
            })
            .await
        })
    }

    fn hook_secrets<'a>(&'a self, address: &'a str) -> LedgerFuture<'a, Vec<String>> {
        Box::pin(async move { self.read(|contents| contents.hooks.get(address).cloned().unwrap_or_default()).await })
    }

    fn counted(&self, run: RunId, counts: StateCounts, parts: u64, receipts: u64) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, _| disk.contents.counted(run, counts, parts, receipts)).await })
    }

    fn sent_to(&self, run: RunId, row: Row) -> LedgerFuture<'_, Option<Addressee>> {
        Box::pin(async move { self.read(|contents| contents.sent_to(run, row)).await })
    }

    fn receipts(&self, run: RunId, rows: Range<u32>) -> LedgerFuture<'_, Vec<RowReceipts>> {
        let forgotten = self.mistake == Some(Mistake::ReceiptsForgotten);
        let rows = if forgotten { 0..0 } else { rows };
        Box::pin(async move { self.read(|contents| contents.receipts(run, rows)).await })
    }
}

impl Upkeep for ProcessLedger {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn prove_writable(&self) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|_, _| Ok(())).await })
    }

    fn prove_sound(&self) -> LedgerFuture<'_, ()> {
        Box::pin(self.read(|_| ()))
    }

    fn paces(&self) -> LedgerFuture<'_, Vec<(String, AccountPace)>> {
        Box::pin(self.read(|contents| contents.account_paces()))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl NotificationQueue for ProcessLedger {
    fn notify(&self, new: Vec<NewNotification>) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, now| disk.contents.notify(now, new)).await })
    }

    fn notifications_due(&self, apart: Duration) -> LedgerFuture<'_, bool> {
        let due = move |contents: &Contents| contents.due(wall().as_microsecond(), apart).map(|due| !due.is_empty());
        Box::pin(async move { self.read(due).await.flatten() })
    }

    fn take_notifications(&self, apart: Duration, held: Duration) -> LedgerFuture<'_, Vec<Notification>> {
        Box::pin(async move { self.write(move |disk, now| disk.contents.take_notifications(now, apart, held)).await })
    }

    fn told(&self, keys: Vec<i64>, told: Told) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(move |disk, now| disk.contents.told(now, &keys, told)).await })
    }
}

impl Ledger for ProcessLedger {
    fn create_run<'a>(&'a self, new: &'a NewRun) -> LedgerFuture<'a, Run> {
        Box::pin(async move { self.write(|disk, _| disk.contents.create_run(new)).await })
    }

    fn open_run(&self, run: RunId, replaced: Option<RunId>) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, now| disk.contents.open_run(now, run, replaced)).await })
    }

    fn retire(&self, run: RunId) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, now| disk.contents.retire(now, run)).await })
    }

    fn moved(&self, runs: Vec<RunId>, file: String) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, _| disk.contents.moved(&runs, &file)).await })
    }

    fn results_moved(&self, run: RunId, results: String) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, _| disk.contents.results_moved(run, results)).await })
    }

    fn runs(&self, wanted: RunFilter) -> LedgerFuture<'_, Vec<Run>> {
        Box::pin(async move { self.read(|contents| contents.runs(&wanted)).await })
    }

    fn find(&self, id: MessageId) -> LedgerFuture<'_, Option<Origin>> {
        Box::pin(async move { self.read(|contents| contents.find(id)).await })
    }

    /// Nobody is kept out: whoever had it is thought to be gone, as where a lease has run out.
    fn hold<'a>(&'a self, campaign: &'a str, account: &'a str) -> LedgerFuture<'a, Option<Hold>> {
        Box::pin(async move { Ok(Some(Hold::new(campaign, account, ()))) })
    }

    fn is_held<'a>(&'a self, _: &'a str, _: &'a str) -> LedgerFuture<'a, bool> {
        Box::pin(async { Ok(false) })
    }

    fn prepare_copies<'a>(&'a self, _: &'a Hold) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        no_copies()
    }

    fn copies<'a>(&'a self, _: &'a Run) -> LedgerFuture<'a, Copies> {
        no_copies()
    }

    fn stray_copies(&self) -> LedgerFuture<'_, Vec<StrayCopies>> {
        no_copies()
    }

    fn put_copies_aside<'a>(&'a self, _: &'a str) -> LedgerFuture<'a, String> {
        no_copies()
    }

    fn claim<'a>(&'a self, hold: &'a Hold, run: RunId) -> LedgerFuture<'a, Claim> {
        Box::pin(async move {
            let mistake = self.mistake;
            let change = |disk: &mut Disk, now| {
                if mistake == Some(Mistake::DoubtSentAgain) {
                    let book = disk.contents.book_mut(run)?;
                    book.envelopes.retain(|_, envelope| envelope.settled.is_some());
                }
                let left = disk.left(run, None);
                disk.places.shut(&left);
                let places = &disk.places;
                disk.contents.claim(now, hold, run, |place| places.is_there(place))
            };
            self.write(change).await
        })
    }

    fn draw_refusals<'a>(&'a self, _: &'a SharedRun, _: BlockRequest) -> LedgerFuture<'a, Vec<DrawRefusal>> {
        unreachable!("these worlds have no single messages")
    }

    /// A campaign draws none.
    fn draw<'a>(&'a self, _: &'a SharedRun, _: BlockRequest) -> LedgerFuture<'a, Drawn> {
        unreachable!("a campaign has a run of its own")
    }

    fn rows_in_hand(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap> {
        Box::pin(async move {
            self.life.step().await;
            let disk = self.disk();
            Ok(Rows::all_of(&disk.contents.blocks(run, |place| disk.places.is_there(place))))
        })
    }

    fn end(&self, lease: Lease, end: RunEnd) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, now| disk.contents.end(now, lease, end)).await })
    }

    fn begin(&self, intent: Intent) -> LedgerFuture<'_, Permit> {
        self.spoil_pace(&intent.account.name, intent.account.rate);
        Box::pin(async move {
            let wrong = self.mistake == Some(Mistake::ShareEpochUnseen);
            match self.be_heard(intent.lease.epoch).await? || wrong {
                true => self.begin_as_planned(intent).await,
                false => Ok(Permit::Lost),
            }
        })
    }

    fn may_leave(&self, lease: Lease) -> bool {
        match self.leases.last(lease.epoch) {
            Some(lasts) => lasts || self.mistake == Some(Mistake::ShareLeaseUnseen),
            None => {
                let owner = self.disk().book(lease.run).run.epoch;
                owner == Some(lease.epoch) || self.mistake == Some(Mistake::LeaseUnseen)
            }
        }
    }

    fn settle(&self, settlement: Settlement) -> LedgerFuture<'_, ()> {
        Box::pin(async move {
            if self.mistake == Some(Mistake::ToldBeforeTheCommit) {
                return self.tell_before((), move |disk, now| disk.settle(now, settlement)).await;
            }
            self.write(|disk, now| disk.settle(now, settlement)).await
        })
    }

    fn request_stop(&self, run: RunId, requested: bool) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, _| disk.contents.request_stop(run, requested)).await })
    }

    fn stop_requested(&self, run: RunId) -> LedgerFuture<'_, bool> {
        Box::pin(
            async move { self.read(|contents| contents.book(run).map(|book| book.run.stop_requested)).await.flatten() },
        )
    }

    fn slow_down<'a>(&'a self, account: &'a str, wait: Option<Duration>) -> LedgerFuture<'a, ()> {
        Box::pin(async move { self.write(|disk, now| disk.contents.slow_down(now, account, wait)).await })
    }

    fn reserve<'a>(&'a self, account: &'a Allowance, count: u32) -> LedgerFuture<'a, Wait> {
        Box::pin(async move { self.write(|disk, now| Ok(disk.contents.reserve(now, account, count))).await })
    }

    fn reserve_question<'a>(&'a self, account: &'a Allowance, longest: Duration) -> LedgerFuture<'a, QuestionTurn> {
        Box::pin(async move { self.write(|disk, now| Ok(disk.contents.reserve_question(now, account, longest))).await })
    }

    fn uncount(&self, lease: Lease) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, _| disk.contents.uncount(lease)).await })
    }

    fn envelope_summaries(&self, run: RunId) -> LedgerFuture<'_, Vec<EnvelopeSummary>> {
        Box::pin(async move { self.read(|contents| contents.book(run).map(Book::summaries)).await.flatten() })
    }

    fn envelopes(&self, run: RunId, numbers: RangeInclusive<u32>) -> LedgerFuture<'_, Vec<EnvelopeRecord>> {
        Box::pin(async move { self.read(|contents| contents.envelopes(run, numbers)).await })
    }

    fn evidence(&self, run: RunId, envelope: u32) -> LedgerFuture<'_, Option<String>> {
        Box::pin(async move {
            self.read(|contents| contents.book(run).map(|book| book.evidence.get(&envelope).cloned())).await.flatten()
        })
    }

    fn left_out(&self, run: RunId) -> LedgerFuture<'_, LeftOut> {
        Box::pin(
            async move { self.read(|contents| contents.book(run).map(|book| book.left_out.clone())).await.flatten() },
        )
    }

    fn numbers_sent_to<'a>(&'a self, runs: &'a [RunId]) -> LedgerFuture<'a, NumberSet> {
        Box::pin(async move {
            let forgets = self.mistake == Some(Mistake::GuardForgetsDoubt);
            self.read(|contents| if forgets { taken(contents, runs) } else { contents.numbers_sent_to(runs) }).await
        })
    }

    fn rows_sent(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap> {
        Box::pin(async move { self.read(|contents| contents.book(run).map(|book| book.rows_sent())).await.flatten() })
    }

    fn record(&self, lease: Lease, events: Vec<NewRowEvent>) -> LedgerFuture<'_, Ownership> {
        Box::pin(async move { self.write(|disk, now| disk.contents.record(now, lease, events)).await })
    }

    fn retry(&self, lease: Lease, order: RetryOrder) -> LedgerFuture<'_, Ownership> {
        Box::pin(async move { self.write(|disk, now| disk.contents.retry(now, lease, order)).await })
    }

    fn events(&self, run: RunId) -> LedgerFuture<'_, Vec<RowEvent>> {
        Box::pin(
            async move { self.read(|contents| contents.book(run).map(|book| book.events.clone())).await.flatten() },
        )
    }

    fn keep_asked(&self, run: RunId, questions: Vec<AskedRow>) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, _| disk.contents.ask(run, questions)).await })
    }

    fn asked_rows(&self, run: RunId) -> LedgerFuture<'_, Vec<AskedRow>> {
        let look = move |contents: &Contents| {
            contents.book(run).map(|book| book.questions.values().cloned().collect::<Vec<_>>())
        };
        Box::pin(async move { self.read(look).await.flatten() })
    }

    fn remember_host<'a>(&'a self, _: &'a str, host: &'a str) -> LedgerFuture<'a, String> {
        Box::pin(async { Ok(host.to_owned()) })
    }

    fn trust_host<'a>(&'a self, _: &'a str, _: &'a str) -> LedgerFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

impl ApprovalRules for ProcessLedger {
    fn approval_rules(&self) -> LedgerFuture<'_, Vec<KeptApprovalRule>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn keep_approval_rule(&self, _: KeptApprovalRule) -> LedgerFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

impl RepeatGuard for ProcessLedger {}

impl Contacts for ProcessLedger {
    fn capped<'a>(&'a self, caps: &'a [Cap], loopback: bool) -> LedgerFuture<'a, NumberSet> {
        Box::pin(self.read(move |contents| contents.capped(wall().as_microsecond(), caps, loopback)))
    }
}

impl SuppressionList for ProcessLedger {
    fn suppress(&self, opt_outs: Vec<OptOut>) -> LedgerFuture<'_, Additions> {
        Box::pin(async move { self.write(|disk, _| Ok(disk.contents.opt_outs.add(opt_outs))).await })
    }

    fn unsuppress(&self, _: Removal) -> LedgerFuture<'_, Vec<OptOut>> {
        unreachable!("nobody is taken off")
    }

    fn additions<'a>(&'a self, _: &'a [OptOut]) -> LedgerFuture<'a, Additions> {
        unreachable!("nothing is imported")
    }

    fn remove_entries(&self, _: EntryRemoval) -> LedgerFuture<'_, u64> {
        unreachable!("nothing is imported")
    }

    fn opted_out<'a>(&'a self, _: &'a str, _: bool) -> LedgerFuture<'a, OptedOut> {
        unreachable!("nobody has opted out when a run of these worlds is planned")
    }

    fn leave_out(&self, _: Lease, _: Vec<Row>, _: &'static str) -> LedgerFuture<'_, Ownership> {
        unreachable!("these worlds have no lists but the ledger's own")
    }

    fn opt_outs_of(&self, _: Phone) -> LedgerFuture<'_, Vec<OptOut>> {
        unreachable!("nobody asks about them")
    }

    fn opt_outs(&self, _: Option<i64>, _: u32) -> LedgerFuture<'_, OptOuts> {
        unreachable!("nobody lists them")
    }
}

/// The lists of these worlds come from their plans.
pub(super) fn no_copies<'a, T>() -> LedgerFuture<'a, T> {
    Box::pin(async { Err(LedgerError::Unreadable("nothing is copied in a simulation".to_owned())) })
}

/// The numbers whose message was surely taken: whoever skips no others sends to those in doubt again.
fn taken(contents: &Contents, runs: &[RunId]) -> NumberSet {
    let envelopes = runs.iter().filter_map(|run| contents.book(*run).ok()).flat_map(|book| book.envelopes.values());
    let mut numbers = RoaringTreemap::new();
    for envelope in envelopes {
        let outcomes = envelope.settled.iter().flat_map(|(_, outcomes)| outcomes);
        let is_taken = |outcome: &Outcome| matches!(outcome, Outcome::Accepted { .. } | Outcome::Queued { .. });
        let taken = envelope.rows.iter().zip(outcomes).filter(|(_, outcome)| is_taken(outcome));
        numbers.extend(taken.map(|(sent, _)| sent.to.get()));
    }
    NumberSet::new(numbers, None)
}
