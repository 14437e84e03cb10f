//! Runs that this process holds, to reconcile, decide, stop or update them without sending.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::find::{planned_results_path, reload_run};
use super::{Adapters, Error, ProtectedFiles, RunEvent, find_later_run, is_folder_gone, lock_campaign};
use campaign_engine::delivery::Snapshot;
use campaign_engine::report::{RunFigures, RunResults, is_owned};
use campaign_ledger::{
    CampaignLock, Lease, Ledger, NewRowEvent, Ownership, RowState, Run, RunEnd, RunFilter, RunProgress, StateCounts,
    StopKind, StopRequest,
};

/// A run that this process holds.
pub struct HeldRun {
    /// The adapters.
    pub adapters: Adapters,
    /// The run before it was taken.
    pub run: Run,
    /// The lease.
    pub lease: Lease,
    _hold: Arc<CampaignLock>,
}

/// The state of a run after its release.
#[derive(Debug)]
pub struct ReleasedRun {
    /// The run before it was taken, with its current progress.
    pub run: Run,
    /// Whether it can be resumed because of the new information or decision.
    pub reopened: bool,
    /// Its current state.
    pub snapshot: Snapshot,
    /// Why the results were not updated.
    pub stale_results: Option<StaleResults>,
}

/// Why the results of a run were not updated.
#[derive(Debug, thiserror::Error)]
pub enum StaleResults {
    /// The results of a later run have their place.
    #[error("`{path}` contains the results of {later}")]
    Later {
        /// The run.
        run: String,
        /// The later one.
        later: String,
        /// The place.
        path: PathBuf,
    },
    /// The campaign's folder no longer exists at the path of the results.
    #[error("the folder of `{path}` no longer exists")]
    Gone {
        /// The run.
        run: String,
        /// The place.
        path: PathBuf,
    },
    /// The results could not be written.
    #[error("{0}")]
    Failed(Error),
}

impl HeldRun {
    /// Takes a run.
    ///
    /// # Errors
    /// If another process has it, or the ledger cannot be written.
    pub async fn take(adapters: &Adapters, run: Run) -> Result<Self, Error> {
        let hold = Self::hold_for_run(adapters, &run).await?;
        Self::claim(adapters, hold, run).await
    }

    /// Takes the hold on the campaign of a run.
    ///
    /// # Errors
    /// If another process has it, or that is unknown.
    pub(super) async fn hold_for_run(adapters: &Adapters, run: &Run) -> Result<Arc<CampaignLock>, Error> {
        let hold = lock_campaign(adapters.ledger.as_ref(), &run.campaign, &run.gateway, &run.account).await;
        hold.map(Arc::new).map_err(|error| match error {
            Error::Busy { campaign, gateway, since } => Error::BusyRun { campaign, gateway, since },
            other => other,
        })
    }

    /// Claims a run under a hold.
    pub(super) async fn claim(adapters: &Adapters, hold: Arc<CampaignLock>, run: Run) -> Result<Self, Error> {
        let lease = adapters.ledger.claim_run(&hold, run.key).await?.lease;
        Ok(Self { adapters: adapters.clone(), run, lease, _hold: hold })
    }

    /// Reads the current state of the run.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn read_snapshot(&self) -> Result<Snapshot, Error> {
        Ok(Snapshot::load(self.adapters.ledger.as_ref(), &self.run, false).await?)
    }

    /// Records decisions.
    ///
    /// # Errors
    /// If another process took the run, or the ledger cannot be written.
    pub async fn record_events(&self, events: Vec<NewRowEvent>) -> Result<(), Error> {
        match self.adapters.ledger.record_events(self.lease, events).await? {
            Ownership::Held => Ok(()),
            Ownership::Lost => Err(self.taken_error()),
        }
    }

    /// Updates the results and releases the run.
    ///
    /// # Errors
    /// If another process took the run, or the ledger cannot be read or written.
    pub async fn release(self) -> Result<ReleasedRun, Error> {
        self.give_back(None).await
    }

    /// The same for a run that sends nothing more.
    ///
    /// # Errors
    /// If another process took the run, or the ledger cannot be read or written.
    pub(super) async fn cancel(mut self) -> Result<ReleasedRun, Error> {
        if self.run.results.is_none() {
            let planned = planned_results_path(self.adapters.ledger.as_ref(), &self.run).await;
            self.run.results = planned.map(|path| path.display().to_string());
        }
        (self.run.stop, self.run.stop_reason) = (None, None);
        self.give_back(Some(RunProgress::Cancelled)).await
    }

    /// Releases the run with this progress, or else with its own.
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

    /// Updates the results, unless a later run has their place. Returns why not.
    async fn write_results(&self, now: &Run) -> Option<StaleResults> {
        rewrite_results(&self.adapters, &self.run, now).await
    }

    fn taken_error(&self) -> Error {
        Error::Taken { run: self.run.name() }
    }
}

/// Updates the results of a run in the state `now`, unless a later run has their place. Returns why not.
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

/// Why a run is still stopped after a reconciliation or decision. `None` if it has nothing left to send.
fn remaining_stop(before: &Run, snapshot: &Snapshot) -> Option<StopKind> {
    let left = match before.progress {
        RunProgress::Finished => before.stop_reason.is_some(),
        RunProgress::Open => snapshot.counts.get(RowState::Planned) > 0,
        RunProgress::Replaced | RunProgress::Cancelled => false,
    };
    before.stop.filter(|_| left)
}

/// The runs with receipts since their rows were counted, oldest first, without those that are being sent.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn list_stale_runs(adapters: &Adapters) -> Result<Vec<Run>, Error> {
    let stale = adapters.ledger.list_stored_runs(RunFilter { uncounted: true, ..RunFilter::all() }).await?;
    Ok(stale.into_iter().flatten().filter(|run| run.counts.is_some()).collect())
}

/// Counts the rows of a run again and updates its results, unless a later run has their place or a process sends it and
/// will write them. Returns why results were not written.
///
/// # Errors
/// If the ledger cannot be read or written.
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
        // Another process took and released the run in the meantime and wrote newer results, which ours might have
        // replaced.
        if (now.ended_at, now.epoch) == (before.ended_at, before.epoch) {
            ledger.store_counts(run.key, snapshot.counts, snapshot.parts.billed, before.receipts).await?;
            RunFigures::store(ledger, run.key, None).await;
            return Ok(unwritten);
        }
    }
}

/// How long the sending process is waited for: messages in flight and large results take their time.
const STOP_TIMEOUT: Duration = Duration::from_secs(900);
/// How often the sending process is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Asks the process that sends a run to stop after the messages in flight. Returns whether there is one.
///
/// # Errors
/// If a process has the campaign without sending this run, because it might be about to; if the run has single
/// operations, which only their own process stops; or if the ledger cannot be written.
pub async fn stop_run(ledger: &dyn Ledger, run: &Run) -> Result<bool, Error> {
    if run.shared && !ledger.load_claimed_rows(run.key).await?.is_empty() {
        return Err(Error::SinglesOnTheirWay { run: run.name() });
    }
    if is_owned(ledger, run).await? {
        ledger.request_stop(run.key, StopRequest::Stop).await?;
        return Ok(true);
    }
    if ledger.is_campaign_locked(&run.campaign, &run.account).await? {
        return Err(Error::NothingToStopYet { run: run.name(), campaign: run.campaign.clone() });
    }
    Ok(false)
}

/// What `stop --for-good` would cancel.
#[derive(Debug)]
pub struct Cancellation {
    /// The run's rows by state.
    pub counts: StateCounts,
    /// Whether a process is sending the run, so that the number of rows is falling.
    pub is_sending: bool,
    /// Whether a schedule of the campaign is active. The stop does not remove it.
    pub is_scheduled: bool,
}

impl Cancellation {
    /// Reads what would be cancelled.
    ///
    /// # Errors
    /// If the run has ended, or the ledger cannot be read.
    pub async fn read(ledger: &dyn Ledger, run: &Run) -> Result<Self, Error> {
        if run.progress != RunProgress::Open {
            return Err(Error::NothingToCancel { run: run.name() });
        }
        let is_sending = is_owned(ledger, run).await?;
        let counts = Snapshot::load(ledger, run, is_sending).await?.counts;
        let schedules = ledger.list_schedules().await?;
        let is_scheduled = schedules.iter().flatten().any(|armed| armed.name == run.campaign && !armed.paused);
        Ok(Self { counts, is_sending, is_scheduled })
    }

    /// The number of planned rows.
    #[must_use]
    pub fn count_rows(&self) -> u64 {
        self.counts.get(RowState::Planned)
    }
}

/// The error for a run that was stopped for good.
pub(super) fn cancelled_error(run: &Run) -> Error {
    let file = run.file.as_ref().map(PathBuf::from);
    Error::Cancelled { run: run.name(), file, gateway: run.gateway.clone() }
}

/// A run that was stopped for good.
#[derive(Debug)]
pub struct CancelledRun {
    /// The number of rows that are no longer sent.
    pub rows: u64,
    /// The state of the run.
    pub released: ReleasedRun,
}

/// Stops a run for good: planned messages are not sent, and the run ends.
///
/// # Errors
/// If the run has nothing left to send, another process does not release it, or the ledger cannot be written.
pub async fn cancel_run(adapters: &Adapters, run: Run) -> Result<CancelledRun, Error> {
    let (ledger, deadline) = (adapters.ledger.as_ref(), Instant::now() + STOP_TIMEOUT);
    stop_run(ledger, &run).await?;
    // Checked again each time: the sending process might continue with another run of the campaign.
    let now = loop {
        let now = reload_run(ledger, run.key).await?;
        if !is_owned(ledger, &now).await? || Instant::now() >= deadline {
            break now;
        }
        sleep(POLL_INTERVAL).await;
    };
    let hold = HeldRun::hold_for_run(adapters, &now).await?;
    // Under the hold, so that only one of two concurrent calls cancels it.
    let now = reload_run(ledger, now.key).await?;
    if now.progress != RunProgress::Open {
        return Err(Error::NothingToCancel { run: now.name() });
    }
    let held = HeldRun::claim(adapters, hold, now).await?;
    let rows = held.read_snapshot().await?.counts.get(RowState::Planned);
    Ok(CancelledRun { rows, released: held.cancel().await? })
}
