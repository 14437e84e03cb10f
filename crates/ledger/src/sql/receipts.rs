//! Delivery receipts, packed in chunks of rows so that a receipt takes about twenty bytes; and the check values of
//! webhook secrets.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use sqlx::{QueryBuilder, Row as _};

use super::counted_messages::{self, AcceptedRows};
use super::dialect::{Adapter, Connection, Database, Record, json_elements};
use super::writer::ChangeWork;
use super::{Now, StatementError, query, read_ledger, scalar};
use super::{runs, suppression};
use crate::encoding::Checksum;
use crate::encoding::{downgrade_opt_out, downgrade_receipt};
use crate::encoding::{pack_list, unpack_list};
use crate::receipts::add_receipt;
use crate::rules::erase_texts_from_receipt;
use crate::{LedgerError, LedgerFuture, NewReceipt, ReceiptOutcome, ReceiptStore, RowReceipts, RunId, StoredReceipt};
use campaign_core::domain::{
    Channel, DeliveryState, GatewayMessageId, Media, Receipt, ReceiptSource, RecipientReply, ReportedChannel, Row,
    Status,
};

/// The number of rows per record: few, so that adding a receipt is cheap, and enough to share the overhead of a record.
const ROWS_PER_CHUNK: u32 = 32;
/// The number of records that one statement writes, because every statement is a round trip.
const CHUNKS_PER_STATEMENT: usize = 256;

impl ReceiptStore for Adapter {
    fn store_receipts(&self, mut receipts: Vec<NewReceipt>) -> LedgerFuture<'_, Vec<ReceiptOutcome>> {
        if !self.supports_chains() {
            receipts.iter_mut().for_each(downgrade_receipt);
        }
        if !self.supports_all_scopes() {
            receipts.iter_mut().filter_map(|new| new.opt_out.as_mut()).for_each(downgrade_opt_out);
        }
        let receipts = receipts.into();
        Box::pin(self.write_batched(|outcomes| ChangeWork::StoreReceipts(receipts, outcomes)))
    }

    fn remember_check_values<'a>(
        &'a self,
        address: &'a str,
        check_values: Option<Vec<String>>,
    ) -> LedgerFuture<'a, Vec<String>> {
        Box::pin(async move {
            let Some(check_values) = check_values else { return read_ledger!(self, load_check_values, address) };
            let (address, values) = (address.to_owned(), check_values.join(" "));
            self.write(move |connection, _| Box::pin(store_check_values(connection, address.clone(), values.clone())))
                .await?;
            Ok(check_values)
        })
    }

    fn load_figures(&self, run: RunId) -> LedgerFuture<'_, Option<Vec<u8>>> {
        Box::pin(runs::load_figures(self, run))
    }

    fn load_receipts(&self, run: RunId, rows: Range<u32>) -> LedgerFuture<'_, Vec<RowReceipts>> {
        Box::pin(async move { read_ledger!(self, load_receipts, run, rows.clone()) })
    }
}

/// The key of the chunk that contains a row. The keys of a run follow the order of its rows.
fn chunk_key(run: RunId, row: u32) -> i64 {
    (run.0 << 32) | i64::from(row / ROWS_PER_CHUNK)
}

/// Stores the receipts of several callers. Returns the outcomes by caller.
pub(super) async fn store_batch(
    connection: &mut Connection,
    now: Now,
    accepted: &mut AcceptedRows,
    batch: &[Arc<[NewReceipt]>],
) -> Result<Vec<Vec<ReceiptOutcome>>, StatementError> {
    let all = batch.iter().flat_map(|receipts| receipts.iter().cloned()).collect();
    let mut outcomes = store_receipts(connection, now, accepted, all).await?.into_iter();
    Ok(batch.iter().map(|receipts| outcomes.by_ref().take(receipts.len()).collect()).collect())
}

async fn store_receipts(
    connection: &mut Connection,
    Now(now): Now,
    accepted: &mut AcceptedRows,
    receipts: Vec<NewReceipt>,
) -> Result<Vec<ReceiptOutcome>, StatementError> {
    let at = Timestamp::from_millisecond(now.div_euclid(1_000)).map_err(unreadable_time)?;
    let mut outcomes = vec![ReceiptOutcome::Known; receipts.len()];
    let mut chunks: BTreeMap<i64, Vec<(usize, NewReceipt)>> = BTreeMap::new();
    let forgotten = find_forgotten_rows(connection, &receipts).await?;
    let purged = find_purged_runs(connection, &receipts).await?;
    let (mut opted_out, mut opted_in) = (Vec::new(), Vec::new());
    for (index, mut new) in receipts.into_iter().enumerate() {
        // Opt-outs and opt-ins count even if their receipts are not stored.
        if purged.contains(&new.run) {
            opted_out.extend(new.opt_out.take());
            opted_in.extend(new.opt_in.take());
            continue;
        }
        if forgotten.contains(&(new.run, new.row)) {
            erase_texts_from_receipt(&mut new.receipt);
        }
        chunks.entry(chunk_key(new.run, new.row.get())).or_default().push((index, new));
    }
    let mut added_by_run: BTreeMap<RunId, i64> = BTreeMap::new();
    let mut proofs = BTreeMap::<RunId, BTreeSet<(Row, Option<u32>)>>::new();
    let mut changed = Vec::new();
    let loaded = ReceiptChunk::load_chunks(&mut *connection, chunks.keys().copied()).await?;
    for (mut chunk, (_, new_receipts)) in loaded.into_iter().zip(chunks) {
        let added_before = chunk.added;
        for (index, mut new) in new_receipts {
            new.limit_wish_times(chunk.rows.get(&new.row).map_or(&[], Vec::as_slice));
            let NewReceipt { run, row, order, receipt, opt_out, opt_in } = new;
            opted_out.extend(opt_out);
            opted_in.extend(opt_in);
            let is_proof = chunk.might_prove_sending(row, order, &receipt);
            outcomes[index] = chunk.add_receipt(row, StoredReceipt { order, at, receipt });
            if outcomes[index] == ReceiptOutcome::Stored {
                *added_by_run.entry(run).or_default() += 1;
                if is_proof {
                    proofs.entry(run).or_default().insert((row, order));
                }
            }
        }
        changed.extend((chunk.added > added_before).then_some(chunk));
    }
    for chunks in changed.chunks(CHUNKS_PER_STATEMENT) {
        ReceiptChunk::write_chunks(&mut *connection, chunks).await?;
    }
    for (run, messages) in proofs {
        counted_messages::reset_after_receipts(connection, accepted, run, &messages).await?;
    }
    if !opted_out.is_empty() {
        let opted_out = suppression::drop_ended_opt_outs(connection, opted_out).await?;
        suppression::insert_opt_outs(connection, &opted_out).await?;
    }
    if !opted_in.is_empty() {
        suppression::end_opt_outs(connection, opted_in).await?;
    }
    for (run, added) in added_by_run {
        query("UPDATE runs SET receipts = receipts + $1 WHERE key = $2")
            .bind(added)
            .bind(run.0)
            .execute(&mut *connection)
            .await?;
    }
    Ok(outcomes)
}

/// Finds rows of forgotten recipients, whose receipts are stored without personal data.
async fn find_forgotten_rows(
    connection: &mut Connection,
    receipts: &[NewReceipt],
) -> Result<HashSet<(RunId, Row)>, StatementError> {
    let messages: Vec<_> = receipts.iter().map(|new| (new.run.0, new.row.get())).collect();
    let rows = query(
        concat!(
            "SELECT forgotten_rows.run, forgotten_rows.row FROM ", json_elements!("$1"), " CROSS JOIN forgotten_rows
             WHERE forgotten_rows.run = CAST(value ->> 0 AS BIGINT) AND forgotten_rows.row = CAST(value ->> 1 AS BIGINT)",
        ),
    )
    .bind(serde_json::to_string(&messages).unwrap_or_default())
    .fetch_all(connection)
    .await?;
    rows.iter().map(|record| Ok((RunId(record.try_get(0)?), super::read_row_number(record, 1)?))).collect()
}

/// Finds purged runs, whose receipts are not stored.
async fn find_purged_runs(
    connection: &mut Connection,
    receipts: &[NewReceipt],
) -> Result<HashSet<RunId>, StatementError> {
    let runs: BTreeSet<i64> = receipts.iter().map(|new| new.run.0).collect();
    let purged: Vec<i64> = scalar(concat!(
        "SELECT runs.key FROM ",
        json_elements!("$1"),
        " CROSS JOIN runs
             WHERE runs.key = CAST(value AS BIGINT) AND purged_at IS NOT NULL",
    ))
    .bind(serde_json::to_string(&runs).unwrap_or_default())
    .fetch_all(connection)
    .await?;
    Ok(purged.into_iter().map(RunId).collect())
}

/// Deletes the receipts of a run.
pub(super) async fn delete_receipts(connection: &mut Connection, run: RunId) -> Result<(), StatementError> {
    query("DELETE FROM receipts WHERE key BETWEEN $1 AND $2")
        .bind(chunk_key(run, 0))
        .bind(chunk_key(run, u32::MAX))
        .execute(connection)
        .await?;
    Ok(())
}

/// Removes replies and other personal data from the receipts of these rows.
pub(super) async fn redact_receipts(
    connection: &mut Connection,
    run: RunId,
    rows: &RoaringBitmap,
) -> Result<(), StatementError> {
    let keys: BTreeSet<i64> = rows.iter().map(|row| chunk_key(run, row)).collect();
    let mut chunks = ReceiptChunk::load_chunks(connection, keys.into_iter()).await?;
    chunks.retain(|chunk| !chunk.rows.is_empty());
    for chunk in &mut chunks {
        let selected = chunk.rows.iter_mut().filter(|(row, _)| rows.contains(row.get()));
        selected.flat_map(|(_, stored)| stored).for_each(|stored| erase_texts_from_receipt(&mut stored.receipt));
    }
    for batch in chunks.chunks(CHUNKS_PER_STATEMENT) {
        ReceiptChunk::write_chunks(connection, batch).await?;
    }
    Ok(())
}

pub(super) async fn load_receipts(
    reader: &mut Connection,
    run: RunId,
    rows: Range<u32>,
) -> Result<Vec<RowReceipts>, StatementError> {
    let Some(last) = rows.end.checked_sub(1).filter(|last| *last >= rows.start) else { return Ok(Vec::new()) };
    let mut records = query("SELECT key, receipts, sum FROM receipts WHERE key BETWEEN $1 AND $2 ORDER BY key")
        .bind(chunk_key(run, rows.start))
        .bind(chunk_key(run, last))
        .fetch(reader);
    let mut row_receipts = Vec::new();
    while let Some(record) = records.try_next().await? {
        let chunk = ReceiptChunk::unpack(record.try_get(0)?, record.try_get(1)?, record.try_get(2)?)?;
        row_receipts.extend(chunk.rows.into_iter().filter(|(row, _)| rows.contains(&row.get())));
    }
    Ok(row_receipts)
}

/// The receipts of these rows of a run.
pub(super) async fn load_receipts_of_rows(
    reader: &mut Connection,
    run: RunId,
    rows: &RoaringBitmap,
) -> Result<Vec<RowReceipts>, StatementError> {
    let keys: BTreeSet<i64> = rows.iter().map(|row| chunk_key(run, row)).collect();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let chunks = ReceiptChunk::load_chunks(reader, keys.into_iter()).await?;
    Ok(chunks.into_iter().flat_map(|chunk| chunk.rows).filter(|(row, _)| rows.contains(row.get())).collect())
}

/// Streams all receipts of a run in row order, one chunk at a time.
pub(super) fn stream_receipts<'r>(
    reader: &'r mut Connection,
    run: RunId,
) -> BoxStream<'r, Result<Vec<RowReceipts>, StatementError>> {
    let records = query("SELECT key, receipts, sum FROM receipts WHERE key BETWEEN $1 AND $2 ORDER BY key")
        .bind(chunk_key(run, 0))
        .bind(chunk_key(run, u32::MAX))
        .fetch(reader);
    let unpack = |record: sqlx::Result<Record>| {
        let record = record?;
        let chunk = ReceiptChunk::unpack(record.try_get(0)?, record.try_get(1)?, record.try_get(2)?)?;
        Ok(chunk.rows.into_iter().collect())
    };
    records.map(unpack).boxed()
}

/// The receipts of consecutive rows.
struct ReceiptChunk {
    key: i64,
    rows: BTreeMap<Row, Vec<StoredReceipt>>,
    /// The number of receipts added since the chunk was loaded.
    added: usize,
}

impl ReceiptChunk {
    fn new_empty(key: i64) -> Self {
        Self { key, rows: BTreeMap::new(), added: 0 }
    }

    /// Loads the chunks with these ascending keys; chunks without receipts are empty.
    async fn load_chunks(
        connection: &mut Connection,
        keys: impl Iterator<Item = i64>,
    ) -> Result<Vec<Self>, StatementError> {
        let mut chunks: BTreeMap<i64, Self> = keys.map(|key| (key, Self::new_empty(key))).collect();
        let chunk_keys = serde_json::to_string(&chunks.keys().collect::<Vec<_>>()).unwrap_or_default();
        let mut records = query(concat!(
            "SELECT receipts.* FROM ",
            json_elements!("$1"),
            " CROSS JOIN receipts WHERE receipts.key = CAST(value AS BIGINT)",
        ))
        .bind(chunk_keys)
        .fetch(connection);
        while let Some(record) = records.try_next().await? {
            let key = record.try_get("key")?;
            chunks.insert(key, Self::unpack(key, record.try_get("receipts")?, record.try_get("sum")?)?);
        }
        Ok(chunks.into_values().collect())
    }

    fn add_receipt(&mut self, row: Row, receipt: StoredReceipt) -> ReceiptOutcome {
        let outcome = add_receipt(self.rows.entry(row).or_default(), receipt);
        self.added += usize::from(outcome == ReceiptOutcome::Stored);
        outcome
    }

    /// Whether this receipt might be the first proof that a message was sent: it is not a rejection, and no
    /// earlier receipt for the same identifier reports a delivery.
    fn might_prove_sending(&self, row: Row, order: Option<u32>, receipt: &Receipt) -> bool {
        let is_delivery = |known: &StoredReceipt| {
            let state = known.receipt.status.delivery_state();
            known.order == order && matches!(state, DeliveryState::Delivered | DeliveryState::Read)
        };
        receipt.status != Status::Rejected && !self.rows.get(&row).is_some_and(|known| known.iter().any(is_delivery))
    }

    /// The first row of the chunk with this key.
    fn first_row(key: i64) -> u32 {
        u32::try_from(key & i64::from(u32::MAX)).unwrap_or(u32::MAX).saturating_mul(ROWS_PER_CHUNK)
    }

    fn unpack(key: i64, packed: &[u8], sum: i64) -> Result<Self, StatementError> {
        let first = Self::first_row(key);
        if !chunk_checksum(key, packed).matches(Some(sum)) {
            return Err(LedgerError::Damaged { what: format!("the receipts for rows starting at {first}") }.into());
        }
        let mut rows: BTreeMap<Row, Vec<StoredReceipt>> = BTreeMap::new();
        for record in unpack_list::<PackedReceipt>(packed)? {
            let row = Row::new(first.saturating_add(u32::from(record.row)));
            rows.entry(row).or_default().push(record.into_receipt()?);
        }
        Ok(Self { rows, ..Self::new_empty(key) })
    }

    fn pack(&self) -> Result<Vec<u8>, StatementError> {
        let first = Self::first_row(self.key);
        let pack = |(row, stored): (&Row, &StoredReceipt)| {
            PackedReceipt::from_receipt(row.get().saturating_sub(first), stored)
        };
        let rows = self.rows.iter().flat_map(|(row, stored)| stored.iter().map(move |stored| (row, stored)));
        Ok(pack_list(&rows.map(pack).collect::<Vec<_>>())?)
    }

    async fn write_chunks(connection: &mut Connection, chunks: &[Self]) -> Result<(), StatementError> {
        let packed: Vec<(i64, Vec<u8>)> =
            chunks.iter().map(|chunk| Ok((chunk.key, chunk.pack()?))).collect::<Result<_, StatementError>>()?;
        let mut query = QueryBuilder::<Database>::new("INSERT INTO receipts (key, receipts, sum) ");
        query.push_values(packed, |mut record, (key, packed)| {
            let sum = chunk_checksum(key, &packed).finish();
            record.push_bind(key).push_bind(packed).push_bind(sum);
        });
        query.push(" ON CONFLICT (key) DO UPDATE SET receipts = excluded.receipts, sum = excluded.sum");
        // The number of values varies, so caching the statement is useless.
        query.build().persistent(false).execute(connection).await?;
        Ok(())
    }
}

fn chunk_checksum(key: i64, packed: &[u8]) -> Checksum {
    Checksum::for_table("receipts").with_number(key).with_bytes(packed)
}

/// The stored form of a receipt: common fields, and a list of rare fields.
///
/// Lists of receipts are stored without the lengths of their items, so the fields must never change. A new field is a
/// variant at the end of [`ReceiptDetail`], whose variants are stored by position.
#[derive(Serialize, Deserialize)]
struct PackedReceipt {
    /// The row, relative to the first row of its chunk.
    row: u8,
    /// The retry order, or 0.
    order: u32,
    status: Status,
    channel: Option<Channel>,
    /// Milliseconds since 1970.
    at: u64,
    /// Milliseconds from the change in status to the arrival of the receipt.
    took: Option<i64>,
    msg_id: Option<GatewayMessageId>,
    details: Vec<ReceiptDetail>,
}

/// Rare fields of receipts.
#[derive(Serialize, Deserialize)]
enum ReceiptDetail {
    Asked,
    RequestId(String),
    Error(String),
    Digit(String),
    Duration(u64),
    Reply {
        at: Option<i64>,
        text: String,
    },
    ReplyWithMedia {
        at: Option<i64>,
        text: String,
        url: String,
        filename: Option<String>,
        filesize: Option<u64>,
    },
    AskedLast,
    /// A channel name that was unknown when it was stored.
    Channel(String),
}

impl PackedReceipt {
    fn from_receipt(row: u32, stored: &StoredReceipt) -> Self {
        let StoredReceipt { order, at, receipt } = stored;
        let Receipt { source, status, channel, updated, msg_id, request_id, error, digit, duration, replies } = receipt;
        let mut details = Vec::new();
        details.extend(match source {
            ReceiptSource::Webhook => None,
            ReceiptSource::Asked => Some(ReceiptDetail::Asked),
            ReceiptSource::AskedLast => Some(ReceiptDetail::AskedLast),
        });
        let known = channel.as_ref().and_then(ReportedChannel::as_known);
        let other = channel.as_ref().filter(|_| known.is_none());
        details.extend(other.map(|channel| ReceiptDetail::Channel(channel.as_str().to_owned())));
        details.extend(request_id.clone().map(ReceiptDetail::RequestId));
        details.extend(error.clone().map(ReceiptDetail::Error));
        details.extend(digit.clone().map(ReceiptDetail::Digit));
        details.extend(duration.map(ReceiptDetail::Duration));
        details.extend(replies.iter().cloned().map(ReceiptDetail::from_reply));
        let took = |updated: &Timestamp| at.as_millisecond() - updated.as_millisecond();
        Self {
            row: u8::try_from(row).unwrap_or(u8::MAX),
            order: order.unwrap_or(0),
            status: status.clone(),
            channel: known,
            at: u64::try_from(at.as_millisecond()).unwrap_or(0),
            took: updated.as_ref().map(took),
            msg_id: msg_id.clone(),
            details,
        }
    }

    fn into_receipt(self) -> Result<StoredReceipt, StatementError> {
        let at = i64::try_from(self.at).unwrap_or(i64::MAX);
        let updated = self.took.map(|took| time_from_millis(at.saturating_sub(took))).transpose()?;
        let mut receipt = Receipt {
            channel: self.channel.map(ReportedChannel::Known),
            updated,
            msg_id: self.msg_id,
            ..Receipt::new(ReceiptSource::Webhook, self.status)
        };
        for detail in self.details {
            match detail {
                ReceiptDetail::Asked => receipt.source = ReceiptSource::Asked,
                ReceiptDetail::AskedLast => receipt.source = ReceiptSource::AskedLast,
                ReceiptDetail::Channel(word) => receipt.channel = ReportedChannel::parse(&word),
                ReceiptDetail::RequestId(id) => receipt.request_id = Some(id),
                ReceiptDetail::Error(error) => receipt.error = Some(error),
                ReceiptDetail::Digit(digit) => receipt.digit = Some(digit),
                ReceiptDetail::Duration(seconds) => receipt.duration = Some(seconds),
                ReceiptDetail::Reply { at, text } => {
                    let at = at.map(time_from_millis).transpose()?;
                    receipt.replies.push(RecipientReply { at, text, media: None });
                }
                ReceiptDetail::ReplyWithMedia { at, text, url, filename, filesize } => {
                    let (at, media) = (at.map(time_from_millis).transpose()?, Media { url, filename, filesize });
                    receipt.replies.push(RecipientReply { at, text, media: Some(media) });
                }
            }
        }
        Ok(StoredReceipt { order: (self.order > 0).then_some(self.order), at: time_from_millis(at)?, receipt })
    }
}

impl ReceiptDetail {
    fn from_reply(RecipientReply { at, text, media }: RecipientReply) -> Self {
        let at = at.map(Timestamp::as_millisecond);
        match media {
            None => ReceiptDetail::Reply { at, text },
            Some(Media { url, filename, filesize }) => {
                ReceiptDetail::ReplyWithMedia { at, text, url, filename, filesize }
            }
        }
    }
}

fn time_from_millis(at: i64) -> Result<Timestamp, StatementError> {
    Timestamp::from_millisecond(at).map_err(unreadable_time)
}

fn unreadable_time(error: jiff::Error) -> StatementError {
    LedgerError::Unreadable(error.to_string()).into()
}

/// Stores the check values of the secrets of a webhook address.
pub(super) async fn store_check_values(
    connection: &mut Connection,
    address: String,
    values: String,
) -> Result<(), StatementError> {
    query(
        "INSERT INTO hooks (address, check_values) VALUES ($1, $2)
         ON CONFLICT (address) DO UPDATE SET check_values = excluded.check_values",
    )
    .bind(address)
    .bind(values)
    .execute(connection)
    .await?;
    Ok(())
}

/// Loads the check values of the secrets of a webhook address.
pub(super) async fn load_check_values(reader: &mut Connection, address: &str) -> Result<Vec<String>, StatementError> {
    let stored: Option<String> =
        scalar("SELECT check_values FROM hooks WHERE address = $1").bind(address).fetch_optional(reader).await?;
    Ok(stored.iter().flat_map(|values| values.split(' ')).map(str::to_owned).collect())
}
