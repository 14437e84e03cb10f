//! `campaign status`: runs, their counts, and what to do next.

use std::collections::HashSet;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::args::StatusArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::listing::listing;
use super::watch::watch;
use crate::finding::one_line;
use crate::ledger::{DamagedRun, Ledger, RunFilter, RunId, ShareHolder};
use crate::report::{
    ChannelFigures, NextStep, RunList, RunStanding, RunStatus, RunView, counts_line, counts_line_in_part,
    damaged_runs_json, plural, run_entry_json, thousands,
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
        context.output.summary(&standing.text(context, ledger.as_ref()).await);
    }
    Ok(code)
}

impl RunStanding {
    /// The same of a run that may have gone on since it was read.
    pub(super) async fn read_anew(ledger: &dyn Ledger, run: RunId) -> Result<Self, Failure> {
        let run = ledger.runs(RunFilter::one(run)).await?.pop();
        let run = run.ok_or_else(|| Failure::new(exit::BUG, "the run is gone from the ledger"))?;
        Ok(Self::read(ledger, run).await?)
    }

    /// What `run` would exit with.
    pub(super) fn exit(&self) -> u8 {
        let RunView { run, status, counts, .. } = &self.view;
        exit::of_run(run, counts, *status == RunStatus::Sending)
    }

    /// The run for a person.
    pub(super) async fn text(&self, context: &Context, ledger: &dyn Ledger) -> String {
        let RunView { run, status, counts, .. } = &self.view;
        let name = run.name();
        let mut text = format!("{name} · {} · {} · {}\n", run.gateway, run.endpoint, one_line(&status.to_string()));
        text += &format!("  {}: {}\n", plural(run.recipients, "row"), counts_line_in_part(counts, self.in_part()));
        let channels = self.channels().map(ChannelFigures::lines).unwrap_or_default();
        text.extend(channels.iter().map(|line| format!("  {line}\n")));
        text += &format!("  began {}", local(run.began_at));
        if let Some(ended) = run.ended_at {
            text += &format!(" · last ended {}", local(ended));
        }
        text.push('\n');
        for ShareHolder { by, rows, since } in &self.senders {
            text += &format!("  {} has {} of it, since {}\n", one_line(by), plural(*rows, "row"), local(*since));
        }
        for approval in &self.approvals {
            text += &format!("  approved by {} on {}\n", one_line(&approval.by), local(approval.at));
        }
        if let Some(results) = &run.results {
            text += &format!("  results: {results}\n");
        }
        if let Some(at) = run.purged_at {
            text += &format!("  purged {}: its counts are what the ledger knows of it\n", local(at));
        }
        if *status == RunStatus::Sending && !run.shared {
            let stop = context.output.command(format!("stop {name}"));
            text += &format!("  it is being sent; to stop it after what is in flight: {stop}\n");
        }
        if let (NextStep::LookAt(_), Some(again)) = (self.view.next_step(), context.output.about_refused(run, counts)) {
            text += &format!("  {again}\n");
        }
        text + &format!("next: {}\n", next(context, ledger, &self.view).await)
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
            object["error"] = "a record of the ledger is damaged".into();
        }
        context.output.object(&object);
    } else if views.is_empty() && !damaged.is_empty() {
        context.output.done(&format!("no run in `{place}` can be read\nnext: {check}\n"), code);
    } else if views.is_empty() {
        let next = context.output.command("init NAME");
        context.output.result(&format!("no runs yet in `{place}`\nnext: {next}\n"));
    } else {
        let command = context.output.command("status --all");
        let text = table(&views, all, (context.output.columns(), &command));
        // The newest is first; of those that went to people, if there are any.
        let newest = views.iter().find(|view| view.run.live).or(views.first());
        let next = newest.map(|view| context.output.command(format!("status {}", view.run.name())));
        context.output.done(&format!("{text}next: {}\n", next.unwrap_or(command)), code);
    }
    Ok(code)
}

/// Tells whether results know more than the ledger: those of each campaign's latest live run, which the next one replaces.
async fn judge_latest(context: &Context, ledger: &dyn Ledger, views: &[RunView]) -> Result<(), Failure> {
    let mut judged = HashSet::new();
    for RunView { run, .. } in views.iter().filter(|view| view.run.live) {
        if judged.insert(&run.campaign) {
            runs::judge_results(ledger, run, &context.observer).await?;
        }
    }
    Ok(())
}

/// The runs, live ones first and rehearsals below them, each with the newest last, where the eye is.
fn table(views: &[RunView], all: bool, (columns, command): (Option<usize>, &str)) -> String {
    let now = Timestamp::now();
    let (mut live, mut rehearsed, mut older) = (Vec::new(), Vec::new(), 0);
    for view in views {
        let RunView { run, status, counts, .. } = view;
        if !all && *status != RunStatus::Sending && is_old(run.live, run.began_at, now) {
            older += 1;
            continue;
        }
        let state = one_line(&status.to_string());
        let (began, rows) = (local(run.began_at), thousands(run.recipients));
        let row = [run.name(), run.gateway.clone(), began, rows, state, counts_line(counts)];
        if run.live { live.push(row) } else { rehearsed.push(row) }
    }
    live.reverse();
    rehearsed.reverse();
    live.extend(rehearsed);
    let mut text = listing(&live, columns);
    if older > 0 {
        text += &format!("and {} of more than a day ago: {command}\n", plural(older, "rehearsal"));
    }
    text
}

/// Whether a run is of interest no more: a rehearsal that began more than a day ago.
fn is_old(live: bool, began_at: Timestamp, now: Timestamp) -> bool {
    !live && began_at < now - SignedDuration::from_hours(24)
}

/// A moment in the zone of this computer.
fn local(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
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
