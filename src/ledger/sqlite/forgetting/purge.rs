//! Removing what is known of the rows of a run, but for what the guard needs.

use roaring::RoaringTreemap;
use sqlx::sqlite::SqliteExecutor;
use sqlx::{Row as _, SqliteConnection};

use super::known_or_new_key;
use crate::ledger::sqlite::change::{Failure, Now};
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::pack::{pack, unpack};
use crate::ledger::sqlite::{receipts, spending};
use crate::ledger::{LedgerError, NumberSet, RunId};

/// Where rows of runs are.
const TABLES: [&str; 5] = ["envelopes", "left_out", "events", "questions", "forgotten_rows"];

/// Removes what is known of the rows of a run, and keeps what stays of these numbers.
pub(super) async fn purge(
    connection: &mut SqliteConnection,
    now: Now,
    run: RunId,
    guarded: NumberSet,
) -> Result<(), Failure> {
    let key = known_or_new_key(connection).await?;
    // What the run used of its budget is made of its envelopes as long as they are there.
    spending::keep_for_good(connection, run).await?;
    let numbers = pack(&guarded.forgotten(&key))?;
    sqlx::query("INSERT OR REPLACE INTO guarded (run, numbers, sum) VALUES (?, ?, ?)")
        .bind(run.0)
        .bind(&numbers)
        .bind(sum(run, &numbers).finish())
        .execute(&mut *connection)
        .await?;
    for table in TABLES {
        let statement = format!("DELETE FROM {table} WHERE run = ?");
        sqlx::query(sqlx::AssertSqlSafe(statement)).bind(run.0).execute(&mut *connection).await?;
    }
    receipts::purge(connection, run).await?;
    sqlx::query("UPDATE runs SET purged_at = ?, receipts_counted = receipts WHERE key = ?")
        .bind(now.0)
        .bind(run.0)
        .execute(connection)
        .await?;
    Ok(())
}

/// What stays of the numbers that had a message of a run when it was purged.
pub(in crate::ledger::sqlite) async fn guarded(
    reader: impl SqliteExecutor<'_>,
    run: RunId,
) -> Result<RoaringTreemap, Failure> {
    let kept =
        sqlx::query("SELECT numbers, sum FROM guarded WHERE run = ?").bind(run.0).fetch_optional(reader).await?;
    let Some(kept) = kept else { return Ok(RoaringTreemap::new()) };
    let numbers: &[u8] = kept.try_get(0)?;
    if !sum(run, numbers).agrees(kept.try_get(1)?) {
        return Err(LedgerError::Damaged { what: "the record of who has a message of a purged run".to_owned() }.into());
    }
    Ok(unpack::<u64>(numbers)?.into_iter().collect())
}

fn sum(run: RunId, numbers: &[u8]) -> Checksum {
    Checksum::of("guarded").number(run.0).bytes(numbers)
}
