//! `campaign forget`: removes the number and the cells of a recipient from the ledger, the copies and the results.

use roaring::RoaringBitmap;
use serde_json::{Value, json};

use super::args::ForgetArgs;
use super::context::Context;
use super::events::describe_stale_results;
use super::exit;
use super::failure::CommandFailure;
use super::question::{ConfirmationPrompt, ExpectedAnswer, require_confirmation};
use super::region::parse_number_of_campaigns;
use crate::domain::Phone;
use crate::finding::escape_to_one_line;
use crate::report::{RecipientRecord, RowSelection, UnreadableRun, format_count};
use crate::runs::{self, ForgottenPerson, ForgottenRows};

/// What this program cannot remove.
const NOT_REMOVED: &str = "the lists that the number came from, files written by `results --out`, `--excel` or `--people`, backups \
                       of the state folder, and data stored by the gateway";

pub(super) async fn forget_recipient(context: &Context, args: &ForgetArgs) -> Result<u8, CommandFailure> {
    let phone = parse_number_of_campaigns(context, &args.phone, (args.region.region.as_deref(), None)).await?;
    let ledger = context.open_ledger().await?;
    if !args.yes {
        confirm_forgetting(
            context,
            phone,
            &RecipientRecord::find(ledger.as_ref(), phone, &RowSelection::default()).await?,
        )
        .await?;
    }
    let told = runs::forget_person(&context.adapters(ledger)?, phone).await?;
    let code = match () {
        () if !told.unread.is_empty() || !told.unwritten.is_empty() => exit::STORAGE,
        () if !told.doubtful.is_empty() => exit::IN_DOUBT,
        () => exit::SUCCESS,
    };
    if context.output.json {
        let object = forgotten_json(context, phone, told, code);
        context.output.print_object(&object);
    } else {
        let text = describe_forgotten(context, phone, told);
        context.output.print_done(&text, code);
    }
    Ok(code)
}

/// Shows what is removed, and asks for a confirmation.
async fn confirm_forgetting(context: &Context, phone: Phone, person: &RecipientRecord) -> Result<(), CommandFailure> {
    let (rows, runs) = (format_count(person.count_rows(), "row"), format_count(person.runs.len() as u64, "run"));
    let question = ConfirmationPrompt::new(format!("Forget +{phone} for good?"), ExpectedAnswer::Yes, "forget it")
        .with_fact("rows", format!("{rows} in {runs}"))
        .with_note(
            "The number and all data in these rows are removed from the ledger, the copies of lists and the results.",
        )
        .with_note("Planned messages to the number are skipped. It no longer receives marketing.");
    require_confirmation(&context.output, question, "forgetting a recipient", "Nothing was forgotten.").await
}

fn forgotten_json(context: &Context, phone: Phone, told: ForgottenPerson, code: u8) -> Value {
    let rows = |rows: &RoaringBitmap| rows.iter().collect::<Vec<u32>>();
    let runs = told.runs.iter();
    let runs = runs.map(
        |ForgottenRows { run, rows: all, skipped }| json!({ "run": run, "rows": rows(all), "skipped": rows(skipped) }),
    );
    let doubt = told.doubtful.iter().map(|(run, doubtful)| json!({ "run": run, "rows": rows(doubtful) }));
    let unread = told.unread.iter().map(|UnreadableRun { run, why }| json!({ "run": run, "why": why }));
    let mut object = json!({
        "phone": phone.to_string(), "forgotten": runs.collect::<Vec<_>>(), "in_doubt": doubt.collect::<Vec<_>>(),
        "unread": unread.collect::<Vec<_>>(), "suppressed": true, "remains": NOT_REMOVED, "exit": code,
    });
    let unwritten: Vec<String> =
        told.unwritten.into_iter().map(|why| describe_stale_results(&context.output, why)).collect();
    object["unwritten"] = unwritten.into();
    if code == exit::STORAGE {
        object["error"] = "some changes could not be written; run the same command again to finish".into();
    }
    object
}

fn describe_forgotten(context: &Context, phone: Phone, told: ForgottenPerson) -> String {
    let all: u64 = told.runs.iter().map(|forgotten| forgotten.rows.len()).sum();
    let (rows, runs) = (format_count(all, "row"), format_count(told.runs.len() as u64, "run"));
    let mut text = format!("+{phone} is forgotten: {rows} in {runs}\n");
    for ForgottenRows { run, rows, skipped } in &told.runs {
        let skipped = if skipped.is_empty() { String::new() } else { format!(", {} skipped", skipped.len()) };
        text += &format!("  {run} · {}{skipped}\n", format_count(rows.len(), "row"));
    }
    text +=
        "  The number no longer receives marketing. A keyed hash remains, so that it is recognized in later lists.\n";
    text += &format!("  Not removed: {NOT_REMOVED}.\n");
    for (run, rows) in &told.doubtful {
        let rows: Vec<String> = rows.iter().map(|row| row.to_string()).collect();
        let decide = context.output.command(format!("resolve {run} --rows {} --as DECISION", rows.join(",")));
        text += &format!(
            "not forgotten: {} in {run}, in doubt because the message might have been sent\n  first: {decide}\n",
            format_count(rows.len() as u64, "row")
        );
    }
    for UnreadableRun { run, why } in &told.unread {
        text += &format!("not forgotten: {run} could not be read or written: {}\n", escape_to_one_line(why));
    }
    for why in told.unwritten {
        text += &format!("not forgotten: {}\n", escape_to_one_line(&describe_stale_results(&context.output, why)));
    }
    text + &format!("next: {}\n", context.output.command(format!("find +{phone}")))
}
