//! Where results go, and the files of the user and of the program that they never replace.

use std::path::{Path, PathBuf};

use super::{Inputs, Profiles};
use crate::delivery::FrozenInputs;
use crate::finding::{Finding, rules};
use crate::manifest::{Campaign, CampaignPath, load_campaign};
use crate::report::{ProtectedPath, ResultsTarget};

/// What results never replace, whatever campaign they are of: the state folder, and the files of profiles.
#[derive(Clone, Copy)]
pub struct ProtectedFiles<'a> {
    /// The state folder.
    pub state: &'a Path,
    /// Where profiles are found.
    pub profiles: &'a Profiles,
}

impl ProtectedFiles<'_> {
    /// The results of a campaign at `path`.
    #[must_use]
    pub fn results_target(self, campaign: &Campaign, path: CampaignPath) -> ResultsTarget {
        let mut kept = self.list_protected(Some(&campaign.file));
        kept.extend(list_user_files(campaign));
        ResultsTarget::new(path, kept)
    }

    /// The results of a run at `path`, whatever became of its campaign since.
    #[must_use]
    pub fn results_target_of_run(self, frozen: &FrozenInputs, path: PathBuf) -> ResultsTarget {
        let file = frozen.campaign_file.as_path();
        // A lookup or a code call has no campaign.
        let named = !file.as_os_str().is_empty();
        let mut kept = self.list_protected(named.then_some(file));
        if named {
            kept.push(ProtectedPath { path: file.to_owned(), what: "the campaign file" });
            let list = frozen.list.clone();
            kept.extend(list.map(|path| ProtectedPath { path, what: "the recipient list" }));
            kept.extend(load_campaign(file, frozen.day()).value.iter().flat_map(list_user_files));
        }
        ResultsTarget::new(CampaignPath::anywhere(path), kept)
    }

    /// Why a run of this campaign could not write its results, at the place where the file names them.
    #[must_use]
    pub fn check_results_target(self, inputs: &Inputs) -> Option<Finding> {
        let campaign = &inputs.campaign;
        let why = self.results_target(campaign, campaign.results_file()).resolve_path().err()?;
        let finding = Finding::new(&rules::RESULTS_OVERWRITE, format!("cannot write the results: {why}"));
        let help =
            "name another file under `results`, or move the existing one; only a results file can be overwritten";
        Some(finding.at(campaign.places.locate_key("results")).help(help))
    }

    fn list_protected(self, campaign: Option<&Path>) -> Vec<ProtectedPath> {
        let gateways = self.profiles.list_files(campaign).into_iter();
        let gateways = gateways.map(|path| ProtectedPath { path, what: "the gateway profiles file" });
        let state = ProtectedPath { path: self.state.to_owned(), what: "in the state folder, where the ledger is" };
        gateways.chain([state]).collect()
    }
}

fn list_user_files(campaign: &Campaign) -> Vec<ProtectedPath> {
    let mut kept = vec![ProtectedPath { path: campaign.file.clone(), what: "the campaign file" }];
    let named = |file: &CampaignPath, what| ProtectedPath { path: file.path().to_owned(), what };
    kept.extend(campaign.recipients.list_file().map(|list| named(list, "the recipient list")));
    kept.extend(campaign.data.iter().map(|table| named(&table.file, "one of the campaign's data tables")));
    kept.extend(campaign.suppress.iter().map(|list| named(&list.file, "a suppression list")));
    let texts = campaign.places.text_files();
    kept.extend(texts.map(|path| ProtectedPath { path: path.to_owned(), what: "one of the campaign's templates" }));
    kept
}
