//! Gateway profiles: their files, trusted hosts, webhooks and connections.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

use super::{Adapters, Connect, Error, RunEvent, RunObserver, read_api_key};
use campaign_core::domain::{Endpoint, OptOutWords};
use campaign_engine::delivery::FrozenInputs;
use campaign_gateway::{AnswerRules, Gateway, GatewayAddress, WebhookSecrets, WebhookUrls};
use campaign_ledger::{HostChange, Ledger, Run, RunFilter};
use campaign_manifest::{Destination, GatewaySearch, Gateways, Profile, SANDBOX, UnsavedTexts, load_gateways};
use campaign_sandbox::{LocalReceiver, Sandbox, SandboxSettings, Scenario};

/// The timeout of one request.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// A file name that stands for the working folder in a search for profiles.
const IN_WORKING_FOLDER: &str = "campaign.yaml";

/// Where to look for profile files, in addition to the folders near a campaign.
#[derive(Clone, Debug, Default)]
pub struct Profiles {
    /// The only file, if one is named.
    pub explicit: Option<PathBuf>,
    /// The user's configuration folder.
    pub configuration: Option<PathBuf>,
    /// The unsaved texts of an editor.
    pub unsaved: UnsavedTexts,
}

impl Profiles {
    /// Loads the profiles for a campaign file or the working folder.
    ///
    /// # Errors
    /// If the profiles file cannot be read. A missing file is an error only if the user named it.
    pub fn load(&self, campaign: Option<&Path>) -> Result<Gateways, Error> {
        let campaign = campaign.map_or_else(|| PathBuf::from(IN_WORKING_FOLDER), Path::to_owned);
        let loaded = load_gateways(&self.build_search(Some(campaign)));
        loaded.value.ok_or(Error::Findings(loaded.findings))
    }

    /// Finds the profile with this name. Problems of other profiles are only reported to the observer.
    ///
    /// # Errors
    /// If the profile does not exist or cannot be used.
    pub fn find_profile(&self, name: &str, campaign: Option<&Path>, observer: &RunObserver) -> Result<Profile, Error> {
        let gateways = self.load(campaign)?;
        let profile = gateways.find_profile(name).cloned().map_err(Error::Findings)?;
        observer(RunEvent::OtherProfiles(gateways.collect_warnings()));
        Ok(profile)
    }

    /// Finds the profile for an inquiry: the named profile, or else the only profile.
    ///
    /// # Errors
    /// If there is no such profile, or the profile cannot be used.
    pub fn find_for_inquiry(&self, name: Option<&str>, observer: &RunObserver) -> Result<Profile, Error> {
        match name {
            Some(SANDBOX) => Err(Error::SandboxAccount),
            Some(name) => self.find_profile(name, None, observer),
            None => self.find_only(),
        }
    }

    /// Finds the only profile.
    ///
    /// # Errors
    /// If there is not exactly one profile, or the profile cannot be used.
    pub fn find_only(&self) -> Result<Profile, Error> {
        let gateways = self.load(None)?;
        let names: Vec<&str> = gateways.profile_names().collect();
        match names[..] {
            [only] => gateways.find_profile(only).cloned().map_err(Error::Findings),
            [] => Err(Error::NoGateway),
            _ => Err(Error::SeveralGateways(names.into_iter().map(ToOwned::to_owned).collect())),
        }
    }

    /// Finds the profile of a run: by the gateway name recorded in the run, or else by the account.
    ///
    /// # Errors
    /// If there is no such profile, or the profile cannot be used.
    pub fn find_run_profile(
        &self,
        run: &Run,
        campaign: Option<&Path>,
        observer: &RunObserver,
    ) -> Result<Profile, Error> {
        let gateways = self.load(campaign)?;
        let renamed = gateways.profiles().iter().find(|profile| profile.account == run.account);
        match renamed.filter(|_| !gateways.profile_names().any(|name| name == run.gateway)) {
            Some(renamed) => Ok(renamed.clone()),
            None => self.find_profile(&run.gateway, campaign, observer),
        }
    }

    /// The file for a new profile: the existing profile file for a campaign or the working folder, or else a new file.
    pub fn new_profile_path(&self, campaign: Option<&Path>) -> PathBuf {
        let files = self.list_files(Some(campaign.unwrap_or(Path::new(IN_WORKING_FOLDER))));
        let place = files.iter().find(|path| self.explicit.is_some() || path.exists()).or(files.first());
        place.cloned().unwrap_or_default()
    }

    /// The files that can contain profiles, whether or not they exist.
    pub fn list_files(&self, campaign: Option<&Path>) -> Vec<PathBuf> {
        self.build_search(campaign.map(Path::to_owned)).list_files()
    }

    fn build_search(&self, campaign: Option<PathBuf>) -> GatewaySearch {
        let Self { explicit, configuration, unsaved } = self.clone();
        GatewaySearch { explicit, campaign, configuration, unsaved }
    }
}

/// Requires that a profile still has the host of its first use, so that a mistake sends neither key nor list elsewhere.
///
/// All loopback addresses count as one host. A profile that changes from loopback to a live host, or back, must be
/// trusted again.
///
/// # Errors
/// If the host has changed, or the ledger cannot be read.
pub async fn check_host(ledger: &dyn Ledger, profile: &Profile) -> Result<(), Error> {
    let (gateway, now) = (&profile.name, profile.trusted_hosts());
    let known = ledger.remember_host(gateway, &now, HostChange::IfUnknown).await?;
    if known == now { Ok(()) } else { Err(Error::HostChanged { gateway: gateway.clone(), known, now }) }
}

/// Requires that a run and a profile are both live or both on loopback. A live gateway knows no messages of a gateway
/// on loopback, and vice versa.
///
/// # Errors
/// If the profile moved between loopback and a live host since the run began.
pub(super) fn refuse_loopback_change(run: &Run, profile: &Profile) -> Result<(), Error> {
    match run.suppression.loopback == profile.is_loopback() {
        true => Ok(()),
        false => Err(Error::OtherReach {
            run: run.name(),
            gateway: profile.name.clone(),
            loopback: run.suppression.loopback,
        }),
    }
}

/// Loads the profile of a run's gateway, and checks that the host is trusted.
pub(super) async fn load_profile_of_run(adapters: &Adapters, run: &Run) -> Result<Profile, Error> {
    if !run.live {
        return Err(Error::RehearsalForgotten { run: run.name() });
    }
    let frozen = FrozenInputs::load_for_run(adapters.ledger.as_ref(), run).await;
    let campaign = frozen.ok().map(|frozen| frozen.campaign_file);
    let profile = adapters.profiles.find_run_profile(run, campaign.as_deref(), &adapters.observer)?;
    refuse_loopback_change(run, &profile)?;
    check_host(adapters.ledger.as_ref(), &profile).await?;
    Ok(profile)
}

/// Loads the webhook address and secrets of a profile. Returns `None` if the profile has no webhook.
///
/// # Errors
/// If a secret cannot be read, or could be guessed.
pub fn load_hook(profile: &Profile) -> Result<Option<WebhookUrls>, Error> {
    let Some(settings) = &profile.hook else { return Ok(None) };
    let read = |source: &campaign_manifest::SecretSource| {
        source.read_secret("the webhook secret", &|name| std::env::var(name).ok()).map_err(Error::Input)
    };
    let secrets: Vec<SecretString> = settings.secrets.iter().map(read).collect::<Result<_, _>>()?;
    let secrets = WebhookSecrets::new(&secrets)
        .map_err(|error| Error::Input(format!("`hook` of `{}`: {error}", profile.name)))?;
    Ok(Some(WebhookUrls::new(settings.public_url.as_str().to_owned(), secrets)))
}

/// The webhooks of profiles.
#[derive(Debug)]
pub struct ProfileHooks {
    /// The URLs and secrets of the webhooks.
    pub hooks: Vec<WebhookUrls>,
    /// The words in replies that mean an opt-out or an opt-in, for all profiles.
    pub opt_out_words: OptOutWords,
    /// The errors of rejected messages that mean an opt-out.
    pub opt_out_errors: OptOutErrors,
}

/// The errors of rejected messages that mean an opt-out, by account. The profiles of an account share its stop list.
#[derive(Clone, Debug, Default)]
pub struct OptOutErrors(BTreeMap<String, BTreeSet<String>>);

impl OptOutErrors {
    fn add_profile(&mut self, profile: &Profile) {
        let errors = self.0.entry(profile.account.clone()).or_default();
        errors.extend(profile.opt_out_errors.iter().cloned());
    }

    /// The errors of the account of a run.
    pub(super) fn find_errors_for_run(&self, run: &Run) -> Vec<String> {
        self.0.get(&run.account).into_iter().flatten().cloned().collect()
    }
}

/// Loads the webhooks, opt-out words and opt-out errors of all profiles for the working folder, these campaign
/// files, and the campaign files of live runs. Unusable profiles and webhooks are reported and omitted.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn load_all_hooks(
    ledger: &dyn Ledger,
    profiles: &Profiles,
    files: &[PathBuf],
    observer: &RunObserver,
) -> Result<ProfileHooks, Error> {
    let runs = ledger.list_stored_runs(RunFilter { live: true, ..RunFilter::all() }).await?;
    let run_files = runs.into_iter().flatten().filter_map(|run| run.file).map(PathBuf::from);
    // The search for profiles starts in the folder of a file, so all files in a folder have the same profiles.
    let file_by_folder: BTreeMap<Option<PathBuf>, Option<PathBuf>> = [None]
        .into_iter()
        .chain(files.iter().cloned().chain(run_files).map(Some))
        .map(|file| (file.as_deref().and_then(Path::parent).map(Path::to_owned), file))
        .collect();
    let mut hooks: BTreeMap<String, WebhookUrls> = BTreeMap::new();
    let (mut words, mut opt_in_words) = (BTreeSet::new(), BTreeSet::new());
    let mut opt_out_errors = OptOutErrors::default();
    for file in file_by_folder.into_values() {
        let gateways = match profiles.load(file.as_deref()) {
            Ok(gateways) => gateways,
            Err(Error::Findings(findings)) => {
                observer(RunEvent::OtherProfiles(findings));
                continue;
            }
            Err(error) => return Err(error),
        };
        observer(RunEvent::OtherProfiles(gateways.collect_warnings()));
        for profile in gateways.profiles() {
            words.extend(profile.opt_out_words.iter().cloned());
            opt_in_words.extend(profile.opt_in_words.iter().cloned());
            opt_out_errors.add_profile(profile);
            match load_hook(profile) {
                Ok(Some(hook)) => drop(hooks.insert(hook.account_url(), hook)),
                Ok(None) => {}
                Err(Error::Input(reason)) => observer(RunEvent::HookUnusable { profile: profile.name.clone(), reason }),
                Err(error) => return Err(error),
            }
        }
    }
    let words = OptOutWords::default().with_words(words).with_opt_in_words(opt_in_words);
    Ok(ProfileHooks { hooks: hooks.into_values().collect(), opt_out_words: words, opt_out_errors })
}

/// Stores check values of the secrets for each address, so that a run with another secret is refused.
///
/// # Errors
/// If the ledger cannot be written.
pub async fn store_secret_check_values(ledger: &dyn Ledger, hooks: &[WebhookUrls]) -> Result<(), Error> {
    let mut values_by_address: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for hook in hooks {
        values_by_address.entry(hook.public_url()).or_default().extend(hook.secrets().check_values());
    }
    for (address, check_values) in values_by_address {
        ledger.remember_check_values(address, Some(check_values)).await?;
    }
    Ok(())
}

/// Whether the endpoint at the address of a webhook is known to have another secret.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn has_other_secret(ledger: &dyn Ledger, hook: &WebhookUrls) -> Result<bool, Error> {
    let endpoint_values = ledger.remember_check_values(hook.public_url(), None).await?;
    let own_value = hook.secrets().check_values().into_iter().next();
    Ok(!endpoint_values.is_empty() && !own_value.is_some_and(|own_value| endpoint_values.contains(&own_value)))
}

/// Refuses to send messages whose receipts the webhook endpoint would reject because of another secret.
///
/// # Errors
/// If the endpoint has another secret, or the ledger cannot be read.
pub async fn refuse_other_secret(
    ledger: &dyn Ledger,
    profile: &Profile,
    hook: Option<&WebhookUrls>,
) -> Result<(), Error> {
    let Some(hook) = hook else { return Ok(()) };
    if !has_other_secret(ledger, hook).await? {
        return Ok(());
    }
    Err(Error::Input(format!(
        "the `hook` secret of the profile `{}` differs from the secret of the webhook endpoint at {}, which would \
         reject every receipt; set both to the same secret, or restart `serve` with the secret in the profile",
        profile.name,
        hook.public_url()
    )))
}

/// The key of the built-in sandbox and its client, unless a scenario sets another key.
const REHEARSAL_KEY: &str = "rehearsal";

/// Reads the API key of a destination; a rehearsal has a fixed key.
///
/// # Errors
/// If the key is missing or cannot be read.
pub fn read_destination_key(destination: &Destination) -> Result<SecretString, Error> {
    destination.profile().map_or_else(|| Ok(REHEARSAL_KEY.to_owned().into()), read_api_key)
}

/// A connection to the gateway of a profile or to the built-in sandbox.
pub enum Connection<'a> {
    /// The built-in sandbox.
    Sandbox(Sandbox),
    /// The gateway of a profile, with its key.
    Gateway(&'a Profile, SecretString),
}

impl<'a> Connection<'a> {
    /// Opens the connection to a destination. A sandbox plays the scenario and delivers webhooks to the receiver.
    ///
    /// # Errors
    /// If a sandbox cannot start.
    pub async fn open(
        destination: &'a Destination,
        key: SecretString,
        scenario: Arc<Scenario>,
        receiver: Option<LocalReceiver>,
    ) -> Result<Self, Error> {
        match destination {
            Destination::Live(profile) => Ok(Connection::Gateway(profile, key)),
            Destination::Rehearsal => {
                let sandbox =
                    Sandbox::start(SandboxSettings { key, scenario, receiver, ..SandboxSettings::default() }).await;
                let failed = |error| Error::Internal(format!("the built-in sandbox cannot start: {error}"));
                sandbox.map(Connection::Sandbox).map_err(failed)
            }
        }
    }

    /// Creates a client for this connection.
    ///
    /// # Errors
    /// If the client cannot be created.
    pub fn create_client(
        &self,
        connect: Connect,
        endpoint: Endpoint,
        timeout: Duration,
    ) -> Result<Arc<dyn Gateway>, Error> {
        let (address, key, rules) = match self {
            Connection::Sandbox(sandbox) => (
                GatewayAddress {
                    base_url: sandbox.base_url(),
                    async_url: sandbox.async_url(),
                    proxy: None,
                    timeout,
                    embedded: true,
                },
                // The key is not a constant, because an account in the scenario can have its own key.
                sandbox.key(),
                AnswerRules { trust_status: Vec::new(), fatal_errors: vec!["Not enough money".to_owned()] },
            ),
            Connection::Gateway(profile, key) => (
                GatewayAddress {
                    base_url: profile.base_url.as_str().to_owned(),
                    async_url: profile.async_url.as_ref().map_or_else(String::new, |url| url.as_str().to_owned()),
                    proxy: profile.proxy.clone(),
                    timeout,
                    embedded: false,
                },
                key,
                AnswerRules { trust_status: profile.trust_status.clone(), fatal_errors: profile.fatal_errors.clone() },
            ),
        };
        let key = key.expose_secret().to_owned().into();
        let api = connect(&address, endpoint, key, rules).map_err(Error::Client)?;
        Ok(Arc::new(api))
    }

    /// Returns the sandbox of a rehearsal; `None` for a live gateway.
    pub fn into_sandbox(self) -> Option<Sandbox> {
        match self {
            Connection::Sandbox(sandbox) => Some(sandbox),
            Connection::Gateway(..) => None,
        }
    }
}
