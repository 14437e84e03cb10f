//! How many messages of an edition left on each day: a sum by run and day, kept while intents with a limit of the day come, and
//! made anew of the run's envelopes where it is not kept.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use sqlx::Row as _;

use super::change::{Now, StatementError};
use super::dialect::Connection;
use super::runs::{timestamp_from_micros, to_signed, to_unsigned};
use super::statement::query;
use super::{envelopes, events};
use crate::calendar::DailyLimits;
use crate::domain::OperationOutcome;
use crate::ledger::rules::{BudgetScope, envelope_spending, find_exceeded_day, may_have_been_sent};
use crate::ledger::{Bound, LedgerError, RowEvents, Run, RunId};

/// Envelopes that are read at once.
const ENVELOPES_PER_READ: u32 = 256;

/// How many messages of an intent still leave today, where that is not all of them.
pub(super) async fn check_daily_limit(
    connection: &mut Connection,
    now: Now,
    run: &Run,
    (per_day, rows, leaves): (&DailyLimits, usize, Timestamp),
) -> Result<Option<(usize, Bound)>, StatementError> {
    let left = load_sent_by_day(connection, run, per_day).await?;
    Ok(find_exceeded_day(per_day, &left, (timestamp_from_micros(now.0)?, leaves), rows))
}

/// Counts messages that leave today.
pub(super) async fn count_sent_today(
    connection: &mut Connection,
    now: Now,
    run: RunId,
    (per_day, rows): (&DailyLimits, usize),
) -> Result<(), StatementError> {
    // What nobody counts on other clocks any more is made anew when somebody does.
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

/// Gives back what did not go out of an envelope that is settled, where the days of its run are kept.
pub(super) async fn uncount_unsent(
    connection: &mut Connection,
    (run, envelope): (RunId, u32),
    outcomes: &[OperationOutcome],
) -> Result<(), StatementError> {
    let kept = query(
        "SELECT days.zone, envelopes.begun_at FROM days JOIN envelopes USING (run)
         WHERE run = $1 AND days.day = '' AND envelope = $2",
    )
    .bind(run.0)
    .bind(i64::from(envelope))
    .fetch_all(&mut *connection)
    .await?;
    let back = outcomes.iter().filter(|outcome| !may_have_been_sent(outcome)).count() as u64;
    for row in kept {
        let zone: String = row.try_get(0)?;
        let of = TimeZone::get(&zone).map_err(|error| LedgerError::Unreadable(error.to_string()))?;
        let day = timestamp_from_micros(row.try_get(1)?)?.to_zoned(of).date().to_string();
        query("UPDATE days SET sent = sent - $1 WHERE run = $2 AND zone = $3 AND day = $4")
            .bind(to_signed(back))
            .bind(run.0)
            .bind(zone)
            .bind(day)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Keeps the days of a run no more.
pub(super) async fn discard_days(connection: &mut Connection, run: RunId) -> Result<(), StatementError> {
    query("DELETE FROM days WHERE run = $1").bind(run.0).execute(connection).await?;
    Ok(())
}

/// How many messages of an edition left on each day.
async fn load_sent_by_day(
    connection: &mut Connection,
    run: &Run,
    per_day: &DailyLimits,
) -> Result<BTreeMap<Date, u64>, StatementError> {
    let sharing = BudgetScope::for_run(run);
    let found = query(
        "SELECT runs.key, runs.owner IS NOT NULL, days.day, days.sent
         FROM runs LEFT JOIN days ON days.run = runs.key AND days.zone = $5
         WHERE runs.key = $1 OR (campaign = $2 AND edition = $3 AND loopback = $4 AND live AND NOT shared)",
    )
    .bind(run.key.0)
    .bind(sharing.map(|sharing| sharing.campaign))
    .bind(sharing.map(|sharing| sharing.edition))
    .bind(sharing.map(|sharing| sharing.loopback))
    .bind(per_day.zone_name())
    .fetch_all(&mut *connection)
    .await?;
    let mut left = BTreeMap::<Date, u64>::new();
    for row in found {
        let (key, has_owner) = (RunId(row.try_get(0)?), row.try_get::<bool, _>(1)?);
        let Some(day) = row.try_get::<Option<String>, _>(2)? else {
            let counted = count_sent_by_day(connection, key, per_day).await?;
            // Another process that has a run keeps its days itself, or has no such limit and keeps none.
            if key == run.key || !has_owner {
                store_days(connection, key, per_day, &counted).await?;
            }
            counted.into_iter().for_each(|(day, sent)| *left.entry(day).or_default() += sent);
            continue;
        };
        if !day.is_empty() {
            let day: Date = day.parse().map_err(|_| LedgerError::Unreadable(format!("`{day}` is not a date")))?;
            *left.entry(day).or_default() += to_unsigned(row.try_get(3)?);
        }
    }
    Ok(left)
}

/// How many messages of a run left on each day, by its envelopes.
async fn count_sent_by_day(
    connection: &mut Connection,
    run: RunId,
    per_day: &DailyLimits,
) -> Result<BTreeMap<Date, u64>, StatementError> {
    let events = RowEvents::from(events::load_events(&mut *connection, run).await?);
    let (mut days, mut next) = (BTreeMap::<Date, u64>::new(), 1);
    loop {
        let block =
            envelopes::load_envelopes(&mut *connection, run, next..=next.saturating_add(ENVELOPES_PER_READ)).await?;
        let Some(last) = block.last() else { return Ok(days) };
        next = last.envelope.saturating_add(1);
        for envelope in &block {
            *days.entry(per_day.local_date(envelope.begun_at)).or_default() +=
                envelope_spending(envelope, &events).recipients;
        }
    }
}

async fn store_days(
    connection: &mut Connection,
    run: RunId,
    per_day: &DailyLimits,
    days: &BTreeMap<Date, u64>,
) -> Result<(), StatementError> {
    let named = days.iter().map(|(day, sent)| (day.to_string(), *sent));
    for (day, sent) in named.chain([(String::new(), 0)]) {
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
