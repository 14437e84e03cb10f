//! `campaign schedule list`, and what is ordered of what is armed.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::words;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::table::table;
use crate::finding::{BriefFinding, one_line};
use crate::runs::{
    ArmedState, ArmedView, Error, ScheduleOrder, ScheduleRefusal, SkippedOccurrence, armed_views, change_armed,
};

pub(super) async fn list(context: &Context) -> Result<u8, Failure> {
    let views = match context.existing_ledger().await? {
        Some(ledger) => armed_views(&context.adapters(ledger)?).await?,
        None => Vec::new(),
    };
    if context.output.json {
        context.output.object(&views.iter().map(ArmedView::json).collect::<Vec<Value>>());
        return Ok(exit::FINE);
    }
    if views.is_empty() {
        let add = context.output.command("schedule add FILE");
        context.output.result(&format!("nothing is armed\nnext: {add}\n"));
        return Ok(exit::FINE);
    }
    let changed = views.iter().find(|view| matches!(view.state, ArmedState::Changed(_)));
    let damaged = views.iter().any(|view| matches!(view.state, ArmedState::Damaged(_)));
    let next = match changed {
        _ if damaged => context.output.command("ledger check"),
        Some(changed) => words::arm(changed.file.as_ref(), &context.output.options),
        None => context.output.command("serve"),
    };
    let shown = table(["schedule", "state", "next"], views.iter().map(row));
    let details: String = views.iter().map(details).collect();
    context.output.result(&format!("{shown}{details}next: {next}\n"));
    Ok(exit::FINE)
}

/// The reason why the last occurrence of a schedule was skipped, and the findings about its file.
fn details(view: &ArmedView) -> String {
    let name = one_line(&view.name);
    let mut text = String::new();
    if let Some(SkippedOccurrence { occurrence, record }) = &view.skipped {
        text += &format!("{name} · {} was skipped: {}\n", words::date(occurrence), one_line(&record.why));
        text += &record.findings.iter().map(finding).collect::<String>();
    }
    if !view.findings.is_empty() {
        text += &format!("{name} · its file has errors now:\n");
        text += &view.findings.iter().map(finding).collect::<String>();
    }
    text
}

fn finding(finding: &BriefFinding) -> String {
    let help = finding.help.as_ref().map(|help| format!("    help: {}\n", one_line(help)));
    format!("  {finding}\n{}", help.unwrap_or_default())
}

/// Does what is ordered of a schedule, and says so.
pub(super) async fn order(context: &Context, name: &str, order: ScheduleOrder) -> Result<u8, Failure> {
    let Some(_) = context.existing_ledger().await? else {
        let unknown = ScheduleRefusal::Unknown { name: name.to_owned(), near: None, any: false };
        return Err(Error::Schedule(unknown).into());
    };
    change_armed(context.ledger().await?.as_ref(), name, order).await?;
    let (state, words) = match order {
        ScheduleOrder::Pause => ("paused", "is paused: nothing of it fires until it is resumed"),
        ScheduleOrder::Resume { .. } => ("armed", "fires again when it is due next; what was due meanwhile is over"),
        ScheduleOrder::Remove => ("removed", "is not armed any more"),
    };
    if context.output.json {
        context.output.object(&json!({ "name": name, "state": state, "exit": exit::FINE }));
    } else {
        let list = context.output.command("schedule list");
        context.output.done(&format!("{name} {words}\nnext: {list}\n"), exit::FINE);
    }
    Ok(exit::FINE)
}

pub(super) fn resume() -> ScheduleOrder {
    ScheduleOrder::Resume { since: Timestamp::now() }
}

fn row(view: &ArmedView) -> [String; 3] {
    let next = match (&view.state, &view.next) {
        (ArmedState::Armed, Some(next)) => words::date(next),
        (ArmedState::Armed, None) => "no longer due".to_owned(),
        (ArmedState::Paused, _) => String::new(),
        (ArmedState::Changed(change), _) => format!("{}: arm it anew", words::changed(*change)),
        (ArmedState::Damaged(problem), _) => format!("nothing is sent: {}", one_line(problem)),
    };
    [one_line(&view.name).to_string(), view.state.word().to_owned(), next]
}
