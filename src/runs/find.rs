//! Finding the run that somebody names, and what it keeps.

use std::path::{Path, PathBuf};

use super::{Error, Event, Observer};
use crate::delivery::{FrozenInputs, RunFolder};
use crate::finding::did_you_mean;
use crate::ledger::{Ledger, Run};
use crate::manifest::load_campaign;
use crate::report::{NextStep, unknown_results};

/// The run that `name` means: `autumn-sale@3`, or a campaign's name or file (its latest live run, else its latest).
///
/// # Errors
/// When there is none, or the ledger cannot be read.
pub async fn find(ledger: &dyn Ledger, name: &str) -> Result<Run, Error> {
    let runs = ledger.runs().await?;
    if let Some(run) = runs.iter().find(|run| run.name() == name) {
        return Ok(run.clone());
    }
    let campaign = campaign_name(name);
    let of_campaign = || runs.iter().filter(|run| run.campaign == campaign);
    let latest = of_campaign().rfind(|run| run.live).or_else(|| of_campaign().next_back());
    latest.cloned().ok_or_else(|| {
        let names: Vec<String> = runs.iter().map(Run::name).collect();
        let near = did_you_mean(name, names.iter().map(String::as_str)).map(ToOwned::to_owned);
        Error::NoSuchRun { name: name.to_owned(), near }
    })
}

/// The run that `name` means to somebody who decides: of a campaign's runs the latest with rows that nobody knows.
///
/// # Errors
/// When there is none, or the ledger cannot be read.
pub async fn find_doubtful(ledger: &dyn Ledger, name: &str) -> Result<Run, Error> {
    let found = find(ledger, name).await?;
    if found.name() == name {
        return Ok(found);
    }
    let runs = ledger.runs().await?;
    let doubtful = |run: &&Run| {
        let has_doubt = run.counts.as_ref().is_some_and(|(counts, _)| NextStep::of_doubt(counts).is_some());
        run.campaign == found.campaign && run.live && has_doubt
    };
    Ok(runs.iter().rfind(doubtful).cloned().unwrap_or(found))
}

/// The campaign that a file describes; a name that is no file is a campaign's name already.
fn campaign_name(name: &str) -> String {
    let path = Path::new(name);
    if !path.is_file() {
        return name.to_owned();
    }
    match load_campaign(path).value {
        Some(campaign) => campaign.brief.name,
        None => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

/// Tells whether the results of a live run know more than the ledger.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn judge_results(ledger: &dyn Ledger, state: &Path, run: &Run, observer: &Observer) -> Result<(), Error> {
    if !run.live {
        return Ok(());
    }
    if let Some(results) = run.results.as_ref().map(PathBuf::from).or_else(|| planned_results(state, run))
        && let Some(sign) = unknown_results(Some(ledger), &results).await?
    {
        observer(Event::Contradicted(sign));
    }
    Ok(())
}

/// Where a run that did not end yet is going to write its results, as its campaign file says now.
fn planned_results(state: &Path, run: &Run) -> Option<PathBuf> {
    let frozen = RunFolder::of(state, &run.name()).frozen().ok()?;
    let campaign = load_campaign(&frozen.campaign_file).value?;
    Some(campaign.sent_through(&run.gateway).results_file())
}

/// The name of a run that began after this one and wrote its results to the same file.
#[must_use]
pub fn later_at(runs: &[Run], run: &Run, results: &str) -> Option<String> {
    let later = runs.iter().rfind(|other| other.key.0 > run.key.0 && other.results.as_deref() == Some(results));
    later.map(Run::name)
}

/// What a run froze.
///
/// # Errors
/// When it cannot be read.
pub fn frozen(folder: &RunFolder) -> Result<FrozenInputs, Error> {
    folder.frozen().map_err(|error| {
        Error::Storage(format!("the frozen copies in `{}` cannot be read: {error}", folder.path().display()))
    })
}
