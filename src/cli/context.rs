//! What commands share: options, output, the state folder and what runs need of the outside.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use tokio::sync::watch;

use super::args::Global;
use super::events::observer;
use super::exit;
use super::exposure::Exposure;
use super::failure::Failure;
use super::ledgers::OpenLedgers;
use super::output::Output;
use super::signals;
use crate::delivery::Interrupt;
use crate::gateway::JsonApi;
use crate::ledger::{Ledger, Run};
use crate::manifest::Day;
use crate::private;
use crate::runs::{self, Adapters, Error, Inputs, Observer, Profiles};

/// What commands share.
pub(super) struct Context {
    pub(super) global: Global,
    pub(super) output: Output,
    pub(super) ledgers: OpenLedgers,
    /// What was warned of, since everyone can read or change it.
    pub(super) exposure: Exposure,
    /// What signals ask for, once somebody listens to them.
    pub(super) interrupt: OnceLock<watch::Receiver<Interrupt>>,
    /// Tells a person what happens.
    pub(super) observer: Observer,
}

impl Context {
    pub(super) fn new(global: Global, output: Output) -> Self {
        let observer = observer(&output);
        let (ledgers, exposure) = (OpenLedgers::default(), Exposure::default());
        Self { global, output, ledgers, exposure, interrupt: OnceLock::new(), observer }
    }

    /// The state folder, whether it exists or not.
    pub(super) fn state(&self) -> Result<PathBuf, Failure> {
        let given = self.global.state_dir.clone();
        let state = given
            .or_else(|| dirs::state_dir().or_else(dirs::data_local_dir).map(|folder| folder.join("campaign")))
            .ok_or_else(|| {
                Failure::wrong("cannot find your home folder, where the ledger is stored by default")
                    .with_help("add `--state-dir DIR`")
            })?;
        self.exposure.check_state_folder(&state);
        Ok(state)
    }

    /// Where profiles are found.
    pub(super) fn profiles(&self) -> Profiles {
        let configuration = dirs::config_dir().map(|folder| folder.join("campaign"));
        let profiles = Profiles { explicit: self.global.gateways.clone(), configuration };
        self.exposure.check_gateways(&profiles.place(None));
        profiles
    }

    /// Loads a campaign file, and the profile of its gateway or of the one named instead.
    pub(super) fn load(&self, file: &Path, gateway: Option<&str>) -> Result<Arc<Inputs>, Failure> {
        let profiles = self.profiles();
        self.exposure.check_gateways(&profiles.place(Some(file)));
        Ok(Arc::new(Inputs::load(file, gateway, &profiles, Day::Of(Timestamp::now()))?))
    }

    /// The adapters of this program around a ledger.
    pub(super) fn adapters(&self, ledger: Arc<dyn Ledger>) -> Result<Adapters, Failure> {
        let options = self.output.options.clone();
        let name_view = move |view, profile: &str| options.view(view, profile);
        Ok(Adapters {
            process: super::process::name(),
            state: self.state()?,
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
    pub(super) fn interrupt(&self) -> Result<watch::Receiver<Interrupt>, Failure> {
        let listening = match self.interrupt.get() {
            Some(listening) => listening.clone(),
            None => signals::listen().map_err(|error| Failure::new(exit::BUG, error.to_string()))?,
        };
        Ok(self.interrupt.get_or_init(|| listening).clone())
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

    /// The state folder, created where there is none.
    pub(super) fn new_state(&self) -> Result<PathBuf, Failure> {
        let state = self.state()?;
        private::folder(&state).map_err(|error| {
            Failure::storage(format!("cannot create the state folder `{}`: {error}", state.display()))
        })?;
        Ok(state)
    }
}
