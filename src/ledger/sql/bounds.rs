//! What intents have to keep within, and what follows from what becomes of them.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::change::{Failure, Now};
use super::dialect::Connection;
use super::{contacts, days, left_out, spending};
use crate::domain::Outcome;
use crate::ledger::rules::{is_out, nearer};
use crate::ledger::{CAPPED, Intent, LeftOut, NewRowEvent, Permit, Run, RunId};

/// Why an intent that leaves then may not be recorded as it is, if it has bounds and goes over them; else what it uses is taken.
pub(super) async fn take(
    connection: &mut Connection,
    now: Now,
    run: &Run,
    (intent, leaves): (&Intent, Timestamp),
) -> Result<Option<Permit>, Failure> {
    let capped = contacts::held_by_caps(connection, now, run, intent).await?;
    if !capped.is_empty() {
        left_out::add(connection, run.key, &LeftOut::skipped(&capped, CAPPED)).await?;
        return Ok(Some(Permit::Capped(capped)));
    }
    let Some(bounds) = &intent.bounds else { return Ok(None) };
    let (budget, rows) = (Some(&bounds.budget).filter(|budget| !budget.is_unlimited()), intent.rows.len());
    let spent = match budget {
        Some(budget) => Some(spending::over(connection, run, (budget, intent)).await?),
        None => None,
    };
    let day = match &bounds.per_day {
        Some(per_day) => days::over(connection, now, run, (per_day, rows, leaves)).await?,
        None => None,
    };
    let (own, over) = spent.map_or((None, None), |(own, over)| (Some(own), over));
    if let Some((fits, bound)) = nearer(over, day) {
        return Ok(Some(Permit::Over { fits, bound }));
    }
    if let Some(own) = own {
        spending::take(connection, run.key, (own, intent)).await?;
    }
    if let Some(per_day) = &bounds.per_day {
        days::add(connection, now, run.key, (per_day, rows)).await?;
    }
    Ok(None)
}

/// A run was taken.
pub(super) async fn claimed(connection: &mut Connection, now: Now, run: RunId) -> Result<(), Failure> {
    forget(connection, run).await?;
    contacts::clear(connection, now).await
}

/// An intent was settled: what did not go out uses nothing.
pub(super) async fn settled(
    connection: &mut Connection,
    (run, envelope): (RunId, u32),
    outcomes: &[Outcome],
) -> Result<(), Failure> {
    if outcomes.iter().all(is_out) {
        return Ok(());
    }
    spending::give_back(connection, (run, envelope), outcomes).await?;
    days::give_back(connection, (run, envelope), outcomes).await?;
    contacts::renew(connection, run, envelope).await
}

/// What was known of an envelope is another thing now.
pub(super) async fn merged(connection: &mut Connection, run: RunId, envelope: u32) -> Result<(), Failure> {
    forget(connection, run).await?;
    contacts::renew(connection, run, envelope).await
}

/// Something was learnt or decided about messages.
pub(super) async fn learnt(connection: &mut Connection, run: RunId, events: &[NewRowEvent]) -> Result<(), Failure> {
    forget(connection, run).await?;
    for envelope in events.iter().map(|event| event.envelope).collect::<BTreeSet<u32>>() {
        contacts::renew(connection, run, envelope).await?;
    }
    Ok(())
}

/// Keeps the sums of a run no more: they are made anew when somebody asks.
async fn forget(connection: &mut Connection, run: RunId) -> Result<(), Failure> {
    spending::forget(connection, run).await?;
    days::forget(connection, run).await
}
