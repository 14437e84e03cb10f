//! `campaign status`: runs, their counts, and what to do next.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::args::StatusArgs;
use super::clock::minute;
use super::context::Context;
use super::exit;
use super::failure::CommandFailure;
use super::listing::run_table;
use super::states;
use super::text::{StyledLine, StyledText, copyable, dim, plain, strong};
use super::watch::watch_run;
use crate::finding::escape_to_one_line;
use crate::ledger::{Approval, DamagedRun, Ledger, RunFilter, RunId, ShardHolder};
use crate::report::{
    ChannelFigures, NextStep, RunList, RunReport, RunStatus, RunView, damaged_runs_json, format_count, run_entry_json,
};
use crate::runs;

pub(super) async fn show_status(context: &Context, args: &StatusArgs) -> Result<u8, CommandFailure> {
    if args.watch {
        return watch_run(context, args.run.as_deref()).await;
    }
    let Some(name) = args.run.as_deref() else { return list_runs(context, args.all).await };
    let (ledger, run) = context.find_run(name).await?;
    runs::report_results_conflict(ledger.as_ref(), &run, &context.observer).await?;
    let standing = RunReport::load(ledger.as_ref(), run).await?;
    let code = standing.exit_code();
    if context.output.json {
        let mut object = standing.to_json();
        object["exit"] = code.into();
        context.output.print_object(&object);
    } else {
        context.output.print_summary(standing.render_text(context, ledger.as_ref()).await);
    }
    Ok(code)
}

impl RunReport {
    /// The current state of a run that might have changed since it was read.
    pub(super) async fn reload(ledger: &dyn Ledger, run: RunId) -> Result<Self, CommandFailure> {
        let run = ledger.list_runs(RunFilter::with_key(run)).await?.pop();
        let run = run.ok_or_else(|| CommandFailure::new(exit::BUG, "the run is no longer in the ledger"))?;
        Ok(Self::load(ledger, run).await?)
    }

    /// The exit code of `run`.
    pub(super) fn exit_code(&self) -> u8 {
        let RunView { run, status, counts, .. } = &self.view;
        exit::code_of_run(run, counts, *status == RunStatus::Sending)
    }

    /// The run for a person.
    pub(super) async fn render_text(&self, context: &Context, ledger: &dyn Ledger) -> StyledText {
        let RunView { run, status, counts, .. } = &self.view;
        let (name, output) = (run.name(), &context.output);
        let mut text = StyledText::new();
        let mut heading = states::run_heading(&name, [run.gateway.as_str(), run.endpoint.name()]);
        heading.extend([dim(" · "), states::run_status_span(status, counts)]);
        text.add_line(0, heading);
        let mut rows = vec![strong(format_count(run.recipients, "row")), plain(": ")];
        rows.extend(states::count_spans(counts, self.count_partial()));
        text.add_line(2, rows);
        let channels = self.channels().map(ChannelFigures::format_lines).unwrap_or_default();
        channels.into_iter().for_each(|line| text.add_line(2, [plain(line)]));
        let ended = run.ended_at.map(|at| format!(" · last ended {}", minute(at))).unwrap_or_default();
        text.add_line(2, [dim(format!("began {}{ended}", minute(run.began_at)))]);
        for ShardHolder { name: by, rows, since } in &self.senders {
            text.add_line(2, [plain(format!("{by}: {}, since {}", format_count(*rows, "row"), minute(*since)))]);
        }
        for Approval { by, at, .. } in &self.approvals {
            text.add_line(2, [plain(format!("approved by {by} on {}", minute(*at)))]);
        }
        if let Some(results) = &run.results {
            text.add_line(2, [plain("results: "), copyable(results.as_str())]);
        }
        if let Some(at) = run.purged_at {
            text.add_line(2, [plain(format!("purged {}: the ledger keeps only the run's counts", minute(at)))]);
        }
        if *status == RunStatus::Sending && !run.shared {
            text.add_line(2, [plain("to stop the run: "), copyable(output.command(format!("stop {name}")))]);
        }
        if let (NextStep::Review(_), Some(again)) = (self.view.next_step(), output.suggest_retry(run, counts)) {
            text.push(StyledLine::from_prose(&again).with_indent(2));
        }
        text.push(StyledLine::next_step(next_command(context, ledger, &self.view).await));
        text
    }
}

/// All runs.
pub(super) async fn list_runs(context: &Context, all: bool) -> Result<u8, CommandFailure> {
    let place = context.ledger_place()?;
    let RunList { views, damaged } = match context.open_existing_ledger().await? {
        Some(ledger) => {
            let list = RunList::load(ledger.as_ref()).await?;
            judge_latest(context, ledger.as_ref(), &list.views).await?;
            list
        }
        None => RunList::default(),
    };
    let check = context.output.command("ledger check");
    for DamagedRun { name, error } in &damaged {
        let (name, damage) = (escape_to_one_line(name), error.describe_damage());
        context.output.print_note(&format!(
            "cannot read the run {name}: {}; check the ledger with `{check}`",
            escape_to_one_line(&damage)
        ));
    }
    let code = if damaged.is_empty() { exit::SUCCESS } else { exit::STORAGE };
    if context.output.json {
        let runs: Vec<Value> = views.iter().map(run_json).collect();
        let mut object = json!({ "runs": runs, "exit": code });
        if !damaged.is_empty() {
            object["damaged"] = damaged_runs_json(&damaged);
            object["error"] = "a ledger record is damaged".into();
        }
        context.output.print_object(&object);
    } else if views.is_empty() && !damaged.is_empty() {
        context.output.print_done(format!("no run in `{place}` can be read\nnext: {check}\n"), code);
    } else if views.is_empty() {
        let next = context.output.command("init NAME");
        context.output.print_result(format!("no runs yet in `{place}`\nnext: {next}\n"));
    } else {
        let all_of_them = context.output.command("status --all");
        let mut text = runs_text(&views, all, &all_of_them);
        // The newest run is first. Live runs come before rehearsals.
        let newest = views.iter().find(|view| view.run.live).or(views.first());
        let next = newest.map(|view| context.output.command(format!("status {}", view.run.name())));
        text.push(StyledLine::next_step(next.unwrap_or(all_of_them)));
        context.output.print_done(text, code);
    }
    Ok(code)
}

/// Warns if results contain messages that are not in the ledger: those of each campaign's latest live run, which the next
/// run replaces.
async fn judge_latest(context: &Context, ledger: &dyn Ledger, views: &[RunView]) -> Result<(), CommandFailure> {
    let mut judged = HashSet::new();
    for RunView { run, .. } in views.iter().filter(|view| view.run.live) {
        if judged.insert(&run.campaign) {
            runs::report_results_conflict(ledger, run, &context.observer).await?;
        }
    }
    Ok(())
}

/// The runs, live runs first and rehearsals below them, each with the newest last.
fn runs_text(views: &[RunView], all: bool, command: &str) -> StyledText {
    let now = Timestamp::now();
    let (mut live, mut rehearsed, mut older) = (Vec::new(), Vec::new(), 0);
    for view in views {
        let RunView { run, status, .. } = view;
        if !all && *status != RunStatus::Sending && is_hidden_by_default(run.live, run.began_at, now) {
            older += 1;
        } else if run.live {
            live.push(view);
        } else {
            rehearsed.push(view);
        }
    }
    live.reverse();
    rehearsed.reverse();
    live.extend(rehearsed);
    let mut text: StyledText = run_table(live).into();
    if older > 0 {
        let older = format_count(older, "older rehearsal");
        text.add_line(0, [dim(format!("{older} not shown; to show all runs: ")), copyable(command)]);
    }
    text
}

/// Whether a run is hidden by default: a rehearsal that began more than a day ago.
fn is_hidden_by_default(live: bool, began_at: Timestamp, now: Timestamp) -> bool {
    !live && began_at < now - SignedDuration::from_hours(24)
}

fn run_json(view: &RunView) -> Value {
    let mut entry = run_entry_json(view);
    entry["exit"] = exit::code_of_run(&view.run, &view.counts, view.status == RunStatus::Sending).into();
    entry
}

/// The command that a person needs next.
async fn next_command(context: &Context, ledger: &dyn Ledger, view: &RunView) -> String {
    let (run, output) = (&view.run, &context.output);
    match view.next_step() {
        _ if run.purged_at.is_some() => output.command("status"),
        NextStep::Resume => output.resume_command(ledger, run).await,
        step => output.suggest_for_run(&run.name(), &step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_rehearsals_are_hidden_and_old_live_runs_listed() {
        let now: Timestamp = "2026-11-22T10:00:00Z".parse().unwrap();
        for (began, live, old) in [
            ("2026-11-22T09:00:00Z", false, false),
            ("2026-11-21T10:00:00Z", false, false),
            ("2026-11-21T09:59:59Z", false, true),
            ("2020-01-01T00:00:00Z", true, false),
        ] {
            assert_eq!(is_hidden_by_default(live, began.parse().unwrap(), now), old, "{began}");
        }
    }
}
