//! Row events, reconciliation inquiries, retry orders and skipped rows.

use roaring::RoaringBitmap;
use sqlx::Row as _;

use super::dialect::Connection;
use super::runs::{self, timestamp_from_micros};
use super::{Now, StatementError, parse_name, query, read_u32, scalar, to_u32};
use super::{blocks, limits, shards};
use crate::encoding::Checksum;
use crate::encoding::{pack_set, unpack_set};
use crate::rules::{NumberErasure, erase_text_from_change, list_included_rows};
use crate::{
    AskedRow, ExcludedRows, Lease, LedgerError, NewRowEvent, Ownership, RetryOrder, RowChange, RowEvent, RowEvents,
    RowSpan, RowState, RowUpdate, RunId,
};
use campaign_core::domain::{IdRange, Row};

/// Applies an update to rows, unless the lease was lost.
pub(super) async fn apply_update(
    connection: &mut Connection,
    now: Now,
    lease: Lease,
    update: RowUpdate,
) -> Result<Ownership, StatementError> {
    match update {
        RowUpdate::Events(events) => record_events(connection, now, lease, events).await,
        RowUpdate::Retry(order) => record_retry(connection, now, lease, order).await,
        RowUpdate::Skipped { rows, reason } => skip_rows(connection, lease, &rows, reason).await,
        RowUpdate::Sharded { terms, proven } => shards::start_sharding(connection, lease, terms, proven).await,
        RowUpdate::ShardsFinished => shards::finish_shards(connection, lease).await,
        RowUpdate::NotCounted => blocks::clear_draw_time(connection, lease).await,
    }
}

/// Skips rows, unless the lease was lost. A worker of a sharded run skips rows of its shards.
async fn skip_rows(
    connection: &mut Connection,
    lease: Lease,
    rows: &[Row],
    reason: &str,
) -> Result<Ownership, StatementError> {
    let run = runs::load_run(&mut *connection, lease.run).await?;
    let may_skip =
        run.is_leased(lease) || run.may_send_drawn_rows() && are_all_rows_leased(connection, lease, rows).await?;
    if !may_skip {
        return Ok(Ownership::Lost);
    }
    insert_excluded_rows(connection, lease.run, &ExcludedRows::from_skipped(rows, reason)).await?;
    Ok(Ownership::Held)
}

/// Whether there are rows, and all of them belong to shards of this lease.
async fn are_all_rows_leased(connection: &mut Connection, lease: Lease, rows: &[Row]) -> Result<bool, StatementError> {
    for row in rows {
        if !blocks::are_rows_leased(&mut *connection, lease, RowSpan { first: *row, last: *row }).await? {
            return Ok(false);
        }
    }
    Ok(!rows.is_empty())
}

/// Records events, unless the lease was lost.
async fn record_events(
    connection: &mut Connection,
    now: Now,
    lease: Lease,
    events: Vec<NewRowEvent>,
) -> Result<Ownership, StatementError> {
    let mut is_leased = runs::load_run(&mut *connection, lease.run).await?.is_leased(lease);
    if !is_leased {
        // A worker of a sharded run records events for its rows.
        let rows: Vec<Row> = events.iter().map(|event| event.row).collect();
        is_leased = are_all_rows_leased(connection, lease, &rows).await?;
    }
    if !is_leased {
        return Ok(Ownership::Lost);
    }
    insert_events(connection, now, lease.run, &events).await?;
    Ok(Ownership::Held)
}

/// Reserves identifiers for a retry order and records that its rows are sent as new messages.
async fn record_retry(
    connection: &mut Connection,
    now: Now,
    lease: Lease,
    order: RetryOrder,
) -> Result<Ownership, StatementError> {
    let run = lease.run;
    let loaded = runs::load_run(&mut *connection, run).await?;
    if !loaded.is_leased(lease) {
        return Ok(Ownership::Lost);
    }
    let number = scalar("SELECT COALESCE(MAX(number), 0) + 1 FROM orders WHERE run = $1")
        .bind(run.0)
        .fetch_one(&mut *connection)
        .await?;
    let number = to_u32(number)?;
    let ids = runs::find_free_ids(connection, now, order.random, loaded.ids.len).await?;
    let (first, ids) = (runs::to_signed(ids.first), runs::to_signed(ids.len));
    query("INSERT INTO orders (run, number, first_id, ids, at, sum) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(run.0)
        .bind(i64::from(number))
        .bind(first)
        .bind(ids)
        .bind(now.0)
        .bind(order_checksum(run, number, first, ids).finish())
        .execute(&mut *connection)
        .await?;
    insert_events(connection, now, run, &order.into_events(number)).await?;
    Ok(Ownership::Held)
}

async fn insert_events(
    connection: &mut Connection,
    now: Now,
    run: RunId,
    events: &[NewRowEvent],
) -> Result<(), StatementError> {
    for NewRowEvent { row, envelope, change } in events {
        let change = postcard::to_stdvec(change).map_err(unreadable_change)?;
        query("INSERT INTO events (run, row, envelope, at, change, sum) VALUES ($1, $2, $3, $4, $5, $6)")
            .bind(run.0)
            .bind(i64::from(row.get()))
            .bind(i64::from(*envelope))
            .bind(now.0)
            .bind(&change)
            .bind(event_checksum(run, row.get(), *envelope, now.0, &change).finish())
            .execute(&mut *connection)
            .await?;
    }
    include_rows(connection, run, list_included_rows(events)).await?;
    limits::reset_after_events(connection, run, events).await?;
    runs::update_run(connection, run, |run| run.reopen_for_planned_rows(events.iter().map(|event| &event.change))).await
}

/// Removes the authors' reasons from the decisions about these rows, and the erased phone number from the stored
/// gateway answers.
pub(super) async fn redact_events(
    connection: &mut Connection,
    run: RunId,
    rows: &RoaringBitmap,
    forgotten: NumberErasure,
) -> Result<(), StatementError> {
    let records = query("SELECT key, row, envelope, at, change FROM events WHERE run = $1")
        .bind(run.0)
        .fetch_all(&mut *connection)
        .await?;
    for record in records {
        let (row, envelope, at) = (read_u32(&record, 1)?, read_u32(&record, 2)?, record.try_get(3)?);
        if !rows.contains(row) {
            continue;
        }
        let mut change: RowChange = postcard::from_bytes(record.try_get(4)?).map_err(unreadable_change)?;
        erase_text_from_change(&mut change);
        let change = postcard::to_stdvec(&change).map_err(unreadable_change)?;
        query("UPDATE events SET change = $1, sum = $2 WHERE key = $3")
            .bind(&change)
            .bind(event_checksum(run, row, envelope, at, &change).finish())
            .bind(record.try_get::<i64, _>(0)?)
            .execute(&mut *connection)
            .await?;
    }
    let mut inquiries = load_inquiries(connection, run).await?;
    inquiries.retain(|inquiry| rows.contains(inquiry.row.get()));
    inquiries.iter_mut().for_each(|inquiry| forgotten.erase_from_inquiry(inquiry));
    store_inquiries(connection, run, inquiries).await
}

/// The events of a run in the order in which they were recorded.
pub(super) async fn load_events(reader: &mut Connection, run: RunId) -> Result<Vec<RowEvent>, StatementError> {
    let rows = query("SELECT row, envelope, at, change, sum FROM events WHERE run = $1 ORDER BY key")
        .bind(run.0)
        .fetch_all(reader)
        .await?;
    let mut events = Vec::with_capacity(rows.len());
    for record in rows {
        let (row, envelope, at) = (read_u32(&record, 0)?, read_u32(&record, 1)?, record.try_get(2)?);
        let change: &[u8] = record.try_get(3)?;
        if !event_checksum(run, row, envelope, at, change).matches(record.try_get(4)?) {
            return Err(LedgerError::Damaged { what: format!("the decision about row {row}") }.into());
        }
        let change = postcard::from_bytes(change).map_err(unreadable_change)?;
        events.push(RowEvent { row: Row::new(row), envelope, at: timestamp_from_micros(at)?, change });
    }
    Ok(events)
}

/// Whether a run has events.
pub(super) async fn has_events(reader: &mut Connection, run: RunId) -> Result<bool, StatementError> {
    let event: Option<i64> =
        scalar("SELECT key FROM events WHERE run = $1 LIMIT 1").bind(run.0).fetch_optional(reader).await?;
    Ok(event.is_some())
}

/// The events of a run, grouped by row.
pub(super) async fn load_row_events(reader: &mut Connection, run: RunId) -> Result<RowEvents, StatementError> {
    let row = query("SELECT endpoint FROM runs WHERE key = $1").bind(run.0).fetch_one(&mut *reader).await?;
    let endpoint = parse_name(row.try_get(0)?)?;
    Ok(RowEvents::new(load_events(reader, run).await?, endpoint))
}

/// The identifier ranges of a run's retry orders, in the order of the retry orders.
pub(super) async fn load_order_ids(reader: &mut Connection, run: RunId) -> Result<Vec<IdRange>, StatementError> {
    let rows = query("SELECT number, first_id, ids, sum FROM orders WHERE run = $1 ORDER BY number")
        .bind(run.0)
        .fetch_all(reader)
        .await?;
    let mut orders = Vec::with_capacity(rows.len());
    for record in rows {
        let (number, first, ids) = (read_u32(&record, 0)?, record.try_get(1)?, record.try_get(2)?);
        if !order_checksum(run, number, first, ids).matches(record.try_get(3)?) {
            return Err(LedgerError::Damaged { what: format!("the retry record {number}") }.into());
        }
        orders.push(IdRange { first: runs::to_unsigned(first), len: runs::to_unsigned(ids) });
    }
    Ok(orders)
}

/// Stores the inquiries about these rows: their number, their times and the last answer.
pub(super) async fn store_inquiries(
    connection: &mut Connection,
    run: RunId,
    inquiries: Vec<AskedRow>,
) -> Result<(), StatementError> {
    for inquiry in inquiries {
        query(
            "INSERT INTO questions (run, row, envelope, asked, negatives, first_at, last_at, negative_at, answer)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (run, row) DO UPDATE SET envelope = excluded.envelope, asked = excluded.asked,
                 negatives = excluded.negatives, first_at = excluded.first_at, last_at = excluded.last_at,
                 negative_at = excluded.negative_at, answer = excluded.answer",
        )
        .bind(run.0)
        .bind(i64::from(inquiry.row.get()))
        .bind(i64::from(inquiry.envelope))
        .bind(i64::from(inquiry.asked))
        .bind(i64::from(inquiry.negatives))
        .bind(inquiry.first_at.as_microsecond())
        .bind(inquiry.last_at.as_microsecond())
        .bind(inquiry.negative_at.map(jiff::Timestamp::as_microsecond))
        .bind(inquiry.answer)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Loads the inquiries about the rows of a run: their number, their times and the last answers.
pub(super) async fn load_inquiries(reader: &mut Connection, run: RunId) -> Result<Vec<AskedRow>, StatementError> {
    let rows = query(
        "SELECT row, envelope, asked, negatives, first_at, last_at, negative_at, answer FROM questions
         WHERE run = $1 ORDER BY row",
    )
    .bind(run.0)
    .fetch_all(reader)
    .await?;
    rows.iter()
        .map(|record| {
            let negative_at: Option<i64> = record.try_get(6)?;
            Ok(AskedRow {
                row: super::read_row_number(record, 0)?,
                envelope: read_u32(record, 1)?,
                asked: read_u32(record, 2)?,
                negatives: read_u32(record, 3)?,
                first_at: timestamp_from_micros(record.try_get(4)?)?,
                last_at: timestamp_from_micros(record.try_get(5)?)?,
                negative_at: negative_at.map(timestamp_from_micros).transpose()?,
                answer: record.try_get(7)?,
            })
        })
        .collect()
}

fn event_checksum(run: RunId, row: u32, envelope: u32, at: i64, change: &[u8]) -> Checksum {
    Checksum::for_table("events")
        .with_number(run.0)
        .with_number(row)
        .with_number(envelope)
        .with_number(at)
        .with_bytes(change)
}

fn order_checksum(run: RunId, number: u32, first: i64, ids: i64) -> Checksum {
    Checksum::for_table("orders").with_number(run.0).with_number(number).with_number(first).with_number(ids)
}

fn unreadable_change(error: postcard::Error) -> StatementError {
    LedgerError::Unreadable(error.to_string()).into()
}

/// Adds skipped or invalid rows of a run.
pub(super) async fn insert_excluded_rows(
    connection: &mut Connection,
    run: RunId,
    excluded: &ExcludedRows,
) -> Result<(), StatementError> {
    for (state, reason, rows) in excluded.sets() {
        let packed = pack_set(rows)?;
        query("INSERT INTO left_out (run, state, reason, rows, sum) VALUES ($1, $2, $3, $4, $5)")
            .bind(run.0)
            .bind(state.name())
            .bind(reason)
            .bind(&packed)
            .bind(excluded_rows_checksum(run, state.name(), reason, &packed).finish())
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Removes these rows from the excluded rows, except the rows of forgotten recipients.
async fn include_rows(connection: &mut Connection, run: RunId, mut rows: RoaringBitmap) -> Result<(), StatementError> {
    if rows.is_empty() {
        return Ok(());
    }
    let forgotten: Vec<i64> =
        scalar("SELECT row FROM forgotten_rows WHERE run = $1").bind(run.0).fetch_all(&mut *connection).await?;
    for row in forgotten {
        rows.remove(to_u32(row)?);
    }
    let mut excluded = load_excluded_rows(&mut *connection, run).await?;
    if excluded.remove_rows(&rows) {
        query("DELETE FROM left_out WHERE run = $1").bind(run.0).execute(&mut *connection).await?;
        insert_excluded_rows(connection, run, &excluded).await?;
    }
    Ok(())
}

/// Loads the excluded rows with their reasons.
pub(super) async fn load_excluded_rows(reader: &mut Connection, run: RunId) -> Result<ExcludedRows, StatementError> {
    let rows = query("SELECT state, reason, rows, sum FROM left_out WHERE run = $1 ORDER BY rowid")
        .bind(run.0)
        .fetch_all(reader)
        .await?;
    let mut excluded = ExcludedRows::default();
    for row in rows {
        let (name, reason): (&str, &str) = (row.try_get("state")?, row.try_get("reason")?);
        let packed: &[u8] = row.try_get("rows")?;
        if !excluded_rows_checksum(run, name, reason, packed).matches(row.try_get("sum")?) {
            return Err(LedgerError::Damaged { what: "the record of skipped rows".to_owned() }.into());
        }
        let state =
            RowState::from_name(name).ok_or_else(|| LedgerError::Unreadable(format!("unknown state `{name}`")))?;
        excluded.insert_set(state, reason.to_owned(), unpack_set(packed)?);
    }
    Ok(excluded)
}

fn excluded_rows_checksum(run: RunId, state: &str, reason: &str, rows: &[u8]) -> Checksum {
    Checksum::for_table("left_out").with_number(run.0).with_text(state).with_text(reason).with_bytes(rows)
}
