//! Whose campaign it is: a campaign is its name, and a file means the runs that began from it.

use std::path::{Path, PathBuf};

use super::inputs::Includes;
use super::{Error, Inputs};
use crate::delivery::FrozenInputs;
use crate::ledger::{Ledger, Run};

/// The path by which runs know a campaign file: from the root, without links.
pub(super) fn absolute_file_path(file: &Path) -> String {
    let path = file.canonicalize().or_else(|_| std::path::absolute(file)).unwrap_or_else(|_| file.to_owned());
    path.to_string_lossy().into_owned()
}

/// The campaign file of a run: where it is known to be, else where it was when the run began.
pub async fn find_campaign_file(ledger: &dyn Ledger, run: &Run) -> Option<PathBuf> {
    match &run.file {
        Some(file) => Some(PathBuf::from(file)),
        None => FrozenInputs::load_for_run(ledger, run).await.ok().map(|frozen| frozen.campaign_file),
    }
}

/// Whether a campaign went elsewhere with the folder of these results, so that it is not to be made anew.
pub async fn is_folder_gone(ledger: &dyn Ledger, run: &Run, results: &Path) -> bool {
    if results.parent().is_none_or(Path::exists) {
        return false;
    }
    let began = FrozenInputs::load_for_run(ledger, run).await.ok().map(|frozen| frozen.campaign_file);
    let files = run.file.as_ref().map(PathBuf::from).into_iter().chain(began);
    let within = |file: &PathBuf| file.parent().is_some_and(|folder| results.starts_with(folder));
    files.filter(within).any(|file| !file.exists())
}

/// Refuses a campaign whose name was sent from another file, unless both say the same.
///
/// Runs of earlier versions know no file: they are of whoever asks first.
pub(super) async fn refuse_other_file(
    ledger: &dyn Ledger,
    runs: &[Run],
    inputs: &Inputs,
    includes: &Includes,
) -> Result<(), Error> {
    let here = absolute_file_path(&inputs.campaign.file);
    let known = || runs.iter().filter_map(|run| Some((run, run.file.as_ref()?)));
    let Some((run, there)) = known().next_back().filter(|_| known().all(|(_, file)| *file != here)) else {
        return Ok(());
    };
    let frozen = FrozenInputs::load_for_run(ledger, run).await;
    if frozen.is_ok_and(|frozen| frozen.describe_differences(&inputs.campaign.brief, includes, None).is_empty()) {
        return Ok(());
    }
    Err(Error::OtherFile {
        campaign: run.campaign.clone(),
        run: run.name(),
        began_at: run.began_at,
        there: PathBuf::from(there),
    })
}
