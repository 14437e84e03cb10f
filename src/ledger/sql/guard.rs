//! Whom the guard skips: a query over all that is known of some runs.

use futures_util::TryStreamExt as _;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::change::Failure;
use super::dialect::Connection;
use super::envelopes::{WHOLE, record};
use super::statement::query;
use super::{events, forgetting, receipts};
use crate::ledger::rules::Guard;
use crate::ledger::{NumberSet, RunId};

/// The numbers that have an operation in one of these runs.
pub(super) async fn numbers_sent_to(reader: &mut Connection, runs: &[RunId]) -> Result<NumberSet, Failure> {
    let mut numbers = RoaringTreemap::new();
    for run in runs {
        numbers |= sent_to(&mut *reader, *run).await?;
        // After the envelopes: whoever purges them meanwhile has kept this by then.
        numbers |= forgetting::guarded(&mut *reader, *run).await?;
    }
    Ok(NumberSet::new(numbers, forgetting::key(&mut *reader).await?))
}

/// The numbers that have an operation in a run, by its envelopes.
pub(super) async fn sent_to(reader: &mut Connection, run: RunId) -> Result<RoaringTreemap, Failure> {
    Ok(guard(reader, run).await?.numbers())
}

/// The rows that have an operation in a run, by its envelopes.
pub(super) async fn rows_sent(reader: &mut Connection, run: RunId) -> Result<RoaringBitmap, Failure> {
    Ok(guard(reader, run).await?.rows())
}

/// The guard's knowledge of a run from its envelopes and receipts.
async fn guard(reader: &mut Connection, run: RunId) -> Result<Guard, Failure> {
    let mut guard = Guard::new(events::read(&mut *reader, run).await?.into());
    let mut rows = query(WHOLE).bind(run.0).bind(1_i64).bind(i64::from(u32::MAX)).fetch(&mut *reader);
    while let Some(row) = rows.try_next().await? {
        guard.add(&record(&row)?);
    }
    drop(rows);
    let mut told = receipts::stretches(&mut *reader, run);
    while let Some(stretch) = told.try_next().await? {
        stretch.iter().for_each(|(row, receipts)| guard.tell(*row, receipts));
    }
    Ok(guard)
}
