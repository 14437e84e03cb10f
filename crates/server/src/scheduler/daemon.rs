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

/// The parts of a daemon; [`Daemon::run_until_shutdown`] runs it.
pub struct Daemon {
    /// The ledger, the profiles, the clock.
    pub adapters: Adapters,
    /// Starts runs.
    pub starter: Arc<dyn Starter>,
    /// Receives events.
    pub observer: ScheduleObserver,
    /// The campaign files, and the folders of files, that it serves; empty for all.
    pub within: Vec<PathBuf>,
    /// The longest time between two readings of the active schedules.
    pub refresh: Duration,
}

/// The daemon at work.
pub(super) struct DaemonState {
    pub(super) daemon: Daemon,
    pub(super) memories: HashMap<String, ScheduleMemory>,
    /// Reported damage, by schedule.
    pub(super) damaged: HashMap<String, String>,
    pub(super) running: JoinSet<StartResult>,
    pub(super) interrupt: watch::Receiver<Interrupt>,
    /// When the last round was.
    pub(super) last_round: Timestamp,
}

/// The result of a started run.
pub(super) struct StartResult {
    pub(super) armed: ActiveSchedule,
    pub(super) occurrence: Occurrence,
    /// Whether it continued a run that an earlier daemon began.
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
        let looked = (self.adapters.clock)();
        let mut work = DaemonState {
            daemon: self,
            memories: HashMap::new(),
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
                    // Another process is writing. What was not recorded will be found again.
                    Err(LedgerError::Busy { .. }) => {
                        self.memories.remove(&armed.name);
                        Ok(())
                    }
                    Err(error) if error.concerns_records() => {
                        self.memories.remove(&armed.name);
                        self.report_damaged(&armed, &error).await.map(drop)
                    }
                    ended => ended,
                }
            }
            // A panic of a start is a bug; its run can be continued by hand, and the others continue.
            Err(error) => {
                tracing::error!("a run ended unexpectedly: {error}");
                Ok(())
            }
        }
    }

    /// Handles all active schedules. Returns the time until the next event.
    async fn run_round(&mut self) -> Result<Duration, LedgerError> {
        let now = (self.daemon.adapters.clock)();
        let armed = match self.daemon.adapters.ledger.list_schedules().await {
            Err(LedgerError::Busy { .. }) => return Ok(self.daemon.refresh),
            armed => armed?,
        };
        let is_armed = |name: &str| armed.iter().flatten().any(|armed| armed.name == name);
        self.memories.retain(|name, memory| memory.running.is_some() || is_armed(name));
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
                // Another process is writing. What was not recorded is handled in the next round.
                Err(LedgerError::Busy { .. }) => {}
                // A damaged record stops only its own schedule; the ledger serves the others, and receipts.
                Err(error) if error.concerns_records() => drop(self.report_damaged(&armed, &error).await?),
                next => {
                    wait = wait.min(next?);
                    if self.memories.get(&armed.name).is_none_or(|memory| memory.damage.is_none()) {
                        self.damaged.remove(&armed.name);
                    }
                }
            }
        }
        self.last_round = now;
        Ok(wait)
    }
}

/// Whether this daemon serves a campaign file.
fn is_served(within: &[PathBuf], file: &Path) -> bool {
    let whole = |place: &PathBuf| place.canonicalize().unwrap_or_else(|_| place.clone());
    within.is_empty() || within.iter().any(|place| file.starts_with(whole(place)))
}

/// Starts the runs of occurrences.
pub trait Starter: Send + Sync {
    /// Sends an occurrence, or resumes its run.
    fn start_occurrence(
        &self,
        armed: ActiveSchedule,
        occurrence: Occurrence,
        interrupt: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<RunOutcome, Error>>;
}

/// Sends them as runs.
pub struct RunStarter(pub Adapters);

impl Starter for RunStarter {
    fn start_occurrence(
        &self,
        armed: ActiveSchedule,
        occurrence: Occurrence,
        interrupt: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<RunOutcome, Error>> {
        let adapters = self.0.clone();
        Box::pin(async move { campaign_runs::fire_occurrence(adapters, &armed, &occurrence, interrupt).await })
    }
}

impl DaemonState {
    /// Reports once that a damaged record stops a schedule. Returns a description of the damage.
    pub(super) async fn report_damaged(
        &mut self,
        armed: &ActiveSchedule,
        error: &LedgerError,
    ) -> Result<String, LedgerError> {
        let problem = error.describe_damage();
        self.report_damage_once(armed.into(), &problem).await?;
        Ok(problem)
    }

    /// Reports once that the record of a schedule is damaged. Only readable parts of it are known.
    pub(super) async fn report_unreadable(&mut self, damaged: &DamagedSchedule) -> Result<(), LedgerError> {
        let named = NotifiedSchedule { name: &damaged.name, file: damaged.file.as_ref(), armed: None };
        self.report_damage_once(named, &damaged.error.describe_damage()).await
    }

    async fn report_damage_once(&mut self, schedule: NotifiedSchedule<'_>, problem: &str) -> Result<(), LedgerError> {
        let name = schedule.name;
        match self.damaged.entry(name.to_owned()) {
            Entry::Occupied(reported) if reported.get() == problem => return Ok(()),
            Entry::Occupied(mut reported) => drop(reported.insert(problem.to_owned())),
            Entry::Vacant(untold) => drop(untold.insert(problem.to_owned())),
        }
        self.notify_observer(ScheduleEvent::Damaged { schedule: name.to_owned(), problem: problem.to_owned() });
        let what = format!("the ledger is damaged ({problem}), so nothing is sent until it is repaired");
        notify_about(&self.daemon.adapters, schedule, NotificationEvent::Changed, &what).await
    }
}
