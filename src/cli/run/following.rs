//! How the delivery of a live run is followed: by receipts from webhooks, or by asking the gateway.

use crate::cli::output::Output;
use crate::ledger::{RowState, Run, StateCounts};
use crate::manifest::ReceiptMode;
use crate::runs::Inputs;

/// How the delivery status of a run's messages becomes known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusSource {
    /// The gateway sends receipts to the webhook endpoint of `campaign serve`.
    Webhook,
    /// `campaign serve` or `campaign reconcile` asks the gateway.
    Polling,
}

fn status_source(inputs: &Inputs, run: &Run, counts: &StateCounts) -> Option<StatusSource> {
    let is_open = counts.get(RowState::Accepted) + counts.get(RowState::Queued) > 0;
    let receipts = inputs.campaign.receipts;
    if !run.live || !is_open || receipts == ReceiptMode::Off {
        return None;
    }
    let has_hook = inputs.destination.profile().is_some_and(|profile| profile.hook.is_some());
    Some(if has_hook && receipts.takes_webhooks() { StatusSource::Webhook } else { StatusSource::Polling })
}

/// The note below the counts of a run with messages on their way; nothing if no receipts are wanted.
pub(super) fn status_note(output: &Output, inputs: &Inputs, run: &Run, counts: &StateCounts) -> Option<String> {
    Some(match status_source(inputs, run, counts)? {
        StatusSource::Webhook => {
            let serve = output.command("serve");
            format!("delivery receipts arrive by webhook while `{serve}` is running")
        }
        StatusSource::Polling => {
            let ask = output.command(format!("reconcile {} --all", run.name()));
            format!("to ask the gateway for the delivery status of every message: {ask}")
        }
    })
}

/// The command after a finished live run. At a terminal it follows receipts; a program gets a command that ends at once.
pub(super) fn status_command(output: &Output, inputs: &Inputs, run: &Run, counts: &StateCounts) -> String {
    let name = run.name();
    let is_watched = !output.json && output.terminal_width().is_some();
    match status_source(inputs, run, counts) {
        Some(StatusSource::Webhook) if is_watched => output.command(format!("status {name} --watch")),
        _ => output.command(format!("status {name}")),
    }
}
