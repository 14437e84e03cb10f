//! How the delivery of a live run is followed: by receipts from webhooks, or by asking the gateway.

use crate::cli::output::Output;
use crate::ledger::{Run, State, StateCounts};
use crate::manifest::ReceiptsBy;
use crate::runs::Inputs;

/// How the delivery status of a run's messages becomes known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// The gateway sends receipts to the webhook endpoint of `campaign serve`.
    Webhook,
    /// `campaign serve` or `campaign reconcile` asks the gateway.
    Asked,
}

fn delivery(inputs: &Inputs, run: &Run, counts: &StateCounts) -> Option<Delivery> {
    let is_open = counts.get(State::Accepted) + counts.get(State::Queued) > 0;
    let receipts = inputs.campaign.receipts;
    if !run.live || !is_open || receipts == ReceiptsBy::Off {
        return None;
    }
    let has_hook = inputs.destination.profile().is_some_and(|profile| profile.hook.is_some());
    Some(if has_hook && receipts.takes_webhooks() { Delivery::Webhook } else { Delivery::Asked })
}

/// The note below the counts of a run with messages on their way; nothing if no receipts are wanted.
pub(super) fn note(output: &Output, inputs: &Inputs, run: &Run, counts: &StateCounts) -> Option<String> {
    Some(match delivery(inputs, run, counts)? {
        Delivery::Webhook => {
            let serve = output.command("serve");
            format!("delivery receipts arrive by webhook while `{serve}` is running")
        }
        Delivery::Asked => {
            let ask = output.command(format!("reconcile {} --all", run.name()));
            format!("to ask the gateway for the delivery status of every message: {ask}")
        }
    })
}

/// The command after a finished live run. At a terminal it follows receipts; a program gets a command that ends at once.
pub(super) fn next(output: &Output, inputs: &Inputs, run: &Run, counts: &StateCounts) -> String {
    let name = run.name();
    let is_watched = !output.json && output.columns().is_some();
    match delivery(inputs, run, counts) {
        Some(Delivery::Webhook) if is_watched => output.command(format!("status {name} --watch")),
        _ => output.command(format!("status {name}")),
    }
}
