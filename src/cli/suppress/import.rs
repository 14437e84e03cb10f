//! `campaign suppress import`: shows what a file adds to the list, asks, and adds it.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use serde_json::json;

use super::{describe_scope, describe_unknown_campaign, opt_out_terms};
use crate::cli::args::ImportArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::CommandFailure;
use crate::cli::question::{ConfirmationPrompt, ExpectedAnswer, require_confirmation};
use crate::cli::region::choose_region_of_file;
use crate::cli::suggested::shell_path;
use crate::finding::escape_to_one_line;
use crate::ledger::Additions;
use crate::report::{format_count, format_thousands};
use crate::runs::{Error, MixedColumn, OptOutFile, OptOutTerms};

/// Campaigns of a file that are looked for.
const MAX_CAMPAIGNS: usize = 10;

pub(super) async fn import_opt_outs(context: &Context, args: &ImportArgs) -> Result<(), CommandFailure> {
    let given = (args.terms.region.as_deref(), args.terms.campaign.as_deref());
    let terms = OptOutTerms { region: choose_region_of_file(context, given).await?, ..opt_out_terms(&args.terms)? };
    let read = OptOutFile::read(&args.file, &terms, Timestamp::now()).await.map_err(import_failure)?;
    let ledger = context.open_ledger().await?;
    let mut warnings = list_warnings(&read);
    let campaigns: BTreeSet<&str> = read.opt_outs.iter().filter_map(|opt_out| opt_out.scope.campaign()).collect();
    for campaign in campaigns.into_iter().take(MAX_CAMPAIGNS) {
        warnings.extend(describe_unknown_campaign(ledger.as_ref(), Some(campaign)).await?);
    }
    for warning in &warnings {
        context.output.print_warning(warning);
    }
    let expected = read.preview_additions(ledger.as_ref()).await?;
    if !args.yes && expected.added > 0 {
        confirm_import(context, args, &read, &expected).await?;
    }
    let (name, rows, repeated) = (args.file.display().to_string(), read.rows, read.count_repeated());
    let undo = undo_command(context, &read);
    let additions = read.import(ledger.as_ref()).await?;
    if context.output.json {
        let (added, already) = (additions.added, additions.already);
        context.output.print_object(&json!({
            "file": name, "rows": rows, "added": added, "already": already, "repeated": repeated, "warnings": warnings,
            "exit": exit::SUCCESS,
        }));
        return Ok(());
    }
    let mut text = format!("{name}: {}\n", describe_counts(rows, &additions, repeated));
    if let Some(undo) = undo.filter(|_| additions.added > 0) {
        text += &format!("to undo it: {undo}\n");
    }
    let next = context.output.command("suppress list".to_owned());
    context.output.print_done(format!("{text}next: {next}\n"), exit::SUCCESS);
    Ok(())
}

/// A file that is wrong, of which nothing was imported.
fn import_failure(error: Error) -> CommandFailure {
    match error {
        Error::Findings(findings) => {
            let problems = format_count(findings.len() as u64, "problem");
            CommandFailure::with_findings(format!("{problems} found; nothing was imported"), findings)
        }
        error => error.into(),
    }
}

/// Shows what the file adds to the list, and asks for the number of new entries.
async fn confirm_import(
    context: &Context,
    args: &ImportArgs,
    read: &OptOutFile,
    expected: &Additions,
) -> Result<(), CommandFailure> {
    let name = args.file.display();
    let (counts, number) = (describe_counts(read.rows, expected, read.count_repeated()), expected.added);
    let title = format!("Add {} from {name}?", format_count(number, "opt-out"));
    let mut question = ConfirmationPrompt::new(
        title,
        ExpectedAnswer::Number(number),
        format!("add {}", format_count(number, "opt-out")),
    )
    .with_fact("file", format!("{counts} · 0 invalid"))
    .with_fact("opt out of", describe_scopes(read));
    question = match undo_command(context, read) {
        Some(undo) => question.with_command("To undo it later", undo),
        None => question
            .with_note("The rows keep their own sources, so `suppress remove --source` cannot undo this import."),
    };
    require_confirmation(&context.output, question, &format!("importing `{name}` ({counts})"), "Nothing was changed.")
        .await
}

/// What the recipients in a file opt out of, in words.
fn describe_scopes(read: &OptOutFile) -> String {
    let mut scopes = read.opt_outs.iter().map(|opt_out| &opt_out.scope);
    match scopes.next() {
        Some(first) if scopes.all(|scope| scope == first) => describe_scope(first),
        _ => "the campaigns named in its rows".to_owned(),
    }
}

/// The command that undoes this import alone, also if another file of the same name is imported; nothing if none can.
fn undo_command(context: &Context, read: &OptOutFile) -> Option<String> {
    let source = read.undoable_source()?;
    Some(context.output.command(format!("suppress remove --source {}", shell_path(Path::new(source)))))
}

fn describe_counts(rows: u64, additions: &Additions, repeated: u64) -> String {
    let (rows, added, already) =
        (format_count(rows, "row"), format_thousands(additions.added), format_thousands(additions.already));
    let repeated = if repeated > 0 { format!(" · {} repeated", format_thousands(repeated)) } else { String::new() };
    format!("{rows} · {added} new · {already} already on the list{repeated}")
}

/// What an operator should know before the question.
fn list_warnings(read: &OptOutFile) -> Vec<String> {
    let mixed = read.mixed.iter().map(|column| describe_mixed_column(column, read.rows));
    let dates = read.dates.as_ref().filter(|(_, unread)| *unread > 0);
    let dates = dates.map(|(header, unread)| {
        let (header, rows) = (escape_to_one_line(header), format_count(*unread, "row"));
        let verb = if *unread == 1 { "has" } else { "have" };
        format!("column `{header}`: {rows} {verb} an unreadable or future date; the time of the import is used instead")
    });
    mixed.chain(dates).collect()
}

fn describe_mixed_column(MixedColumn { header, opted_out, reachable, example }: &MixedColumn, rows: u64) -> String {
    let (header, example) = (escape_to_one_line(header), escape_to_one_line(example));
    let example = if example.is_empty() { "an empty cell".to_owned() } else { format!("`{example}`") };
    let subscribed = format_count(*reachable, "row");
    let all = if rows == 1 { "its only row".to_owned() } else { format!("all {}", format_count(rows, "row")) };
    let (opted_out, advice) = match *opted_out {
        0 => ("none".to_owned(), ""),
        some => (
            format_thousands(some),
            ". To opt out only rows marked as opted out, move them to a separate file and import that file",
        ),
    };
    format!(
        "the column `{header}` marks {subscribed} as not opted out (for example, {example}) and {opted_out} as opted out; \
         the import opts out {all}{advice}"
    )
}
