//! `campaign purge`: removes the recipients of old runs from the ledger and the copies.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::args::PurgeArgs;
use super::context::Context;
use super::exit;
use super::failure::CommandFailure;
use super::question::{ConfirmationPrompt, ExpectedAnswer, require_confirmation};
use crate::ledger::Run;
use crate::report::{RunView, format_count};
use crate::runs::{self, OldRuns, PurgeBlocker};

/// What this program cannot remove.
const NOT_REMOVED: &str = "your results files, the lists that recipients came from, backups of the state folder, and data \
                       stored by the gateway";

pub(super) async fn purge_runs(context: &Context, args: &PurgeArgs) -> Result<u8, CommandFailure> {
    let before = Timestamp::now().checked_sub(args.older_than);
    let before = before.map_err(|_| CommandFailure::invalid("`--older-than` is too long"))?;
    let Some(ledger) = context.open_existing_ledger().await? else {
        return report_purge(context, before, &OldRuns::default());
    };
    let mut old = OldRuns::load(ledger.as_ref(), before).await?;
    if !old.purgeable.is_empty() && !args.yes {
        confirm_purge(context, before, &old).await?;
    }
    let ordered: Vec<Run> = old.purgeable.iter().map(|view| view.run.clone()).collect();
    let kept = runs::purge_runs(&context.adapters(ledger)?, ordered).await?;
    old.purgeable.retain(|view| !kept.iter().any(|(run, _)| *run == view.run.name()));
    old.kept.extend(kept);
    report_purge(context, before, &old)
}

/// Shows what is removed, and asks for a confirmation.
async fn confirm_purge(context: &Context, before: Timestamp, old: &OldRuns) -> Result<(), CommandFailure> {
    let runs = format_count(old.purgeable.len() as u64, "run");
    let title = format!("Purge {runs} from before {}?", format_day(before));
    let mut question = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, format!("purge {runs}"));
    for (index, view) in old.purgeable.iter().enumerate() {
        question.add_fact(if index == 0 { "runs" } else { "" }, [run_line(view).into()]);
    }
    let question = question
        .with_note("The recipients are permanently removed from the ledger and the list copies. The counts are kept.");
    require_confirmation(&context.output, question, &format!("purging {runs}"), "Nothing was purged.").await
}

fn report_purge(context: &Context, before: Timestamp, old: &OldRuns) -> Result<u8, CommandFailure> {
    let is_kept = |why| old.kept.iter().any(|(_, kept)| *kept == why);
    let code = match () {
        () if is_kept(PurgeBlocker::Forgetting) || is_kept(PurgeBlocker::Unreadable) => exit::STORAGE,
        () if is_kept(PurgeBlocker::InDoubt) => exit::IN_DOUBT,
        () if is_kept(PurgeBlocker::InUse) => exit::BUSY,
        () => exit::SUCCESS,
    };
    match context.output.json {
        true => context.output.print_object(&purge_json(before, old, code)),
        false => context.output.print_done(describe_purge(context, before, old), code),
    }
    Ok(code)
}

fn purge_json(before: Timestamp, old: &OldRuns, code: u8) -> Value {
    let purged =
        |RunView { run, .. }: &RunView| json!({ "run": run.name(), "rows": run.recipients, "results": run.results });
    let kept = |(run, why): &(String, PurgeBlocker)| json!({ "run": run, "why": kept_reason_word(*why) });
    json!({
        "before": before.to_string(), "purged": old.purgeable.iter().map(purged).collect::<Vec<_>>(),
        "kept": old.kept.iter().map(kept).collect::<Vec<_>>(), "remains": NOT_REMOVED, "exit": code,
    })
}

fn describe_purge(context: &Context, before: Timestamp, old: &OldRuns) -> String {
    let mut text = match old.purgeable.len() {
        0 => format!("there are no runs from before {} to purge\n", format_day(before)),
        _ => {
            format!(
                "purged {} from before {}\n{}",
                format_count(old.purgeable.len() as u64, "run"),
                format_day(before),
                run_lines(&old.purgeable)
            )
        }
    };
    if !old.purgeable.is_empty() {
        text += "  Counts and identifiers are kept. A keyed hash of each number is kept too, so that later runs \
                 still skip \
                 these recipients.\n";
        text += &format!("  Not removed: {NOT_REMOVED}.\n");
        for results in old.purgeable.iter().filter_map(|view| view.run.results.as_ref()) {
            text += &format!("  results: {results}\n");
        }
    }
    for (run, why) in &old.kept {
        text += &format!("not purged: {run}, {}\n", explain_kept(context, run, *why));
    }
    text + &format!("next: {}\n", context.output.command("status --all"))
}

/// Runs, a line each.
fn run_lines(views: &[RunView]) -> String {
    views.iter().map(|view| format!("  {}\n", run_line(view))).collect()
}

fn run_line(RunView { run, .. }: &RunView) -> String {
    let ended = run.ended_at.unwrap_or(run.began_at);
    let rehearsal = if run.live { "" } else { " · rehearsal" };
    format!("{} · {}{rehearsal} · {}", run.name(), format_day(ended), format_count(run.recipients, "row"))
}

fn kept_reason_word(why: PurgeBlocker) -> &'static str {
    match why {
        PurgeBlocker::Unfinished => "unfinished",
        PurgeBlocker::InDoubt => "in_doubt",
        PurgeBlocker::InUse => "in_use",
        PurgeBlocker::Forgetting => "forgetting",
        PurgeBlocker::Unreadable => "unreadable",
    }
}

fn explain_kept(context: &Context, run: &str, why: PurgeBlocker) -> String {
    let first = |what: String| format!("first: {}", context.output.command(what));
    match why {
        PurgeBlocker::Unfinished => format!("which is unfinished; {}", first(format!("stop {run} --for-good"))),
        PurgeBlocker::InDoubt => {
            format!("which has rows in doubt; {}", first(format!("resolve {run} --all --as DECISION")))
        }
        PurgeBlocker::InUse => {
            "which another process is using; run this command again when that process has finished".to_owned()
        }
        PurgeBlocker::Forgetting => {
            "whose copies or results still contain a forgotten recipient; `find` shows why".to_owned()
        }
        PurgeBlocker::Unreadable => format!(
            "whose list cannot be read; after a purge, later runs would send to its cancelled recipients; {}",
            first("ledger check".to_owned())
        ),
    }
}

/// A day in this computer's time zone.
fn format_day(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).date().to_string()
}
