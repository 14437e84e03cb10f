//! `campaign schedule list`, and what is ordered of what is armed.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::words;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::table::Table;
use crate::cli::text::{Line, Span, Text, bad, caution, good, plain, strong};
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
        context.output.result(format!("no active schedules\nnext: {add}\n"));
        return Ok(exit::FINE);
    }
    let changed = views.iter().find(|view| matches!(view.state, ArmedState::Changed(_)));
    let damaged = views.iter().any(|view| matches!(view.state, ArmedState::Damaged(_)));
    let next = match changed {
        _ if damaged => context.output.command("ledger check"),
        Some(changed) => words::arm(changed.file.as_ref(), &context.output.options),
        None => match only_paused(&views) {
            Some(name) => context.output.command(format!("schedule resume {name}")),
            None => context.output.command("serve"),
        },
    };
    let mut text = Text::from(Table::new(["schedule", "state", "next"], views.iter().map(row)));
    views.iter().for_each(|view| text.extend(details(view)));
    text.push(Line::next(next));
    context.output.result(text);
    Ok(exit::FINE)
}

/// The first schedule if all of them are paused.
fn only_paused(views: &[ArmedView]) -> Option<&str> {
    let is_paused = |view: &ArmedView| matches!(view.state, ArmedState::Paused);
    views.first().filter(|_| views.iter().all(is_paused)).map(|view| view.name.as_str())
}

/// The reason why the last occurrence of a schedule was skipped, and the findings about its file.
fn details(view: &ArmedView) -> Text {
    let mut text = Text::new();
    if let Some(SkippedOccurrence { occurrence, record }) = &view.skipped {
        let date = words::date(occurrence);
        let why = format!(" · {date} was skipped: {}", record.why);
        text.push(Line::attention([strong(view.name.as_str()), plain(why)]));
        record.findings.iter().for_each(|finding| add_finding(&mut text, finding));
    }
    if !view.findings.is_empty() {
        text.push(Line::failure([strong(view.name.as_str()), plain(" · the campaign file now has errors:")]));
        view.findings.iter().for_each(|finding| add_finding(&mut text, finding));
    }
    text
}

fn add_finding(text: &mut Text, finding: &BriefFinding) {
    text.line(2, [plain(finding.to_string())]);
    if let Some(help) = &finding.help {
        text.extend(format!("    help: {}", one_line(help)));
    }
}

/// Changes a schedule and reports it.
pub(super) async fn order(context: &Context, name: &str, order: ScheduleOrder) -> Result<u8, Failure> {
    let Some(_) = context.existing_ledger().await? else {
        let unknown = ScheduleRefusal::Unknown { name: name.to_owned(), near: None, any: false };
        return Err(Error::Schedule(unknown).into());
    };
    change_armed(context.ledger().await?.as_ref(), name, order).await?;
    let (state, words) = match order {
        ScheduleOrder::Pause => ("paused", "is paused and sends nothing until it is resumed"),
        ScheduleOrder::Resume { .. } => ("armed", "is active again from its next run; missed runs are not sent"),
        ScheduleOrder::Remove => ("removed", "is no longer active"),
    };
    if context.output.json {
        context.output.object(&json!({ "name": name, "state": state, "exit": exit::FINE }));
    } else {
        let list = context.output.command("schedule list");
        let mut text = Text::from(Line::success([strong(name), plain(format!(" {words}"))]));
        text.push(Line::next(list));
        context.output.done(text, exit::FINE);
    }
    Ok(exit::FINE)
}

pub(super) fn resume() -> ScheduleOrder {
    ScheduleOrder::Resume { since: Timestamp::now() }
}

fn row(view: &ArmedView) -> [Span; 3] {
    let next = match (&view.state, &view.next) {
        (ArmedState::Armed, Some(next)) => words::date(next),
        (ArmedState::Armed, None) => "no longer due".to_owned(),
        (ArmedState::Paused, _) => String::new(),
        (ArmedState::Changed(change), _) => format!("{change}; activate the schedule again"),
        (ArmedState::Damaged(problem), _) => format!("nothing is sent: {}", one_line(problem)),
    };
    let state = match &view.state {
        ArmedState::Armed => good("active"),
        ArmedState::Paused => caution("paused"),
        ArmedState::Changed(_) => bad("changed"),
        ArmedState::Damaged(_) => bad("damaged"),
    };
    [strong(view.name.as_str()), state, plain(next)]
}
