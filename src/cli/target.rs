//! Where results go, and the files of the user and of the program that they never replace.

use std::path::{Path, PathBuf};

use super::context::Context;
use super::exit::Failure;
use super::survey::Inputs;
use crate::delivery::FrozenInputs;
use crate::finding::Finding;
use crate::manifest::{Campaign, GatewaySearch, load_campaign};
use crate::report::{ProtectedPath, Target};

/// The rule that results replace nothing but results.
pub(super) const RULE: &str = "results-overwrite";

/// The results of a campaign at `path`.
pub(super) fn of_campaign(context: &Context, campaign: &Campaign, path: PathBuf) -> Result<Target, Failure> {
    let mut kept = of_program(context, Some(&campaign.file))?;
    kept.extend(of_user(campaign));
    Ok(Target::new(path, kept))
}

/// The results of a run at `path`, whatever became of its campaign since.
pub(super) fn of_run(context: &Context, frozen: &FrozenInputs, path: PathBuf) -> Result<Target, Failure> {
    let file = frozen.campaign_file.as_path();
    // A lookup or a code call has no campaign.
    let named = !file.as_os_str().is_empty();
    let mut kept = of_program(context, named.then_some(file))?;
    if named {
        kept.push(ProtectedPath { path: file.to_owned(), what: "the campaign file" });
        kept.push(ProtectedPath { path: frozen.list.clone(), what: "the list of recipients" });
        kept.extend(load_campaign(file).value.iter().flat_map(of_user));
    }
    Ok(Target::new(path, kept))
}

/// Why a run of this campaign could not write its results, at the place where the file names them.
pub(super) fn finding(context: &Context, inputs: &Inputs) -> Result<Option<Finding>, Failure> {
    let campaign = &inputs.campaign;
    let why = of_campaign(context, campaign, campaign.results_file())?.judge().err();
    Ok(why.map(|why| {
        let finding = Finding::error(RULE, format!("the results cannot take this place: {why}"));
        let help = "name another file under `results`, or move what is there; only results are replaced by results";
        finding.at(campaign.places.of_key("results")).help(help)
    }))
}

/// Refuses a place that the user named for results.
pub(super) fn refuse(why: &str) -> Failure {
    Failure::wrong(format!("{why}; nothing was written: only results are replaced by results, so name another file"))
}

fn of_user(campaign: &Campaign) -> Vec<ProtectedPath> {
    let mut kept = vec![
        ProtectedPath { path: campaign.recipients.clone(), what: "the list of recipients" },
        ProtectedPath { path: campaign.file.clone(), what: "the campaign file" },
    ];
    let texts = campaign.places.text_files();
    kept.extend(texts.map(|path| ProtectedPath { path: path.to_owned(), what: "a text of the campaign" }));
    kept
}

fn of_program(context: &Context, campaign: Option<&Path>) -> Result<Vec<ProtectedPath>, Failure> {
    let search = GatewaySearch {
        explicit: context.global.gateways.clone(),
        campaign: campaign.map(Path::to_owned),
        configuration: context.configuration(),
    };
    let gateways =
        search.files().into_iter().map(|path| ProtectedPath { path, what: "the file of the gateways' profiles" });
    let state = ProtectedPath { path: context.state()?, what: "in the state folder, where the ledger is" };
    Ok(gateways.chain([state]).collect())
}
