//! Forgetting a person in the tables, and what is left of them in the space that the tables do not use any more.

mod envelopes;
mod purge;

pub(super) use purge::guarded;

use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use roaring::RoaringBitmap;
use sqlx::sqlite::SqliteExecutor;
use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::change::{Failure, Now};
use super::copies::{self, OtherFolder};
use super::ledger::SqliteLedger;
use super::writer::storage;
use super::{contacts, events, left_out, opening, receipts, suppression};
use crate::domain::Row;
use crate::ledger::rules::Forgotten;
use crate::ledger::{
    ForgetOrder, Forgetting, LedgerError, LedgerFuture, LeftOut, NewCopies, NumberKey, OPTED_OUT, Ownership, Run,
    RunId, State, StateCounts,
};

/// With what numbers are hashed that were forgotten, whether all that was freed since is overwritten, and the rows that
/// have no number any more: some wait to be taken out of copies and results.
pub(super) const TABLES: &str = "
    CREATE TABLE forgetting (
        key BLOB NOT NULL,
        swept INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE forgotten_rows (
        run INTEGER NOT NULL REFERENCES runs (key),
        row INTEGER NOT NULL,
        waits INTEGER NOT NULL,
        PRIMARY KEY (run, row)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX forgotten_rows_waiting ON forgotten_rows (run) WHERE waits = 1;
";

/// When a run was purged, and what stays of the numbers that have a message of it.
pub(super) const PURGED: &str = "
    ALTER TABLE runs ADD COLUMN purged_at INTEGER;
    CREATE TABLE guarded (
        run INTEGER PRIMARY KEY REFERENCES runs (key),
        numbers BLOB NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT;
";

/// How long other processes that read are waited for until the log can be emptied.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the pause is before that is tried again.
const PAUSE: Duration = Duration::from_millis(20);

impl Forgetting for SqliteLedger {
    fn forget(&self, order: ForgetOrder) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(forget(connection, now, order))))
    }

    fn to_be_forgotten(&self) -> LedgerFuture<'_, Vec<(RunId, RoaringBitmap)>> {
        Box::pin(async move { waiting(self.readers()).await.map_err(|failure| self.read_error(failure)) })
    }

    fn forgot(&self, runs: Vec<RunId>) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| {
            Box::pin(async move {
                for run in runs {
                    sqlx::query("UPDATE forgotten_rows SET waits = 0 WHERE run = ?")
                        .bind(run.0)
                        .execute(&mut *connection)
                        .await?;
                }
                Ok(())
            })
        }))
    }

    fn prepare_other_copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        Box::pin(async { Ok(Box::new(OtherFolder::prepare(&self.path, &run.name())?) as Box<dyn NewCopies>) })
    }

    fn purge(&self, counted: Run, counts: StateCounts, parts: u64) -> LedgerFuture<'_, Ownership> {
        Box::pin(self.write(move |connection, now| Box::pin(purge::purge(connection, now, counted, (counts, parts)))))
    }

    fn discard_copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, ()> {
        Box::pin(async { copies::discard(&self.path, &run.name()) })
    }

    fn sweep(&self) -> LedgerFuture<'_, ()> {
        Box::pin(async move {
            let swept = self.swept().await.map_err(|failure| self.read_error(failure))?;
            if !swept {
                // What an earlier version freed was not overwritten.
                self.apart("VACUUM").await?;
                self.write(|connection, _| {
                    Box::pin(async move {
                        sqlx::query("UPDATE forgetting SET swept = 1").execute(connection).await?;
                        Ok(())
                    })
                })
                .await?;
            }
            let began = Instant::now();
            while self.apart("PRAGMA wal_checkpoint(TRUNCATE)").await? != 0 {
                if began.elapsed() > PATIENCE {
                    let path = self.path.display().to_string();
                    let who = "another process reads it, so that its log cannot be emptied; end that one".to_owned();
                    return Err(LedgerError::Busy { path, who });
                }
                tokio::time::sleep(PAUSE).await;
            }
            Ok(())
        })
    }
}

impl SqliteLedger {
    /// Whether all that was ever freed in the file was overwritten.
    async fn swept(&self) -> Result<bool, Failure> {
        let swept = sqlx::query_scalar("SELECT swept FROM forgetting").fetch_optional(self.readers()).await?;
        Ok(swept.unwrap_or(false))
    }

    /// Has something done to the file that no transaction can be around; tells the first number of the answer, if there is one.
    async fn apart(&self, statement: &'static str) -> Result<i64, LedgerError> {
        let mut connection = opening::connect(&self.path, self.patience).await?;
        let answer = sqlx::query(statement).fetch_optional(&mut connection).await;
        let closed = connection.close().await;
        let answer = answer.map_err(|error| storage(&self.path, &error))?;
        closed.map_err(|error| storage(&self.path, &error))?;
        answer.map_or(Ok(0), |row| row.try_get(0).map_err(|error| storage(&self.path, &error)))
    }
}

/// With what numbers are hashed that were forgotten; nothing where none was.
pub(super) async fn key(reader: impl SqliteExecutor<'_>) -> Result<Option<NumberKey>, Failure> {
    let key: Option<Vec<u8>> = sqlx::query_scalar("SELECT key FROM forgetting").fetch_optional(reader).await?;
    let whole = |bytes: Vec<u8>| bytes.try_into().map(NumberKey::new);
    let damaged = |_| LedgerError::Damaged { what: "what numbers were forgotten with".to_owned() };
    Ok(key.map(whole).transpose().map_err(damaged)?)
}

async fn forget(connection: &mut SqliteConnection, now: Now, order: ForgetOrder) -> Result<(), Failure> {
    let ForgetOrder { phone, rows, opt_out } = order;
    let key = known_or_new_key(connection).await?;
    let forgotten = Forgotten { phone, stays: key.forgotten(phone) };
    suppression::forget(connection, forgotten, opt_out).await?;
    for (run, rows) in &rows {
        envelopes::forget(connection, *run, rows, forgotten).await?;
        receipts::forget(connection, *run, rows).await?;
        contacts::forget(connection, *run, rows, forgotten).await?;
        events::forget(connection, *run, rows, forgotten).await?;
        let out = left_out::read(&mut *connection, *run).await?.rows();
        let mut more = LeftOut::default();
        (rows - out).iter().for_each(|row| more.insert(Row::new(row), State::Skipped, OPTED_OUT));
        left_out::add(connection, *run, &more).await?;
        for row in rows {
            sqlx::query("INSERT OR REPLACE INTO forgotten_rows (run, row, waits) VALUES (?, ?, 1)")
                .bind(run.0)
                .bind(row)
                .execute(&mut *connection)
                .await?;
        }
    }
    for (table, column) in [("runs", "stopped"), ("notifications", "notice")] {
        in_column(connection, (table, column), forgotten).await?;
    }
    tracing::debug!(at = now.0, "a number is forgotten");
    Ok(())
}

/// With what numbers are hashed from now on.
async fn known_or_new_key(connection: &mut SqliteConnection) -> Result<NumberKey, Failure> {
    if let Some(known) = key(&mut *connection).await? {
        return Ok(known);
    }
    let bytes: [u8; NumberKey::LENGTH] = rand::random();
    sqlx::query("INSERT INTO forgetting (key, swept) VALUES (?, 0)").bind(bytes.as_slice()).execute(connection).await?;
    Ok(NumberKey::new(bytes))
}

/// Takes a number out of the words of a column.
async fn in_column(
    connection: &mut SqliteConnection,
    (table, column): (&'static str, &'static str),
    forgotten: Forgotten,
) -> Result<(), Failure> {
    let found = format!("SELECT key, {column} FROM {table} WHERE {column} IS NOT NULL");
    let changed: Vec<(i64, String)> = sqlx::query(sqlx::AssertSqlSafe(found))
        .fetch(&mut *connection)
        .map_err(Failure::from)
        .try_filter_map(async |row| {
            let text: &str = row.try_get(1)?;
            let without = forgotten.in_words(text);
            Ok(if without == text { None } else { Some((row.try_get(0)?, without)) })
        })
        .try_collect()
        .await?;
    for (key, text) in changed {
        let change = format!("UPDATE {table} SET {column} = ? WHERE key = ?");
        sqlx::query(sqlx::AssertSqlSafe(change)).bind(text).bind(key).execute(&mut *connection).await?;
    }
    Ok(())
}

/// The rows that wait to be taken out of copies and results.
async fn waiting(reader: impl SqliteExecutor<'_>) -> Result<Vec<(RunId, RoaringBitmap)>, Failure> {
    let found = sqlx::query("SELECT run, row FROM forgotten_rows WHERE waits = 1 ORDER BY run, row").fetch_all(reader);
    let mut waiting: Vec<(RunId, RoaringBitmap)> = Vec::new();
    for record in found.await? {
        let (run, row): (i64, u32) = (record.try_get(0)?, record.try_get(1)?);
        match waiting.last_mut().filter(|(last, _)| last.0 == run) {
            Some((_, rows)) => drop(rows.insert(row)),
            None => waiting.push((RunId(run), RoaringBitmap::from([row]))),
        }
    }
    Ok(waiting)
}
