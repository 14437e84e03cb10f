//! What intents have to keep within, and what follows from what becomes of them.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::change::{Now, StatementError};
use super::dialect::Connection;
use super::{contacts, days, left_out, spending};
use crate::domain::OperationOutcome;
use crate::ledger::rules::{may_have_been_sent, tighter_bound};
use crate::ledger::{CAPPED, ExcludedRows, Intent, NewRowEvent, Permit, Run, RunId};

/// Why an intent that leaves then may not be recorded as it is, if it has bounds and goes over them; else what it uses is taken.
pub(super) async fn apply_bounds(
    connection: &mut Connection,
    now: Now,
    run: &Run,
    (intent, leaves): (&Intent, Timestamp),
) -> Result<Option<Permit>, StatementError> {
    let capped = contacts::find_rows_over_cap(connection, now, run, intent).await?;
    if !capped.is_empty() {
        left_out::insert_skipped_rows(connection, run.key, &ExcludedRows::from_skipped(&capped, CAPPED)).await?;
        return Ok(Some(Permit::Capped(capped)));
    }
    let Some(bounds) = &intent.bounds else { return Ok(None) };
    let (budget, rows) = (Some(&bounds.budget).filter(|budget| !budget.is_unlimited()), intent.rows.len());
    let spent = match budget {
        Some(budget) => Some(spending::check_budget(connection, run, (budget, intent)).await?),
        None => None,
    };
    let day = match &bounds.per_day {
        Some(per_day) => days::check_daily_limit(connection, now, run, (per_day, rows, leaves)).await?,
        None => None,
    };
    let (own, over) = spent.map_or((None, None), |(own, over)| (Some(own), over));
    if let Some((fits, bound)) = tighter_bound(over, day) {
        return Ok(Some(Permit::BoundExceeded { fits, bound }));
    }
    if let Some(own) = own {
        spending::charge_intent(connection, run.key, (own, intent)).await?;
    }
    if let Some(per_day) = &bounds.per_day {
        days::count_sent_today(connection, now, run.key, (per_day, rows)).await?;
    }
    Ok(None)
}

/// A run was taken.
pub(super) async fn reset_after_claim(connection: &mut Connection, now: Now, run: RunId) -> Result<(), StatementError> {
    discard_totals(connection, run).await?;
    contacts::delete_old_contacts(connection, now).await
}

/// An intent was settled: what did not go out uses nothing.
pub(super) async fn release_after_settlement(
    connection: &mut Connection,
    (run, envelope): (RunId, u32),
    outcomes: &[OperationOutcome],
) -> Result<(), StatementError> {
    if outcomes.iter().all(may_have_been_sent) {
        return Ok(());
    }
    spending::refund_unsent(connection, (run, envelope), outcomes).await?;
    days::uncount_unsent(connection, (run, envelope), outcomes).await?;
    contacts::refresh_contacts(connection, run, envelope).await
}

/// What was known of an envelope is another thing now.
pub(super) async fn reset_after_merge(
    connection: &mut Connection,
    run: RunId,
    envelope: u32,
) -> Result<(), StatementError> {
    discard_totals(connection, run).await?;
    contacts::refresh_contacts(connection, run, envelope).await
}

/// Something was learnt or decided about messages.
pub(super) async fn reset_after_events(
    connection: &mut Connection,
    run: RunId,
    events: &[NewRowEvent],
) -> Result<(), StatementError> {
    discard_totals(connection, run).await?;
    for envelope in events.iter().map(|event| event.envelope).collect::<BTreeSet<u32>>() {
        contacts::refresh_contacts(connection, run, envelope).await?;
    }
    Ok(())
}

/// Keeps the sums of a run no more: they are made anew when somebody asks.
async fn discard_totals(connection: &mut Connection, run: RunId) -> Result<(), StatementError> {
    spending::discard_spending(connection, run).await?;
    days::discard_days(connection, run).await
}
