//! Where gateways.yaml is looked for.

use std::path::{Path, PathBuf};

use crate::manifest::campaign_paths::parent_folder;

const FILE_NAME: &str = "gateways.yaml";

/// Where gateways.yaml may be; the first that exists is read.
#[derive(Clone, Debug, Default)]
pub struct GatewaySearch {
    /// The file that the command line or `$CAMPAIGN_GATEWAYS` names; it must exist.
    pub explicit: Option<PathBuf>,
    /// The campaign file: beside it, then in the folder above.
    pub campaign: Option<PathBuf>,
    /// The user's configuration folder for this program.
    pub configuration: Option<PathBuf>,
}

impl GatewaySearch {
    /// Every file that may hold the profiles.
    #[must_use]
    pub fn list_files(&self) -> Vec<PathBuf> {
        self.explicit.iter().cloned().chain(self.candidate_files()).collect()
    }

    /// The files that may exist, in the order in which they are tried.
    pub(super) fn candidate_files(&self) -> Vec<PathBuf> {
        let folder = self.campaign.as_deref().map(|file| file.parent().unwrap_or(Path::new("")).to_owned());
        let above = folder.as_deref().map(parent_folder);
        [folder, above, self.configuration.clone()].into_iter().flatten().map(|folder| folder.join(FILE_NAME)).collect()
    }
}
