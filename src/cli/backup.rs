//! `campaign ledger backup` and `campaign ledger restore`.

use std::path::Path;

use serde_json::json;

use super::clock::minute;
use super::context::Context;
use super::exit;
use super::failure::CommandFailure;
use super::text::{StyledLine, StyledText, caution, copyable, plain};
use crate::finding::{escape_to_one_line, quote_for_shell};
use crate::ledger::CopiedLedger;
use crate::report::format_count;
use crate::runs::{RestoredLedger, accept_restored_ledger as put_back};

pub(super) async fn back_up_ledger(context: &Context, folder: &Path) -> Result<u8, CommandFailure> {
    let (copied, shown) = (context.back_up_ledger(folder).await?, folder.display().to_string());
    // Without the options of this call: a backup is looked at as the ledger in a state folder.
    let rest = format!(
        "Keep the backup private: it contains phone numbers and messages. Messages sent from now on are not in it.\n\
         next: campaign ledger check --state-dir {}\n",
        quote_for_shell(&shown)
    );
    report_copy(context, &shown, copied, ("backup of the ledger", &rest))
}

/// Reports where the copy of the ledger is, what it contains, and what to do next.
pub(super) fn report_copy(
    context: &Context,
    to: &str,
    CopiedLedger { runs, rows, without_copies }: CopiedLedger,
    (how, rest): (&str, &str),
) -> Result<u8, CommandFailure> {
    if context.output.json {
        context.output.print_object(&json!({
            "from": context.ledger_place()?, "to": to, "runs": runs, "rows": rows, "without_copies": without_copies,
            "exit": exit::SUCCESS,
        }));
        return Ok(exit::SUCCESS);
    }
    let held = format!("{} with {}", format_count(runs, "run"), format_count(rows, "row"));
    let mut text = StyledText::from(StyledLine::success([plain(format!("{how}: ")), copyable(to)]));
    text.add_line(2, [plain(format!("{held}, the suppression list, receipts, plans and schedules"))]);
    if without_copies > 0 {
        let runs = format_count(without_copies, "run");
        text.add_line(
            2,
            [caution(format!(
                "{runs} cannot be resumed, because the copies of the campaign files and lists are missing"
            ))],
        );
    }
    text.extend(StyledText::from(rest));
    context.output.print_done(text, exit::SUCCESS);
    Ok(exit::SUCCESS)
}

pub(super) async fn restore_ledger(context: &Context, folder: &Path) -> Result<u8, CommandFailure> {
    let ledger = context.restore_ledger(folder).await?;
    let told = put_back(&context.adapters(ledger)?).await?;
    let doubtful: u64 = told.doubtful.iter().map(|(_, rows)| rows).sum();
    let code = if doubtful > 0 { exit::IN_DOUBT } else { exit::SUCCESS };
    match context.output.json {
        true => context.output.print_object(&json!({
            "from": folder.display().to_string(), "to": context.ledger_place()?, "made_at": told.made_at.to_string(),
            "runs": told.runs, "rows": told.rows, "in_doubt": told.doubtful.iter().map(|(run, rows)| {
                json!({ "run": run, "rows": rows })
            }).collect::<Vec<_>>(),
            "ended": told.ended.iter().map(|(run, why)| json!({ "run": run, "why": why })).collect::<Vec<_>>(),
            "paused": told.paused, "forgotten": told.forgotten, "not_forgotten": told.not_forgotten, "exit": code,
        })),
        false => context.output.print_done(&describe_restore(context, &told)?, code),
    }
    Ok(code)
}

fn describe_restore(context: &Context, told: &RestoredLedger) -> Result<String, CommandFailure> {
    let command = |arguments: String| context.output.command(arguments);
    let held = format!("{} with {}", format_count(told.runs, "run"), format_count(told.rows, "row"));
    let made_at = minute(told.made_at);
    let mut text = format!("restored the backup from {made_at} in `{}`: {held}\n", context.ledger_place()?);
    for (run, rows) in &told.doubtful {
        let told = format_count(*rows, "row");
        text += &format!(
            "  {run} was unfinished when the backup was made: {told} might have been sent since, so they are in doubt and \
             are not sent automatically. Ask the gateway: {}\n",
            command(format!("reconcile {run}"))
        );
    }
    for (run, why) in &told.ended {
        text += &format!(
            "  {run} was unfinished when the backup was made and cannot be resumed: {}\n",
            escape_to_one_line(why)
        );
    }
    for schedule in &told.paused {
        let resume = command(format!("schedule resume {schedule}"));
        text += &format!("  schedule {schedule} is paused. To resume it: {resume}\n");
    }
    if told.forgotten > 0 {
        text += &format!(
            "  erased again: {}, already erased with `campaign forget` after the backup was made\n",
            format_count(told.forgotten, "recipient")
        );
    }
    if told.not_forgotten > 0 {
        text += &format!(
            "  {} could not be forgotten again, because rows are in doubt or cannot be read. Resolve these rows, then run \
             `campaign forget` again\n",
            format_count(told.not_forgotten, "recipient")
        );
    }
    text += "Opt-outs since the backup are missing from the suppression list. Add them before you send.\n";
    text += "Campaigns that have not run since the restore need `--i-accept-duplicates` for their next run.\n";
    text += &format!("next: {}\n", command("status".to_owned()));
    Ok(text)
}
