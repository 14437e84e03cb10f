//! Lookup of runs and campaigns by name or file, and locks on campaigns.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::civil::Date;

use super::inputs::Includes;
use super::{Error, Inputs, RunEvent, RunObserver, find_occurrence};
use campaign_core::finding::did_you_mean;
use campaign_engine::delivery::FrozenInputs;
use campaign_engine::report::{NextStep, RunView, find_unknown_results_quickly};
use campaign_ledger::{CampaignLock, Ledger, LedgerError, Run, RunFilter, RunId};
use campaign_manifest::{CampaignDay, CampaignPath, is_slug, load_campaign};
use campaign_sandbox::load_scenario_within;

/// Finds a run by its name, such as `autumn-sale@3`, or the latest run of a campaign by name or file, preferring live
/// runs.
///
/// A file selects the runs that began from it, and the runs of its campaign without a known file.
///
/// # Errors
/// If no run matches, all runs of the campaign began from another file, or the ledger cannot be read.
pub async fn find_run(ledger: &dyn Ledger, name: &str) -> Result<Run, Error> {
    if let Some((campaign, _)) = name.rsplit_once('@')
        && let Some(run) = find_stored_run(ledger, campaign, name).await?
    {
        return Ok(run);
    }
    if is_file(name) {
        if let Some(latest) = find_latest_of_file(ledger, &read_campaign_name(name), Path::new(name)).await? {
            return Ok(latest);
        }
    } else {
        let filter = RunFilter { latest: Some(1), ..RunFilter::for_campaign(name) };
        for filter in [RunFilter { live: true, ..filter.clone() }, filter] {
            if let Some(run) = ledger.list_runs(filter).await?.pop() {
                return Ok(run);
            }
        }
    }
    let names: Vec<String> = ledger.list_stored_runs(RunFilter::all()).await?.iter().flatten().map(Run::name).collect();
    let near = did_you_mean(name, names.iter().map(String::as_str)).map(ToOwned::to_owned);
    Err(Error::NoSuchRun { name: name.to_owned(), near })
}

/// Finds the latest run of a campaign that began from this file, preferring live runs to rehearsals. `None` if no run
/// exists. The file is not opened.
///
/// # Errors
/// If all runs began from another file, or the ledger cannot be read.
pub async fn find_latest_of_file(ledger: &dyn Ledger, campaign: &str, file: &Path) -> Result<Option<Run>, Error> {
    let runs = filter_by_file(ledger.list_runs(RunFilter::for_campaign(campaign)).await?, file)?;
    Ok(runs.iter().rfind(|run| run.live).or(runs.last()).cloned())
}

/// Finds the run with this name among the runs of a campaign. Damaged records of other runs are ignored.
///
/// # Errors
/// If the record of this run is damaged, or the ledger cannot be read.
pub async fn find_stored_run(ledger: &dyn Ledger, campaign: &str, name: &str) -> Result<Option<Run>, LedgerError> {
    for stored in ledger.list_stored_runs(RunFilter::for_campaign(campaign)).await? {
        match stored {
            Ok(run) if run.name() == name => return Ok(Some(run)),
            Err(damaged) if damaged.name == name => return Err(damaged.error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(None)
}

/// Keeps the runs of a campaign that began from this file. Runs without a known file are included.
///
/// # Errors
/// If the runs have known files, none of which is this file.
fn filter_by_file(runs: Vec<Run>, file: &Path) -> Result<Vec<Run>, Error> {
    let path = absolute_file_path(file);
    let is_from_file = |run: &Run| run.file.as_ref() == Some(&path);
    let last_with_file = runs.iter().rfind(|run| run.file.is_some());
    match last_with_file.filter(|_| !runs.iter().any(is_from_file)) {
        Some(Run { file: Some(other), .. }) => Err(Error::RunsElsewhere {
            campaign: runs.last().map(|run| run.campaign.clone()).unwrap_or_default(),
            run: runs.last().map(Run::name).unwrap_or_default(),
            there: PathBuf::from(other),
        }),
        _ => Ok(runs.into_iter().filter(|run| run.file.is_none() || is_from_file(run)).collect()),
    }
}

/// Finds the run that a decision applies to: the named run, or else the campaign's latest live run with rows in doubt.
/// Without such a run, returns the latest run.
///
/// # Errors
/// If no run matches the name or file, or the ledger cannot be read.
pub async fn find_run_in_doubt(ledger: &dyn Ledger, name: &str) -> Result<Run, Error> {
    let latest = find_run(ledger, name).await?;
    if latest.name() == name {
        return Ok(latest);
    }
    let runs = ledger.list_runs(RunFilter { live: true, ..RunFilter::for_campaign(&latest.campaign) }).await?;
    let is_file_name = is_file(name);
    for run in runs.into_iter().rev().filter(|run| run.file == latest.file || !is_file_name) {
        let counts = match &run.counts {
            None if run.shared => Some(RunView::load(ledger, run.clone(), false).await?.counts),
            counts => counts.as_ref().map(|(counts, _)| counts.clone()),
        };
        if counts.is_some_and(|counts| NextStep::for_doubt(&counts).is_some()) {
            return Ok(run);
        }
    }
    Ok(latest)
}

/// Reloads a run from the ledger.
///
/// # Errors
/// If the run no longer exists, or the ledger cannot be read.
pub(super) async fn reload_run(ledger: &dyn Ledger, key: RunId) -> Result<Run, Error> {
    let run = ledger.list_runs(RunFilter::with_key(key)).await?.pop();
    run.ok_or_else(|| Error::Internal("the run is no longer in the ledger".to_owned()))
}

/// Whether `name` refers to a file. A valid campaign name refers to the campaign, even if a file with this name exists;
/// `./NAME` refers to the file.
fn is_file(name: &str) -> bool {
    !is_slug(name) && Path::new(name).is_file()
}

/// Reads the campaign name from the file if `name` refers to a file, or takes the file stem if the file is unreadable.
/// Any other `name` is already a campaign name.
fn read_campaign_name(name: &str) -> String {
    if !is_file(name) {
        return name.to_owned();
    }
    let path = Path::new(name);
    // The campaign name does not depend on the day, so any day can be used.
    match load_campaign(path, CampaignDay::Coming(Date::ZERO)).value {
        Some(campaign) => campaign.brief.name,
        None => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

/// Reports to the observer if a quick comparison finds results of a live run that are missing from the ledger.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn report_results_conflict(ledger: &dyn Ledger, run: &Run, observer: &RunObserver) -> Result<(), Error> {
    if !run.live {
        return Ok(());
    }
    let results = match &run.results {
        Some(results) => Some(PathBuf::from(results)),
        None => find_planned_results_path(ledger, run).await,
    };
    if let Some(results) = results
        && let Some(sign) = find_unknown_results_quickly(ledger, &CampaignPath::anywhere(results)).await?
    {
        observer(RunEvent::Contradicted(sign));
    }
    Ok(())
}

/// Returns the results path that the current campaign file of an unfinished run specifies. `None` if the campaign
/// cannot be loaded.
pub(super) async fn find_planned_results_path(ledger: &dyn Ledger, run: &Run) -> Option<PathBuf> {
    let today = FrozenInputs::load_for_run(ledger, run).await.ok()?.day();
    let campaign = load_campaign(&find_campaign_file(ledger, run).await?, today).value?;
    let campaign = match find_occurrence(ledger, run.key).await {
        Ok(Some(_)) => campaign.with_results_for_edition(&run.edition),
        _ => campaign,
    };
    let results = campaign.with_gateway(&run.gateway).results_file();
    Some(std::path::absolute(results.path()).unwrap_or_else(|_| results.path().to_owned()))
}

/// Returns the name of the latest run that wrote to this results file, if that run is later than `run`.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn find_later_run(ledger: &dyn Ledger, run: &Run, results: &str) -> Result<Option<String>, LedgerError> {
    let filter = RunFilter { results: Some(results.to_owned()), latest: Some(1), ..RunFilter::all() };
    let latest = ledger.list_runs(filter).await?.pop();
    Ok(latest.filter(|latest| latest.key.0 > run.key.0).map(|latest| latest.name()))
}

/// The path under which runs record a campaign file: absolute and without symbolic links.
pub(super) fn absolute_file_path(file: &Path) -> String {
    let path = file.canonicalize().or_else(|_| std::path::absolute(file)).unwrap_or_else(|_| file.to_owned());
    path.to_string_lossy().into_owned()
}

/// Finds the campaign file of a run: the recorded path, or else the path from which the run began. `None` if the path
/// is unknown.
pub async fn find_campaign_file(ledger: &dyn Ledger, run: &Run) -> Option<PathBuf> {
    match &run.file {
        Some(file) => Some(PathBuf::from(file)),
        None => FrozenInputs::load_for_run(ledger, run).await.ok().map(|frozen| frozen.campaign_file),
    }
}

/// Finds the campaign file of a run, which must be known.
///
/// # Errors
/// If the campaign file is unknown.
pub(super) async fn require_campaign_file(ledger: &dyn Ledger, run: &Run) -> Result<PathBuf, Error> {
    let file = find_campaign_file(ledger, run).await;
    file.ok_or_else(|| Error::Input(format!("the campaign file of {} is unknown", run.name())))
}

/// Whether the campaign file and the folder of these results were moved away together, so the folder must not be
/// recreated.
pub async fn is_folder_gone(ledger: &dyn Ledger, run: &Run, results: &Path) -> bool {
    if results.parent().is_none_or(Path::exists) {
        return false;
    }
    let original_file = FrozenInputs::load_for_run(ledger, run).await.ok().map(|frozen| frozen.campaign_file);
    let files = run.file.as_ref().map(PathBuf::from).into_iter().chain(original_file);
    let is_above_results = |file: &PathBuf| file.parent().is_some_and(|folder| results.starts_with(folder));
    files.filter(is_above_results).any(|file| !file.exists())
}

/// Refuses a campaign if a campaign with the same name, but different messages, was sent from another file.
///
/// Runs of earlier versions have no known file. The first file that later sends the campaign is recorded as the file of
/// these runs.
pub(super) async fn refuse_other_file(
    ledger: &dyn Ledger,
    runs: &[Run],
    inputs: &Inputs,
    includes: &Includes,
) -> Result<(), Error> {
    let path = absolute_file_path(&inputs.campaign.file);
    let runs_with_file = || runs.iter().filter_map(|run| Some((run, run.file.as_ref()?)));
    let is_from_other_files = runs_with_file().all(|(_, file)| *file != path);
    let Some((run, other)) = runs_with_file().next_back().filter(|_| is_from_other_files) else {
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
        there: PathBuf::from(other),
    })
}

/// Takes the lock on a campaign and account.
///
/// # Errors
/// If another process holds the lock, or the state of the lock cannot be determined.
pub async fn lock_campaign(
    ledger: &dyn Ledger,
    campaign: &str,
    gateway: &str,
    account: &str,
) -> Result<CampaignLock, Error> {
    match ledger.acquire_campaign_lock(campaign, account).await? {
        Some(lock) => Ok(lock),
        None => Err(Error::Busy {
            campaign: campaign.to_owned(),
            gateway: gateway.to_owned(),
            since: ledger.find_campaign_lock(campaign, account).await?.and_then(|lock| lock.since),
        }),
    }
}

/// The maximum size of a campaign file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The campaign files in a folder, sorted by name: YAML files with channels, except scenarios of the sandbox. Symbolic
/// links are followed only within the folder.
///
/// # Errors
/// If the folder cannot be read.
pub fn list_campaign_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let scope: Arc<Path> = folder.canonicalize()?.into();
    let entries = std::fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path());
    let is_campaign = |path: &PathBuf| {
        let file = path.file_name().map(|name| CampaignPath::within(&scope, name));
        is_yaml(path)
            && file.is_some_and(|file| {
                file.open_file().is_ok_and(has_channels_key) && load_scenario_within(&file).value.is_none()
            })
    };
    let mut files: Vec<PathBuf> = entries.filter(is_campaign).collect();
    files.sort_unstable();
    Ok(files)
}

/// The maximum number of folders to search for campaigns, and the maximum number of campaigns to return.
const MAX_NEIGHBOURS: usize = 200;

/// Finds the campaign files that can use a text file: files in the same folder or its parent folder, and files in or
/// directly below the folder that contains an enclosing `templates` folder.
pub fn find_campaigns_near_text(text: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = text.ancestors().skip(1).take(2).map(Path::to_owned).collect();
    let templates = text.ancestors().skip(1).take(3).find(|folder| folder.ends_with("templates"));
    if let Some(above) = templates.and_then(Path::parent) {
        // Campaigns in any folder beside `templates` can use its texts.
        let children = std::fs::read_dir(above).into_iter().flatten().flatten().map(|entry| entry.path());
        folders.extend([above.to_owned()].into_iter().chain(children).take(MAX_NEIGHBOURS));
    }
    folders.sort_unstable();
    folders.dedup();
    folders.iter().flat_map(|folder| list_campaign_files(folder).unwrap_or_default()).take(MAX_NEIGHBOURS).collect()
}

fn is_yaml(path: &Path) -> bool {
    matches!(path.extension().and_then(|extension| extension.to_str()), Some("yaml" | "yml"))
}

fn has_channels_key(file: impl Read) -> bool {
    let mut text = String::new();
    let read = file.take(MAX_BYTES).read_to_string(&mut text);
    read.is_ok_and(|read| (read as u64) < MAX_BYTES) && text.lines().any(|line| line.starts_with("channels:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_campaigns_that_can_use_a_text_file_are_found() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a.yaml", "campaigns/b.yaml", "campaigns/deep/c.yaml", "templates/texts/d.yaml"] {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "channels: []\n").unwrap();
        }
        let near = |text: &str| {
            let found = find_campaigns_near_text(&root.path().join(text));
            let names = found.iter().map(|path| path.strip_prefix(root.path()).unwrap().display().to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(near("templates/x.txt"), ["a.yaml", "campaigns/b.yaml"]);
        assert_eq!(near("templates/texts/x.txt"), ["a.yaml", "campaigns/b.yaml", "templates/texts/d.yaml"]);
        assert_eq!(near("campaigns/x.txt"), ["a.yaml", "campaigns/b.yaml"]);
    }

    #[test]
    fn sandbox_scenario_is_not_a_campaign_file() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("sale.yaml"), "channels: []\n").unwrap();
        std::fs::write(root.path().join("slow.yaml"), "channels: { sms: { delivered: 80% } }\n").unwrap();
        assert_eq!(list_campaign_files(root.path()).unwrap(), [root.path().join("sale.yaml")]);
    }

    #[cfg(unix)]
    #[test]
    fn symlink_pointing_outside_the_folder_is_not_listed() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let (inside, text) = (root.path().join("campaigns"), "name: x\nchannels: []\n");
        std::fs::create_dir_all(inside.join("folder.yaml")).unwrap();
        std::fs::create_dir_all(inside.join("below")).unwrap();
        for name in ["b.yaml", "a.yml", "list.csv", "below/deep.yaml", "../outside.yaml"] {
            std::fs::write(inside.join(name), text).unwrap();
        }
        std::fs::write(inside.join("gateways.yaml"), "production: {}\n").unwrap();
        symlink("b.yaml", inside.join("again.yaml")).unwrap();
        symlink("below/deep.yaml", inside.join("deep.yaml")).unwrap();
        symlink("../outside.yaml", inside.join("out.yaml")).unwrap();
        symlink("/dev/zero", inside.join("zero.yaml")).unwrap();
        symlink("nowhere.yaml", inside.join("broken.yaml")).unwrap();
        let found = list_campaign_files(&inside).unwrap();
        let names: Vec<&str> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a.yml", "again.yaml", "b.yaml", "deep.yaml"]);
        assert!(list_campaign_files(&root.path().join("none")).is_err());
    }
}
