//! The in-memory adapter of the ledger's port.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::contents::LedgerContents;
use super::copies::CopyStore;
use crate::{
    AccountRateLimit, Allowance, AskedRow, BlockRequest, CampaignLock, CampaignLockInfo, Claim, Copies, CopiesPurpose,
    DamagedRun, DrawOutcome, DrawRefusal, EnvelopeFilter, EnvelopeRecord, EnvelopeSummary, ExcludedRows, HostChange,
    IntegrityReport, Intent, Lease, Ledger, LedgerError, LedgerFuture, LedgerMaintenance, LedgerProperties, NewCopies,
    NewRun, Notification, NotificationQueue, NotificationUpdate, NumberFilter, NumberSet, OwnedBlock, Ownership,
    Permit, RateRequest, RowBlock, RowEvent, RowUpdate, Run, RunEnd, RunFilter, RunId, RunUpdate, ScheduledOccurrence,
    Settlement, SharedRun, SlotPermit, StrayCopies, run,
};
use campaign_core::domain::LOOPBACK;

/// A ledger that exists only in the memory of this process, for tests.
pub struct MemoryLedger {
    contents: Mutex<LedgerContents>,
    /// The names of held locks.
    held_names: Arc<Mutex<HashSet<String>>>,
    copies: CopyStore,
    /// The envelope numbers of each read.
    envelope_reads: Mutex<Vec<RangeInclusive<u32>>>,
    clock: fn() -> Timestamp,
    /// Whether another process holds the write lock.
    busy: AtomicBool,
}

impl MemoryLedger {
    /// A ledger with these contents.
    pub fn new(contents: LedgerContents, clock: fn() -> Timestamp) -> Self {
        let (contents, held_names, copies) = (Mutex::new(contents), Arc::default(), CopyStore::default());
        let (envelope_reads, busy) = (Mutex::default(), AtomicBool::default());
        Self { contents, held_names, copies, envelope_reads, clock, busy }
    }

    /// Simulates another process that holds the write lock (`true`) or releases it (`false`).
    pub fn set_busy(&self, is_busy: bool) {
        self.busy.store(is_busy, Ordering::Relaxed);
    }

    /// Returns the ranges of envelope numbers that were loaded since the last call.
    pub fn take_envelope_reads(&self) -> Vec<RangeInclusive<u32>> {
        std::mem::take(&mut *self.envelope_reads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks a name. `None` if the name is already locked.
    fn try_lock_name(&self, name: String) -> Option<HeldName> {
        let is_free = self.held_names.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        is_free.then(|| HeldName { held_names: Arc::clone(&self.held_names), name })
    }

    pub(super) fn lock_first_free_place(&self, campaign: &str, account: &str) -> (u32, HeldName) {
        let locked =
            (0..).find_map(|place| Some((place, self.try_lock_name(run::place_name(campaign, account, place))?)));
        locked.expect("there is always another place")
    }

    pub(super) fn is_name_locked(&self, name: &str) -> bool {
        self.held_names.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// Whether a place of a run is locked.
    pub(super) fn is_place_locked(&self, run: &Run, place: u32) -> bool {
        self.is_name_locked(&run::place_name(&run.campaign, &run.account, place))
    }

    pub(super) fn stored_copies(&self) -> &CopyStore {
        &self.copies
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn lock_contents(&self) -> MutexGuard<'_, LedgerContents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write_contents<'a, T: Send + 'a>(
        &'a self,
        change: impl FnOnce(&mut LedgerContents, i64) -> Result<T, LedgerError> + Send + 'a,
    ) -> LedgerFuture<'a, T> {
        Box::pin(async move {
            if self.busy.load(Ordering::Relaxed) {
                return Err(LedgerError::from_lock_holder(&"memory", "another process is using the ledger"));
            }
            change(&mut self.lock_contents(), self.now().as_microsecond())
        })
    }

    pub(super) fn read_contents<'a, T: Send + 'a>(
        &'a self,
        read: impl FnOnce(&LedgerContents) -> T + Send + 'a,
    ) -> LedgerFuture<'a, T> {
        Box::pin(async move { Ok(read(&self.lock_contents())) })
    }
}

/// A locked name, released on drop.
pub(super) struct HeldName {
    held_names: Arc<Mutex<HashSet<String>>>,
    name: String,
}

impl Drop for HeldName {
    fn drop(&mut self) {
        self.held_names.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

impl LedgerMaintenance for MemoryLedger {
    fn properties(&self) -> LedgerProperties {
        LedgerProperties { location: "memory".to_owned(), stores_consents: true, ..LedgerProperties::default() }
    }

    fn check_integrity(&self) -> BoxFuture<'_, IntegrityReport> {
        Box::pin(std::future::ready(IntegrityReport { storage: Ok(()), records: Ok(Vec::new()) }))
    }

    fn list_rate_limits(&self) -> LedgerFuture<'_, Vec<(String, AccountRateLimit)>> {
        self.read_contents(|contents| contents.list_rate_limits())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl NotificationQueue for MemoryLedger {
    fn take_notifications(&self, interval: Duration, reserved_for: Duration) -> LedgerFuture<'_, Vec<Notification>> {
        self.write_contents(move |contents, now| contents.take_notifications(now, interval, reserved_for))
    }

    fn update_notifications(&self, update: NotificationUpdate) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, now| contents.update_notifications(now, update))
    }
}

impl Ledger for MemoryLedger {
    fn create_run<'a>(
        &'a self,
        new: &'a NewRun,
        occurrence: Option<&'a ScheduledOccurrence>,
    ) -> LedgerFuture<'a, Option<Run>> {
        self.write_contents(move |contents, _| match occurrence {
            Some(occurrence) => contents.fire_occurrence(new, occurrence),
            None => contents.create_run(new).map(Some),
        })
    }

    fn open_run<'a>(
        &'a self,
        run: RunId,
        replaced: Option<RunId>,
        approval: Option<&'a str>,
    ) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, now| {
            if let Some(token) = approval
                && !contents.use_approval(now, token, Some(run))?
            {
                return Ok(false);
            }
            contents.open_run(now, run, replaced).map(|()| true)
        })
    }

    fn update_runs(&self, runs: Vec<RunId>, update: RunUpdate) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, now| {
            runs.into_iter().try_for_each(|run| contents.update_run(now, run, update.clone()).map(drop))
        })
    }

    fn list_stored_runs(&self, filter: RunFilter) -> LedgerFuture<'_, Vec<Result<Run, DamagedRun>>> {
        self.read_contents(move |contents| contents.list_runs(&filter).into_iter().map(Ok).collect())
    }

    fn acquire_campaign_lock<'a>(
        &'a self,
        campaign: &'a str,
        account: &'a str,
    ) -> LedgerFuture<'a, Option<CampaignLock>> {
        Box::pin(async move {
            let guard = self.try_lock_name(run::lock_name(campaign, account));
            Ok(guard.map(|guard| CampaignLock::new(campaign, account, guard)))
        })
    }

    fn find_campaign_lock<'a>(
        &'a self,
        campaign: &'a str,
        account: &'a str,
    ) -> LedgerFuture<'a, Option<CampaignLockInfo>> {
        Box::pin(async move {
            Ok(self.is_name_locked(&run::lock_name(campaign, account)).then_some(CampaignLockInfo { since: None }))
        })
    }

    fn prepare_copies<'a>(&'a self, _: CopiesPurpose<'a>) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        Box::pin(async { Ok(self.copies.prepare()) })
    }

    fn load_copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Copies> {
        Box::pin(async {
            LedgerError::refuse_purged(run)?;
            self.copies.load_copies(&run.name())
        })
    }

    fn list_stray_copies(&self) -> LedgerFuture<'_, Vec<StrayCopies>> {
        self.read_contents(|contents| {
            let known: Vec<String> = contents.stored_runs().map(|stored| stored.run.name()).collect();
            self.copies.list_stray_copies(&known)
        })
    }

    fn set_copies_aside<'a>(&'a self, run: &'a str) -> LedgerFuture<'a, String> {
        Box::pin(async { Ok(self.copies.set_aside(run)) })
    }

    fn claim_run<'a>(&'a self, lock: &'a CampaignLock, run: RunId) -> LedgerFuture<'a, Claim> {
        self.write_contents(move |contents, now| {
            let claimed = contents.stored_run(run)?.run.clone();
            contents.claim_run(now, lock, run, |place| self.is_place_locked(&claimed, place))
        })
    }

    fn draw_block<'a>(&'a self, shared: &'a SharedRun, request: BlockRequest) -> LedgerFuture<'a, DrawOutcome> {
        self.write_contents(move |contents, now| {
            let (campaign, account) = (&shared.campaign, &shared.account);
            let (place, lock) = self.lock_first_free_place(campaign, account);
            let drawn = contents.draw_block(now, (shared, rand::random()), (place, request))?;
            Ok(drawn
                .map_or_else(DrawOutcome::Refused, |(run, lease)| DrawOutcome::Block(RowBlock::new(run, lease, lock))))
        })
    }

    fn list_draw_refusals<'a>(
        &'a self,
        shared: &'a SharedRun,
        request: BlockRequest,
    ) -> LedgerFuture<'a, Vec<DrawRefusal>> {
        self.write_contents(move |contents, now| contents.list_draw_refusals(now, shared, request))
    }

    fn list_owned_blocks(&self, run: RunId) -> LedgerFuture<'_, Vec<OwnedBlock>> {
        self.write_contents(move |contents, _| {
            let Ok(stored) = contents.stored_run(run) else { return Ok(Vec::new()) };
            contents.list_owned_blocks(run, |place| self.is_place_locked(&stored.run, place))
        })
    }

    fn end_run(&self, lease: Lease, end: RunEnd) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, now| contents.end_run(now, lease, end))
    }

    fn begin_envelope(&self, intent: Intent) -> LedgerFuture<'_, Permit> {
        self.write_contents(move |contents, now| contents.begin_envelope(now, intent))
    }

    fn settle_envelope(&self, settlement: Settlement) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, now| contents.settle_envelope(now, settlement))
    }

    fn is_stop_requested(&self, run: RunId) -> LedgerFuture<'_, bool> {
        self.write_contents(move |contents, _| contents.stored_run(run).map(|stored| stored.run.stop_requested))
    }

    fn use_rate_limit<'a>(&'a self, account: &'a Allowance, request: RateRequest) -> LedgerFuture<'a, SlotPermit> {
        self.write_contents(move |contents, now| Ok(contents.use_rate_limit(now, account, request)))
    }

    fn list_envelope_summaries(&self, run: RunId) -> LedgerFuture<'_, Vec<EnvelopeSummary>> {
        self.read_contents(move |contents| {
            contents.stored_run(run).map_or_else(|_| Vec::new(), |stored| stored.envelope_summaries())
        })
    }

    fn load_envelopes(&self, run: RunId, filter: EnvelopeFilter) -> LedgerFuture<'_, Vec<EnvelopeRecord>> {
        if let EnvelopeFilter::Numbers(numbers) = &filter {
            self.envelope_reads.lock().unwrap_or_else(PoisonError::into_inner).push(numbers.clone());
        }
        self.read_contents(move |contents| contents.load_envelopes(run, &filter))
    }

    fn load_excluded_rows(&self, run: RunId) -> LedgerFuture<'_, ExcludedRows> {
        self.read_contents(move |contents| {
            contents.stored_run(run).map(|stored| stored.excluded.clone()).unwrap_or_default()
        })
    }

    fn load_numbers<'a>(&'a self, filter: NumberFilter<'a>) -> LedgerFuture<'a, NumberSet> {
        let now = self.now().as_microsecond();
        self.read_contents(move |contents| contents.load_numbers(now, filter))
    }

    fn load_sent_rows(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap> {
        self.read_contents(move |contents| {
            contents.stored_run(run).map(|stored| stored.sent_rows()).unwrap_or_default()
        })
    }

    fn update_rows(&self, lease: Lease, update: RowUpdate) -> LedgerFuture<'_, Ownership> {
        self.write_contents(move |contents, now| contents.update_rows(now, lease, update))
    }

    fn load_events(&self, run: RunId) -> LedgerFuture<'_, Vec<RowEvent>> {
        self.read_contents(move |contents| {
            contents.stored_run(run).map(|stored| stored.events.clone()).unwrap_or_default()
        })
    }

    fn load_asked_rows(&self, run: RunId) -> LedgerFuture<'_, Vec<AskedRow>> {
        self.read_contents(move |contents| {
            contents.stored_run(run).map(|stored| stored.inquiries.values().cloned().collect()).unwrap_or_default()
        })
    }

    fn remember_host<'a>(&'a self, profile: &'a str, host: &'a str, change: HostChange) -> LedgerFuture<'a, String> {
        if host == LOOPBACK && change == HostChange::IfUnknown {
            return self.read_contents(move |contents| {
                contents.hosts.get(profile).cloned().unwrap_or_else(|| host.to_owned())
            });
        }
        self.write_contents(move |contents, _| {
            let known = contents.hosts.entry(profile.to_owned()).or_insert_with(|| host.to_owned());
            if change == HostChange::Replace {
                host.clone_into(known);
            }
            Ok(known.clone())
        })
    }
}
