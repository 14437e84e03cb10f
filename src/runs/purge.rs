//! Purging old runs: what is known of their people goes; what a run was, and what it came to, stays.
//!
//! The ledger comes first, in one commit; whatever ends this early, the next call goes on with the copies that are left.

use jiff::Timestamp;

use super::find::reload_run;
use super::forget::finish_forgetting;
use super::{Adapters, Error, HeldRun, refresh_run};
use crate::delivery::Snapshot;
use crate::failpoint;
use crate::ledger::{Ledger, LedgerError, Ownership, RowState, Run, RunFilter, RunProgress};
use crate::report::{NextStep, ResultsError, RunView, is_owned, load_cancelled_numbers};

/// The runs that ended before a time.
#[derive(Debug, Default)]
pub struct OldRuns {
    /// Those that can be purged, the oldest first.
    pub purgeable: Vec<RunView>,
    /// Those that cannot, and why.
    pub kept: Vec<(String, PurgeBlocker)>,
}

/// Why a run is not purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeBlocker {
    /// It can go on.
    Unfinished,
    /// Nobody knows the end of some of its rows.
    InDoubt,
    /// Some process has it, or its campaign.
    InUse,
    /// Somebody of it was forgotten, and could not be taken out of its copies or results yet.
    Forgetting,
    /// Its list cannot be read, so later runs would send to its cancelled recipients.
    Unreadable,
}

impl OldRuns {
    /// Finds them; rehearsals and single messages are among them.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger, before: Timestamp) -> Result<Self, LedgerError> {
        let mut old = Self::default();
        for run in ledger.list_runs(RunFilter::all()).await? {
            if run.purged_at.is_some() || find_last_use(ledger, &run).await? >= before {
                continue;
            }
            let name = run.name();
            match find_purge_blocker(ledger, run).await? {
                Ok(view) => old.purgeable.push(view),
                Err(why) => old.kept.push((name, why)),
            }
        }
        Ok(old)
    }
}

/// When anything was last sent or done of a run.
async fn find_last_use(ledger: &dyn Ledger, run: &Run) -> Result<Timestamp, LedgerError> {
    let last = ledger.list_envelope_summaries(run.key).await?.last().map(|last| last.envelope);
    let sent = match last {
        Some(last) => ledger.load_envelopes(run.key, last..=last).await?.pop().map(|envelope| envelope.begun_at),
        None => None,
    };
    Ok([Some(run.began_at), run.ended_at, sent].into_iter().flatten().max().unwrap_or(run.began_at))
}

/// How a run stands, if nothing more comes of it.
async fn find_purge_blocker(ledger: &dyn Ledger, run: Run) -> Result<Result<RunView, PurgeBlocker>, LedgerError> {
    if is_owned(ledger, &run).await? || !ledger.load_claimed_rows(run.key).await?.is_empty() {
        return Ok(Err(PurgeBlocker::InUse));
    }
    if run.progress == RunProgress::Open {
        return Ok(Err(PurgeBlocker::Unfinished));
    }
    let view = RunView::load(ledger, run, false).await?;
    match NextStep::for_doubt(&view.counts).is_some() || view.counts.get(RowState::Sending) > 0 {
        true => Ok(Err(PurgeBlocker::InDoubt)),
        false => Ok(Ok(view)),
    }
}

/// Purges these runs: their rows leave the ledger, and their copies are overwritten and removed. Gives those that are not
/// purged, and why.
///
/// # Errors
/// When the ledger or the copies cannot be read or written; what was purged by then is.
pub async fn purge_runs(adapters: &Adapters, runs: Vec<Run>) -> Result<Vec<(String, PurgeBlocker)>, Error> {
    let ledger = adapters.ledger.as_ref();
    let mut kept = Vec::new();
    for run in runs {
        let name = run.name();
        if let Err(why) = purge_run(adapters, run).await? {
            kept.push((name, why));
        }
    }
    // Those of an earlier call, too, that ended before it was through.
    for run in ledger.list_runs(RunFilter::all()).await?.iter().filter(|run| run.purged_at.is_some()) {
        ledger.discard_copies(run).await?;
        failpoint::pass("purge.discarded");
    }
    ledger.overwrite_free_space().await?;
    Ok(kept)
}

async fn purge_run(adapters: &Adapters, run: Run) -> Result<Result<(), PurgeBlocker>, Error> {
    let ledger = adapters.ledger.as_ref();
    let hold = match HeldRun::hold_for_run(adapters, &run).await {
        Ok(hold) => hold,
        Err(Error::BusyRun { .. }) => return Ok(Err(PurgeBlocker::InUse)),
        Err(error) => return Err(error),
    };
    // Copies and results that have somebody still who was forgotten could not be found again.
    finish_forgetting(adapters, &hold).await;
    if ledger.list_rows_to_forget().await?.iter().any(|(waiting, _)| *waiting == run.key) {
        return Ok(Err(PurgeBlocker::Forgetting));
    }
    // Its results cannot be written anew any more: they tell what the receipts told until now.
    refresh_run(adapters, &run).await?;
    let run = reload_run(ledger, run.key).await?;
    // Whoever draws rows of a shared run from here on makes it another one than the one that is counted.
    if !ledger.load_claimed_rows(run.key).await?.is_empty() {
        return Ok(Err(PurgeBlocker::InUse));
    }
    let snapshot = Snapshot::load(ledger, &run, false).await?;
    if let Err(kept) = store_cancelled(ledger, &run).await? {
        return Ok(Err(kept));
    }
    let name = run.name();
    let purged = ledger.purge_run(run, snapshot.counts, snapshot.parts.billed).await?;
    if purged == Ownership::Lost {
        return Ok(Err(PurgeBlocker::InUse));
    }
    tracing::info!(run = name, "purged");
    failpoint::pass("purge.recorded");
    Ok(Ok(()))
}

/// Keeps who was cancelled, so that later runs of the edition skip them although the list is gone.
async fn store_cancelled(ledger: &dyn Ledger, run: &Run) -> Result<Result<(), PurgeBlocker>, Error> {
    if !run.live || run.progress != RunProgress::Cancelled {
        return Ok(Ok(()));
    }
    match load_cancelled_numbers(ledger, run).await {
        Ok(numbers) if numbers.is_empty() => {}
        Ok(numbers) => ledger.keep_cancelled_numbers(run.key, numbers).await?,
        Err(ResultsError::Ledger(error)) => return Err(error.into()),
        Err(error) => {
            tracing::warn!(run = run.name(), %error, "not purged: its cancelled recipients cannot be read");
            return Ok(Err(PurgeBlocker::Unreadable));
        }
    }
    Ok(Ok(()))
}
