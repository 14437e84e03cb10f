//! `campaign ledger backup` and `campaign ledger restore`.

use std::path::Path;

use serde_json::json;

use super::context::Context;
use super::exit;
use super::failure::Failure;
use crate::finding::{one_line, quoted};
use crate::ledger::CopiedLedger;
use crate::report::plural;
use crate::runs::{BackupRefusal, RestoredLedger, restore as put_back};

/// A moment as people are told it.
const MINUTE: &str = "%Y-%m-%d %H:%M UTC";

pub(super) async fn back_up(context: &Context, folder: &Path) -> Result<u8, Failure> {
    let (copied, shown) = (context.back_up(folder).await?, folder.display().to_string());
    // Without the options of this call: a backup is looked at as the ledger in a state folder.
    let rest = format!(
        "it has people's numbers and texts; what is sent from now on it does not know\n\
         next: campaign ledger check --state-dir {}\n",
        quoted(&shown)
    );
    tell(context, &shown, copied, ("as it was now", &rest))
}

/// Tells that a place has the ledger, how it has it, and what comes of that.
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
    let mut text =
        format!("`{to}` has the ledger {how}: {held}, the suppression list, receipts, plans and schedules\n");
    if without_copies > 0 {
        text += &format!("{} had no copies any more, and cannot be gone on with\n", plural(without_copies, "run"));
    }
    context.output.done(&(text + rest), exit::FINE);
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
    let made_at = told.made_at.strftime(MINUTE);
    let mut text = format!("`{}` has the ledger as it was on {made_at}: {held}\n", context.place()?);
    for (run, rows) in &told.doubtful {
        let told = plural(*rows, "row");
        text += &format!(
            "  {run} was not finished then: {told} may have been sent since, and nothing of them is sent by itself; to ask \
             the gateway: {}\n",
            command(format!("reconcile {run}"))
        );
    }
    for (run, why) in &told.ended {
        text += &format!("  {run} was not finished then and cannot be gone on with: {}\n", one_line(why));
    }
    for schedule in &told.paused {
        let resume = command(format!("schedule resume {schedule}"));
        text += &format!("  the schedule {schedule} is paused; once it may send again: {resume}\n");
    }
    if told.forgotten > 0 {
        text += &format!("  forgotten again: {}\n", plural(told.forgotten, "number"));
    }
    if told.not_forgotten > 0 {
        text += &format!(
            "  {} that had been forgotten could not be yet, since their rows are in doubt or cannot be read: `campaign \
             forget` again once that is decided\n",
            plural(told.not_forgotten, "number")
        );
    }
    text += "who opted out since then is not on its suppression list: add them before you send\n";
    text += "a campaign that it does not know to have begun since then asks for `--i-accept-duplicates` before its next run\n";
    text += &format!("next: {}\n", command("status".to_owned()));
    Ok(text)
}

/// The code and the words of a refusal to send.
pub(super) fn refused(refusal: BackupRefusal, restore: &str) -> (u8, String) {
    match refusal {
        BackupRefusal::NotPutBack { ledger, made_at } => {
            let made_at = made_at.strftime(MINUTE);
            let words = format!(
                "nothing was sent: `{ledger}` has a backup, made on {made_at}; put it back with `{restore}`, where it is to be used"
            );
            (exit::STORAGE, words)
        }
        BackupRefusal::MaySendTwice { made_at, number, said: None } => {
            let (made_at, people) = (made_at.strftime(MINUTE), plural(number, "recipient"));
            let words = format!(
                "nothing was sent: the ledger was restored from a backup of {made_at}, and does not know what was sent since. \
                 Whoever of these {people} has the message already would get it twice; if you accept that, say \
                 `--i-accept-duplicates {number}`"
            );
            (exit::WRONG, words)
        }
        BackupRefusal::MaySendTwice { number, said: Some(said), .. } => {
            let people = plural(number, "recipient");
            (
                exit::WRONG,
                format!("`--i-accept-duplicates {said}` does not match: it is about {people}; nothing was sent"),
            )
        }
    }
}
