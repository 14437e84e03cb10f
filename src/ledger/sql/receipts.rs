//! Receipts: of each stretch of rows those that came, packed, so that a receipt costs some twenty bytes.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use sqlx::{QueryBuilder, Row as _};

use super::change::{Failure, Now};
use super::dialect::{Adapter, Connection, Database, Record, given};
use super::look::look;
use super::statement::{self, query, scalar};
use super::{envelopes, figures, hooks, runs, suppression};
use crate::domain::{
    Addressee, Channel, Media, MsgId, Receipt, ReceiptSource, RecipientReply, ReportedChannel, Row, Status,
};
use crate::ledger::checksum::Checksum;
use crate::ledger::earlier_words::rewrite_receipt;
use crate::ledger::pack::{pack, unpack};
use crate::ledger::receipts::keep;
use crate::ledger::rules::forget_in_receipt;
use crate::ledger::{
    KeptReceipt, LedgerError, LedgerFuture, NewReceipt, Receipts, Reception, RowReceipts, RunId, StateCounts,
};

/// Rows whose receipts stand in one record: few, so that one more costs little, and enough to share its head.
const STRETCH: u32 = 32;
/// Records that one statement writes: each statement is a way to the thread of the connection and back.
const WRITTEN_AT_ONCE: usize = 256;

impl Receipts for Adapter {
    fn receive(&self, mut receipts: Vec<NewReceipt>) -> LedgerFuture<'_, Vec<Reception>> {
        if !self.keeps_chains() {
            receipts.iter_mut().for_each(rewrite_receipt);
        }
        Box::pin(self.write(move |connection, now| Box::pin(receive(connection, now, receipts.clone()))))
    }

    fn keep_hook_secrets<'a>(&'a self, address: &'a str, check_values: Vec<String>) -> LedgerFuture<'a, ()> {
        let (address, values) = (address.to_owned(), check_values.join(" "));
        Box::pin(self.write(move |connection, _| Box::pin(hooks::keep(connection, address.clone(), values.clone()))))
    }

    fn hook_secrets<'a>(&'a self, address: &'a str) -> LedgerFuture<'a, Vec<String>> {
        Box::pin(async move { look!(self, hooks::secrets, address) })
    }

    fn counted(&self, run: RunId, counts: StateCounts, parts: u64, receipts: u64) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| {
            let counts = counts.clone();
            Box::pin(runs::change(connection, run, move |run| run.counted(counts, parts, receipts)))
        }))
    }

    fn keep_figures(&self, run: RunId, kept: Vec<u8>) -> LedgerFuture<'_, ()> {
        Box::pin(figures::keep(self, run, kept))
    }

    fn figures(&self, run: RunId) -> LedgerFuture<'_, Option<Vec<u8>>> {
        Box::pin(figures::read(self, run))
    }

    fn sent_to(&self, run: RunId, row: Row) -> LedgerFuture<'_, Option<Addressee>> {
        Box::pin(async move { look!(self, envelopes::number, run, row) })
    }

    fn receipts(&self, run: RunId, rows: Range<u32>) -> LedgerFuture<'_, Vec<RowReceipts>> {
        Box::pin(async move { look!(self, read, run, rows.clone()) })
    }
}

/// The key of the record of a row's stretch: those of a run follow one another in the order of its rows.
fn key(run: RunId, row: u32) -> i64 {
    (run.0 << 32) | i64::from(row / STRETCH)
}

async fn receive(
    connection: &mut Connection,
    Now(now): Now,
    receipts: Vec<NewReceipt>,
) -> Result<Vec<Reception>, Failure> {
    let at = Timestamp::from_millisecond(now.div_euclid(1_000)).map_err(unreadable)?;
    let mut receptions = vec![Reception::Known; receipts.len()];
    let mut stretches: BTreeMap<i64, Vec<(usize, NewReceipt)>> = BTreeMap::new();
    let forgotten = forgotten_among(connection, &receipts).await?;
    let purged = purged_among(connection, &receipts).await?;
    let mut opted_out = Vec::new();
    for (index, mut new) in receipts.into_iter().enumerate() {
        // An opt-out is recorded even if its receipt is not stored.
        opted_out.extend(new.opt_out.take());
        if purged.contains(&new.run) {
            continue;
        }
        if forgotten.contains(&(new.run, new.row)) {
            forget_in_receipt(&mut new.receipt);
        }
        stretches.entry(key(new.run, new.row.get())).or_default().push((index, new));
    }
    let mut runs: BTreeMap<RunId, i64> = BTreeMap::new();
    let mut changed = Vec::new();
    let known = Stretch::read(&mut *connection, stretches.keys().copied()).await?;
    for (mut stretch, (_, new)) in known.into_iter().zip(stretches) {
        let before = stretch.kept;
        for (index, NewReceipt { run, row, order, receipt, opt_out: _ }) in new {
            receptions[index] = stretch.keep(row, KeptReceipt { order, at, receipt });
            if receptions[index] == Reception::Kept {
                *runs.entry(run).or_default() += 1;
            }
        }
        changed.extend((stretch.kept > before).then_some(stretch));
    }
    for stretches in changed.chunks(WRITTEN_AT_ONCE) {
        Stretch::write(&mut *connection, stretches).await?;
    }
    if !opted_out.is_empty() {
        suppression::add(connection, &opted_out).await?;
    }
    for (run, kept) in runs {
        query("UPDATE runs SET receipts = receipts + $1 WHERE key = $2")
            .bind(kept)
            .bind(run.0)
            .execute(&mut *connection)
            .await?;
    }
    Ok(receptions)
}

/// Of which of these messages the people are forgotten: what is told of them later is not kept either.
async fn forgotten_among(
    connection: &mut Connection,
    receipts: &[NewReceipt],
) -> Result<HashSet<(RunId, Row)>, Failure> {
    let told: Vec<_> = receipts.iter().map(|new| (new.run.0, new.row.get())).collect();
    let rows = query(
        concat!(
            "SELECT forgotten_rows.run, forgotten_rows.row FROM ", given!("$1"), " CROSS JOIN forgotten_rows
             WHERE forgotten_rows.run = CAST(value ->> 0 AS BIGINT) AND forgotten_rows.row = CAST(value ->> 1 AS BIGINT)",
        ),
    )
    .bind(serde_json::to_string(&told).unwrap_or_default())
    .fetch_all(connection)
    .await?;
    rows.iter().map(|found| Ok((RunId(found.try_get(0)?), statement::row(found, 1)?))).collect()
}

/// Which of their runs were purged: nothing is kept of those any more.
async fn purged_among(connection: &mut Connection, receipts: &[NewReceipt]) -> Result<HashSet<RunId>, Failure> {
    let runs: BTreeSet<i64> = receipts.iter().map(|new| new.run.0).collect();
    let purged: Vec<i64> = scalar(concat!(
        "SELECT runs.key FROM ",
        given!("$1"),
        " CROSS JOIN runs
             WHERE runs.key = CAST(value AS BIGINT) AND purged_at IS NOT NULL",
    ))
    .bind(serde_json::to_string(&runs).unwrap_or_default())
    .fetch_all(connection)
    .await?;
    Ok(purged.into_iter().map(RunId).collect())
}

/// Removes the receipts of a run.
pub(super) async fn purge(connection: &mut Connection, run: RunId) -> Result<(), Failure> {
    query("DELETE FROM receipts WHERE key BETWEEN $1 AND $2")
        .bind(key(run, 0))
        .bind(key(run, u32::MAX))
        .execute(connection)
        .await?;
    Ok(())
}

/// Takes what people said out of the receipts of these rows.
pub(super) async fn forget(connection: &mut Connection, run: RunId, rows: &RoaringBitmap) -> Result<(), Failure> {
    let keys: BTreeSet<i64> = rows.iter().map(|row| key(run, row)).collect();
    let mut stretches = Stretch::read(connection, keys.into_iter()).await?;
    stretches.retain(|stretch| !stretch.rows.is_empty());
    for stretch in &mut stretches {
        let told = stretch.rows.iter_mut().filter(|(row, _)| rows.contains(row.get()));
        told.flat_map(|(_, kept)| kept).for_each(|kept| forget_in_receipt(&mut kept.receipt));
    }
    for some in stretches.chunks(WRITTEN_AT_ONCE) {
        Stretch::write(connection, some).await?;
    }
    Ok(())
}

pub(super) async fn read(reader: &mut Connection, run: RunId, rows: Range<u32>) -> Result<Vec<RowReceipts>, Failure> {
    let Some(last) = rows.end.checked_sub(1).filter(|last| *last >= rows.start) else { return Ok(Vec::new()) };
    let mut records = query("SELECT key, receipts, sum FROM receipts WHERE key BETWEEN $1 AND $2 ORDER BY key")
        .bind(key(run, rows.start))
        .bind(key(run, last))
        .fetch(reader);
    let mut told = Vec::new();
    while let Some(record) = records.try_next().await? {
        let stretch = Stretch::unpack(record.try_get(0)?, record.try_get(1)?, record.try_get(2)?)?;
        told.extend(stretch.rows.into_iter().filter(|(row, _)| rows.contains(&row.get())));
    }
    Ok(told)
}

/// All receipts of a run, by row, a stretch of rows at a time.
pub(super) fn stretches<'r>(
    reader: &'r mut Connection,
    run: RunId,
) -> BoxStream<'r, Result<Vec<RowReceipts>, Failure>> {
    let records = query("SELECT key, receipts, sum FROM receipts WHERE key BETWEEN $1 AND $2 ORDER BY key")
        .bind(key(run, 0))
        .bind(key(run, u32::MAX))
        .fetch(reader);
    let unpack = |record: sqlx::Result<Record>| {
        let record = record?;
        let stretch = Stretch::unpack(record.try_get(0)?, record.try_get(1)?, record.try_get(2)?)?;
        Ok(stretch.rows.into_iter().collect())
    };
    records.map(unpack).boxed()
}

/// The receipts of some rows that follow one another.
struct Stretch {
    key: i64,
    rows: BTreeMap<Row, Vec<KeptReceipt>>,
    /// How many were added since it was read.
    kept: usize,
}

impl Stretch {
    fn empty(key: i64) -> Self {
        Self { key, rows: BTreeMap::new(), kept: 0 }
    }

    /// The stretches with these keys, which ascend; empty ones where no receipt came yet.
    async fn read(connection: &mut Connection, keys: impl Iterator<Item = i64>) -> Result<Vec<Self>, Failure> {
        let mut stretches: BTreeMap<i64, Self> = keys.map(|key| (key, Self::empty(key))).collect();
        let wanted = serde_json::to_string(&stretches.keys().collect::<Vec<_>>()).unwrap_or_default();
        let mut records = query(concat!(
            "SELECT receipts.* FROM ",
            given!("$1"),
            " CROSS JOIN receipts WHERE receipts.key = CAST(value AS BIGINT)",
        ))
        .bind(wanted)
        .fetch(connection);
        while let Some(record) = records.try_next().await? {
            let key = record.try_get("key")?;
            stretches.insert(key, Self::unpack(key, record.try_get("receipts")?, record.try_get("sum")?)?);
        }
        Ok(stretches.into_values().collect())
    }

    fn keep(&mut self, row: Row, receipt: KeptReceipt) -> Reception {
        let reception = keep(self.rows.entry(row).or_default(), receipt);
        self.kept += usize::from(reception == Reception::Kept);
        reception
    }

    fn first(key: i64) -> u32 {
        u32::try_from(key & i64::from(u32::MAX)).unwrap_or(u32::MAX).saturating_mul(STRETCH)
    }

    fn unpack(key: i64, packed: &[u8], sum: i64) -> Result<Self, Failure> {
        let first = Self::first(key);
        if !sum_of(key, packed).agrees(Some(sum)) {
            return Err(LedgerError::Damaged { what: format!("the receipts for rows starting at {first}") }.into());
        }
        let mut rows: BTreeMap<Row, Vec<KeptReceipt>> = BTreeMap::new();
        for record in unpack::<Packed>(packed)? {
            let row = Row::new(first.saturating_add(u32::from(record.row)));
            rows.entry(row).or_default().push(record.receipt()?);
        }
        Ok(Self { rows, ..Self::empty(key) })
    }

    fn pack(&self) -> Result<Vec<u8>, Failure> {
        let first = Self::first(self.key);
        let packed = |(row, kept): (&Row, &KeptReceipt)| Packed::new(row.get().saturating_sub(first), kept);
        let rows = self.rows.iter().flat_map(|(row, kept)| kept.iter().map(move |kept| (row, kept)));
        Ok(pack(&rows.map(packed).collect::<Vec<_>>())?)
    }

    async fn write(connection: &mut Connection, stretches: &[Self]) -> Result<(), Failure> {
        let packed: Vec<(i64, Vec<u8>)> =
            stretches.iter().map(|stretch| Ok((stretch.key, stretch.pack()?))).collect::<Result<_, Failure>>()?;
        let mut query = QueryBuilder::<Database>::new("INSERT INTO receipts (key, receipts, sum) ");
        query.push_values(packed, |mut record, (key, packed)| {
            let sum = sum_of(key, &packed).finish();
            record.push_bind(key).push_bind(packed).push_bind(sum);
        });
        query.push(" ON CONFLICT (key) DO UPDATE SET receipts = excluded.receipts, sum = excluded.sum");
        // Hardly two are of the same length, so none is worth being remembered.
        query.build().persistent(false).execute(connection).await?;
        Ok(())
    }
}

fn sum_of(key: i64, packed: &[u8]) -> Checksum {
    Checksum::of("receipts").number(key).bytes(packed)
}

/// A receipt as it is stored: what nearly every one has, and a list of the rest.
///
/// Stored by position: only append. The same holds for the variants of [`Detail`].
#[derive(Serialize, Deserialize)]
struct Packed {
    /// The row, counted from the first of its stretch.
    row: u8,
    /// The order, and 0 for none.
    order: u32,
    status: Status,
    channel: Option<Channel>,
    /// Milliseconds since 1970.
    at: u64,
    /// Milliseconds from the change of the status until it was told here.
    took: Option<i64>,
    msg_id: Option<MsgId>,
    details: Vec<Detail>,
}

/// What few receipts have.
#[derive(Serialize, Deserialize)]
enum Detail {
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
    /// A word for the channel that was not known when it was stored.
    Channel(String),
}

impl Packed {
    fn new(row: u32, kept: &KeptReceipt) -> Self {
        let KeptReceipt { order, at, receipt } = kept;
        let Receipt { source, status, channel, updated, msg_id, request_id, error, digit, duration, replies } = receipt;
        let mut details = Vec::new();
        details.extend(match source {
            ReceiptSource::Webhook => None,
            ReceiptSource::Asked => Some(Detail::Asked),
            ReceiptSource::AskedLast => Some(Detail::AskedLast),
        });
        let known = channel.as_ref().and_then(ReportedChannel::known);
        let other = channel.as_ref().filter(|_| known.is_none());
        details.extend(other.map(|channel| Detail::Channel(channel.word().to_owned())));
        details.extend(request_id.clone().map(Detail::RequestId));
        details.extend(error.clone().map(Detail::Error));
        details.extend(digit.clone().map(Detail::Digit));
        details.extend(duration.map(Detail::Duration));
        details.extend(replies.iter().cloned().map(Detail::of));
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

    fn receipt(self) -> Result<KeptReceipt, Failure> {
        let at = i64::try_from(self.at).unwrap_or(i64::MAX);
        let updated = self.took.map(|took| millisecond(at.saturating_sub(took))).transpose()?;
        let mut receipt = Receipt {
            channel: self.channel.map(ReportedChannel::Known),
            updated,
            msg_id: self.msg_id,
            ..Receipt::new(ReceiptSource::Webhook, self.status)
        };
        for detail in self.details {
            match detail {
                Detail::Asked => receipt.source = ReceiptSource::Asked,
                Detail::AskedLast => receipt.source = ReceiptSource::AskedLast,
                Detail::Channel(word) => receipt.channel = ReportedChannel::from_word(&word),
                Detail::RequestId(id) => receipt.request_id = Some(id),
                Detail::Error(error) => receipt.error = Some(error),
                Detail::Digit(digit) => receipt.digit = Some(digit),
                Detail::Duration(seconds) => receipt.duration = Some(seconds),
                Detail::Reply { at, text } => {
                    let at = at.map(millisecond).transpose()?;
                    receipt.replies.push(RecipientReply { at, text, media: None });
                }
                Detail::ReplyWithMedia { at, text, url, filename, filesize } => {
                    let (at, media) = (at.map(millisecond).transpose()?, Media { url, filename, filesize });
                    receipt.replies.push(RecipientReply { at, text, media: Some(media) });
                }
            }
        }
        Ok(KeptReceipt { order: (self.order > 0).then_some(self.order), at: millisecond(at)?, receipt })
    }
}

impl Detail {
    fn of(RecipientReply { at, text, media }: RecipientReply) -> Self {
        let at = at.map(Timestamp::as_millisecond);
        match media {
            None => Detail::Reply { at, text },
            Some(Media { url, filename, filesize }) => Detail::ReplyWithMedia { at, text, url, filename, filesize },
        }
    }
}

fn millisecond(at: i64) -> Result<Timestamp, Failure> {
    Timestamp::from_millisecond(at).map_err(unreadable)
}

fn unreadable(error: jiff::Error) -> Failure {
    LedgerError::Unreadable(error.to_string()).into()
}
