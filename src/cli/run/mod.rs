//! `campaign run`: sends a campaign, or goes on where it stopped.

mod divided;
mod dry;
mod due;
mod ending;
mod following;
mod played;
mod summary;

pub(super) use divided::variants;

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::args::RunArgs;
use super::consent;
use super::context::Context;
use super::failure::Failure;
use super::{sandbox, suggested};
use crate::calendar::Occurrence;
use crate::delivery::{Interrupt, SingleKind};
use crate::ledger::Ledger;
use crate::manifest::Profile;
use crate::notify::{self, Programs};
use crate::runs::{Error, Inputs, Launch, OwnFiles, Request, RetryScope, Round, load_occurrence, occurrence_of};
use ending::Words;

pub(super) async fn run(context: &Context, args: RunArgs) -> Result<u8, Failure> {
    if let Some(single) = args.file.to_str().and_then(SingleKind::named).filter(|_| !args.file.exists()) {
        return Err(Error::NoCampaign(single).into());
    }
    let (inputs, occurrence) = due::loaded(context, &args).await?;
    if !context.output.json {
        context.output.findings(&inputs.warnings);
    }
    if args.dry_run {
        return dry::dry_run(context, inputs, &args).await;
    }
    if args.real_time && inputs.destination.is_live() {
        return Err(Failure::wrong("`--real-time` is only for rehearsals; a live run always sends at its rate"));
    }
    if args.real_time && inputs.campaign.delivery.rate.is_none() {
        let help = "add `delivery: { rate: 10/s }` to the campaign, with your account's rate";
        return Err(Failure::wrong("`--real-time` needs a rate, but the campaign has none").with_help(help));
    }
    if args.scenario.is_some() && inputs.destination.is_live() {
        let help = "add `--gateway sandbox`, or use the scenario with `campaign sandbox --scenario FILE`";
        return Err(Failure::wrong("`--scenario` is only for rehearsals on the built-in sandbox").with_help(help));
    }
    if args.shared && !inputs.destination.is_live() {
        let help = "add `--gateway NAME`; to rehearse, start `campaign sandbox`";
        return Err(Failure::wrong("`--shared` needs a gateway that other processes can also reach").with_help(help));
    }
    let scenario = args.scenario.as_deref().map(|file| sandbox::scenario(context, Some(file))).transpose()?;
    if args.yes && args.gateway.is_none() && !inputs.campaign.names_gateway() {
        return Err(Error::NoGatewayNamed.into());
    }
    let RunArgs { yes, limit, rows, gateway, again, accept_changes, up_to, .. } = args;
    let request = Request {
        rows,
        limit,
        round: again.map_or(Round::Same, Round::Again),
        accept_changes,
        moved: args.moved,
        up_to,
        keep_going: args.keep_going,
        offline: args.offline,
        real_time: args.real_time,
        no_wait: args.no_wait,
        shared: args.shared,
        new_ledger: args.new_ledger,
        accept_duplicates: args.i_accept_duplicates,
        occurrence,
        plan: args.plan,
        approved_only: false,
        approval: args.approval,
        armed: None,
        scenario,
    };
    let launch = launch(context, Arc::clone(&inputs), request)?;
    let adapters = context.adapters(context.ledger_for(&launch).await?)?;
    let ledger = Arc::clone(&adapters.ledger);
    let waiting = context.output.waiting("Preparing the run…");
    let outcome = launch.run(adapters, consent::of(&context.output, yes), context.interrupt()?).await?;
    drop(waiting);
    let code = words(context, &inputs, gateway.as_deref()).tell(outcome, args.real_time);
    notify_others(context, ledger.as_ref()).await?;
    Ok(code)
}

/// Sends rejected rows of a run again, as new messages; `gateway` is what the run went through.
pub(super) async fn retry(
    context: &Context,
    (file, gateway): (&Path, String),
    (scope, request): (RetryScope, Request),
    yes: bool,
) -> Result<u8, Failure> {
    let occurrence = match context.existing_ledger().await? {
        Some(ledger) => occurrence_of(ledger.as_ref(), scope.run).await?,
        None => None,
    };
    let inputs = inputs(context, (file, Some(&gateway)), occurrence.as_ref())?;
    let launch = launch(context, Arc::clone(&inputs), request)?;
    let adapters = context.adapters(context.ledger_for(&launch).await?)?;
    let ledger = Arc::clone(&adapters.ledger);
    let waiting = context.output.waiting("Preparing the retry…");
    let outcome = launch.retry(adapters, consent::of(&context.output, yes), context.interrupt()?, scope).await?;
    drop(waiting);
    let code = words(context, &inputs, Some(&gateway)).tell(outcome, false);
    notify_others(context, ledger.as_ref()).await?;
    Ok(code)
}

/// Tells those who want to know how runs went, for a moment; whatever comes of it, the run went as it went.
async fn notify_others(context: &Context, ledger: &dyn Ledger) -> Result<(), Failure> {
    let mut interrupt = context.interrupt()?;
    tokio::select! {
        told = notify::tell_at_end(ledger, Timestamp::now, &Programs::All) => {
            if let Err(error) = told {
                tracing::warn!("cannot send notifications: {error}");
            }
        }
        _ = interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::AtOnce(_))) => {}
    }
    Ok(())
}

fn words<'a>(context: &'a Context, inputs: &'a Inputs, gateway: Option<&'a str>) -> Words<'a> {
    let found = context.profiles().load(Some(&inputs.campaign.file));
    // One on this machine reaches nobody, unless it plays the part of the real one.
    let live = |profile: &&Profile| !profile.is_loopback() || profile.name == suggested::LIVE;
    let mut live: Vec<String> =
        found.iter().flat_map(|found| found.profiles()).filter(live).map(|profile| profile.name.clone()).collect();
    // What the campaign names is meant, wherever it is.
    if found.is_ok_and(|found| found.names().any(|name| name == inputs.own_gateway)) {
        live = vec![inputs.own_gateway.clone()];
    }
    Words { output: &context.output, inputs, gateway, live }
}

/// The campaign that is sent, as of now or as an occurrence of its schedule, whose results have a place.
fn inputs(
    context: &Context,
    (file, gateway): (&Path, Option<&str>),
    occurrence: Option<&Occurrence>,
) -> Result<Arc<Inputs>, Failure> {
    let (state, profiles) = (context.state()?, context.profiles());
    let inputs = match occurrence {
        Some(occurrence) => Arc::new(load_occurrence(&profiles, (file, gateway), occurrence)?),
        None => context.load(file, gateway)?,
    };
    match (OwnFiles { state: &state, profiles: &profiles }).finding(&inputs) {
        Some(finding) => Err(Error::Findings(vec![finding]).into()),
        None => Ok(inputs),
    }
}

fn launch(context: &Context, inputs: Arc<Inputs>, request: Request) -> Result<Launch, Failure> {
    let (state, profiles) = (context.state()?, context.profiles());
    let launch = Launch::of(inputs, request, OwnFiles { state: &state, profiles: &profiles })?;
    // Listened to before the ledger is touched.
    context.interrupt()?;
    Ok(launch)
}
