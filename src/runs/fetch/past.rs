//! A list of the people of an earlier run.

use std::time::Duration;

use super::spool::Spool;
use super::{Failed, Fetching, spool};
use crate::ledger::{Progress, Run};
use crate::manifest::{PastPeople, Recipients};
use crate::report::{is_owned, plural, write_past_people};
use crate::runs::exclude::runs_meant;
use crate::runs::{Adapters, Error, Event, Inputs, Polling, find, poll, reconcile};

/// How long is asked about messages that have no end yet, before their people are chosen.
const LONGEST: Duration = Duration::from_secs(60);

/// The people of an earlier run. Where it is not through, they are not known yet.
pub(super) async fn fetch(
    past: &PastPeople,
    with: Fetching<'_>,
    inputs: &Inputs,
) -> Result<Result<Spool, Failed>, Error> {
    let none = || Error::NoSuchRun { name: past.run.clone(), near: None };
    let ledger = with.ledger.ok_or_else(none)?;
    let run = match find(ledger, &past.run).await {
        Ok(run) => run,
        Err(Error::NoSuchRun { near, .. }) => {
            let failed = Failed::new(format!("there is no run `{}` in this ledger", past.run));
            return Ok(Err(Failed { help: near.map(|near| format!("did you mean `{near}`?")), ..failed }));
        }
        Err(error) => return Err(error),
    };
    if run.progress == Progress::Open {
        let going = if is_owned(ledger, &run).await? { "is being sent" } else { "is unfinished" };
        let failed = Failed::new(format!("{} {going}, so the status of its recipients is not final", run.name()));
        return Ok(Err(failed.help("wait until the run ends, or cancel it with `stop --for-good`")));
    }
    let mut spool = spool(with)?;
    let written = write_past_people(ledger, &run, &past.states, &mut spool).await?;
    if written.undecided > 0 && inputs.destination.is_live() {
        (with.observer)(Event::NotFinal { run: run.name(), messages: plural(written.undecided, "message") });
    }
    Ok(Ok(spool))
}

/// Asks the gateway of an earlier run whose people are meant about its messages that have no end yet, as far as that can be
/// known; what cannot is told with the list.
pub(in crate::runs) async fn reconcile_past(adapters: &Adapters, inputs: &Inputs) -> Result<(), Error> {
    let ledger = adapters.ledger.as_ref();
    let mut runs = Vec::new();
    // Whatever is wrong with a name is told by who looks for its people.
    if let Recipients::Run(past) = &inputs.campaign.recipients {
        runs.extend(find(ledger, &past.run).await.ok());
    }
    if let Some(past) = &inputs.campaign.brief.exclude {
        runs.extend(runs_meant(ledger, past, inputs).await?.unwrap_or_default());
    }
    for run in runs {
        if run.live && run.progress != Progress::Open && inputs.destination.is_live() {
            ask(adapters, run).await;
        }
    }
    Ok(())
}

/// Asks; a gateway that does not answer is no reason not to go on with what is known.
async fn ask(adapters: &Adapters, run: Run) {
    let name = run.name();
    if let Err(error) = poll(adapters, &run, Polling::Open, LONGEST).await {
        tracing::warn!(run = name, "messages without a final status were not reconciled: {error}");
    }
    if let Err(error) = reconcile(adapters, run).await {
        tracing::warn!(run = name, "messages in doubt were not reconciled: {error}");
    }
}
