//! The daemon: a round over what is armed, then a wait for what comes first.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use super::post::ScheduleMemory;
use super::{ScheduleObserver, Starter};
use crate::calendar::Occurrence;
use crate::delivery::Interrupt;
use crate::ledger::{ActiveSchedule, LedgerError};
use crate::runs::{Adapters, Error, RunOutcome};

/// The signal by which what is being sent is asked to end.
const TERMINATED: u8 = 15;

/// What a daemon is made of; [`Daemon::serve`] runs it.
pub struct Daemon {
    /// The ledger, the profiles, the clock.
    pub adapters: Adapters,
    /// Who sends.
    pub starter: Arc<dyn Starter>,
    /// Who is told.
    pub observer: ScheduleObserver,
    /// The campaign files that it serves, and the folders whose files it serves; all where none is named.
    pub within: Vec<PathBuf>,
    /// How long at most until what is armed is looked at again.
    pub refresh: Duration,
}

/// The daemon at work.
pub(super) struct DaemonState {
    pub(super) daemon: Daemon,
    pub(super) posts: HashMap<String, ScheduleMemory>,
    /// The damage that stops schedules and was told, by the schedules' names.
    pub(super) damaged: HashMap<String, String>,
    pub(super) running: JoinSet<StartResult>,
    pub(super) interrupt: watch::Receiver<Interrupt>,
    /// When the last round was.
    pub(super) last_round: Timestamp,
}

/// What came of a start.
pub(super) struct StartResult {
    pub(super) armed: ActiveSchedule,
    pub(super) occurrence: Occurrence,
    /// Whether it went on with a run that an earlier daemon began.
    pub(super) resumed: bool,
    pub(super) outcome: Result<RunOutcome, Error>,
}

impl Daemon {
    /// Starts what is armed when it is due, until the shutdown; then it waits for what is in flight.
    ///
    /// # Errors
    /// When the ledger fails: nothing is started that cannot be recorded.
    pub async fn run_until_shutdown(self, shutdown: impl Future<Output = ()>) -> Result<(), LedgerError> {
        let (stop, interrupt) = watch::channel(Interrupt::None);
        let looked = (self.adapters.clock)();
        let mut work = DaemonState {
            daemon: self,
            posts: HashMap::new(),
            damaged: HashMap::new(),
            running: JoinSet::new(),
            interrupt,
            last_round: looked,
        };
        let served = work.run_rounds(shutdown).await;
        stop.send_replace(Interrupt::Graceful(TERMINATED));
        let ended = work.wait_for_runs().await;
        served.and(ended)
    }
}

impl DaemonState {
    async fn run_rounds(&mut self, shutdown: impl Future<Output = ()>) -> Result<(), LedgerError> {
        tokio::pin!(shutdown);
        loop {
            let wait = self.run_round().await?;
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                Some(started) = self.running.join_next() => self.handle_start_result(started).await?,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn wait_for_runs(&mut self) -> Result<(), LedgerError> {
        while let Some(started) = self.running.join_next().await {
            self.handle_start_result(started).await?;
        }
        Ok(())
    }

    async fn handle_start_result(&mut self, started: Result<StartResult, JoinError>) -> Result<(), LedgerError> {
        match started {
            Ok(started) => {
                let armed = started.armed.clone();
                match self.handle_end(started).await {
                    // Another process has the turn to write: what was not recorded is found anew.
                    Err(LedgerError::Busy { .. }) => {
                        self.posts.remove(&armed.name);
                        Ok(())
                    }
                    Err(error) if error.concerns_records() => {
                        self.posts.remove(&armed.name);
                        self.report_damaged(&armed, &error).await.map(drop)
                    }
                    ended => ended,
                }
            }
            // A start that panicked is a bug; its run can be gone on with by hand, and the others go on.
            Err(error) => {
                tracing::error!("a run ended unexpectedly: {error}");
                Ok(())
            }
        }
    }

    /// Looks at everything that is armed; tells how long until something is to be done.
    async fn run_round(&mut self) -> Result<Duration, LedgerError> {
        let now = (self.daemon.adapters.clock)();
        let armed = match self.daemon.adapters.ledger.list_schedules().await {
            Err(LedgerError::Busy { .. }) => return Ok(self.daemon.refresh),
            armed => armed?,
        };
        let is_armed = |name: &str| armed.iter().flatten().any(|armed| armed.name == name);
        self.posts.retain(|name, post| post.running.is_some() || is_armed(name));
        let mut wait = self.daemon.refresh;
        for stored in armed {
            let armed = match stored {
                Ok(armed) => armed,
                Err(damaged) => {
                    self.report_unreadable(&damaged).await?;
                    continue;
                }
            };
            if !is_served(&self.daemon.within, Path::new(&armed.file)) {
                continue;
            }
            match self.attend_schedule(armed.clone(), now).await {
                // Another process has the turn to write: what was not recorded is looked at again.
                Err(LedgerError::Busy { .. }) => {}
                // A damaged record stops its own schedule; the ledger serves the others, and receipts.
                Err(error) if error.concerns_records() => drop(self.report_damaged(&armed, &error).await?),
                next => {
                    wait = wait.min(next?);
                    if self.posts.get(&armed.name).is_none_or(|post| post.damage.is_none()) {
                        self.damaged.remove(&armed.name);
                    }
                }
            }
        }
        self.last_round = now;
        Ok(wait)
    }
}

/// Whether a campaign file is one of those that are served.
fn is_served(within: &[PathBuf], file: &Path) -> bool {
    let whole = |place: &PathBuf| place.canonicalize().unwrap_or_else(|_| place.clone());
    within.is_empty() || within.iter().any(|place| file.starts_with(whole(place)))
}
