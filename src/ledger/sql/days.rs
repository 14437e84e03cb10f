//! How many messages of an edition left on each day: a sum by run and day, kept while intents with a limit of the day come, and
//! made anew of the run's envelopes where it is not kept.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use sqlx::Row as _;

use super::change::{Failure, Now};
use super::dialect::Connection;
use super::runs::{instant, signed, unsigned};
use super::statement::query;
use super::{envelopes, events};
use crate::calendar::PerDay;
use crate::domain::Outcome;
use crate::ledger::rules::{BudgetScope, is_out, over_day, spent};
use crate::ledger::{Bound, LedgerError, RowEvents, Run, RunId};

/// Envelopes that are read at once.
const BLOCK: u32 = 256;

/// How many messages of an intent still leave today, where that is not all of them.
pub(super) async fn over(
    connection: &mut Connection,
    now: Now,
    run: &Run,
    (per_day, rows, leaves): (&PerDay, usize, Timestamp),
) -> Result<Option<(usize, Bound)>, Failure> {
    let left = left(connection, run, per_day).await?;
    Ok(over_day(per_day, &left, (instant(now.0)?, leaves), rows))
}

/// Counts messages that leave today.
pub(super) async fn add(
    connection: &mut Connection,
    now: Now,
    run: RunId,
    (per_day, rows): (&PerDay, usize),
) -> Result<(), Failure> {
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
    .bind(per_day.day(instant(now.0)?).to_string())
    .bind(signed(rows as u64))
    .execute(connection)
    .await?;
    Ok(())
}

/// Gives back what did not go out of an envelope that is settled, where the days of its run are kept.
pub(super) async fn give_back(
    connection: &mut Connection,
    (run, envelope): (RunId, u32),
    outcomes: &[Outcome],
) -> Result<(), Failure> {
    let kept = query(
        "SELECT days.zone, envelopes.begun_at FROM days JOIN envelopes USING (run)
         WHERE run = $1 AND days.day = '' AND envelope = $2",
    )
    .bind(run.0)
    .bind(i64::from(envelope))
    .fetch_all(&mut *connection)
    .await?;
    let back = outcomes.iter().filter(|outcome| !is_out(outcome)).count() as u64;
    for row in kept {
        let zone: String = row.try_get(0)?;
        let of = TimeZone::get(&zone).map_err(|error| LedgerError::Unreadable(error.to_string()))?;
        let day = instant(row.try_get(1)?)?.to_zoned(of).date().to_string();
        query("UPDATE days SET sent = sent - $1 WHERE run = $2 AND zone = $3 AND day = $4")
            .bind(signed(back))
            .bind(run.0)
            .bind(zone)
            .bind(day)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Keeps the days of a run no more.
pub(super) async fn forget(connection: &mut Connection, run: RunId) -> Result<(), Failure> {
    query("DELETE FROM days WHERE run = $1").bind(run.0).execute(connection).await?;
    Ok(())
}

/// How many messages of an edition left on each day.
async fn left(connection: &mut Connection, run: &Run, per_day: &PerDay) -> Result<BTreeMap<Date, u64>, Failure> {
    let sharing = BudgetScope::of(run);
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
            let counted = count(connection, key, per_day).await?;
            // Another process that has a run keeps its days itself, or has no such limit and keeps none.
            if key == run.key || !has_owner {
                keep(connection, key, per_day, &counted).await?;
            }
            counted.into_iter().for_each(|(day, sent)| *left.entry(day).or_default() += sent);
            continue;
        };
        if !day.is_empty() {
            let day: Date = day.parse().map_err(|_| LedgerError::Unreadable(format!("`{day}` is not a date")))?;
            *left.entry(day).or_default() += unsigned(row.try_get(3)?);
        }
    }
    Ok(left)
}

/// How many messages of a run left on each day, by its envelopes.
async fn count(connection: &mut Connection, run: RunId, per_day: &PerDay) -> Result<BTreeMap<Date, u64>, Failure> {
    let events = RowEvents::from(events::read(&mut *connection, run).await?);
    let (mut days, mut next) = (BTreeMap::<Date, u64>::new(), 1);
    loop {
        let block = envelopes::read(&mut *connection, run, next..=next.saturating_add(BLOCK)).await?;
        let Some(last) = block.last() else { return Ok(days) };
        next = last.envelope.saturating_add(1);
        for envelope in &block {
            *days.entry(per_day.day(envelope.begun_at)).or_default() += spent(envelope, &events).recipients;
        }
    }
}

async fn keep(
    connection: &mut Connection,
    run: RunId,
    per_day: &PerDay,
    days: &BTreeMap<Date, u64>,
) -> Result<(), Failure> {
    let named = days.iter().map(|(day, sent)| (day.to_string(), *sent));
    for (day, sent) in named.chain([(String::new(), 0)]) {
        query(
            "INSERT INTO days (run, zone, day, sent) VALUES ($1, $2, $3, $4)
             ON CONFLICT (run, zone, day) DO UPDATE SET sent = excluded.sent",
        )
        .bind(run.0)
        .bind(per_day.zone_name())
        .bind(day)
        .bind(signed(sent))
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}
