//! What the runs of an edition have used of their budget: a sum by run, kept while intents with bounds come, and made
//! anew of the run's envelopes where it is not kept.

use sqlx::Row as _;

use super::change::StatementError;
use super::dialect::Connection;
use super::runs::{to_signed, to_unsigned};
use super::statement::query;
use super::{envelopes, events};
use crate::domain::{Budget, OperationOutcome, Spending};
use crate::ledger::pack::{parse_amount, unpack_costs};
use crate::ledger::rules::{self, BudgetScope, envelope_spending, intended_spending, refunded_spending};
use crate::ledger::{Bound, Intent, RowEvents, Run, RunId};

/// Envelopes that are read at once.
const ENVELOPES_PER_READ: u32 = 256;

/// What the run of an intent has used, and how much of the intent keeps within its budget, where that is not all of it.
pub(super) async fn check_budget(
    connection: &mut Connection,
    run: &Run,
    (budget, intent): (&Budget, &Intent),
) -> Result<(Spending, Option<(usize, Bound)>), StatementError> {
    let (own, others) = load_spending(connection, run).await?;
    Ok((own, rules::find_exceeded_budget(budget, own.add_spending(others), intent.rows.len(), &intent.costs)))
}

/// Takes what an intent of a run uses, which has used so much by now.
pub(super) async fn charge_intent(
    connection: &mut Connection,
    run: RunId,
    (own, intent): (Spending, &Intent),
) -> Result<(), StatementError> {
    store_spending(connection, run, own.add_spending(intended_spending(intent.rows.len(), &intent.costs))).await
}

/// Gives back what was refused and what was not sent of an envelope that is settled, where its run's sum is kept.
pub(super) async fn refund_unsent(
    connection: &mut Connection,
    (run, envelope): (RunId, u32),
    outcomes: &[OperationOutcome],
) -> Result<(), StatementError> {
    let kept = query(
        "SELECT spending.recipients, spending.cost, envelopes.costs FROM spending JOIN envelopes USING (run)
         WHERE run = $1 AND envelope = $2",
    )
    .bind(run.0)
    .bind(i64::from(envelope))
    .fetch_optional(&mut *connection)
    .await?;
    let Some(kept) = kept else { return Ok(()) };
    let costs = kept.try_get::<Option<&[u8]>, _>(2)?.map_or_else(|| Ok(Vec::new()), unpack_costs)?;
    let spending = Spending { recipients: to_unsigned(kept.try_get(0)?), cost: parse_amount(kept.try_get(1)?)? };
    store_spending(connection, run, spending.subtract_spending(refunded_spending(outcomes, &costs))).await
}

/// Keeps the sum of a run whose envelopes are about to go.
pub(super) async fn freeze_spending(connection: &mut Connection, run: RunId) -> Result<(), StatementError> {
    let counted = count_spending(connection, run).await?;
    store_spending(connection, run, counted).await
}

/// Keeps the sum of a run no more: it is made anew when somebody asks.
pub(super) async fn discard_spending(connection: &mut Connection, run: RunId) -> Result<(), StatementError> {
    query("DELETE FROM spending WHERE run = $1").bind(run.0).execute(connection).await?;
    Ok(())
}

/// What a run has used, and what the others have that use its budget.
async fn load_spending(connection: &mut Connection, run: &Run) -> Result<(Spending, Spending), StatementError> {
    let sharing = BudgetScope::for_run(run);
    let runs = query(
        "SELECT runs.key, runs.owner IS NOT NULL, spending.recipients, spending.cost
         FROM runs LEFT JOIN spending ON spending.run = runs.key
         WHERE runs.key = $1 OR (campaign = $2 AND edition = $3 AND loopback = $4 AND live AND NOT shared)",
    )
    .bind(run.key.0)
    .bind(sharing.map(|sharing| sharing.campaign))
    .bind(sharing.map(|sharing| sharing.edition))
    .bind(sharing.map(|sharing| sharing.loopback))
    .fetch_all(&mut *connection)
    .await?;
    let (mut own, mut others) = (Spending::default(), Spending::default());
    for row in runs {
        let (key, has_owner): (i64, bool) = (row.try_get(0)?, row.try_get(1)?);
        let recipients: Option<i64> = row.try_get(2)?;
        let spending = match recipients.zip(row.try_get::<Option<&str>, _>(3)?) {
            Some((recipients, cost)) => Spending { recipients: to_unsigned(recipients), cost: parse_amount(cost)? },
            None => {
                let counted = count_spending(connection, RunId(key)).await?;
                // Another process that has a run keeps its sum itself, or has no bounds and keeps none.
                if !has_owner {
                    store_spending(connection, RunId(key), counted).await?;
                }
                counted
            }
        };
        if key == run.key.0 { own = spending } else { others = others.add_spending(spending) }
    }
    Ok((own, others))
}

/// What a run has used, by its envelopes.
async fn count_spending(connection: &mut Connection, run: RunId) -> Result<Spending, StatementError> {
    let events = RowEvents::from(events::load_events(&mut *connection, run).await?);
    let (mut sum, mut next) = (Spending::default(), 1);
    loop {
        let block =
            envelopes::load_envelopes(&mut *connection, run, next..=next.saturating_add(ENVELOPES_PER_READ)).await?;
        let Some(last) = block.last() else { return Ok(sum) };
        next = last.envelope.saturating_add(1);
        sum = block.iter().map(|envelope| envelope_spending(envelope, &events)).fold(sum, Spending::add_spending);
    }
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
