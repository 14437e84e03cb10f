//! Runs that this process holds without sending, to reconcile or cancel them, record decisions, or erase their data.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::find::{find_planned_results_path, reload_run};
use super::results::rewrite_results;
use super::{Adapters, Error, StaleResults, lock_campaign};
use campaign_core::domain::Row;
use campaign_engine::delivery::Snapshot;
use campaign_engine::report::{RunFigures, is_owned};
use campaign_ledger::{
    CampaignLock, Lease, Ledger, LedgerError, NewRowEvent, Ownership, RowState, RowUpdate, Run, RunEnd, RunProgress,
    RunUpdate, StateCounts, StopKind, StopRequest,
};

/// A run that this process holds.
pub struct HeldRun {
    /// The adapters whose ledger contains the run.
    pub adapters: Adapters,
    /// The run before it was taken.
    pub run: Run,
    /// The lease of the claim, which ends when another process claims the run.
    pub lease: Lease,
    _lock: Arc<CampaignLock>,
}

/// The state of a run after its release.
#[derive(Debug)]
pub struct ReleasedRun {
    /// The run before it was taken, with its current progress.
    pub run: Run,
    /// Whether the run can be resumed because of the new information or decision.
    pub reopened: bool,
    /// The current state of the run.
    pub snapshot: Snapshot,
    /// The reason the results were not updated.
    pub stale_results: Option<StaleResults>,
}

impl HeldRun {
    /// Takes the lock on the campaign of a run, and claims the run.
    ///
    /// # Errors
    /// If another process has the run, or the ledger cannot be written.
    pub async fn take(adapters: &Adapters, run: Run) -> Result<Self, Error> {
        let lock = Self::lock_for_run(adapters, &run).await?;
        Self::claim(adapters, lock, run).await
    }

    /// Takes the lock on the campaign of a run.
    ///
    /// # Errors
    /// If another process holds the lock, or the state of the lock cannot be determined.
    pub(super) async fn lock_for_run(adapters: &Adapters, run: &Run) -> Result<Arc<CampaignLock>, Error> {
        let lock = lock_campaign(adapters.ledger.as_ref(), &run.campaign, &run.gateway, &run.account).await;
        lock.map(Arc::new).map_err(|error| match error {
            Error::Busy { campaign, gateway, since } => Error::BusyRun { campaign, gateway, since },
            other => other,
        })
    }

    /// Claims a run under a lock.
    pub(super) async fn claim(adapters: &Adapters, lock: Arc<CampaignLock>, run: Run) -> Result<Self, Error> {
        let lease = adapters.ledger.claim_run(&lock, run.key).await?.lease;
        Ok(Self { adapters: adapters.clone(), run, lease, _lock: lock })
    }

    /// Reads the current state of the run.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn read_snapshot(&self) -> Result<Snapshot, Error> {
        Ok(Snapshot::load(self.adapters.ledger.as_ref(), &self.run, false).await?)
    }

    /// Records events of rows, such as decisions.
    ///
    /// # Errors
    /// If another process took the run, or the ledger cannot be written.
    pub async fn record_events(&self, events: Vec<NewRowEvent>) -> Result<(), Error> {
        match self.adapters.ledger.update_rows(self.lease, RowUpdate::Events(events)).await? {
            Ownership::Held => Ok(()),
            Ownership::Lost => Err(self.taken_error()),
        }
    }

    /// Updates the results and releases the run. If another process took the run, the record of the run stays as it is.
    ///
    /// # Errors
    /// If the ledger cannot be read or written.
    pub async fn release(self) -> Result<ReleasedRun, Error> {
        self.release_with_progress(None).await
    }

    /// Updates the results and releases the run as cancelled, after which the run sends nothing more. If another
    /// process took the run, the record of the run stays as it is.
    ///
    /// # Errors
    /// If another process took the run, or the ledger cannot be read or written.
    pub(super) async fn cancel(mut self) -> Result<ReleasedRun, Error> {
        if self.run.results.is_none() {
            let planned = find_planned_results_path(self.adapters.ledger.as_ref(), &self.run).await;
            self.run.results = planned.map(|path| path.display().to_string());
        }
        (self.run.stop, self.run.stop_reason) = (None, None);
        self.release_with_progress(Some(RunProgress::Cancelled)).await
    }

    /// Updates the results and releases the run with `progress`, or with the current progress of the run if none is
    /// given.
    async fn release_with_progress(self, progress: Option<RunProgress>) -> Result<ReleasedRun, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let current = reload_run(ledger, self.run.key).await?;
        let current = Run { progress: progress.unwrap_or(current.progress), ..current };
        let snapshot = Snapshot::load(ledger, &current, false).await?;
        let reopened = current.progress == RunProgress::Open && self.run.progress != RunProgress::Open;
        let run = Run { progress: current.progress, ..self.run.clone() };
        let stale_results = rewrite_results(&self.adapters, &self.run, &current).await;
        let end = RunEnd {
            progress: run.progress,
            stop: if reopened { None } else { remaining_stop(&run, &snapshot) },
            stop_reason: self.run.stop_reason.clone(),
            counts: snapshot.counts.clone(),
            parts: snapshot.parts.billed,
            receipts: current.receipts,
            results: self.run.results.clone(),
            lag: None,
            at: self.run.ended_at.unwrap_or_else(self.adapters.clock),
            notifications: Vec::new(),
        };
        ledger.end_run(self.lease, end).await?;
        // The ledger records no end if the lease was lost, so the other process would send the cancelled rows.
        let is_cancelled = progress == Some(RunProgress::Cancelled);
        if is_cancelled && reload_run(ledger, self.run.key).await?.progress != RunProgress::Cancelled {
            return Err(self.taken_error());
        }
        RunFigures::compute_and_store(ledger, self.run.key, None).await;
        Ok(ReleasedRun { run, reopened, snapshot, stale_results })
    }

    fn taken_error(&self) -> Error {
        Error::Taken { run: self.run.name() }
    }
}

/// Returns the stop that still applies to a run after a reconciliation or decision. An open run keeps its stop only
/// while rows are planned, and a finished run only if the stop has a recorded reason.
fn remaining_stop(run: &Run, snapshot: &Snapshot) -> Option<StopKind> {
    let still_applies = match run.progress {
        RunProgress::Finished => run.stop_reason.is_some(),
        RunProgress::Open => snapshot.counts.get(RowState::Planned) > 0,
        RunProgress::Replaced | RunProgress::Cancelled => false,
    };
    run.stop.filter(|_| still_applies)
}

/// The time limit for the sending process, which finishes messages in flight and writes the results.
const STOP_TIMEOUT: Duration = Duration::from_secs(900);
/// The interval between checks of the sending process.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Asks the process that sends a run to stop after the messages in flight. Returns whether a process is sending the
/// run.
///
/// # Errors
/// If the run has single operations, which only the process that sends them can stop. Also if a process holds the
/// campaign without sending this run, because that process might be about to send it, or if the ledger cannot be
/// written.
pub async fn stop_run(ledger: &dyn Ledger, run: &Run) -> Result<bool, Error> {
    if run.shared && !ledger.load_claimed_rows(run.key).await?.is_empty() {
        return Err(Error::SinglesOnTheirWay { run: run.name() });
    }
    if is_owned(ledger, run).await? {
        ledger.update_runs(vec![run.key], RunUpdate::Stop(StopRequest::Stop)).await?;
        return Ok(true);
    }
    if ledger.find_campaign_lock(&run.campaign, &run.account).await?.is_some() {
        return Err(Error::NothingToStopYet { run: run.name(), campaign: run.campaign.clone() });
    }
    Ok(false)
}

/// The rows that `stop --for-good` would cancel.
#[derive(Debug)]
pub struct Cancellation {
    /// The run's rows by state.
    pub counts: StateCounts,
    /// The number of planned rows that keep the state of an earlier message.
    pub kept: u64,
    /// Whether a process is sending the run, so that the number of rows is falling.
    pub is_sending: bool,
    /// Whether a schedule of the campaign is active. Cancelling the run does not remove the schedule.
    pub is_scheduled: bool,
}

impl Cancellation {
    /// Reads the row counts of a run that a person might cancel, and whether it is being sent or scheduled.
    ///
    /// # Errors
    /// If the run has ended, or the ledger cannot be read.
    pub async fn read(ledger: &dyn Ledger, run: &Run) -> Result<Self, Error> {
        if run.progress != RunProgress::Open {
            return Err(Error::NothingToCancel { run: run.name() });
        }
        let is_sending = is_owned(ledger, run).await?;
        let snapshot = Snapshot::load(ledger, run, is_sending).await?;
        let kept = count_kept_rows(ledger, run, &snapshot).await?;
        let counts = snapshot.counts;
        let schedules = ledger.list_schedules().await?;
        let is_scheduled = schedules.iter().flatten().any(|schedule| schedule.name == run.campaign && !schedule.paused);
        Ok(Self { counts, kept, is_sending, is_scheduled })
    }

    /// Returns the number of planned rows.
    pub fn count_planned_rows(&self) -> u64 {
        self.counts.get(RowState::Planned)
    }
}

/// Counts the planned rows that keep the state of an earlier message if the run is cancelled.
async fn count_kept_rows(ledger: &dyn Ledger, run: &Run, snapshot: &Snapshot) -> Result<u64, LedgerError> {
    let resends = snapshot.list_planned_resends();
    if resends.is_empty() {
        return Ok(0);
    }
    let cancelled = Run { progress: RunProgress::Cancelled, ..run.clone() };
    let cancelled = Snapshot::load(ledger, &cancelled, false).await?;
    Ok(resends.iter().filter(|row| cancelled.row_state(Row::new(*row)) != RowState::Skipped).count() as u64)
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
    /// The number of these rows that keep the state of an earlier message.
    pub kept: u64,
    /// The state of the run.
    pub released: ReleasedRun,
}

/// Stops a run for good: planned messages are not sent, and the run ends.
///
/// # Errors
/// If the run has nothing left to send, another process does not release the run, or the ledger cannot be written.
pub async fn cancel_run(adapters: &Adapters, run: Run) -> Result<CancelledRun, Error> {
    let (ledger, deadline) = (adapters.ledger.as_ref(), Instant::now() + STOP_TIMEOUT);
    stop_run(ledger, &run).await?;
    // The run is reloaded each time, because the sending process might continue with another run of the campaign.
    let current = loop {
        let current = reload_run(ledger, run.key).await?;
        if !is_owned(ledger, &current).await? || Instant::now() >= deadline {
            break current;
        }
        sleep(POLL_INTERVAL).await;
    };
    let lock = HeldRun::lock_for_run(adapters, &current).await?;
    // The run is reloaded under the lock, so that only one of two concurrent calls cancels it.
    let current = reload_run(ledger, current.key).await?;
    if current.progress != RunProgress::Open {
        return Err(Error::NothingToCancel { run: current.name() });
    }
    let held_run = HeldRun::claim(adapters, lock, current).await?;
    let snapshot = held_run.read_snapshot().await?;
    let rows = snapshot.counts.get(RowState::Planned);
    let kept = count_kept_rows(ledger, &held_run.run, &snapshot).await?;
    Ok(CancelledRun { rows, kept, released: held_run.cancel().await? })
}
