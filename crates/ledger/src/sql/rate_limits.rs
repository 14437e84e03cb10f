//! The rate limits of accounts in the tables.

use std::time::Duration;

use sqlx::Row as _;

use super::dialect::{Connection, Record};
use super::statement::{Now, StatementError, query};
use crate::rate_limit::{InquiryRateLimit, inquiry_account_name, is_inquiry_account};
use crate::{AccountRateLimit, Allowance, RateRequest, SlotPermit, SlotWait};

/// Reserves rate-limit slots of an account, if they become free in time, or slows the account down.
pub(super) async fn use_rate_limit(
    connection: &mut Connection,
    now: Now,
    account: &Allowance,
    request: RateRequest,
) -> Result<SlotPermit, StatementError> {
    match request {
        RateRequest::Operations(count) => {
            let wait = reserve_rate(connection, now, account, count).await?;
            Ok(SlotPermit::Granted { wait, next: Duration::ZERO })
        }
        RateRequest::Inquiry { longest } => reserve_inquiry(connection, now, account, longest).await,
        RateRequest::SlowDown(wait) => slow_down_account(connection, now, &account.name, wait).await,
    }
}

/// Reserves rate-limit slots of an account.
pub(super) async fn reserve_rate(
    connection: &mut Connection,
    now: Now,
    account: &Allowance,
    count: u32,
) -> Result<SlotWait, StatementError> {
    let before = load_rate_limit(connection, &account.name).await?;
    let reservation = before.reserve(now.0, count, account.rate);
    if reservation.rate_limit != before {
        store_rate_limit(connection, &account.name, reservation.rate_limit).await?;
    }
    Ok(reservation.wait)
}

/// Reserves a rate-limit slot for an assistant's inquiry, if a slot becomes free within `longest`.
async fn reserve_inquiry(
    connection: &mut Connection,
    now: Now,
    account: &Allowance,
    longest: Duration,
) -> Result<SlotPermit, StatementError> {
    let inquiries = inquiry_account_name(&account.name);
    let before = InquiryRateLimit {
        account: load_rate_limit(connection, &account.name).await?,
        inquiries: load_rate_limit(connection, &inquiries).await?,
    };
    let (after, permit) = before.reserve_inquiry(now.0, account.rate, longest);
    if after.account != before.account {
        store_rate_limit(connection, &account.name, after.account).await?;
    }
    if after.inquiries != before.inquiries {
        store_rate_limit(connection, &inquiries, after.inquiries).await?;
    }
    Ok(permit)
}

async fn slow_down_account(
    connection: &mut Connection,
    now: Now,
    account: &str,
    wait: Option<Duration>,
) -> Result<SlotPermit, StatementError> {
    let wait = wait.and_then(|wait| i64::try_from(wait.as_micros()).ok());
    let slowed = load_rate_limit(connection, account).await?.slow_down(now.0, wait);
    store_rate_limit(connection, account, slowed).await?;
    Ok(SlotPermit::Later(slowed.requested_wait(now.0)))
}

/// The rate-limit state of every account, by name.
pub(super) async fn list_rate_limits(
    reader: &mut Connection,
) -> Result<Vec<(String, AccountRateLimit)>, StatementError> {
    let all =
        "SELECT next_free, share, slowed_at, not_before, written_at, rate, taken, name FROM accounts ORDER BY name";
    let rows = query(all).fetch_all(reader).await?;
    let mut limits = Vec::with_capacity(rows.len());
    for row in &rows {
        let name: String = row.try_get("name")?;
        if !is_inquiry_account(&name) {
            limits.push((name, rate_limit_from_row(row)?));
        }
    }
    Ok(limits)
}

/// Loads the rate-limit state of an account.
pub(super) async fn load_rate_limit(
    connection: &mut Connection,
    account: &str,
) -> Result<AccountRateLimit, StatementError> {
    let select_one =
        "SELECT next_free, share, slowed_at, not_before, written_at, rate, taken FROM accounts WHERE name = $1";
    let row = query(select_one).bind(account).fetch_optional(connection).await?;
    row.as_ref().map_or_else(|| Ok(AccountRateLimit::default()), rate_limit_from_row)
}

fn rate_limit_from_row(row: &Record) -> Result<AccountRateLimit, StatementError> {
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

async fn store_rate_limit(
    connection: &mut Connection,
    account: &str,
    limit: AccountRateLimit,
) -> Result<(), StatementError> {
    query(
        "INSERT INTO accounts (name, next_free, share, slowed_at, not_before, written_at, rate, taken)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (name) DO UPDATE SET next_free = excluded.next_free, share = excluded.share,
             slowed_at = excluded.slowed_at, not_before = excluded.not_before, written_at = excluded.written_at,
             rate = excluded.rate, taken = excluded.taken",
    )
    .bind(account)
    .bind(limit.next_free)
    .bind(limit.share)
    .bind(limit.slowed_at)
    .bind(limit.not_before)
    .bind(limit.written_at)
    .bind(limit.rate)
    .bind(limit.taken)
    .execute(connection)
    .await?;
    Ok(())
}
