//! A run for programs. Nobody's number is in it.

use serde_json::{Value, json};

use super::{RunStatus, RunView, counts_json};
use crate::ledger::StopKind;

/// A run in a list of runs.
#[must_use]
pub fn run_entry_json(view: &RunView) -> Value {
    let RunView { run, status, counts, .. } = view;
    json!({
        "run": run.name(),
        "campaign": run.campaign,
        "gateway": run.gateway,
        "rows": run.recipients,
        "counts": counts_json(counts),
        "delivered_or_read": counts.count_delivered(),
        "state": status.as_str(),
        "stopped": stop_reason(view),
        "why": status.reason(),
    })
}

/// A run by itself.
#[must_use]
pub fn run_json(view: &RunView) -> Value {
    let run = &view.run;
    let mut object = run_entry_json(view);
    object["edition"] = run.edition.clone().into();
    object["endpoint"] = run.endpoint.name().into();
    object["parts"] = view.parts.into();
    object["began_at"] = run.began_at.to_string().into();
    object["ended_at"] = run.ended_at.map(|at| at.to_string()).into();
    object["results"] = run.results.clone().into();
    if let Some(at) = run.purged_at {
        object["purged_at"] = at.to_string().into();
    }
    object
}

/// The word for why it stopped; nothing while it is sent, or came to its end.
fn stop_reason(view: &RunView) -> Option<&'static str> {
    view.run.stop.filter(|_| view.status != RunStatus::Sending).map(StopKind::word)
}
