//! Limits that an intent must respect: allowed countries, budgets, messages per day, frequency caps, and the rate
//! limits of accounts.
//!
//! Spending and daily counts are sums per run. They are updated as intents with limits arrive, and otherwise recomputed
//! from the envelopes and receipts of the run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use sqlx::Row as _;

use super::dialect::{Connection, Record};
use super::runs::{timestamp_from_micros, to_signed, to_unsigned};
use super::{Now, SqlStatement, StatementError, query, scalar};
use super::{contacts, counted_messages, events};
use crate::encoding::{parse_amount, unpack_costs};
use crate::rate_limit::{InquiryRateLimit, inquiry_account_name, is_inquiry_account};
use crate::rules::{
    self, BudgetScope, CountedMessage, find_exceeded_daily_limit, intended_spending, may_have_been_sent,
    refunded_spending, tighter_bound,
};
use crate::{
    AccountRateLimit, Allowance, Bound, CAPPED, COUNTRY, ExcludedRows, Intent, LedgerError, NewRowEvent, Permit,
    RateRequest, Run, RunId, SlotPermit, SlotWait,
};
use campaign_core::calendar::DailyLimits;
use campaign_core::domain::{Budget, OperationOutcome, Spending};

/// Checks the countries, caps, budget and daily limit of an intent, and charges the intent to its budget and daily
/// limit. Returns the refusal if the intent must not be sent as it is.
pub(super) async fn apply_bounds(
    connection: &mut Connection,
    now: Now,
    run: &Run,
    intent: &Intent,
    departs_at: Timestamp,
) -> Result<Option<Permit>, StatementError> {
    let abroad = rules::find_rows_outside_countries(intent.bounds.as_deref(), &intent.rows);
    if !abroad.is_empty() {
        events::insert_excluded_rows(connection, run.key, &ExcludedRows::from_skipped(&abroad, COUNTRY)).await?;
        return Ok(Some(Permit::OutsideCountries(abroad)));
    }
    let capped = contacts::find_rows_over_cap(connection, now, run, intent).await?;
    if !capped.is_empty() {
        events::insert_excluded_rows(connection, run.key, &ExcludedRows::from_skipped(&capped, CAPPED)).await?;
        return Ok(Some(Permit::Capped(capped)));
    }
    let Some(bounds) = &intent.bounds else { return Ok(None) };
    let (budget, rows) = (Some(&bounds.budget).filter(|budget| !budget.is_unlimited()), intent.rows.len());
    let spending = match budget {
        Some(budget) => Some(check_budget(connection, run, budget, intent).await?),
        None => None,
    };
    let day = match &bounds.per_day {
        Some(per_day) => check_daily_limit(connection, now, run, per_day, rows, departs_at).await?,
        None => None,
    };
    let (run_spending, exceeded) = spending.map_or((None, None), |(spending, exceeded)| (Some(spending), exceeded));
    if let Some((fits, bound)) = tighter_bound(exceeded, day) {
        return Ok(Some(Permit::BoundExceeded { fits, bound }));
    }
    if let Some(spending) = run_spending {
        charge_intent(connection, run.key, spending, intent).await?;
    }
    if let Some(per_day) = &bounds.per_day {
        add_to_daily_counts(connection, now, run.key, per_day, rows).await?;
    }
    Ok(None)
}

/// Discards the derived totals of a run after a claim, and deletes contacts that are too old to count.
pub(super) async fn reset_after_claim(connection: &mut Connection, now: Now, run: RunId) -> Result<(), StatementError> {
    discard_totals(connection, run).await?;
    contacts::delete_old_contacts(connection, now).await
}

/// Releases the budget, daily limits and frequency caps that unsent messages of a settled envelope had used. A message
/// with a receipt that arrived before the answer might count nevertheless.
pub(super) async fn release_after_settlement(
    connection: &mut Connection,
    run: RunId,
    envelope: u32,
    outcomes: &[OperationOutcome],
) -> Result<(), StatementError> {
    if outcomes.iter().all(may_have_been_sent) || !has_counts(connection, run).await? {
        return Ok(());
    }
    if counted_messages::has_receipts_of_unsent_rows(connection, run, envelope, outcomes).await? {
        return reset_after_merge(connection, run, envelope).await;
    }
    refund_unsent(connection, run, envelope, outcomes).await?;
    subtract_unsent(connection, run, envelope, outcomes).await?;
    contacts::refresh_contacts(connection, run, envelope).await
}

/// Discards the derived totals and refreshes the contacts once an envelope's outcomes have changed.
pub(super) async fn reset_after_merge(
    connection: &mut Connection,
    run: RunId,
    envelope: u32,
) -> Result<(), StatementError> {
    reset_envelopes(connection, run, BTreeSet::from([envelope])).await
}

/// Discards the run's derived totals and refreshes the contacts of these envelopes.
pub(super) async fn reset_envelopes(
    connection: &mut Connection,
    run: RunId,
    envelopes: BTreeSet<u32>,
) -> Result<(), StatementError> {
    discard_totals(connection, run).await?;
    for envelope in envelopes {
        contacts::refresh_contacts(connection, run, envelope).await?;
    }
    Ok(())
}

/// Whether the ledger stores totals of a run, or an index of contacts that includes the run's messages.
pub(super) async fn has_counts(connection: &mut Connection, run: RunId) -> Result<bool, StatementError> {
    let exists = scalar(
        "SELECT EXISTS (SELECT 1 FROM spending WHERE run = $1) OR EXISTS (SELECT 1 FROM days WHERE run = $1)
             OR EXISTS (SELECT 1 FROM contacts_kept JOIN runs USING (loopback) WHERE runs.key = $1)",
    );
    Ok(exists.bind(run.0).fetch_one(connection).await?)
}

/// Discards the run's derived totals after row events, and refreshes the contacts of their envelopes.
pub(super) async fn reset_after_events(
    connection: &mut Connection,
    run: RunId,
    events: &[NewRowEvent],
) -> Result<(), StatementError> {
    reset_envelopes(connection, run, events.iter().map(|event| event.envelope).collect()).await
}

/// Discards the totals of a run; the next use computes them again.
async fn discard_totals(connection: &mut Connection, run: RunId) -> Result<(), StatementError> {
    discard_spending(connection, run).await?;
    discard_daily_counts(connection, run).await
}

/// Returns the spending of a run and, if the intent exceeds the budget, the number of its messages that fit.
pub(super) async fn check_budget(
    connection: &mut Connection,
    run: &Run,
    budget: &Budget,
    intent: &Intent,
) -> Result<(Spending, Option<(usize, Bound)>), StatementError> {
    let (spending, others) = load_spending(connection, run).await?;
    let exceeded = rules::find_exceeded_budget(budget, spending.add_spending(others), intent.rows.len(), &intent.costs);
    Ok((spending, exceeded))
}

/// Adds an intent to the spending of its run.
pub(super) async fn charge_intent(
    connection: &mut Connection,
    run: RunId,
    spending: Spending,
    intent: &Intent,
) -> Result<(), StatementError> {
    store_spending(connection, run, spending.add_spending(intended_spending(intent.rows.len(), &intent.costs))).await
}

/// Subtracts rejected and unsent messages of a settled envelope, if the spending of its run is stored.
pub(super) async fn refund_unsent(
    connection: &mut Connection,
    run: RunId,
    envelope: u32,
    outcomes: &[OperationOutcome],
) -> Result<(), StatementError> {
    let record = query(
        "SELECT spending.recipients, spending.cost, envelopes.costs FROM spending JOIN envelopes USING (run)
         WHERE run = $1 AND envelope = $2",
    )
    .bind(run.0)
    .bind(i64::from(envelope))
    .fetch_optional(&mut *connection)
    .await?;
    let Some(record) = record else { return Ok(()) };
    let costs = record.try_get::<Option<&[u8]>, _>(2)?.map_or_else(|| Ok(Vec::new()), unpack_costs)?;
    let spending = Spending { recipients: to_unsigned(record.try_get(0)?), cost: parse_amount(record.try_get(1)?)? };
    store_spending(connection, run, spending.subtract_spending(refunded_spending(outcomes, &costs))).await
}

/// Stores the spending of a run before its envelopes are deleted.
pub(super) async fn freeze_spending(connection: &mut Connection, run: RunId) -> Result<(), StatementError> {
    let counted = count_spending(connection, run).await?;
    store_spending(connection, run, counted).await
}

/// Discards the stored spending of a run; the next use computes it again.
pub(super) async fn discard_spending(connection: &mut Connection, run: RunId) -> Result<(), StatementError> {
    query("DELETE FROM spending WHERE run = $1").bind(run.0).execute(connection).await?;
    Ok(())
}

/// Selects these columns of the runs with the same limits as the run `$1`, whose scope is `$2` to `$4`.
macro_rules! select_runs_in_scope {
    ($columns:literal, $joined:literal) => {
        concat!(
            "SELECT runs.key, runs.owner IS NOT NULL, ",
            $columns,
            " FROM runs LEFT JOIN ",
            $joined,
            " WHERE runs.key = $1 OR (campaign = $2 AND edition = $3 AND loopback = $4 AND live AND NOT shared)"
        )
    };
}

/// Binds a run and its scope to a statement of `select_runs_in_scope!`.
fn bind_scope(statement: &'static str, run: &Run) -> SqlStatement {
    let scope = BudgetScope::for_run(run);
    query(statement)
        .bind(run.key.0)
        .bind(scope.map(|scope| scope.campaign))
        .bind(scope.map(|scope| scope.edition))
        .bind(scope.map(|scope| scope.loopback))
}

/// Loads the spending of a run and of the other runs with the same budget.
async fn load_spending(connection: &mut Connection, run: &Run) -> Result<(Spending, Spending), StatementError> {
    let statement = select_runs_in_scope!("spending.recipients, spending.cost", "spending ON spending.run = runs.key");
    let runs = bind_scope(statement, run).fetch_all(&mut *connection).await?;
    let (mut run_spending, mut others) = (Spending::default(), Spending::default());
    for row in runs {
        let (key, has_owner): (i64, bool) = (row.try_get(0)?, row.try_get(1)?);
        let recipients: Option<i64> = row.try_get(2)?;
        let spending = match recipients.zip(row.try_get::<Option<&str>, _>(3)?) {
            Some((recipients, cost)) => Spending { recipients: to_unsigned(recipients), cost: parse_amount(cost)? },
            None => {
                let counted = count_spending(connection, RunId(key)).await?;
                // Another process with a claimed run stores its own spending, or has no bounds and stores none.
                if !has_owner {
                    store_spending(connection, RunId(key), counted).await?;
                }
                counted
            }
        };
        if key == run.key.0 { run_spending = spending } else { others = others.add_spending(spending) }
    }
    Ok((run_spending, others))
}

/// Computes the spending of a run from its envelopes and receipts.
async fn count_spending(connection: &mut Connection, run: RunId) -> Result<Spending, StatementError> {
    let mut sum = Spending::default();
    let add = |message: CountedMessage| sum = sum.add_spending(Spending { recipients: 1, cost: message.cost });
    counted_messages::visit_messages(connection, run, add).await?;
    Ok(sum)
}

async fn store_spending(connection: &mut Connection, run: RunId, spending: Spending) -> Result<(), StatementError> {
    let Spending { recipients, cost } = spending;
    query(
        "INSERT INTO spending (run, recipients, cost) VALUES ($1, $2, $3)
         ON CONFLICT (run) DO UPDATE SET recipients = excluded.recipients, cost = excluded.cost",
    )
    .bind(run.0)
    .bind(to_signed(recipients))
    .bind(cost.to_json_digits())
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns the number of messages of an intent that may still be sent today; `None` if all of them may.
pub(super) async fn check_daily_limit(
    connection: &mut Connection,
    now: Now,
    run: &Run,
    per_day: &DailyLimits,
    rows: usize,
    departs_at: Timestamp,
) -> Result<Option<(usize, Bound)>, StatementError> {
    let sent_by_day = load_sent_by_day(connection, run, per_day).await?;
    Ok(find_exceeded_daily_limit(per_day, &sent_by_day, timestamp_from_micros(now.0)?, departs_at, rows))
}

/// Adds `rows` messages to a run's count for today.
pub(super) async fn add_to_daily_counts(
    connection: &mut Connection,
    now: Now,
    run: RunId,
    per_day: &DailyLimits,
    rows: usize,
) -> Result<(), StatementError> {
    // Counts in other time zones are computed again when they are needed.
    query("DELETE FROM days WHERE run = $1 AND zone <> $2")
        .bind(run.0)
        .bind(per_day.zone_name())
        .execute(&mut *connection)
        .await?;
    query(
        "INSERT INTO days (run, zone, day, sent) VALUES ($1, $2, $3, $4)
         ON CONFLICT (run, zone, day) DO UPDATE SET sent = days.sent + excluded.sent",
    )
    .bind(run.0)
    .bind(per_day.zone_name())
    .bind(per_day.local_date(timestamp_from_micros(now.0)?).to_string())
    .bind(to_signed(rows as u64))
    .execute(connection)
    .await?;
    Ok(())
}

/// Subtracts unsent messages of a settled envelope, if the daily counts of its run are stored.
pub(super) async fn subtract_unsent(
    connection: &mut Connection,
    run: RunId,
    envelope: u32,
    outcomes: &[OperationOutcome],
) -> Result<(), StatementError> {
    // The counts of a zone are stored if it has a row without a day.
    let zones = query(
        "SELECT days.zone, envelopes.begun_at FROM days JOIN envelopes USING (run)
         WHERE run = $1 AND days.day = '' AND envelope = $2",
    )
    .bind(run.0)
    .bind(i64::from(envelope))
    .fetch_all(&mut *connection)
    .await?;
    let unsent = outcomes.iter().filter(|outcome| !may_have_been_sent(outcome)).count() as u64;
    for row in zones {
        let zone: String = row.try_get(0)?;
        let time_zone = TimeZone::get(&zone).map_err(|error| LedgerError::Unreadable(error.to_string()))?;
        let day = timestamp_from_micros(row.try_get(1)?)?.to_zoned(time_zone).date().to_string();
        query("UPDATE days SET sent = sent - $1 WHERE run = $2 AND zone = $3 AND day = $4")
            .bind(to_signed(unsent))
            .bind(run.0)
            .bind(zone)
            .bind(day)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Discards the daily counts of a run.
pub(super) async fn discard_daily_counts(connection: &mut Connection, run: RunId) -> Result<(), StatementError> {
    query("DELETE FROM days WHERE run = $1").bind(run.0).execute(connection).await?;
    Ok(())
}

/// Loads the number of messages that an edition sent on each day. Computes missing counts, and stores them.
async fn load_sent_by_day(
    connection: &mut Connection,
    run: &Run,
    per_day: &DailyLimits,
) -> Result<BTreeMap<Date, u64>, StatementError> {
    let statement = select_runs_in_scope!("days.day, days.sent", "days ON days.run = runs.key AND days.zone = $5");
    let records = bind_scope(statement, run).bind(per_day.zone_name()).fetch_all(&mut *connection).await?;
    let mut totals = BTreeMap::<Date, u64>::new();
    for row in records {
        let (key, has_owner) = (RunId(row.try_get(0)?), row.try_get::<bool, _>(1)?);
        let Some(day) = row.try_get::<Option<String>, _>(2)? else {
            let counted = count_sent_by_day(connection, key, per_day).await?;
            // Another process with a claimed run stores its own counts, or has no daily limit and stores none.
            if key == run.key || !has_owner {
                store_daily_counts(connection, key, per_day, &counted).await?;
            }
            counted.into_iter().for_each(|(day, sent)| *totals.entry(day).or_default() += sent);
            continue;
        };
        if !day.is_empty() {
            let day: Date = day.parse().map_err(|_| LedgerError::Unreadable(format!("`{day}` is not a date")))?;
            *totals.entry(day).or_default() += to_unsigned(row.try_get(3)?);
        }
    }
    Ok(totals)
}

/// Counts the messages that a run sent on each day, using its envelopes and receipts.
async fn count_sent_by_day(
    connection: &mut Connection,
    run: RunId,
    per_day: &DailyLimits,
) -> Result<BTreeMap<Date, u64>, StatementError> {
    let mut days = BTreeMap::<Date, u64>::new();
    let add = |message: CountedMessage| *days.entry(per_day.local_date(message.begun_at)).or_default() += 1;
    counted_messages::visit_messages(connection, run, add).await?;
    Ok(days)
}

/// Stores the daily counts of a run. A record without a day marks the counts as stored, even if the run sent nothing.
async fn store_daily_counts(
    connection: &mut Connection,
    run: RunId,
    per_day: &DailyLimits,
    days: &BTreeMap<Date, u64>,
) -> Result<(), StatementError> {
    let named_days = days.iter().map(|(day, sent)| (day.to_string(), *sent));
    for (day, sent) in named_days.chain([(String::new(), 0)]) {
        query(
            "INSERT INTO days (run, zone, day, sent) VALUES ($1, $2, $3, $4)
             ON CONFLICT (run, zone, day) DO UPDATE SET sent = excluded.sent",
        )
        .bind(run.0)
        .bind(per_day.zone_name())
        .bind(day)
        .bind(to_signed(sent))
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

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

/// Reserves a rate-limit slot for an assistant's inquiry, if a slot becomes free within `longest_wait`.
async fn reserve_inquiry(
    connection: &mut Connection,
    now: Now,
    account: &Allowance,
    longest_wait: Duration,
) -> Result<SlotPermit, StatementError> {
    let inquiries = inquiry_account_name(&account.name);
    let before = InquiryRateLimit {
        account: load_rate_limit(connection, &account.name).await?,
        inquiries: load_rate_limit(connection, &inquiries).await?,
    };
    let (after, permit) = before.reserve_inquiry(now.0, account.rate, longest_wait);
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
