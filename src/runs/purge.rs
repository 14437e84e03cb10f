//! Purging old runs: what is known of their people goes; what a run was, and what it came to, stays.
//!
//! The ledger comes first, in one commit; whatever ends this early, the next call goes on with the copies that are left.

use jiff::Timestamp;

use super::find::found;
use super::forget::finish_forgetting;
use super::{Adapters, Error, HeldRun, freshen};
use crate::delivery::Snapshot;
use crate::failpoint;
use crate::ledger::{Ledger, LedgerError, Ownership, Progress, Run, RunFilter, State};
use crate::report::{NextStep, ResultsError, RunView, cancelled_numbers, is_owned};

/// The runs that ended before a time.
#[derive(Debug, Default)]
pub struct OldRuns {
    /// Those that can be purged, the oldest first.
    pub over: Vec<RunView>,
    /// Those that cannot, and why.
    pub kept: Vec<(String, KeptRun)>,
}

/// Why a run is not purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptRun {
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
    pub async fn find(ledger: &dyn Ledger, before: Timestamp) -> Result<Self, LedgerError> {
        let mut old = Self::default();
        for run in ledger.runs(RunFilter::all()).await? {
            if run.purged_at.is_some() || last_used(ledger, &run).await? >= before {
                continue;
            }
            let name = run.name();
            match standing(ledger, run).await? {
                Ok(view) => old.over.push(view),
                Err(why) => old.kept.push((name, why)),
            }
        }
        Ok(old)
    }
}

/// When anything was last sent or done of a run.
async fn last_used(ledger: &dyn Ledger, run: &Run) -> Result<Timestamp, LedgerError> {
    let last = ledger.envelope_summaries(run.key).await?.last().map(|last| last.envelope);
    let sent = match last {
        Some(last) => ledger.envelopes(run.key, last..=last).await?.pop().map(|envelope| envelope.begun_at),
        None => None,
    };
    Ok([Some(run.began_at), run.ended_at, sent].into_iter().flatten().max().unwrap_or(run.began_at))
}

/// How a run stands, if nothing more comes of it.
async fn standing(ledger: &dyn Ledger, run: Run) -> Result<Result<RunView, KeptRun>, LedgerError> {
    if is_owned(ledger, &run).await? || !ledger.rows_in_hand(run.key).await?.is_empty() {
        return Ok(Err(KeptRun::InUse));
    }
    if run.progress == Progress::Open {
        return Ok(Err(KeptRun::Unfinished));
    }
    let view = RunView::read(ledger, run, false).await?;
    match NextStep::of_doubt(&view.counts).is_some() || view.counts.get(State::Sending) > 0 {
        true => Ok(Err(KeptRun::InDoubt)),
        false => Ok(Ok(view)),
    }
}

/// Purges these runs: their rows leave the ledger, and their copies are overwritten and removed. Gives those that are not
/// purged, and why.
///
/// # Errors
/// When the ledger or the copies cannot be read or written; what was purged by then is.
pub async fn purge(adapters: &Adapters, runs: Vec<Run>) -> Result<Vec<(String, KeptRun)>, Error> {
    let ledger = adapters.ledger.as_ref();
    let mut kept = Vec::new();
    for run in runs {
        let name = run.name();
        if let Err(why) = purge_one(adapters, run).await? {
            kept.push((name, why));
        }
    }
    // Those of an earlier call, too, that ended before it was through.
    for run in ledger.runs(RunFilter::all()).await?.iter().filter(|run| run.purged_at.is_some()) {
        ledger.discard_copies(run).await?;
        failpoint::pass("purge.discarded");
    }
    ledger.sweep().await?;
    Ok(kept)
}

async fn purge_one(adapters: &Adapters, run: Run) -> Result<Result<(), KeptRun>, Error> {
    let ledger = adapters.ledger.as_ref();
    let hold = match HeldRun::hold_of(adapters, &run).await {
        Ok(hold) => hold,
        Err(Error::BusyRun { .. }) => return Ok(Err(KeptRun::InUse)),
        Err(error) => return Err(error),
    };
    // Copies and results that have somebody still who was forgotten could not be found again.
    finish_forgetting(adapters, &hold).await;
    if ledger.to_be_forgotten().await?.iter().any(|(waiting, _)| *waiting == run.key) {
        return Ok(Err(KeptRun::Forgetting));
    }
    // Its results cannot be written anew any more: they tell what the receipts told until now.
    freshen(adapters, &run).await?;
    let run = found(ledger, run.key).await?;
    // Whoever draws rows of a shared run from here on makes it another one than the one that is counted.
    if !ledger.rows_in_hand(run.key).await?.is_empty() {
        return Ok(Err(KeptRun::InUse));
    }
    let snapshot = Snapshot::read(ledger, &run, false).await?;
    if let Err(kept) = keep_cancelled(ledger, &run).await? {
        return Ok(Err(kept));
    }
    let name = run.name();
    let purged = ledger.purge(run, snapshot.counts, snapshot.parts.billed).await?;
    if purged == Ownership::Lost {
        return Ok(Err(KeptRun::InUse));
    }
    tracing::info!(run = name, "purged");
    failpoint::pass("purge.recorded");
    Ok(Ok(()))
}

/// Keeps who was cancelled, so that later runs of the edition skip them although the list is gone.
async fn keep_cancelled(ledger: &dyn Ledger, run: &Run) -> Result<Result<(), KeptRun>, Error> {
    if !run.live || run.progress != Progress::Cancelled {
        return Ok(Ok(()));
    }
    match cancelled_numbers(ledger, run).await {
        Ok(numbers) if numbers.is_empty() => {}
        Ok(numbers) => ledger.keep_cancelled(run.key, numbers).await?,
        Err(ResultsError::Ledger(error)) => return Err(error.into()),
        Err(error) => {
            tracing::warn!(run = run.name(), %error, "not purged: its cancelled recipients cannot be read");
            return Ok(Err(KeptRun::Unreadable));
        }
    }
    Ok(Ok(()))
}
