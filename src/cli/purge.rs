//! `campaign purge`: the people of old runs leave the ledger and the copies.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::args::PurgeArgs;
use super::consent::typed;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use crate::ledger::Run;
use crate::report::{RunView, plural};
use crate::runs::{self, KeptRun, OldRuns};

/// What no command of this program can reach.
const REMAINS: &str = "results files, which are yours, the lists that people came from, backups of the state folder, and what \
                       the gateway keeps";

pub(super) async fn purge(context: &Context, args: &PurgeArgs) -> Result<u8, Failure> {
    let before = Timestamp::now().checked_sub(args.older_than);
    let before = before.map_err(|_| Failure::wrong("`--older-than` goes back further than time does"))?;
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

/// Asks whoever is at the terminal.
async fn agree(context: &Context, before: Timestamp, old: &OldRuns) -> Result<(), Failure> {
    if !context.output.can_ask() {
        return Err(Failure::wrong("nobody can be asked whether to purge them; if that is right, add `--yes`"));
    }
    let runs = plural(old.over.len() as u64, "run");
    let asked = format!(
        "{runs} of before {}:\n{}  whom they sent to is taken out of the ledger and the copies, for good; their counts stay\n\
         type `yes` to purge them, anything else to leave: ",
        day(before),
        lines(&old.over)
    );
    match typed(asked).await?.trim() {
        "yes" => Ok(()),
        _ => Err(Failure::wrong("not confirmed; nothing was purged")),
    }
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
        false => context.output.done(&text(context, before, old), code),
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
        0 => format!("nothing of before {} is left to purge\n", day(before)),
        _ => {
            format!("purged: {} of before {}\n{}", plural(old.over.len() as u64, "run"), day(before), lines(&old.over))
        }
    };
    if !old.over.is_empty() {
        text += "  their counts and identifiers stay, and a hash of each number with a key, by which nobody gets the same \
                 message again\n";
        text += &format!("  what remains elsewhere: {REMAINS}\n");
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
    let line = |RunView { run, .. }: &RunView| {
        let ended = run.ended_at.unwrap_or(run.began_at);
        let rehearsal = if run.live { "" } else { " · a rehearsal" };
        format!("  {} · {}{rehearsal} · {}\n", run.name(), day(ended), plural(run.recipients, "row"))
    };
    views.iter().map(line).collect()
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
        KeptRun::Unfinished => format!("unfinished; {}", first(format!("stop {run} --for-good"))),
        KeptRun::InDoubt => {
            format!("rows of which are in doubt; {}", first(format!("resolve {run} --all --as DECISION")))
        }
        KeptRun::InUse => "which some process has; say the same once it is through".to_owned(),
        KeptRun::Forgetting => {
            "of which somebody was forgotten whom its copies or results have still; `find` tells why".to_owned()
        }
        KeptRun::Unreadable => format!(
            "whose list cannot be read, so later runs would send to its cancelled recipients; {}",
            first("ledger check".to_owned())
        ),
    }
}

/// A day in the zone of this computer.
fn day(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).date().to_string()
}
