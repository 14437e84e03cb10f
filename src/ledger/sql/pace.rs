//! Queries about the pace of accounts.

use std::time::Duration;

use sqlx::Row as _;

use super::change::{Now, StatementError};
use super::dialect::{Connection, Record};
use super::statement::query;
use crate::ledger::question_pace::{QuestionRateLimit, is_question_account, question_account_name};
use crate::ledger::{AccountRateLimit, Allowance, QuestionPermit, SlotWait};

/// Takes room from the account's pace.
pub(super) async fn reserve_rate(
    connection: &mut Connection,
    now: Now,
    account: &Allowance,
    count: u32,
) -> Result<SlotWait, StatementError> {
    let before = load_pace(connection, &account.name).await?;
    let reservation = before.reserve(now.0, count, account.rate);
    if reservation.rate_limit != before {
        store_pace(connection, &account.name, reservation.rate_limit).await?;
    }
    Ok(reservation.wait)
}

/// Takes room for a question of an assistant, if there is some.
pub(super) async fn reserve_question(
    connection: &mut Connection,
    now: Now,
    account: &Allowance,
    longest: Duration,
) -> Result<QuestionPermit, StatementError> {
    let questions = question_account_name(&account.name);
    let before = QuestionRateLimit {
        account: load_pace(connection, &account.name).await?,
        questions: load_pace(connection, &questions).await?,
    };
    let (after, turn) = before.reserve_question(now.0, account.rate, longest);
    if after.account != before.account {
        store_pace(connection, &account.name, after.account).await?;
    }
    if after.questions != before.questions {
        store_pace(connection, &questions, after.questions).await?;
    }
    Ok(turn)
}

pub(super) async fn slow_account_down(
    connection: &mut Connection,
    now: Now,
    account: String,
    wait: Option<Duration>,
) -> Result<(), StatementError> {
    let wait = wait.and_then(|wait| i64::try_from(wait.as_micros()).ok());
    let slowed = load_pace(connection, &account).await?.slow_down(now.0, wait);
    store_pace(connection, &account, slowed).await
}

/// The pace of every account, by name.
pub(super) async fn list_paces(reader: &mut Connection) -> Result<Vec<(String, AccountRateLimit)>, StatementError> {
    let all =
        "SELECT next_free, share, slowed_at, not_before, written_at, rate, taken, name FROM accounts ORDER BY name";
    let rows = query(all).fetch_all(reader).await?;
    let mut paces = Vec::with_capacity(rows.len());
    for row in &rows {
        let name: String = row.try_get("name")?;
        if !is_question_account(&name) {
            paces.push((name, pace_from_row(row)?));
        }
    }
    Ok(paces)
}

/// The pace of an account.
pub(super) async fn load_pace(connection: &mut Connection, account: &str) -> Result<AccountRateLimit, StatementError> {
    let one = "SELECT next_free, share, slowed_at, not_before, written_at, rate, taken FROM accounts WHERE name = $1";
    let row = query(one).bind(account).fetch_optional(connection).await?;
    row.as_ref().map_or_else(|| Ok(AccountRateLimit::default()), pace_from_row)
}

fn pace_from_row(row: &Record) -> Result<AccountRateLimit, StatementError> {
    Ok(AccountRateLimit {
        next_free: row.try_get(0)?,
        share: row.try_get(1)?,
        slowed_at: row.try_get(2)?,
        not_before: row.try_get(3)?,
        written_at: row.try_get(4)?,
        rate: row.try_get(5)?,
        taken: row.try_get(6)?,
    })
}

async fn store_pace(connection: &mut Connection, account: &str, pace: AccountRateLimit) -> Result<(), StatementError> {
    query(
        "INSERT INTO accounts (name, next_free, share, slowed_at, not_before, written_at, rate, taken)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (name) DO UPDATE SET next_free = excluded.next_free, share = excluded.share,
             slowed_at = excluded.slowed_at, not_before = excluded.not_before, written_at = excluded.written_at,
             rate = excluded.rate, taken = excluded.taken",
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
