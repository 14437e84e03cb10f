//! The ledger of a command: the SQLite file in the state folder, or the database of `--ledger`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::args::LedgerUrl;
use super::context::Context;
use super::failure::CommandFailure;
use crate::delivery::Interrupt;
use crate::ledger::{CopiedLedger, Ledger, LedgerError, PostgresAddress, PostgresLedger, SqliteLedger, StrayCopies};
use crate::metrics::Metrics;
use crate::report::find_stray_runs;
use crate::runs::{Launch, RunEvent, unfamiliar_ledger_warning};

/// The file of the ledger in the state folder.
const LEDGER_FILE: &str = "ledger.sqlite";

/// How long a command that sends nothing waits for a stopped process that holds the ledger.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the end of a command waits for the ledger to be closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// The same after a second signal, whose sender does not want to wait.
const HURRIED_CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// Hears how long a commit took.
type CommitListener = Arc<dyn Fn(Duration) + Send + Sync>;

/// The ledgers that a command opened, which are closed at its end.
#[derive(Default)]
pub(super) struct OpenLedgers {
    open: Mutex<Vec<Arc<dyn Ledger>>>,
    /// The address of the database, which knows whether it was reached.
    address: OnceLock<PostgresAddress>,
}

impl OpenLedgers {
    fn register(&self, ledger: impl Ledger + 'static) -> Arc<dyn Ledger> {
        let ledger: Arc<dyn Ledger> = Arc::new(ledger);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&ledger));
        ledger
    }

    fn take_all(&self) -> Vec<Arc<dyn Ledger>> {
        std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The ledger of a command.
enum LedgerTarget {
    /// The file in the state folder.
    File(PathBuf),
    /// The database of several machines.
    Shared(Box<PostgresAddress>),
}

impl Context {
    fn ledger_target(&self) -> Result<LedgerTarget, CommandFailure> {
        match self.global.ledger.as_ref().and_then(LedgerUrl::url) {
            Some(url) => {
                let address = match self.ledgers.address.get() {
                    Some(address) => address.clone(),
                    None => PostgresAddress::parse(url).map_err(|error| CommandFailure::invalid(error.to_string()))?,
                };
                Ok(LedgerTarget::Shared(Box::new(self.ledgers.address.get_or_init(|| address).clone())))
            }
            None => {
                let file = self.state_folder()?.join(LEDGER_FILE);
                self.exposure.check_ledger(&file);
                Ok(LedgerTarget::File(file))
            }
        }
    }

    /// The ledger in the file, to move it.
    pub(super) async fn open_file_ledger(&self) -> Result<SqliteLedger, CommandFailure> {
        match self.ledger_target()? {
            LedgerTarget::File(path) if ledger_exists(&path)? => Ok(SqliteLedger::open(&path, Timestamp::now).await?),
            LedgerTarget::File(_) => {
                Err(CommandFailure::invalid(format!("no ledger yet in `{}`", self.ledger_place()?)))
            }
            LedgerTarget::Shared(_) => {
                Err(CommandFailure::invalid("only a ledger in a state folder can be copied; remove `--ledger`"))
            }
        }
    }

    /// Creates a backup of the ledger.
    pub(super) async fn back_up_ledger(&self, folder: &Path) -> Result<CopiedLedger, CommandFailure> {
        let none = || Err(CommandFailure::invalid(format!("no ledger yet in `{}`", self.ledger_place()?)));
        Ok(match self.ledger_target()? {
            LedgerTarget::File(path) if !ledger_exists(&path)? => return none(),
            LedgerTarget::File(path) => {
                let ledger = SqliteLedger::open(&path, Timestamp::now).await?;
                let made = ledger.write_backup(folder).await;
                ledger.close().await;
                made?
            }
            LedgerTarget::Shared(address) => {
                let Some(ledger) = PostgresLedger::open_existing(&address, &self.state_folder()?).await? else {
                    return none();
                };
                let made = ledger.write_backup(folder).await;
                ledger.close().await;
                made?
            }
        })
    }

    /// Restores a backup and opens the restored ledger.
    pub(super) async fn restore_ledger(&self, folder: &Path) -> Result<Arc<dyn Ledger>, CommandFailure> {
        let state = self.create_state_folder()?;
        match self.ledger_target()? {
            LedgerTarget::File(path) => SqliteLedger::restore_backup(&path, folder, Timestamp::now).await?,
            LedgerTarget::Shared(address) => PostgresLedger::restore_backup(&address, folder, &state).await?,
        }
        self.open_ledger().await
    }

    /// Upgrades the tables of the ledger to this version, and returns whether they were older.
    pub(super) async fn upgrade_ledger(&self) -> Result<bool, CommandFailure> {
        let upgraded = match self.ledger_target()? {
            // The first command that writes to a file upgrades it: no other machine uses it.
            LedgerTarget::File(path) => ledger_exists(&path)?.then_some(false),
            LedgerTarget::Shared(address) => PostgresLedger::upgrade_tables(&address).await?,
        };
        upgraded.ok_or_else(|| {
            CommandFailure::invalid(format!("no ledger yet in `{}`", self.ledger_place().unwrap_or_default()))
        })
    }

    /// Where the ledger is, or would be.
    pub(super) fn ledger_place(&self) -> Result<String, CommandFailure> {
        Ok(match self.ledger_target()? {
            LedgerTarget::File(_) => self.state_folder()?.display().to_string(),
            LedgerTarget::Shared(address) => address.display_name().to_owned(),
        })
    }

    /// Whether there is a ledger.
    ///
    /// # Errors
    /// When there was one, and it was deleted.
    pub(super) async fn has_ledger(&self) -> Result<bool, CommandFailure> {
        Ok(match self.ledger_target()? {
            LedgerTarget::File(path) => ledger_exists(&path)?,
            LedgerTarget::Shared(address) => PostgresLedger::exists(&address).await?,
        })
    }

    /// The ledger, for commands that write; created if it does not exist.
    pub(super) async fn open_ledger(&self) -> Result<Arc<dyn Ledger>, CommandFailure> {
        self.open_with_listener(Arc::new(|_| {})).await
    }

    /// The ledger of a server, whose commits are counted.
    pub(super) async fn open_server_ledger(&self, metrics: &Arc<Metrics>) -> Result<Arc<dyn Ledger>, CommandFailure> {
        let metrics = Arc::clone(metrics);
        self.open_with_listener(Arc::new(move |time| metrics.observe_commit(time))).await
    }

    async fn open_with_listener(&self, on_commit: CommitListener) -> Result<Arc<dyn Ledger>, CommandFailure> {
        match self.ledger_target()? {
            LedgerTarget::File(path) => {
                // None is begun in its place: a ledger that is put back later would find another one there.
                ledger_exists(&path)?;
                self.create_state_folder()?;
                let ledger = SqliteLedger::open(&path, Timestamp::now).await?;
                ledger.ensure_newest()?;
                Ok(self.ledgers.register(ledger.with_commit_callback(on_commit)))
            }
            LedgerTarget::Shared(address) => {
                let ledger = PostgresLedger::open(&address, &self.create_state_folder()?).await?;
                ledger.ensure_newest()?;
                // What is written from here on makes the mark, and with it the warning ends.
                let warning = unfamiliar_ledger_warning(&ledger, Timestamp::now()).await?;
                self.output.print_findings(warning.as_slice());
                Ok(self.ledgers.register(ledger.with_commit_callback(on_commit)))
            }
        }
    }

    /// The ledger, for a command that asks the gateway and takes room of the account's rate for it, and changes nothing else.
    /// This machine gets no mark by it: `check` warns where there is none.
    pub(super) async fn open_ledger_to_ask(&self) -> Result<Arc<dyn Ledger>, CommandFailure> {
        let LedgerTarget::Shared(address) = self.ledger_target()? else { return self.open_ledger().await };
        let ledger = PostgresLedger::open(&address, &self.create_state_folder()?).await?;
        ledger.ensure_newest()?;
        Ok(self.ledgers.register(ledger.without_new_mark()))
    }

    /// The ledger for a launch; none is begun where another one may be put back.
    pub(super) async fn open_ledger_for(&self, launch: &Launch) -> Result<Arc<dyn Ledger>, CommandFailure> {
        if launch.accepts_any_ledger() {
            return self.accept_ledger().await;
        }
        if let LedgerTarget::File(path) = self.ledger_target()?
            && !ledger_exists(&path)?
        {
            launch.check_new_ledger(&self.state_folder()?, SqliteLedger::list_copies_without_ledger(&path)).await?;
        }
        self.open_ledger().await
    }

    /// The ledger, accepted by a person although its high-water mark speaks against it.
    async fn accept_ledger(&self) -> Result<Arc<dyn Ledger>, CommandFailure> {
        let state = self.create_state_folder()?;
        let (ledger, refused) = match self.ledger_target()? {
            LedgerTarget::File(path) => {
                let (ledger, refused) = SqliteLedger::open_accepted(&path, Timestamp::now).await?;
                (self.ledgers.register(ledger), refused)
            }
            LedgerTarget::Shared(address) => {
                let (ledger, refused) = PostgresLedger::open_accepted(&address, &state).await?;
                (self.ledgers.register(ledger), refused)
            }
        };
        if let Some(refused) = refused {
            self.output.print_note(&format!(
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
    pub(super) async fn open_existing_ledger(&self) -> Result<Option<Arc<dyn Ledger>>, CommandFailure> {
        let (ledger, distrusted, copies) = match self.ledger_target()? {
            LedgerTarget::File(path) => self.open_existing_file(path).await?,
            LedgerTarget::Shared(address) => match PostgresLedger::open_existing(&address, &self.state_folder()?)
                .await?
            {
                Some(ledger) => {
                    let (stale, copies) = (ledger.ensure_newest().err(), ledger.list_stray_copies().await?);
                    (Some(self.ledgers.register(ledger)), stale, copies)
                }
                None => (None, None, SqliteLedger::list_copies_without_ledger(&self.state_folder()?.join(LEDGER_FILE))),
            },
        };
        if let Some(reason) = distrusted {
            self.output.warn_distrust(&self.output.explain_error(&reason.into()).to_single_line());
        }
        if let Some(sign) = find_stray_runs(copies).into_iter().next() {
            (self.observer)(RunEvent::Contradicted(sign));
        }
        Ok(ledger)
    }

    /// The ledger in a file, why it is not trusted, and copies of runs that it does not have.
    async fn open_existing_file(
        &self,
        path: PathBuf,
    ) -> Result<(Option<Arc<dyn Ledger>>, Option<LedgerError>, Vec<StrayCopies>), CommandFailure> {
        match std::fs::metadata(&path) {
            Ok(_) => {
                let ledger = SqliteLedger::open(&path, Timestamp::now).await?.with_patience(LOCK_TIMEOUT);
                let (unsound, copies) = (ledger.find_defect().await, ledger.list_stray_copies().await?);
                Ok((Some(self.ledgers.register(ledger)), unsound, copies))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                ledger_exists(&path)?;
                Ok((None, None, SqliteLedger::list_copies_without_ledger(&path)))
            }
            Err(error) => {
                let state = self.state_folder()?;
                Err(CommandFailure::storage_failure(format!(
                    "cannot read the state folder `{}`: {error}",
                    state.display()
                )))
            }
        }
    }

    /// Closes the ledgers. Then all acknowledged records are in the file and in the high-water mark.
    pub(super) async fn close_ledgers(&self) {
        let ledgers = self.ledgers.take_all();
        let closing = async {
            for ledger in ledgers {
                ledger.close().await;
            }
        };
        tokio::select! {
            () = closing => {}
            () = self.wait_if_hurried() => {}
            () = tokio::time::sleep(CLOSE_TIMEOUT) => {
                tracing::warn!("the ledger was not closed within {} s; no records are lost", CLOSE_TIMEOUT.as_secs());
            }
        }
    }

    /// A moment after a second signal.
    async fn wait_if_hurried(&self) {
        if let Some(mut interrupt) = self.interrupt.get().cloned()
            && interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::Immediate(_))).await.is_ok()
        {
            return tokio::time::sleep(HURRIED_CLOSE_TIMEOUT).await;
        }
        std::future::pending().await
    }
}

/// Whether there is a ledger in a file.
///
/// # Errors
/// When there was one, and it was deleted.
fn ledger_exists(path: &Path) -> Result<bool, LedgerError> {
    SqliteLedger::find_deletion(path).map_or(Ok(path.exists()), Err)
}
