//! `campaign ledger backup` and `campaign ledger restore`.

use std::path::Path;

use serde_json::json;

use super::clock::minute;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::text::{Line, Text, caution, copied, plain};
use crate::finding::{one_line, quoted};
use crate::ledger::CopiedLedger;
use crate::report::plural;
use crate::runs::{RestoredLedger, restore as put_back};

pub(super) async fn back_up(context: &Context, folder: &Path) -> Result<u8, Failure> {
    let (copied, shown) = (context.back_up(folder).await?, folder.display().to_string());
    // Without the options of this call: a backup is looked at as the ledger in a state folder.
    let rest = format!(
        "Keep the backup private: it contains phone numbers and messages. Messages sent from now on are not in it.\n\
         next: campaign ledger check --state-dir {}\n",
        quoted(&shown)
    );
    tell(context, &shown, copied, ("backup of the ledger", &rest))
}

/// Reports where the copy of the ledger is, what it contains, and what to do next.
pub(super) fn tell(
    context: &Context,
    to: &str,
    CopiedLedger { runs, rows, without_copies }: CopiedLedger,
    (how, rest): (&str, &str),
) -> Result<u8, Failure> {
    if context.output.json {
        context.output.object(&json!({
            "from": context.place()?, "to": to, "runs": runs, "rows": rows, "without_copies": without_copies,
            "exit": exit::FINE,
        }));
        return Ok(exit::FINE);
    }
    let held = format!("{} with {}", plural(runs, "run"), plural(rows, "row"));
    let mut text = Text::from(Line::success([plain(format!("{how}: ")), copied(to)]));
    text.line(2, [plain(format!("{held}, the suppression list, receipts, plans and schedules"))]);
    if without_copies > 0 {
        let runs = plural(without_copies, "run");
        text.line(
            2,
            [caution(format!(
                "{runs} cannot be resumed, because the copies of the campaign files and lists are missing"
            ))],
        );
    }
    text.extend(Text::from(rest));
    context.output.done(text, exit::FINE);
    Ok(exit::FINE)
}

pub(super) async fn restore(context: &Context, folder: &Path) -> Result<u8, Failure> {
    let ledger = context.restore(folder).await?;
    let told = put_back(&context.adapters(ledger)?).await?;
    let doubtful: u64 = told.doubtful.iter().map(|(_, rows)| rows).sum();
    let code = if doubtful > 0 { exit::DOUBT } else { exit::FINE };
    match context.output.json {
        true => context.output.object(&json!({
            "from": folder.display().to_string(), "to": context.place()?, "made_at": told.made_at.to_string(),
            "runs": told.runs, "rows": told.rows, "in_doubt": told.doubtful.iter().map(|(run, rows)| {
                json!({ "run": run, "rows": rows })
            }).collect::<Vec<_>>(),
            "ended": told.ended.iter().map(|(run, why)| json!({ "run": run, "why": why })).collect::<Vec<_>>(),
            "paused": told.paused, "forgotten": told.forgotten, "not_forgotten": told.not_forgotten, "exit": code,
        })),
        false => context.output.done(&text(context, &told)?, code),
    }
    Ok(code)
}

fn text(context: &Context, told: &RestoredLedger) -> Result<String, Failure> {
    let command = |arguments: String| context.output.command(arguments);
    let held = format!("{} with {}", plural(told.runs, "run"), plural(told.rows, "row"));
    let made_at = minute(told.made_at);
    let mut text = format!("restored the backup from {made_at} in `{}`: {held}\n", context.place()?);
    for (run, rows) in &told.doubtful {
        let told = plural(*rows, "row");
        text += &format!(
            "  {run} was unfinished when the backup was made: {told} might have been sent since, so they are in doubt and \
             are not sent automatically. Ask the gateway: {}\n",
            command(format!("reconcile {run}"))
        );
    }
    for (run, why) in &told.ended {
        text += &format!("  {run} was unfinished when the backup was made and cannot be resumed: {}\n", one_line(why));
    }
    for schedule in &told.paused {
        let resume = command(format!("schedule resume {schedule}"));
        text += &format!("  schedule {schedule} is paused. To resume it: {resume}\n");
    }
    if told.forgotten > 0 {
        text += &format!(
            "  erased again: {}, already erased with `campaign forget` after the backup was made\n",
            plural(told.forgotten, "recipient")
        );
    }
    if told.not_forgotten > 0 {
        text += &format!(
            "  {} could not be forgotten again, because rows are in doubt or cannot be read. Resolve these rows, then run \
             `campaign forget` again\n",
            plural(told.not_forgotten, "recipient")
        );
    }
    text += "Opt-outs since the backup are missing from the suppression list. Add them before you send.\n";
    text += "Campaigns that have not run since the restore need `--i-accept-duplicates` for their next run.\n";
    text += &format!("next: {}\n", command("status".to_owned()));
    Ok(text)
}
