//! The schedule daemon: rounds over all active schedules, and the runs that they start.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use super::due::ScheduleMemory;
use super::{NotifiedSchedule, ScheduleEvent, ScheduleObserver, notify_about};
use campaign_core::calendar::Occurrence;
use campaign_core::domain::NotificationEvent;
use campaign_engine::delivery::Interrupt;
use campaign_gateway::BoxFuture;
use campaign_ledger::{ActiveSchedule, DamagedSchedule, LedgerError};
use campaign_runs::{Adapters, Error, RunOutcome};

/// The signal that asks a sending process to end.
const TERMINATED: u8 = 15;

/// The schedule daemon; [`Daemon::run_until_shutdown`] runs it.
pub struct Daemon {
    /// The ledger, the profiles and the clock.
    pub adapters: Adapters,
    /// Starts runs.
    pub starter: Arc<dyn Starter>,
    /// Receives events.
    pub observer: ScheduleObserver,
    /// The campaign files and folders whose schedules it serves; empty for all.
    pub within: Vec<PathBuf>,
    /// The longest time between two rounds over the active schedules.
    pub refresh: Duration,
}

/// The state of a running daemon.
pub(super) struct DaemonState {
    pub(super) daemon: Daemon,
    pub(super) memories: HashMap<String, ScheduleMemory>,
    /// Reported damage, by schedule.
    pub(super) damaged: HashMap<String, String>,
    pub(super) running: JoinSet<StartResult>,
    pub(super) interrupt: watch::Receiver<Interrupt>,
    /// The time of the last round.
    pub(super) last_round: Timestamp,
}

/// The result of a started run.
pub(super) struct StartResult {
    pub(super) active: ActiveSchedule,
    pub(super) occurrence: Occurrence,
    /// Whether it resumed a run that an earlier daemon began.
    pub(super) resumed: bool,
    pub(super) outcome: Result<RunOutcome, Error>,
}

impl Daemon {
    /// Starts due occurrences until the shutdown, then waits for messages in flight.
    ///
    /// # Errors
    /// If the ledger fails: an occurrence that cannot be recorded is not started.
    pub async fn run_until_shutdown(self, shutdown: impl Future<Output = ()>) -> Result<(), LedgerError> {
        let (stop, interrupt) = watch::channel(Interrupt::None);
        let now = (self.adapters.clock)();
        let mut work = DaemonState {
            daemon: self,
            memories: HashMap::new(),
            damaged: HashMap::new(),
            running: JoinSet::new(),
            interrupt,
            last_round: now,
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
                let active = started.active.clone();
                match self.handle_end(started).await {
                    // Another process is writing. An occurrence that was not recorded is handled in the next round.
                    Err(LedgerError::Busy { .. }) => {
                        self.memories.remove(&active.name);
                        Ok(())
                    }
                    Err(error) if error.concerns_records() => {
                        self.memories.remove(&active.name);
                        self.report_damaged(&active, &error).await.map(drop)
                    }
                    ended => ended,
                }
            }
            // A panic is a bug. An operator can resume the run; the others are not affected.
            Err(error) => {
                tracing::error!("a run ended unexpectedly: {error}");
                Ok(())
            }
        }
    }

    /// Handles all active schedules. Returns the time until the next event.
    async fn run_round(&mut self) -> Result<Duration, LedgerError> {
        let now = (self.daemon.adapters.clock)();
        let schedules = match self.daemon.adapters.ledger.list_schedules().await {
            Err(LedgerError::Busy { .. }) => return Ok(self.daemon.refresh),
            schedules => schedules?,
        };
        let is_active = |name: &str| schedules.iter().flatten().any(|active| active.name == name);
        self.memories.retain(|name, memory| memory.running.is_some() || is_active(name));
        let mut wait = self.daemon.refresh;
        for stored in schedules {
            let active = match stored {
                Ok(active) => active,
                Err(damaged) => {
                    self.report_unreadable(&damaged).await?;
                    continue;
                }
            };
            if !is_served(&self.daemon.within, Path::new(&active.file)) {
                continue;
            }
            match self.attend_schedule(active.clone(), now).await {
                // Another process is writing. An occurrence that was not recorded is handled in the next round.
                Err(LedgerError::Busy { .. }) => {}
                // A damaged record stops only its own schedule.
                Err(error) if error.concerns_records() => drop(self.report_damaged(&active, &error).await?),
                next => {
                    wait = wait.min(next?);
                    if self.memories.get(&active.name).is_none_or(|memory| memory.damage.is_none()) {
                        self.damaged.remove(&active.name);
                    }
                }
            }
        }
        self.last_round = now;
        Ok(wait)
    }
}

/// Whether the daemon serves the schedule of a campaign file.
fn is_served(within: &[PathBuf], file: &Path) -> bool {
    let absolute = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    within.is_empty() || within.iter().any(|path| file.starts_with(absolute(path)))
}

/// Starts the runs of occurrences.
pub trait Starter: Send + Sync {
    /// Sends an occurrence, or resumes its run.
    fn start_occurrence(
        &self,
        active: ActiveSchedule,
        occurrence: Occurrence,
        interrupt: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<RunOutcome, Error>>;
}

/// Starts occurrences as runs.
pub struct RunStarter(pub Adapters);

impl Starter for RunStarter {
    fn start_occurrence(
        &self,
        active: ActiveSchedule,
        occurrence: Occurrence,
        interrupt: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<RunOutcome, Error>> {
        let adapters = self.0.clone();
        Box::pin(async move { campaign_runs::fire_occurrence(adapters, &active, &occurrence, interrupt).await })
    }
}

impl DaemonState {
    /// Reports once that a damaged record stops a schedule. Returns a description of the damage.
    pub(super) async fn report_damaged(
        &mut self,
        active: &ActiveSchedule,
        error: &LedgerError,
    ) -> Result<String, LedgerError> {
        let problem = error.describe_damage();
        self.report_damage_once(active.into(), &problem).await?;
        Ok(problem)
    }

    /// Reports once that the record of a schedule is damaged. Only its readable parts are known.
    pub(super) async fn report_unreadable(&mut self, damaged: &DamagedSchedule) -> Result<(), LedgerError> {
        let schedule = NotifiedSchedule { name: &damaged.name, file: damaged.file.as_ref(), active: None };
        self.report_damage_once(schedule, &damaged.error.describe_damage()).await
    }

    async fn report_damage_once(&mut self, schedule: NotifiedSchedule<'_>, problem: &str) -> Result<(), LedgerError> {
        let name = schedule.name;
        match self.damaged.entry(name.to_owned()) {
            Entry::Occupied(reported) if reported.get() == problem => return Ok(()),
            Entry::Occupied(mut reported) => drop(reported.insert(problem.to_owned())),
            Entry::Vacant(unreported) => drop(unreported.insert(problem.to_owned())),
        }
        self.notify_observer(ScheduleEvent::Damaged { schedule: name.to_owned(), problem: problem.to_owned() });
        let what = format!("the ledger is damaged ({problem}), so nothing is sent until it is repaired");
        notify_about(&self.daemon.adapters, schedule, NotificationEvent::Changed, &what).await
    }
}
