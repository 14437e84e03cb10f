//! A list of the people of an earlier run.

use std::time::Duration;

use super::spool::ListSpool;
use super::{FetchContext, FetchError, create_spool};
use crate::ledger::{Run, RunProgress};
use crate::manifest::{PastRecipients, RecipientSource};
use crate::report::{format_count, is_owned, write_run_recipients};
use crate::runs::exclude::find_excluding_runs;
use crate::runs::{Adapters, Error, Inputs, Polling, RunEvent, find_run, poll_run, reconcile_run};

/// How long is asked about messages that have no end yet, before their people are chosen.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The people of an earlier run. Where it is not through, they are not known yet.
pub(super) async fn fetch_from_run(
    past: &PastRecipients,
    with: FetchContext<'_>,
    inputs: &Inputs,
) -> Result<Result<ListSpool, FetchError>, Error> {
    let none = || Error::NoSuchRun { name: past.run.clone(), near: None };
    let ledger = with.ledger.ok_or_else(none)?;
    let run = match find_run(ledger, &past.run).await {
        Ok(run) => run,
        Err(Error::NoSuchRun { near, .. }) => {
            let failed = FetchError::new(format!("there is no run `{}` in this ledger", past.run));
            return Ok(Err(FetchError { help: near.map(|near| format!("did you mean `{near}`?")), ..failed }));
        }
        Err(error) => return Err(error),
    };
    if run.progress == RunProgress::Open {
        let going = if is_owned(ledger, &run).await? { "is being sent" } else { "is unfinished" };
        let failed = FetchError::new(format!("{} {going}, so the status of its recipients is not final", run.name()));
        return Ok(Err(failed.with_help("wait until the run ends, or cancel it with `stop --for-good`")));
    }
    let mut spool = create_spool(with)?;
    let written = write_run_recipients(ledger, &run, &past.states, &mut spool).await?;
    if written.undecided > 0 && inputs.destination.is_live() {
        (with.observer)(RunEvent::NotFinal { run: run.name(), messages: format_count(written.undecided, "message") });
    }
    Ok(Ok(spool))
}

/// Asks the gateway of an earlier run whose people are meant about its messages that have no end yet, as far as that can be
/// known; what cannot is told with the list.
pub(in crate::runs) async fn reconcile_past(adapters: &Adapters, inputs: &Inputs) -> Result<(), Error> {
    let ledger = adapters.ledger.as_ref();
    let mut runs = Vec::new();
    // Whatever is wrong with a name is told by who looks for its people.
    if let RecipientSource::Run(past) = &inputs.campaign.recipients {
        runs.extend(find_run(ledger, &past.run).await.ok());
    }
    if let Some(past) = &inputs.campaign.brief.exclude {
        runs.extend(find_excluding_runs(ledger, past, inputs).await?.unwrap_or_default());
    }
    for run in runs {
        if run.live && run.progress != RunProgress::Open && inputs.destination.is_live() {
            update_statuses(adapters, run).await;
        }
    }
    Ok(())
}

/// Asks; a gateway that does not answer is no reason not to go on with what is known.
async fn update_statuses(adapters: &Adapters, run: Run) {
    let name = run.name();
    if let Err(error) = poll_run(adapters, &run, Polling::Open, MAX_WAIT).await {
        tracing::warn!(run = name, "messages without a final status were not reconciled: {error}");
    }
    if let Err(error) = reconcile_run(adapters, run).await {
        tracing::warn!(run = name, "messages in doubt were not reconciled: {error}");
    }
}
