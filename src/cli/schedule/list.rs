//! `campaign schedule list`, and what is ordered of what is armed.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::words;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::CommandFailure;
use crate::cli::table::TerminalTable;
use crate::cli::text::{Span, StyledLine, StyledText, bad, caution, good, plain, strong};
use crate::finding::{BriefFinding, escape_to_one_line};
use crate::runs::{
    Error, ScheduleOrder, ScheduleRefusal, ScheduleStatus, ScheduleView, SkippedOccurrence, apply_schedule_order,
    load_schedule_views,
};

pub(super) async fn list_schedules(context: &Context) -> Result<u8, CommandFailure> {
    let views = match context.open_existing_ledger().await? {
        Some(ledger) => load_schedule_views(&context.adapters(ledger)?).await?,
        None => Vec::new(),
    };
    if context.output.json {
        context.output.print_object(&views.iter().map(ScheduleView::to_json).collect::<Vec<Value>>());
        return Ok(exit::SUCCESS);
    }
    if views.is_empty() {
        let add = context.output.command("schedule add FILE");
        context.output.print_result(format!("no active schedules\nnext: {add}\n"));
        return Ok(exit::SUCCESS);
    }
    let changed = views.iter().find(|view| matches!(view.state, ScheduleStatus::Changed(_)));
    let damaged = views.iter().any(|view| matches!(view.state, ScheduleStatus::Damaged(_)));
    let next = match changed {
        _ if damaged => context.output.command("ledger check"),
        Some(changed) => words::activation_command(changed.file.as_ref(), &context.output.options),
        None => match first_if_all_paused(&views) {
            Some(name) => context.output.command(format!("schedule resume {name}")),
            None => context.output.command("serve"),
        },
    };
    let mut text =
        StyledText::from(TerminalTable::new(["schedule", "state", "next"], views.iter().map(schedule_spans)));
    views.iter().for_each(|view| text.extend(schedule_details(view)));
    text.push(StyledLine::next_step(next));
    context.output.print_result(text);
    Ok(exit::SUCCESS)
}

/// The first schedule if all of them are paused.
fn first_if_all_paused(views: &[ScheduleView]) -> Option<&str> {
    let is_paused = |view: &ScheduleView| matches!(view.state, ScheduleStatus::Paused);
    views.first().filter(|_| views.iter().all(is_paused)).map(|view| view.name.as_str())
}

/// The reason why the last occurrence of a schedule was skipped, and the findings about its file.
fn schedule_details(view: &ScheduleView) -> StyledText {
    let mut text = StyledText::new();
    if let Some(SkippedOccurrence { occurrence, record }) = &view.skipped {
        let date = words::format_occurrence(occurrence);
        let why = format!(" · {date} was skipped: {}", record.why);
        text.push(StyledLine::attention([strong(view.name.as_str()), plain(why)]));
        record.findings.iter().for_each(|finding| add_finding(&mut text, finding));
    }
    if !view.findings.is_empty() {
        text.push(StyledLine::failure([strong(view.name.as_str()), plain(" · the campaign file now has errors:")]));
        view.findings.iter().for_each(|finding| add_finding(&mut text, finding));
    }
    text
}

fn add_finding(text: &mut StyledText, finding: &BriefFinding) {
    text.add_line(2, [plain(finding.to_string())]);
    if let Some(help) = &finding.help {
        text.extend(format!("    help: {}", escape_to_one_line(help)));
    }
}

/// Changes a schedule and reports it.
pub(super) async fn change_schedule(context: &Context, name: &str, order: ScheduleOrder) -> Result<u8, CommandFailure> {
    let Some(_) = context.open_existing_ledger().await? else {
        let unknown = ScheduleRefusal::Unknown { name: name.to_owned(), near: None, any: false };
        return Err(Error::Schedule(unknown).into());
    };
    apply_schedule_order(context.open_ledger().await?.as_ref(), name, order).await?;
    let (state, words) = match order {
        ScheduleOrder::Pause => ("paused", "is paused and sends nothing until it is resumed"),
        ScheduleOrder::Resume { .. } => ("armed", "is active again from its next run; missed runs are not sent"),
        ScheduleOrder::Remove => ("removed", "is no longer active"),
    };
    if context.output.json {
        context.output.print_object(&json!({ "name": name, "state": state, "exit": exit::SUCCESS }));
    } else {
        let list = context.output.command("schedule list");
        let mut text = StyledText::from(StyledLine::success([strong(name), plain(format!(" {words}"))]));
        text.push(StyledLine::next_step(list));
        context.output.print_done(text, exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

pub(super) fn resume_order() -> ScheduleOrder {
    ScheduleOrder::Resume { since: Timestamp::now() }
}

fn schedule_spans(view: &ScheduleView) -> [Span; 3] {
    let next = match (&view.state, &view.next) {
        (ScheduleStatus::Active, Some(next)) => words::format_occurrence(next),
        (ScheduleStatus::Active, None) => "no longer due".to_owned(),
        (ScheduleStatus::Paused, _) => String::new(),
        (ScheduleStatus::Changed(change), _) => format!("{change}; activate the schedule again"),
        (ScheduleStatus::Damaged(problem), _) => format!("nothing is sent: {}", escape_to_one_line(problem)),
    };
    let state = match &view.state {
        ScheduleStatus::Active => good("active"),
        ScheduleStatus::Paused => caution("paused"),
        ScheduleStatus::Changed(_) => bad("changed"),
        ScheduleStatus::Damaged(_) => bad("damaged"),
    };
    [strong(view.name.as_str()), state, plain(next)]
}
