//! Asking a run to stop, and ending one for good.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::find::reload_run;
use super::{Adapters, Error, HeldRun, ReleasedRun};
use crate::delivery::Snapshot;
use crate::ledger::{Ledger, RowState, Run, RunProgress, StateCounts};
use crate::report::is_owned;

/// How long the process that sends a run is waited for: what is in flight has its time, and results of millions theirs.
const STOP_TIMEOUT: Duration = Duration::from_secs(900);
/// How often it is looked whether it is through.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Asks the process that sends a run to stop after what is in flight; tells whether there is one.
///
/// # Errors
/// When a process has the campaign without sending this run, since that one may be about to send; when it is single
/// questions, which nobody but who waits for them stops; when the ledger cannot be written.
pub async fn stop_run(ledger: &dyn Ledger, run: &Run) -> Result<bool, Error> {
    if run.shared && !ledger.load_claimed_rows(run.key).await?.is_empty() {
        return Err(Error::SinglesOnTheirWay { run: run.name() });
    }
    if is_owned(ledger, run).await? {
        ledger.request_stop(run.key, true).await?;
        return Ok(true);
    }
    if ledger.is_campaign_locked(&run.campaign, &run.account).await? {
        return Err(Error::NothingToStopYet { run: run.name(), campaign: run.campaign.clone() });
    }
    Ok(false)
}

/// What `stop --for-good` is about to cancel.
#[derive(Debug)]
pub struct Cancellation {
    /// The run's rows by state.
    pub counts: StateCounts,
    /// Whether a process is sending the run, so that fewer rows may be left in a moment.
    pub is_sending: bool,
    /// Whether a schedule of the campaign is active, which the stop does not end.
    pub is_scheduled: bool,
}

impl Cancellation {
    /// Reads what would be cancelled of a run.
    ///
    /// # Errors
    /// When the run has ended, or the ledger cannot be read.
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

    /// How many rows are planned.
    #[must_use]
    pub fn count_rows(&self) -> u64 {
        self.counts.get(RowState::Planned)
    }
}

/// Why nothing of a run that was stopped for good is sent again.
pub(super) fn cancelled_error(run: &Run) -> Error {
    let file = run.file.as_ref().map(PathBuf::from);
    Error::Cancelled { run: run.name(), file, gateway: run.gateway.clone() }
}

/// A run that was stopped for good.
#[derive(Debug)]
pub struct CancelledRun {
    /// How many rows are not sent any more.
    pub rows: u64,
    /// Where the run stands.
    pub released: ReleasedRun,
}

/// Stops a run for good: what is planned is not sent any more, and the run ends.
///
/// # Errors
/// When nothing of the run is left to send, another process has it and does not end, or the ledger cannot be written.
pub async fn cancel_run(adapters: &Adapters, run: Run) -> Result<CancelledRun, Error> {
    let (ledger, deadline) = (adapters.ledger.as_ref(), Instant::now() + STOP_TIMEOUT);
    stop_run(ledger, &run).await?;
    // Looked at anew each time: the process that sends it may go on with another run of the campaign.
    let now = loop {
        let now = reload_run(ledger, run.key).await?;
        if !is_owned(ledger, &now).await? || Instant::now() >= deadline {
            break now;
        }
        sleep(POLL_INTERVAL).await;
    };
    let hold = HeldRun::hold_for_run(adapters, &now).await?;
    // While it is held, so that of two who stop it one does.
    let now = reload_run(ledger, now.key).await?;
    if now.progress != RunProgress::Open {
        return Err(Error::NothingToCancel { run: now.name() });
    }
    let held = HeldRun::claim(adapters, hold, now).await?;
    let rows = held.read_snapshot().await?.counts.get(RowState::Planned);
    Ok(CancelledRun { rows, released: held.cancel().await? })
}
