//! Workers and shared runs: drawing shards of runs that other processes began.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::find::reload_run;
use super::launch::Session;
use super::ledger_health::refuse_backup;
use super::number_files::SuppressionWatch;
use super::plan::check_profile;
use super::policy::refuse_ignored_opt_outs;
use super::profiles::refuse_loopback_change;
use super::send::{RunSender, SendJob, open_frozen_list};
use super::{Adapters, Connection, Error, RunEvent, load_hook, read_api_key, refuse_other_secret};
use campaign_engine::delivery::{
    self, DeliveryEvent, DrawEnd, FrozenInputs, FrozenRun, Interrupt, Participant, SendEnding, ShardSender,
    ShardSource, Snapshot, Stop,
};
use campaign_ledger::{
    BilledParts, Lease, LedgerError, RowState, Run, RunFilter, RunId, RunProgress, StateCounts, StopKind,
};
use campaign_manifest::{Destination, SendingTerms};

/// The interval between a worker's searches for runs.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The time for which a worker that could not send a run leaves the run to other workers.
const REST_TIME: Duration = Duration::from_secs(30);

/// What a worker did with a shared run, or an event of that run.
#[derive(Debug)]
pub enum WorkerEvent {
    /// The worker joined the run.
    Joined {
        /// The run's name.
        run: String,
    },
    /// The worker left the run.
    Left {
        /// The run's name.
        run: String,
        /// The number of messages that the worker sent.
        sent: u64,
        /// The reason the worker stopped. `None` if nothing was left.
        stopped: Option<Stop>,
    },
    /// The worker cannot send the run.
    Unable {
        /// The run's name.
        run: String,
        /// The reason.
        error: Error,
    },
    /// An event of a run that the worker joins or sends.
    RunEvent {
        /// The run's name.
        run: String,
        /// The event.
        event: RunEvent,
    },
}

/// Receives the events of a worker, which can send several runs at the same time.
pub type WorkerObserver = Arc<dyn Fn(WorkerEvent) + Send + Sync>;

/// A process that takes shards of runs that other processes began with `--shared`.
#[derive(Clone)]
pub struct Worker {
    /// The adapters, whose observer is replaced by a separate one for each run.
    pub adapters: Adapters,
    /// The observer of the worker and of all runs that it sends.
    pub observer: WorkerObserver,
    /// The interrupt signal.
    pub interrupt: watch::Receiver<Interrupt>,
}

/// A run that a worker has left, with the result.
type EndedWork = (Run, Result<(SendEnding, DrawEnd), Error>);

#[derive(Default)]
struct WorkerState {
    /// The runs that the worker sends.
    sending: HashSet<RunId>,
    /// The times until which the worker leaves runs to other workers, by run and sharding.
    resting: HashMap<(RunId, i64), Instant>,
}

impl Worker {
    /// Takes shards of runs until a signal arrives, and then releases the shards.
    ///
    /// # Errors
    /// If the ledger can no longer be read or written.
    pub async fn run(self) -> Result<(), Error> {
        let (mut state, mut sending) = (WorkerState::default(), JoinSet::new());
        let mut interrupt = self.interrupt.clone();
        let failed = loop {
            let open_runs = match self.list_open_runs(&state).await {
                Ok(runs) => runs,
                Err(error) => break Some(error),
            };
            for run in open_runs {
                state.sending.insert(run.key);
                let worker = self.clone();
                sending.spawn(async move {
                    let ended = worker.send_shards(&run).await;
                    (run, ended)
                });
            }
            tokio::select! {
                biased;
                _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => break None,
                Some(ended) = sending.join_next() => {
                    if let Some(failed) = self.record_end(ended, &mut state) {
                        break Some(failed);
                    }
                }
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        };
        // Aborting the runs that are being sent would put their messages in flight in doubt. These runs receive the
        // signal too, and then wait only for those messages.
        while let Some(ended) = sending.join_next().await {
            self.record_end(ended, &mut state);
        }
        failed.map_or(Ok(()), Err)
    }

    /// The shared runs that this worker can send.
    async fn list_open_runs(&self, state: &WorkerState) -> Result<Vec<Run>, Error> {
        let open = RunFilter { open: true, live: true, ..RunFilter::all() };
        let mut runs = self.adapters.ledger.list_runs(open).await?;
        runs.retain(|run| {
            let is_resting =
                |sharing: i64| state.resting.get(&(run.key, sharing)).is_some_and(|until| Instant::now() < *until);
            let is_open = run.progress == RunProgress::Open && !run.stop_requested && run.ended_at.is_none();
            is_open
                && !state.sending.contains(&run.key)
                && run.sharding.as_ref().is_some_and(|sharing| !is_resting(sharing.id))
        });
        Ok(runs)
    }

    /// Records that the worker left a run. Returns the error that ended the work, if the error prevents further work.
    fn record_end(&self, ended: Result<EndedWork, JoinError>, state: &mut WorkerState) -> Option<Error> {
        let (run, ended) = match ended {
            Ok(ended) => ended,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        };
        state.sending.remove(&run.key);
        let name = run.name();
        let mut leave_to_others = || {
            if let Some(sharing) = &run.sharding {
                state.resting.insert((run.key, sharing.id), Instant::now() + REST_TIME);
            }
        };
        match ended {
            Ok((SendEnding { sent, stopped, .. }, drawn)) => {
                let has_ledger_failed = stopped.as_ref().is_some_and(|stop| stop.kind == StopKind::Ledger);
                // The wait applies only to this sharding of the run. If the run is sharded again, the worker can join
                // at once.
                if drawn != DrawEnd::RunOver {
                    leave_to_others();
                }
                let reason = stopped.as_ref().map(|stop| stop.reason.clone()).unwrap_or_default();
                (self.observer)(WorkerEvent::Left { run: name, sent, stopped });
                has_ledger_failed.then_some(Error::Storage(reason))
            }
            Err(error @ Error::Ledger(_)) if is_ledger_error(&error) => Some(error),
            Err(error) => {
                leave_to_others();
                (self.observer)(WorkerEvent::Unable { run: name, error });
                None
            }
        }
    }

    /// Takes shards of a run until none is left. Stops the run for all workers if continuing would do harm.
    async fn send_shards(&self, run: &Run) -> Result<(SendEnding, DrawEnd), Error> {
        let ledger = self.adapters.ledger.as_ref();
        let terms = run.sharding.as_ref().map_or("", |sharing| &sharing.terms);
        let terms: SendingTerms = serde_json::from_str(terms).map_err(|_| {
            Error::Input(format!(
                "{} was started by another version of campaign; use the same version for all workers",
                run.name()
            ))
        })?;
        let (name, observer) = (run.name(), Arc::clone(&self.observer));
        let run_observer = Arc::new(move |event| observer(WorkerEvent::RunEvent { run: name.clone(), event }));
        let adapters = Adapters { observer: run_observer, ..self.adapters.clone() };
        refuse_backup(ledger).await?;
        let profile = adapters.profiles.find_run_profile(run, None, &adapters.observer)?;
        if profile.account != run.account {
            return Err(Error::Input(format!(
                "the profile `{}` has the account `{}` on this machine, but {} is sent through `{}`; set the same \
                 address and `account` as on the machine where the run was started",
                profile.name,
                profile.account,
                run.name(),
                run.account
            )));
        }
        refuse_loopback_change(run, &profile)?;
        check_profile(&adapters, &profile).await?;
        if profile.requires_consent && run.suppression.purpose.is_marketing() && !terms.policy.needs_consent {
            return Err(Error::Input(format!(
                "the profile `{}` requires consent on this machine, but not on the machine that started {}; add \
                 `policy: {{ consent: required }}` to the profile on that machine",
                profile.name,
                run.name()
            )));
        }
        let key = read_api_key(&profile)?;
        let hook = if terms.webhooks { load_hook(&profile)? } else { None };
        refuse_other_secret(ledger, &profile, hook.as_ref()).await?;
        let frozen = FrozenInputs::load_for_run(ledger, run).await?;
        let late_opt_outs = SuppressionWatch::start_for_worker(&terms, &frozen.brief, &profile);
        let late_opt_outs = late_opt_outs.await.map_err(Error::Input)?;
        let destination = Destination::Live(Box::new(profile));
        refuse_ignored_opt_outs(run, &destination)?;
        let connection = Connection::open(&destination, key, Arc::default(), None).await?;
        let gateway = connection.create_client(adapters.connect, frozen.brief.endpoint, terms.delivery.timeout)?;
        let hook = hook.map(|hook| hook.for_run(run.name()));
        let sender = RunSender {
            adapters: &adapters,
            interrupt: &self.interrupt,
            terms: &terms,
            destination: &destination,
            is_paced: true,
            gateway,
            hook,
            late_opt_outs,
            is_retry: false,
        };
        (self.observer)(WorkerEvent::Joined { run: run.name() });
        RunShardSender::new(sender).participant().join_run(run).await
    }
}

/// Whether an error concerns the whole ledger rather than one run.
fn is_ledger_error(error: &Error) -> bool {
    matches!(
        error,
        Error::Ledger(
            LedgerError::Storage { .. }
                | LedgerError::Unreachable { .. }
                | LedgerError::Closed
                | LedgerError::Outdated { .. }
        )
    )
}

/// The interval between reports on the progress of a run.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);
/// The minimum pause between reports, as a multiple of the time that a report takes.
const REPORT_COST_FACTOR: u32 = 10;
/// The extra time for other processes to stop, beyond the timeout of an answer.
const STOP_GRACE: Duration = Duration::from_secs(15);

/// Sends the shards that a process draws.
pub(super) struct RunShardSender<'h> {
    sender: RunSender<'h>,
    /// The time at which the progress is reported next.
    next_report: Mutex<Option<std::time::Instant>>,
}

impl<'h> RunShardSender<'h> {
    pub(super) fn new(sender: RunSender<'h>) -> Self {
        Self { sender, next_report: Mutex::default() }
    }

    /// Returns this sender as a participant in a shared run.
    pub(super) fn participant(&self) -> Participant<'_, Self> {
        let RunSender { adapters, .. } = &self.sender;
        let (by, size) = (adapters.process.clone(), self.sender.shard_size());
        Participant { ledger: &adapters.ledger, by, size, sender: self }
    }

    /// Reports the progress of a run while other processes send it.
    async fn report_progress(&self, run: &Run) -> Result<(), Error> {
        let next_report = || self.next_report.lock().unwrap_or_else(PoisonError::into_inner);
        if next_report().is_some_and(|next| std::time::Instant::now() < next) {
            return Ok(());
        }
        let (began, adapters) = (std::time::Instant::now(), self.sender.adapters);
        let counts = Snapshot::load(adapters.ledger.as_ref(), run, true).await?.counts;
        (adapters.observer)(RunEvent::Sending(DeliveryEvent::Settled { counts }));
        // Reading the progress of a large run takes longer, so it is done less often.
        *next_report() = Some(std::time::Instant::now() + REPORT_INTERVAL.max(began.elapsed() * REPORT_COST_FACTOR));
        Ok(())
    }
}

impl ShardSender for RunShardSender<'_> {
    type Error = Error;

    async fn send_drawn_rows(
        &self,
        run: &Run,
        lease: Lease,
        snapshot: &Snapshot,
        shards: ShardSource,
    ) -> Result<SendEnding, Error> {
        // The copies are loaded for each draw, because a worker does not lock the campaign, so forgetting a recipient
        // can replace them.
        let frozen = Arc::new(FrozenRun::load(self.sender.adapters.ledger.as_ref(), run).await?);
        let compiled = open_frozen_list(&frozen).await?;
        let job = SendJob { run, lease, frozen, snapshot, rows: None, limit: None, shards: Some(shards) };
        self.sender.run_engine(job, compiled).await
    }

    fn note_takeover(&self, run: &Run, shards: usize, doubtful: usize) {
        tracing::info!(run = run.name(), shards, doubtful, "took over shards");
        if doubtful > 0 {
            (self.sender.adapters.observer)(RunEvent::DoubtFromBefore { requests: doubtful });
        }
    }

    async fn wait_for_others(&self, run: &Run) -> Result<Option<Stop>, Error> {
        let mut interrupt = self.sender.interrupt.clone();
        let signalled = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None);
        let signal = tokio::select! {
            biased;
            signal = signalled => signal.map(|signal| *signal).ok(),
            () = tokio::time::sleep(delivery::POLL_INTERVAL) => Some(Interrupt::None),
        };
        match signal {
            Some(Interrupt::Graceful(signal) | Interrupt::Immediate(signal)) => {
                return Ok(Some(Stop::new(StopKind::Interrupted(signal), "interrupted")));
            }
            Some(Interrupt::None) => {}
            // The signal channel is closed, so no interrupt can arrive.
            None => tokio::time::sleep(delivery::POLL_INTERVAL).await,
        }
        self.report_progress(run).await.map(|()| None)
    }
}

impl Session {
    /// Shares the run, sends the shards that this process draws, and waits until no process holds a shard.
    pub(super) async fn send_shared_run(
        &self,
        sender: RunSender<'_>,
        run: &Run,
        lease: Lease,
    ) -> Result<SendEnding, Error> {
        let ledger = self.adapters.ledger.as_ref();
        let before = Snapshot::load(ledger, run, true).await?;
        let (is_retry, terms) = (sender.is_retry, sender.terms);
        let for_workers = terms.to_worker_terms(sender.destination.profile());
        let worker_terms = serde_json::to_string(&for_workers).map_err(|error| Error::Internal(error.to_string()))?;
        let longest_wait = terms.delivery.timeout + STOP_GRACE;
        let shard_sender = RunShardSender::new(sender);
        let ending = shard_sender.participant().lead_run(run, lease, &worker_terms, is_retry, longest_wait).await?;
        let ending = ending.ok_or_else(|| Error::Taken { run: run.name() })?;
        let run = reload_run(ledger, run.key).await?;
        let after = Snapshot::load(ledger, &run, false).await?;
        let parts = BilledParts {
            billed: after.parts.billed.saturating_sub(before.parts.billed),
            messages: after.parts.messages.saturating_sub(before.parts.messages),
        };
        let sent = count_sent(&after.counts).saturating_sub(count_sent(&before.counts));
        Ok(SendEnding { counts: after.counts, parts, sent, ..ending })
    }
}

/// Counts the messages that were sent or might have been sent.
fn count_sent(counts: &StateCounts) -> u64 {
    RowState::ALL.into_iter().filter(|state| state.is_guarded()).map(|state| counts.get(state)).sum()
}
