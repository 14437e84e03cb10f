//! What projections made of all rows of runs, as it was given.

use super::change::StatementError;
use super::dialect::{Adapter, Connection};
use super::look::read_ledger;
use super::statement::{query, scalar};
use crate::ledger::{LedgerError, RunId};

/// Keeps what was made of a run, where there is a place for it.
pub(super) async fn store_figures(ledger: &Adapter, run: RunId, figures: Vec<u8>) -> Result<(), LedgerError> {
    if !ledger.keeps_figures() {
        return Ok(());
    }
    let kept = ledger.write(move |connection, _| {
        let figures = figures.clone();
        Box::pin(async move {
            let kept = "INSERT INTO figures (run, figures) VALUES ($1, $2)
                        ON CONFLICT (run) DO UPDATE SET figures = excluded.figures";
            query(kept).bind(run.0).bind(figures).execute(connection).await?;
            Ok(())
        })
    });
    kept.await
}

/// What was last kept of a run.
pub(super) async fn load_figures(ledger: &Adapter, run: RunId) -> Result<Option<Vec<u8>>, LedgerError> {
    if !ledger.keeps_figures() {
        return Ok(None);
    }
    read_ledger!(ledger, select_figures, run)
}

async fn select_figures(reader: &mut Connection, run: RunId) -> Result<Option<Vec<u8>>, StatementError> {
    let kept = scalar("SELECT figures FROM figures WHERE run = $1").bind(run.0);
    Ok(kept.fetch_optional(reader).await?)
}
