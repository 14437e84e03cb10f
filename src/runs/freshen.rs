//! Counts and results that receipts made old.

use super::find::reload_run;
use super::held_run::rewrite_results;
use super::{Adapters, Error, StaleResults};
use crate::delivery::Snapshot;
use crate::ledger::{Run, RunFilter};
use crate::report::{RunFigures, is_owned};

/// The runs that receipts came for since their rows were counted, oldest first; those that somebody sends are not among them.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn list_stale_runs(adapters: &Adapters) -> Result<Vec<Run>, Error> {
    let stale = adapters.ledger.list_stored_runs(RunFilter { uncounted: true, ..RunFilter::all() }).await?;
    Ok(stale.into_iter().flatten().filter(|run| run.counts.is_some()).collect())
}

/// Counts the rows of a run anew and writes its results where they were, unless those of a later run stand there, or
/// somebody sends it: who does writes them at the end. Tells why results were not written.
///
/// # Errors
/// When the ledger cannot be read or written.
pub async fn refresh_run(adapters: &Adapters, run: &Run) -> Result<Option<StaleResults>, Error> {
    let ledger = adapters.ledger.as_ref();
    loop {
        let before = reload_run(ledger, run.key).await?;
        if is_owned(ledger, &before).await? {
            return Ok(None);
        }
        let snapshot = Snapshot::load(ledger, &before, false).await?;
        let unwritten = rewrite_results(adapters, &before, &before).await;
        let now = reload_run(ledger, run.key).await?;
        // Whoever took it meanwhile and gave it back wrote what is newer, and ours may have taken its place.
        if (now.ended_at, now.epoch) == (before.ended_at, before.epoch) {
            ledger.store_counts(run.key, snapshot.counts, snapshot.parts.billed, before.receipts).await?;
            RunFigures::store(ledger, run.key, None).await;
            return Ok(unwritten);
        }
    }
}
