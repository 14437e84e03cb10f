//! The schedule daemon: rounds over all active schedules, which start or skip each due occurrence exactly once. An
//! occurrence waits while another process holds the campaign lock.
//!
//! - `memory`: the daemon's memory of a schedule, and occurrences that wait;
//! - `firing`: starting, skipping and resuming occurrences.
//!
//! The daemon reads active schedules from the ledger, uses the clock of its adapters, and sends through
//! [`campaign_runs`]. It reports [`ScheduleEvent`]s, and must not print anything or handle signals.

mod firing;
mod memory;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use campaign_content::message::Notice;
use campaign_core::calendar::Occurrence;
use campaign_core::domain::NotificationEvent;
use campaign_core::finding::BriefFinding;
use campaign_engine::delivery::Interrupt;
use campaign_engine::report::is_owned;
use campaign_gateway::BoxFuture;
use campaign_ledger::{
    ActiveSchedule, DamagedSchedule, LedgerError, NewNotification, NotificationUpdate, OccurrenceFilter, RunFilter,
    find_occurrence,
};
use campaign_manifest::{Campaign, CampaignDay, load_campaign};
use campaign_runs::notify::create_notification;
use campaign_runs::{
    Adapters, EndedRun, Error, RunOutcome, ScheduleChange, SkipRecord, load_active_campaign, occurrence_key,
};
use firing::CHECK_INTERVAL;
use memory::{AwaitingLock, FileStat, ScheduleMemory, start_deadline};

pub use memory::{AwaitingList, ListArrival, ListStart};

/// An event of a schedule. A schedule has the name of its campaign.
#[derive(Debug)]
pub enum ScheduleEvent {
    /// An occurrence waits for its list.
    Waiting {
        /// The name of the schedule, such as `sale`.
        schedule: String,
        /// The due occurrence, which starts once its list is complete.
        occurrence: Occurrence,
    },
    /// An occurrence waits for an approval.
    Unapproved {
        /// The name of the schedule, such as `sale`.
        schedule: String,
        /// The due occurrence, which starts once its plan is approved.
        occurrence: Occurrence,
        /// The digest of the occurrence's plan.
        digest: String,
    },
    /// A run ended or stopped. [`EndedRun`] has its results, including rows in doubt.
    Ended {
        /// The name of the schedule, such as `sale`.
        schedule: String,
        /// The occurrence for which the run was started.
        occurrence: Occurrence,
        /// The run.
        ended: Box<EndedRun>,
        /// Whether the text is identical to that of the previous occurrence.
        same_text: bool,
    },
    /// A started run could not be finished. An operator can resume the run.
    Broke {
        /// The name of the schedule, such as `sale`.
        schedule: String,
        /// The occurrence for which the run was started, which stays recorded as fired.
        occurrence: Occurrence,
        /// The reason.
        why: String,
    },
    /// An occurrence was skipped, and possibly others before it.
    Skipped {
        /// The name of the schedule, such as `sale`.
        schedule: String,
        /// The last of the skipped occurrences.
        occurrence: Occurrence,
        /// The number of occurrences that were skipped before this occurrence.
        skipped_before: usize,
        /// The reason this occurrence was skipped. The occurrences before it were missed.
        reason: SkipReason,
    },
    /// The campaign has changed since its schedule was activated, so the schedule does not fire.
    Changed {
        /// The name of the schedule, such as `sale`.
        schedule: String,
        /// The first change that was found, in the order of [`ScheduleChange`].
        change: ScheduleChange,
        /// The findings about the campaign file, if the change makes the file unreadable.
        findings: Vec<BriefFinding>,
    },
    /// A damaged ledger record stops a schedule.
    Damaged {
        /// The name of the schedule, such as `sale`.
        schedule: String,
        /// A description of the damage.
        problem: String,
    },
}

/// The reason an occurrence was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The time of the occurrence passed while no daemon was running, or while another process held the campaign lock
    /// but sent no run.
    Missed,
    /// The previous occurrence or another run of the campaign was still being sent.
    Busy,
    /// This list file did not arrive.
    NoList(PathBuf),
    /// The next occurrence became due while this occurrence waited for its list.
    Overtaken,
    /// The occurrence was not approved within a day, or before the next occurrence.
    Unapproved,
    /// The schedule was paused or activated again while the occurrence waited.
    Withdrawn,
    /// The campaign, the gateway or the account changed after the activation. If the campaign file cannot be read or
    /// has errors, there are findings about the file.
    Changed(ScheduleChange, Vec<BriefFinding>),
    /// A ledger record that the occurrence needs is damaged, as described.
    Damaged(String),
    /// No recipients were left.
    NoRecipientsLeft,
    /// The run was refused, for this reason.
    Refused(SkipRecord),
}

impl SkipReason {
    /// Converts the reason to the record that the ledger stores.
    pub fn to_record(&self) -> SkipRecord {
        let reason = match self {
            Self::Missed => SkipRecord::MISSED,
            Self::Busy => SkipRecord::BUSY,
            Self::NoList(list) => &format!("the list did not arrive in time: {}", list.display()),
            Self::Overtaken => SkipRecord::OVERTAKEN,
            Self::Unapproved => SkipRecord::UNAPPROVED,
            Self::Withdrawn => SkipRecord::WITHDRAWN,
            Self::Changed(change, findings) => {
                let why = match change {
                    ScheduleChange::Unreadable | ScheduleChange::Campaign => SkipRecord::CHANGED,
                    ScheduleChange::Addresses => SkipRecord::GATEWAY_CHANGED,
                    ScheduleChange::Account => SkipRecord::ACCOUNT_CHANGED,
                };
                return SkipRecord { why: why.to_owned(), findings: findings.clone() };
            }
            Self::Damaged(problem) => &format!("the ledger is damaged: {problem}"),
            Self::NoRecipientsLeft => SkipRecord::NO_RECIPIENTS_LEFT,
            Self::Refused(record) => return record.clone(),
        };
        SkipRecord::new(reason, &[])
    }
}

/// Receives events.
pub type ScheduleObserver = Arc<dyn Fn(ScheduleEvent) + Send + Sync>;

/// The subject of a notification about a schedule.
#[derive(Clone, Copy)]
struct NotifiedSchedule<'a> {
    /// The name, which is that of the campaign.
    name: &'a str,
    /// The campaign file.
    file: &'a Path,
    /// The record, unless it is damaged.
    active: Option<&'a ActiveSchedule>,
}

impl<'a> From<&'a ActiveSchedule> for NotifiedSchedule<'a> {
    fn from(active: &'a ActiveSchedule) -> Self {
        Self { name: &active.name, file: active.file.as_ref(), active: Some(active) }
    }
}

/// Stores notifications about a schedule for the targets in its campaign file and in the gateway profile. No
/// notifications are stored if the campaign file cannot be read.
///
/// The campaign's notification program is not started if `notify` in the file changed after the activation, because the
/// change was not reviewed.
///
/// # Errors
/// If the ledger cannot be written.
async fn notify_about(
    adapters: &Adapters,
    schedule: impl Into<NotifiedSchedule<'_>>,
    occasion: NotificationEvent,
    message: &str,
) -> Result<(), LedgerError> {
    let notifications = build_notifications(adapters, schedule.into(), occasion, message);
    store_notifications(adapters, notifications).await
}

async fn store_notifications(adapters: &Adapters, notifications: Vec<NewNotification>) -> Result<(), LedgerError> {
    if notifications.is_empty() {
        return Ok(());
    }
    match adapters.ledger.update_notifications(NotificationUpdate::Queued(notifications)).await {
        // What the notification reports is in the ledger and in the log. Without it, the schedules continue.
        Err(busy @ LedgerError::Busy { .. }) => {
            tracing::error!("a notification about a schedule could not be stored: {busy}");
            Ok(())
        }
        stored => stored,
    }
}

fn build_notifications(
    adapters: &Adapters,
    NotifiedSchedule { name, file, active }: NotifiedSchedule<'_>,
    occasion: NotificationEvent,
    message: &str,
) -> Vec<NewNotification> {
    let now = (adapters.clock)();
    // A damaged record might name the file of another campaign. Such a file is ignored.
    let campaign = load_campaign(file, CampaignDay::Of(now)).value.filter(|campaign| campaign.brief.name == name);
    let activated = active.and_then(load_active_campaign);
    let is_notify_unchanged =
        |campaign: &Campaign| activated.as_ref().is_some_and(|activated| activated.notify == campaign.notify);
    let campaign = campaign.map(|campaign| match is_notify_unchanged(&campaign) {
        true => campaign,
        false => campaign.without_notify_command(),
    });
    let gateways = adapters.profiles.load(Some(file)).unwrap_or_default();
    let campaign_gateway = || campaign.as_ref().map(|campaign| campaign.brief.gateway.as_str());
    let gateway = active.map(|active| active.gateway.as_str()).or_else(campaign_gateway).unwrap_or_default();
    let profile = gateways.find_profile(gateway).ok();
    let settings = campaign.iter().flat_map(|campaign| campaign.notify_settings(profile));
    let notice = Notice {
        occasion,
        campaign: name.to_owned(),
        run: None,
        gateway: gateway.to_owned(),
        text: format!("{name} through {gateway}: {message}"),
        rows: 0,
        counts: std::collections::BTreeMap::new(),
        why: Some(message.to_owned()),
        results: None,
        at: now.to_string(),
    };
    settings.filter_map(|notify| create_notification(notify, &notice)).collect()
}

/// The number of the signal that asks a process to end.
const SIGTERM: u8 = 15;

/// The schedule daemon; [`Daemon::run_until_shutdown`] runs it.
pub struct Daemon {
    /// The ledger, the profiles and the clock.
    pub adapters: Adapters,
    /// Starts runs.
    pub starter: Arc<dyn Starter>,
    /// Receives events.
    pub observer: ScheduleObserver,
    /// The campaign files and folders whose schedules the daemon serves; empty for all schedules.
    pub served_paths: Vec<PathBuf>,
    /// The maximum time between two rounds over the active schedules.
    pub refresh: Duration,
}

/// The state of a running daemon.
struct DaemonState {
    daemon: Daemon,
    memories: HashMap<String, ScheduleMemory>,
    /// Reported damage, by schedule.
    damaged: HashMap<String, String>,
    running: JoinSet<StartResult>,
    interrupt: watch::Receiver<Interrupt>,
    /// The time of the last round.
    last_round: Timestamp,
}

/// The result of starting an occurrence, once its run has ended or the start has failed.
struct StartResult {
    active: ActiveSchedule,
    occurrence: Occurrence,
    /// Whether the start resumed a run that an earlier daemon began.
    resumed: bool,
    outcome: Result<RunOutcome, Error>,
}

impl Daemon {
    /// Starts due occurrences until the shutdown, then waits for messages in flight.
    ///
    /// # Errors
    /// If the ledger fails. An occurrence that cannot be recorded is not started.
    pub async fn run_until_shutdown(self, shutdown: impl Future<Output = ()>) -> Result<(), LedgerError> {
        let (stop, interrupt) = watch::channel(Interrupt::None);
        let now = (self.adapters.clock)();
        let mut state = DaemonState {
            daemon: self,
            memories: HashMap::new(),
            damaged: HashMap::new(),
            running: JoinSet::new(),
            interrupt,
            last_round: now,
        };
        let served = state.run_rounds(shutdown).await;
        stop.send_replace(Interrupt::Graceful(SIGTERM));
        let ended = state.wait_for_runs().await;
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
                Some(task_result) = self.running.join_next() => self.handle_task_end(task_result).await?,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn wait_for_runs(&mut self) -> Result<(), LedgerError> {
        while let Some(task_result) = self.running.join_next().await {
            self.handle_task_end(task_result).await?;
        }
        Ok(())
    }

    /// Handles the end of the task that started an occurrence.
    async fn handle_task_end(&mut self, task_result: Result<StartResult, JoinError>) -> Result<(), LedgerError> {
        match task_result {
            Ok(result) => {
                let active = result.active.clone();
                match self.handle_end(result).await {
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
            // The task catches panics of the run, so this is a bug of the daemon itself.
            Err(error) => {
                tracing::error!("a run ended unexpectedly: {error}");
                Ok(())
            }
        }
    }

    /// Handles all active schedules. Returns the time until the next round.
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
                    // If the file is unknown, any server reports the damage.
                    if damaged.file.is_empty() || is_served(&self.daemon.served_paths, Path::new(&damaged.file)) {
                        self.report_unreadable(&damaged).await?;
                    }
                    continue;
                }
            };
            if !is_served(&self.daemon.served_paths, Path::new(&active.file)) {
                continue;
            }
            match self.process_schedule(active.clone(), now).await {
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

/// Whether the daemon serves the schedule of a campaign file. An empty list of paths means all files.
fn is_served(served_paths: &[PathBuf], file: &Path) -> bool {
    let absolute = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    served_paths.is_empty() || served_paths.iter().any(|path| file.starts_with(absolute(path)))
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

/// A starter that sends occurrences as runs of the campaign.
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
    async fn report_damaged(&mut self, active: &ActiveSchedule, error: &LedgerError) -> Result<String, LedgerError> {
        let problem = error.describe_damage();
        self.report_damage_once(active.into(), &problem).await?;
        Ok(problem)
    }

    /// Reports once that the record of a schedule is damaged. Only the readable parts of the record are known.
    async fn report_unreadable(&mut self, damaged: &DamagedSchedule) -> Result<(), LedgerError> {
        let schedule = NotifiedSchedule { name: &damaged.name, file: damaged.file.as_ref(), active: None };
        self.report_damage_once(schedule, &damaged.error.describe_damage()).await
    }

    async fn report_damage_once(&mut self, schedule: NotifiedSchedule<'_>, problem: &str) -> Result<(), LedgerError> {
        let name = schedule.name;
        let reported = self.damaged.insert(name.to_owned(), problem.to_owned());
        if reported.as_deref() == Some(problem) {
            return Ok(());
        }
        self.notify_observer(ScheduleEvent::Damaged { schedule: name.to_owned(), problem: problem.to_owned() });
        let message = format!("the ledger is damaged ({problem}), so nothing is sent until it is repaired");
        notify_about(&self.daemon.adapters, schedule, NotificationEvent::Changed, &message).await
    }
}

/// Occurrences that wait for the campaign lock. The holder of the lock might start the same occurrence, send another
/// run, or only ask the gateway about messages in doubt. So the occurrence waits until another process records it, the
/// lock is free, or it is too late.
impl DaemonState {
    /// Makes an occurrence wait for the campaign lock.
    fn await_lock(&mut self, active: &ActiveSchedule, occurrence: Occurrence) {
        let now = (self.daemon.adapters.clock)();
        let list = self.find_list(active, &occurrence).ok().flatten();
        let Some(memory) = self.memories.get_mut(&active.name) else { return };
        let Some(schedule) = &memory.schedule else { return };
        let until = match memory.unapproved.take() {
            // The approval can come long after the scheduled time, so the grace period starts at the approval.
            Some(unapproved) => now.checked_add(schedule.grace).unwrap_or(Timestamp::MAX).min(unapproved.until),
            None => start_deadline(schedule, &occurrence, list.as_deref().and_then(FileStat::read)),
        };
        // If the same occurrence waited before, it keeps its deadline.
        let earlier = memory.locked.take().filter(|earlier| earlier.occurrence == occurrence);
        let until = earlier.map_or(until, |earlier| earlier.until);
        tracing::info!(
            schedule = active.name,
            occurrence = occurrence.format_nominal_time(),
            "waiting for the campaign lock"
        );
        memory.locked = Some(AwaitingLock { occurrence, until, tried_at: now });
    }

    /// Starts the occurrence that waits for the campaign lock once the lock is free, or skips it after the deadline.
    /// Returns whether the daemon must check again soon, which is unnecessary while a run of the schedule is being
    /// sent.
    async fn poll_lock(
        &mut self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let Some(locked) = memory.locked.as_ref().filter(|_| memory.running.is_none()) else { return Ok(false) };
        let (ledger, key) = (self.ledger(), occurrence_key(&active.name, &locked.occurrence));
        if find_occurrence(ledger.as_ref(), OccurrenceFilter::Key(&key)).await?.is_some() {
            // Another daemon started or skipped the occurrence.
            memory.locked = None;
            return Ok(false);
        }
        if now > locked.until {
            self.skip_locked(memory, active).await?;
            return Ok(false);
        }
        let tried_recently = now.duration_since(locked.tried_at).unsigned_abs() < CHECK_INTERVAL;
        if tried_recently || memory.damage.is_some() {
            return Ok(true);
        }
        if ledger.find_campaign_lock(&active.name, &active.account).await?.is_none() {
            let occurrence = locked.occurrence.clone();
            self.start_occurrence(memory, active, occurrence, false);
        }
        Ok(true)
    }

    /// Skips the occurrence that waits for the campaign lock, if there is one.
    async fn skip_locked(&self, memory: &mut ScheduleMemory, active: &ActiveSchedule) -> Result<(), LedgerError> {
        let Some(locked) = memory.locked.take() else { return Ok(()) };
        let reason = match memory.damage.clone() {
            Some(problem) => SkipReason::Damaged(problem),
            None if self.is_being_sent(active).await? => SkipReason::Busy,
            None => SkipReason::Missed,
        };
        self.skip_occurrence(active, &locked.occurrence, 0, reason).await.map(drop)
    }

    /// Whether a process is sending a run of the campaign and account.
    async fn is_being_sent(&self, active: &ActiveSchedule) -> Result<bool, LedgerError> {
        let ledger = self.ledger();
        let open = RunFilter { open: true, ..RunFilter::for_campaign(&active.name) };
        for run in ledger.list_stored_runs(open).await?.into_iter().flatten() {
            if run.account == active.account && is_owned(ledger.as_ref(), &run).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
