//! A run that this process has, to ask or decide about its rows without sending anything.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::find::{planned_results_path, reload_run};
use super::{Adapters, Error, ProtectedFiles, RunEvent, find_later_run, hold_campaign, is_folder_gone};
use crate::delivery::Snapshot;
use crate::ledger::{CampaignLock, Lease, NewRowEvent, Ownership, RowState, Run, RunEnd, RunProgress, StopKind};
use crate::report::{RunFigures, RunResults};

/// A run that this process has.
pub struct HeldRun {
    /// What it is held with.
    pub adapters: Adapters,
    /// The run as it was before it was taken.
    pub run: Run,
    /// By what right.
    pub lease: Lease,
    _hold: Arc<CampaignLock>,
}

/// Where a run stands after it was released.
#[derive(Debug)]
pub struct ReleasedRun {
    /// The run as it was before it was taken, with the progress that it has now.
    pub run: Run,
    /// Whether it can go on because of what was learnt or decided.
    pub reopened: bool,
    /// Where it stands now.
    pub snapshot: Snapshot,
    /// Why the results were not written anew, where they stood.
    pub stale_results: Option<StaleResults>,
}

/// Why the results of a run were not updated.
#[derive(Debug, thiserror::Error)]
pub enum StaleResults {
    /// Those of a later run stand in their place.
    #[error("`{path}` contains the results of {later}")]
    Later {
        /// The run.
        run: String,
        /// The later one.
        later: String,
        /// The place.
        path: PathBuf,
    },
    /// The folder of the campaign is gone from where they were.
    #[error("the folder of `{path}` no longer exists")]
    Gone {
        /// The run.
        run: String,
        /// The place.
        path: PathBuf,
    },
    /// They could not be written.
    #[error("{0}")]
    Failed(Error),
}

impl HeldRun {
    /// Takes a run.
    ///
    /// # Errors
    /// When another process has it, or the ledger cannot be written.
    pub async fn take(adapters: &Adapters, run: Run) -> Result<Self, Error> {
        let hold = Self::hold_for_run(adapters, &run).await?;
        Self::claim(adapters, hold, run).await
    }

    /// Takes the campaign of a run.
    ///
    /// # Errors
    /// When another process has it, or nobody can tell.
    pub(super) async fn hold_for_run(adapters: &Adapters, run: &Run) -> Result<Arc<CampaignLock>, Error> {
        let hold = hold_campaign(adapters.ledger.as_ref(), &run.campaign, &run.gateway, &run.account).await;
        hold.map(Arc::new).map_err(|error| match error {
            Error::Busy { campaign, gateway, since } => Error::BusyRun { campaign, gateway, since },
            other => other,
        })
    }

    /// Takes a run of what is held.
    pub(super) async fn claim(adapters: &Adapters, hold: Arc<CampaignLock>, run: Run) -> Result<Self, Error> {
        let lease = adapters.ledger.claim_run(&hold, run.key).await?.lease;
        Ok(Self { adapters: adapters.clone(), run, lease, _hold: hold })
    }

    /// Where the run stands now.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn read_snapshot(&self) -> Result<Snapshot, Error> {
        Ok(Snapshot::load(self.adapters.ledger.as_ref(), &self.run, false).await?)
    }

    /// Records what was decided.
    ///
    /// # Errors
    /// When another process took the run, or the ledger cannot be written.
    pub async fn record_events(&self, events: Vec<NewRowEvent>) -> Result<(), Error> {
        match self.adapters.ledger.record_events(self.lease, events).await? {
            Ownership::Held => Ok(()),
            Ownership::Lost => Err(self.taken_error()),
        }
    }

    /// Writes the results anew and gives the run back.
    ///
    /// # Errors
    /// When another process took the run, or the ledger cannot be read or written.
    pub async fn release(self) -> Result<ReleasedRun, Error> {
        self.give_back(None).await
    }

    /// The same for a run of which nothing more is sent.
    ///
    /// # Errors
    /// When another process took the run, or the ledger cannot be read or written.
    pub(super) async fn cancel(mut self) -> Result<ReleasedRun, Error> {
        if self.run.results.is_none() {
            let planned = planned_results_path(self.adapters.ledger.as_ref(), &self.run).await;
            self.run.results = planned.map(|path| path.display().to_string());
        }
        (self.run.stop, self.run.stop_reason) = (None, None);
        self.give_back(Some(RunProgress::Cancelled)).await
    }

    /// Gives the run back with this progress, else with the one that it has.
    async fn give_back(self, progress: Option<RunProgress>) -> Result<ReleasedRun, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let now = reload_run(ledger, self.run.key).await?;
        let now = Run { progress: progress.unwrap_or(now.progress), ..now };
        let snapshot = Snapshot::load(ledger, &now, false).await?;
        let reopened = now.progress == RunProgress::Open && self.run.progress != RunProgress::Open;
        let run = Run { progress: now.progress, ..self.run.clone() };
        let unwritten = self.write_results(&now).await;
        let end = RunEnd {
            progress: run.progress,
            stop: if reopened { None } else { remaining_stop(&run, &snapshot) },
            stop_reason: self.run.stop_reason.clone(),
            counts: snapshot.counts.clone(),
            parts: snapshot.parts.billed,
            receipts: now.receipts,
            results: self.run.results.clone(),
            lag: None,
            at: self.run.ended_at.unwrap_or_else(self.adapters.clock),
            notifications: Vec::new(),
        };
        ledger.end_run(self.lease, end).await?;
        RunFigures::store(ledger, self.run.key, None).await;
        Ok(ReleasedRun { run, reopened, snapshot, stale_results: unwritten })
    }

    /// Writes the results where they were, unless those of a later run stand there now; if not, why.
    async fn write_results(&self, now: &Run) -> Option<StaleResults> {
        rewrite_results(&self.adapters, &self.run, now).await
    }

    fn taken_error(&self) -> Error {
        Error::Taken { run: self.run.name() }
    }
}

/// Writes the results of a run that stands like `now` where they were, unless those of a later run stand there; if not, why.
pub(super) async fn rewrite_results(adapters: &Adapters, run: &Run, now: &Run) -> Option<StaleResults> {
    let (path, ledger) = (run.results.as_ref()?, adapters.ledger.as_ref());
    if is_folder_gone(ledger, run, Path::new(path)).await {
        return Some(StaleResults::Gone { run: now.name(), path: PathBuf::from(path) });
    }
    match find_later_run(ledger, now, path).await {
        Ok(None) => write_results_to(adapters, now, Path::new(path)).await.err().map(StaleResults::Failed),
        Ok(Some(later)) => Some(StaleResults::Later { run: now.name(), later, path: PathBuf::from(path) }),
        Err(error) => Some(StaleResults::Failed(error.into())),
    }
}

async fn write_results_to(adapters: &Adapters, now: &Run, path: &Path) -> Result<(), Error> {
    let Adapters { state, profiles, ledger, .. } = adapters;
    let results = RunResults::open(ledger.as_ref(), now, false).await?;
    let target = ProtectedFiles { state, profiles }.results_target_of_run(results.frozen_inputs(), path.to_owned());
    if let Some(kept) = results.write_file(&target).await? {
        (adapters.observer)(RunEvent::ResultsKept(kept));
    }
    Ok(())
}

/// Why a run that was only asked or decided about is still stopped: not where nothing of it is left to send.
fn remaining_stop(before: &Run, snapshot: &Snapshot) -> Option<StopKind> {
    let left = match before.progress {
        RunProgress::Finished => before.stop_reason.is_some(),
        RunProgress::Open => snapshot.counts.get(RowState::Planned) > 0,
        RunProgress::Replaced | RunProgress::Cancelled => false,
    };
    before.stop.filter(|_| left)
}
