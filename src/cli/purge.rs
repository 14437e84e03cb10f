//! `campaign purge`: removes the recipients of old runs from the ledger and the copies.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::args::PurgeArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::question::{Answer, Question, confirm};
use crate::ledger::Run;
use crate::report::{RunView, plural};
use crate::runs::{self, KeptRun, OldRuns};

/// What this program cannot remove.
const REMAINS: &str = "your results files, the lists that recipients came from, backups of the state folder, and data \
                       stored by the gateway";

pub(super) async fn purge(context: &Context, args: &PurgeArgs) -> Result<u8, Failure> {
    let before = Timestamp::now().checked_sub(args.older_than);
    let before = before.map_err(|_| Failure::wrong("`--older-than` is too long"))?;
    let Some(ledger) = context.existing_ledger().await? else {
        return tell(context, before, &OldRuns::default());
    };
    let mut old = OldRuns::find(ledger.as_ref(), before).await?;
    if !old.over.is_empty() && !args.yes {
        agree(context, before, &old).await?;
    }
    let ordered: Vec<Run> = old.over.iter().map(|view| view.run.clone()).collect();
    let kept = runs::purge(&context.adapters(ledger)?, ordered).await?;
    old.over.retain(|view| !kept.iter().any(|(run, _)| *run == view.run.name()));
    old.kept.extend(kept);
    tell(context, before, &old)
}

/// Shows what is removed, and asks for a confirmation.
async fn agree(context: &Context, before: Timestamp, old: &OldRuns) -> Result<(), Failure> {
    let runs = plural(old.over.len() as u64, "run");
    let title = format!("Purge {runs} from before {}?", day(before));
    let mut question = Question::new(title, Answer::Yes, format!("purge {runs}"));
    for (index, view) in old.over.iter().enumerate() {
        question.add(if index == 0 { "runs" } else { "" }, [line(view).into()]);
    }
    let question = question
        .note("The recipients are permanently removed from the ledger and the list copies. The counts are kept.");
    confirm(&context.output, question, &format!("purging {runs}"), "Nothing was purged.").await
}

fn tell(context: &Context, before: Timestamp, old: &OldRuns) -> Result<u8, Failure> {
    let is_kept = |why| old.kept.iter().any(|(_, kept)| *kept == why);
    let code = match () {
        () if is_kept(KeptRun::Forgetting) || is_kept(KeptRun::Unreadable) => exit::STORAGE,
        () if is_kept(KeptRun::InDoubt) => exit::DOUBT,
        () if is_kept(KeptRun::InUse) => exit::BUSY,
        () => exit::FINE,
    };
    match context.output.json {
        true => context.output.object(&object(before, old, code)),
        false => context.output.done(text(context, before, old), code),
    }
    Ok(code)
}

fn object(before: Timestamp, old: &OldRuns, code: u8) -> Value {
    let purged =
        |RunView { run, .. }: &RunView| json!({ "run": run.name(), "rows": run.recipients, "results": run.results });
    let kept = |(run, why): &(String, KeptRun)| json!({ "run": run, "why": word(*why) });
    json!({
        "before": before.to_string(), "purged": old.over.iter().map(purged).collect::<Vec<_>>(),
        "kept": old.kept.iter().map(kept).collect::<Vec<_>>(), "remains": REMAINS, "exit": code,
    })
}

fn text(context: &Context, before: Timestamp, old: &OldRuns) -> String {
    let mut text = match old.over.len() {
        0 => format!("there are no runs from before {} to purge\n", day(before)),
        _ => {
            format!("purged {} from before {}\n{}", plural(old.over.len() as u64, "run"), day(before), lines(&old.over))
        }
    };
    if !old.over.is_empty() {
        text += "  Counts and identifiers are kept. A keyed hash of each number is kept too, so that later runs \
                 still skip \
                 these recipients.\n";
        text += &format!("  Not removed: {REMAINS}.\n");
        for results in old.over.iter().filter_map(|view| view.run.results.as_ref()) {
            text += &format!("  results: {results}\n");
        }
    }
    for (run, why) in &old.kept {
        text += &format!("not purged: {run}, {}\n", because(context, run, *why));
    }
    text + &format!("next: {}\n", context.output.command("status --all"))
}

/// Runs, a line each.
fn lines(views: &[RunView]) -> String {
    views.iter().map(|view| format!("  {}\n", line(view))).collect()
}

fn line(RunView { run, .. }: &RunView) -> String {
    let ended = run.ended_at.unwrap_or(run.began_at);
    let rehearsal = if run.live { "" } else { " · rehearsal" };
    format!("{} · {}{rehearsal} · {}", run.name(), day(ended), plural(run.recipients, "row"))
}

fn word(why: KeptRun) -> &'static str {
    match why {
        KeptRun::Unfinished => "unfinished",
        KeptRun::InDoubt => "in_doubt",
        KeptRun::InUse => "in_use",
        KeptRun::Forgetting => "forgetting",
        KeptRun::Unreadable => "unreadable",
    }
}

fn because(context: &Context, run: &str, why: KeptRun) -> String {
    let first = |what: String| format!("first: {}", context.output.command(what));
    match why {
        KeptRun::Unfinished => format!("which is unfinished; {}", first(format!("stop {run} --for-good"))),
        KeptRun::InDoubt => {
            format!("which has rows in doubt; {}", first(format!("resolve {run} --all --as DECISION")))
        }
        KeptRun::InUse => {
            "which another process is using; run this command again when that process has finished".to_owned()
        }
        KeptRun::Forgetting => {
            "whose copies or results still contain a forgotten recipient; `find` shows why".to_owned()
        }
        KeptRun::Unreadable => format!(
            "whose list cannot be read; after a purge, later runs would send to its cancelled recipients; {}",
            first("ledger check".to_owned())
        ),
    }
}

/// A day in this computer's time zone.
fn day(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).date().to_string()
}
