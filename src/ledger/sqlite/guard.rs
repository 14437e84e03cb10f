//! Whom the guard skips: a query over all that is known of some runs.

use futures_util::TryStreamExt as _;
use roaring::RoaringTreemap;
use sqlx::SqlitePool;

use super::change::Failure;
use super::envelopes::{WHOLE, record};
use super::{events, forgetting, receipts};
use crate::ledger::rules::Guard;
use crate::ledger::{NumberSet, RunId};

/// The numbers that have an operation in one of these runs.
pub(super) async fn numbers_sent_to(readers: &SqlitePool, runs: &[RunId]) -> Result<NumberSet, Failure> {
    let mut numbers = RoaringTreemap::new();
    for run in runs {
        let mut guard = Guard::new(events::read(readers, *run).await?.into());
        let mut rows = sqlx::query(WHOLE).bind(run.0).bind(1).bind(u32::MAX).fetch(readers);
        while let Some(row) = rows.try_next().await? {
            guard.add(&record(&row)?);
        }
        drop(rows);
        let mut told = receipts::stretches(readers, *run);
        while let Some(stretch) = told.try_next().await? {
            stretch.iter().for_each(|(row, receipts)| guard.tell(*row, receipts));
        }
        numbers |= guard.numbers();
        // After the envelopes: whoever purges them meanwhile has kept this by then.
        numbers |= forgetting::guarded(readers, *run).await?;
    }
    Ok(NumberSet::new(numbers, forgetting::key(readers).await?))
}
