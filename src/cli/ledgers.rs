//! The ledger of a command: the SQLite file in the state folder, or the database of `--ledger`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::args::LedgerUrl;
use super::context::Context;
use super::failure::Failure;
use crate::delivery::Interrupt;
use crate::ledger::{CopiedLedger, Ledger, LedgerError, PostgresAddress, PostgresLedger, SqliteLedger, StrayCopies};
use crate::metrics::Metrics;
use crate::report::stray_runs;
use crate::runs::{Event, Launch, unfamiliar_ledger_warning};

/// The file of the ledger in the state folder.
const LEDGER: &str = "ledger.sqlite";

/// How long a command that sends nothing waits for a stopped process that holds the ledger.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the end of a command waits for the ledger to be closed.
const CLOSING: Duration = Duration::from_secs(10);
/// The same after a second signal, whose sender does not want to wait.
const HURRIED: Duration = Duration::from_millis(200);

/// Hears how long a commit took.
type OnCommit = Arc<dyn Fn(Duration) + Send + Sync>;

/// The ledgers that a command opened, which are closed at its end.
#[derive(Default)]
pub(super) struct OpenLedgers {
    open: Mutex<Vec<Arc<dyn Ledger>>>,
    /// The address of the database, which knows whether it was reached.
    address: OnceLock<PostgresAddress>,
}

impl OpenLedgers {
    fn keep(&self, ledger: impl Ledger + 'static) -> Arc<dyn Ledger> {
        let ledger: Arc<dyn Ledger> = Arc::new(ledger);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&ledger));
        ledger
    }

    fn take(&self) -> Vec<Arc<dyn Ledger>> {
        std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The ledger of a command.
enum Chosen {
    /// The file in the state folder.
    File(PathBuf),
    /// The database of several machines.
    Shared(Box<PostgresAddress>),
}

impl Context {
    fn chosen(&self) -> Result<Chosen, Failure> {
        match self.global.ledger.as_ref().and_then(LedgerUrl::given) {
            Some(url) => {
                let address = match self.ledgers.address.get() {
                    Some(address) => address.clone(),
                    None => PostgresAddress::parse(url).map_err(|error| Failure::wrong(error.to_string()))?,
                };
                Ok(Chosen::Shared(Box::new(self.ledgers.address.get_or_init(|| address).clone())))
            }
            None => {
                let file = self.state()?.join(LEDGER);
                self.exposure.check_ledger(&file);
                Ok(Chosen::File(file))
            }
        }
    }

    /// The ledger in the file, to move it.
    pub(super) async fn ledger_in_a_file(&self) -> Result<SqliteLedger, Failure> {
        match self.chosen()? {
            Chosen::File(path) if is_there(&path)? => Ok(SqliteLedger::open(&path, Timestamp::now).await?),
            Chosen::File(_) => Err(Failure::wrong(format!("no ledger yet in `{}`", self.place()?))),
            Chosen::Shared(_) => {
                Err(Failure::wrong("only a ledger in a state folder can be copied; remove `--ledger`"))
            }
        }
    }

    /// Creates a backup of the ledger.
    pub(super) async fn back_up(&self, folder: &Path) -> Result<CopiedLedger, Failure> {
        let none = || Err(Failure::wrong(format!("no ledger yet in `{}`", self.place()?)));
        Ok(match self.chosen()? {
            Chosen::File(path) if !is_there(&path)? => return none(),
            Chosen::File(path) => {
                let ledger = SqliteLedger::open(&path, Timestamp::now).await?;
                let made = ledger.back_up(folder).await;
                ledger.close().await;
                made?
            }
            Chosen::Shared(address) => {
                let Some(ledger) = PostgresLedger::find(&address, &self.state()?).await? else { return none() };
                let made = ledger.back_up(folder).await;
                ledger.close().await;
                made?
            }
        })
    }

    /// Restores a backup and opens the restored ledger.
    pub(super) async fn restore(&self, folder: &Path) -> Result<Arc<dyn Ledger>, Failure> {
        let state = self.new_state()?;
        match self.chosen()? {
            Chosen::File(path) => SqliteLedger::restore(&path, folder, Timestamp::now).await?,
            Chosen::Shared(address) => PostgresLedger::restore(&address, folder, &state).await?,
        }
        self.ledger().await
    }

    /// Upgrades the tables of the ledger to this version, and returns whether they were older.
    pub(super) async fn upgrade_ledger(&self) -> Result<bool, Failure> {
        let upgraded = match self.chosen()? {
            // The first command that writes to a file upgrades it: no other machine uses it.
            Chosen::File(path) => is_there(&path)?.then_some(false),
            Chosen::Shared(address) => PostgresLedger::upgrade(&address).await?,
        };
        upgraded.ok_or_else(|| Failure::wrong(format!("no ledger yet in `{}`", self.place().unwrap_or_default())))
    }

    /// Where the ledger is, or would be.
    pub(super) fn place(&self) -> Result<String, Failure> {
        Ok(match self.chosen()? {
            Chosen::File(_) => self.state()?.display().to_string(),
            Chosen::Shared(address) => address.shown().to_owned(),
        })
    }

    /// Whether there is a ledger.
    ///
    /// # Errors
    /// When there was one, and it was deleted.
    pub(super) async fn has_ledger(&self) -> Result<bool, Failure> {
        Ok(match self.chosen()? {
            Chosen::File(path) => is_there(&path)?,
            Chosen::Shared(address) => PostgresLedger::is_there(&address).await?,
        })
    }

    /// The ledger, for commands that write; created if it does not exist.
    pub(super) async fn ledger(&self) -> Result<Arc<dyn Ledger>, Failure> {
        self.opened(Arc::new(|_| {})).await
    }

    /// The ledger of a server, whose commits are counted.
    pub(super) async fn server_ledger(&self, metrics: &Arc<Metrics>) -> Result<Arc<dyn Ledger>, Failure> {
        let metrics = Arc::clone(metrics);
        self.opened(Arc::new(move |time| metrics.commit(time))).await
    }

    async fn opened(&self, on_commit: OnCommit) -> Result<Arc<dyn Ledger>, Failure> {
        match self.chosen()? {
            Chosen::File(path) => {
                // None is begun in its place: a ledger that is put back later would find another one there.
                is_there(&path)?;
                self.new_state()?;
                let ledger = SqliteLedger::open(&path, Timestamp::now).await?;
                ledger.newest()?;
                Ok(self.ledgers.keep(ledger.with_commits_told(on_commit)))
            }
            Chosen::Shared(address) => {
                let ledger = PostgresLedger::open(&address, &self.new_state()?).await?;
                ledger.newest()?;
                // What is written from here on makes the mark, and with it the warning ends.
                let warning = unfamiliar_ledger_warning(&ledger, Timestamp::now()).await?;
                self.output.findings(warning.as_slice());
                Ok(self.ledgers.keep(ledger.with_commits_told(on_commit)))
            }
        }
    }

    /// The ledger, for a command that asks the gateway and takes room of the account's rate for it, and changes nothing else.
    /// This machine gets no mark by it: `check` warns where there is none.
    pub(super) async fn asking_ledger(&self) -> Result<Arc<dyn Ledger>, Failure> {
        let Chosen::Shared(address) = self.chosen()? else { return self.ledger().await };
        let ledger = PostgresLedger::open(&address, &self.new_state()?).await?;
        ledger.newest()?;
        Ok(self.ledgers.keep(ledger.without_new_mark()))
    }

    /// The ledger for a launch; none is begun where another one may be put back.
    pub(super) async fn ledger_for(&self, launch: &Launch) -> Result<Arc<dyn Ledger>, Failure> {
        if launch.accepts_any_ledger() {
            return self.accepted_ledger().await;
        }
        if let Chosen::File(path) = self.chosen()?
            && !is_there(&path)?
        {
            launch.begin_ledger(&self.state()?, SqliteLedger::copies_without(&path)).await?;
        }
        self.ledger().await
    }

    /// The ledger, accepted by a person although its high-water mark speaks against it.
    async fn accepted_ledger(&self) -> Result<Arc<dyn Ledger>, Failure> {
        let state = self.new_state()?;
        let (ledger, refused) = match self.chosen()? {
            Chosen::File(path) => {
                let (ledger, refused) = SqliteLedger::accept(&path, Timestamp::now).await?;
                (self.ledgers.keep(ledger), refused)
            }
            Chosen::Shared(address) => {
                let (ledger, refused) = PostgresLedger::accept(&address, &state).await?;
                (self.ledgers.keep(ledger), refused)
            }
        };
        if let Some(refused) = refused {
            self.output.note(&format!(
                "you accepted this ledger as the current one despite this problem: {}",
                refused.reason()
            ));
        }
        Ok(ledger)
    }

    /// The ledger, for commands that only read; `None` if it does not exist.
    ///
    /// If it cannot be trusted, the command warns and ends with 74.
    ///
    /// # Errors
    /// When its existence is unknown: a wrong "nothing was sent" might lead to a second message.
    pub(super) async fn existing_ledger(&self) -> Result<Option<Arc<dyn Ledger>>, Failure> {
        let (ledger, distrusted, copies) = match self.chosen()? {
            Chosen::File(path) => self.existing_file(path).await?,
            Chosen::Shared(address) => match PostgresLedger::find(&address, &self.state()?).await? {
                Some(ledger) => {
                    let (stale, copies) = (ledger.newest().err(), ledger.stray_copies().await?);
                    (Some(self.ledgers.keep(ledger)), stale, copies)
                }
                None => (None, None, SqliteLedger::copies_without(&self.state()?.join(LEDGER))),
            },
        };
        if let Some(reason) = distrusted {
            self.output.distrust(&self.output.explain(&reason.into()).on_one_line());
        }
        if let Some(sign) = stray_runs(copies).into_iter().next() {
            (self.observer)(Event::Contradicted(sign));
        }
        Ok(ledger)
    }

    /// The ledger in a file, why it is not trusted, and copies of runs that it does not have.
    async fn existing_file(
        &self,
        path: PathBuf,
    ) -> Result<(Option<Arc<dyn Ledger>>, Option<LedgerError>, Vec<StrayCopies>), Failure> {
        match std::fs::metadata(&path) {
            Ok(_) => {
                let ledger = SqliteLedger::open(&path, Timestamp::now).await?.with_patience(PATIENCE);
                let (unsound, copies) = (ledger.unsound().await, ledger.stray_copies().await?);
                Ok((Some(self.ledgers.keep(ledger)), unsound, copies))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                is_there(&path)?;
                Ok((None, None, SqliteLedger::copies_without(&path)))
            }
            Err(error) => {
                let state = self.state()?;
                Err(Failure::storage(format!("cannot read the state folder `{}`: {error}", state.display())))
            }
        }
    }

    /// Closes the ledgers. Then all acknowledged records are in the file and in the high-water mark.
    pub(super) async fn close(&self) {
        let ledgers = self.ledgers.take();
        let closing = async {
            for ledger in ledgers {
                ledger.close().await;
            }
        };
        tokio::select! {
            () = closing => {}
            () = self.hurried() => {}
            () = tokio::time::sleep(CLOSING) => {
                tracing::warn!("the ledger was not closed within {} s; no records are lost", CLOSING.as_secs());
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
}

/// Whether there is a ledger in a file.
///
/// # Errors
/// When there was one, and it was deleted.
fn is_there(path: &Path) -> Result<bool, LedgerError> {
    SqliteLedger::deleted(path).map_or(Ok(path.exists()), Err)
}
