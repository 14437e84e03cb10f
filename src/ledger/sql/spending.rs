//! What the runs of an edition have used of their budget: a sum by run, kept while intents with bounds come, and made
//! anew of the run's envelopes where it is not kept.

use sqlx::Row as _;

use super::change::Failure;
use super::dialect::Connection;
use super::runs::{signed, unsigned};
use super::statement::query;
use super::{envelopes, events};
use crate::domain::{Budget, Outcome, Spending};
use crate::ledger::pack::{amount, unpack_costs};
use crate::ledger::rules::{self, BudgetScope, given_back, spent, taken};
use crate::ledger::{Bound, Intent, RowEvents, Run, RunId};

/// Envelopes that are read at once.
const BLOCK: u32 = 256;

/// What the run of an intent has used, and how much of the intent keeps within its budget, where that is not all of it.
pub(super) async fn over(
    connection: &mut Connection,
    run: &Run,
    (budget, intent): (&Budget, &Intent),
) -> Result<(Spending, Option<(usize, Bound)>), Failure> {
    let (own, others) = used(connection, run).await?;
    Ok((own, rules::over(budget, own.plus(others), intent.rows.len(), &intent.costs)))
}

/// Takes what an intent of a run uses, which has used so much by now.
pub(super) async fn take(
    connection: &mut Connection,
    run: RunId,
    (own, intent): (Spending, &Intent),
) -> Result<(), Failure> {
    keep(connection, run, own.plus(taken(intent.rows.len(), &intent.costs))).await
}

/// Gives back what was refused and what was not sent of an envelope that is settled, where its run's sum is kept.
pub(super) async fn give_back(
    connection: &mut Connection,
    (run, envelope): (RunId, u32),
    outcomes: &[Outcome],
) -> Result<(), Failure> {
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
    let spending = Spending { recipients: unsigned(kept.try_get(0)?), cost: amount(kept.try_get(1)?)? };
    keep(connection, run, spending.minus(given_back(outcomes, &costs))).await
}

/// Keeps the sum of a run whose envelopes are about to go.
pub(super) async fn keep_for_good(connection: &mut Connection, run: RunId) -> Result<(), Failure> {
    let counted = count(connection, run).await?;
    keep(connection, run, counted).await
}

/// Keeps the sum of a run no more: it is made anew when somebody asks.
pub(super) async fn forget(connection: &mut Connection, run: RunId) -> Result<(), Failure> {
    query("DELETE FROM spending WHERE run = $1").bind(run.0).execute(connection).await?;
    Ok(())
}

/// What a run has used, and what the others have that use its budget.
async fn used(connection: &mut Connection, run: &Run) -> Result<(Spending, Spending), Failure> {
    let sharing = BudgetScope::of(run);
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
            Some((recipients, cost)) => Spending { recipients: unsigned(recipients), cost: amount(cost)? },
            None => {
                let counted = count(connection, RunId(key)).await?;
                // Another process that has a run keeps its sum itself, or has no bounds and keeps none.
                if !has_owner {
                    keep(connection, RunId(key), counted).await?;
                }
                counted
            }
        };
        if key == run.key.0 { own = spending } else { others = others.plus(spending) }
    }
    Ok((own, others))
}

/// What a run has used, by its envelopes.
async fn count(connection: &mut Connection, run: RunId) -> Result<Spending, Failure> {
    let events = RowEvents::from(events::read(&mut *connection, run).await?);
    let (mut sum, mut next) = (Spending::default(), 1);
    loop {
        let block = envelopes::read(&mut *connection, run, next..=next.saturating_add(BLOCK)).await?;
        let Some(last) = block.last() else { return Ok(sum) };
        next = last.envelope.saturating_add(1);
        sum = block.iter().map(|envelope| spent(envelope, &events)).fold(sum, Spending::plus);
    }
}

async fn keep(connection: &mut Connection, run: RunId, spending: Spending) -> Result<(), Failure> {
    let Spending { recipients, cost } = spending;
    query(
        "INSERT INTO spending (run, recipients, cost) VALUES ($1, $2, $3)
         ON CONFLICT (run) DO UPDATE SET recipients = excluded.recipients, cost = excluded.cost",
    )
    .bind(run.0)
    .bind(signed(recipients))
    .bind(cost.digits())
    .execute(connection)
    .await?;
    Ok(())
}
