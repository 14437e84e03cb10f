//! Whom the guard skips: a query over all that is known of some runs.

use futures_util::TryStreamExt as _;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::change::StatementError;
use super::dialect::Connection;
use super::envelopes::{SELECT_ENVELOPES, envelope_from_row};
use super::statement::query;
use super::{events, forgetting, receipts};
use crate::ledger::rules::Guard;
use crate::ledger::{NumberSet, RunId};

/// The numbers that have an operation in one of these runs.
pub(super) async fn load_numbers_sent_to(reader: &mut Connection, runs: &[RunId]) -> Result<NumberSet, StatementError> {
    let mut numbers = RoaringTreemap::new();
    for run in runs {
        numbers |= load_numbers_of_run(&mut *reader, *run).await?;
        // After the envelopes: whoever purges them meanwhile has kept this by then.
        numbers |= forgetting::load_guarded_numbers(&mut *reader, *run).await?;
    }
    Ok(NumberSet::new(numbers, forgetting::load_number_key(&mut *reader).await?))
}

/// The numbers that have an operation in a run, by its envelopes.
pub(super) async fn load_numbers_of_run(reader: &mut Connection, run: RunId) -> Result<RoaringTreemap, StatementError> {
    Ok(load_guard(reader, run).await?.into_numbers())
}

/// The rows that have an operation in a run, by its envelopes.
pub(super) async fn load_rows_sent(reader: &mut Connection, run: RunId) -> Result<RoaringBitmap, StatementError> {
    Ok(load_guard(reader, run).await?.into_rows())
}

/// The guard's knowledge of a run from its envelopes and receipts.
async fn load_guard(reader: &mut Connection, run: RunId) -> Result<Guard, StatementError> {
    let mut guard = Guard::new(events::load_events(&mut *reader, run).await?.into());
    let mut rows = query(SELECT_ENVELOPES).bind(run.0).bind(1_i64).bind(i64::from(u32::MAX)).fetch(&mut *reader);
    while let Some(row) = rows.try_next().await? {
        guard.add_envelope(&envelope_from_row(&row)?);
    }
    drop(rows);
    let mut told = receipts::stream_receipts(&mut *reader, run);
    while let Some(stretch) = told.try_next().await? {
        stretch.iter().for_each(|(row, receipts)| guard.add_receipts(*row, receipts));
    }
    Ok(guard)
}
