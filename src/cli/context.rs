//! What commands share: options, output, the state folder and the ledger in it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::args::Global;
use super::events::observer;
use super::exit;
use super::failure::Failure;
use super::output::Output;
use super::signals;
use crate::delivery::Interrupt;
use crate::gateway::JsonApi;
use crate::ledger::{Ledger, LedgerError, Run, SqliteLedger};
use crate::manifest::Day;
use crate::metrics::Metrics;
use crate::private;
use crate::report::stray_runs;
use crate::runs::{self, Adapters, Error, Event, Inputs, Launch, Observer, Profiles};

/// The file of the ledger in the state folder.
const LEDGER: &str = "ledger.sqlite";

/// How long a command that sends nothing waits for a process that has the ledger and is stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the end of a command waits for the ledger to be closed.
const CLOSING: Duration = Duration::from_secs(10);
/// The same after a second signal: whoever gave it does not want to wait.
const HURRIED: Duration = Duration::from_millis(200);

/// What commands share.
pub(super) struct Context {
    pub(super) global: Global,
    pub(super) output: Output,
    /// The ledgers that were opened.
    ledgers: Mutex<Vec<Arc<SqliteLedger>>>,
    /// What signals ask for, once somebody listens to them.
    interrupt: OnceLock<watch::Receiver<Interrupt>>,
    /// Tells a person what happens.
    pub(super) observer: Observer,
}

impl Context {
    pub(super) fn new(global: Global, output: Output) -> Self {
        let observer = observer(&output);
        Self { global, output, ledgers: Mutex::default(), interrupt: OnceLock::new(), observer }
    }

    /// The state folder, whether it exists or not.
    pub(super) fn state(&self) -> Result<PathBuf, Failure> {
        let given = self.global.state_dir.clone();
        given
            .or_else(|| dirs::state_dir().or_else(dirs::data_local_dir).map(|folder| folder.join("campaign")))
            .ok_or_else(|| {
                Failure::wrong("there is no home folder to keep the ledger in; name one with `--state-dir DIR`")
            })
    }

    /// Where profiles are found.
    pub(super) fn profiles(&self) -> Profiles {
        let configuration = dirs::config_dir().map(|folder| folder.join("campaign"));
        Profiles { explicit: self.global.gateways.clone(), configuration }
    }

    /// Loads a campaign file, and the profile of its gateway or of the one named instead.
    pub(super) fn load(&self, file: &Path, gateway: Option<&str>) -> Result<Arc<Inputs>, Failure> {
        Ok(Arc::new(Inputs::load(file, gateway, &self.profiles(), Day::Of(Timestamp::now()))?))
    }

    /// The adapters of this program around a ledger.
    pub(super) fn adapters(&self, ledger: Arc<dyn Ledger>) -> Result<Adapters, Failure> {
        let options = self.output.options.clone();
        let name_view = move |view, profile: &str| options.view(view, profile);
        Ok(Adapters {
            state: self.state()?,
            ledger,
            profiles: self.profiles(),
            connect: JsonApi::new,
            clock: Timestamp::now,
            name_view: Arc::new(name_view),
            observer: Arc::clone(&self.observer),
        })
    }

    /// What signals ask for, from the first call to the end of the process.
    ///
    /// # Errors
    /// When the system does not let the process listen.
    pub(super) fn interrupt(&self) -> Result<watch::Receiver<Interrupt>, Failure> {
        let listening = match self.interrupt.get() {
            Some(listening) => listening.clone(),
            None => signals::listen().map_err(|error| Failure::new(exit::BUG, error.to_string()))?,
        };
        Ok(self.interrupt.get_or_init(|| listening).clone())
    }

    /// Whether there is a ledger.
    ///
    /// # Errors
    /// When there was one, and it was deleted.
    pub(super) fn has_ledger(&self) -> Result<bool, Failure> {
        let path = self.state()?.join(LEDGER);
        // None is begun in its place: a ledger that is put back later would find another one there.
        SqliteLedger::deleted(&path).map_or(Ok(path.exists()), |deleted| Err(deleted.into()))
    }

    /// The ledger, for commands that write; created where there is none.
    pub(super) async fn ledger(&self) -> Result<Arc<dyn Ledger>, Failure> {
        self.has_ledger()?;
        let path = self.new_state()?.join(LEDGER);
        let ledger = SqliteLedger::open(&path, Timestamp::now).await?;
        ledger.newest()?;
        Ok(self.keep(ledger))
    }

    /// The ledger of a server, whose commits are counted.
    pub(super) async fn server_ledger(&self, metrics: &Arc<Metrics>) -> Result<Arc<dyn Ledger>, Failure> {
        self.has_ledger()?;
        let (path, metrics) = (self.new_state()?.join(LEDGER), Arc::clone(metrics));
        let ledger = SqliteLedger::open(&path, Timestamp::now).await?;
        ledger.newest()?;
        Ok(self.keep(ledger.with_commits_told(Arc::new(move |time| metrics.commit(time)))))
    }

    /// The ledger for a launch; none is begun where another one may be put back.
    pub(super) async fn ledger_for(&self, launch: &Launch) -> Result<Arc<dyn Ledger>, Failure> {
        if launch.accepts_any_ledger() {
            return self.accepted_ledger().await;
        }
        if !self.has_ledger()? {
            let state = self.state()?;
            launch.begin_ledger(&state, SqliteLedger::copies_without(&state.join(LEDGER))).await?;
        }
        self.ledger().await
    }

    /// The ledger, whatever its mark says of it, since a person wants it to count.
    async fn accepted_ledger(&self) -> Result<Arc<dyn Ledger>, Failure> {
        let path = self.new_state()?.join(LEDGER);
        let (ledger, refused): (_, Option<LedgerError>) = SqliteLedger::accept(&path, Timestamp::now).await?;
        if let Some(refused) = refused {
            self.output.note(&format!("this ledger counts from now on, as you say: {}", refused.reason()));
        }
        Ok(self.keep(ledger))
    }

    /// The ledger, for commands that only read; nothing where there is none.
    ///
    /// Whatever speaks against believing it is said, and ends the command with 74.
    ///
    /// # Errors
    /// When nobody can tell whether there is one: who reads "nothing was sent" there may send it again.
    pub(super) async fn existing_ledger(&self) -> Result<Option<Arc<dyn Ledger>>, Failure> {
        let state = self.state()?;
        let path = state.join(LEDGER);
        let ledger = match std::fs::metadata(&path) {
            Ok(_) => {
                let ledger = SqliteLedger::open(&path, Timestamp::now).await?.with_patience(PATIENCE);
                if let Some(reason) = ledger.unsound().await {
                    self.output.distrust(&reason.to_string());
                }
                Some(self.keep(ledger))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => match SqliteLedger::deleted(&path) {
                Some(deleted) => return Err(deleted.into()),
                None => None,
            },
            Err(error) => {
                let message = format!("the state folder `{}` cannot be read: {error}", state.display());
                return Err(Failure::storage(message));
            }
        };
        let copies = match &ledger {
            Some(ledger) => ledger.stray_copies().await?,
            None => SqliteLedger::copies_without(&path),
        };
        if let Some(sign) = stray_runs(copies).into_iter().next() {
            (self.observer)(Event::Contradicted(sign));
        }
        Ok(ledger)
    }

    /// The run that a user names, and the ledger that has it.
    pub(super) async fn named_run(&self, name: &str) -> Result<(Arc<dyn Ledger>, Run), Failure> {
        let ledger = self.ledger_of(name).await?;
        let run = runs::find(ledger.as_ref(), name).await?;
        Ok((ledger, run))
    }

    /// The same for who decides: by a campaign's name alone the latest run whose rows nobody knows, if there is one.
    pub(super) async fn doubtful_run(&self, name: &str) -> Result<(Arc<dyn Ledger>, Run), Failure> {
        let ledger = self.ledger_of(name).await?;
        let run = runs::find_doubtful(ledger.as_ref(), name).await?;
        Ok((ledger, run))
    }

    async fn ledger_of(&self, run: &str) -> Result<Arc<dyn Ledger>, Failure> {
        let none = || Error::NoSuchRun { name: run.to_owned(), near: None };
        Ok(self.existing_ledger().await?.ok_or_else(none)?)
    }

    /// Closes what was opened: everything that was acknowledged is marked then, and in the ledger's file.
    pub(super) async fn close(&self) {
        let ledgers = std::mem::take(&mut *self.ledgers.lock().unwrap_or_else(PoisonError::into_inner));
        let closing = async {
            for ledger in ledgers {
                ledger.close().await;
            }
        };
        tokio::select! {
            () = closing => {}
            () = self.hurried() => {}
            () = tokio::time::sleep(CLOSING) => {
                tracing::warn!("the ledger could not be closed within {} s; nothing of it is lost", CLOSING.as_secs());
            }
        }
    }

    /// A moment after a second signal.
    async fn hurried(&self) {
        if let Some(mut interrupt) = self.interrupt.get().cloned()
            && interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::AtOnce(_))).await.is_ok()
        {
            return tokio::time::sleep(HURRIED).await;
        }
        std::future::pending().await
    }

    /// The state folder, created where there is none.
    pub(super) fn new_state(&self) -> Result<PathBuf, Failure> {
        let state = self.state()?;
        private::folder(&state).map_err(|error| {
            Failure::storage(format!("the state folder `{}` cannot be created: {error}", state.display()))
        })?;
        Ok(state)
    }

    fn keep(&self, ledger: SqliteLedger) -> Arc<dyn Ledger> {
        let ledger = Arc::new(ledger);
        self.ledgers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&ledger));
        ledger
    }
}
