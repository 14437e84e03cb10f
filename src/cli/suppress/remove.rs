//! `campaign suppress remove`: takes a number off the list, or all entries that an import added.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde_json::json;

use super::{about, meaning, terms, unknown_campaign};
use crate::cli::args::RemoveArgs;
use crate::cli::clock::minute;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::question::{Answer, Question, confirm};
use crate::cli::region::number_of_campaigns;
use crate::domain::Phone;
use crate::finding::{did_you_mean, one_line};
use crate::ledger::{Ledger, OptOut, Reach, Scope};
use crate::report::{opt_out_json, plural};
use crate::runs::{self, ImportedEntries, OptOutTerms};

/// Imports that are shown one by one.
const SHOWN: usize = 8;

pub(super) async fn remove(context: &Context, args: &RemoveArgs) -> Result<(), Failure> {
    let terms = terms(&args.terms)?;
    match (&args.phone, &args.source) {
        (Some(phone), _) => remove_number(context, args, phone, &terms).await,
        (None, Some(source)) => remove_import(context, args, source, &terms).await,
        (None, None) => Err(Failure::wrong("specify a PHONE, or an import with `--source FILE`")),
    }
}

/// The warnings about the campaign that was named, which are shown unless the command prints JSON.
async fn warn(context: &Context, ledger: &dyn Ledger, terms: &OptOutTerms) -> Result<Vec<String>, Failure> {
    let warning = unknown_campaign(ledger, terms.campaign.as_deref()).await?;
    if let Some(warning) = &warning {
        context.output.warning(warning);
    }
    Ok(warning.into_iter().collect())
}

async fn remove_number(
    context: &Context,
    args: &RemoveArgs,
    phone: &SecretString,
    terms: &OptOutTerms,
) -> Result<(), Failure> {
    let phone = number_of_campaigns(context, phone, (args.terms.region.as_deref(), terms.campaign.as_deref())).await?;
    let (mut removed, mut general, mut warnings) = (Vec::new(), None, Vec::new());
    if context.has_ledger().await? {
        let ledger = context.ledger().await?;
        warnings = warn(context, ledger.as_ref(), terms).await?;
        let listed = runs::opt_outs_of(ledger.as_ref(), phone, terms).await?;
        general = general_opt_out(ledger.as_ref(), phone, terms).await?;
        if !args.yes && !listed.is_empty() {
            let what = plural(listed.len() as u64, "opt-out");
            let title = format!("Remove {what} for +{phone}?");
            let mut question = Question::new(title, Answer::Yes, format!("remove {what}"));
            for (index, entry) in listed.iter().enumerate() {
                question.add(if index == 0 { "opt-outs" } else { "" }, [about(entry).trim().into()]);
            }
            question.add_note(match &general {
                Some(general) => still_listed(general),
                None => "This recipient opted out and could get messages again.".to_owned(),
            });
            confirm(&context.output, question, &format!("removing {what} of a recipient"), "Nothing was changed.")
                .await?;
        }
        removed = runs::unsuppress(ledger.as_ref(), phone, terms).await?;
    }
    if context.output.json {
        let taken: Vec<_> = removed.iter().map(opt_out_json).collect();
        context.output.object(&json!({
            "phone": phone.to_string(), "removed": taken, "still": general.as_ref().map(opt_out_json),
            "warnings": warnings, "exit": exit::FINE,
        }));
        return Ok(());
    }
    let mut text = String::new();
    for OptOut { scope, at, .. } in &removed {
        text += &match general {
            Some(_) => format!("removed the opt-out of +{phone} from {}", meaning(scope)),
            None => format!("+{phone} can get marketing messages from {} again", meaning(scope)),
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
    text += &general.as_ref().map(|general| format!("  {}\n", still_listed(general))).unwrap_or_default();
    context.output.done(&text, exit::FINE);
    Ok(())
}

/// The opt-out from every campaign that stays on the list if only the opt-out from one campaign is removed.
async fn general_opt_out(ledger: &dyn Ledger, phone: Phone, terms: &OptOutTerms) -> Result<Option<OptOut>, Failure> {
    if terms.campaign.is_none() {
        return Ok(None);
    }
    let entries = runs::opt_outs_of(ledger, phone, &OptOutTerms::default()).await?;
    let general = |entry: &OptOut| entry.scope == Scope::Everything && entry.reach == Reach::AllGateways;
    Ok(entries.into_iter().find(general))
}

fn still_listed(general: &OptOut) -> String {
    format!(
        "The number is still opted out of all campaigns and gets no marketing messages. Remaining opt-out: {}",
        about(general).trim()
    )
}

async fn remove_import(context: &Context, args: &RemoveArgs, source: &str, terms: &OptOutTerms) -> Result<(), Failure> {
    let Some(ledger) = context.existing_ledger().await? else {
        return Err(Failure::wrong("there are no imports to undo: the ledger does not exist yet"));
    };
    let warnings = warn(context, ledger.as_ref(), terms).await?;
    let found = ImportedEntries::find(ledger.as_ref(), source, terms.campaign.as_deref()).await?;
    if found.entries.is_empty() {
        return Err(no_import(source, &found));
    }
    let (imports, forgotten, number) = (by_source(&found.entries), found.forgotten, found.entries.len() as u64);
    if !args.yes {
        let entries = plural(number, "opt-out");
        let change = format!("removing {entries} that {} added", plural(imports.len() as u64, "import"));
        confirm(&context.output, question(&imports, forgotten, number), &change, "Nothing was changed.").await?;
    }
    let removed = found.remove(ledger.as_ref(), terms.reason.as_deref()).await?;
    if context.output.json {
        let imports: Vec<_> =
            imports.iter().map(|(source, entries)| json!({ "source": source, "entries": entries })).collect();
        context.output.object(&json!({
            "source": source, "removed": removed, "imports": imports, "forgotten": forgotten, "warnings": warnings,
            "exit": exit::FINE,
        }));
        return Ok(());
    }
    let mut text = format!("{} removed from the list\n", plural(removed, "opt-out"));
    text += &kept(forgotten);
    text += "  If another imported list also contains some of these numbers, import that list again.\n";
    text += &format!("next: {}\n", context.output.command("suppress list".to_owned()));
    context.output.done(&text, exit::FINE);
    Ok(())
}

/// How many entries each import added, by the source that the list shows.
fn by_source(entries: &[OptOut]) -> BTreeMap<String, u64> {
    let mut imports = BTreeMap::new();
    for entry in entries {
        *imports.entry(entry.source.to_string()).or_default() += 1;
    }
    imports
}

fn question(imports: &BTreeMap<String, u64>, forgotten: u64, number: u64) -> Question {
    let (entries, from) = (plural(number, "opt-out"), plural(imports.len() as u64, "import"));
    let action = format!("remove {entries}");
    let mut question = Question::new(format!("Remove {entries} from {from}?"), Answer::Number(number), action);
    for (index, (source, entries)) in imports.iter().take(SHOWN).enumerate() {
        let label = if index == 0 { "imports" } else { "" };
        question.add(label, [format!("{source} · {}", plural(*entries, "opt-out")).into()]);
    }
    if imports.len() > SHOWN {
        question.add("", [format!("and {} more", plural((imports.len() - SHOWN) as u64, "import")).into()]);
    }
    if imports.len() > 1 {
        question.add_note("To undo only one of these imports, pass its full source to `--source`.");
    }
    if forgotten > 0 {
        question.add_note(kept(forgotten).trim());
    }
    question.note("These recipients might get messages again. Opt-outs from other sources, such as replies, are kept.")
}

fn kept(forgotten: u64) -> String {
    match forgotten {
        0 => String::new(),
        _ => format!("  {} of forgotten recipients remain on the list.\n", plural(forgotten, "opt-out")),
    }
}

/// No import has this source; which ones there are.
fn no_import(source: &str, found: &ImportedEntries) -> Failure {
    let failure = Failure::wrong(match found.forgotten {
        0 => format!("the list contains no opt-outs imported from `{}`; nothing was changed", one_line(source)),
        _ => format!(
            "nothing was removed: all recipients from `{}` have been erased with `forget`, and their opt-outs stay on the list",
            one_line(source)
        ),
    });
    let mut files: Vec<&str> = found.sources.iter().filter_map(|known| known.split(", ").next()).collect();
    files.dedup();
    match did_you_mean(source, files.iter().copied()) {
        Some(near) => failure.with_help(format!("did you mean `{}`?", one_line(near))),
        None if files.is_empty() => failure,
        None => {
            let known: Vec<String> = files.iter().take(SHOWN).map(|known| format!("`{}`", one_line(known))).collect();
            failure.with_help(format!("imported files: {}", known.join(", ")))
        }
    }
}
