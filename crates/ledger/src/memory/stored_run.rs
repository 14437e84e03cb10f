//! A run in memory, with all its records.

use std::collections::BTreeMap;
use std::mem;

use jiff::Timestamp;
use jiff::civil::Date;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::shards::DrawnShard;
use crate::rules::{
    CountedMessage, CountedMessages, Guard, PriorMessage, counts_for_caps, in_doubt_outcomes, list_included_rows,
    merge_outcomes, owns_rows,
};
use crate::{
    AskedRow, ConsentEvidence, EnvelopeRecord, EnvelopeSummary, Epoch, ExcludedRows, Intent, Lease, LedgerError,
    NewRowEvent, NumberKey, RowEvent, RowEvents, RowSpan, RowStates, Run, RunActivity, SentRow, Settlement,
    StoredReceipt,
};
use campaign_core::calendar::DailyLimits;
use campaign_core::domain::{Addressee, Row, Spending};

/// A run with all its records.
#[derive(Clone, Debug)]
pub struct StoredRun {
    pub run: Run,
    /// Whether the run's copies are in place.
    pub(super) opened: bool,
    pub excluded: ExcludedRows,
    pub envelopes: BTreeMap<u32, EnvelopeRecord>,
    pub events: Vec<RowEvent>,
    pub inquiries: BTreeMap<Row, AskedRow>,
    pub receipts: BTreeMap<Row, Vec<StoredReceipt>>,
    /// The evidence of consent, by row.
    pub(super) consents: BTreeMap<Row, ConsentEvidence>,
    /// The leased block of each place.
    pub(super) blocks: BTreeMap<u32, Lease>,
    /// The shards drawn since the run was sharded, in row order.
    pub(super) shards: Vec<DrawnShard>,
    /// The rows of forgotten numbers.
    pub(super) forgotten: RoaringBitmap,
    /// The rows of forgotten numbers that copies and results still contain.
    pub(super) rows_to_forget: RoaringBitmap,
    /// The hashes of cancelled numbers: of forgotten numbers, and of all cancelled numbers once the run is purged.
    pub(super) cancelled: RoaringTreemap,
    /// The records before the purge, with hashed numbers. Used for guards and counts.
    remains: Option<Box<StoredRun>>,
    /// The times at which blocks were drawn, in microseconds since 1970.
    pub(super) drawn_at: Vec<i64>,
}

impl StoredRun {
    pub(super) fn new(run: Run, excluded: ExcludedRows) -> Self {
        Self {
            run,
            opened: false,
            excluded,
            envelopes: BTreeMap::new(),
            events: Vec::new(),
            inquiries: BTreeMap::new(),
            receipts: BTreeMap::new(),
            consents: BTreeMap::new(),
            blocks: BTreeMap::new(),
            shards: Vec::new(),
            forgotten: RoaringBitmap::new(),
            rows_to_forget: RoaringBitmap::new(),
            cancelled: RoaringTreemap::new(),
            remains: None,
            drawn_at: Vec::new(),
        }
    }

    /// Purges the records, except for the records that guards and counts need.
    pub(super) fn purge_records(&mut self, key: &NumberKey) {
        let empty = Self::new(self.run.clone(), ExcludedRows::default());
        let Self {
            run,
            opened,
            excluded: _,
            mut envelopes,
            events,
            inquiries: _,
            receipts,
            consents: _,
            blocks: _,
            shards: _,
            forgotten: _,
            rows_to_forget: _,
            cancelled,
            remains: _,
            drawn_at,
        } = mem::replace(self, empty);
        for sent in envelopes.values_mut().flat_map(|envelope| &mut envelope.rows) {
            if let Some(phone) = sent.to.phone() {
                sent.to = Addressee::Forgotten(key.hash_number(phone));
            }
        }
        envelopes.values_mut().for_each(|envelope| envelope.evidence = None);
        (self.opened, self.cancelled, self.drawn_at) = (opened, cancelled, drawn_at);
        let remains = Self { envelopes, events, receipts, ..Self::new(run, ExcludedRows::default()) };
        self.remains = Some(Box::new(remains));
    }

    /// The records that guards and counts use. After a purge, only the remaining records.
    fn retained_records(&self) -> &Self {
        self.remains.as_deref().unwrap_or(self)
    }

    /// Claims the run, except for the rows in `others`. Returns the number of envelopes that are now in doubt.
    pub(super) fn claim_run(&mut self, at: Timestamp, epoch: Epoch, others: &[RowSpan]) -> usize {
        self.run.start_claim(epoch);
        self.blocks.retain(|_, block| others.contains(&block.rows));
        self.close_shards(others);
        self.mark_in_doubt(at, |rows| !others.iter().any(|block| owns_rows(*block, rows)))
    }

    /// Assigns a block to a place that has no block.
    pub(super) fn assign_block(&mut self, place: u32, block: Lease) {
        self.blocks.insert(place, block);
    }

    /// Releases the block of a place that is not in use. Puts the open intents of the block in doubt.
    pub(super) fn release_block(&mut self, at: Timestamp, place: u32) {
        if let Some(block) = self.blocks.remove(&place) {
            self.mark_in_doubt(at, |rows| owns_rows(block.rows, rows));
        }
    }

    /// Settles the open intents whose rows match as in doubt, and returns their number.
    pub(super) fn mark_in_doubt(&mut self, at: Timestamp, matches: impl Fn(RowSpan) -> bool) -> usize {
        let open = self.envelopes.values_mut().filter(|envelope| envelope.settled.is_none());
        let matching = open.filter(|envelope| covering_span(&envelope.rows).is_none_or(&matches));
        matching.map(|envelope| envelope.settled = Some((at, in_doubt_outcomes(envelope.rows.len())))).count()
    }

    /// Whether the lease of an intent still covers its rows.
    pub(super) fn is_leased(&self, intent: &Intent) -> bool {
        if self.run.may_send_whole_run(intent.lease) {
            return true;
        }
        let Some(rows) = covering_span(&intent.rows) else { return false };
        let is_in_block = self.blocks.values().any(|lease| *lease == intent.lease && owns_rows(lease.rows, rows));
        let is_in_shard = self.has_shard_with_rows(intent.lease.epoch, rows);
        self.run.may_send_drawn_rows() && (is_in_block || is_in_shard)
    }

    /// The number that follows the last envelope, or 1 without envelopes.
    pub fn next_envelope_number(&self) -> u32 {
        self.envelopes.keys().next_back().map_or(1, |last| last + 1)
    }

    /// Stores an intent under this number.
    pub fn insert_envelope(&mut self, at: Timestamp, envelope: u32, intent: Intent) -> Result<(), LedgerError> {
        let Intent { kind, rows, costs, .. } = intent;
        if self.envelopes.contains_key(&envelope) {
            return Err(LedgerError::Unreadable(format!("the envelope {envelope} is there already")));
        }
        let (settled, evidence) = (None, None);
        self.envelopes
            .insert(envelope, EnvelopeRecord { envelope, kind, begun_at: at, rows, costs, settled, evidence });
        Ok(())
    }

    pub(super) fn settle_envelope(&mut self, at: Timestamp, settlement: Settlement) -> Result<(), LedgerError> {
        let Settlement { envelope: number, outcomes, evidence, .. } = settlement;
        let missing = || LedgerError::Unreadable(format!("there is no envelope {number}"));
        let envelope = self.envelopes.get_mut(&number).ok_or_else(missing)?;
        let outcomes = match envelope.settled.take() {
            None => outcomes,
            Some((_, known)) => merge_outcomes(known, outcomes),
        };
        envelope.settled = Some((at, outcomes));
        envelope.evidence = evidence.or(envelope.evidence.take());
        self.recount_ended_run();
        Ok(())
    }

    /// Recounts the states of the run from its envelopes, if the run has ended.
    fn recount_ended_run(&mut self) {
        if self.run.counts.is_some() {
            let mut states = RowStates::new(RunActivity::from_progress(self.run.progress, false), self.row_events());
            self.envelopes.values().for_each(|envelope| states.add_envelope(envelope));
            self.receipts.iter().for_each(|(row, receipts)| states.add_receipts(*row, receipts));
            self.run.recount(&states, &self.excluded);
        }
    }

    /// Ends the run, because another run replaces it.
    pub(super) fn retire(&mut self, at: Timestamp) {
        self.run.mark_replaced(at);
        // Orders to send messages again are void now, so the rows have their earlier states.
        if !self.events.is_empty() {
            self.recount_ended_run();
        }
    }

    pub(super) fn record_events(&mut self, at: Timestamp, events: Vec<NewRowEvent>) {
        self.excluded.remove_rows(&(list_included_rows(&events) - &self.forgotten));
        self.run.reopen_for_planned_rows(events.iter().map(|event| &event.change));
        self.events.extend(events.into_iter().map(|NewRowEvent { row, envelope, change }| RowEvent {
            row,
            envelope,
            at,
            change,
        }));
    }

    /// The events of the run by row, with the excluded rows.
    pub fn row_events(&self) -> RowEvents {
        RowEvents::new(self.events.clone(), self.run.endpoint).with_excluded_rows(&self.excluded)
    }

    pub(super) fn guarded_numbers(&self) -> RoaringTreemap {
        self.build_guard().into_numbers()
    }

    /// The rows that have or might have a message; none once the run is purged.
    pub fn sent_rows(&self) -> RoaringBitmap {
        if self.remains.is_some() { RoaringBitmap::new() } else { self.build_guard().into_rows() }
    }

    fn build_guard(&self) -> Guard {
        let stored = self.retained_records();
        let events = RowEvents::new(stored.events.clone(), self.run.endpoint);
        let mut guard = Guard::new(self.run.progress, events);
        stored.envelopes.values().for_each(|envelope| guard.add_envelope(envelope));
        stored.receipts.iter().for_each(|(row, receipts)| guard.add_receipts(*row, receipts));
        guard
    }

    /// The part of the edition's budget that this run used.
    pub(super) fn total_spending(&self) -> Spending {
        let to_spending = |message: &CountedMessage| Spending { recipients: 1, cost: message.cost };
        self.counted_messages().iter().map(to_spending).fold(Spending::default(), Spending::add_spending)
    }

    /// The number of messages of the run that were sent on each day.
    pub(super) fn count_by_day(&self, per_day: &DailyLimits) -> BTreeMap<Date, u64> {
        let mut days = BTreeMap::new();
        for message in self.counted_messages() {
            *days.entry(per_day.local_date(message.begun_at)).or_default() += 1;
        }
        days
    }

    /// The messages of the run that count towards caps, each with its number.
    pub(super) fn capped_messages(&self) -> Vec<(Addressee, PriorMessage)> {
        if !counts_for_caps(&self.run) {
            return Vec::new();
        }
        let to_prior = |message: CountedMessage| {
            (message.to, PriorMessage { at: message.begun_at.as_microsecond(), row: Some(message.row) })
        };
        self.counted_messages().into_iter().map(to_prior).collect()
    }

    /// The messages that count towards limits.
    fn counted_messages(&self) -> Vec<CountedMessage> {
        let stored = self.retained_records();
        let mut messages = CountedMessages::new(RowEvents::new(stored.events.clone(), self.run.endpoint));
        let mut counted: Vec<_> =
            stored.envelopes.values().flat_map(|envelope| messages.add_envelope(envelope)).collect();
        let find_proven = |(row, receipts): (&Row, &Vec<_>)| messages.find_proven_messages(*row, receipts);
        counted.extend(stored.receipts.iter().flat_map(find_proven));
        counted
    }

    pub fn envelope_summaries(&self) -> Vec<EnvelopeSummary> {
        let summarize = |record: &EnvelopeRecord| {
            let RowSpan { first, last } = covering_span(&record.rows)?;
            Some(EnvelopeSummary { envelope: record.envelope, first, last })
        };
        self.envelopes.values().filter_map(summarize).collect()
    }
}

/// The smallest row span that contains these rows. `None` if there are no rows.
fn covering_span(rows: &[SentRow]) -> Option<RowSpan> {
    let rows = rows.iter().map(|sent| sent.row);
    rows.clone().min().zip(rows.max()).map(|(first, last)| RowSpan { first, last })
}
