//! Finding the run that a user names, and reading where it stands.

use std::path::{Path, PathBuf};

use super::context::Context;
use super::exit::{self, Failure};
use super::output::Output;
use crate::delivery::{FrozenInputs, RunFolder, Snapshot};
use crate::ledger::{Ledger, Owner, Progress, Run, RunId, State, StateCounts};
use crate::manifest::{Profile, load_campaign};
use crate::report::{self, NextStep, OpenDoubt, open_doubts, plural};

/// The run that `name` means: `autumn-sale@3`, or a campaign's name or file (its latest live run, else its latest).
pub(super) async fn find(context: &Context, ledger: Option<&dyn Ledger>, name: &str) -> Result<Run, Failure> {
    let runs = match ledger {
        Some(ledger) => ledger.runs().await?,
        None => Vec::new(),
    };
    if let Some(run) = runs.iter().find(|run| run.name() == name) {
        return Ok(run.clone());
    }
    let campaign = campaign_name(name);
    let of_campaign = || runs.iter().filter(|run| run.campaign == campaign);
    let latest = of_campaign().rfind(|run| run.live).or_else(|| of_campaign().next_back());
    latest.cloned().ok_or_else(|| {
        let names: Vec<String> = runs.iter().map(Run::name).collect();
        let near = crate::finding::did_you_mean(name, names.iter().map(String::as_str));
        let hint = near.map_or_else(
            || format!("see `{}` for the runs of this state folder", context.output.command("status")),
            |near| format!("did you mean `{near}`?"),
        );
        Failure::wrong(format!("there is no run `{name}`; {hint}"))
    })
}

/// The run that `name` means to somebody who decides: of a campaign's runs the latest with rows that nobody knows.
pub(super) async fn find_doubtful(context: &Context, ledger: Option<&dyn Ledger>, name: &str) -> Result<Run, Failure> {
    let found = find(context, ledger, name).await?;
    let (true, Some(ledger)) = (found.name() != name, ledger) else { return Ok(found) };
    let runs = ledger.runs().await?;
    let doubtful = |run: &&Run| {
        let counts = run.counts.as_ref().map(|(counts, _)| counts);
        run.campaign == found.campaign && run.live && counts.is_some_and(|counts| NextStep::of_doubt(counts).is_some())
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

/// Says whether the results of a live run know more than the ledger.
pub(super) async fn judge(context: &Context, ledger: &dyn Ledger, run: &Run) -> Result<(), Failure> {
    if !run.live {
        return Ok(());
    }
    match run.results.as_ref().map(PathBuf::from).or_else(|| planned_results(context, run)) {
        Some(results) => context.judge_results(Some(ledger), &results).await,
        None => Ok(()),
    }
}

/// Where a run that did not end yet is going to write its results, as its campaign file says now.
fn planned_results(context: &Context, run: &Run) -> Option<PathBuf> {
    let frozen = RunFolder::of(&context.state().ok()?, &run.name()).frozen().ok()?;
    let campaign = load_campaign(&frozen.campaign_file).value?;
    Some(campaign.sent_through(&run.gateway).results_file())
}

/// Whether a process is sending this run now.
pub(super) fn is_owned(context: &Context, run: &Run) -> Result<bool, Failure> {
    Ok(report::is_owned(&context.state()?, run))
}

/// The runs besides this one that have rows whose outcome nobody knows: how many, and the command about them.
pub(super) fn doubts_elsewhere(context: &Context, runs: &[Run], than: Option<RunId>) -> Vec<(String, String)> {
    let told = open_doubts(runs, than).into_iter().map(|OpenDoubt { run, rows, step }| {
        let command = context.output.about_run(&run, &step);
        (format!("nobody knows what became of {} of {run}: {command}", plural(rows, "row")), command)
    });
    told.collect()
}

/// The name of a run that began after this one and wrote its results to the same file.
pub(super) fn later_at(runs: &[Run], run: &Run, results: &str) -> Option<String> {
    let later = runs.iter().rfind(|other| other.key.0 > run.key.0 && other.results.as_deref() == Some(results));
    later.map(Run::name)
}

/// Takes a run; gives the new owner, and how many requests of the owner before it are in doubt from now on.
///
/// The caller has the run's lock.
pub(super) async fn claim(ledger: &dyn Ledger, run: RunId) -> Result<(Owner, usize), Failure> {
    let owner = Owner(rand::random());
    let doubtful = ledger.claim(run, owner).await?;
    Ok((owner, doubtful))
}

/// What a run froze.
pub(super) fn frozen(folder: &RunFolder) -> Result<FrozenInputs, Failure> {
    folder.frozen().map_err(|error| {
        Failure::storage(format!("the frozen copies in `{}` cannot be read: {error}", folder.path().display()))
    })
}

/// Where a run stands now.
pub(super) async fn snapshot(ledger: &dyn Ledger, run: &Run, owned: bool) -> Result<Snapshot, Failure> {
    Ok(Snapshot::read(ledger, run, owned).await?)
}

/// The code that `run` would exit with for this run as it stands.
pub(super) fn code(run: &Run, counts: &StateCounts, owned: bool) -> u8 {
    match (owned, run.progress) {
        (true, _) => exit::NOTHING,
        // One that was given up exits as it did then: nothing goes on with it.
        (false, Progress::Finished) if run.stopped.is_some() => exit::last(run).unwrap_or(exit::STOPPED),
        (false, Progress::Open) if counts.get(State::Planned) > 0 => match exit::last(run) {
            Some(code) if code != exit::FINE => code,
            _ => exit::STOPPED,
        },
        (false, _) => {
            let mut counts = counts.clone();
            // What a replaced run left is nobody's task any more.
            let planned = counts.get(State::Planned);
            counts.shift(State::Planned, State::Skipped, planned);
            exit::code(None, &counts)
        }
    }
}

/// A profile's host is the one it had at its first use, so that no slip sends the key and the list elsewhere.
pub(super) async fn check_host(output: &Output, ledger: &dyn Ledger, profile: &Profile) -> Result<(), Failure> {
    if profile.is_loopback() {
        return Ok(());
    }
    let (name, host) = (&profile.name, profile.hosts());
    let known = ledger.remember_host(name, &host).await?;
    if known == host {
        return Ok(());
    }
    Err(Failure::wrong(format!(
        "the gateway `{name}` was at {known} and is now at {host}; if that is right, say `{}`",
        output.command(format!("gateway trust {name}"))
    )))
}
