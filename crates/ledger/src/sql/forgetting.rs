//! Forgetting recipients and purging runs in the tables.

use futures_util::TryStreamExt as _;
use roaring::{RoaringBitmap, RoaringTreemap};
use sqlx::Row as _;

use super::dialect::{Adapter, Connection};
use super::envelope_records::{EnvelopeHeader, PackedOutcomes, read_row_span};
use super::envelopes::{SELECT_ENVELOPES_WITHIN, envelope_from_row};
use super::runs::{self, timestamp_from_micros};
use super::{Now, StatementError, query, read_ledger, read_u32, scalar};
use super::{blocks, consents, contacts, events, guards, limits, notifications, receipts, suppression};
use crate::encoding::Checksum;
use crate::encoding::{pack_list, unpack_list};
use crate::rules::NumberErasure;
use crate::{
    ExcludedRows, ForgetOrder, Forgetting, LedgerError, LedgerFuture, NumberKey, NumberSet, OPTED_OUT, Ownership,
    PurgeOrder, RowState, Run, RunId,
};
use campaign_core::domain::{Addressee, Phone, Row};
use campaign_core::failpoint;

impl Forgetting for Adapter {
    fn forget_number(&self, order: ForgetOrder) -> LedgerFuture<'_, ()> {
        let with_consents = self.supports_consents();
        Box::pin(
            self.write(move |connection, now| {
                Box::pin(forget_recipient(connection, now, order.clone(), with_consents))
            }),
        )
    }

    fn list_rows_to_forget(&self) -> LedgerFuture<'_, Vec<(RunId, RoaringBitmap)>> {
        Box::pin(async move { read_ledger!(self, list_rows_to_erase) })
    }

    fn purge_run(&self, order: PurgeOrder) -> LedgerFuture<'_, Ownership> {
        let with_consents = self.supports_consents();
        Box::pin(self.write(move |connection, now| {
            let order = order.clone();
            Box::pin(async move {
                let run = order.counted.key;
                let purged = purge_run(&mut *connection, now, order).await?;
                if with_consents && purged == Ownership::Held {
                    consents::delete_consents(connection, run).await?;
                }
                Ok(purged)
            })
        }))
    }

    fn overwrite_remains<'a>(&'a self, purged: &'a [Run]) -> LedgerFuture<'a, ()> {
        Box::pin(async move {
            for run in purged {
                self.remove_copies(run).await?;
                failpoint::pass("purge.discarded");
            }
            self.overwrite_deleted_data().await
        })
    }
}

/// The key for hashing forgotten numbers; `None` if no number was ever forgotten.
pub(super) async fn load_number_key(reader: &mut Connection) -> Result<Option<NumberKey>, StatementError> {
    let key: Option<Vec<u8>> = scalar("SELECT key FROM forgetting").fetch_optional(reader).await?;
    let to_key = |bytes: Vec<u8>| bytes.try_into().map(NumberKey::new);
    let damaged = |_| LedgerError::Damaged { what: "the key for forgotten numbers".to_owned() };
    Ok(key.map(to_key).transpose().map_err(damaged)?)
}

/// Erases a number and the recipient's texts. `with_consents` says whether the tables store evidence of consent.
async fn forget_recipient(
    connection: &mut Connection,
    now: Now,
    order: ForgetOrder,
    with_consents: bool,
) -> Result<(), StatementError> {
    let ForgetOrder { phone, rows, cancelled_in, opt_out } = order;
    let key = load_or_create_key(connection).await?;
    let forgotten = NumberErasure { phone, hash: key.hash_number(phone) };
    suppression::hash_opt_out_number(connection, forgotten, opt_out).await?;
    for (run, rows) in &rows {
        redact_envelopes(connection, *run, rows, forgotten).await?;
        receipts::redact_receipts(connection, *run, rows).await?;
        contacts::hash_contact_number(connection, *run, rows, forgotten).await?;
        events::redact_events(connection, *run, rows, forgotten).await?;
        if with_consents {
            consents::erase_evidence(connection, *run, rows).await?;
        }
        let excluded = events::load_excluded_rows(&mut *connection, *run).await?.rows();
        let mut skipped = ExcludedRows::default();
        (rows - excluded).iter().for_each(|row| skipped.insert(Row::new(row), RowState::Skipped, OPTED_OUT));
        events::insert_excluded_rows(connection, *run, &skipped).await?;
        for row in rows {
            query(
                "INSERT INTO forgotten_rows (run, row, waits) VALUES ($1, $2, TRUE)
                 ON CONFLICT (run, row) DO UPDATE SET waits = TRUE",
            )
            .bind(run.0)
            .bind(i64::from(row))
            .execute(&mut *connection)
            .await?;
        }
    }
    for run in cancelled_in {
        let mut members = load_members(&mut *connection, run).await?;
        members.push(forgotten.addressee().to_u64() | CANCELLED_BIT);
        write_members(connection, run, members).await?;
    }
    redact_stop_reasons(connection, forgotten).await?;
    notifications::redact_notifications(connection, forgotten).await?;
    tracing::debug!(at = now.0, "a number is forgotten");
    Ok(())
}

/// The key for hashing forgotten numbers, created on first use.
async fn load_or_create_key(connection: &mut Connection) -> Result<NumberKey, StatementError> {
    if let Some(known) = load_number_key(&mut *connection).await? {
        return Ok(known);
    }
    let bytes: [u8; NumberKey::LENGTH] = rand::random();
    query("INSERT INTO forgetting (key, swept) VALUES ($1, FALSE)").bind(bytes.as_slice()).execute(connection).await?;
    Ok(NumberKey::new(bytes))
}

/// Removes a number from the stop reasons of all runs.
async fn redact_stop_reasons(connection: &mut Connection, forgotten: NumberErasure) -> Result<(), StatementError> {
    let changed: Vec<(i64, String)> = query("SELECT key, stopped FROM runs WHERE stopped IS NOT NULL")
        .fetch(&mut *connection)
        .map_err(StatementError::from)
        .try_filter_map(async |row| {
            let text: &str = row.try_get(1)?;
            let erased = forgotten.erase_from_text(text);
            Ok(if erased == text { None } else { Some((row.try_get(0)?, erased)) })
        })
        .try_collect()
        .await?;
    for (key, text) in changed {
        query("UPDATE runs SET stopped = $1 WHERE key = $2").bind(text).bind(key).execute(&mut *connection).await?;
    }
    Ok(())
}

/// The rows that must still be removed from copies and results.
async fn list_rows_to_erase(reader: &mut Connection) -> Result<Vec<(RunId, RoaringBitmap)>, StatementError> {
    let records = query("SELECT run, row FROM forgotten_rows WHERE waits ORDER BY run, row").fetch_all(reader);
    let mut rows_by_run: Vec<(RunId, RoaringBitmap)> = Vec::new();
    for record in records.await? {
        let (run, row) = (record.try_get::<i64, _>(0)?, read_u32(&record, 1)?);
        match rows_by_run.last_mut().filter(|(last, _)| last.0 == run) {
            Some((_, rows)) => drop(rows.insert(row)),
            None => rows_by_run.push((RunId(run), RoaringBitmap::from([row]))),
        }
    }
    Ok(rows_by_run)
}

/// Removes a number from these rows of a run, from the outcomes of the rows, and from stored response bodies.
async fn redact_envelopes(
    connection: &mut Connection,
    run: RunId,
    rows: &RoaringBitmap,
    forgotten: NumberErasure,
) -> Result<(), StatementError> {
    let (Some(first), Some(last)) = (rows.min(), rows.max()) else { return Ok(()) };
    let within = query(SELECT_ENVELOPES_WITHIN)
        .bind(run.0)
        .bind(i64::from(last))
        .bind(i64::from(first))
        .fetch_all(&mut *connection)
        .await?;
    for row in &within {
        let mut envelope = envelope_from_row(row)?;
        if !forgotten.erase_from_envelope(&mut envelope, rows) {
            continue;
        }
        let (packed, header) = (pack_list(&envelope.rows)?, EnvelopeHeader::from_row(row)?);
        let sum = header.checksum(read_row_span(row)?, &packed).finish();
        query("UPDATE envelopes SET rows = $1, rows_sum = $2, evidence = $3 WHERE run = $4 AND envelope = $5")
            .bind(packed)
            .bind(sum)
            .bind(envelope.evidence)
            .bind(run.0)
            .bind(i64::from(header.envelope))
            .execute(&mut *connection)
            .await?;
        if let Some((at, outcomes)) = envelope.settled {
            let settled = PackedOutcomes::new(run, header.envelope, Now(at.as_microsecond()), &outcomes)?;
            settled.update_envelope(&mut *connection, None).await?;
        }
    }
    Ok(())
}

/// The tables from which a purge deletes the records of a run. Receipts and evidence of consent are deleted separately.
const PURGED_TABLES: [&str; 5] = ["envelopes", "left_out", "events", "questions", "forgotten_rows"];

/// Deletes the rows of a run, if the run has not changed since it was counted. The guard keeps hashes of the numbers.
async fn purge_run(
    connection: &mut Connection,
    now: Now,
    PurgeOrder { counted, counts, parts, cancelled }: PurgeOrder,
) -> Result<Ownership, StatementError> {
    let run = counted.key;
    let (mut purged, at) = (false, timestamp_from_micros(now.0)?);
    let blocks = blocks::load_block_ids(&mut *connection, run).await?;
    let change = |run: &mut Run| {
        // Only the blocks of a run of single messages have identifiers of their own. The shards of a campaign's run use
        // the identifiers of the run.
        run.blocks = if run.shared { blocks } else { Vec::new() };
        purged = run.mark_purged(at, &counted, (counts, parts));
    };
    runs::update_run(connection, run, change).await?;
    if !purged {
        return Ok(Ownership::Lost);
    }
    let key = load_or_create_key(connection).await?;
    // The spending of a run is computed from its envelopes, so it is stored before they are deleted.
    limits::freeze_spending(connection, run).await?;
    contacts::hash_run_contacts(connection, now, run, &key).await?;
    store_guarded_numbers(connection, run, &cancelled, &key).await?;
    for table in PURGED_TABLES {
        let statement = format!("DELETE FROM {table} WHERE run = $1");
        query(sqlx::AssertSqlSafe(statement)).bind(run.0).execute(&mut *connection).await?;
    }
    receipts::delete_receipts(connection, run).await?;
    Ok(Ownership::Held)
}

/// Marks a cancelled number among the hashes of a run; numbers never use this bit.
const CANCELLED_BIT: u64 = 1 << 63;

/// Stores the hashes of the numbers that have a message of the run, and of the cancelled numbers.
async fn store_guarded_numbers(
    connection: &mut Connection,
    run: RunId,
    cancelled: &RoaringTreemap,
    key: &NumberKey,
) -> Result<(), StatementError> {
    let numbers = guards::load_numbers_of_run(connection, run).await?;
    let cancelled = hash_numbers(cancelled, key).map(|member| member | CANCELLED_BIT);
    // The run might already have hashes of cancelled numbers that were forgotten.
    let mut members = load_members(&mut *connection, run).await?;
    members.extend(hash_numbers(&numbers, key).chain(cancelled));
    write_members(connection, run, members).await
}

/// Replaces numbers with their hashes.
fn hash_numbers(numbers: &RoaringTreemap, key: &NumberKey) -> impl Iterator<Item = u64> {
    let to_hash =
        |member| Phone::new(member).map_or(member, |phone| Addressee::Forgotten(key.hash_number(phone)).to_u64());
    numbers.iter().map(to_hash)
}

async fn write_members(connection: &mut Connection, run: RunId, mut members: Vec<u64>) -> Result<(), StatementError> {
    members.sort_unstable();
    members.dedup();
    let numbers = pack_list(&members)?;
    query(
        "INSERT INTO guarded (run, numbers, sum) VALUES ($1, $2, $3)
         ON CONFLICT (run) DO UPDATE SET numbers = excluded.numbers, sum = excluded.sum",
    )
    .bind(run.0)
    .bind(&numbers)
    .bind(members_checksum(run, &numbers).finish())
    .execute(connection)
    .await?;
    Ok(())
}

/// The hashes of the numbers that had a message of the run when it was purged.
pub(crate) async fn load_guarded_numbers(
    reader: &mut Connection,
    run: RunId,
) -> Result<RoaringTreemap, StatementError> {
    Ok(load_members(reader, run).await?.into_iter().filter(|member| member & CANCELLED_BIT == 0).collect())
}

/// The hashes of cancelled numbers: of forgotten numbers, and of all cancelled numbers once the run is purged.
pub(super) async fn load_cancelled_numbers(reader: &mut Connection, run: RunId) -> Result<NumberSet, StatementError> {
    let cancelled = load_members(&mut *reader, run).await?.into_iter().filter(|member| member & CANCELLED_BIT > 0);
    Ok(NumberSet::new(cancelled.map(|member| member & !CANCELLED_BIT).collect(), load_number_key(reader).await?))
}

/// The stored hashes of a run's numbers. [`CANCELLED_BIT`] marks cancelled numbers.
async fn load_members(reader: &mut Connection, run: RunId) -> Result<Vec<u64>, StatementError> {
    let record = query("SELECT numbers, sum FROM guarded WHERE run = $1").bind(run.0).fetch_optional(reader).await?;
    let Some(record) = record else { return Ok(Vec::new()) };
    let numbers: &[u8] = record.try_get(0)?;
    if !members_checksum(run, numbers).matches(record.try_get(1)?) {
        return Err(LedgerError::Damaged { what: "the recipient record of a purged run".to_owned() }.into());
    }
    Ok(unpack_list::<u64>(numbers)?)
}

fn members_checksum(run: RunId, numbers: &[u8]) -> Checksum {
    Checksum::for_table("guarded").with_number(run.0).with_bytes(numbers)
}
