//! The contents of the in-memory ledger. A clone represents the state after a crash.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringTreemap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::notifications::QueuedNotification;
use super::schedules::{PlanTable, ScheduleTable};
use super::stored_run::StoredRun;
use super::suppression::OptOutList;
use crate::guards::RepeatHash;
use crate::rate_limit::{InquiryRateLimit, inquiry_account_name, is_inquiry_account};
use crate::rules::{
    PriorMessage, caps_allow, check_deadline, check_lock, counts_for_caps, departure_time, find_capped_rows,
    find_exceeded_budget, find_exceeded_daily_limit, find_refusal, find_rows_outside_countries, id_candidates,
    list_refusals, next_draw_time, next_rows, takes_slot, tighter_bound,
};
use crate::{
    AccountRateLimit, Allowance, BlockIds, BlockRequest, CAPPED, COUNTRY, CampaignLock, CapQuery, Claim, DrawRefusal,
    EnvelopeFilter, EnvelopeRecord, Epoch, Intent, Lease, LedgerError, MessageOrigin, NewRowEvent, NewRun,
    NumberFilter, NumberSet, OPTED_OUT, Ownership, Permit, RateRequest, RetryOrder, RowSpan, RowState, RowUpdate, Run,
    RunEnd, RunFilter, RunId, RunProgress, RunUpdate, Settlement, SharedRun, SlotPermit, SlotWait, StoredApprovalRule,
    share_budget,
};
use campaign_core::domain::{Addressee, FrequencyCap, IdRange, LOOPBACK, MessageId, Row, Spending};

/// All data that the in-memory ledger stores.
#[derive(Clone, Debug, Default)]
pub struct LedgerContents {
    stored_runs: BTreeMap<RunId, StoredRun>,
    pub rate_limits: BTreeMap<String, AccountRateLimit>,
    pub(super) hosts: BTreeMap<String, String>,
    pub(super) approval_rules: Vec<StoredApprovalRule>,
    /// The expiry times of the reservations of single messages, by hash.
    pub(super) repeats: BTreeMap<RepeatHash, i64>,
    pub(super) schedules: ScheduleTable,
    pub(super) plans: PlanTable,
    /// The suppression list.
    pub opt_outs: OptOutList,
    /// Cached figures of runs.
    pub(super) figures: BTreeMap<RunId, Vec<u8>>,
    /// The check values of webhook secrets, by address.
    pub(super) webhook_secrets: BTreeMap<String, Vec<String>>,
    pub(super) notifications: Vec<QueuedNotification>,
    /// The seed of fencing tokens.
    seed: u64,
    /// The number of fencing tokens that were drawn.
    claims: u64,
}

impl LedgerContents {
    /// Empty contents with this seed for fencing tokens.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// A run with its records.
    pub fn stored_run(&self, run: RunId) -> Result<&StoredRun, LedgerError> {
        self.stored_runs.get(&run).ok_or_else(|| missing_run(run))
    }

    pub fn stored_run_mut(&mut self, run: RunId) -> Result<&mut StoredRun, LedgerError> {
        self.stored_runs.get_mut(&run).ok_or_else(|| missing_run(run))
    }

    /// All runs, opened or not, oldest first.
    pub fn stored_runs(&self) -> impl Iterator<Item = &StoredRun> {
        self.stored_runs.values()
    }

    /// The opened runs that match a filter, oldest first.
    pub fn list_runs(&self, filter: &RunFilter) -> Vec<Run> {
        let opened = self.stored_runs().filter(|stored| stored.opened).map(|stored| &stored.run);
        let mut runs: Vec<Run> = opened.filter(|run| matches_filter(filter, run)).cloned().collect();
        let latest = filter.latest.map_or(usize::MAX, |latest| latest as usize);
        runs.drain(..runs.len().saturating_sub(latest));
        runs
    }

    pub fn create_run(&mut self, new: &NewRun) -> Result<Run, LedgerError> {
        if new.live && new.suppression.loopback {
            self.hosts.entry(new.gateway.clone()).or_insert_with(|| LOOPBACK.to_owned());
        }
        let same_campaign = self.stored_runs().filter(|stored| stored.run.campaign == new.campaign);
        let number = same_campaign.map(|stored| stored.run.number).max().unwrap_or(0) + 1;
        // One identifier for each row from 0 on, and a spare one.
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

    pub fn open_run(&mut self, now: i64, run: RunId, replaced: Option<RunId>) -> Result<(), LedgerError> {
        self.stored_run_mut(run)?.opened = true;
        replaced.map_or(Ok(()), |replaced| self.update_run(now, replaced, RunUpdate::Retired).map(drop))
    }

    /// Changes the record of a run. Returns `false` if a stop request changes nothing.
    pub fn update_run(&mut self, now: i64, run: RunId, update: RunUpdate) -> Result<bool, LedgerError> {
        let stored = self.stored_run_mut(run)?;
        match update {
            RunUpdate::CampaignFile(file) => stored.run.file = Some(file),
            RunUpdate::ResultsFile(file) => stored.run.results = Some(file),
            RunUpdate::Retired => stored.retire(timestamp_from_micros(now)?),
            RunUpdate::Stop(request) => return Ok(stored.run.apply_stop_request(request)),
            RunUpdate::Counts { counts, parts, receipts } => stored.run.set_counts(counts, parts, receipts),
            RunUpdate::Figures(figures) => drop(self.figures.insert(run, figures)),
            RunUpdate::Proven => {
                if let Some(sharding) = &mut stored.run.sharding {
                    sharding.proven = true;
                }
            }
            RunUpdate::Inquiries(inquiries) => {
                stored.inquiries.extend(inquiries.into_iter().map(|inquiry| (inquiry.row, inquiry)));
            }
            RunUpdate::Consents(blocks) => self.store_consents(run, &blocks)?,
            RunUpdate::RowsErased => stored.rows_to_forget.clear(),
        }
        Ok(true)
    }

    /// Changes rows, unless the lease was lost.
    pub fn update_rows(&mut self, now: i64, lease: Lease, update: RowUpdate) -> Result<Ownership, LedgerError> {
        match update {
            RowUpdate::Events(events) => self.record_events(now, lease, events),
            RowUpdate::Retry(order) => self.retry_rows(now, lease, order),
            RowUpdate::Skipped { rows, reason } => self.skip_rows(lease, &rows, reason),
            RowUpdate::Sharded { terms, proven } => self.shard_run(lease, terms, proven),
            RowUpdate::ShardsFinished => self.finish_shards(lease),
            RowUpdate::NotCounted => self.exclude_block_from_count(lease),
        }
    }

    /// The numbers that match the filter.
    pub fn load_numbers(&self, now: i64, filter: NumberFilter<'_>) -> NumberSet {
        match filter {
            NumberFilter::Sent(runs) => self.load_sent_numbers(runs),
            NumberFilter::Capped(CapQuery { caps, loopback, only: _ }) => self.capped_numbers(now, caps, loopback),
            NumberFilter::OptedOut(run) => self.opt_outs.numbers_opted_out_by_run(run),
            NumberFilter::Cancelled(run) => {
                let cancelled = self.stored_run(run).map(|stored| stored.cancelled.clone()).unwrap_or_default();
                NumberSet::new(cancelled, self.opt_outs.key())
            }
            NumberFilter::Rows(run, rows) => {
                let envelopes = self.stored_run(run).into_iter().flat_map(|stored| stored.envelopes.values());
                let sent = envelopes.flat_map(|envelope| &envelope.rows).filter(|sent| rows.contains(sent.row.get()));
                NumberSet::new(sent.map(|sent| sent.to.to_u64()).collect(), self.opt_outs.key())
            }
        }
    }

    /// Claims a run, except for the blocks at places that are in use.
    pub fn claim_run(
        &mut self,
        now: i64,
        lock: &CampaignLock,
        run: RunId,
        is_taken: impl Fn(u32) -> bool,
    ) -> Result<Claim, LedgerError> {
        check_lock(lock, &self.stored_run(run)?.run)?;
        let epoch = self.next_epoch();
        let others = self.list_blocks(run, is_taken);
        let stored = self.stored_run_mut(run)?;
        let doubtful = stored.claim_run(timestamp_from_micros(now)?, epoch, &others);
        Ok(Claim { lease: Lease { run, rows: stored.run.row_span(), epoch }, in_doubt: doubtful })
    }

    /// Draws rows of a shared run for a free place.
    pub fn draw_block(
        &mut self,
        now: i64,
        (shared, random): (&SharedRun, u64),
        (place, request): (u32, BlockRequest),
    ) -> Result<Result<(Run, Lease), DrawRefusal>, LedgerError> {
        let (at, BlockRequest { rows, id, .. }) = (timestamp_from_micros(now)?, request);
        let given_ids = id.map(|id| IdRange { first: id.get(), len: 1 });
        if let Some(refusal) = self.list_draw_refusals(now, shared, request)?.into_iter().next() {
            return Ok(Err(refusal));
        }
        let shares_places = |run: &Run| (&run.campaign, &run.account) == (&shared.campaign, &shared.account);
        self.stored_runs
            .values_mut()
            .filter(|stored| shares_places(&stored.run))
            .for_each(|stored| stored.release_block(at, place));
        let latest = self.stored_runs.values().rfind(|stored| shared.matches(&stored.run));
        let last_drawn = |run: &Run| run.blocks.last().map(|block| block.rows.last);
        let next =
            latest.and_then(|stored| Some((stored.run.key, next_rows(&stored.run, last_drawn(&stored.run), rows)?)));
        let (run, rows) = match next {
            Some(next) => next,
            None => {
                let run = self.create_run(&shared.new_run(at, random))?;
                let stored = self.stored_run_mut(run.key)?;
                (stored.opened, stored.run.shared, stored.run.progress) = (true, true, RunProgress::Finished);
                let no_rows = || LedgerError::Unreadable("a new run has no rows".to_owned());
                (run.key, next_rows(&run, None, rows).ok_or_else(no_rows)?)
            }
        };
        let lease = Lease { run, rows, epoch: self.next_epoch() };
        let ids = given_ids.map_or_else(|| self.find_free_ids(now, rand::random(), rows.len()), Ok)?;
        let stored = self.stored_run_mut(run)?;
        stored.run.blocks.push(BlockIds { rows, first: ids.first });
        stored.drawn_at.push(now);
        stored.assign_block(place, lease);
        Ok(Ok((stored.run.clone(), lease)))
    }

    /// Excludes a block from the hourly count.
    fn exclude_block_from_count(&mut self, lease: Lease) -> Result<Ownership, LedgerError> {
        let stored = self.stored_run_mut(lease.run)?;
        if !stored.blocks.values().any(|block| *block == lease) {
            return Ok(Ownership::Lost);
        }
        let index = stored.run.blocks.iter().position(|block| block.rows == lease.rows);
        if let Some(drawn_at) = index.and_then(|index| stored.drawn_at.get_mut(index)) {
            // With this time, the draw no longer counts towards the hourly limit.
            *drawn_at = i64::MIN;
        }
        Ok(Ownership::Held)
    }

    /// All reasons to refuse a draw now. If the given identifier is already used, this reason comes first.
    pub(crate) fn list_draw_refusals(
        &self,
        now: i64,
        shared: &SharedRun,
        BlockRequest { id, per_hour, .. }: BlockRequest,
    ) -> Result<Vec<DrawRefusal>, LedgerError> {
        let is_id_taken = id.is_some_and(|id| !self.are_ids_free(IdRange { first: id.get(), len: 1 }));
        let next = per_hour.and_then(|limit| next_draw_time(&self.list_draw_times(shared), now, limit));
        Ok(list_refusals(is_id_taken, next.map(timestamp_from_micros).transpose()?))
    }

    /// The times when blocks of a campaign were drawn through a gateway profile, in ascending order.
    fn list_draw_times(&self, shared: &SharedRun) -> Vec<i64> {
        let shares_limit = |run: &Run| (&run.campaign, &run.gateway) == (&shared.campaign, &shared.gateway);
        let counted = self.stored_runs().filter(|stored| shares_limit(&stored.run));
        let mut drawn: Vec<i64> = counted.flat_map(|stored| stored.drawn_at.clone()).collect();
        drawn.sort_unstable();
        drawn
    }

    /// The blocks of a run at places that are in use.
    fn list_blocks(&self, run: RunId, is_taken: impl Fn(u32) -> bool) -> Vec<RowSpan> {
        let Ok(stored) = self.stored_run(run) else { return Vec::new() };
        let blocks = stored.blocks.iter().filter(|(place, _)| is_taken(**place)).map(|(_, block)| block.rows);
        blocks.chain(stored.list_shards_at(&is_taken)).collect()
    }

    pub(super) fn next_epoch(&mut self) -> Epoch {
        self.claims += 1;
        Epoch(FxBuildHasher.hash_one((self.seed, self.claims)).cast_signed())
    }

    pub fn end_run(&mut self, now: i64, lease: Lease, end: RunEnd) -> Result<(), LedgerError> {
        let notifications = self.stored_run_mut(lease.run)?.run.record_end(lease, end);
        self.queue_notifications(now, notifications)
    }

    pub fn begin_envelope(&mut self, now: i64, intent: Intent) -> Result<Permit, LedgerError> {
        let stored = self.stored_run_mut(intent.lease.run)?;
        if let Some(refusal) = find_refusal(&stored.run, stored.is_leased(&intent)) {
            return Ok(refusal);
        }
        let opted_out = self.find_opted_out_rows(&intent)?;
        let stored = self.stored_run_mut(intent.lease.run)?;
        if !opted_out.is_empty() {
            opted_out.iter().for_each(|row| stored.excluded.insert(*row, RowState::Skipped, OPTED_OUT));
            return Ok(Permit::OptedOut(opted_out));
        }
        let limit = self.rate_limits.get(&*intent.account.name).copied().unwrap_or_default();
        let departs_at = departure_time(&intent, limit, now);
        if let Some(late) = check_deadline(&intent, departs_at) {
            return Ok(late);
        }
        let abroad = find_rows_outside_countries(intent.bounds.as_deref(), &intent.rows);
        if !abroad.is_empty() {
            let stored = self.stored_run_mut(intent.lease.run)?;
            abroad.iter().for_each(|row| stored.excluded.insert(*row, RowState::Skipped, COUNTRY));
            return Ok(Permit::OutsideCountries(abroad));
        }
        let capped = self.find_capped_rows(now, &intent)?;
        if !capped.is_empty() {
            let stored = self.stored_run_mut(intent.lease.run)?;
            capped.iter().for_each(|row| stored.excluded.insert(*row, RowState::Skipped, CAPPED));
            return Ok(Permit::Capped(capped));
        }
        if let Some(refusal) = self.find_exceeded_bound(now, (&intent, departs_at))? {
            return Ok(refusal);
        }
        let stored = self.stored_run_mut(intent.lease.run)?;
        let (account, count) = (intent.account.clone(), intent.rows.len());
        let envelope = stored.next_envelope_number();
        stored.insert_envelope(timestamp_from_micros(now)?, envelope, intent)?;
        let not_before = self.rate_limits.get(&*account.name).map_or(0, |limit| limit.not_before);
        let wait = match takes_slot(&account, not_before, now) {
            true => self.reserve_rate(now, &account, u32::try_from(count).unwrap_or(u32::MAX)),
            false => SlotWait::NONE,
        };
        Ok(Permit::Granted { envelope, wait })
    }

    pub fn skip_rows(&mut self, lease: Lease, rows: &[Row], reason: &str) -> Result<Ownership, LedgerError> {
        let stored = self.stored_run_mut(lease.run)?;
        let may_skip = stored.run.may_send_drawn_rows() && stored.are_all_rows_leased(lease.epoch, rows);
        if !stored.run.is_leased(lease) && !may_skip {
            return Ok(Ownership::Lost);
        }
        rows.iter().for_each(|row| stored.excluded.insert(*row, RowState::Skipped, reason));
        Ok(Ownership::Held)
    }

    fn find_opted_out_rows(&self, intent: &Intent) -> Result<Vec<Row>, LedgerError> {
        let run = &self.stored_run(intent.lease.run)?.run;
        match run.suppression.version == self.opt_outs.version() {
            true => Ok(Vec::new()),
            false => Ok(self.opt_outs.find_opted_out_rows(run, &intent.rows)),
        }
    }

    pub fn settle_envelope(&mut self, now: i64, mut settlement: Settlement) -> Result<(), LedgerError> {
        self.opt_outs.add_opt_outs(std::mem::take(&mut settlement.opt_outs));
        self.stored_run_mut(settlement.run)?.settle_envelope(timestamp_from_micros(now)?, settlement)
    }

    pub fn record_events(
        &mut self,
        now: i64,
        lease: Lease,
        events: Vec<NewRowEvent>,
    ) -> Result<Ownership, LedgerError> {
        let stored = self.stored_run_mut(lease.run)?;
        let rows: Vec<Row> = events.iter().map(|event| event.row).collect();
        if !stored.run.is_leased(lease) && !stored.are_all_rows_leased(lease.epoch, &rows) {
            return Ok(Ownership::Lost);
        }
        stored.record_events(timestamp_from_micros(now)?, events);
        Ok(Ownership::Held)
    }

    pub fn retry_rows(&mut self, now: i64, lease: Lease, order: RetryOrder) -> Result<Ownership, LedgerError> {
        let run = lease.run;
        if !self.stored_run(run)?.run.is_leased(lease) {
            return Ok(Ownership::Lost);
        }
        let ids = self.find_free_ids(now, order.random, self.stored_run(run)?.run.ids.len)?;
        let stored = self.stored_run_mut(run)?;
        stored.run.orders.push(ids);
        let number = u32::try_from(stored.run.orders.len()).unwrap_or(u32::MAX);
        stored.record_events(timestamp_from_micros(now)?, order.into_events(number));
        Ok(Ownership::Held)
    }

    pub fn load_envelopes(&self, run: RunId, filter: &EnvelopeFilter) -> Vec<EnvelopeRecord> {
        let Ok(stored) = self.stored_run(run) else { return Vec::new() };
        match filter {
            EnvelopeFilter::Numbers(numbers) => {
                stored.envelopes.range(numbers.clone()).map(|(_, record)| record.clone()).collect()
            }
            EnvelopeFilter::Row(row) => {
                let has_row = |record: &&EnvelopeRecord| record.rows.iter().any(|sent| sent.row == *row);
                stored.envelopes.values().filter(has_row).cloned().collect()
            }
        }
    }

    pub fn find_message(&self, id: MessageId) -> Option<MessageOrigin> {
        let opened = self.stored_runs().filter(|stored| stored.opened);
        opened.map(|stored| &stored.run).find_map(|run| Some(MessageOrigin { run: run.key, row: run.find_row(id)? }))
    }

    pub fn load_sent_numbers(&self, runs: &[RunId]) -> NumberSet {
        let stored_runs = runs.iter().filter_map(|run| self.stored_run(*run).ok());
        let numbers = stored_runs.fold(RoaringTreemap::new(), |numbers, stored| numbers | stored.guarded_numbers());
        NumberSet::new(numbers, self.opt_outs.key())
    }

    /// Whether no message has any of these identifiers.
    fn are_ids_free(&self, ids: IdRange) -> bool {
        self.stored_runs().flat_map(|stored| stored.run.id_ranges()).all(|known| !known.overlaps(ids))
    }

    fn find_free_ids(&self, now: i64, random: u64, len: u64) -> Result<IdRange, LedgerError> {
        let free = id_candidates(now, random, len).find(|ids| self.are_ids_free(*ids));
        free.ok_or_else(|| LedgerError::Unreadable("no identifiers are left".to_owned()))
    }
}

/// Whether a run matches a filter, apart from its limit.
fn matches_filter(filter: &RunFilter, run: &Run) -> bool {
    let RunFilter { key, campaign, open, live, results, ids, uncounted, latest: _ } = filter;
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

pub(super) fn timestamp_from_micros(now: i64) -> Result<Timestamp, LedgerError> {
    Timestamp::from_microsecond(now).map_err(|error| LedgerError::Unreadable(error.to_string()))
}

impl LedgerContents {
    /// The rows of an intent that caps suppress.
    pub(super) fn find_capped_rows(&self, now: i64, intent: &Intent) -> Result<Vec<Row>, LedgerError> {
        let run = &self.stored_run(intent.lease.run)?.run;
        let bounds = intent.bounds.as_deref().filter(|bounds| !bounds.caps.is_empty() && counts_for_caps(run));
        let Some(bounds) = bounds else { return Ok(Vec::new()) };
        let mut messages = self.prior_messages(run.suppression.loopback, Some(run.key));
        for sent in &intent.rows {
            // Messages that were sent before the number was forgotten still count.
            let forgotten = self.opt_outs.forgotten_form(sent.to).and_then(|hash| messages.get(&hash)).cloned();
            messages.entry(sent.to).or_default().extend(forgotten.into_iter().flatten());
        }
        Ok(find_capped_rows(bounds, now, &intent.rows, messages))
    }

    /// The messages to each number that count towards caps: those sent through gateways on loopback if `loopback` is
    /// set, otherwise those sent through other gateways. Only the messages of `run` have a row.
    fn prior_messages(&self, loopback: bool, run: Option<RunId>) -> FxHashMap<Addressee, Vec<PriorMessage>> {
        let mut messages = FxHashMap::<Addressee, Vec<PriorMessage>>::default();
        for stored in self.stored_runs().filter(|stored| stored.run.suppression.loopback == loopback) {
            for (to, PriorMessage { at, row }) in stored.capped_messages() {
                let row = row.filter(|_| run == Some(stored.run.key));
                messages.entry(to).or_default().push(PriorMessage { at, row });
            }
        }
        messages
    }

    pub fn capped_numbers(&self, now: i64, caps: &[FrequencyCap], loopback: bool) -> NumberSet {
        let list_times = |messages: &[PriorMessage]| messages.iter().map(|message| message.at).collect::<Vec<i64>>();
        let messages = self.prior_messages(loopback, None).into_iter();
        let capped = messages.filter(|(_, sent)| !caps_allow(caps, now, &list_times(sent))).map(|(to, _)| to.to_u64());
        NumberSet::new(capped.collect(), self.opt_outs.key())
    }

    /// The permit that refuses an intent which exceeds a bound. `None` if the intent exceeds no bound.
    pub(super) fn find_exceeded_bound(
        &self,
        now: i64,
        (intent, departs_at): (&Intent, Timestamp),
    ) -> Result<Option<Permit>, LedgerError> {
        let Some(bounds) = &intent.bounds else { return Ok(None) };
        let run = &self.stored_run(intent.lease.run)?.run;
        let rows = intent.rows.len();
        let runs_in_scope = || self.stored_runs().filter(|stored| share_budget(run, &stored.run));
        let used = runs_in_scope().map(StoredRun::total_spending).fold(Spending::default(), Spending::add_spending);
        let mut exceeded = find_exceeded_budget(&bounds.budget, used, rows, &intent.costs);
        if let Some(per_day) = &bounds.per_day {
            let mut sent_by_day = BTreeMap::new();
            let days = runs_in_scope().flat_map(|stored| stored.count_by_day(per_day));
            days.for_each(|(day, count)| *sent_by_day.entry(day).or_default() += count);
            exceeded = tighter_bound(
                exceeded,
                find_exceeded_daily_limit(per_day, &sent_by_day, timestamp_from_micros(now)?, departs_at, rows),
            );
        }
        Ok(exceeded.map(|(fits, bound)| Permit::BoundExceeded { fits, bound }))
    }
}

impl LedgerContents {
    fn slow_down_account(&mut self, now: i64, account: &str, wait: Option<Duration>) -> SlotPermit {
        let limit = self.rate_limits.entry(account.to_owned()).or_default();
        *limit = limit.slow_down(now, wait.and_then(|wait| i64::try_from(wait.as_micros()).ok()));
        SlotPermit::Later(limit.requested_wait(now))
    }

    pub fn use_rate_limit(&mut self, now: i64, account: &Allowance, request: RateRequest) -> SlotPermit {
        match request {
            RateRequest::Operations(count) => {
                SlotPermit::Granted { wait: self.reserve_rate(now, account, count), next: Duration::ZERO }
            }
            RateRequest::Inquiry { longest } => self.reserve_inquiry(now, account, longest),
            RateRequest::SlowDown(wait) => self.slow_down_account(now, &account.name, wait),
        }
    }

    pub fn reserve_rate(&mut self, now: i64, account: &Allowance, count: u32) -> SlotWait {
        let limit = self.rate_limits.entry(account.name.to_string()).or_default();
        let reservation = limit.reserve(now, count, account.rate);
        *limit = reservation.rate_limit;
        reservation.wait
    }

    fn reserve_inquiry(&mut self, now: i64, account: &Allowance, longest_wait: Duration) -> SlotPermit {
        let inquiries = inquiry_account_name(&account.name);
        let find_limit = |name: &str| self.rate_limits.get(name).copied().unwrap_or_default();
        let before = InquiryRateLimit { account: find_limit(&account.name), inquiries: find_limit(&inquiries) };
        let (after, permit) = before.reserve_inquiry(now, account.rate, longest_wait);
        if after != before {
            self.rate_limits.insert(account.name.to_string(), after.account);
            self.rate_limits.insert(inquiries, after.inquiries);
        }
        permit
    }

    /// The rate limits of all accounts, by account name.
    pub fn list_rate_limits(&self) -> Vec<(String, AccountRateLimit)> {
        let accounts = self.rate_limits.iter().filter(|(name, _)| !is_inquiry_account(name));
        accounts.map(|(name, limit)| (name.clone(), *limit)).collect()
    }
}
