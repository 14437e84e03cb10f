//! `campaign suppress …`: who gets no marketing.

use std::io::{self, BufWriter, Write as _};

use jiff::Timestamp;

mod import;
mod remove;

use super::args::{ListedArgs, NumberArgs, SuppressCommand, TermsArgs};
use super::clock::minute;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::number;
use super::region::number_of_campaigns;
use super::screen::{Screen, Syntax};
use super::text::{Line, Text, plain, strong};
use crate::finding::{did_you_mean, list_all, one_line};
use crate::ledger::{Ledger, OptOut, Reach, Scope};
use crate::manifest::is_slug;
use crate::report::{ListingError, each_opt_out, export_opt_outs, opt_out_json, plural};
use crate::runs::{self, OptOutTerms};

pub(super) async fn suppress(context: &Context, command: SuppressCommand) -> Result<u8, Failure> {
    match command {
        SuppressCommand::Add(args) => add(context, &args).await?,
        SuppressCommand::Remove(args) => remove::remove(context, &args).await?,
        SuppressCommand::Import(args) => import::import(context, &args).await?,
        SuppressCommand::Export(args) => export(context, &args).await?,
        SuppressCommand::List(args) => list(context, &args).await?,
    }
    Ok(exit::FINE)
}

async fn add(context: &Context, args: &NumberArgs) -> Result<(), Failure> {
    let terms = terms(&args.terms)?;
    let phone =
        number_of_campaigns(context, &args.phone, (args.terms.region.as_deref(), args.terms.campaign.as_deref()))
            .await?;
    let ledger = context.ledger().await?;
    let warning = unknown_campaign(ledger.as_ref(), terms.campaign.as_deref()).await?;
    if let Some(warning) = &warning {
        context.output.warning(warning);
    }
    let (new, additions) = runs::suppress(ledger.as_ref(), phone, &terms, Timestamp::now()).await?;
    let known = additions.known.first();
    let entry = known.unwrap_or(&new);
    if context.output.json {
        let mut object = opt_out_json(entry);
        (object["added"], object["exit"]) = (known.is_none().into(), exit::FINE.into());
        object["warnings"] = Vec::from_iter(warning).into();
        context.output.object(&object);
        return Ok(());
    }
    let text = match known {
        None => {
            let meaning = format!(" opted out: no more marketing messages from {}", meaning(&new.scope));
            Text::from(Line::success([strong(format!("+{phone}")), plain(meaning)]))
        }
        Some(OptOut { at, reason, source, .. }) => {
            let (reason, source) = (one_line(reason), one_line(source));
            format!(
                "+{phone} has been on the list since {} ({reason}, source: {source}); nothing changed\n",
                minute(*at)
            )
            .into()
        }
    };
    context.output.done(text, exit::FINE);
    Ok(())
}

async fn export(context: &Context, args: &ListedArgs) -> Result<(), Failure> {
    let out = BufWriter::new(Screen::of(Syntax::Csv));
    match context.existing_ledger().await? {
        Some(ledger) => {
            warn_unknown(context, ledger.as_ref(), args).await?;
            written(export_opt_outs(ledger.as_ref(), args.campaign.as_deref(), out).await).map(|_| ())
        }
        None => Err(Failure::wrong("the suppression list is empty: there is no ledger yet")),
    }
}

async fn list(context: &Context, args: &ListedArgs) -> Result<(), Failure> {
    let (ledger, json) = (context.existing_ledger().await?, context.output.json);
    if let Some(ledger) = &ledger {
        warn_unknown(context, ledger.as_ref(), args).await?;
    }
    let mut out = BufWriter::new(Screen::of(if json { Syntax::Json } else { Syntax::Csv }));
    let (mut first, columns) = (true, context.output.columns());
    let mut tell = |opt_out: &OptOut| {
        let before = if std::mem::take(&mut first) { "" } else { "," };
        match json {
            true => write!(out, "{before}{}", opt_out_json(opt_out)),
            false => out.write_all(Text::from(line(opt_out)).render(columns, false).as_bytes()),
        }
    };
    if json {
        written(io::stdout().write_all(b"[").map_err(ListingError::from))?;
    }
    let told = match &ledger {
        Some(ledger) => written(each_opt_out(ledger.as_ref(), args.campaign.as_deref(), &mut tell).await)?,
        None => Some(0),
    };
    written(out.flush().map_err(ListingError::from))?;
    match json {
        true => context.output.verbatim("]\n"),
        false => context.output.done(format!("{}\n", plural(told.unwrap_or(0), "opt-out")), exit::FINE),
    }
    Ok(())
}

/// Somebody on the list, for a person.
fn line(opt_out: &OptOut) -> String {
    let who = opt_out.who.number().map_or_else(|| "a forgotten number".to_owned(), |phone| format!("+{phone}"));
    format!("{who} · {}", about(opt_out))
}

/// Out of what somebody opted, why, whence and since when.
pub(super) fn about(OptOut { scope, reach, reason, source, at, .. }: &OptOut) -> String {
    let (reason, source) = (one_line(reason), one_line(source));
    let where_it_holds = if *reach == Reach::LoopbackGateways { " · only for gateways on this machine" } else { "" };
    format!("{} · {reason} · source: {source} · since {}{where_it_holds}\n", meaning(scope), minute(*at))
}

/// What somebody opted out of, in words.
fn meaning(scope: &Scope) -> String {
    scope.campaign().map_or_else(|| "any campaign".to_owned(), |name| format!("the campaign {name}"))
}

/// Whoever reads no further has what they wanted.
fn written<T>(result: Result<T, ListingError>) -> Result<Option<T>, Failure> {
    match result {
        Ok(told) => Ok(Some(told)),
        Err(ListingError::Ledger(error)) => Err(error.into()),
        Err(ListingError::Written(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
        Err(ListingError::Written(error)) => Err(Failure::storage(format!("cannot write the list: {error}"))),
    }
}

/// Warns if a list is wanted of a campaign that the ledger does not know.
async fn warn_unknown(context: &Context, ledger: &dyn Ledger, args: &ListedArgs) -> Result<(), Failure> {
    if let Some(warning) = unknown_campaign(ledger, args.campaign.as_deref()).await? {
        context.output.warning(&warning);
    }
    Ok(())
}

/// Known campaigns that are named in a warning.
const NAMED: usize = 5;

/// What to tell if no campaign of this name has a run or a schedule, with the names nearest to it.
///
/// It warns and does not refuse: recipients may opt out before the first run.
async fn unknown_campaign(ledger: &dyn Ledger, name: Option<&str>) -> Result<Option<String>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let Some(others) = runs::other_campaigns(ledger, name).await? else { return Ok(None) };
    let near = did_you_mean(name, others.iter().map(String::as_str)).map(|near| format!("; did you mean `{near}`?"));
    let known = || list_all(others.iter().map(String::as_str).take(NAMED));
    let near = near.unwrap_or_else(|| match others.is_empty() {
        true => String::new(),
        false => format!("; campaigns in the ledger: {}", known()),
    });
    Ok(Some(format!("the ledger has no run or schedule for a campaign named `{}`{near}", one_line(name))))
}

fn terms(args: &TermsArgs) -> Result<OptOutTerms, Failure> {
    let TermsArgs { campaign, reason, region } = args;
    if let Some(name) = campaign.as_deref().filter(|name| !is_slug(name)) {
        let help = "use 1 to 64 characters from a-z, 0-9 and `-`";
        return Err(Failure::wrong(format!("`--campaign`: `{}` is not a valid campaign name; {help}", one_line(name))));
    }
    let (campaign, reason, region) = (campaign.clone(), reason.clone(), number::region(region.as_deref())?);
    Ok(OptOutTerms { campaign, reason, region, by: None })
}
