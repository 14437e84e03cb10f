//! `campaign suppress remove`: takes a number off the list, or all entries that an import added.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde_json::json;

use super::{describe_opt_out, describe_scope, describe_unknown_campaign, opt_out_terms};
use crate::cli::args::RemoveArgs;
use crate::cli::clock::minute;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::CommandFailure;
use crate::cli::question::{ConfirmationPrompt, ExpectedAnswer, require_confirmation};
use crate::cli::region::parse_number_of_campaigns;
use crate::domain::Phone;
use crate::finding::{did_you_mean, escape_to_one_line};
use crate::ledger::{Ledger, OptOut, OptOutReach, OptOutScope};
use crate::report::{format_count, opt_out_json};
use crate::runs::{self, ImportedEntries, OptOutTerms};

/// Imports that are shown one by one.
const MAX_SHOWN_IMPORTS: usize = 8;

pub(super) async fn remove_opt_outs(context: &Context, args: &RemoveArgs) -> Result<(), CommandFailure> {
    let terms = opt_out_terms(&args.terms)?;
    match (&args.phone, &args.source) {
        (Some(phone), _) => remove_number(context, args, phone, &terms).await,
        (None, Some(source)) => remove_import(context, args, source, &terms).await,
        (None, None) => Err(CommandFailure::invalid("specify a PHONE, or an import with `--source FILE`")),
    }
}

/// The warnings about the campaign that was named, which are shown unless the command prints JSON.
async fn warn_about_campaign(
    context: &Context,
    ledger: &dyn Ledger,
    terms: &OptOutTerms,
) -> Result<Vec<String>, CommandFailure> {
    let warning = describe_unknown_campaign(ledger, terms.campaign.as_deref()).await?;
    if let Some(warning) = &warning {
        context.output.print_warning(warning);
    }
    Ok(warning.into_iter().collect())
}

async fn remove_number(
    context: &Context,
    args: &RemoveArgs,
    phone: &SecretString,
    terms: &OptOutTerms,
) -> Result<(), CommandFailure> {
    let phone =
        parse_number_of_campaigns(context, phone, (args.terms.region.as_deref(), terms.campaign.as_deref())).await?;
    let (mut removed, mut general, mut warnings) = (Vec::new(), None, Vec::new());
    if context.has_ledger().await? {
        let ledger = context.open_ledger().await?;
        warnings = warn_about_campaign(context, ledger.as_ref(), terms).await?;
        let listed = runs::list_opt_outs(ledger.as_ref(), phone, terms).await?;
        general = find_general_opt_out(ledger.as_ref(), phone, terms).await?;
        if !args.yes && !listed.is_empty() {
            let what = format_count(listed.len() as u64, "opt-out");
            let title = format!("Remove {what} for +{phone}?");
            let mut question = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, format!("remove {what}"));
            for (index, entry) in listed.iter().enumerate() {
                question.add_fact(if index == 0 { "opt-outs" } else { "" }, [describe_opt_out(entry).trim().into()]);
            }
            question.add_note(match &general {
                Some(general) => describe_general_opt_out(general),
                None => "This recipient opted out and could get messages again.".to_owned(),
            });
            require_confirmation(
                &context.output,
                question,
                &format!("removing {what} of a recipient"),
                "Nothing was changed.",
            )
            .await?;
        }
        removed = runs::remove_opt_outs(ledger.as_ref(), phone, terms).await?;
    }
    if context.output.json {
        let taken: Vec<_> = removed.iter().map(opt_out_json).collect();
        context.output.print_object(&json!({
            "phone": phone.to_string(), "removed": taken, "still": general.as_ref().map(opt_out_json),
            "warnings": warnings, "exit": exit::SUCCESS,
        }));
        return Ok(());
    }
    let mut text = String::new();
    for OptOut { scope, at, .. } in &removed {
        text += &match general {
            Some(_) => format!("removed the opt-out of +{phone} from {}", describe_scope(scope)),
            None => format!("+{phone} can get marketing messages from {} again", describe_scope(scope)),
        };
        text += &format!("; it had been on the list since {}\n", minute(*at));
    }
    if removed.is_empty() {
        let why = match (&terms.campaign, &general) {
            (Some(name), Some(_)) => format!("has no separate opt-out from campaign {name}"),
            (Some(name), None) => format!("is not on the list for campaign {name}"),
            (None, _) => "is not on the list".to_owned(),
        };
        text = format!("+{phone} {why}; nothing was changed\n");
    }
    text += &general.as_ref().map(|general| format!("  {}\n", describe_general_opt_out(general))).unwrap_or_default();
    context.output.print_done(&text, exit::SUCCESS);
    Ok(())
}

/// The opt-out from every campaign that stays on the list if only the opt-out from one campaign is removed.
async fn find_general_opt_out(
    ledger: &dyn Ledger,
    phone: Phone,
    terms: &OptOutTerms,
) -> Result<Option<OptOut>, CommandFailure> {
    if terms.campaign.is_none() {
        return Ok(None);
    }
    let entries = runs::list_opt_outs(ledger, phone, &OptOutTerms::default()).await?;
    let general = |entry: &OptOut| entry.scope == OptOutScope::Everything && entry.reach == OptOutReach::AllGateways;
    Ok(entries.into_iter().find(general))
}

fn describe_general_opt_out(general: &OptOut) -> String {
    format!(
        "The number is still opted out of all campaigns and gets no marketing messages. Remaining opt-out: {}",
        describe_opt_out(general).trim()
    )
}

async fn remove_import(
    context: &Context,
    args: &RemoveArgs,
    source: &str,
    terms: &OptOutTerms,
) -> Result<(), CommandFailure> {
    let Some(ledger) = context.open_existing_ledger().await? else {
        return Err(CommandFailure::invalid("there are no imports to undo: the ledger does not exist yet"));
    };
    let warnings = warn_about_campaign(context, ledger.as_ref(), terms).await?;
    let found = ImportedEntries::find(ledger.as_ref(), source, terms.campaign.as_deref()).await?;
    if found.entries.is_empty() {
        return Err(unknown_import(source, &found));
    }
    let (imports, forgotten, number) = (count_by_source(&found.entries), found.forgotten, found.entries.len() as u64);
    if !args.yes {
        let entries = format_count(number, "opt-out");
        let change = format!("removing {entries} that {} added", format_count(imports.len() as u64, "import"));
        require_confirmation(
            &context.output,
            removal_prompt(&imports, forgotten, number),
            &change,
            "Nothing was changed.",
        )
        .await?;
    }
    let removed = found.remove(ledger.as_ref(), terms.reason.as_deref()).await?;
    if context.output.json {
        let imports: Vec<_> =
            imports.iter().map(|(source, entries)| json!({ "source": source, "entries": entries })).collect();
        context.output.print_object(&json!({
            "source": source, "removed": removed, "imports": imports, "forgotten": forgotten, "warnings": warnings,
            "exit": exit::SUCCESS,
        }));
        return Ok(());
    }
    let mut text = format!("{} removed from the list\n", format_count(removed, "opt-out"));
    text += &describe_forgotten(forgotten);
    text += "  If another imported list also contains some of these numbers, import that list again.\n";
    text += &format!("next: {}\n", context.output.command("suppress list".to_owned()));
    context.output.print_done(&text, exit::SUCCESS);
    Ok(())
}

/// How many entries each import added, by the source that the list shows.
fn count_by_source(entries: &[OptOut]) -> BTreeMap<String, u64> {
    let mut imports = BTreeMap::new();
    for entry in entries {
        *imports.entry(entry.source.to_string()).or_default() += 1;
    }
    imports
}

fn removal_prompt(imports: &BTreeMap<String, u64>, forgotten: u64, number: u64) -> ConfirmationPrompt {
    let (entries, from) = (format_count(number, "opt-out"), format_count(imports.len() as u64, "import"));
    let action = format!("remove {entries}");
    let mut question =
        ConfirmationPrompt::new(format!("Remove {entries} from {from}?"), ExpectedAnswer::Number(number), action);
    for (index, (source, entries)) in imports.iter().take(MAX_SHOWN_IMPORTS).enumerate() {
        let label = if index == 0 { "imports" } else { "" };
        question.add_fact(label, [format!("{source} · {}", format_count(*entries, "opt-out")).into()]);
    }
    if imports.len() > MAX_SHOWN_IMPORTS {
        question.add_fact(
            "",
            [format!("and {} more", format_count((imports.len() - MAX_SHOWN_IMPORTS) as u64, "import")).into()],
        );
    }
    if imports.len() > 1 {
        question.add_note("To undo only one of these imports, pass its full source to `--source`.");
    }
    if forgotten > 0 {
        question.add_note(describe_forgotten(forgotten).trim());
    }
    question
        .with_note("These recipients might get messages again. Opt-outs from other sources, such as replies, are kept.")
}

fn describe_forgotten(forgotten: u64) -> String {
    match forgotten {
        0 => String::new(),
        _ => format!("  {} of forgotten recipients remain on the list.\n", format_count(forgotten, "opt-out")),
    }
}

/// No import has this source; which ones there are.
fn unknown_import(source: &str, found: &ImportedEntries) -> CommandFailure {
    let failure = CommandFailure::invalid(match found.forgotten {
        0 => {
            format!("the list contains no opt-outs imported from `{}`; nothing was changed", escape_to_one_line(source))
        }
        _ => format!(
            "nothing was removed: all recipients from `{}` have been erased with `forget`, and their opt-outs stay on the list",
            escape_to_one_line(source)
        ),
    });
    let mut files: Vec<&str> = found.sources.iter().filter_map(|known| known.split(", ").next()).collect();
    files.dedup();
    match did_you_mean(source, files.iter().copied()) {
        Some(near) => failure.with_help(format!("did you mean `{}`?", escape_to_one_line(near))),
        None if files.is_empty() => failure,
        None => {
            let known: Vec<String> =
                files.iter().take(MAX_SHOWN_IMPORTS).map(|known| format!("`{}`", escape_to_one_line(known))).collect();
            failure.with_help(format!("imported files: {}", known.join(", ")))
        }
    }
}
