//! `campaign run`: sends a campaign, or goes on where it stopped.

mod divided;
mod dry;
mod due;
mod ending;
mod following;
mod played;
mod summary;

pub(super) use divided::describe_variants;

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::args::RunArgs;
use super::consent;
use super::context::Context;
use super::failure::CommandFailure;
use super::{sandbox, suggested};
use crate::calendar::Occurrence;
use crate::delivery::{Interrupt, SingleKind};
use crate::ledger::Ledger;
use crate::manifest::Profile;
use crate::notify::{self, AllowedPrograms};
use crate::runs::{
    Error, Inputs, Launch, ProtectedFiles, RetryScope, Round, RunRequest, find_occurrence, load_occurrence,
};
use ending::OutcomePrinter;

pub(super) async fn run_campaign(context: &Context, args: RunArgs) -> Result<u8, CommandFailure> {
    if let Some(single) = args.file.to_str().and_then(SingleKind::from_name).filter(|_| !args.file.exists()) {
        return Err(Error::NoCampaign(single).into());
    }
    let (inputs, occurrence) = due::load_due_campaign(context, &args).await?;
    if !context.output.json {
        context.output.print_findings(&inputs.warnings);
    }
    if args.dry_run {
        return dry::rehearse_without_sending(context, inputs, &args).await;
    }
    if args.real_time && inputs.destination.is_live() {
        return Err(CommandFailure::invalid(
            "`--real-time` is only for rehearsals; a live run always sends at its rate",
        ));
    }
    if args.real_time && inputs.campaign.delivery.rate.is_none() {
        let help = "add `delivery: { rate: 10/s }` to the campaign, with your account's rate";
        return Err(CommandFailure::invalid("`--real-time` needs a rate, but the campaign has none").with_help(help));
    }
    if args.scenario.is_some() && inputs.destination.is_live() {
        let help = "add `--gateway sandbox`, or use the scenario with `campaign sandbox --scenario FILE`";
        return Err(
            CommandFailure::invalid("`--scenario` is only for rehearsals on the built-in sandbox").with_help(help)
        );
    }
    if args.shared && !inputs.destination.is_live() {
        let help = "add `--gateway NAME`; to rehearse, start `campaign sandbox`";
        return Err(
            CommandFailure::invalid("`--shared` needs a gateway that other processes can also reach").with_help(help)
        );
    }
    let scenario = args.scenario.as_deref().map(|file| sandbox::load_scenario_file(context, Some(file))).transpose()?;
    if args.yes && args.gateway.is_none() && !inputs.campaign.has_gateway_key() {
        return Err(Error::NoGatewayNamed.into());
    }
    let RunArgs { yes, limit, rows, gateway, again, accept_changes, up_to, .. } = args;
    let request = RunRequest {
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
        schedule_digest: None,
        scenario,
    };
    let launch = prepare_launch(context, Arc::clone(&inputs), request)?;
    let adapters = context.adapters(context.open_ledger_for(&launch).await?)?;
    let ledger = Arc::clone(&adapters.ledger);
    let waiting = context.output.show_spinner("Preparing the run…");
    let outcome = launch.run(adapters, consent::consent_for(&context.output, yes), context.watch_signals()?).await?;
    drop(waiting);
    let code = outcome_printer(context, &inputs, gateway.as_deref()).print_outcome(outcome, args.real_time);
    send_notifications(context, ledger.as_ref()).await?;
    Ok(code)
}

/// Sends rejected rows of a run again, as new messages; `gateway` is what the run went through.
pub(super) async fn retry_rows(
    context: &Context,
    (file, gateway): (&Path, String),
    (scope, request): (RetryScope, RunRequest),
    yes: bool,
) -> Result<u8, CommandFailure> {
    let occurrence = match context.open_existing_ledger().await? {
        Some(ledger) => find_occurrence(ledger.as_ref(), scope.run).await?,
        None => None,
    };
    let inputs = load_inputs(context, (file, Some(&gateway)), occurrence.as_ref())?;
    let launch = prepare_launch(context, Arc::clone(&inputs), request)?;
    let adapters = context.adapters(context.open_ledger_for(&launch).await?)?;
    let ledger = Arc::clone(&adapters.ledger);
    let waiting = context.output.show_spinner("Preparing the retry…");
    let outcome =
        launch.retry(adapters, consent::consent_for(&context.output, yes), context.watch_signals()?, scope).await?;
    drop(waiting);
    let code = outcome_printer(context, &inputs, Some(&gateway)).print_outcome(outcome, false);
    send_notifications(context, ledger.as_ref()).await?;
    Ok(code)
}

/// Tells those who want to know how runs went, for a moment; whatever comes of it, the run went as it went.
async fn send_notifications(context: &Context, ledger: &dyn Ledger) -> Result<(), CommandFailure> {
    let mut interrupt = context.watch_signals()?;
    tokio::select! {
        told = notify::notify_at_run_end(ledger, Timestamp::now, &AllowedPrograms::All) => {
            if let Err(error) = told {
                tracing::warn!("cannot send notifications: {error}");
            }
        }
        _ = interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::Immediate(_))) => {}
    }
    Ok(())
}

fn outcome_printer<'a>(context: &'a Context, inputs: &'a Inputs, gateway: Option<&'a str>) -> OutcomePrinter<'a> {
    let found = context.profiles().load(Some(&inputs.campaign.file));
    // One on this machine reaches nobody, unless it plays the part of the real one.
    let live = |profile: &&Profile| !profile.is_loopback() || profile.name == suggested::LIVE_GATEWAY;
    let mut live: Vec<String> =
        found.iter().flat_map(|found| found.profiles()).filter(live).map(|profile| profile.name.clone()).collect();
    // What the campaign names is meant, wherever it is.
    if found.is_ok_and(|found| found.profile_names().any(|name| name == inputs.own_gateway)) {
        live = vec![inputs.own_gateway.clone()];
    }
    OutcomePrinter { output: &context.output, inputs, gateway, live }
}

/// The campaign that is sent, as of now or as an occurrence of its schedule, whose results have a place.
fn load_inputs(
    context: &Context,
    (file, gateway): (&Path, Option<&str>),
    occurrence: Option<&Occurrence>,
) -> Result<Arc<Inputs>, CommandFailure> {
    let (state, profiles) = (context.state_folder()?, context.profiles());
    let inputs = match occurrence {
        Some(occurrence) => Arc::new(load_occurrence(&profiles, (file, gateway), occurrence)?),
        None => context.load_campaign(file, gateway)?,
    };
    match (ProtectedFiles { state: &state, profiles: &profiles }).check_results_target(&inputs) {
        Some(finding) => Err(Error::Findings(vec![finding]).into()),
        None => Ok(inputs),
    }
}

fn prepare_launch(context: &Context, inputs: Arc<Inputs>, request: RunRequest) -> Result<Launch, CommandFailure> {
    let (state, profiles) = (context.state_folder()?, context.profiles());
    let launch = Launch::prepare(inputs, request, ProtectedFiles { state: &state, profiles: &profiles })?;
    // Listened to before the ledger is touched.
    context.watch_signals()?;
    Ok(launch)
}
