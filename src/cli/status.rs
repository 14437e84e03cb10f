//! `campaign status`: runs, their counts, and what to do next.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::args::StatusArgs;
use super::clock::minute;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::listing::listing;
use super::states;
use super::text::{Line, Text, copied, dim, plain, strong};
use super::watch::watch;
use crate::finding::one_line;
use crate::ledger::{Approval, DamagedRun, Ledger, RunFilter, RunId, ShareHolder};
use crate::report::{
    ChannelFigures, NextStep, RunList, RunStanding, RunStatus, RunView, damaged_runs_json, plural, run_entry_json,
};
use crate::runs;

pub(super) async fn status(context: &Context, args: &StatusArgs) -> Result<u8, Failure> {
    if args.watch {
        return watch(context, args.run.as_deref()).await;
    }
    let Some(name) = args.run.as_deref() else { return list(context, args.all).await };
    let (ledger, run) = context.named_run(name).await?;
    runs::judge_results(ledger.as_ref(), &run, &context.observer).await?;
    let standing = RunStanding::read(ledger.as_ref(), run).await?;
    let code = standing.exit();
    if context.output.json {
        let mut object = standing.json();
        object["exit"] = code.into();
        context.output.object(&object);
    } else {
        context.output.summary(standing.text(context, ledger.as_ref()).await);
    }
    Ok(code)
}

impl RunStanding {
    /// The current state of a run that might have changed since it was read.
    pub(super) async fn read_anew(ledger: &dyn Ledger, run: RunId) -> Result<Self, Failure> {
        let run = ledger.runs(RunFilter::one(run)).await?.pop();
        let run = run.ok_or_else(|| Failure::new(exit::BUG, "the run is no longer in the ledger"))?;
        Ok(Self::read(ledger, run).await?)
    }

    /// The exit code of `run`.
    pub(super) fn exit(&self) -> u8 {
        let RunView { run, status, counts, .. } = &self.view;
        exit::of_run(run, counts, *status == RunStatus::Sending)
    }

    /// The run for a person.
    pub(super) async fn text(&self, context: &Context, ledger: &dyn Ledger) -> Text {
        let RunView { run, status, counts, .. } = &self.view;
        let (name, output) = (run.name(), &context.output);
        let mut text = Text::new();
        let mut heading = states::heading(&name, [run.gateway.as_str(), run.endpoint.name()]);
        heading.extend([dim(" · "), states::status(status, counts)]);
        text.line(0, heading);
        let mut rows = vec![strong(plural(run.recipients, "row")), plain(": ")];
        rows.extend(states::counts(counts, self.in_part()));
        text.line(2, rows);
        let channels = self.channels().map(ChannelFigures::lines).unwrap_or_default();
        channels.into_iter().for_each(|line| text.line(2, [plain(line)]));
        let ended = run.ended_at.map(|at| format!(" · last ended {}", minute(at))).unwrap_or_default();
        text.line(2, [dim(format!("began {}{ended}", minute(run.began_at)))]);
        for ShareHolder { by, rows, since } in &self.senders {
            text.line(2, [plain(format!("{by}: {}, since {}", plural(*rows, "row"), minute(*since)))]);
        }
        for Approval { by, at, .. } in &self.approvals {
            text.line(2, [plain(format!("approved by {by} on {}", minute(*at)))]);
        }
        if let Some(results) = &run.results {
            text.line(2, [plain("results: "), copied(results.as_str())]);
        }
        if let Some(at) = run.purged_at {
            text.line(2, [plain(format!("purged {}: the ledger keeps only the run's counts", minute(at)))]);
        }
        if *status == RunStatus::Sending && !run.shared {
            text.line(2, [plain("to stop the run: "), copied(output.command(format!("stop {name}")))]);
        }
        if let (NextStep::LookAt(_), Some(again)) = (self.view.next_step(), output.about_refused(run, counts)) {
            text.push(Line::prose(&again).indented(2));
        }
        text.push(Line::next(next(context, ledger, &self.view).await));
        text
    }
}

/// All runs.
pub(super) async fn list(context: &Context, all: bool) -> Result<u8, Failure> {
    let place = context.place()?;
    let RunList { views, damaged } = match context.existing_ledger().await? {
        Some(ledger) => {
            let list = RunList::read(ledger.as_ref()).await?;
            judge_latest(context, ledger.as_ref(), &list.views).await?;
            list
        }
        None => RunList::default(),
    };
    let check = context.output.command("ledger check");
    for DamagedRun { name, error } in &damaged {
        let (name, damage) = (one_line(name), error.damage());
        context
            .output
            .note(&format!("cannot read the run {name}: {}; check the ledger with `{check}`", one_line(&damage)));
    }
    let code = if damaged.is_empty() { exit::FINE } else { exit::STORAGE };
    if context.output.json {
        let runs: Vec<Value> = views.iter().map(entry).collect();
        let mut object = json!({ "runs": runs, "exit": code });
        if !damaged.is_empty() {
            object["damaged"] = damaged_runs_json(&damaged);
            object["error"] = "a ledger record is damaged".into();
        }
        context.output.object(&object);
    } else if views.is_empty() && !damaged.is_empty() {
        context.output.done(format!("no run in `{place}` can be read\nnext: {check}\n"), code);
    } else if views.is_empty() {
        let next = context.output.command("init NAME");
        context.output.result(format!("no runs yet in `{place}`\nnext: {next}\n"));
    } else {
        let all_of_them = context.output.command("status --all");
        let mut text = table(&views, all, &all_of_them);
        // The newest run is first. Live runs come before rehearsals.
        let newest = views.iter().find(|view| view.run.live).or(views.first());
        let next = newest.map(|view| context.output.command(format!("status {}", view.run.name())));
        text.push(Line::next(next.unwrap_or(all_of_them)));
        context.output.done(text, code);
    }
    Ok(code)
}

/// Warns if results contain messages that are not in the ledger: those of each campaign's latest live run, which the next
/// run replaces.
async fn judge_latest(context: &Context, ledger: &dyn Ledger, views: &[RunView]) -> Result<(), Failure> {
    let mut judged = HashSet::new();
    for RunView { run, .. } in views.iter().filter(|view| view.run.live) {
        if judged.insert(&run.campaign) {
            runs::judge_results(ledger, run, &context.observer).await?;
        }
    }
    Ok(())
}

/// The runs, live runs first and rehearsals below them, each with the newest last.
fn table(views: &[RunView], all: bool, command: &str) -> Text {
    let now = Timestamp::now();
    let (mut live, mut rehearsed, mut older) = (Vec::new(), Vec::new(), 0);
    for view in views {
        let RunView { run, status, .. } = view;
        if !all && *status != RunStatus::Sending && is_old(run.live, run.began_at, now) {
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
    let mut text: Text = listing(live).into();
    if older > 0 {
        let older = plural(older, "older rehearsal");
        text.line(0, [dim(format!("{older} not shown; to show all runs: ")), copied(command)]);
    }
    text
}

/// Whether a run is hidden by default: a rehearsal that began more than a day ago.
fn is_old(live: bool, began_at: Timestamp, now: Timestamp) -> bool {
    !live && began_at < now - SignedDuration::from_hours(24)
}

fn entry(view: &RunView) -> Value {
    let mut entry = run_entry_json(view);
    entry["exit"] = exit::of_run(&view.run, &view.counts, view.status == RunStatus::Sending).into();
    entry
}

/// The command that a person needs next.
async fn next(context: &Context, ledger: &dyn Ledger, view: &RunView) -> String {
    let (run, output) = (&view.run, &context.output);
    match view.next_step() {
        _ if run.purged_at.is_some() => output.command("status"),
        NextStep::GoOn => output.go_on(ledger, run).await,
        step => output.about_run(&run.name(), &step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rehearsals_of_the_last_day_are_listed_and_live_runs_of_any_time() {
        let now: Timestamp = "2026-11-22T10:00:00Z".parse().unwrap();
        for (began, live, old) in [
            ("2026-11-22T09:00:00Z", false, false),
            ("2026-11-21T10:00:00Z", false, false),
            ("2026-11-21T09:59:59Z", false, true),
            ("2020-01-01T00:00:00Z", true, false),
        ] {
            assert_eq!(is_old(live, began.parse().unwrap(), now), old, "{began}");
        }
    }
}
