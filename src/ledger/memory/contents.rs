//! What the ledger in memory holds; a copy of it is what a crash leaves.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::ops::RangeInclusive;

use jiff::Timestamp;
use roaring::RoaringTreemap;
use rustc_hash::FxBuildHasher;

use super::book::StoredRun;
use super::notifications::QueuedNotification;
use super::plans::PlanTable;
use super::schedules::ScheduleTable;
use super::suppression::OptOutList;
use crate::domain::{IdRange, LOOPBACK, MessageId, Row};
use crate::ledger::repeat_guard::RepeatHash;
use crate::ledger::rules::{
    check_deadline, check_lock, departure_time, find_refusal, id_candidates, next_draw_time, next_rows, takes_slot,
};
use crate::ledger::{
    AccountRateLimit, AskedRow, BlockIds, BlockRequest, CAPPED, CampaignLock, Claim, DrawRefusal, EnvelopeRecord,
    Epoch, Intent, KeptApprovalRule, Lease, LedgerError, MessageOrigin, NewRowEvent, NewRun, NumberSet, OPTED_OUT,
    Ownership, Permit, RetryOrder, RowSpan, RowState, Run, RunEnd, RunFilter, RunId, RunProgress, Settlement,
    SharedRun, SlotWait,
};

/// Everything that is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct LedgerContents {
    stored_runs: BTreeMap<RunId, StoredRun>,
    pub(crate) paces: BTreeMap<String, AccountRateLimit>,
    pub(super) hosts: BTreeMap<String, String>,
    pub(super) approval_rules: Vec<KeptApprovalRule>,
    /// When the places of single messages expire, by their hashes.
    pub(super) repeats: BTreeMap<RepeatHash, i64>,
    pub(super) schedules: ScheduleTable,
    pub(super) plans: PlanTable,
    /// Who opted out.
    pub(crate) opt_outs: OptOutList,
    /// What projections made of all rows of runs.
    pub(super) figures: BTreeMap<RunId, Vec<u8>>,
    /// The check values of the secrets of each receiver of webhooks.
    pub(crate) webhook_secrets: BTreeMap<String, Vec<String>>,
    pub(super) notifications: Vec<QueuedNotification>,
    /// What the epochs are drawn from.
    seed: u64,
    claims: u64,
}

impl LedgerContents {
    /// Nothing, with epochs that are drawn from this.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// A run with everything that belongs to it.
    pub(crate) fn stored_run(&self, run: RunId) -> Result<&StoredRun, LedgerError> {
        self.stored_runs.get(&run).ok_or_else(|| missing_run(run))
    }

    pub(crate) fn stored_run_mut(&mut self, run: RunId) -> Result<&mut StoredRun, LedgerError> {
        self.stored_runs.get_mut(&run).ok_or_else(|| missing_run(run))
    }

    /// All runs, whether opened or not, oldest first.
    pub(crate) fn stored_runs(&self) -> impl Iterator<Item = &StoredRun> {
        self.stored_runs.values()
    }

    /// The runs that are wanted of those that were opened, oldest first.
    pub(crate) fn list_runs(&self, wanted: &RunFilter) -> Vec<Run> {
        let opened = self.stored_runs().filter(|book| book.opened).map(|book| &book.run);
        let mut runs: Vec<Run> = opened.filter(|run| matches_filter(wanted, run)).cloned().collect();
        let latest = wanted.latest.map_or(usize::MAX, |latest| latest as usize);
        runs.drain(..runs.len().saturating_sub(latest));
        runs
    }

    pub(crate) fn create_run(&mut self, new: &NewRun) -> Result<Run, LedgerError> {
        if new.live && new.suppression.loopback {
            self.hosts.entry(new.gateway.clone()).or_insert_with(|| LOOPBACK.to_owned());
        }
        let same = self.stored_runs().filter(|book| book.run.campaign == new.campaign);
        let number = same.map(|book| book.run.number).max().unwrap_or(0) + 1;
        let len = u64::from(new.last_row.get()) + 2;
        let ids = self.find_free_ids(new.began_at.as_microsecond(), new.random, len)?;
        let key = RunId(self.stored_runs.keys().next_back().map_or(0, |last| last.0) + 1);
        let run = Run {
            key,
            number,
            campaign: new.campaign.clone(),
            edition: new.edition.clone(),
            gateway: new.gateway.clone(),
            account: new.account.clone(),
            endpoint: new.endpoint,
            kind: new.kind,
            live: new.live,
            round: new.round,
            suppression: new.suppression,
            recipients: new.recipients,
            shared: false,
            ids,
            file: new.file.clone(),
            began_at: new.began_at,
            ended_at: None,
            purged_at: None,
            progress: RunProgress::Open,
            stop: None,
            stop_reason: None,
            counts: None,
            receipts: 0,
            receipts_counted: 0,
            results: None,
            stop_requested: false,
            epoch: None,
            lag: None,
            orders: Vec::new(),
            blocks: Vec::new(),
            sharding: None,
        };
        self.stored_runs.insert(key, StoredRun::new(run.clone(), new.excluded.clone()));
        Ok(run)
    }

    pub(crate) fn open_run(&mut self, now: i64, run: RunId, replaced: Option<RunId>) -> Result<(), LedgerError> {
        self.stored_run_mut(run)?.opened = true;
        replaced.map_or(Ok(()), |replaced| self.retire_run(now, replaced))
    }

    pub(crate) fn retire_run(&mut self, now: i64, run: RunId) -> Result<(), LedgerError> {
        self.stored_run_mut(run)?.run.mark_replaced(parse_instant(now)?);
        Ok(())
    }

    pub(crate) fn set_campaign_file(&mut self, runs: &[RunId], file: &str) -> Result<(), LedgerError> {
        runs.iter().try_for_each(|run| {
            self.stored_run_mut(*run)?.run.file = Some(file.to_owned());
            Ok(())
        })
    }

    pub(crate) fn set_results_file(&mut self, run: RunId, results: String) -> Result<(), LedgerError> {
        self.stored_run_mut(run)?.run.results = Some(results);
        Ok(())
    }

    /// Takes a run but for the blocks of places where somebody is.
    pub(crate) fn claim_run(
        &mut self,
        now: i64,
        hold: &CampaignLock,
        run: RunId,
        is_taken: impl Fn(u32) -> bool,
    ) -> Result<Claim, LedgerError> {
        check_lock(hold, &self.stored_run(run)?.run)?;
        let epoch = self.next_epoch();
        let others = self.list_blocks(run, is_taken);
        let book = self.stored_run_mut(run)?;
        let doubtful = book.claim_run(parse_instant(now)?, epoch, &others);
        Ok(Claim { lease: Lease { run, rows: book.run.row_span(), epoch }, in_doubt: doubtful })
    }

    /// Draws rows of a shared run for a place that was free.
    pub(crate) fn draw_block(
        &mut self,
        now: i64,
        (shared, random): (&SharedRun, u64),
        (place, wanted): (u32, BlockRequest),
    ) -> Result<Result<(Run, Lease), DrawRefusal>, LedgerError> {
        let (at, BlockRequest { rows, id, .. }) = (parse_instant(now)?, wanted);
        let of_id = id.map(|id| IdRange { first: id.get(), len: 1 });
        if let Some(refusal) = self.draw_refusals(now, shared, wanted)?.into_iter().next() {
            return Ok(Err(refusal));
        }
        let same = |run: &Run| (&run.campaign, &run.account) == (&shared.campaign, &shared.account);
        self.stored_runs.values_mut().filter(|book| same(&book.run)).for_each(|book| book.release_block(at, place));
        let latest = self.stored_runs.values().rfind(|book| shared.matches(&book.run));
        let last = |run: &Run| run.blocks.last().map(|block| block.rows.last);
        let next = latest.and_then(|book| Some((book.run.key, next_rows(&book.run, last(&book.run), rows)?)));
        let (run, rows) = match next {
            Some(next) => next,
            None => {
                let run = self.create_run(&shared.new_run(at, random))?;
                let book = self.stored_run_mut(run.key)?;
                (book.opened, book.run.shared, book.run.progress) = (true, true, RunProgress::Finished);
                let none = || LedgerError::Unreadable("a new run has no rows".to_owned());
                (run.key, next_rows(&run, None, rows).ok_or_else(none)?)
            }
        };
        let lease = Lease { run, rows, epoch: self.next_epoch() };
        let ids = of_id.map_or_else(|| self.find_free_ids(now, rand::random(), rows.len()), Ok)?;
        let book = self.stored_run_mut(run)?;
        book.run.blocks.push(BlockIds { rows, first: ids.first });
        book.drawn_at.push(now);
        book.assign_block(place, lease);
        Ok(Ok((book.run.clone(), lease)))
    }

    /// Has a block count for no hour.
    pub(crate) fn uncount_block(&mut self, lease: Lease) -> Result<(), LedgerError> {
        let book = self.stored_run_mut(lease.run)?;
        let block = book.run.blocks.iter().position(|block| block.rows == lease.rows);
        if let Some(drawn_at) = block.and_then(|block| book.drawn_at.get_mut(block)) {
            *drawn_at = i64::MIN;
        }
        Ok(())
    }

    /// Everything that refuses a draw now, that of the identifier first.
    pub(crate) fn draw_refusals(
        &self,
        now: i64,
        shared: &SharedRun,
        BlockRequest { id, per_hour, .. }: BlockRequest,
    ) -> Result<Vec<DrawRefusal>, LedgerError> {
        let taken = id.is_some_and(|id| !self.are_ids_free(IdRange { first: id.get(), len: 1 }));
        let next = per_hour.and_then(|most| next_draw_time(&self.list_draw_times(shared), now, most));
        let late = next.map(|next| parse_instant(next).map(DrawRefusal::TooMany)).transpose()?;
        Ok(taken.then_some(DrawRefusal::IdTaken).into_iter().chain(late).collect())
    }

    /// When blocks were drawn through a profile, the first first.
    fn list_draw_times(&self, shared: &SharedRun) -> Vec<i64> {
        let same = |run: &Run| (&run.campaign, &run.gateway) == (&shared.campaign, &shared.gateway);
        let mut drawn: Vec<i64> =
            self.stored_runs().filter(|book| same(&book.run)).flat_map(|book| book.drawn_at.clone()).collect();
        drawn.sort_unstable();
        drawn
    }

    /// The blocks of a run at places where somebody is.
    pub(crate) fn list_blocks(&self, run: RunId, is_taken: impl Fn(u32) -> bool) -> Vec<RowSpan> {
        let Ok(book) = self.stored_run(run) else { return Vec::new() };
        let blocks = book.blocks.iter().filter(|(place, _)| is_taken(**place)).map(|(_, block)| block.rows);
        blocks.chain(book.list_shards_at(&is_taken)).collect()
    }

    pub(super) fn next_epoch(&mut self) -> Epoch {
        self.claims += 1;
        Epoch(FxBuildHasher.hash_one((self.seed, self.claims)).cast_signed())
    }

    pub(crate) fn end_run(&mut self, now: i64, lease: Lease, end: RunEnd) -> Result<(), LedgerError> {
        let told = self.stored_run_mut(lease.run)?.run.record_end(lease, end);
        self.queue_notifications(now, told)
    }

    pub(crate) fn begin_envelope(&mut self, now: i64, intent: Intent) -> Result<Permit, LedgerError> {
        let book = self.stored_run_mut(intent.lease.run)?;
        if let Some(refusal) = find_refusal(&book.run, book.is_leased(&intent)) {
            return Ok(refusal);
        }
        let opted_out = self.find_opted_out_rows(&intent)?;
        let book = self.stored_run_mut(intent.lease.run)?;
        if !opted_out.is_empty() {
            opted_out.iter().for_each(|row| book.excluded.insert(*row, RowState::Skipped, OPTED_OUT));
            return Ok(Permit::OptedOut(opted_out));
        }
        let pace = self.paces.get(&*intent.account.name).copied().unwrap_or_default();
        let leaves = departure_time(&intent, pace, now);
        if let Some(late) = check_deadline(&intent, leaves) {
            return Ok(late);
        }
        let capped = self.find_capped_rows(now, &intent)?;
        if !capped.is_empty() {
            let book = self.stored_run_mut(intent.lease.run)?;
            capped.iter().for_each(|row| book.excluded.insert(*row, RowState::Skipped, CAPPED));
            return Ok(Permit::Capped(capped));
        }
        if let Some(over) = self.find_exceeded_bound(now, (&intent, leaves))? {
            return Ok(over);
        }
        let book = self.stored_run_mut(intent.lease.run)?;
        let (account, count) = (intent.account.clone(), intent.rows.len());
        let envelope = book.next_envelope();
        book.insert_envelope(parse_instant(now)?, envelope, intent)?;
        let not_before = self.paces.get(&*account.name).map_or(0, |pace| pace.not_before);
        let wait = match takes_slot(&account, not_before, now) {
            true => self.reserve_rate(now, &account, u32::try_from(count).unwrap_or(u32::MAX)),
            false => SlotWait::NONE,
        };
        Ok(Permit::Granted { envelope, wait })
    }

    /// The rows of an intent whose people opted out since their run was planned.
    pub(crate) fn skip_rows(&mut self, lease: Lease, rows: &[Row], reason: &str) -> Result<Ownership, LedgerError> {
        let book = self.stored_run_mut(lease.run)?;
        if !book.run.is_leased(lease) {
            return Ok(Ownership::Lost);
        }
        rows.iter().for_each(|row| book.excluded.insert(*row, RowState::Skipped, reason));
        Ok(Ownership::Held)
    }

    fn find_opted_out_rows(&self, intent: &Intent) -> Result<Vec<Row>, LedgerError> {
        let run = &self.stored_run(intent.lease.run)?.run;
        match run.suppression.version == self.opt_outs.version() {
            true => Ok(Vec::new()),
            false => Ok(self.opt_outs.find_opted_out_rows(run, &intent.rows)),
        }
    }

    pub(crate) fn settle_envelope(&mut self, now: i64, settlement: Settlement) -> Result<(), LedgerError> {
        self.stored_run_mut(settlement.run)?.settle_envelope(parse_instant(now)?, settlement)
    }

    pub(crate) fn record_events(
        &mut self,
        now: i64,
        lease: Lease,
        events: Vec<NewRowEvent>,
    ) -> Result<Ownership, LedgerError> {
        let book = self.stored_run_mut(lease.run)?;
        let shares =
            |event: &NewRowEvent| book.has_shard_rows(lease.epoch, RowSpan { first: event.row, last: event.row });
        if !book.run.is_leased(lease) && (events.is_empty() || !events.iter().all(shares)) {
            return Ok(Ownership::Lost);
        }
        book.record_events(parse_instant(now)?, events);
        Ok(Ownership::Held)
    }

    pub(crate) fn retry_rows(&mut self, now: i64, lease: Lease, order: RetryOrder) -> Result<Ownership, LedgerError> {
        let run = lease.run;
        if !self.stored_run(run)?.run.is_leased(lease) {
            return Ok(Ownership::Lost);
        }
        let ids = self.find_free_ids(now, order.random, self.stored_run(run)?.run.ids.len)?;
        let book = self.stored_run_mut(run)?;
        book.run.orders.push(ids);
        let number = u32::try_from(book.run.orders.len()).unwrap_or(u32::MAX);
        book.record_events(parse_instant(now)?, order.into_events(number));
        Ok(Ownership::Held)
    }

    pub(crate) fn request_stop(&mut self, run: RunId, requested: bool) -> Result<(), LedgerError> {
        self.stored_run_mut(run)?.run.stop_requested = requested;
        Ok(())
    }

    pub(crate) fn keep_asked_rows(&mut self, run: RunId, questions: Vec<AskedRow>) -> Result<(), LedgerError> {
        let kept = &mut self.stored_run_mut(run)?.questions;
        kept.extend(questions.into_iter().map(|question| (question.row, question)));
        Ok(())
    }

    pub(crate) fn load_envelopes(&self, run: RunId, numbers: RangeInclusive<u32>) -> Vec<EnvelopeRecord> {
        let within = self.stored_run(run).into_iter().flat_map(|book| book.envelopes.range(numbers.clone()));
        within.map(|(_, record)| record.clone()).collect()
    }

    pub(crate) fn find_message(&self, id: MessageId) -> Option<MessageOrigin> {
        let opened = self.stored_runs().filter(|book| book.opened);
        opened.map(|book| &book.run).find_map(|run| Some(MessageOrigin { run: run.key, row: run.find_row(id)? }))
    }

    pub(crate) fn load_sent_numbers(&self, runs: &[RunId]) -> NumberSet {
        let books = runs.iter().filter_map(|run| self.stored_run(*run).ok());
        let numbers = books.fold(RoaringTreemap::new(), |numbers, book| numbers | book.guarded_numbers());
        NumberSet::new(numbers, self.opt_outs.key())
    }

    /// Whether no message has one of these identifiers.
    fn are_ids_free(&self, ids: IdRange) -> bool {
        self.stored_runs().flat_map(|book| book.run.id_ranges()).all(|known| !known.overlaps(ids))
    }

    fn find_free_ids(&self, now: i64, random: u64, len: u64) -> Result<IdRange, LedgerError> {
        let free = id_candidates(now, random, len).find(|ids| self.are_ids_free(*ids));
        free.ok_or_else(|| LedgerError::Unreadable("no identifiers are left".to_owned()))
    }
}

/// Whether a run is wanted, however many later ones there are.
fn matches_filter(wanted: &RunFilter, run: &Run) -> bool {
    let RunFilter { key, campaign, open, live, results, ids, uncounted, latest: _ } = wanted;
    let overlaps = |ids: &IdRange| run.id_ranges().any(|range| range.overlaps(*ids));
    key.is_none_or(|key| key == run.key)
        && campaign.as_ref().is_none_or(|campaign| *campaign == run.campaign)
        && (!open || run.progress == RunProgress::Open)
        && (!live || run.live)
        && (!uncounted || run.receipts != run.receipts_counted)
        && results.as_ref().is_none_or(|results| run.results.as_ref() == Some(results))
        && ids.as_ref().is_none_or(overlaps)
}

fn missing_run(run: RunId) -> LedgerError {
    LedgerError::Unreadable(format!("there is no run {}", run.0))
}

pub(super) fn parse_instant(now: i64) -> Result<Timestamp, LedgerError> {
    Timestamp::from_microsecond(now).map_err(|error| LedgerError::Unreadable(error.to_string()))
}
