//! The port over what is held in memory.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::contents::Contents;
use super::copies::Shelf;
use crate::domain::{Cap, LOOPBACK, MessageId};
use crate::ledger::{
    AccountPace, Allowance, AskedRow, Block, BlockRequest, Claim, Contacts, Copies, DrawRefusal, Drawn, EnvelopeRecord,
    EnvelopeSummary, Hold, Intent, Lease, Ledger, LedgerError, LedgerFuture, LeftOut, NewCopies, NewNotification,
    NewRowEvent, NewRun, Notification, NotificationQueue, NumberSet, Origin, Ownership, Permit, QuestionTurn,
    RetryOrder, RowEvent, Rows, Run, RunEnd, RunFilter, RunId, Settlement, SharedRun, StrayCopies, Told, Upkeep, Wait,
    hold,
};

/// The ledger in memory.
pub(crate) struct MemoryLedger {
    contents: Mutex<Contents>,
    /// The campaigns on accounts that somebody has.
    held: Arc<Mutex<HashSet<String>>>,
    copies: Shelf,
    /// The numbers of the envelopes that were read, call by call.
    read: Mutex<Vec<RangeInclusive<u32>>>,
    clock: fn() -> Timestamp,
    /// Whether another process has the turn to write.
    busy: AtomicBool,
}

impl MemoryLedger {
    /// One that holds this.
    pub(crate) fn new(contents: Contents, clock: fn() -> Timestamp) -> Self {
        let (contents, held, copies) = (Mutex::new(contents), Arc::default(), Shelf::default());
        Self { contents, held, copies, read: Mutex::default(), clock, busy: AtomicBool::default() }
    }

    /// Has another process take the turn to write, or give it back.
    pub(crate) fn set_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Relaxed);
    }

    /// Which envelopes were read since this was last asked, call by call.
    pub(crate) fn take_read(&self) -> Vec<RangeInclusive<u32>> {
        std::mem::take(&mut *self.read.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes what has this name; nothing where somebody has it.
    fn take(&self, name: String) -> Option<HeldName> {
        let free = self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        free.then(|| HeldName { held: Arc::clone(&self.held), name })
    }

    /// The first place where nobody is, taken.
    pub(super) fn free_place(&self, campaign: &str, account: &str) -> (u32, HeldName) {
        let free = (0..).find_map(|place| Some((place, self.take(hold::place_name(campaign, account, place))?)));
        free.expect("there is always another place")
    }

    pub(super) fn is_taken(&self, name: &str) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// Whether somebody is at this place of a run.
    pub(super) fn has_taken(&self, run: &Run, place: u32) -> bool {
        self.is_taken(&hold::place_name(&run.campaign, &run.account, place))
    }

    pub(super) fn copies(&self) -> &Shelf {
        &self.copies
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change<'a, T: Send + 'a>(
        &'a self,
        change: impl FnOnce(&mut Contents, i64) -> Result<T, LedgerError> + Send + 'a,
    ) -> LedgerFuture<'a, T> {
        Box::pin(async move {
            if self.busy.load(Ordering::Relaxed) {
                return Err(LedgerError::Busy {
                    path: "memory".into(),
                    who: "another process is using the ledger".into(),
                });
            }
            change(&mut self.lock(), (self.clock)().as_microsecond())
        })
    }

    pub(super) fn look<'a, T: Send + 'a>(
        &'a self,
        look: impl FnOnce(&Contents) -> T + Send + 'a,
    ) -> LedgerFuture<'a, T> {
        Box::pin(async move { Ok(look(&self.lock())) })
    }
}

/// A campaign on an account that is given back when this is dropped.
pub(super) struct HeldName {
    held: Arc<Mutex<HashSet<String>>>,
    name: String,
}

impl Drop for HeldName {
    fn drop(&mut self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

impl Upkeep for MemoryLedger {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn prove_writable(&self) -> LedgerFuture<'_, ()> {
        self.look(|_| ())
    }

    fn prove_sound(&self) -> LedgerFuture<'_, ()> {
        self.look(|_| ())
    }

    fn paces(&self) -> LedgerFuture<'_, Vec<(String, AccountPace)>> {
        self.look(|contents| contents.account_paces())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Contacts for MemoryLedger {
    fn capped<'a>(&'a self, caps: &'a [Cap], loopback: bool) -> LedgerFuture<'a, NumberSet> {
        let now = (self.clock)().as_microsecond();
        self.look(move |contents| contents.capped(now, caps, loopback))
    }
}

impl NotificationQueue for MemoryLedger {
    fn notify(&self, new: Vec<NewNotification>) -> LedgerFuture<'_, ()> {
        self.change(move |contents, now| contents.notify(now, new))
    }

    fn notifications_due(&self, apart: Duration) -> LedgerFuture<'_, bool> {
        self.change(move |contents, now| Ok(!contents.due(now, apart)?.is_empty()))
    }

    fn take_notifications(&self, apart: Duration, held: Duration) -> LedgerFuture<'_, Vec<Notification>> {
        self.change(move |contents, now| contents.take_notifications(now, apart, held))
    }

    fn told(&self, keys: Vec<i64>, told: Told) -> LedgerFuture<'_, ()> {
        self.change(move |contents, now| contents.told(now, &keys, told))
    }
}

impl Ledger for MemoryLedger {
    fn create_run<'a>(&'a self, new: &'a NewRun) -> LedgerFuture<'a, Run> {
        self.change(|contents, _| contents.create_run(new))
    }

    fn open_run(&self, run: RunId, replaced: Option<RunId>) -> LedgerFuture<'_, ()> {
        self.change(move |contents, now| contents.open_run(now, run, replaced))
    }

    fn retire(&self, run: RunId) -> LedgerFuture<'_, ()> {
        self.change(move |contents, now| contents.retire(now, run))
    }

    fn moved(&self, runs: Vec<RunId>, file: String) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| contents.moved(&runs, &file))
    }

    fn results_moved(&self, run: RunId, results: String) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| contents.results_moved(run, results))
    }

    fn runs(&self, wanted: RunFilter) -> LedgerFuture<'_, Vec<Run>> {
        self.look(move |contents| contents.runs(&wanted))
    }

    fn find(&self, id: MessageId) -> LedgerFuture<'_, Option<Origin>> {
        self.look(move |contents| contents.find(id))
    }

    fn hold<'a>(&'a self, campaign: &'a str, account: &'a str) -> LedgerFuture<'a, Option<Hold>> {
        Box::pin(async move {
            let kept = self.take(hold::name(campaign, account));
            Ok(kept.map(|kept| Hold::new(campaign, account, kept)))
        })
    }

    fn is_held<'a>(&'a self, campaign: &'a str, account: &'a str) -> LedgerFuture<'a, bool> {
        Box::pin(async move { Ok(self.is_taken(&hold::name(campaign, account))) })
    }

    fn prepare_copies<'a>(&'a self, _: &'a Hold) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        Box::pin(async { Ok(self.copies.prepare()) })
    }

    fn copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Copies> {
        Box::pin(async {
            LedgerError::refuse_purged(run)?;
            self.copies.of(&run.name())
        })
    }

    fn stray_copies(&self) -> LedgerFuture<'_, Vec<StrayCopies>> {
        self.look(|contents| {
            let known: Vec<String> = contents.books().map(|book| book.run.name()).collect();
            self.copies.strays(&known)
        })
    }

    fn put_copies_aside<'a>(&'a self, run: &'a str) -> LedgerFuture<'a, String> {
        Box::pin(async { Ok(self.copies.put_aside(run)) })
    }

    fn claim<'a>(&'a self, hold: &'a Hold, run: RunId) -> LedgerFuture<'a, Claim> {
        self.change(move |contents, now| {
            let known = contents.book(run)?.run.clone();
            contents.claim(now, hold, run, |place| self.has_taken(&known, place))
        })
    }

    fn draw<'a>(&'a self, shared: &'a SharedRun, wanted: BlockRequest) -> LedgerFuture<'a, Drawn> {
        self.change(move |contents, now| {
            let (campaign, account) = (&shared.campaign, &shared.account);
            let (place, kept) = self.free_place(campaign, account);
            let drawn = contents.draw(now, (shared, rand::random()), (place, wanted))?;
            Ok(drawn.map_or_else(Drawn::Refused, |(run, lease)| Drawn::Block(Block::new(run, lease, kept))))
        })
    }

    fn draw_refusals<'a>(&'a self, shared: &'a SharedRun, wanted: BlockRequest) -> LedgerFuture<'a, Vec<DrawRefusal>> {
        self.change(move |contents, now| contents.draw_refusals(now, shared, wanted))
    }

    fn rows_in_hand(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap> {
        self.look(move |contents| {
            let Ok(book) = contents.book(run) else { return RoaringBitmap::new() };
            Rows::all_of(&contents.blocks(run, |place| self.has_taken(&book.run, place)))
        })
    }

    fn end(&self, lease: Lease, end: RunEnd) -> LedgerFuture<'_, ()> {
        self.change(move |contents, now| contents.end(now, lease, end))
    }

    fn begin(&self, intent: Intent) -> LedgerFuture<'_, Permit> {
        self.change(move |contents, now| contents.begin(now, intent))
    }

    fn settle(&self, settlement: Settlement) -> LedgerFuture<'_, ()> {
        self.change(move |contents, now| contents.settle(now, settlement))
    }

    fn request_stop(&self, run: RunId, requested: bool) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| contents.request_stop(run, requested))
    }

    fn stop_requested(&self, run: RunId) -> LedgerFuture<'_, bool> {
        self.change(move |contents, _| contents.book(run).map(|book| book.run.stop_requested))
    }

    fn slow_down<'a>(&'a self, account: &'a str, wait: Option<Duration>) -> LedgerFuture<'a, ()> {
        self.change(move |contents, now| contents.slow_down(now, account, wait))
    }

    fn reserve<'a>(&'a self, account: &'a Allowance, count: u32) -> LedgerFuture<'a, Wait> {
        self.change(move |contents, now| Ok(contents.reserve(now, account, count)))
    }

    fn reserve_question<'a>(&'a self, account: &'a Allowance, longest: Duration) -> LedgerFuture<'a, QuestionTurn> {
        self.change(move |contents, now| Ok(contents.reserve_question(now, account, longest)))
    }

    fn uncount(&self, lease: Lease) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| contents.uncount(lease))
    }

    fn envelope_summaries(&self, run: RunId) -> LedgerFuture<'_, Vec<EnvelopeSummary>> {
        self.look(move |contents| contents.book(run).map_or_else(|_| Vec::new(), |book| book.summaries()))
    }

    fn envelopes(&self, run: RunId, numbers: RangeInclusive<u32>) -> LedgerFuture<'_, Vec<EnvelopeRecord>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).push(numbers.clone());
        self.look(move |contents| contents.envelopes(run, numbers))
    }

    fn evidence(&self, run: RunId, envelope: u32) -> LedgerFuture<'_, Option<String>> {
        self.look(move |contents| contents.book(run).ok().and_then(|book| book.evidence.get(&envelope).cloned()))
    }

    fn left_out(&self, run: RunId) -> LedgerFuture<'_, LeftOut> {
        self.look(move |contents| contents.book(run).map(|book| book.left_out.clone()).unwrap_or_default())
    }

    fn numbers_sent_to<'a>(&'a self, runs: &'a [RunId]) -> LedgerFuture<'a, NumberSet> {
        self.look(move |contents| contents.numbers_sent_to(runs))
    }

    fn rows_sent(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap> {
        self.look(move |contents| contents.book(run).map(|book| book.rows_sent()).unwrap_or_default())
    }

    fn record(&self, lease: Lease, events: Vec<NewRowEvent>) -> LedgerFuture<'_, Ownership> {
        self.change(move |contents, now| contents.record(now, lease, events))
    }

    fn retry(&self, lease: Lease, order: RetryOrder) -> LedgerFuture<'_, Ownership> {
        self.change(move |contents, now| contents.retry(now, lease, order))
    }

    fn events(&self, run: RunId) -> LedgerFuture<'_, Vec<RowEvent>> {
        self.look(move |contents| contents.book(run).map(|book| book.events.clone()).unwrap_or_default())
    }

    fn keep_asked(&self, run: RunId, questions: Vec<AskedRow>) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| contents.ask(run, questions))
    }

    fn asked_rows(&self, run: RunId) -> LedgerFuture<'_, Vec<AskedRow>> {
        self.look(move |contents| {
            contents.book(run).map(|book| book.questions.values().cloned().collect()).unwrap_or_default()
        })
    }

    fn remember_host<'a>(&'a self, profile: &'a str, host: &'a str) -> LedgerFuture<'a, String> {
        if host == LOOPBACK {
            return self.look(move |contents| contents.hosts.get(profile).cloned().unwrap_or_else(|| host.to_owned()));
        }
        self.change(move |contents, _| {
            Ok(contents.hosts.entry(profile.to_owned()).or_insert_with(|| host.to_owned()).clone())
        })
    }

    fn trust_host<'a>(&'a self, profile: &'a str, host: &'a str) -> LedgerFuture<'a, ()> {
        self.change(move |contents, _| {
            contents.hosts.insert(profile.to_owned(), host.to_owned());
            Ok(())
        })
    }
}
