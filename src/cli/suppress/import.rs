//! `campaign suppress import`: shows what a file adds to the list, asks, and adds it.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use serde_json::json;

use super::{meaning, terms, unknown_campaign};
use crate::cli::args::ImportArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::question::{Answer, Question, confirm};
use crate::cli::region::region_of_file;
use crate::cli::suggested::file;
use crate::finding::one_line;
use crate::ledger::Additions;
use crate::report::{plural, thousands};
use crate::runs::{Error, MixedColumn, OptOutFile, OptOutTerms};

/// Campaigns of a file that are looked for.
const CAMPAIGNS: usize = 10;

pub(super) async fn import(context: &Context, args: &ImportArgs) -> Result<(), Failure> {
    let given = (args.terms.region.as_deref(), args.terms.campaign.as_deref());
    let terms = OptOutTerms { region: region_of_file(context, given).await?, ..terms(&args.terms)? };
    let read = OptOutFile::read(&args.file, &terms, Timestamp::now()).await.map_err(refused)?;
    let ledger = context.ledger().await?;
    let mut warnings = warnings(&read);
    let campaigns: BTreeSet<&str> = read.opt_outs.iter().filter_map(|opt_out| opt_out.scope.campaign()).collect();
    for campaign in campaigns.into_iter().take(CAMPAIGNS) {
        warnings.extend(unknown_campaign(ledger.as_ref(), Some(campaign)).await?);
    }
    for warning in &warnings {
        context.output.warning(warning);
    }
    let expected = read.additions(ledger.as_ref()).await?;
    if !args.yes && expected.added > 0 {
        agree(context, args, &read, &expected).await?;
    }
    let (name, rows, repeated) = (args.file.display().to_string(), read.rows, read.repeated());
    let undo = undo(context, &read);
    let additions = read.import(ledger.as_ref()).await?;
    if context.output.json {
        let (added, already) = (additions.added, additions.already);
        context.output.object(&json!({
            "file": name, "rows": rows, "added": added, "already": already, "repeated": repeated, "warnings": warnings,
            "exit": exit::FINE,
        }));
        return Ok(());
    }
    let mut text = format!("{name}: {}\n", counts(rows, &additions, repeated));
    if let Some(undo) = undo.filter(|_| additions.added > 0) {
        text += &format!("to undo it: {undo}\n");
    }
    let next = context.output.command("suppress list".to_owned());
    context.output.done(format!("{text}next: {next}\n"), exit::FINE);
    Ok(())
}

/// A file that is wrong, of which nothing was imported.
fn refused(error: Error) -> Failure {
    match error {
        Error::Findings(findings) => {
            let problems = plural(findings.len() as u64, "problem");
            Failure::with_findings(format!("{problems} found; nothing was imported"), findings)
        }
        error => error.into(),
    }
}

/// Shows what the file adds to the list, and asks for the number of new entries.
async fn agree(context: &Context, args: &ImportArgs, read: &OptOutFile, expected: &Additions) -> Result<(), Failure> {
    let name = args.file.display();
    let (counts, number) = (counts(read.rows, expected, read.repeated()), expected.added);
    let title = format!("Add {} from {name}?", plural(number, "opt-out"));
    let mut question = Question::new(title, Answer::Number(number), format!("add {}", plural(number, "opt-out")))
        .fact("file", format!("{counts} · 0 invalid"))
        .fact("opt out of", scopes(read));
    question = match undo(context, read) {
        Some(undo) => question.command("To undo it later", undo),
        None => {
            question.note("The rows keep their own sources, so `suppress remove --source` cannot undo this import.")
        }
    };
    confirm(&context.output, question, &format!("importing `{name}` ({counts})"), "Nothing was changed.").await
}

/// What the recipients in a file opt out of, in words.
fn scopes(read: &OptOutFile) -> String {
    let mut scopes = read.opt_outs.iter().map(|opt_out| &opt_out.scope);
    match scopes.next() {
        Some(first) if scopes.all(|scope| scope == first) => meaning(first),
        _ => "the campaigns named in its rows".to_owned(),
    }
}

/// The command that undoes this import alone, also if another file of the same name is imported; nothing if none can.
fn undo(context: &Context, read: &OptOutFile) -> Option<String> {
    let source = read.undoable_source()?;
    Some(context.output.command(format!("suppress remove --source {}", file(Path::new(source)))))
}

fn counts(rows: u64, additions: &Additions, repeated: u64) -> String {
    let (rows, added, already) = (plural(rows, "row"), thousands(additions.added), thousands(additions.already));
    let repeated = if repeated > 0 { format!(" · {} repeated", thousands(repeated)) } else { String::new() };
    format!("{rows} · {added} new · {already} already on the list{repeated}")
}

/// What an operator should know before the question.
fn warnings(read: &OptOutFile) -> Vec<String> {
    let mixed = read.mixed.iter().map(|column| mixed_column(column, read.rows));
    let dates = read.dates.as_ref().filter(|(_, unread)| *unread > 0);
    let dates = dates.map(|(header, unread)| {
        let (header, rows) = (one_line(header), plural(*unread, "row"));
        let verb = if *unread == 1 { "has" } else { "have" };
        format!("column `{header}`: {rows} {verb} an unreadable or future date; the time of the import is used instead")
    });
    mixed.chain(dates).collect()
}

fn mixed_column(MixedColumn { header, opted_out, reachable, example }: &MixedColumn, rows: u64) -> String {
    let (header, example) = (one_line(header), one_line(example));
    let example = if example.is_empty() { "an empty cell".to_owned() } else { format!("`{example}`") };
    let subscribed = plural(*reachable, "row");
    let all = if rows == 1 { "its only row".to_owned() } else { format!("all {}", plural(rows, "row")) };
    let (opted_out, advice) = match *opted_out {
        0 => ("none".to_owned(), ""),
        some => (
            thousands(some),
            ". To opt out only rows marked as opted out, move them to a separate file and import that file",
        ),
    };
    format!(
        "the column `{header}` marks {subscribed} as not opted out (for example, {example}) and {opted_out} as opted out; \
         the import opts out {all}{advice}"
    )
}
