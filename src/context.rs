//! The context of a command: global options, output, state folder, ledger, adapters and signals.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, IsTerminal as _, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::args::{GlobalOptions, LedgerUrl};
use super::events::terminal_observer;
use super::exit::CommandFailure;
use super::output::Output;
use super::state_folder::{LedgerPurpose, StateFolder};
use super::{exit, process, state_folder};
use campaign_core::finding::quote_for_shell;
use campaign_core::private;
use campaign_core::private::FileAccess;
use campaign_engine::delivery::{Interrupt, SingleKind};
use campaign_engine::report::find_stray_runs;
use campaign_gateway::JsonApi;
use campaign_ledger::{
    CopiedLedger, Ledger, LedgerError, PostgresAddress, PostgresLedger, Run, RunFilter, SqliteLedger, StrayCopies,
};
use campaign_manifest::CampaignDay;
use campaign_net::metrics::Metrics;
use campaign_runs::{
    Adapters, Error, FetchContext, Inputs, Launch, Profiles, RunEvent, RunObserver, RunPhase, fetch_list,
    find_unfamiliar_ledger_warning,
};

/// The context that all commands share.
pub(super) struct Context {
    pub(super) global: GlobalOptions,
    pub(super) output: Output,
    pub(super) ledgers: OpenLedgers,
    /// Warnings about files that other users can read or change.
    pub(super) exposure: ExposureWarnings,
    /// The interrupt state, set by signals once the process listens for them.
    pub(super) interrupt: OnceLock<watch::Receiver<Interrupt>>,
    /// Shows run events to the operator.
    pub(super) observer: RunObserver,
    /// The folder of the system ledger, if the machine has one.
    system_folder: PathBuf,
}

impl Context {
    pub(super) fn new(global: GlobalOptions, output: Output, system_folder: PathBuf) -> Self {
        let observer = terminal_observer(&output);
        let (ledgers, exposure) = (OpenLedgers::default(), ExposureWarnings::default());
        Self { global, output, ledgers, exposure, interrupt: OnceLock::new(), observer, system_folder }
    }

    /// Returns the path of the state folder, which might not exist yet, and warns if everyone can access the folder.
    pub(super) fn state_folder(&self) -> Result<PathBuf, CommandFailure> {
        let state = self.choose_state_folder()?.path().to_owned();
        self.exposure.check_state_folder(&state);
        Ok(state)
    }

    fn choose_state_folder(&self) -> Result<StateFolder, CommandFailure> {
        let chosen =
            StateFolder::choose(self.global.state_dir.clone(), &self.system_folder, state_folder::own_folder());
        chosen.ok_or_else(|| {
            CommandFailure::invalid("cannot find your home folder, where the ledger is stored by default")
                .with_help("add `--state-dir DIR`")
        })
    }

    /// Refuses to use a second ledger on this machine, because it does not contain the messages sent with the first.
    ///
    /// # Errors
    /// If the operator named no ledger, and the machine has another ledger that matters for the purpose.
    pub(super) async fn refuse_second_ledger(&self, purpose: LedgerPurpose) -> Result<(), CommandFailure> {
        if matches!(self.ledger_target()?, LedgerTarget::Shared(_)) {
            return Ok(());
        }
        match self.choose_state_folder()? {
            StateFolder::BesideSystem { system, .. } if purpose != LedgerPurpose::Rehearsal => {
                Err(state_folder::second_ledger_failure(&system))
            }
            StateFolder::System { system, own: Some(own) } if purpose == LedgerPurpose::Sending => {
                match find_live_run(&own.join(LEDGER_FILE)).await? {
                    Some(run) => Err(state_folder::earlier_ledger_failure(&system, &own, &run)),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Prints a note if this command uses the user's own ledger although the machine has a system ledger.
    pub(super) fn note_system_ledger(&self) -> Result<(), CommandFailure> {
        if let LedgerTarget::File(_) = self.ledger_target()?
            && let StateFolder::BesideSystem { own, system } = self.choose_state_folder()?
        {
            self.output.print_note(&format!(
                "this is your own ledger in `{}`; only members of the `campaign` group can see the system ledger in \
                 `{}`",
                own.display(),
                system.display()
            ));
        }
        Ok(())
    }

    /// The gateway profiles that this command uses.
    pub(super) fn profiles(&self) -> Profiles {
        let configuration = dirs::config_dir().map(|folder| folder.join("campaign"));
        let profiles = Profiles { explicit: self.global.gateways.clone(), configuration, ..Profiles::default() };
        self.exposure.check_gateways(&profiles.new_profile_path(None));
        profiles
    }

    /// Loads a campaign file with the profile of the campaign's gateway, or of `gateway` instead if it is given.
    pub(super) fn load_campaign(&self, file: &Path, gateway: Option<&str>) -> Result<Arc<Inputs>, CommandFailure> {
        let profiles = self.profiles();
        self.exposure.check_gateways(&profiles.new_profile_path(Some(file)));
        Ok(Arc::new(Inputs::load(file, gateway, &profiles, CampaignDay::Of(Timestamp::now()))?))
    }

    /// Builds the adapters around a ledger.
    pub(super) fn adapters(&self, ledger: Arc<dyn Ledger>) -> Result<Adapters, CommandFailure> {
        let options = self.output.options.clone();
        let name_view = move |view, profile: &str| options.view_command(view, profile);
        Ok(Adapters {
            process: super::process::process_name(),
            state: self.state_folder()?,
            ledger,
            profiles: self.profiles(),
            connect: JsonApi::new,
            input: piped_input,
            clock: Timestamp::now,
            name_view: Arc::new(name_view),
            observer: Arc::clone(&self.observer),
        })
    }

    /// Listens for signals, from the first call to the end of the process.
    ///
    /// # Errors
    /// If the system does not allow the process to listen.
    pub(super) fn watch_signals(&self) -> Result<watch::Receiver<Interrupt>, CommandFailure> {
        let listening = match self.interrupt.get() {
            Some(listening) => listening.clone(),
            None => process::watch_signals().map_err(|error| CommandFailure::new(exit::BUG, error.to_string()))?,
        };
        Ok(self.interrupt.get_or_init(|| listening).clone())
    }

    /// Finds the run that the user names, and opens its ledger.
    pub(super) async fn find_run(&self, name: &str) -> Result<(Arc<dyn Ledger>, Run), CommandFailure> {
        let ledger = self.open_ledger_of_run(name).await?;
        let run = campaign_runs::find_run(ledger.as_ref(), name).await?;
        Ok((ledger, run))
    }

    /// Finds a run like `find_run`, except that the name of a campaign means its latest run with rows in doubt, if
    /// there is one.
    pub(super) async fn find_run_in_doubt(&self, name: &str) -> Result<(Arc<dyn Ledger>, Run), CommandFailure> {
        let ledger = self.open_ledger_of_run(name).await?;
        let run = campaign_runs::find_run_in_doubt(ledger.as_ref(), name).await?;
        Ok((ledger, run))
    }

    async fn open_ledger_of_run(&self, run: &str) -> Result<Arc<dyn Ledger>, CommandFailure> {
        let no_such_run = || Error::NoSuchRun { name: run.to_owned(), near: None };
        self.note_system_ledger()?;
        Ok(self.open_existing_ledger().await?.ok_or_else(no_such_run)?)
    }

    /// Creates the state folder if it does not exist, and returns the path of the folder.
    pub(super) fn create_state_folder(&self) -> Result<PathBuf, CommandFailure> {
        let state = self.state_folder()?;
        private::create_folder(&state).map_err(|error| {
            CommandFailure::storage_failure(format!("cannot create the state folder `{}`: {error}", state.display()))
        })?;
        Ok(state)
    }
}

/// The file of the ledger in the state folder.
pub(super) const LEDGER_FILE: &str = "ledger.sqlite";

/// The time for which a command that sends nothing waits for the lock of a stopping process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for which the command waits for the ledger to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for which the command waits for the ledger to close after a second signal.
const HURRIED_CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// A callback that receives the duration of each commit.
type CommitListener = Arc<dyn Fn(Duration) + Send + Sync>;

/// The open ledgers, which are closed at the end of the command.
#[derive(Default)]
pub(super) struct OpenLedgers {
    open: Mutex<Vec<Arc<dyn Ledger>>>,
    /// The address of the database. It also records whether the database was reached.
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

/// The location of the ledger.
enum LedgerTarget {
    /// The file in the state folder.
    File(PathBuf),
    /// A database that several machines share.
    Shared(Box<PostgresAddress>),
}

/// The ledger as `doctor` finds it.
pub(super) enum FoundLedger {
    /// The ledger does not exist yet.
    Missing,
    /// A file of an earlier version, which was not opened, because that would upgrade it.
    Older,
    /// An open ledger.
    Usable {
        ledger: Arc<dyn Ledger>,
        /// Whether the ledger is a database with the tables of an earlier version.
        has_older_tables: bool,
    },
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

    /// Opens the ledger in the state folder, to copy it to a database.
    pub(super) async fn open_file_ledger(&self) -> Result<SqliteLedger, CommandFailure> {
        match self.ledger_target()? {
            LedgerTarget::File(path) if ledger_exists(&path)? => Ok(SqliteLedger::open(&path, Timestamp::now).await?),
            LedgerTarget::File(_) => {
                Err(CommandFailure::invalid(format!("no ledger yet in `{}`", self.ledger_location()?)))
            }
            LedgerTarget::Shared(_) => {
                Err(CommandFailure::invalid("only a ledger in a state folder can be copied; remove `--ledger`"))
            }
        }
    }

    /// Creates a backup of the ledger.
    pub(super) async fn back_up_ledger(&self, folder: &Path) -> Result<CopiedLedger, CommandFailure> {
        let no_ledger = || Err(CommandFailure::invalid(format!("no ledger yet in `{}`", self.ledger_location()?)));
        Ok(match self.ledger_target()? {
            LedgerTarget::File(path) if !ledger_exists(&path)? => return no_ledger(),
            LedgerTarget::File(path) => {
                let ledger = SqliteLedger::open(&path, Timestamp::now).await?;
                let result = ledger.write_backup(folder).await;
                ledger.close().await;
                result?
            }
            LedgerTarget::Shared(address) => {
                let Some(ledger) = PostgresLedger::open_existing(&address, &self.state_folder()?).await? else {
                    return no_ledger();
                };
                let result = ledger.write_backup(folder).await;
                ledger.close().await;
                result?
            }
        })
    }

    /// Restores a backup and opens the restored ledger.
    pub(super) async fn restore_ledger(&self, folder: &Path) -> Result<Arc<dyn Ledger>, CommandFailure> {
        self.refuse_second_ledger(LedgerPurpose::SharedRecords).await?;
        let state = self.create_state_folder()?;
        match self.ledger_target()? {
            LedgerTarget::File(path) => SqliteLedger::restore_backup(&path, folder, Timestamp::now).await?,
            LedgerTarget::Shared(address) => PostgresLedger::restore_backup(&address, folder, &state).await?,
        }
        self.open_ledger(LedgerPurpose::SharedRecords).await
    }

    /// Upgrades the tables of a database ledger to this version, and returns whether the tables were older.
    pub(super) async fn upgrade_ledger(&self) -> Result<bool, CommandFailure> {
        let upgraded = match self.ledger_target()? {
            // A ledger file is upgraded by the first command that writes to it, because no other machine uses it.
            LedgerTarget::File(path) => ledger_exists(&path)?.then_some(false),
            LedgerTarget::Shared(address) => PostgresLedger::upgrade_tables(&address).await?,
        };
        upgraded.ok_or_else(|| {
            CommandFailure::invalid(format!("no ledger yet in `{}`", self.ledger_location().unwrap_or_default()))
        })
    }

    /// The location of the ledger, which might not exist yet.
    pub(super) fn ledger_location(&self) -> Result<String, CommandFailure> {
        Ok(match self.ledger_target()? {
            LedgerTarget::File(_) => self.state_folder()?.display().to_string(),
            LedgerTarget::Shared(address) => address.display_name().to_owned(),
        })
    }

    /// Opens the ledger for `doctor`, which must neither create nor upgrade it.
    ///
    /// # Errors
    /// If the ledger was deleted, cannot be opened, is not the newest, or belongs to a newer version of this program.
    pub(super) async fn open_ledger_unchanged(&self) -> Result<FoundLedger, CommandFailure> {
        match self.ledger_target()? {
            LedgerTarget::File(path) if !ledger_exists(&path)? => Ok(FoundLedger::Missing),
            LedgerTarget::File(path) if SqliteLedger::has_older_tables(&path).await? => Ok(FoundLedger::Older),
            LedgerTarget::File(path) => {
                let ledger = SqliteLedger::open(&path, Timestamp::now).await?.with_patience(LOCK_TIMEOUT);
                ledger.ensure_newest()?;
                Ok(FoundLedger::Usable { ledger: self.ledgers.register(ledger), has_older_tables: false })
            }
            LedgerTarget::Shared(address) => {
                let Some(ledger) = PostgresLedger::open_existing(&address, &self.state_folder()?).await? else {
                    return Ok(FoundLedger::Missing);
                };
                ledger.ensure_newest()?;
                let has_older_tables = ledger.has_older_tables();
                Ok(FoundLedger::Usable { ledger: self.ledgers.register(ledger.without_new_mark()), has_older_tables })
            }
        }
    }

    /// Whether there is a ledger.
    ///
    /// # Errors
    /// If the ledger was deleted.
    pub(super) async fn has_ledger(&self) -> Result<bool, CommandFailure> {
        Ok(match self.ledger_target()? {
            LedgerTarget::File(path) => ledger_exists(&path)?,
            LedgerTarget::Shared(address) => PostgresLedger::exists(&address).await?,
        })
    }

    /// Opens the ledger for a command that writes. Creates the ledger if it does not exist.
    pub(super) async fn open_ledger(&self, purpose: LedgerPurpose) -> Result<Arc<dyn Ledger>, CommandFailure> {
        self.open_ledger_with_listener(purpose, Arc::new(|_| {})).await
    }

    /// Opens the ledger of a server, and records the time of each commit in the metrics.
    pub(super) async fn open_server_ledger(&self, metrics: &Arc<Metrics>) -> Result<Arc<dyn Ledger>, CommandFailure> {
        let metrics = Arc::clone(metrics);
        self.open_ledger_with_listener(LedgerPurpose::Sending, Arc::new(move |time| metrics.observe_commit(time))).await
    }

    async fn open_ledger_with_listener(
        &self,
        purpose: LedgerPurpose,
        on_commit: CommitListener,
    ) -> Result<Arc<dyn Ledger>, CommandFailure> {
        self.refuse_second_ledger(purpose).await?;
        match self.ledger_target()? {
            LedgerTarget::File(path) => {
                // A new ledger must not take the place of a deleted one, which might be put back later.
                ledger_exists(&path)?;
                self.create_state_folder()?;
                let ledger = SqliteLedger::open(&path, Timestamp::now).await?;
                ledger.ensure_newest()?;
                Ok(self.ledgers.register(ledger.with_commit_callback(on_commit)))
            }
            LedgerTarget::Shared(address) => {
                let ledger = PostgresLedger::open(&address, &self.create_state_folder()?).await?;
                ledger.ensure_newest()?;
                // The next write creates the high-water mark, which ends the warning.
                let warning = find_unfamiliar_ledger_warning(&ledger, Timestamp::now()).await?;
                self.output.print_findings(warning.as_slice());
                Ok(self.ledgers.register(ledger.with_commit_callback(on_commit)))
            }
        }
    }

    /// Opens the ledger for a command that only queries the gateway. Queries count against the account's rate limit.
    ///
    /// No high-water mark is created on this machine, so `check` can still warn that the mark is missing.
    pub(super) async fn open_ledger_for_inquiry(&self) -> Result<Arc<dyn Ledger>, CommandFailure> {
        let LedgerTarget::Shared(address) = self.ledger_target()? else {
            return self.open_ledger(LedgerPurpose::SharedRecords).await;
        };
        let ledger = PostgresLedger::open(&address, &self.create_state_folder()?).await?;
        ledger.ensure_newest()?;
        Ok(self.ledgers.register(ledger.without_new_mark()))
    }

    /// Opens the ledger for a launch. A missing ledger is not created if an earlier ledger might be restored instead.
    pub(super) async fn open_ledger_for(&self, launch: &Launch) -> Result<Arc<dyn Ledger>, CommandFailure> {
        let purpose = LedgerPurpose::from_destination(launch.destination());
        self.refuse_second_ledger(purpose).await?;
        if launch.accepts_any_ledger() {
            return self.open_accepted_ledger().await;
        }
        if let LedgerTarget::File(path) = self.ledger_target()?
            && !ledger_exists(&path)?
        {
            launch.check_new_ledger(&self.state_folder()?, SqliteLedger::list_copies_without_ledger(&path)).await?;
        }
        self.open_ledger(purpose).await
    }

    /// Opens a ledger that the operator accepted although its high-water mark does not match.
    async fn open_accepted_ledger(&self) -> Result<Arc<dyn Ledger>, CommandFailure> {
        let state = self.create_state_folder()?;
        let (ledger, refusal) = match self.ledger_target()? {
            LedgerTarget::File(path) => {
                let (ledger, refusal) = SqliteLedger::open_accepted(&path, Timestamp::now).await?;
                (self.ledgers.register(ledger), refusal)
            }
            LedgerTarget::Shared(address) => {
                let (ledger, refusal) = PostgresLedger::open_accepted(&address, &state).await?;
                (self.ledgers.register(ledger), refusal)
            }
        };
        if let Some(refusal) = refusal {
            self.output.print_note(&format!(
                "you accepted this ledger as the current one despite this problem: {}",
                refusal.reason()
            ));
        }
        Ok(ledger)
    }

    /// Opens the ledger for a command that only reads. Returns `None` if the ledger does not exist.
    ///
    /// If the ledger cannot be trusted, the command warns and exits with code 74.
    ///
    /// # Errors
    /// If it is unknown whether the ledger exists: a wrong "nothing was sent" might cause a second message.
    pub(super) async fn open_existing_ledger(&self) -> Result<Option<Arc<dyn Ledger>>, CommandFailure> {
        let (ledger, defect, copies) = match self.ledger_target()? {
            LedgerTarget::File(path) => self.open_existing_ledger_file(path).await?,
            LedgerTarget::Shared(address) => match PostgresLedger::open_existing(&address, &self.state_folder()?)
                .await?
            {
                Some(ledger) => {
                    let (defect, copies) = (ledger.ensure_newest().err(), ledger.list_stray_copies().await?);
                    (Some(self.ledgers.register(ledger)), defect, copies)
                }
                None => (None, None, SqliteLedger::list_copies_without_ledger(&self.state_folder()?.join(LEDGER_FILE))),
            },
        };
        if let Some(defect) = defect {
            self.output.warn_untrusted_ledger(&self.output.explain_error(&defect.into()).to_single_line());
        }
        if let Some(contradiction) = find_stray_runs(copies).into_iter().next() {
            (self.observer)(RunEvent::Contradicted(contradiction));
        }
        Ok(ledger)
    }

    /// Opens the ledger in a file. Also returns the reason if the ledger cannot be trusted, and the copies of runs that
    /// the ledger does not contain.
    async fn open_existing_ledger_file(
        &self,
        path: PathBuf,
    ) -> Result<(Option<Arc<dyn Ledger>>, Option<LedgerError>, Vec<StrayCopies>), CommandFailure> {
        match std::fs::metadata(&path) {
            Ok(_) => {
                let ledger = SqliteLedger::open(&path, Timestamp::now).await?.with_patience(LOCK_TIMEOUT);
                let (defect, copies) = (ledger.find_defect().await, ledger.list_stray_copies().await?);
                Ok((Some(self.ledgers.register(ledger)), defect, copies))
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

    /// Closes the ledgers, so that all acknowledged records are in the file and in the high-water mark.
    pub(super) async fn close_ledgers(&self) {
        let ledgers = self.ledgers.take_all();
        let closing = async {
            for ledger in ledgers {
                ledger.close().await;
            }
        };
        tokio::select! {
            () = closing => {}
            () = self.wait_for_second_signal() => {}
            () = tokio::time::sleep(CLOSE_TIMEOUT) => {
                tracing::warn!("the ledger was not closed within {} s; no records are lost", CLOSE_TIMEOUT.as_secs());
            }
        }
    }

    /// Waits for a second signal, and then gives the ledgers a short time to close. Without a second signal, this never
    /// returns.
    async fn wait_for_second_signal(&self) {
        if let Some(mut interrupt) = self.interrupt.get().cloned()
            && interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::Immediate(_))).await.is_ok()
        {
            return tokio::time::sleep(HURRIED_CLOSE_TIMEOUT).await;
        }
        std::future::pending().await
    }
}

/// Whether there is a ledger at this path.
///
/// # Errors
/// If the ledger was deleted.
fn ledger_exists(path: &Path) -> Result<bool, LedgerError> {
    SqliteLedger::detect_deletion(path).map_or(Ok(path.exists()), Err)
}

/// Finds the latest live run, other than single operations, in the ledger file at `path`. The file is the user's own
/// ledger from the time before the machine had a system ledger.
async fn find_live_run(path: &Path) -> Result<Option<String>, CommandFailure> {
    if !ledger_exists(path)? {
        return Ok(None);
    }
    let ledger = SqliteLedger::open(path, Timestamp::now).await?.with_patience(LOCK_TIMEOUT);
    let port: &dyn Ledger = &ledger;
    let runs = port.list_runs(RunFilter { live: true, ..RunFilter::default() }).await;
    ledger.close().await;
    Ok(runs?.iter().rfind(|run| SingleKind::from_run(run).is_none()).map(Run::name))
}

/// Standard input, if it is a pipe or a file.
fn piped_input() -> Option<Box<dyn Read + Send>> {
    let input = io::stdin();
    if input.is_terminal() { None } else { Some(Box::new(input)) }
}

impl Context {
    /// Fetches the list of a campaign from a URL, a database, a program or an earlier run if `fetch` is set. Otherwise,
    /// returns the inputs unchanged. A signal ends the fetch.
    pub(super) async fn fetch_list(
        &self,
        inputs: Arc<Inputs>,
        fetch: bool,
        ledger: Option<&dyn Ledger>,
    ) -> Result<Arc<Inputs>, CommandFailure> {
        if !fetch || !inputs.list.is_unfetched() {
            return Ok(inputs);
        }
        let (state, profiles, mut interrupt) = (self.create_state_folder()?, self.profiles(), self.watch_signals()?);
        let context =
            FetchContext { state: &state, ledger, profiles: &profiles, input: piped_input, observer: &self.observer };
        let _spinner = self.output.show_spinner("Fetching the list…");
        tokio::select! {
            fetched = fetch_list(&inputs, context) => Ok(fetched?),
            signal = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => {
                let signal = signal.ok().and_then(|interrupt| interrupt.signal()).unwrap_or(process::SIGINT);
                Err(Error::Interrupted { signal, phase: RunPhase::Preparing }.into())
            }
        }
    }
}

/// Warnings about files and folders that other users can read or change, each printed once.
#[derive(Debug, Default)]
pub(super) struct ExposureWarnings {
    /// The paths for which a warning was printed.
    warned: Mutex<BTreeSet<PathBuf>>,
    /// Whether nothing is printed, because the command reports permissions itself.
    muted: AtomicBool,
}

impl ExposureWarnings {
    /// Suppresses all further warnings.
    pub(super) fn mute(&self) {
        self.muted.store(true, Ordering::Relaxed);
    }

    /// Warns if everyone can list or change the contents of the state folder.
    fn check_state_folder(&self, folder: &Path) {
        let Some(access) = self.find_new_exposure(folder, |access| access.everyone_reads || access.everyone_writes)
        else {
            return;
        };
        let name = quote_for_shell(folder);
        let repair = match access {
            FileAccess { is_shared_temporary: true, .. } => "choose your own folder with `--state-dir`".to_owned(),
            // A group shares the folder, so only others lose access.
            FileAccess { is_setgid: true, .. } => format!("run `chmod o= {name}`"),
            _ => format!("run `chmod 700 {name}`"),
        };
        warn_about("the state folder", folder, access, &repair);
    }

    /// Warns if everyone can read or change the ledger file.
    pub(super) fn check_ledger(&self, file: &Path) {
        let is_open = |access: FileAccess| access.everyone_reads || access.everyone_writes;
        let Some(access) = self.find_new_exposure(file, is_open) else { return };
        // SQLite gives its other files the mode of the ledger file.
        let others = ["-wal", "-shm"].map(|end| PathBuf::from(format!("{}{end}", file.display())));
        let files = std::iter::once(file).chain(others.iter().map(PathBuf::as_path).filter(|path| path.exists()));
        let files: Vec<String> = files.map(quote_for_shell).collect();
        warn_about("the ledger", file, access, &format!("run `chmod 600 {}`", files.join(" ")));
    }

    /// Warns if everyone can change the gateways file and redirect messages. The file contains no secrets, so it can be
    /// readable.
    fn check_gateways(&self, file: &Path) {
        if let Some(access) = self.find_new_exposure(file, |access| access.everyone_writes) {
            warn_about("the gateways file", file, access, &format!("run `chmod o-w {}`", quote_for_shell(file)));
        }
    }

    /// Returns the access to a file or folder if this access requires a warning that has not been printed yet.
    fn find_new_exposure(&self, path: &Path, is_open: impl Fn(FileAccess) -> bool) -> Option<FileAccess> {
        if self.muted.load(Ordering::Relaxed) {
            return None;
        }
        let access = private::read_access(path).filter(|access| is_open(*access))?;
        self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned()).then_some(access)
    }
}

fn warn_about(file_kind: &str, path: &Path, access: FileAccess, repair: &str) {
    let action = match (access.everyone_reads, access.everyone_writes) {
        (true, true) => "read and change",
        (false, true) => "change",
        _ => "read",
    };
    let (path, mode) = (path.display(), access.mode);
    tracing::warn!("everyone on this machine can {action} {file_kind} `{path}` (mode {mode:04o}): {repair}");
}
