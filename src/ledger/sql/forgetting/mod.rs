//! Forgetting a person in the tables, and what is left of them in the space that the tables do not use any more.

mod envelopes;
mod purge;

pub(super) use purge::load_guarded_numbers;

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use roaring::{RoaringBitmap, RoaringTreemap};
use sqlx::Row as _;

use super::change::{Now, StatementError};
use super::dialect::{Adapter, Connection};
use super::look::read_ledger;
use super::statement::{query, read_u32, scalar};
use super::{contacts, events, left_out, receipts, suppression};
use crate::domain::Row;
use crate::ledger::rules::NumberErasure;
use crate::ledger::{
    ExcludedRows, ForgetOrder, Forgetting, LedgerError, LedgerFuture, NewCopies, NumberKey, NumberSet, OPTED_OUT,
    Ownership, RowState, Run, RunId, StateCounts,
};

impl Forgetting for Adapter {
    fn forget_number(&self, order: ForgetOrder) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(forget_recipient(connection, now, order.clone()))))
    }

    fn list_rows_to_forget(&self) -> LedgerFuture<'_, Vec<(RunId, RoaringBitmap)>> {
        Box::pin(async move { read_ledger!(self, list_waiting_rows) })
    }

    fn mark_rows_forgotten(&self, runs: Vec<RunId>) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| {
            let runs = runs.clone();
            Box::pin(async move {
                for run in runs {
                    query("UPDATE forgotten_rows SET waits = FALSE WHERE run = $1")
                        .bind(run.0)
                        .execute(&mut *connection)
                        .await?;
                }
                Ok(())
            })
        }))
    }

    fn prepare_replacement_copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        Box::pin(self.replacement_copies(run))
    }

    fn purge_run(&self, counted: Run, counts: StateCounts, parts: u64) -> LedgerFuture<'_, Ownership> {
        Box::pin(self.write(move |connection, now| {
            Box::pin(purge::purge_run(connection, now, counted.clone(), (counts.clone(), parts)))
        }))
    }

    fn keep_cancelled_numbers(&self, run: RunId, numbers: RoaringTreemap) -> LedgerFuture<'_, ()> {
        let numbers = Arc::new(numbers);
        Box::pin(self.write(move |connection, _| {
            let numbers = Arc::clone(&numbers);
            Box::pin(async move { purge::store_cancelled_numbers(connection, run, &numbers).await })
        }))
    }

    fn load_cancelled_numbers(&self, run: RunId) -> LedgerFuture<'_, NumberSet> {
        Box::pin(async move { read_ledger!(self, purge::load_cancelled_numbers, run) })
    }

    fn discard_copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, ()> {
        Box::pin(self.remove_copies(run))
    }

    fn overwrite_free_space(&self) -> LedgerFuture<'_, ()> {
        Box::pin(self.overwrite_deleted())
    }
}

/// With what numbers are hashed that were forgotten; nothing where none was.
pub(super) async fn load_number_key(reader: &mut Connection) -> Result<Option<NumberKey>, StatementError> {
    let key: Option<Vec<u8>> = scalar("SELECT key FROM forgetting").fetch_optional(reader).await?;
    let whole = |bytes: Vec<u8>| bytes.try_into().map(NumberKey::new);
    let damaged = |_| LedgerError::Damaged { what: "the key for forgotten numbers".to_owned() };
    Ok(key.map(whole).transpose().map_err(damaged)?)
}

async fn forget_recipient(connection: &mut Connection, now: Now, order: ForgetOrder) -> Result<(), StatementError> {
    let ForgetOrder { phone, rows, opt_out } = order;
    let key = load_or_create_key(connection).await?;
    let forgotten = NumberErasure { phone, stays: key.hash_number(phone) };
    suppression::forget_in_opt_outs(connection, forgotten, opt_out).await?;
    for (run, rows) in &rows {
        envelopes::forget_in_envelopes(connection, *run, rows, forgotten).await?;
        receipts::forget_in_receipts(connection, *run, rows).await?;
        contacts::forget_in_contacts(connection, *run, rows, forgotten).await?;
        events::forget_in_events(connection, *run, rows, forgotten).await?;
        let out = left_out::load_skipped_rows(&mut *connection, *run).await?.rows();
        let mut more = ExcludedRows::default();
        (rows - out).iter().for_each(|row| more.insert(Row::new(row), RowState::Skipped, OPTED_OUT));
        left_out::insert_skipped_rows(connection, *run, &more).await?;
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
    for (table, column) in [("runs", "stopped"), ("notifications", "notice")] {
        forget_in_column(connection, (table, column), forgotten).await?;
    }
    tracing::debug!(at = now.0, "a number is forgotten");
    Ok(())
}

/// With what numbers are hashed from now on.
async fn load_or_create_key(connection: &mut Connection) -> Result<NumberKey, StatementError> {
    if let Some(known) = load_number_key(&mut *connection).await? {
        return Ok(known);
    }
    let bytes: [u8; NumberKey::LENGTH] = rand::random();
    query("INSERT INTO forgetting (key, swept) VALUES ($1, FALSE)").bind(bytes.as_slice()).execute(connection).await?;
    Ok(NumberKey::new(bytes))
}

/// Takes a number out of the words of a column.
async fn forget_in_column(
    connection: &mut Connection,
    (table, column): (&'static str, &'static str),
    forgotten: NumberErasure,
) -> Result<(), StatementError> {
    let found = format!("SELECT key, {column} FROM {table} WHERE {column} IS NOT NULL");
    let changed: Vec<(i64, String)> = query(sqlx::AssertSqlSafe(found))
        .fetch(&mut *connection)
        .map_err(StatementError::from)
        .try_filter_map(async |row| {
            let text: &str = row.try_get(1)?;
            let without = forgotten.erase_from_text(text);
            Ok(if without == text { None } else { Some((row.try_get(0)?, without)) })
        })
        .try_collect()
        .await?;
    for (key, text) in changed {
        let change = format!("UPDATE {table} SET {column} = $1 WHERE key = $2");
        query(sqlx::AssertSqlSafe(change)).bind(text).bind(key).execute(&mut *connection).await?;
    }
    Ok(())
}

/// The rows that wait to be taken out of copies and results.
async fn list_waiting_rows(reader: &mut Connection) -> Result<Vec<(RunId, RoaringBitmap)>, StatementError> {
    let found = query("SELECT run, row FROM forgotten_rows WHERE waits ORDER BY run, row").fetch_all(reader);
    let mut waiting: Vec<(RunId, RoaringBitmap)> = Vec::new();
    for record in found.await? {
        let (run, row) = (record.try_get::<i64, _>(0)?, read_u32(&record, 1)?);
        match waiting.last_mut().filter(|(last, _)| last.0 == run) {
            Some((_, rows)) => drop(rows.insert(row)),
            None => waiting.push((RunId(run), RoaringBitmap::from([row]))),
        }
    }
    Ok(waiting)
}
