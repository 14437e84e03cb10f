//! Records of sent rows: attempts, receipts and decisions, read from the ledger in row order, a few requests at a time.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use super::message::{GatewayClock, MessageDelivery};
use super::run_figures::{Fold, RequestFigures, RunFigures};
use campaign_core::domain::{
    Amount, Chain, Channel, DeliveryState, GatewayMessageId, OperationKind, OperationOutcome, Phone, ReceiptSource,
    Row, Status,
};
use campaign_ledger::{
    Attempt, EnvelopeFilter, EnvelopeRecord, Judgement, Ledger, LedgerError, RowActivities, RowChange, RowEvents,
    RowState, Run, RunActivity, RunId, StoredReceipt,
};

/// The number of rows that are read at once, so that they fit into the cache of a processor. A request is read as a
/// whole.
const BLOCK_ROWS: u32 = 2_048;
/// The maximum number of requests that are read at once.
const BLOCK_ENVELOPES: u32 = 64;
/// The number of rows whose receipts are read at once if all rows are read.
const RECEIPT_ROWS: u32 = 4_096;
/// The number of rows whose receipts are read at once if only a few rows are read.
const RECEIPT_ROWS_FOR_FEW: u32 = 32;

/// The outcome of a sent row.
#[derive(Clone, Debug)]
pub struct RowRecord {
    /// The phone number, unless it was erased.
    pub phone: Option<Phone>,
    /// The operation type of the last attempt.
    pub kind: OperationKind,
    /// The channels of the last attempt's message.
    pub chain: Chain,
    /// The time when the last attempt was recorded.
    pub begun_at: Timestamp,
    /// The time when the last attempt that the gateway accepted or queued was recorded. `None` if there is none.
    pub last_accepted_at: Option<Timestamp>,
    /// The time of submission in the format of the results.
    pub submitted_at: Arc<str>,
    /// The time and the outcome of the last attempt. `None` if only the intent is recorded.
    pub settled: Option<(Arc<str>, OperationOutcome)>,
    /// The billed parts of all messages of the row, if the gateway reported them.
    pub parts: Option<u32>,
    /// The state of the row.
    pub state: RowState,
    /// Later facts and decisions about the row.
    pub amendment: Option<Box<Amendment>>,
    /// The conclusion from the receipts of the row's message.
    pub receipt_summary: Option<Box<ReceiptSummary>>,
}

impl RowRecord {
    /// Whether the message counts as failed only because the gateway never reported the channels after the failed
    /// channel.
    pub fn lacks_fallback_report(&self) -> bool {
        let last = self.receipt_summary.as_ref().map(|summary| &summary.last.receipt);
        self.state == RowState::Failed
            && self.chain.has_fallback()
            && last.is_some_and(|last| {
                last.source == ReceiptSource::AskedLast && !self.chain.is_exhausted_by(last.channel.as_ref())
            })
    }

    /// The gateway's identifier of the message, if it is known.
    pub fn msg_id(&self) -> Option<&GatewayMessageId> {
        let last_event = self.amendment.as_ref().and_then(|amendment| amendment.last.as_ref());
        let msg_id = match (self.settled.as_ref().map(|(_, outcome)| outcome), last_event) {
            (_, Some((_, RowChange::Found { msg_id, .. }))) => msg_id.as_ref(),
            (Some(OperationOutcome::Accepted { msg_id, .. }), _) => msg_id.as_ref(),
            _ => None,
        };
        msg_id.or(self.receipt_summary.as_ref().and_then(|summary| summary.msg_id.as_ref()))
    }

    /// The gateway's identifier of the request, if the gateway queued the message.
    pub fn request_id(&self) -> Option<&Arc<str>> {
        match &self.settled {
            Some((_, OperationOutcome::Queued { request_id })) => Some(request_id),
            _ => None,
        }
    }

    /// The retry order that assigned the message's identifier. `None` if the identifier is from the run itself.
    pub fn order(&self) -> Option<u32> {
        self.amendment.as_ref().and_then(|amendment| amendment.order)
    }

    /// The delivery of the row's message, if it was delivered.
    pub fn delivery(&self) -> Option<&MessageDelivery> {
        self.receipt_summary.as_ref().and_then(|summary| summary.delivery.as_ref())
    }

    /// The channel for which the message counts: the channel that delivered it, otherwise the channel that was reported
    /// last, otherwise the only channel.
    pub fn channel(&self) -> Option<Channel> {
        let only_channel = self.chain.channels().next().filter(|_| !self.chain.has_fallback());
        let reported = self.receipt_summary.as_ref().and_then(|summary| match &summary.delivery {
            Some(delivery) => delivery.channel,
            None => summary.last.receipt.known_channel(),
        });
        reported.or(only_channel)
    }

    /// The channel for which a read message counts: the channel that reported it as read, or otherwise
    /// [`Self::channel`].
    pub fn reading_channel(&self) -> Option<Channel> {
        self.delivery().and_then(|delivery| delivery.read_by).or_else(|| self.channel())
    }
}

/// The number of requests that are read at once, given the last sent row and the number of requests.
fn choose_block_size(last: Option<Row>, envelopes: usize) -> u32 {
    let envelopes = u32::try_from(envelopes).unwrap_or(u32::MAX).max(1);
    let rows_per_envelope = last.map_or(1, |last| last.get().div_ceil(envelopes));
    (BLOCK_ROWS / rows_per_envelope.max(1)).clamp(1, BLOCK_ENVELOPES)
}

/// The conclusion from the receipts of a message.
#[derive(Clone, Debug)]
pub struct ReceiptSummary {
    /// The receipt that decides the state: the last one that changed it, or else the last.
    pub last: StoredReceipt,
    /// The delivery, if the receipts prove one.
    pub delivery: Option<MessageDelivery>,
    /// The gateway's identifier, if a receipt contains it.
    pub msg_id: Option<GatewayMessageId>,
}

/// An attempt to send a row.
struct SentAttempt {
    phone: Option<Phone>,
    kind: OperationKind,
    envelope: u32,
    chain: Chain,
    begun_at: Timestamp,
    submitted_at: Arc<str>,
    settled: Option<(Arc<str>, OperationOutcome)>,
    /// The price, if it is known.
    cost: Option<Amount>,
}

struct RowAttempts {
    last: SentAttempt,
    /// Earlier attempts; requests can be read in any order.
    earlier: Vec<SentAttempt>,
}

impl SentAttempt {
    fn outcome(&self) -> Option<&OperationOutcome> {
        self.settled.as_ref().map(|(_, outcome)| outcome)
    }

    fn to_attempt(&self, row: Row, activities: &RowActivities) -> Attempt {
        activities.build_row_attempt(row, self.envelope, self.chain, self.outcome())
    }

    /// The billed parts of the message, if the gateway reported them.
    fn parts(&self) -> Option<u32> {
        match self.outcome() {
            Some(OperationOutcome::Accepted { parts, .. }) => *parts,
            _ => None,
        }
    }

    /// Whether the gateway accepted or queued the message of this attempt.
    fn is_accepted(&self) -> bool {
        matches!(self.outcome(), Some(OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. }))
    }
}

impl RowAttempts {
    fn add_attempt(&mut self, mut attempt: SentAttempt) {
        if attempt.envelope > self.last.envelope {
            std::mem::swap(&mut attempt, &mut self.last);
        }
        self.earlier.push(attempt);
    }

    /// The billed parts of all attempts, if the gateway reported them.
    fn sum_parts(&self) -> Option<u32> {
        self.earlier.iter().chain([&self.last]).filter_map(SentAttempt::parts).reduce(u32::saturating_add)
    }

    /// The time when the last attempt that the gateway accepted or queued was recorded.
    fn last_accepted_at(&self) -> Option<Timestamp> {
        let accepted = self.earlier.iter().chain([&self.last]).filter(|attempt| attempt.is_accepted());
        accepted.max_by_key(|attempt| attempt.envelope).map(|attempt| attempt.begun_at)
    }

    fn to_attempts(&self, row: Row, activities: &RowActivities) -> Vec<Attempt> {
        self.earlier.iter().chain([&self.last]).map(|attempt| attempt.to_attempt(row, activities)).collect()
    }

    /// Selects the latest attempt whose envelope satisfies `has_order`, or the last attempt if there is none.
    fn select_attempt(mut self, has_order: impl Fn(u32) -> bool) -> SentAttempt {
        let index = (0..self.earlier.len())
            .filter(|index| has_order(self.earlier[*index].envelope))
            .max_by_key(|index| self.earlier[*index].envelope);
        match index.filter(|_| !has_order(self.last.envelope)) {
            Some(index) => self.earlier.swap_remove(index),
            None => self.last,
        }
    }
}

/// Facts and decisions about a row, without its attempts.
#[derive(Clone, Debug)]
pub struct Amendment {
    /// The last event about the decisive attempt, and when it was recorded.
    pub last: Option<(Arc<str>, RowChange)>,
    /// The retry order whose identifiers that attempt had. `None` for those of the run itself.
    pub order: Option<u32>,
    /// Whether an earlier attempt was sent after all: with the same identifier, or delivered with another identifier.
    pub duplicate: bool,
}

/// A reader of the records of a run's rows, in ascending order.
///
/// Except for retries, rows are sent in list order, so the ranges of only a few envelopes contain a row. Only those
/// envelopes are kept in memory.
pub struct RowRecords<'a> {
    ledger: &'a dyn Ledger,
    run: RunId,
    activities: RowActivities,
    /// Blocks of envelopes with the first row in them, in the order of those rows.
    blocks: VecDeque<(Row, RangeInclusive<u32>)>,
    attempts: FxHashMap<Row, RowAttempts>,
    events: RowEvents,
    receipts: FxHashMap<Row, Vec<StoredReceipt>>,
    /// The first row whose receipts are not read yet.
    first_unread: u32,
    /// The number of rows whose receipts are read at once.
    receipts_at_once: u32,
    /// The last row with an envelope.
    last: Option<Row>,
    /// The clock of the times in the run's receipts.
    clock: GatewayClock,
    /// The figures of the requests that were read.
    requests: RequestFigures,
    /// Calculates the run's figures from the records, if they are wanted.
    fold: Option<Box<Fold<'a>>>,
}

impl<'a> RowRecords<'a> {
    /// Opens a reader at the first row of a run; `owned` says whether a process is sending the run.
    ///
    /// # Errors
    /// If the ledger cannot be read, or the run was purged.
    pub async fn open(ledger: &'a dyn Ledger, run: &Run, owned: bool) -> Result<Self, LedgerError> {
        Self::open_selected(ledger, run, owned, None).await
    }

    /// Opens a reader of a few rows of a run. Requests without these rows are not read.
    ///
    /// # Errors
    /// Fails in the same cases as [`RowRecords::open`].
    pub async fn open_for_rows(
        ledger: &'a dyn Ledger,
        run: &Run,
        owned: bool,
        rows: &RoaringBitmap,
    ) -> Result<Self, LedgerError> {
        Self::open_selected(ledger, run, owned, Some(rows)).await
    }

    async fn open_selected(
        ledger: &'a dyn Ledger,
        run: &Run,
        owned: bool,
        wanted: Option<&RoaringBitmap>,
    ) -> Result<Self, LedgerError> {
        LedgerError::refuse_purged(run)?;
        let clock = GatewayClock::for_run(run);
        let activities = RowActivities::load(ledger, run, owned).await?;
        let (run, endpoint) = (run.key, run.endpoint);
        let events = RowEvents::new(ledger.load_events(run).await?, endpoint)
            .with_excluded_rows(&ledger.load_excluded_rows(run).await?);
        let summaries = ledger.list_envelope_summaries(run).await?;
        let last = summaries.iter().map(|summary| summary.last).max();
        let (block_size, receipts_at_once) = match wanted {
            Some(_) => (1, RECEIPT_ROWS_FOR_FEW),
            None => (choose_block_size(last, summaries.len()), RECEIPT_ROWS),
        };
        let mut blocks: BTreeMap<u32, Row> = BTreeMap::new();
        for summary in summaries {
            let span = summary.first.get()..=summary.last.get();
            if wanted.is_none_or(|rows| rows.range_cardinality(span) > 0) {
                let first = blocks.entry(summary.envelope / block_size).or_insert(summary.first);
                *first = summary.first.min(*first);
            }
        }
        let mut blocks: Vec<_> = blocks
            .into_iter()
            .map(|(number, first)| (first, number * block_size..=number * block_size + (block_size - 1)))
            .collect();
        blocks.sort_by_key(|(first, _)| *first);
        let (attempts, receipts, requests) = Default::default();
        let (blocks, first_unread) = (blocks.into(), 0);
        Ok(Self {
            ledger,
            run,
            activities,
            blocks,
            attempts,
            events,
            receipts,
            first_unread,
            receipts_at_once,
            last,
            clock,
            requests,
            fold: None,
        })
    }

    /// Makes the reader calculate the run's figures while records are read.
    pub(super) fn with_fold(self, fold: Fold<'a>) -> Self {
        Self { fold: Some(Box::new(fold)), ..self }
    }

    /// The last row with an envelope.
    pub fn last_row(&self) -> Option<Row> {
        self.last
    }

    /// Returns the run's figures after all rows were read; `recipients` is the number of recipients of the run. `None`
    /// if there is no fold.
    pub(super) fn into_figures(self, recipients: u64) -> Option<RunFigures> {
        let activity = self.activity();
        Some(RunFigures { requests: self.requests, ..self.fold?.finish(activity, recipients) })
    }

    /// The activity of the run.
    pub fn activity(&self) -> RunActivity {
        self.activities.run_activity()
    }

    /// Takes the record of `row`, if the row is part of a request. Rows must be passed in ascending order.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn take_record(&mut self, row: Row) -> Result<Option<RowRecord>, LedgerError> {
        self.read_rows(row, row).await?;
        Ok(self.take_loaded(row))
    }

    /// Reads the records of the rows from `first` to `last`. Rows must be passed in ascending order.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(super) async fn read_rows(&mut self, first: Row, last: Row) -> Result<(), LedgerError> {
        while self.blocks.front().is_some_and(|(first, _)| *first <= last) {
            if let Some((_, numbers)) = self.blocks.pop_front() {
                for envelope in self.ledger.load_envelopes(self.run, EnvelopeFilter::Numbers(numbers)).await? {
                    self.add_envelope(envelope);
                }
            }
        }
        if last.get() >= self.first_unread {
            let (first, end) = (first.get(), last.get().saturating_add(1));
            let rows = first..end.max(first.saturating_add(self.receipts_at_once));
            self.first_unread = rows.end;
            self.receipts = self.ledger.load_receipts(self.run, rows).await?.into_iter().collect();
        }
        Ok(())
    }

    /// Takes the record of a row that was already read, if the row is part of a request. Each record is returned only
    /// once.
    pub(super) fn take_loaded(&mut self, row: Row) -> Option<RowRecord> {
        let mut attempts = self.attempts.remove(&row)?;
        attempts.earlier.sort_by_key(|attempt| attempt.envelope);
        for attempt in self.find_proven_attempts(row, &attempts) {
            let was_given_back = !matches!(attempt.outcome(), Some(OperationOutcome::NotSent { .. }));
            self.requests.add_proven_message(attempt.cost, was_given_back);
        }
        let record = self.build_record(row, attempts);
        if let Some(fold) = &mut self.fold {
            fold.add_row(row, &record);
        }
        Some(record)
    }

    /// The attempts that count only because of receipts.
    fn find_proven_attempts<'r>(&self, row: Row, attempts: &'r RowAttempts) -> Vec<&'r SentAttempt> {
        let Some(receipts) = self.receipts.get(&row) else { return Vec::new() };
        let all: Vec<&'r SentAttempt> = attempts.earlier.iter().chain([&attempts.last]).collect();
        let count_attempt = |attempt: &&SentAttempt| {
            let counts = self.events.counts_as_sent(row, attempt.envelope, attempt.chain, attempt.outcome());
            (attempt.to_attempt(row, &self.activities), counts)
        };
        let counted: Vec<(Attempt, bool)> = all.iter().map(count_attempt).collect();
        let proven = self.events.find_proven_attempts(row, &counted, receipts).into_iter();
        proven.map(|index| all[index]).collect()
    }

    /// Builds the record of a row. The earlier attempts must be sorted by envelope.
    fn build_record(&self, row: Row, attempts: RowAttempts) -> RowRecord {
        let receipts = self.receipts.get(&row).map_or(&[][..], Vec::as_slice);
        let judgement = self.judge_row(row, &attempts, receipts);
        let receipt_summary = self.summarize_receipts(row, &judgement, &attempts, receipts);
        let is_repeated = !attempts.earlier.is_empty();
        let is_amended = self.events.has_events(row) || (is_repeated && receipt_summary.is_some());
        let mut amendment = is_amended.then(|| build_amendment(&self.events, row, &attempts, &judgement));
        let has_two_messages = is_repeated
            && !receipts.is_empty()
            && self.events.has_two_messages(row, &attempts.to_attempts(row, &self.activities), receipts);
        let parts = attempts.sum_parts();
        let last_accepted_at = attempts.last_accepted_at();
        // The decisive message can be an earlier one.
        let is_decisive = |envelope| self.events.find_order(row, envelope) == judgement.order;
        let sent = if is_repeated { attempts.select_attempt(is_decisive) } else { attempts.last };
        if let (Some(amendment), Some(summary)) = (&mut amendment, &receipt_summary) {
            amendment.duplicate |= has_two_messages || (is_repeated && summary.has_several_msg_ids(&sent, receipts));
        }
        let state = judgement.state;
        let SentAttempt { phone, kind, chain, begun_at, submitted_at, settled, .. } = sent;
        // Boxed, because few rows have either, and records are moved often.
        let (amendment, receipt_summary) = (amendment.map(Box::new), receipt_summary.map(Box::new));
        RowRecord {
            phone,
            kind,
            chain,
            begun_at,
            last_accepted_at,
            submitted_at,
            settled,
            parts,
            state,
            amendment,
            receipt_summary,
        }
    }

    fn judge_row<'r>(&'r self, row: Row, attempts: &RowAttempts, receipts: &'r [StoredReceipt]) -> Judgement<'r> {
        let activity = self.activities.row_activity(row);
        let last = attempts.last.to_attempt(row, &self.activities);
        if attempts.earlier.is_empty() {
            return activity.judge_row(row, &[last], &self.events, receipts);
        }
        let earlier = attempts.earlier.iter().map(|attempt| attempt.to_attempt(row, &self.activities));
        let attempts: Vec<Attempt> = earlier.chain([last]).collect();
        activity.judge_row(row, &attempts, &self.events, receipts)
    }

    /// Summarizes the receipts of the attempt that decides the row's state.
    fn summarize_receipts(
        &self,
        row: Row,
        judgement: &Judgement<'_>,
        attempts: &RowAttempts,
        receipts: &[StoredReceipt],
    ) -> Option<ReceiptSummary> {
        let last = judgement.final_receipt.or(judgement.last_receipt)?;
        let matching = || receipts.iter().filter(|receipt| receipt.order == last.order);
        let msg_id = matching().rev().find_map(|receipt| receipt.receipt.msg_id.clone());
        let mut summary = ReceiptSummary { last: last.clone(), delivery: None, msg_id };
        if !judgement.state.is_delivered() {
            return Some(summary);
        }
        let has_order = |attempt: &&SentAttempt| self.events.find_order(row, attempt.envelope) == judgement.order;
        let sent = attempts.earlier.iter().chain([&attempts.last]).filter(has_order).map(|attempt| attempt.begun_at);
        let mut sent: Vec<Timestamp> = sent.collect();
        if sent.is_empty() {
            sent.push(attempts.last.begun_at);
        }
        summary.delivery = MessageDelivery::from_receipts(matching(), &sent, self.clock);
        // A later receipt for a part does not hide the delivery of the whole message.
        if summary.last.receipt.status == Status::PartiallyDelivered
            && let Some(whole_delivery) = matching().rfind(|receipt| reports_whole_delivery(receipt))
        {
            summary.last = whole_delivery.clone();
        }
        Some(summary)
    }

    fn add_envelope(&mut self, envelope: EnvelopeRecord) {
        self.requests.add_envelope(&envelope, &self.events);
        let (number, kind) = (envelope.envelope, envelope.kind);
        let (begun_at, submitted_at) = (envelope.begun_at, format_instant(envelope.begun_at));
        let settled_at = envelope.settled.as_ref().map(|(at, _)| format_instant(*at));
        let chains: Vec<Chain> = envelope.rows.iter().map(|sent| envelope.chain(sent)).collect();
        let mut outcomes = envelope.settled.map(|(_, outcomes)| outcomes.into_iter());
        let costs = envelope.costs.into_iter().map(Some).chain(std::iter::repeat(None));
        for ((sent, chain), cost) in envelope.rows.into_iter().zip(chains).zip(costs) {
            let outcome = outcomes.as_mut().and_then(Iterator::next);
            let settled = settled_at.clone().zip(outcome);
            let attempt = SentAttempt {
                phone: sent.to.phone(),
                kind,
                envelope: number,
                chain,
                begun_at,
                submitted_at: submitted_at.clone(),
                settled,
                cost,
            };
            match self.attempts.entry(sent.row) {
                Entry::Vacant(entry) => drop(entry.insert(RowAttempts { last: attempt, earlier: Vec::new() })),
                Entry::Occupied(mut entry) => entry.get_mut().add_attempt(attempt),
            }
        }
    }
}

impl ReceiptSummary {
    /// Whether the gateway's response and the receipts for a message identifier contain more than one `msg_id`.
    fn has_several_msg_ids(&self, sent: &SentAttempt, receipts: &[StoredReceipt]) -> bool {
        let accepted = match &sent.settled {
            Some((_, OperationOutcome::Accepted { msg_id, .. })) => msg_id.as_ref(),
            _ => None,
        };
        let matching = receipts.iter().filter(|receipt| receipt.order == self.last.order);
        let mut msg_ids = matching.filter_map(|receipt| receipt.receipt.msg_id.as_ref()).chain(accepted);
        let first = msg_ids.next();
        msg_ids.any(|other| Some(other) != first)
    }
}

/// Whether a receipt reports the delivery of a whole message.
fn reports_whole_delivery(receipt: &StoredReceipt) -> bool {
    receipt.receipt.status.delivery_state() == DeliveryState::Delivered
        && receipt.receipt.status != Status::PartiallyDelivered
}

fn build_amendment(events: &RowEvents, row: Row, attempts: &RowAttempts, judgement: &Judgement<'_>) -> Amendment {
    let RowAttempts { last, earlier } = attempts;
    // A message with a different identifier is a duplicate only if receipts prove a delivery.
    let has_same_id =
        |attempt: &&SentAttempt| events.find_order(row, attempt.envelope) == events.find_order(row, last.envelope);
    let was_accepted_before = earlier.iter().filter(has_same_id).any(SentAttempt::is_accepted);
    Amendment {
        last: judgement.event.map(|event| (format_instant(event.at), event.change.clone())),
        order: judgement.order,
        duplicate: was_accepted_before || events.find_duplicate(row, last.envelope, last.chain).is_some(),
    }
}

/// Formats a time as RFC 3339 in UTC, with milliseconds.
fn format_instant(at: Timestamp) -> Arc<str> {
    format!("{at:.3}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_ledger::memory::{LedgerContents, MemoryLedger};
    use campaign_ledger::{Allowance, Intent, SentRow};
    use campaign_testing::new_run;

    #[tokio::test]
    async fn row_has_the_operation_kind_of_its_last_attempt() {
        let ledger = MemoryLedger::new(LedgerContents::default(), || Timestamp::UNIX_EPOCH);
        let new = new_run(OperationKind::Sms, 2, Row::new(3));
        let run = ledger.create_run(&new, None).await.unwrap().expect("a run");
        ledger.open_run(run.key, None, None).await.unwrap();
        let lock = ledger.acquire_campaign_lock("sale", "main").await.unwrap().unwrap();
        let lease = ledger.claim_run(&lock, run.key).await.unwrap().lease;
        let sent = |row| SentRow {
            row: Row::new(row),
            to: Phone::new(380_501_234_567).unwrap().into(),
            digest: [0; 8],
            chain: Chain::UNKNOWN,
        };
        let kinds = [(2, OperationKind::ViberSms), (3, OperationKind::Viber), (2, OperationKind::Sms)];
        for (row, kind) in kinds {
            let account = Allowance::new("main", None);
            ledger
                .begin_envelope(Intent {
                    lease,
                    kind,
                    account,
                    rows: vec![sent(row)],
                    costs: Vec::new(),
                    bounds: None,
                    leave_by: None,
                })
                .await
                .unwrap();
        }
        let mut records = RowRecords::open(&ledger, &run, true).await.unwrap();
        for (row, kind) in [(2, OperationKind::Sms), (3, OperationKind::Viber)] {
            assert_eq!(records.take_record(Row::new(row)).await.unwrap().map(|record| record.kind), Some(kind));
        }
    }
}
