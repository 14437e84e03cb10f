//! A worker: takes shares of runs that others began.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::plan::check_profile;
use super::profiles::refuse_other_reach;
use super::restore::refuse_backup;
use super::sender::RunSender;
use super::shared::RunShareSender;
use super::{Adapters, Connection, Error, RunEvent, load_hook, read_api_key, refuse_other_secret};
use crate::delivery::{DrawEnd, FrozenInputs, Interrupt, SendEnding, Stop};
use crate::ledger::{LedgerError, Run, RunFilter, RunId, RunProgress, StopKind};
use crate::manifest::{Destination, SendingTerms};

/// How often a worker looks for runs.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a worker leaves a run alone that it could not send, and others may.
const REST_TIME: Duration = Duration::from_secs(30);

/// What a worker does about a run.
#[derive(Debug)]
pub enum WorkerEvent {
    /// It takes shares of it from now on.
    Joined {
        /// The run's name.
        run: String,
    },
    /// It takes none any more.
    Left {
        /// The run's name.
        run: String,
        /// How many messages it sent.
        sent: u64,
        /// Why it stopped; nothing where nothing is left to take.
        stopped: Option<Stop>,
    },
    /// It cannot send it.
    Unable {
        /// The run's name.
        run: String,
        /// Why.
        error: Error,
    },
    /// Something happened while it sends it.
    RunEvent {
        /// The run's name.
        run: String,
        /// What.
        event: RunEvent,
    },
}

/// Somebody who is told what a worker does.
pub type WorkerObserver = Arc<dyn Fn(WorkerEvent) + Send + Sync>;

/// A process that takes shares of runs which others began with `--shared`.
#[derive(Clone)]
pub struct Worker {
    /// What it works with.
    pub adapters: Adapters,
    /// Who is told what it does.
    pub observer: WorkerObserver,
    /// What the outside asks.
    pub interrupt: watch::Receiver<Interrupt>,
}

/// A run that a worker sends no more, and what came of it.
type EndedWork = (Run, Result<(SendEnding, DrawEnd), Error>);

/// What a worker knows of runs.
#[derive(Default)]
struct WorkerState {
    /// Those that it sends.
    sending: HashSet<RunId>,
    /// Those that it leaves alone until then, each as it was shared out.
    resting: HashMap<(RunId, i64), Instant>,
}

impl Worker {
    /// Takes shares of runs until a signal comes, and gives back what it has then.
    ///
    /// # Errors
    /// When the ledger cannot be read or written any more.
    pub async fn run(self) -> Result<(), Error> {
        let (mut known, mut sending) = (WorkerState::default(), JoinSet::new());
        let mut interrupt = self.interrupt.clone();
        let failed = loop {
            for run in self.list_open_runs(&known).await? {
                known.sending.insert(run.key);
                let worker = self.clone();
                sending.spawn(async move {
                    let ended = worker.send_shares(&run).await;
                    (run, ended)
                });
            }
            tokio::select! {
                biased;
                _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => break None,
                Some(ended) = sending.join_next() => {
                    if let Some(failed) = self.record_end(ended, &mut known) {
                        break Some(failed);
                    }
                }
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        };
        // Each of them heard the signal too, and waits for what it has in flight.
        while let Some(ended) = sending.join_next().await {
            self.record_end(ended, &mut known);
        }
        failed.map_or(Ok(()), Err)
    }

    /// The runs that are shared out, and that it may send.
    async fn list_open_runs(&self, known: &WorkerState) -> Result<Vec<Run>, Error> {
        let open = RunFilter { open: true, live: true, ..RunFilter::all() };
        let mut runs = self.adapters.ledger.list_runs(open).await?;
        runs.retain(|run| {
            let rests =
                |sharing: i64| known.resting.get(&(run.key, sharing)).is_some_and(|until| Instant::now() < *until);
            let is_open = run.progress == RunProgress::Open && !run.stop_requested && run.ended_at.is_none();
            is_open
                && !known.sending.contains(&run.key)
                && run.sharding.as_ref().is_some_and(|sharing| !rests(sharing.id))
        });
        Ok(runs)
    }

    /// Takes in that it sends a run no more; gives why it cannot go on at all.
    fn record_end(&self, ended: Result<EndedWork, JoinError>, known: &mut WorkerState) -> Option<Error> {
        let (run, ended) = match ended {
            Ok(ended) => ended,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        };
        known.sending.remove(&run.key);
        let name = run.name();
        let mut rest = || {
            if let Some(sharing) = &run.sharding {
                known.resting.insert((run.key, sharing.id), Instant::now() + REST_TIME);
            }
        };
        match ended {
            Ok((SendEnding { sent, stopped, .. }, drawn)) => {
                let is_over = stopped.as_ref().is_some_and(|stop| stop.kind == StopKind::Ledger);
                // Shared out anew, it is looked at anew.
                if drawn != DrawEnd::RunOver {
                    rest();
                }
                let reason = stopped.as_ref().map(|stop| stop.reason.clone()).unwrap_or_default();
                (self.observer)(WorkerEvent::Left { run: name, sent, stopped });
                is_over.then_some(Error::Storage(reason))
            }
            Err(error @ Error::Ledger(_)) if is_ledger_error(&error) => Some(error),
            Err(error) => {
                rest();
                (self.observer)(WorkerEvent::Unable { run: name, error });
                None
            }
        }
    }

    /// Takes shares of a run until none is left; stops it for everybody where going on would do harm.
    async fn send_shares(&self, run: &Run) -> Result<(SendEnding, DrawEnd), Error> {
        let ledger = self.adapters.ledger.as_ref();
        let terms = run.sharding.as_ref().map_or("", |sharing| &sharing.terms);
        let terms: SendingTerms = serde_json::from_str(terms).map_err(|_| {
            Error::Input(format!(
                "{} was started by another version of campaign; use the same version for all workers",
                run.name()
            ))
        })?;
        let (name, observer) = (run.name(), Arc::clone(&self.observer));
        let told = Arc::new(move |event| observer(WorkerEvent::RunEvent { run: name.clone(), event }));
        let adapters = Adapters { observer: told, ..self.adapters.clone() };
        refuse_backup(ledger).await?;
        let profile = adapters.profiles.find_by_account(run, None, &adapters.observer)?;
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
        refuse_other_reach(run, &profile)?;
        check_profile(&adapters, &profile).await?;
        let key = read_api_key(&profile)?;
        let hook = if terms.webhooks { load_hook(&profile)? } else { None };
        refuse_other_secret(ledger, &profile, hook.as_ref()).await?;
        let frozen = FrozenInputs::load_for_run(ledger, run).await?;
        let destination = Destination::Live(Box::new(profile));
        let connection = Connection::open(&destination, key, Arc::default(), None).await?;
        let gateway = connection.create_client(adapters.connect, frozen.brief.endpoint, terms.delivery.timeout)?;
        let hook = hook.map(|hook| hook.for_run(run.name()));
        let sender = RunSender {
            adapters: &adapters,
            interrupt: &self.interrupt,
            brief: &frozen.brief,
            terms: &terms,
            destination: &destination,
            keeps_time: true,
        };
        (self.observer)(WorkerEvent::Joined { run: run.name() });
        RunShareSender::new(sender, gateway, hook, false).participant().take_part(run).await
    }
}

/// Whether an error is of the ledger as a whole, and not of what it has of one run.
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
