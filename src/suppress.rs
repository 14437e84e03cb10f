//! The suppression list: `campaign suppress add`, `remove`, `import`, `export` and `list`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::json;

use super::args::{ImportArgs, NumberArgs, RemoveArgs, ScopeName, SuppressCommand, SuppressListArgs, TermsArgs};
use super::context::Context;
use super::exit::CommandFailure;
use super::numbers::{choose_region_of_file, parse_number_with_campaign_region};
use super::output::{RowOutput, RowSyntax};
use super::prompt::{ConfirmationPrompt, ExpectedAnswer, require_confirmation};
use super::state_folder::LedgerPurpose;
use super::suggested::shell_path;
use super::text::{StyledLine, StyledText, caution, dim, plain, strong};
use super::{exit, numbers};
use campaign_core::domain::Phone;
use campaign_core::finding::{did_you_mean, escape_to_one_line, join_names};
use campaign_engine::report::{
    OptOutExportError, OptOutHistory, export_opt_outs, for_each_opt_out, format_count, format_local_minute,
    format_thousands, opt_out_json,
};
use campaign_ledger::{Additions, EndedOptOut, Ledger, OptOut, OptOutEnd, OptOutReach, OptOutScope, import_name};
use campaign_manifest::is_slug;
use campaign_runs::{Error, ImportedEntries, MixedColumn, OptOutFile, OptOutTerms};

pub(super) async fn run_suppress_command(context: &Context, command: SuppressCommand) -> Result<u8, CommandFailure> {
    match command {
        SuppressCommand::Add(args) => add_opt_out(context, &args).await?,
        SuppressCommand::Remove(args) => remove_opt_outs(context, &args).await?,
        SuppressCommand::Import(args) => import_opt_outs(context, &args).await?,
        SuppressCommand::Export(args) => print_opt_outs(context, &args).await?,
        SuppressCommand::List(args) => list_opt_outs(context, &args).await?,
    }
    Ok(exit::SUCCESS)
}

async fn add_opt_out(context: &Context, args: &NumberArgs) -> Result<(), CommandFailure> {
    let terms = parse_opt_out_terms(&args.terms)?;
    let phone = parse_number_with_campaign_region(
        context,
        &args.phone,
        args.terms.region.as_deref(),
        args.terms.campaign.as_deref(),
    )
    .await?;
    let ledger = context.open_ledger(LedgerPurpose::SharedRecords).await?;
    let warnings = warn_about_unknown_campaign(context, ledger.as_ref(), terms.campaign()).await?;
    let (new, additions) = campaign_runs::add_opt_out(ledger.as_ref(), phone, &terms, Timestamp::now()).await?;
    let existing = additions.known.first();
    let entry = existing.unwrap_or(&new);
    if context.output.json {
        let mut object = opt_out_json(entry);
        (object["added"], object["exit"]) = (existing.is_none().into(), exit::SUCCESS.into());
        object["warnings"] = warnings.into();
        context.output.print_object(&object);
        return Ok(());
    }
    let text = match existing {
        None => {
            let meaning = format!(" opted out: no more {}", describe_messages(&new.scope));
            StyledText::from(StyledLine::success([strong(format!("+{phone}")), plain(meaning)]))
        }
        Some(OptOut { at, reason, source, .. }) => {
            let (reason, source) = (escape_to_one_line(reason), escape_to_one_line(source));
            format!(
                "+{phone} has been on the list since {} ({reason}, source: {source}); nothing changed\n",
                format_local_minute(*at)
            )
            .into()
        }
    };
    context.output.print_done(text, exit::SUCCESS);
    Ok(())
}

async fn print_opt_outs(context: &Context, args: &SuppressListArgs) -> Result<(), CommandFailure> {
    let out = BufWriter::new(RowOutput::stdout(RowSyntax::Csv));
    match context.open_existing_ledger().await? {
        Some(ledger) => {
            warn_about_unknown_campaign(context, ledger.as_ref(), args.campaign.as_deref()).await?;
            ignore_closed_pipe(export_opt_outs(ledger.as_ref(), args.campaign.as_deref(), out).await).map(|_| ())
        }
        None => Err(CommandFailure::invalid("the suppression list is empty: there is no ledger yet")),
    }
}

async fn list_opt_outs(context: &Context, args: &SuppressListArgs) -> Result<(), CommandFailure> {
    let (ledger, json) = (context.open_existing_ledger().await?, context.output.json);
    if let Some(ledger) = &ledger {
        warn_about_unknown_campaign(context, ledger.as_ref(), args.campaign.as_deref()).await?;
    }
    let mut out = BufWriter::new(RowOutput::stdout(if json { RowSyntax::Json } else { RowSyntax::Csv }));
    let (mut is_first, columns) = (true, context.output.terminal_width());
    let mut write_entry = |opt_out: &OptOut| {
        let separator = if std::mem::take(&mut is_first) { "" } else { "," };
        match json {
            true => write!(out, "{separator}{}", opt_out_json(opt_out)),
            false => out.write_all(StyledText::from(opt_out_line(opt_out)).render(columns, false).as_bytes()),
        }
    };
    if json {
        ignore_closed_pipe(io::stdout().write_all(b"[").map_err(OptOutExportError::from))?;
    }
    let count = match &ledger {
        Some(ledger) => {
            ignore_closed_pipe(for_each_opt_out(ledger.as_ref(), args.campaign.as_deref(), &mut write_entry).await)?
        }
        None => Some(0),
    };
    ignore_closed_pipe(out.flush().map_err(OptOutExportError::from))?;
    match json {
        true => context.output.print_verbatim("]\n"),
        false => context.output.print_done(format!("{}\n", format_count(count.unwrap_or(0), "opt-out")), exit::SUCCESS),
    }
    Ok(())
}

/// Formats an entry of the suppression list.
fn opt_out_line(opt_out: &OptOut) -> String {
    let recipient = opt_out.who.phone().map_or_else(|| "a forgotten number".to_owned(), |phone| format!("+{phone}"));
    format!("{recipient} · {}", describe_opt_out(opt_out))
}

/// Describes an opt-out: scope, reason, source, date, and any limit on its reach.
pub(super) fn describe_opt_out(OptOut { scope, reach, reason, source, at, .. }: &OptOut) -> String {
    let (reason, source) = (escape_to_one_line(reason), escape_to_one_line(source));
    let reach_in_words =
        if *reach == OptOutReach::LoopbackGateways { " · only for gateways on this machine" } else { "" };
    format!(
        "{} · {reason} · source: {source} · since {}{reach_in_words}\n",
        describe_scope(scope),
        format_local_minute(*at)
    )
}

/// Adds the opt-outs of a phone number to a text.
pub(super) fn add_opt_out_history(text: &mut StyledText, OptOutHistory { listed, ended }: &OptOutHistory) {
    for opt_out in listed {
        text.add_line(0, [caution("on the suppression list: "), plain(describe_opt_out(opt_out).trim_end())]);
    }
    for EndedOptOut { opt_out, end: OptOutEnd { at, by, why } } in ended {
        let why = if why.is_empty() { String::new() } else { format!(" · {}", escape_to_one_line(why)) };
        let (opt_out, by) = (describe_opt_out(opt_out), escape_to_one_line(by));
        let end = format!("{} · ended {} · {by}{why}", opt_out.trim_end(), format_local_minute(*at));
        text.add_line(0, [dim("no longer on the suppression list: "), plain(end)]);
    }
}

/// Describes the scope of an opt-out.
fn describe_scope(scope: &OptOutScope) -> String {
    match scope {
        OptOutScope::Marketing => "marketing".to_owned(),
        OptOutScope::All => "all messages".to_owned(),
        OptOutScope::Campaign(name) => format!("the campaign {name}"),
    }
}

/// Names the scope of an opt-out in a sentence about a phone number.
fn name_scope(scope: &OptOutScope) -> String {
    scope.campaign().map_or_else(|| describe_scope(scope), |name| format!("campaign {name}"))
}

/// Describes the messages that a number can get again after the removal of an opt-out.
fn describe_allowed_messages(scope: &OptOutScope) -> String {
    match scope {
        // Mandatory messages were never blocked.
        OptOutScope::All => "marketing and service messages from any campaign".to_owned(),
        OptOutScope::Marketing | OptOutScope::Campaign(_) => describe_messages(scope),
    }
}

/// Describes the messages in the scope of an opt-out.
fn describe_messages(scope: &OptOutScope) -> String {
    match scope {
        OptOutScope::Marketing => "marketing messages from any campaign".to_owned(),
        OptOutScope::All => "messages from any campaign, except mandatory ones".to_owned(),
        OptOutScope::Campaign(name) => format!("marketing messages from the campaign {name}"),
    }
}

/// Converts the error of a closed pipe, as from `head`, into `None`.
fn ignore_closed_pipe<T>(result: Result<T, OptOutExportError>) -> Result<Option<T>, CommandFailure> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(OptOutExportError::Ledger(error)) => Err(error.into()),
        Err(OptOutExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
        Err(OptOutExportError::Write(error)) => {
            Err(CommandFailure::storage_failure(format!("cannot write the list: {error}")))
        }
    }
}

/// The maximum number of known campaigns in a warning.
const MAX_NAMED_CAMPAIGNS: usize = 5;

/// Describes an unknown campaign, with the most similar names. `None` if the campaign has a run or a schedule.
///
/// This is only a warning, because recipients might opt out before the first run.
async fn describe_unknown_campaign(ledger: &dyn Ledger, name: Option<&str>) -> Result<Option<String>, CommandFailure> {
    let Some(name) = name else { return Ok(None) };
    let Some(others) = campaign_runs::list_other_campaigns(ledger, name).await? else { return Ok(None) };
    let near = did_you_mean(name, others.iter().map(String::as_str)).map(|near| format!("; did you mean `{near}`?"));
    let names = || {
        let named = join_names(others.iter().map(String::as_str).take(MAX_NAMED_CAMPAIGNS));
        match others.len().saturating_sub(MAX_NAMED_CAMPAIGNS) {
            0 => named,
            more => format!("{named} and {more} more"),
        }
    };
    let near = near.unwrap_or_else(|| match others.is_empty() {
        true => String::new(),
        false => format!("; campaigns in the ledger: {}", names()),
    });
    Ok(Some(format!("the ledger has no run or schedule for a campaign named `{}`{near}", escape_to_one_line(name))))
}

fn parse_opt_out_terms(args: &TermsArgs) -> Result<OptOutTerms, CommandFailure> {
    let TermsArgs { scope, campaign, reason, region } = args;
    if let Some(name) = campaign.as_deref().filter(|name| !is_slug(name)) {
        let help = "use 1 to 64 characters from a-z, 0-9 and `-`";
        return Err(CommandFailure::invalid(format!(
            "`--campaign`: `{}` is not a valid campaign name; {help}",
            escape_to_one_line(name)
        )));
    }
    let named = campaign.as_deref().map(|name| OptOutScope::Campaign(name.into()));
    let scope = named.or_else(|| {
        scope.map(|scope| match scope {
            ScopeName::Marketing => OptOutScope::Marketing,
            ScopeName::All => OptOutScope::All,
        })
    });
    let (reason, region) = (reason.clone(), numbers::parse_region(region.as_deref())?);
    Ok(OptOutTerms { scope, reason, region, by: None })
}

/// The maximum number of campaigns in an import file that are looked up in the ledger.
const MAX_CAMPAIGNS: usize = 10;

async fn import_opt_outs(context: &Context, args: &ImportArgs) -> Result<(), CommandFailure> {
    let (typed, campaign) = (args.terms.region.as_deref(), args.terms.campaign.as_deref());
    let region = choose_region_of_file(context, typed, campaign).await?;
    let terms = OptOutTerms { region, ..parse_opt_out_terms(&args.terms)? };
    let import_file = OptOutFile::read(&args.file, &terms, Timestamp::now()).await.map_err(import_failure)?;
    let ledger = context.open_ledger(LedgerPurpose::SharedRecords).await?;
    let mut warnings = list_warnings(&import_file);
    let campaigns: BTreeSet<&str> =
        import_file.opt_outs.iter().filter_map(|opt_out| opt_out.scope.campaign()).collect();
    for campaign in campaigns.into_iter().take(MAX_CAMPAIGNS) {
        warnings.extend(describe_unknown_campaign(ledger.as_ref(), Some(campaign)).await?);
    }
    for warning in &warnings {
        context.output.print_warning(warning);
    }
    let expected = import_file.preview_additions(ledger.as_ref()).await?;
    if !args.yes && expected.added > 0 {
        confirm_import(context, args, &import_file, &expected).await?;
    }
    let (name, rows, repeated) = (args.file.display().to_string(), import_file.rows, import_file.repeated);
    let undo = undo_command(context, &import_file);
    let additions = import_file.import(ledger.as_ref()).await?;
    if context.output.json {
        let (added, already) = (additions.added, additions.existing);
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

/// The failure of an import whose file is invalid, so nothing was imported.
fn import_failure(error: Error) -> CommandFailure {
    match error {
        Error::Findings(findings) => {
            let problems = format_count(findings.len() as u64, "problem");
            CommandFailure::with_findings(format!("{problems} found; nothing was imported"), findings)
        }
        error => error.into(),
    }
}

/// Shows the new entries, and asks the operator to type the number of new entries.
async fn confirm_import(
    context: &Context,
    args: &ImportArgs,
    import_file: &OptOutFile,
    expected: &Additions,
) -> Result<(), CommandFailure> {
    let name = args.file.display();
    let (counts, number) = (describe_counts(import_file.rows, expected, import_file.repeated), expected.added);
    let title = format!("Add {} from {name}?", format_count(number, "opt-out"));
    let mut prompt = ConfirmationPrompt::new(
        title,
        ExpectedAnswer::Number(number),
        format!("add {}", format_count(number, "opt-out")),
    )
    .with_fact("file", format!("{counts} · 0 invalid"))
    .with_fact("opt out of", describe_scopes(import_file));
    prompt = match undo_command(context, import_file) {
        Some(undo) => prompt.with_command("To undo it later", undo),
        None => {
            prompt.with_note("The rows keep their own sources, so `suppress remove --source` cannot undo this import.")
        }
    };
    require_confirmation(&context.output, prompt, &format!("importing `{name}` ({counts})"), "Nothing was changed.")
        .await
}

/// Describes the scopes of the opt-outs in a file.
fn describe_scopes(import_file: &OptOutFile) -> String {
    let mut scopes = import_file.opt_outs.iter().map(|opt_out| &opt_out.scope);
    match scopes.next() {
        Some(first) if scopes.all(|scope| scope == first) => describe_scope(first),
        _ => "different messages, depending on the row".to_owned(),
    }
}

/// The command that undoes a single import, even if another imported file has the same name. `None` if there is no such
/// command.
fn undo_command(context: &Context, import_file: &OptOutFile) -> Option<String> {
    let source = import_file.undo_source()?;
    Some(context.output.command(format!("suppress remove --source {}", shell_path(Path::new(source)))))
}

fn describe_counts(rows: u64, additions: &Additions, repeated: u64) -> String {
    let (rows, added, already) =
        (format_count(rows, "row"), format_thousands(additions.added), format_thousands(additions.existing));
    let repeated = if repeated > 0 { format!(" · {} repeated", format_thousands(repeated)) } else { String::new() };
    format!("{rows} · {added} new · {already} already on the list{repeated}")
}

/// Lists the warnings that precede the confirmation.
fn list_warnings(import_file: &OptOutFile) -> Vec<String> {
    let several_columns = (import_file.phone_columns.len() > 1).then(|| {
        let headers: Vec<String> = import_file.phone_columns.iter().map(|header| escape_to_one_line(header)).collect();
        format!(
            "several columns contain phone numbers, and all of them are imported: {}",
            join_names(headers.iter().map(String::as_str))
        )
    });
    let mixed = import_file.mixed.iter().map(|column| describe_mixed_column(column, import_file.rows));
    let dates = import_file.dates.as_ref().filter(|(_, unread)| *unread > 0);
    let dates = dates.map(|(header, unread)| {
        let (header, rows) = (escape_to_one_line(header), format_count(*unread, "row"));
        let verb = if *unread == 1 { "has" } else { "have" };
        format!("column `{header}`: {rows} {verb} an unreadable or future date; the import time is used instead")
    });
    several_columns.into_iter().chain(mixed).chain(dates).collect()
}

fn describe_mixed_column(MixedColumn { header, opted_out, reachable, example }: &MixedColumn, rows: u64) -> String {
    let (header, example) = (escape_to_one_line(header), escape_to_one_line(example));
    let example = if example.is_empty() { "an empty cell".to_owned() } else { format!("`{example}`") };
    let subscribed = format_count(*reachable, "row");
    let all_rows = if rows == 1 { "its only row".to_owned() } else { format!("all {}", format_count(rows, "row")) };
    let (opted_out, advice) = match *opted_out {
        0 => ("none".to_owned(), ""),
        count => (
            format_thousands(count),
            ". To import only the rows marked as opted out, move them to a separate file and import that file",
        ),
    };
    format!(
        "the column `{header}` marks {subscribed} as not opted out (for example, {example}) and {opted_out} as opted out; \
         the import opts out {all_rows}{advice}"
    )
}

/// The maximum number of imports that are listed.
const MAX_SHOWN_IMPORTS: usize = 8;

async fn remove_opt_outs(context: &Context, args: &RemoveArgs) -> Result<(), CommandFailure> {
    let terms = parse_opt_out_terms(&args.terms)?;
    match (&args.phone, &args.source) {
        (Some(phone), _) => remove_opt_outs_of_number(context, args, phone, &terms).await,
        (None, Some(source)) => remove_import(context, args, source, &terms).await,
        (None, None) => Err(CommandFailure::invalid("specify PHONE, or an import with `--source FILE`")),
    }
}

/// Prints a warning if the ledger does not know the named campaign, and returns the warning. With `--json`, the warning
/// is only returned.
async fn warn_about_unknown_campaign(
    context: &Context,
    ledger: &dyn Ledger,
    name: Option<&str>,
) -> Result<Vec<String>, CommandFailure> {
    let warning = describe_unknown_campaign(ledger, name).await?;
    if let Some(warning) = &warning {
        context.output.print_warning(warning);
    }
    Ok(warning.into_iter().collect())
}

async fn remove_opt_outs_of_number(
    context: &Context,
    args: &RemoveArgs,
    phone: &SecretString,
    terms: &OptOutTerms,
) -> Result<(), CommandFailure> {
    let phone =
        parse_number_with_campaign_region(context, phone, args.terms.region.as_deref(), terms.campaign()).await?;
    let (mut removed, mut warnings) = (Vec::new(), Vec::new());
    let mut remaining = RemainingOptOuts::default();
    if context.has_ledger().await? {
        let ledger = context.open_ledger(LedgerPurpose::SharedRecords).await?;
        warnings = warn_about_unknown_campaign(context, ledger.as_ref(), terms.campaign()).await?;
        let listed = campaign_runs::list_opt_outs(ledger.as_ref(), phone, terms).await?;
        remaining = find_remaining_opt_outs(ledger.as_ref(), phone, terms).await?;
        if !args.yes && !listed.is_empty() {
            let count = format_count(listed.len() as u64, "opt-out");
            let title = format!("Remove {count} for +{phone}?");
            let mut prompt = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, format!("remove {count}"));
            for (index, entry) in listed.iter().enumerate() {
                prompt.add_fact(if index == 0 { "opt-outs" } else { "" }, [describe_opt_out(entry).trim().into()]);
            }
            prompt.add_note(match &remaining.general {
                Some(general) => describe_general_opt_out(general),
                None if listed.iter().any(|entry| entry.scope == OptOutScope::All) => {
                    "After the removal, this recipient can get marketing and service messages again.".to_owned()
                }
                None => "After the removal, this recipient can get marketing messages again.".to_owned(),
            });
            require_confirmation(
                &context.output,
                prompt,
                &format!("removing {count} of a recipient"),
                "Nothing was changed.",
            )
            .await?;
        }
        removed = campaign_runs::remove_opt_outs(ledger.as_ref(), phone, terms).await?;
    }
    let RemainingOptOuts { general, campaigns } = remaining;
    if context.output.json {
        let objects: Vec<_> = removed.iter().map(opt_out_json).collect();
        context.output.print_object(&json!({
            "phone": phone.to_string(), "removed": objects, "still": general.as_ref().map(opt_out_json),
            "warnings": warnings, "exit": exit::SUCCESS,
        }));
        return Ok(());
    }
    let mut text = String::new();
    for OptOut { scope, at, .. } in &removed {
        text += &match general {
            Some(_) => format!("removed the opt-out of +{phone} from {}", describe_scope(scope)),
            None => format!("+{phone} can get {} again", describe_allowed_messages(scope)),
        };
        text += &format!("; it had been on the list since {}\n", format_local_minute(*at));
    }
    if removed.is_empty() {
        let explanation = match (&terms.scope, &general) {
            (Some(scope), Some(_)) => format!("has no separate opt-out from {}", name_scope(scope)),
            (Some(scope), None) => format!("is not on the list for {}", name_scope(scope)),
            (None, _) => "is not on the list".to_owned(),
        };
        text = format!("+{phone} {explanation}; nothing was changed\n");
    }
    if let Some(general) = &general {
        text += &format!("  {}\n", describe_general_opt_out(general));
    } else if !campaigns.is_empty() {
        text += &format!("  The number is still opted out of {}.\n", join_names(campaigns.iter().map(String::as_str)));
    }
    context.output.print_done(&text, exit::SUCCESS);
    Ok(())
}

/// The opt-outs of a number that remain after those with the given scope are removed.
#[derive(Default)]
struct RemainingOptOuts {
    /// The opt-out from all campaigns that covers the most messages.
    general: Option<OptOut>,
    /// The names of the campaigns that the number opted out of.
    campaigns: Vec<String>,
}

async fn find_remaining_opt_outs(
    ledger: &dyn Ledger,
    phone: Phone,
    terms: &OptOutTerms,
) -> Result<RemainingOptOuts, CommandFailure> {
    let Some(scope) = &terms.scope else { return Ok(RemainingOptOuts::default()) };
    let mut entries = campaign_runs::list_opt_outs(ledger, phone, &OptOutTerms::default()).await?;
    entries.retain(|entry| entry.scope != *scope && entry.reach == OptOutReach::AllGateways);
    let campaigns = entries.iter().filter_map(|entry| entry.scope.campaign()).map(str::to_owned).collect();
    let general = entries.into_iter().filter(|entry| entry.scope.campaign().is_none());
    Ok(RemainingOptOuts { general: general.max_by_key(|entry| entry.scope == OptOutScope::All), campaigns })
}

fn describe_general_opt_out(general: &OptOut) -> String {
    let rest = match general.scope {
        OptOutScope::All => "The number is still opted out of all messages.",
        _ => "The number is still opted out of all campaigns and gets no marketing messages.",
    };
    format!("{rest} Remaining opt-out: {}", describe_opt_out(general).trim())
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
    let warnings = warn_about_unknown_campaign(context, ledger.as_ref(), terms.campaign()).await?;
    let imported = ImportedEntries::find(ledger.as_ref(), source, terms).await?;
    if imported.entries.is_empty() {
        return Err(unknown_import(source, &imported));
    }
    let (imports, forgotten) = (count_by_source(&imported.entries), imported.forgotten);
    let number = imported.entries.len() as u64;
    let entries = format_count(number, "opt-out");
    let change = format!("removing {entries} that {} added", format_count(imports.len() as u64, "import"));
    if args.yes {
        refuse_several_imports(context, source, &imports, &change)?;
    } else {
        require_confirmation(
            &context.output,
            removal_prompt(&imports, forgotten, number),
            &change,
            "Nothing was changed.",
        )
        .await?;
    }
    let removed = imported.remove(ledger.as_ref(), terms.reason.as_deref()).await?;
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
    text += &describe_forgotten_opt_outs(forgotten);
    text += "  If another imported list also contains some of these numbers, import that list again.\n";
    text += &format!("next: {}\n", context.output.command("suppress list".to_owned()));
    context.output.print_done(&text, exit::SUCCESS);
    Ok(())
}

/// Refuses a source that several imports share, because files in different folders can have the same name.
fn refuse_several_imports(
    context: &Context,
    source: &str,
    imports: &BTreeMap<String, u64>,
    change: &str,
) -> Result<(), CommandFailure> {
    let names: BTreeSet<&str> = imports.keys().map(|source| import_name(source)).collect();
    if names.len() < 2 {
        return Ok(());
    }
    let command =
        |name: &&str| context.output.command(format!("suppress remove --source {}", shell_path(Path::new(name))));
    let mut choices: Vec<String> = names.iter().take(MAX_SHOWN_IMPORTS).map(command).collect();
    if names.len() > choices.len() {
        choices.push(format!("and {} more", format_count((names.len() - choices.len()) as u64, "import")));
    }
    let source = escape_to_one_line(source);
    let reason = format!("{change}: `{source}` names several imports; nothing was changed");
    Err(CommandFailure::invalid(reason).with_help(format!("choose one import:\n  {}", choices.join("\n  "))))
}

/// Counts the entries of each import, by the source in the list.
fn count_by_source(entries: &[OptOut]) -> BTreeMap<String, u64> {
    let mut imports = BTreeMap::new();
    for entry in entries {
        *imports.entry(entry.source.to_string()).or_default() += 1;
    }
    imports
}

fn removal_prompt(imports: &BTreeMap<String, u64>, forgotten: u64, number: u64) -> ConfirmationPrompt {
    let (entries, import_count) = (format_count(number, "opt-out"), format_count(imports.len() as u64, "import"));
    let action = format!("remove {entries}");
    let mut prompt = ConfirmationPrompt::new(
        format!("Remove {entries} from {import_count}?"),
        ExpectedAnswer::Number(number),
        action,
    );
    for (index, (source, entries)) in imports.iter().take(MAX_SHOWN_IMPORTS).enumerate() {
        let label = if index == 0 { "imports" } else { "" };
        prompt.add_fact(label, [format!("{source} · {}", format_count(*entries, "opt-out")).into()]);
    }
    if imports.len() > MAX_SHOWN_IMPORTS {
        prompt.add_fact(
            "",
            [format!("and {} more", format_count((imports.len() - MAX_SHOWN_IMPORTS) as u64, "import")).into()],
        );
    }
    if imports.len() > 1 {
        prompt.add_note("To undo only one of these imports, pass its full source to `--source`.");
    }
    if forgotten > 0 {
        prompt.add_note(describe_forgotten_opt_outs(forgotten).trim());
    }
    prompt
        .with_note("These recipients might get messages again. Opt-outs from other sources, such as replies, are kept.")
}

fn describe_forgotten_opt_outs(forgotten: u64) -> String {
    match forgotten {
        0 => String::new(),
        _ => format!("  Kept on the list: {} of forgotten recipients.\n", format_count(forgotten, "opt-out")),
    }
}

/// The failure for an unknown source of an import, with the known sources.
fn unknown_import(source: &str, imported: &ImportedEntries) -> CommandFailure {
    let failure = CommandFailure::invalid(match imported.forgotten {
        0 => {
            format!("the list contains no opt-outs imported from `{}`; nothing was changed", escape_to_one_line(source))
        }
        _ => format!(
            "nothing was removed: all recipients from `{}` have been erased with `forget`, and their opt-outs stay on the list",
            escape_to_one_line(source)
        ),
    });
    let mut files: Vec<&str> = imported.sources.iter().filter_map(|source| source.split(", ").next()).collect();
    files.dedup();
    match did_you_mean(source, files.iter().copied()) {
        Some(near) => failure.with_help(format!("did you mean `{}`?", escape_to_one_line(near))),
        None if files.is_empty() => failure,
        None => {
            let listed: Vec<String> =
                files.iter().take(MAX_SHOWN_IMPORTS).map(|file| format!("`{}`", escape_to_one_line(file))).collect();
            failure.with_help(format!("imported files: {}", listed.join(", ")))
        }
    }
}
