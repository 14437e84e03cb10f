//! Who is left out because of what became of an earlier message: `recipients.exclude`.

use roaring::RoaringTreemap;

use super::{Error, Inputs, RunEvent, RunObserver};
use crate::finding::{Finding, did_you_mean, rules};
use crate::ledger::{Ledger, Run, RunFilter, RunProgress};
use crate::manifest::PastRecipients;
use crate::report::{format_count, load_run_numbers};

/// The numbers of the people under `recipients.exclude`; none where nobody is.
///
/// # Errors
/// When a run that is named is not there or not through, or the ledger cannot be read: nothing is sent then.
pub(super) async fn find_excluded(
    ledger: Option<&dyn Ledger>,
    inputs: &Inputs,
    observer: &RunObserver,
) -> Result<RoaringTreemap, Error> {
    let mut numbers = RoaringTreemap::new();
    let Some(past) = &inputs.campaign.brief.exclude else { return Ok(numbers) };
    let refused =
        |finding: Finding| Error::Findings(vec![finding.at(inputs.campaign.places.locate_key("recipients.exclude"))]);
    let Some(ledger) = ledger else { return Err(refused(unknown_run_finding(past, None))) };
    let runs = find_excluding_runs(ledger, past, inputs).await?.map_err(refused)?;
    for run in &runs {
        if run.progress == RunProgress::Open {
            let message = format!("{} is unfinished, so the recipients to exclude are not known yet", run.name());
            let finding = Finding::new(&rules::EXCLUDE, message);
            return Err(refused(finding.help("wait until the run ends, or cancel it with `stop --for-good`")));
        }
        let (of_run, undecided) = load_run_numbers(ledger, run, &past.states).await?;
        if undecided > 0 && inputs.destination.is_live() {
            observer(RunEvent::NotFinal { run: run.name(), messages: format_count(undecided, "message") });
        }
        numbers |= of_run;
    }
    Ok(numbers)
}

/// The runs that are meant: the one of that name, or all of the latest edition of a campaign. A campaign that sends goes by
/// what was sent the same way as it sends itself: people of a rehearsal, or of a gateway on this machine, got nothing.
pub(super) async fn find_excluding_runs(
    ledger: &dyn Ledger,
    past: &PastRecipients,
    inputs: &Inputs,
) -> Result<Result<Vec<Run>, Finding>, Error> {
    let (campaign, one) = match past.run.rsplit_once('@') {
        Some((campaign, _)) => (campaign, true),
        None => (past.run.as_str(), false),
    };
    let of_campaign = ledger.list_runs(RunFilter::for_campaign(campaign)).await?;
    let named: Vec<Run> =
        of_campaign.into_iter().filter(|run| !run.shared && (!one || run.name() == past.run)).collect();
    let (live, loopback) = (inputs.destination.is_live(), inputs.destination.is_loopback());
    let counts = |run: &&Run| if live { run.live && run.suppression.loopback == loopback } else { run.live };
    let found: Vec<Run> = match named.iter().any(|run| counts(&run)) || live {
        true => named.iter().filter(counts).cloned().collect(),
        false => named.clone(),
    };
    let Some(edition) = found.last().map(|run| run.edition.clone()) else {
        let names: Vec<String> = ledger.list_runs(RunFilter::all()).await?.iter().map(Run::name).collect();
        return Ok(Err(match named.last() {
            Some(run) => {
                let message = format!(
                    "{} sent no real messages: the run was a rehearsal or used a gateway on this machine",
                    run.name()
                );
                Finding::new(&rules::EXCLUDE, message).help(
                    "name a run that sent messages; without `exclude`, all recipients of the list get this message",
                )
            }
            None => unknown_run_finding(past, did_you_mean(&past.run, names.iter().map(String::as_str))),
        }));
    };
    Ok(Ok(found.into_iter().filter(|run| run.edition == edition).collect()))
}

fn unknown_run_finding(past: &PastRecipients, near: Option<&str>) -> Finding {
    let finding = Finding::new(&rules::EXCLUDE, format!("there is no run `{}` in this ledger", past.run));
    match near {
        Some(near) => finding.help(format!("did you mean `{near}`?")),
        None => finding.help("run `campaign status` to list the runs"),
    }
}
