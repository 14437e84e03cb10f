//! The profiles of gateways: where they are found, and that their hosts stay what they were.

use std::path::{Path, PathBuf};

use super::{Error, RunEvent, RunObserver};
use crate::ledger::{Ledger, Run};
use crate::manifest::{GatewaySearch, Gateways, Profile, SANDBOX, load_gateways};

/// A file from which profiles are found as from the working folder.
const IN_WORKING_FOLDER: &str = "campaign.yaml";

/// Where files of profiles are found, besides those that stand near a campaign.
#[derive(Clone, Debug, Default)]
pub struct Profiles {
    /// The only file, where one is named.
    pub explicit: Option<PathBuf>,
    /// The user's configuration folder.
    pub configuration: Option<PathBuf>,
}

impl Profiles {
    /// The profiles that are found from a campaign's file, or from the working folder.
    ///
    /// # Errors
    /// When the file that is named, or all of them, cannot be read.
    pub fn load(&self, campaign: Option<&Path>) -> Result<Gateways, Error> {
        let campaign = campaign.map_or_else(|| PathBuf::from(IN_WORKING_FOLDER), Path::to_owned);
        let loaded = load_gateways(&self.build_search(Some(campaign)));
        loaded.value.ok_or(Error::Findings(loaded.findings))
    }

    /// The profile of that name; those beside it that cannot be used are only warned of.
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub fn find_profile(&self, name: &str, campaign: Option<&Path>, observer: &RunObserver) -> Result<Profile, Error> {
        let gateways = self.load(campaign)?;
        let profile = gateways.find_profile(name).cloned().map_err(Error::Findings)?;
        observer(RunEvent::OtherProfiles(gateways.collect_warnings()));
        Ok(profile)
    }

    /// The profile of an account that can be asked: the one that is named, else the only one there is.
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub fn find_for_query(&self, name: Option<&str>, observer: &RunObserver) -> Result<Profile, Error> {
        match name {
            Some(SANDBOX) => Err(Error::SandboxAccount),
            Some(name) => self.find_profile(name, None, observer),
            None => self.find_only(),
        }
    }

    /// The only profile that there is.
    ///
    /// # Errors
    /// When there is none or several, or it cannot be used.
    pub fn find_only(&self) -> Result<Profile, Error> {
        let gateways = self.load(None)?;
        let names: Vec<&str> = gateways.profile_names().collect();
        match names[..] {
            [one] => gateways.find_profile(one).cloned().map_err(Error::Findings),
            [] => Err(Error::NoGateway),
            _ => Err(Error::SeveralGateways(names.into_iter().map(ToOwned::to_owned).collect())),
        }
    }

    /// The profile of the account that a run went through: by the name that it had, else under whatever name it has now.
    ///
    /// # Errors
    /// When there is none, or it cannot be used.
    pub fn find_by_account(
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

    /// The file for a new profile: the one that is read from a campaign's file or the working folder, else beside it.
    #[must_use]
    pub fn new_profile_path(&self, campaign: Option<&Path>) -> PathBuf {
        let files = self.list_files(Some(campaign.unwrap_or(Path::new(IN_WORKING_FOLDER))));
        let place = files.iter().find(|path| self.explicit.is_some() || path.exists()).or(files.first());
        place.cloned().unwrap_or_default()
    }

    /// The files in which profiles are looked for, whether they exist or not.
    #[must_use]
    pub fn list_files(&self, campaign: Option<&Path>) -> Vec<PathBuf> {
        self.build_search(campaign.map(Path::to_owned)).list_files()
    }

    fn build_search(&self, campaign: Option<PathBuf>) -> GatewaySearch {
        let Self { explicit, configuration } = self.clone();
        GatewaySearch { explicit, campaign, configuration }
    }
}

/// Requires that a profile has the host of its first use, so that a slip sends neither the key nor the list elsewhere.
///
/// All loopback addresses are one host. A profile that changes from loopback to a live host, or back, has to be trusted.
///
/// # Errors
/// When the host is a different one, or the ledger cannot be read.
pub async fn check_host(ledger: &dyn Ledger, profile: &Profile) -> Result<(), Error> {
    let (gateway, now) = (&profile.name, profile.trusted_hosts());
    let known = ledger.remember_host(gateway, &now).await?;
    if known == now { Ok(()) } else { Err(Error::HostChanged { gateway: gateway.clone(), known, now }) }
}

/// Requires that a run and a profile are both live, or both on loopback: the gateway of one knows no message of the other.
///
/// # Errors
/// When the profile moved between loopback and a live host since the run began.
pub(super) fn refuse_other_reach(run: &Run, profile: &Profile) -> Result<(), Error> {
    match run.suppression.loopback == profile.is_loopback() {
        true => Ok(()),
        false => Err(Error::OtherReach {
            run: run.name(),
            gateway: profile.name.clone(),
            loopback: run.suppression.loopback,
        }),
    }
}
