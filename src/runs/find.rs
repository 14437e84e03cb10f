//! Finding the run that somebody names, and what it keeps.

use std::path::{Path, PathBuf};

use jiff::civil::Date;

use super::whose::absolute_file_path;
use super::{Error, RunEvent, RunObserver, find_campaign_file, find_occurrence};
use crate::delivery::FrozenInputs;
use crate::finding::did_you_mean;
use crate::ledger::{Ledger, LedgerError, Run, RunFilter, RunId};
use crate::manifest::{CampaignDay, CampaignPath, is_slug, load_campaign};
use crate::report::{NextStep, RunView, find_unknown_results_quickly};

/// The run that `name` means: `autumn-sale@3`, or a campaign's name or file (its latest live run, else its latest).
///
/// A file means the runs that began from it.
///
/// # Errors
/// When there is none, or the ledger cannot be read.
pub async fn find_run(ledger: &dyn Ledger, name: &str) -> Result<Run, Error> {
    if let Some((campaign, _)) = name.rsplit_once('@')
        && let Some(run) = find_stored_run(ledger, (campaign, name)).await?
    {
        return Ok(run);
    }
    if is_file(name) {
        if let Some(latest) = find_latest_of_file(ledger, &read_campaign_name(name), Path::new(name)).await? {
            return Ok(latest);
        }
    } else {
        let latest = RunFilter { latest: Some(1), ..RunFilter::for_campaign(name) };
        for latest in [RunFilter { live: true, ..latest.clone() }, latest] {
            if let Some(run) = ledger.list_runs(latest).await?.pop() {
                return Ok(run);
            }
        }
    }
    let names: Vec<String> = ledger.list_stored_runs(RunFilter::all()).await?.iter().flatten().map(Run::name).collect();
    let near = did_you_mean(name, names.iter().map(String::as_str)).map(ToOwned::to_owned);
    Err(Error::NoSuchRun { name: name.to_owned(), near })
}

/// The latest live run of a campaign that began from a file, else its latest; nothing if none did. The file is not opened.
///
/// # Errors
/// When they are all of another file, or the ledger cannot be read.
pub async fn find_latest_of_file(ledger: &dyn Ledger, campaign: &str, file: &Path) -> Result<Option<Run>, Error> {
    let runs = filter_by_file(ledger.list_runs(RunFilter::for_campaign(campaign)).await?, file)?;
    Ok(runs.iter().rfind(|run| run.live).or(runs.last()).cloned())
}

/// The run of a campaign with this name. Damaged records of other runs do not hide it.
///
/// # Errors
/// When its own record is damaged, or the ledger cannot be read.
pub async fn find_stored_run(ledger: &dyn Ledger, (campaign, name): (&str, &str)) -> Result<Option<Run>, LedgerError> {
    for stored in ledger.list_stored_runs(RunFilter::for_campaign(campaign)).await? {
        match stored {
            Ok(run) if run.name() == name => return Ok(Some(run)),
            Err(damaged) if damaged.name == name => return Err(damaged.error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(None)
}

/// Of the runs of a campaign those of this file; where none knows a file, they are of whoever asks.
///
/// # Errors
/// When they are all of another file.
fn filter_by_file(runs: Vec<Run>, file: &Path) -> Result<Vec<Run>, Error> {
    let here = absolute_file_path(file);
    let elsewhere = runs.iter().rfind(|run| run.file.is_some());
    let mine = |run: &&Run| run.file.as_ref() == Some(&here);
    match elsewhere.filter(|_| !runs.iter().any(|run| mine(&run))) {
        Some(Run { file: Some(there), .. }) => Err(Error::RunsElsewhere {
            campaign: runs.last().map(|run| run.campaign.clone()).unwrap_or_default(),
            run: runs.last().map(Run::name).unwrap_or_default(),
            there: PathBuf::from(there),
        }),
        _ => Ok(runs.into_iter().filter(|run| run.file.is_none() || mine(&run)).collect()),
    }
}

/// The run that `name` means to somebody who decides: of a campaign's runs the latest with rows that nobody knows.
///
/// # Errors
/// When there is none, or the ledger cannot be read.
pub async fn find_doubtful_run(ledger: &dyn Ledger, name: &str) -> Result<Run, Error> {
    let found = find_run(ledger, name).await?;
    if found.name() == name {
        return Ok(found);
    }
    let runs = ledger.list_runs(RunFilter { live: true, ..RunFilter::for_campaign(&found.campaign) }).await?;
    let of_a_file = is_file(name);
    for run in runs.into_iter().rev().filter(|run| run.file == found.file || !of_a_file) {
        let counts = match &run.counts {
            None if run.shared => Some(RunView::load(ledger, run.clone(), false).await?.counts),
            counts => counts.as_ref().map(|(counts, _)| counts.clone()),
        };
        if counts.is_some_and(|counts| NextStep::for_doubt(&counts).is_some()) {
            return Ok(run);
        }
    }
    Ok(found)
}

/// A run as it stands now.
///
/// # Errors
/// When it is gone, or the ledger cannot be read.
pub(super) async fn reload_run(ledger: &dyn Ledger, key: RunId) -> Result<Run, Error> {
    let run = ledger.list_runs(RunFilter::with_key(key)).await?.pop();
    run.ok_or_else(|| Error::Internal("the run is no longer in the ledger".to_owned()))
}

/// Whether `name` means a file: what can be a campaign's name is one, even where a file is called so, which is then `./NAME`.
fn is_file(name: &str) -> bool {
    !is_slug(name) && Path::new(name).is_file()
}

/// The campaign that a file describes; a name that is no file is a campaign's name already.
fn read_campaign_name(name: &str) -> String {
    if !is_file(name) {
        return name.to_owned();
    }
    let path = Path::new(name);
    // Its name is the same on every day.
    match load_campaign(path, CampaignDay::Coming(Date::ZERO)).value {
        Some(campaign) => campaign.brief.name,
        None => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

/// Tells whether the results of a live run know more than the ledger, as far as a glance shows it.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn report_results_conflict(ledger: &dyn Ledger, run: &Run, observer: &RunObserver) -> Result<(), Error> {
    if !run.live {
        return Ok(());
    }
    let results = match &run.results {
        Some(results) => Some(PathBuf::from(results)),
        None => planned_results_path(ledger, run).await,
    };
    if let Some(results) = results
        && let Some(sign) = find_unknown_results_quickly(ledger, &CampaignPath::anywhere(results)).await?
    {
        observer(RunEvent::Contradicted(sign));
    }
    Ok(())
}

/// Where a run that did not end yet is going to write its results, as its campaign file says now.
pub(super) async fn planned_results_path(ledger: &dyn Ledger, run: &Run) -> Option<PathBuf> {
    let today = FrozenInputs::load_for_run(ledger, run).await.ok()?.day();
    let campaign = load_campaign(&find_campaign_file(ledger, run).await?, today).value?;
    let campaign = match find_occurrence(ledger, run.key).await {
        Ok(Some(_)) => campaign.with_results_for_edition(&run.edition),
        _ => campaign,
    };
    let results = campaign.with_gateway(&run.gateway).results_file();
    Some(std::path::absolute(results.path()).unwrap_or_else(|_| results.path().to_owned()))
}

/// The name of a run that began after this one and wrote its results to the same file.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn find_later_run(ledger: &dyn Ledger, run: &Run, results: &str) -> Result<Option<String>, LedgerError> {
    let there = RunFilter { results: Some(results.to_owned()), latest: Some(1), ..RunFilter::all() };
    let latest = ledger.list_runs(there).await?.pop();
    Ok(latest.filter(|latest| latest.key.0 > run.key.0).map(|latest| latest.name()))
}
