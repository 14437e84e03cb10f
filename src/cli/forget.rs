//! `campaign forget`: removes the number and the cells of a recipient from the ledger, the copies and the results.

use roaring::RoaringBitmap;
use serde_json::{Value, json};

use super::args::ForgetArgs;
use super::context::Context;
use super::events::unwritten;
use super::exit;
use super::failure::Failure;
use super::question::{Answer, Question, confirm};
use super::region::number_of_campaigns;
use crate::domain::Phone;
use crate::finding::one_line;
use crate::report::{Person, RowSelection, UnreadRun, plural};
use crate::runs::{self, ForgottenPerson, ForgottenRows};

/// What this program cannot remove.
const REMAINS: &str = "the lists that the number came from, files written by `results --out`, `--excel` or `--people`, backups \
                       of the state folder, and data stored by the gateway";

pub(super) async fn forget(context: &Context, args: &ForgetArgs) -> Result<u8, Failure> {
    let phone = number_of_campaigns(context, &args.phone, (args.region.region.as_deref(), None)).await?;
    let ledger = context.ledger().await?;
    if !args.yes {
        agree(context, phone, &Person::find(ledger.as_ref(), phone, &RowSelection::default()).await?).await?;
    }
    let told = runs::forget(&context.adapters(ledger)?, phone).await?;
    let code = match () {
        () if !told.unread.is_empty() || !told.unwritten.is_empty() => exit::STORAGE,
        () if !told.doubtful.is_empty() => exit::DOUBT,
        () => exit::FINE,
    };
    if context.output.json {
        let object = object(context, phone, told, code);
        context.output.object(&object);
    } else {
        let text = text(context, phone, told);
        context.output.done(&text, code);
    }
    Ok(code)
}

/// Shows what is removed, and asks for a confirmation.
async fn agree(context: &Context, phone: Phone, person: &Person) -> Result<(), Failure> {
    let (rows, runs) = (plural(person.rows(), "row"), plural(person.runs.len() as u64, "run"));
    let question = Question::new(format!("Forget +{phone} for good?"), Answer::Yes, "forget it")
        .fact("rows", format!("{rows} in {runs}"))
        .note("The number and all data in these rows are removed from the ledger, the copies of lists and the results.")
        .note("Planned messages to the number are skipped. It no longer receives marketing.");
    confirm(&context.output, question, "forgetting a recipient", "Nothing was forgotten.").await
}

fn object(context: &Context, phone: Phone, told: ForgottenPerson, code: u8) -> Value {
    let rows = |rows: &RoaringBitmap| rows.iter().collect::<Vec<u32>>();
    let runs = told.runs.iter();
    let runs = runs.map(
        |ForgottenRows { run, rows: all, skipped }| json!({ "run": run, "rows": rows(all), "skipped": rows(skipped) }),
    );
    let doubt = told.doubtful.iter().map(|(run, doubtful)| json!({ "run": run, "rows": rows(doubtful) }));
    let unread = told.unread.iter().map(|UnreadRun { run, why }| json!({ "run": run, "why": why }));
    let mut object = json!({
        "phone": phone.to_string(), "forgotten": runs.collect::<Vec<_>>(), "in_doubt": doubt.collect::<Vec<_>>(),
        "unread": unread.collect::<Vec<_>>(), "suppressed": true, "remains": REMAINS, "exit": code,
    });
    let unwritten: Vec<String> = told.unwritten.into_iter().map(|why| unwritten(&context.output, why)).collect();
    object["unwritten"] = unwritten.into();
    if code == exit::STORAGE {
        object["error"] = "some changes could not be written; run the same command again to finish".into();
    }
    object
}

fn text(context: &Context, phone: Phone, told: ForgottenPerson) -> String {
    let all: u64 = told.runs.iter().map(|forgotten| forgotten.rows.len()).sum();
    let (rows, runs) = (plural(all, "row"), plural(told.runs.len() as u64, "run"));
    let mut text = format!("+{phone} is forgotten: {rows} in {runs}\n");
    for ForgottenRows { run, rows, skipped } in &told.runs {
        let skipped = if skipped.is_empty() { String::new() } else { format!(", {} skipped", skipped.len()) };
        text += &format!("  {run} · {}{skipped}\n", plural(rows.len(), "row"));
    }
    text +=
        "  The number no longer receives marketing. A keyed hash remains, so that it is recognized in later lists.\n";
    text += &format!("  Not removed: {REMAINS}.\n");
    for (run, rows) in &told.doubtful {
        let rows: Vec<String> = rows.iter().map(|row| row.to_string()).collect();
        let decide = context.output.command(format!("resolve {run} --rows {} --as DECISION", rows.join(",")));
        text += &format!(
            "not forgotten: {} in {run}, in doubt because the message might have been sent\n  first: {decide}\n",
            plural(rows.len() as u64, "row")
        );
    }
    for UnreadRun { run, why } in &told.unread {
        text += &format!("not forgotten: {run} could not be read or written: {}\n", one_line(why));
    }
    for why in told.unwritten {
        text += &format!("not forgotten: {}\n", one_line(&unwritten(&context.output, why)));
    }
    text + &format!("next: {}\n", context.output.command(format!("find +{phone}")))
}
