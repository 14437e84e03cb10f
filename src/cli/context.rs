//! What commands share: options, output, the state folder and what runs need of the outside.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use tokio::sync::watch;

use super::args::GlobalOptions;
use super::events::terminal_observer;
use super::exit;
use super::exposure::ExposureWarnings;
use super::failure::CommandFailure;
use super::ledgers::OpenLedgers;
use super::output::Output;
use super::signals;
use crate::delivery::Interrupt;
use crate::gateway::JsonApi;
use crate::ledger::{Ledger, Run};
use crate::manifest::CampaignDay;
use crate::private;
use crate::runs::{self, Adapters, Error, Inputs, Profiles, RunObserver};

/// What commands share.
pub(super) struct Context {
    pub(super) global: GlobalOptions,
    pub(super) output: Output,
    pub(super) ledgers: OpenLedgers,
    /// What was warned of, since everyone can read or change it.
    pub(super) exposure: ExposureWarnings,
    /// What signals ask for, once somebody listens to them.
    pub(super) interrupt: OnceLock<watch::Receiver<Interrupt>>,
    /// Tells a person what happens.
    pub(super) observer: RunObserver,
}

impl Context {
    pub(super) fn new(global: GlobalOptions, output: Output) -> Self {
        let observer = terminal_observer(&output);
        let (ledgers, exposure) = (OpenLedgers::default(), ExposureWarnings::default());
        Self { global, output, ledgers, exposure, interrupt: OnceLock::new(), observer }
    }

    /// The state folder, whether it exists or not.
    pub(super) fn state_folder(&self) -> Result<PathBuf, CommandFailure> {
        let given = self.global.state_dir.clone();
        let state = given
            .or_else(|| dirs::state_dir().or_else(dirs::data_local_dir).map(|folder| folder.join("campaign")))
            .ok_or_else(|| {
                CommandFailure::invalid("cannot find your home folder, where the ledger is stored by default")
                    .with_help("add `--state-dir DIR`")
            })?;
        self.exposure.check_state_folder(&state);
        Ok(state)
    }

    /// Where profiles are found.
    pub(super) fn profiles(&self) -> Profiles {
        let configuration = dirs::config_dir().map(|folder| folder.join("campaign"));
        let profiles = Profiles { explicit: self.global.gateways.clone(), configuration };
        self.exposure.check_gateways(&profiles.new_profile_path(None));
        profiles
    }

    /// Loads a campaign file, and the profile of its gateway or of the one named instead.
    pub(super) fn load_campaign(&self, file: &Path, gateway: Option<&str>) -> Result<Arc<Inputs>, CommandFailure> {
        let profiles = self.profiles();
        self.exposure.check_gateways(&profiles.new_profile_path(Some(file)));
        Ok(Arc::new(Inputs::load(file, gateway, &profiles, CampaignDay::Of(Timestamp::now()))?))
    }

    /// The adapters of this program around a ledger.
    pub(super) fn adapters(&self, ledger: Arc<dyn Ledger>) -> Result<Adapters, CommandFailure> {
        let options = self.output.options.clone();
        let name_view = move |view, profile: &str| options.view_command(view, profile);
        Ok(Adapters {
            process: super::process::process_name(),
            state: self.state_folder()?,
            ledger,
            profiles: self.profiles(),
            connect: JsonApi::new,
            input: super::fetching::piped_input,
            clock: Timestamp::now,
            name_view: Arc::new(name_view),
            observer: Arc::clone(&self.observer),
        })
    }

    /// What signals ask for, from the first call to the end of the process.
    ///
    /// # Errors
    /// When the system does not let the process listen.
    pub(super) fn watch_signals(&self) -> Result<watch::Receiver<Interrupt>, CommandFailure> {
        let listening = match self.interrupt.get() {
            Some(listening) => listening.clone(),
            None => signals::watch_signals().map_err(|error| CommandFailure::new(exit::BUG, error.to_string()))?,
        };
        Ok(self.interrupt.get_or_init(|| listening).clone())
    }

    /// The run that a user names, and the ledger that has it.
    pub(super) async fn find_run(&self, name: &str) -> Result<(Arc<dyn Ledger>, Run), CommandFailure> {
        let ledger = self.find_ledger_of_run(name).await?;
        let run = runs::find_run(ledger.as_ref(), name).await?;
        Ok((ledger, run))
    }

    /// The same for who decides: by a campaign's name alone the latest run whose rows nobody knows, if there is one.
    pub(super) async fn find_doubtful_run(&self, name: &str) -> Result<(Arc<dyn Ledger>, Run), CommandFailure> {
        let ledger = self.find_ledger_of_run(name).await?;
        let run = runs::find_doubtful_run(ledger.as_ref(), name).await?;
        Ok((ledger, run))
    }

    async fn find_ledger_of_run(&self, run: &str) -> Result<Arc<dyn Ledger>, CommandFailure> {
        let none = || Error::NoSuchRun { name: run.to_owned(), near: None };
        Ok(self.open_existing_ledger().await?.ok_or_else(none)?)
    }

    /// The state folder, created where there is none.
    pub(super) fn create_state_folder(&self) -> Result<PathBuf, CommandFailure> {
        let state = self.state_folder()?;
        private::create_folder(&state).map_err(|error| {
            CommandFailure::storage_failure(format!("cannot create the state folder `{}`: {error}", state.display()))
        })?;
        Ok(state)
    }
}
