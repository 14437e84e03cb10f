//! Queries about single rows: events, questions, orders to send again.

use roaring::RoaringBitmap;
use sqlx::Row as _;

use super::change::{Failure, Now};
use super::dialect::Connection;
use super::runs::{self, instant};
use super::statement::{self, as_small, query, scalar, small};
use super::{blocks, bounds};
use crate::domain::{IdRange, Row};
use crate::ledger::checksum::Checksum;
use crate::ledger::rules::{Forgotten, forget_in_change};
use crate::ledger::{AskedRow, Change, Lease, LedgerError, NewRowEvent, Ownership, RetryOrder, RowEvent, Rows, RunId};

/// Records events, unless the run was lost.
pub(super) async fn record(
    connection: &mut Connection,
    now: Now,
    lease: Lease,
    events: Vec<NewRowEvent>,
) -> Result<Ownership, Failure> {
    let mut held = runs::read(&mut *connection, lease.run).await?.is_leased(lease);
    if !held {
        // Whoever sends it in shares learns of its own rows.
        held = !events.is_empty();
        for NewRowEvent { row, .. } in &events {
            held = held && blocks::are_leased(&mut *connection, lease, Rows { first: *row, last: *row }).await?;
        }
    }
    if !held {
        return Ok(Ownership::Lost);
    }
    add(connection, now, lease.run, &events).await?;
    Ok(Ownership::Held)
}

/// Reserves identifiers for an order and records that its rows are to be sent as new messages.
pub(super) async fn retry(
    connection: &mut Connection,
    now: Now,
    lease: Lease,
    order: RetryOrder,
) -> Result<Ownership, Failure> {
    let run = lease.run;
    let known = runs::read(&mut *connection, run).await?;
    if !known.is_leased(lease) {
        return Ok(Ownership::Lost);
    }
    let number = scalar("SELECT COALESCE(MAX(number), 0) + 1 FROM orders WHERE run = $1")
        .bind(run.0)
        .fetch_one(&mut *connection)
        .await?;
    let number = as_small(number)?;
    let ids = runs::free_ids(connection, (now, order.random), known.ids.len).await?;
    let (first, ids) = (runs::signed(ids.first), runs::signed(ids.len));
    query("INSERT INTO orders (run, number, first_id, ids, at, sum) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(run.0)
        .bind(i64::from(number))
        .bind(first)
        .bind(ids)
        .bind(now.0)
        .bind(order_sum(run, number, first, ids).finish())
        .execute(&mut *connection)
        .await?;
    add(connection, now, run, &order.events(number)).await?;
    Ok(Ownership::Held)
}

async fn add(connection: &mut Connection, now: Now, run: RunId, events: &[NewRowEvent]) -> Result<(), Failure> {
    for NewRowEvent { row, envelope, change } in events {
        let change = postcard::to_stdvec(change).map_err(unreadable)?;
        query("INSERT INTO events (run, row, envelope, at, change, sum) VALUES ($1, $2, $3, $4, $5, $6)")
            .bind(run.0)
            .bind(i64::from(row.get()))
            .bind(i64::from(*envelope))
            .bind(now.0)
            .bind(&change)
            .bind(event_sum(run, (row.get(), *envelope), now.0, &change).finish())
            .execute(&mut *connection)
            .await?;
    }
    bounds::learnt(connection, run, events).await?;
    runs::change(connection, run, |run| run.learn(events.iter().map(|event| &event.change))).await
}

/// Takes what people wrote about these rows out of what was decided, and a number out of what the gateway told when asked.
pub(super) async fn forget(
    connection: &mut Connection,
    run: RunId,
    rows: &RoaringBitmap,
    forgotten: Forgotten,
) -> Result<(), Failure> {
    let found = query("SELECT key, row, envelope, at, change FROM events WHERE run = $1")
        .bind(run.0)
        .fetch_all(&mut *connection)
        .await?;
    for record in found {
        let (row, envelope, at) = (small(&record, 1)?, small(&record, 2)?, record.try_get(3)?);
        if !rows.contains(row) {
            continue;
        }
        let mut change: Change = postcard::from_bytes(record.try_get(4)?).map_err(unreadable)?;
        forget_in_change(&mut change);
        let change = postcard::to_stdvec(&change).map_err(unreadable)?;
        query("UPDATE events SET change = $1, sum = $2 WHERE key = $3")
            .bind(&change)
            .bind(event_sum(run, (row, envelope), at, &change).finish())
            .bind(record.try_get::<i64, _>(0)?)
            .execute(&mut *connection)
            .await?;
    }
    for row in rows {
        let answer: Option<String> = scalar("SELECT answer FROM questions WHERE run = $1 AND row = $2")
            .bind(run.0)
            .bind(i64::from(row))
            .fetch_optional(&mut *connection)
            .await?;
        let Some(answer) = answer else { continue };
        query("UPDATE questions SET answer = $1 WHERE run = $2 AND row = $3")
            .bind(forgotten.in_words(&answer))
            .bind(run.0)
            .bind(i64::from(row))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// The events of a run, in the order in which they were recorded.
pub(super) async fn read(reader: &mut Connection, run: RunId) -> Result<Vec<RowEvent>, Failure> {
    let rows = query("SELECT row, envelope, at, change, sum FROM events WHERE run = $1 ORDER BY key")
        .bind(run.0)
        .fetch_all(reader)
        .await?;
    let mut events = Vec::with_capacity(rows.len());
    for record in rows {
        let (row, envelope, at) = (small(&record, 0)?, small(&record, 1)?, record.try_get(2)?);
        let change: &[u8] = record.try_get(3)?;
        if !event_sum(run, (row, envelope), at, change).agrees(record.try_get(4)?) {
            return Err(LedgerError::Damaged { what: format!("the decision about row {row}") }.into());
        }
        let change = postcard::from_bytes(change).map_err(unreadable)?;
        events.push(RowEvent { row: Row::new(row), envelope, at: instant(at)?, change });
    }
    Ok(events)
}

/// The identifiers of a run's orders, the first first.
pub(super) async fn orders(reader: &mut Connection, run: RunId) -> Result<Vec<IdRange>, Failure> {
    let rows = query("SELECT number, first_id, ids, sum FROM orders WHERE run = $1 ORDER BY number")
        .bind(run.0)
        .fetch_all(reader)
        .await?;
    let mut orders = Vec::with_capacity(rows.len());
    for record in rows {
        let (number, first, ids) = (small(&record, 0)?, record.try_get(1)?, record.try_get(2)?);
        if !order_sum(run, number, first, ids).agrees(record.try_get(3)?) {
            return Err(LedgerError::Damaged { what: format!("the retry record {number}") }.into());
        }
        orders.push(IdRange { first: runs::unsigned(first), len: runs::unsigned(ids) });
    }
    Ok(orders)
}

/// Keeps how often rows were asked about.
pub(super) async fn asked(connection: &mut Connection, run: RunId, questions: Vec<AskedRow>) -> Result<(), Failure> {
    for question in questions {
        query(
            "INSERT INTO questions (run, row, envelope, asked, negatives, first_at, last_at, negative_at, answer)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (run, row) DO UPDATE SET envelope = excluded.envelope, asked = excluded.asked,
                 negatives = excluded.negatives, first_at = excluded.first_at, last_at = excluded.last_at,
                 negative_at = excluded.negative_at, answer = excluded.answer",
        )
        .bind(run.0)
        .bind(i64::from(question.row.get()))
        .bind(i64::from(question.envelope))
        .bind(i64::from(question.asked))
        .bind(i64::from(question.negatives))
        .bind(question.first_at.as_microsecond())
        .bind(question.last_at.as_microsecond())
        .bind(question.negative_at.map(jiff::Timestamp::as_microsecond))
        .bind(question.answer)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// How often the rows of a run were asked about.
pub(super) async fn questions(reader: &mut Connection, run: RunId) -> Result<Vec<AskedRow>, Failure> {
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
                row: statement::row(record, 0)?,
                envelope: small(record, 1)?,
                asked: small(record, 2)?,
                negatives: small(record, 3)?,
                first_at: instant(record.try_get(4)?)?,
                last_at: instant(record.try_get(5)?)?,
                negative_at: negative_at.map(instant).transpose()?,
                answer: record.try_get(7)?,
            })
        })
        .collect()
}

fn event_sum(run: RunId, (row, envelope): (u32, u32), at: i64, change: &[u8]) -> Checksum {
    Checksum::of("events").number(run.0).number(row).number(envelope).number(at).bytes(change)
}

fn order_sum(run: RunId, number: u32, first: i64, ids: i64) -> Checksum {
    Checksum::of("orders").number(run.0).number(number).number(first).number(ids)
}

fn unreadable(error: postcard::Error) -> Failure {
    LedgerError::Unreadable(error.to_string()).into()
}
