//! The simulated ledger of a process: each change takes time, and might or might not be on disk when the process ends.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use roaring::{RoaringBitmap, RoaringTreemap};
use tokio::time::sleep;

use super::judge::Sighting;
use super::mistakes::Mistake;
use super::process::{ProcessLife, SimulatedDisk, wall_now};
use super::shards::HeldPlaces;
use campaign_core::domain::OperationOutcome;
use campaign_ledger::memory::{LedgerContents, StoredRun};
use campaign_ledger::{
    AccountRateLimit, ActiveSchedule, AdditionMode, Additions, Allowance, AskedRow, BlockRequest, CampaignLock,
    CampaignLockInfo, Claim, ConsentEvidence, ConsentStore, Copies, CopiesPurpose, DamagedOccurrence, DamagedPlan,
    DamagedRun, DamagedSchedule, DrawOutcome, DrawRefusal, EnvelopeFilter, EnvelopeRecord, EnvelopeSummary,
    ExcludedRows, ForgetOrder, Forgetting, HostChange, IntegrityReport, Intent, Lease, Ledger, LedgerError,
    LedgerFuture, LedgerMaintenance, LedgerProperties, NewCopies, NewReceipt, NewRun, Notification, NotificationQueue,
    NotificationUpdate, NumberFilter, NumberSet, OccurrenceFilter, OccurrenceRecord, OptOut, OptOutFilter, OptOutPage,
    OptOutRemoval, OwnedBlock, Ownership, Permit, PlanFilter, PlanRecord, PlanStore, PurgeOrder, RateRequest,
    ReceiptOutcome, ReceiptStore, RepeatGuard, RowEvent, RowReceipts, RowSpan, RowUpdate, Run, RunEnd, RunFilter,
    RunId, RunUpdate, ScheduleStore, ScheduleUpdate, ScheduledOccurrence, Settlement, SharedRun, SlotPermit, SlotWait,
    StopRequest, StoredPlanRecord, StrayCopies, SuppressedNumbers, SuppressionList, SuppressionPolicy,
};

/// The time that a commit takes before it is durable, and again afterwards.
const COMMIT: Duration = Duration::from_millis(2);

/// One process's handle to the simulated disk.
pub(super) struct ProcessLedger {
    pub(super) disk: Arc<Mutex<SimulatedDisk>>,
    pub(super) life: Arc<ProcessLife>,
    pub(super) leases: Arc<HeldPlaces>,
    pub(super) mistake: Option<Mistake>,
}

impl ProcessLedger {
    pub(super) fn disk(&self) -> MutexGuard<'_, SimulatedDisk> {
        self.disk.lock().unwrap()
    }

    /// Makes a change to the ledger. The process can end before the change, or between the commit and the return.
    pub(super) async fn write<T>(
        &self,
        change: impl FnOnce(&mut SimulatedDisk, i64) -> Result<T, LedgerError> + Send,
    ) -> Result<T, LedgerError> {
        self.life.take_step().await;
        sleep(COMMIT).await;
        self.life.take_step().await;
        let result = change(&mut self.disk(), wall_now().as_microsecond());
        sleep(COMMIT).await;
        self.life.take_step().await;
        result
    }

    async fn read<T>(&self, query: impl FnOnce(&LedgerContents) -> T + Send) -> Result<T, LedgerError> {
        self.life.take_step().await;
        Ok(query(&self.disk().contents))
    }

    /// Makes a change that is reported before it is on the disk.
    pub(super) async fn report_before_commit<T>(
        &self,
        result: T,
        change: impl FnOnce(&mut SimulatedDisk, i64) -> Result<(), LedgerError> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let (disk, life) = (Arc::clone(&self.disk), Arc::clone(&self.life));
        tokio::spawn(async move {
            sleep(Duration::from_millis(50)).await;
            life.take_step().await;
            change(&mut disk.lock().unwrap(), wall_now().as_microsecond())
        });
        Ok(result)
    }
}

impl ReceiptStore for ProcessLedger {
    fn store_receipts(&self, receipts: Vec<NewReceipt>) -> LedgerFuture<'_, Vec<ReceiptOutcome>> {
        Box::pin(async move { self.write(|disk, now| disk.contents.store_receipts(now, receipts)).await })
    }

    fn remember_check_values<'a>(&'a self, _: &'a str, _: Option<Vec<String>>) -> LedgerFuture<'a, Vec<String>> {
        unreachable!("these worlds have no webhooks")
    }

    fn load_receipts(&self, run: RunId, rows: Range<u32>) -> LedgerFuture<'_, Vec<RowReceipts>> {
        let forgets_receipts = self.mistake == Some(Mistake::ReceiptsForgotten);
        let rows = if forgets_receipts { 0..0 } else { rows };
        Box::pin(async move { self.read(|contents| contents.load_receipts(run, rows)).await })
    }
}

impl LedgerMaintenance for ProcessLedger {
    fn properties(&self) -> LedgerProperties {
        LedgerProperties { location: "memory".to_owned(), stores_consents: true, ..LedgerProperties::default() }
    }

    fn check_integrity(&self) -> BoxFuture<'_, IntegrityReport> {
        unreachable!("nothing is damaged in these worlds")
    }

    fn list_rate_limits(&self) -> LedgerFuture<'_, Vec<(String, AccountRateLimit)>> {
        Box::pin(self.read(|contents| contents.list_rate_limits()))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl NotificationQueue for ProcessLedger {
    fn take_notifications(&self, interval: Duration, claim_time: Duration) -> LedgerFuture<'_, Vec<Notification>> {
        let take = move |disk: &mut SimulatedDisk, now| disk.contents.take_notifications(now, interval, claim_time);
        Box::pin(async move { self.write(take).await })
    }

    fn update_notifications(&self, update: NotificationUpdate) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, now| disk.contents.update_notifications(now, update)).await })
    }
}

impl Ledger for ProcessLedger {
    fn create_run<'a>(&'a self, new: &'a NewRun, _: Option<&'a ScheduledOccurrence>) -> LedgerFuture<'a, Option<Run>> {
        Box::pin(async move { self.write(|disk, _| disk.contents.create_run(new).map(Some)).await })
    }

    fn open_run<'a>(&'a self, run: RunId, replaced: Option<RunId>, _: Option<&'a str>) -> LedgerFuture<'a, bool> {
        Box::pin(async move {
            self.write(|disk, now| disk.contents.open_run(now, run, replaced)).await?;
            Ok(true)
        })
    }

    fn update_runs(&self, runs: Vec<RunId>, update: RunUpdate) -> LedgerFuture<'_, ()> {
        Box::pin(async move {
            self.write(|disk, now| {
                let halts = matches!(update, RunUpdate::Stop(StopRequest::Halt { .. }));
                for run in runs {
                    let changes = disk.contents.update_run(now, run, update.clone())?;
                    if changes && halts && disk.has_other_workers(run, &self.life) {
                        disk.record_sighting(Sighting::HaltedForAll);
                    }
                }
                Ok(())
            })
            .await
        })
    }

    fn list_stored_runs(&self, filter: RunFilter) -> LedgerFuture<'_, Vec<Result<Run, DamagedRun>>> {
        Box::pin(async move { self.read(|contents| contents.list_runs(&filter).into_iter().map(Ok).collect()).await })
    }

    /// Every process gets the lock: the previous owner counts as gone, as after an expired lease.
    fn acquire_campaign_lock<'a>(
        &'a self,
        campaign: &'a str,
        account: &'a str,
    ) -> LedgerFuture<'a, Option<CampaignLock>> {
        Box::pin(async move { Ok(Some(CampaignLock::new(campaign, account, ()))) })
    }

    fn find_campaign_lock<'a>(&'a self, _: &'a str, _: &'a str) -> LedgerFuture<'a, Option<CampaignLockInfo>> {
        Box::pin(async { Ok(None) })
    }

    fn prepare_copies<'a>(&'a self, _: CopiesPurpose<'a>) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        reject_copies()
    }

    fn load_copies<'a>(&'a self, _: &'a Run) -> LedgerFuture<'a, Copies> {
        reject_copies()
    }

    fn list_stray_copies(&self) -> LedgerFuture<'_, Vec<StrayCopies>> {
        reject_copies()
    }

    fn set_copies_aside<'a>(&'a self, _: &'a str) -> LedgerFuture<'a, String> {
        reject_copies()
    }

    fn claim_run<'a>(&'a self, lock: &'a CampaignLock, run: RunId) -> LedgerFuture<'a, Claim> {
        Box::pin(async move {
            let mistake = self.mistake;
            let change = |disk: &mut SimulatedDisk, now| {
                if mistake == Some(Mistake::DoubtResent) {
                    let stored = disk.contents.stored_run_mut(run)?;
                    stored.envelopes.retain(|_, envelope| envelope.settled.is_some());
                }
                let abandoned = disk.abandoned_places(run, None);
                disk.places.release_all(&abandoned);
                let places = &disk.places;
                disk.contents.claim_run(now, lock, run, |place| places.is_occupied(place))
            };
            self.write(change).await
        })
    }

    fn list_draw_refusals<'a>(&'a self, _: &'a SharedRun, _: BlockRequest) -> LedgerFuture<'a, Vec<DrawRefusal>> {
        unreachable!("these worlds have no single messages")
    }

    /// A campaign draws no blocks.
    fn draw_block<'a>(&'a self, _: &'a SharedRun, _: BlockRequest) -> LedgerFuture<'a, DrawOutcome> {
        unreachable!("a campaign has a run of its own")
    }

    fn list_owned_blocks(&self, run: RunId) -> LedgerFuture<'_, Vec<OwnedBlock>> {
        Box::pin(async move {
            self.life.take_step().await;
            let disk = self.disk();
            disk.contents.list_owned_blocks(run, |place| disk.places.is_occupied(place))
        })
    }

    fn end_run(&self, lease: Lease, end: RunEnd) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, now| disk.contents.end_run(now, lease, end)).await })
    }

    fn begin_envelope(&self, intent: Intent) -> LedgerFuture<'_, Permit> {
        self.corrupt_rate_limit(&intent.account.name, intent.account.rate);
        Box::pin(async move {
            let ignores_epoch = self.mistake == Some(Mistake::ShardEpochIgnored);
            match self.renew_if_lost(intent.lease.epoch).await? || ignores_epoch {
                true => self.begin_with_mistake(intent).await,
                false => Ok(Permit::Lost),
            }
        })
    }

    fn may_still_send(&self, lease: Lease) -> bool {
        match self.leases.is_reliable(lease.epoch) {
            Some(is_reliable) => is_reliable || self.mistake == Some(Mistake::ShardLeaseIgnored),
            None => {
                let owner = self.disk().stored_run(lease.run).run.epoch;
                owner == Some(lease.epoch) || self.mistake == Some(Mistake::LeaseIgnored)
            }
        }
    }

    fn settle_envelope(&self, settlement: Settlement) -> LedgerFuture<'_, ()> {
        Box::pin(async move {
            if self.mistake == Some(Mistake::ReportedBeforeCommit) {
                return self.report_before_commit((), move |disk, now| disk.settle_envelope(now, settlement)).await;
            }
            self.write(|disk, now| disk.settle_envelope(now, settlement)).await
        })
    }

    fn is_stop_requested(&self, run: RunId) -> LedgerFuture<'_, bool> {
        Box::pin(async move {
            self.read(|contents| contents.stored_run(run).map(|stored| stored.run.stop_requested)).await.flatten()
        })
    }

    fn use_rate_limit<'a>(&'a self, account: &'a Allowance, request: RateRequest) -> LedgerFuture<'a, SlotPermit> {
        Box::pin(async move { self.write(|disk, now| Ok(disk.contents.use_rate_limit(now, account, request))).await })
    }

    fn list_envelope_summaries(&self, run: RunId) -> LedgerFuture<'_, Vec<EnvelopeSummary>> {
        Box::pin(async move {
            self.read(|contents| contents.stored_run(run).map(StoredRun::envelope_summaries)).await.flatten()
        })
    }

    fn load_envelopes(&self, run: RunId, filter: EnvelopeFilter) -> LedgerFuture<'_, Vec<EnvelopeRecord>> {
        Box::pin(async move { self.read(|contents| contents.load_envelopes(run, &filter)).await })
    }

    fn load_excluded_rows(&self, run: RunId) -> LedgerFuture<'_, ExcludedRows> {
        Box::pin(async move {
            self.read(|contents| contents.stored_run(run).map(|stored| stored.excluded.clone())).await.flatten()
        })
    }

    fn load_numbers<'a>(&'a self, filter: NumberFilter<'a>) -> LedgerFuture<'a, NumberSet> {
        Box::pin(async move {
            let forgets_doubt = self.mistake == Some(Mistake::GuardForgetsDoubt);
            let now = wall_now().as_microsecond();
            self.read(|contents| match filter {
                NumberFilter::Sent(runs) if forgets_doubt => accepted_numbers(contents, runs),
                filter => contents.load_numbers(now, filter),
            })
            .await
        })
    }

    fn load_sent_rows(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap> {
        Box::pin(async move {
            self.read(|contents| contents.stored_run(run).map(|stored| stored.sent_rows())).await.flatten()
        })
    }

    fn update_rows(&self, lease: Lease, update: RowUpdate) -> LedgerFuture<'_, Ownership> {
        Box::pin(async move {
            self.write(|disk, now| {
                let is_sharding = matches!(update, RowUpdate::Sharded { .. });
                let ownership = disk.contents.update_rows(now, lease, update)?;
                if is_sharding && ownership == Ownership::Held {
                    disk.record_sighting(Sighting::Sharded);
                }
                Ok(ownership)
            })
            .await
        })
    }

    fn load_events(&self, run: RunId) -> LedgerFuture<'_, Vec<RowEvent>> {
        Box::pin(async move {
            self.read(|contents| contents.stored_run(run).map(|stored| stored.events.clone())).await.flatten()
        })
    }

    fn load_asked_rows(&self, run: RunId) -> LedgerFuture<'_, Vec<AskedRow>> {
        let query = move |contents: &LedgerContents| {
            contents.stored_run(run).map(|stored| stored.inquiries.values().cloned().collect::<Vec<_>>())
        };
        Box::pin(async move { self.read(query).await.flatten() })
    }

    fn remember_host<'a>(&'a self, _: &'a str, host: &'a str, _: HostChange) -> LedgerFuture<'a, String> {
        Box::pin(async { Ok(host.to_owned()) })
    }
}

impl RepeatGuard for ProcessLedger {}

impl ConsentStore for ProcessLedger {
    fn load_consents(&self, run: RunId, rows: RowSpan) -> LedgerFuture<'_, Vec<ConsentEvidence>> {
        Box::pin(self.read(move |contents| contents.list_consents(run, rows)))
    }
}

impl SuppressionList for ProcessLedger {
    fn add_opt_outs(&self, opt_outs: Arc<[OptOut]>, mode: AdditionMode) -> LedgerFuture<'_, Additions> {
        assert_ne!(mode, AdditionMode::Preview, "no opt-outs are previewed in these worlds");
        Box::pin(async move { self.write(|disk, _| Ok(disk.contents.opt_outs.add_opt_outs(opt_outs.to_vec()))).await })
    }

    fn remove_opt_outs(&self, _: OptOutRemoval) -> LedgerFuture<'_, Vec<OptOut>> {
        unreachable!("no opt-outs are removed in these worlds")
    }

    fn load_suppressed_numbers<'a>(&'a self, _: &'a str, _: SuppressionPolicy) -> LedgerFuture<'a, SuppressedNumbers> {
        unreachable!("no opt-outs exist when a run of these worlds is planned")
    }

    fn list_opt_outs(&self, _: OptOutFilter) -> LedgerFuture<'_, OptOutPage> {
        unreachable!("no opt-outs are listed in these worlds")
    }
}

/// Fails, because simulated worlds have no copies: the lists come from the plans of the worlds.
pub(super) fn reject_copies<'a, T>() -> LedgerFuture<'a, T> {
    Box::pin(async { Err(LedgerError::Unreadable("nothing is copied in a simulation".to_owned())) })
}

/// The phone numbers whose messages were certainly accepted. If only these numbers were skipped, messages in doubt
/// would be resent.
fn accepted_numbers(contents: &LedgerContents, runs: &[RunId]) -> NumberSet {
    let envelopes =
        runs.iter().filter_map(|run| contents.stored_run(*run).ok()).flat_map(|stored| stored.envelopes.values());
    let mut numbers = RoaringTreemap::new();
    for envelope in envelopes {
        let outcomes = envelope.settled.iter().flat_map(|(_, outcomes)| outcomes);
        let is_accepted = |outcome: &OperationOutcome| {
            matches!(outcome, OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. })
        };
        let accepted = envelope.rows.iter().zip(outcomes).filter(|(_, outcome)| is_accepted(outcome));
        numbers.extend(accepted.map(|(sent, _)| sent.to.to_u64()));
    }
    NumberSet::new(numbers, None)
}

impl ProcessLedger {
    /// Begins an envelope, with the planted mistake if it affects intents.
    pub(super) async fn begin_with_mistake(&self, intent: Intent) -> Result<Permit, LedgerError> {
        let unrecorded = || {
            let envelope = self.disk().next_unrecorded();
            (envelope, Permit::Granted { envelope, wait: SlotWait::NONE })
        };
        match self.mistake {
            Some(Mistake::NoIntent) => Ok(unrecorded().1),
            Some(Mistake::IntentAfterSend) => {
                let (envelope, permit) = unrecorded();
                self.report_before_commit(permit, move |disk: &mut SimulatedDisk, now| {
                    disk.insert_intent(now, envelope, intent)
                })
                .await
            }
            Some(Mistake::NoEpochCheck) => {
                let change = |disk: &mut SimulatedDisk, now| {
                    let epoch = disk.stored_run(intent.lease.run).run.epoch.unwrap_or(intent.lease.epoch);
                    disk.begin_envelope(now, Intent { lease: Lease { epoch, ..intent.lease }, ..intent })
                };
                self.write(change).await
            }
            Some(Mistake::ShardEpochIgnored) => {
                let change = |disk: &mut SimulatedDisk, now| {
                    let holder = intent_rows(&intent).and_then(|rows| disk.find_holder(intent.lease.run, rows));
                    let epoch = holder.unwrap_or(intent.lease.epoch);
                    disk.begin_envelope(now, Intent { lease: Lease { epoch, ..intent.lease }, ..intent })
                };
                self.write(change).await
            }
            Some(Mistake::OptOutIgnored) => {
                let change = |disk: &mut SimulatedDisk, now| {
                    let version = disk.contents.opt_outs.version();
                    disk.contents.stored_run_mut(intent.lease.run)?.run.suppression.version = version;
                    disk.begin_envelope(now, intent)
                };
                self.write(change).await
            }
            _ => self.write(|disk, now| disk.begin_envelope(now, intent)).await,
        }
    }

    /// Corrupts the account's rate limit before a reservation, if this is the mistake to simulate.
    pub(super) fn corrupt_rate_limit(&self, account: &str, rate: Option<f64>) {
        let mut disk = self.disk();
        if self.mistake == Some(Mistake::BurstingRateLimit)
            && let (Some(rate_limit), Some(rate)) = (disk.contents.rate_limits.get_mut(account), rate)
        {
            // Nine tenths of a second's worth of operations is available at once.
            rate_limit.next_free -= if rate >= 1.0 { 900_000 } else { 0 };
        }
    }
}

/// The span of the rows of an intent.
fn intent_rows(intent: &Intent) -> Option<RowSpan> {
    let rows = intent.rows.iter().map(|sent| sent.row);
    rows.clone().min().zip(rows.max()).map(|(first, last)| RowSpan { first, last })
}

impl Forgetting for ProcessLedger {
    fn forget_number(&self, _: ForgetOrder) -> LedgerFuture<'_, ()> {
        unreachable!("no recipients are forgotten in these worlds")
    }

    fn list_rows_to_forget(&self) -> LedgerFuture<'_, Vec<(RunId, RoaringBitmap)>> {
        unreachable!("no recipients are forgotten in these worlds")
    }

    fn purge_run(&self, _: PurgeOrder) -> LedgerFuture<'_, Ownership> {
        unreachable!("no recipients are forgotten in these worlds")
    }

    fn overwrite_remains<'a>(&'a self, _: &'a [Run]) -> LedgerFuture<'a, ()> {
        unreachable!("no recipients are forgotten in these worlds")
    }
}

const NO_PLANS: &str = "no plans are stored in these worlds";

impl PlanStore for ProcessLedger {
    fn store_record(&self, _: PlanRecord) -> LedgerFuture<'_, bool> {
        unreachable!("{NO_PLANS}")
    }

    fn list_records<'a>(&'a self, _: PlanFilter<'a>) -> LedgerFuture<'a, Vec<Result<StoredPlanRecord, DamagedPlan>>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

const NO_SCHEDULES: &str = "no schedules are active in these worlds";

impl ScheduleStore for ProcessLedger {
    fn update_schedules(&self, _: ScheduleUpdate) -> LedgerFuture<'_, bool> {
        unreachable!("{NO_SCHEDULES}")
    }

    fn list_schedules(&self) -> LedgerFuture<'_, Vec<Result<ActiveSchedule, DamagedSchedule>>> {
        unreachable!("{NO_SCHEDULES}")
    }

    fn list_occurrences<'a>(
        &'a self,
        _: OccurrenceFilter<'a>,
    ) -> LedgerFuture<'a, Vec<Result<OccurrenceRecord, DamagedOccurrence>>> {
        unreachable!("{NO_SCHEDULES}")
    }
}
