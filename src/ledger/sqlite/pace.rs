//! Queries about the pace of accounts.

use std::time::Duration;

use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection, SqlitePool};

use super::change::{Failure, Now};
use crate::ledger::{AccountPace, Allowance, Wait};

/// Takes room from the account's pace.
pub(super) async fn reserve(
    connection: &mut SqliteConnection,
    now: Now,
    account: &Allowance,
    count: u32,
) -> Result<Wait, Failure> {
    let before = pace(connection, &account.name).await?;
    let reservation = before.reserve(now.0, count, account.rate);
    if reservation.pace != before {
        store(connection, &account.name, reservation.pace).await?;
    }
    Ok(reservation.wait)
}

pub(super) async fn slow_down(
    connection: &mut SqliteConnection,
    now: Now,
    account: String,
    wait: Option<Duration>,
) -> Result<(), Failure> {
    let wait = wait.and_then(|wait| i64::try_from(wait.as_micros()).ok());
    let slowed = pace(connection, &account).await?.slowed(now.0, wait);
    store(connection, &account, slowed).await
}

/// The pace of every account, by name.
pub(super) async fn all(pool: &SqlitePool) -> Result<Vec<(String, AccountPace)>, Failure> {
    let all =
        "SELECT next_free, share, slowed_at, not_before, written_at, rate, taken, name FROM accounts ORDER BY name";
    let rows = sqlx::query(all).fetch_all(pool).await?;
    rows.iter().map(|row| Ok((row.try_get("name")?, read(row)?))).collect()
}

/// The pace of an account.
pub(super) async fn pace(connection: &mut SqliteConnection, account: &str) -> Result<AccountPace, Failure> {
    let one = "SELECT next_free, share, slowed_at, not_before, written_at, rate, taken FROM accounts WHERE name = ?";
    let row = sqlx::query(one).bind(account).fetch_optional(connection).await?;
    row.as_ref().map_or_else(|| Ok(AccountPace::default()), read)
}

fn read(row: &SqliteRow) -> Result<AccountPace, Failure> {
    Ok(AccountPace {
        next_free: row.try_get(0)?,
        share: row.try_get(1)?,
        slowed_at: row.try_get(2)?,
        not_before: row.try_get(3)?,
        written_at: row.try_get(4)?,
        rate: row.try_get(5)?,
        taken: row.try_get(6)?,
    })
}

async fn store(connection: &mut SqliteConnection, account: &str, pace: AccountPace) -> Result<(), Failure> {
    sqlx::query(
        "INSERT OR REPLACE INTO accounts (name, next_free, share, slowed_at, not_before, written_at, rate, taken)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(account)
    .bind(pace.next_free)
    .bind(pace.share)
    .bind(pace.slowed_at)
    .bind(pace.not_before)
    .bind(pace.written_at)
    .bind(pace.rate)
    .bind(pace.taken)
    .execute(connection)
    .await?;
    Ok(())
}
