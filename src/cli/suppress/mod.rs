//! `campaign suppress …`: who gets no marketing.

use std::io::{self, BufWriter, Write as _};

use jiff::Timestamp;

mod import;
mod remove;

use super::args::{NumberArgs, SuppressCommand, SuppressListArgs, TermsArgs};
use super::clock::minute;
use super::context::Context;
use super::exit;
use super::failure::CommandFailure;
use super::number;
use super::region::parse_number_of_campaigns;
use super::screen::{RowOutput, RowSyntax};
use super::text::{StyledLine, StyledText, plain, strong};
use crate::finding::{did_you_mean, escape_to_one_line, join_names};
use crate::ledger::{Ledger, OptOut, OptOutReach, OptOutScope};
use crate::manifest::is_slug;
use crate::report::{OptOutExportError, export_opt_outs, for_each_opt_out, format_count, opt_out_json};
use crate::runs::{self, OptOutTerms};

pub(super) async fn run_suppress_command(context: &Context, command: SuppressCommand) -> Result<u8, CommandFailure> {
    match command {
        SuppressCommand::Add(args) => add_opt_out(context, &args).await?,
        SuppressCommand::Remove(args) => remove::remove_opt_outs(context, &args).await?,
        SuppressCommand::Import(args) => import::import_opt_outs(context, &args).await?,
        SuppressCommand::Export(args) => print_opt_outs(context, &args).await?,
        SuppressCommand::List(args) => list_opt_outs(context, &args).await?,
    }
    Ok(exit::SUCCESS)
}

async fn add_opt_out(context: &Context, args: &NumberArgs) -> Result<(), CommandFailure> {
    let terms = opt_out_terms(&args.terms)?;
    let phone =
        parse_number_of_campaigns(context, &args.phone, (args.terms.region.as_deref(), args.terms.campaign.as_deref()))
            .await?;
    let ledger = context.open_ledger().await?;
    let warning = describe_unknown_campaign(ledger.as_ref(), terms.campaign.as_deref()).await?;
    if let Some(warning) = &warning {
        context.output.print_warning(warning);
    }
    let (new, additions) = runs::add_opt_out(ledger.as_ref(), phone, &terms, Timestamp::now()).await?;
    let known = additions.known.first();
    let entry = known.unwrap_or(&new);
    if context.output.json {
        let mut object = opt_out_json(entry);
        (object["added"], object["exit"]) = (known.is_none().into(), exit::SUCCESS.into());
        object["warnings"] = Vec::from_iter(warning).into();
        context.output.print_object(&object);
        return Ok(());
    }
    let text = match known {
        None => {
            let meaning = format!(" opted out: no more marketing messages from {}", describe_scope(&new.scope));
            StyledText::from(StyledLine::success([strong(format!("+{phone}")), plain(meaning)]))
        }
        Some(OptOut { at, reason, source, .. }) => {
            let (reason, source) = (escape_to_one_line(reason), escape_to_one_line(source));
            format!(
                "+{phone} has been on the list since {} ({reason}, source: {source}); nothing changed\n",
                minute(*at)
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
            warn_unknown(context, ledger.as_ref(), args).await?;
            ignore_closed_pipe(export_opt_outs(ledger.as_ref(), args.campaign.as_deref(), out).await).map(|_| ())
        }
        None => Err(CommandFailure::invalid("the suppression list is empty: there is no ledger yet")),
    }
}

async fn list_opt_outs(context: &Context, args: &SuppressListArgs) -> Result<(), CommandFailure> {
    let (ledger, json) = (context.open_existing_ledger().await?, context.output.json);
    if let Some(ledger) = &ledger {
        warn_unknown(context, ledger.as_ref(), args).await?;
    }
    let mut out = BufWriter::new(RowOutput::stdout(if json { RowSyntax::Json } else { RowSyntax::Csv }));
    let (mut first, columns) = (true, context.output.terminal_width());
    let mut tell = |opt_out: &OptOut| {
        let before = if std::mem::take(&mut first) { "" } else { "," };
        match json {
            true => write!(out, "{before}{}", opt_out_json(opt_out)),
            false => out.write_all(StyledText::from(opt_out_line(opt_out)).render(columns, false).as_bytes()),
        }
    };
    if json {
        ignore_closed_pipe(io::stdout().write_all(b"[").map_err(OptOutExportError::from))?;
    }
    let told = match &ledger {
        Some(ledger) => {
            ignore_closed_pipe(for_each_opt_out(ledger.as_ref(), args.campaign.as_deref(), &mut tell).await)?
        }
        None => Some(0),
    };
    ignore_closed_pipe(out.flush().map_err(OptOutExportError::from))?;
    match json {
        true => context.output.print_verbatim("]\n"),
        false => context.output.print_done(format!("{}\n", format_count(told.unwrap_or(0), "opt-out")), exit::SUCCESS),
    }
    Ok(())
}

/// Somebody on the list, for a person.
fn opt_out_line(opt_out: &OptOut) -> String {
    let who = opt_out.who.phone().map_or_else(|| "a forgotten number".to_owned(), |phone| format!("+{phone}"));
    format!("{who} · {}", describe_opt_out(opt_out))
}

/// Out of what somebody opted, why, whence and since when.
pub(super) fn describe_opt_out(OptOut { scope, reach, reason, source, at, .. }: &OptOut) -> String {
    let (reason, source) = (escape_to_one_line(reason), escape_to_one_line(source));
    let where_it_holds =
        if *reach == OptOutReach::LoopbackGateways { " · only for gateways on this machine" } else { "" };
    format!("{} · {reason} · source: {source} · since {}{where_it_holds}\n", describe_scope(scope), minute(*at))
}

/// What somebody opted out of, in words.
fn describe_scope(scope: &OptOutScope) -> String {
    scope.campaign().map_or_else(|| "any campaign".to_owned(), |name| format!("the campaign {name}"))
}

/// Whoever reads no further has what they wanted.
fn ignore_closed_pipe<T>(result: Result<T, OptOutExportError>) -> Result<Option<T>, CommandFailure> {
    match result {
        Ok(told) => Ok(Some(told)),
        Err(OptOutExportError::Ledger(error)) => Err(error.into()),
        Err(OptOutExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
        Err(OptOutExportError::Write(error)) => {
            Err(CommandFailure::storage_failure(format!("cannot write the list: {error}")))
        }
    }
}

/// Warns if a list is wanted of a campaign that the ledger does not know.
async fn warn_unknown(context: &Context, ledger: &dyn Ledger, args: &SuppressListArgs) -> Result<(), CommandFailure> {
    if let Some(warning) = describe_unknown_campaign(ledger, args.campaign.as_deref()).await? {
        context.output.print_warning(&warning);
    }
    Ok(())
}

/// Known campaigns that are named in a warning.
const MAX_NAMED_CAMPAIGNS: usize = 5;

/// What to tell if no campaign of this name has a run or a schedule, with the names nearest to it.
///
/// It warns and does not refuse: recipients may opt out before the first run.
async fn describe_unknown_campaign(ledger: &dyn Ledger, name: Option<&str>) -> Result<Option<String>, CommandFailure> {
    let Some(name) = name else { return Ok(None) };
    let Some(others) = runs::list_other_campaigns(ledger, name).await? else { return Ok(None) };
    let near = did_you_mean(name, others.iter().map(String::as_str)).map(|near| format!("; did you mean `{near}`?"));
    let known = || join_names(others.iter().map(String::as_str).take(MAX_NAMED_CAMPAIGNS));
    let near = near.unwrap_or_else(|| match others.is_empty() {
        true => String::new(),
        false => format!("; campaigns in the ledger: {}", known()),
    });
    Ok(Some(format!("the ledger has no run or schedule for a campaign named `{}`{near}", escape_to_one_line(name))))
}

fn opt_out_terms(args: &TermsArgs) -> Result<OptOutTerms, CommandFailure> {
    let TermsArgs { campaign, reason, region } = args;
    if let Some(name) = campaign.as_deref().filter(|name| !is_slug(name)) {
        let help = "use 1 to 64 characters from a-z, 0-9 and `-`";
        return Err(CommandFailure::invalid(format!(
            "`--campaign`: `{}` is not a valid campaign name; {help}",
            escape_to_one_line(name)
        )));
    }
    let (campaign, reason, region) = (campaign.clone(), reason.clone(), number::parse_region(region.as_deref())?);
    Ok(OptOutTerms { campaign, reason, region, by: None })
}
