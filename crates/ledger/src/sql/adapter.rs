//! The database adapter of the ledger: maps each call of the port to a query.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::blocks::{self, BlockDraw, DrawPlace};
use super::dialect::{Adapter, Connection, Lock};
use super::runs::{self, InitialRunState};
use super::writer::ChangeWork;
use super::{StatementError, read_ledger};
use super::{approvals, contacts, envelopes, events, forgetting, guards, limits, schedules, suppression};
use crate::encoding::{downgrade_event, downgrade_opt_out};
use crate::rules::check_lock;
use crate::{
    Allowance, AskedRow, BlockRequest, CampaignLock, CampaignLockInfo, Claim, Copies, CopiesPurpose, DamagedRun,
    DrawOutcome, DrawRefusal, EnvelopeFilter, EnvelopeRecord, EnvelopeSummary, Epoch, ExcludedRows, HostChange, Intent,
    Lease, Ledger, LedgerError, LedgerFuture, NewCopies, NewRun, NumberFilter, NumberSet, OwnedBlock, Ownership,
    Permit, RateRequest, RowBlock, RowEvent, RowUpdate, Run, RunEnd, RunFilter, RunId, RunUpdate, ScheduledOccurrence,
    Settlement, SharedRun, SlotPermit, StrayCopies, run,
};
use campaign_core::domain::{Chain, LOOPBACK};

impl Ledger for Adapter {
    fn create_run<'a>(
        &'a self,
        new: &'a NewRun,
        occurrence: Option<&'a ScheduledOccurrence>,
    ) -> LedgerFuture<'a, Option<Run>> {
        let new = NewRun { suppression: self.to_storable_policy(new.suppression), ..new.clone() };
        let occurrence = occurrence.cloned();
        Box::pin(async move {
            self.ensure_can_send().await?;
            self.write(move |connection, _| {
                let (new, occurrence) = (new.clone(), occurrence.clone());
                Box::pin(async move {
                    match occurrence {
                        Some(occurrence) => schedules::fire_occurrence(connection, new, &occurrence).await,
                        None => runs::insert_run(connection, new, InitialRunState::Preparing).await.map(Some),
                    }
                })
            })
            .await
        })
    }

    fn open_run<'a>(
        &'a self,
        run: RunId,
        replaced: Option<RunId>,
        approval: Option<&'a str>,
    ) -> LedgerFuture<'a, bool> {
        let approval = approval.map(str::to_owned);
        Box::pin(self.write(move |connection, now| {
            let approval = approval.clone();
            Box::pin(async move {
                if let Some(token) = approval
                    && !approvals::use_approval(&mut *connection, now, token, Some(run)).await?
                {
                    return Ok(false);
                }
                runs::open_run(connection, now, run, replaced).await?;
                Ok(true)
            })
        }))
    }

    fn update_runs(&self, keys: Vec<RunId>, update: RunUpdate) -> LedgerFuture<'_, ()> {
        // The tables of earlier versions cannot store figures.
        if matches!(update, RunUpdate::Figures(_)) && !self.supports_figures() {
            return Box::pin(async { Ok(()) });
        }
        Box::pin(self.write(move |connection, now| {
            let (keys, update) = (keys.clone(), update.clone());
            Box::pin(async move {
                for run in keys {
                    runs::apply_update(&mut *connection, now, run, update.clone()).await?;
                }
                Ok(())
            })
        }))
    }

    fn list_stored_runs(&self, filter: RunFilter) -> LedgerFuture<'_, Vec<Result<Run, DamagedRun>>> {
        Box::pin(async move { read_ledger!(self, runs::list_runs, filter.clone()) })
    }

    fn acquire_campaign_lock<'a>(
        &'a self,
        campaign: &'a str,
        account: &'a str,
    ) -> LedgerFuture<'a, Option<CampaignLock>> {
        Box::pin(async move {
            let lock = self.try_lock_campaign(campaign, account).await?;
            Ok(lock.map(|lock| CampaignLock::new(campaign, account, lock)))
        })
    }

    fn find_campaign_lock<'a>(
        &'a self,
        campaign: &'a str,
        account: &'a str,
    ) -> LedgerFuture<'a, Option<CampaignLockInfo>> {
        let name = run::lock_name(campaign, account);
        Box::pin(async move {
            match self.is_locked(&name).await? {
                true => Ok(Some(CampaignLockInfo { since: self.locked_since(&name).await? })),
                false => Ok(None),
            }
        })
    }

    fn prepare_copies<'a>(&'a self, purpose: CopiesPurpose<'a>) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        Box::pin(async move {
            match purpose {
                CopiesPurpose::NewRun(lock) => self.begin_new_copies(lock).await,
                CopiesPurpose::Replacement(run) => self.begin_replacement_copies(run).await,
            }
        })
    }

    fn load_copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Copies> {
        Box::pin(async {
            LedgerError::refuse_purged(run)?;
            self.load_run_copies(run).await
        })
    }

    fn list_stray_copies(&self) -> LedgerFuture<'_, Vec<StrayCopies>> {
        Box::pin(self.find_stray_copies())
    }

    fn set_copies_aside<'a>(&'a self, run: &'a str) -> LedgerFuture<'a, String> {
        Box::pin(self.rename_stray_copies(run))
    }

    fn claim_run<'a>(&'a self, lock: &'a CampaignLock, run: RunId) -> LedgerFuture<'a, Claim> {
        Box::pin(async move {
            self.ensure_can_send().await?;
            // No process can occupy the locked places meanwhile. Processes at other places keep the blocks that they
            // draw.
            let (current, vacant, _locks) = self.lock_vacant_places(run).await?;
            check_lock(lock, &current)?;
            self.claim_except_occupied(&current, vacant).await
        })
    }

    fn draw_block<'a>(&'a self, shared: &'a SharedRun, request: BlockRequest) -> LedgerFuture<'a, DrawOutcome> {
        Box::pin(async move {
            self.ensure_can_send().await?;
            let (place, lock) = blocks::lock_first_vacant_place(self, &shared.campaign, &shared.account).await?;
            let shared = SharedRun { suppression: self.to_storable_policy(shared.suppression), ..shared.clone() };
            let (epoch, random) = (Epoch(rand::random()), rand::random());
            let draw = BlockDraw { shared, request, place, epoch, random };
            let drawn =
                self.write(move |connection, now| Box::pin(blocks::draw_block(connection, now, draw.clone()))).await?;
            Ok(drawn.map_or_else(DrawOutcome::Refused, |(run, lease)| {
                self.bind_lease(lease.epoch, &run::place_name(&run.campaign, &run.account, place));
                DrawOutcome::Block(RowBlock::new(run, lease, lock))
            }))
        })
    }

    fn list_draw_refusals<'a>(
        &'a self,
        shared: &'a SharedRun,
        request: BlockRequest,
    ) -> LedgerFuture<'a, Vec<DrawRefusal>> {
        Box::pin(async move { read_ledger!(self, blocks::find_refusals, self.now(), shared, request) })
    }

    fn list_owned_blocks(&self, run: RunId) -> LedgerFuture<'_, Vec<OwnedBlock>> {
        Box::pin(async move {
            let (run, blocks) = read_ledger!(self, load_run_and_blocks, run)?;
            blocks::retain_occupied(self, &run, blocks).await
        })
    }

    fn end_run(&self, lease: Lease, end: RunEnd) -> LedgerFuture<'_, ()> {
        let numbers = self.numbers.clone();
        Box::pin(self.write(move |connection, now| {
            Box::pin(runs::end_run(connection, now, numbers.clone(), lease, end.clone()))
        }))
    }

    fn begin_envelope(&self, mut intent: Intent) -> LedgerFuture<'_, Permit> {
        if !self.supports_chains() {
            intent.rows.iter_mut().for_each(|row| row.chain = Chain::UNKNOWN);
        }
        let intent = Arc::new(intent);
        Box::pin(async move {
            self.renew_if_stale(intent.lease.epoch).await?;
            // An intent under a lost lease could never be sent, so it would be begun again and again.
            if !self.holds_lease(intent.lease.epoch) {
                return Ok(Permit::Lost);
            }
            self.write_batched(|permit| ChangeWork::Begin(intent, permit)).await
        })
    }

    fn may_still_send(&self, lease: Lease) -> bool {
        self.holds_lease(lease.epoch)
    }

    fn settle_envelope(&self, mut settlement: Settlement) -> LedgerFuture<'_, ()> {
        if !self.supports_all_scopes() {
            settlement.opt_outs.iter_mut().for_each(downgrade_opt_out);
        }
        let settlement = Arc::new(settlement);
        Box::pin(self.write_batched(|slot| ChangeWork::Settle(settlement, slot)))
    }

    fn is_stop_requested(&self, run: RunId) -> LedgerFuture<'_, bool> {
        Box::pin(async move { read_ledger!(self, runs::is_stop_requested, run) })
    }

    fn use_rate_limit<'a>(&'a self, account: &'a Allowance, request: RateRequest) -> LedgerFuture<'a, SlotPermit> {
        let account = account.clone();
        Box::pin(self.write(move |connection, now| {
            let account = account.clone();
            Box::pin(async move { limits::use_rate_limit(connection, now, &account, request).await })
        }))
    }

    fn list_envelope_summaries(&self, run: RunId) -> LedgerFuture<'_, Vec<EnvelopeSummary>> {
        Box::pin(async move { read_ledger!(self, envelopes::load_summaries, run) })
    }

    fn load_envelopes(&self, run: RunId, filter: EnvelopeFilter) -> LedgerFuture<'_, Vec<EnvelopeRecord>> {
        Box::pin(async move {
            match filter {
                EnvelopeFilter::Numbers(numbers) => {
                    read_ledger!(self, envelopes::load_envelopes, run, numbers.clone())
                }
                EnvelopeFilter::Row(row) => read_ledger!(self, envelopes::load_envelopes_of_row, run, row),
            }
        })
    }

    fn load_excluded_rows(&self, run: RunId) -> LedgerFuture<'_, ExcludedRows> {
        Box::pin(async move { read_ledger!(self, events::load_excluded_rows, run) })
    }

    fn load_numbers<'a>(&'a self, filter: NumberFilter<'a>) -> LedgerFuture<'a, NumberSet> {
        Box::pin(async move {
            match filter {
                NumberFilter::Sent(runs) => read_ledger!(self, guards::load_numbers_sent_to, runs),
                NumberFilter::Capped(caps) => read_ledger!(self, contacts::load_capped_numbers, self.now(), caps),
                NumberFilter::OptedOut(run) => read_ledger!(self, suppression::load_numbers_opted_out_by_run, run),
                NumberFilter::Cancelled(run) => read_ledger!(self, forgetting::load_cancelled_numbers, run),
                NumberFilter::Rows(run, rows) => read_ledger!(self, guards::load_numbers_of_rows, run, rows),
            }
        })
    }

    fn load_sent_rows(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap> {
        Box::pin(async move { read_ledger!(self, guards::load_sent_rows, run) })
    }

    fn update_rows(&self, lease: Lease, mut update: RowUpdate) -> LedgerFuture<'_, Ownership> {
        if let RowUpdate::Events(events) = &mut update
            && !self.supports_chains()
        {
            events.iter_mut().for_each(downgrade_event);
        }
        Box::pin(
            self.write(move |connection, now| Box::pin(events::apply_update(connection, now, lease, update.clone()))),
        )
    }

    fn load_events(&self, run: RunId) -> LedgerFuture<'_, Vec<RowEvent>> {
        Box::pin(async move { read_ledger!(self, events::load_events, run) })
    }

    fn load_asked_rows(&self, run: RunId) -> LedgerFuture<'_, Vec<AskedRow>> {
        Box::pin(async move { read_ledger!(self, events::load_inquiries, run) })
    }

    fn remember_host<'a>(&'a self, profile: &'a str, host: &'a str, change: HostChange) -> LedgerFuture<'a, String> {
        if host == LOOPBACK && change == HostChange::IfUnknown {
            return Box::pin(async move {
                Ok(read_ledger!(self, runs::find_host, profile)?.unwrap_or_else(|| LOOPBACK.to_owned()))
            });
        }
        let (profile, host) = (profile.to_owned(), host.to_owned());
        Box::pin(self.write(move |connection, _| {
            Box::pin(runs::remember_host(connection, profile.clone(), host.clone(), change))
        }))
    }
}

impl Adapter {
    /// Loads a run and locks its vacant places. Returns the run, the vacant places and their locks.
    pub(crate) async fn lock_vacant_places(&self, run: RunId) -> Result<(Run, Vec<u32>, Vec<Lock>), LedgerError> {
        let (run, places) = self.load_places(run).await?;
        let (vacant, locks) = blocks::lock_vacant_places(self, &run, &places).await?;
        Ok((run, vacant, locks))
    }

    /// Claims a run, except for blocks at occupied places. The caller has locked the `vacant` places.
    pub(crate) async fn claim_except_occupied(&self, run: &Run, vacant: Vec<u32>) -> Result<Claim, LedgerError> {
        let lease = Lease { run: run.key, rows: run.row_span(), epoch: Epoch(rand::random()) };
        self.bind_lease(lease.epoch, &run::lock_name(&run.campaign, &run.account));
        let numbers = self.numbers.clone();
        self.write(move |connection, now| {
            Box::pin(envelopes::claim_run(connection, now, numbers.clone(), lease, vacant.clone()))
        })
        .await
    }

    /// Loads a run and the places with its leased blocks.
    pub(super) async fn load_places(&self, run: RunId) -> Result<(Run, Vec<DrawPlace>), LedgerError> {
        read_ledger!(self, load_run_and_places, run)
    }
}

async fn load_run_and_places(reader: &mut Connection, run: RunId) -> Result<(Run, Vec<DrawPlace>), StatementError> {
    let run = runs::load_run(&mut *reader, run).await?;
    let places = blocks::list_places(reader, run.key).await?;
    Ok((run, places))
}

async fn load_run_and_blocks(reader: &mut Connection, run: RunId) -> Result<(Run, Vec<OwnedBlock>), StatementError> {
    let run = runs::load_run(&mut *reader, run).await?;
    let blocks = blocks::list_leased_blocks(reader, run.key).await?;
    Ok((run, blocks))
}
