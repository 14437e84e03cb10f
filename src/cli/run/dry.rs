//! `run --dry-run`: everything except sending.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::divided::{describe_left_out, describe_variants};
use super::ending::{print_run_summary, run_arguments};
use super::summary::{RunSummary, Tone};
use crate::check::RunStart;
use crate::cli::args::RunArgs;
use crate::cli::context::Context;
use crate::cli::exit::{REJECTIONS, SUCCESS};
use crate::cli::failure::CommandFailure;
use crate::ledger::RowState;
use crate::report::describe_cost;
use crate::runs::{self, Inputs, ProtectedFiles};

pub(super) async fn rehearse_without_sending(
    context: &Context,
    inputs: Arc<Inputs>,
    args: &RunArgs,
) -> Result<u8, CommandFailure> {
    let (began, accept_changes) = (Instant::now(), args.accept_changes || args.moved);
    let (state, profiles, ledger) =
        (context.state_folder()?, context.profiles(), context.open_existing_ledger().await?);
    let inputs = context.fetch_list(inputs, true, ledger.as_deref()).await?;
    let files = ProtectedFiles { state: &state, profiles: &profiles };
    let waiting = context.output.show_spinner("Reading the list…");
    let dry = runs::dry_run(&inputs, ledger.as_deref(), files, accept_changes, &context.observer).await?;
    drop(waiting);
    let (campaign, survey) = (&inputs.campaign, &dry.survey.survey);
    let counts = survey.count_by_state();
    let exit = if counts.get(RowState::Invalid) > 0 { REJECTIONS } else { SUCCESS };
    let rows = survey.planned_rows();
    if !context.output.json {
        context.output.print_findings(&dry.survey.warnings(&inputs, RunStart::At(Timestamp::now())));
    }
    let mut notes = vec!["A dry run sends no messages.".to_owned()];
    notes.extend(describe_left_out(&survey.left_out));
    notes.extend(describe_variants(&campaign.brief, survey, &rows).map(|each| format!("variants: {each}")));
    if let (Some(profile), Some(cost)) = (inputs.destination.profile(), dry.survey.compute_cost(&inputs, &rows)) {
        notes.push(format!("a run {}", describe_cost(&cost, profile.currency.as_deref())));
    }
    let summary = RunSummary {
        run: None,
        campaign: campaign.brief.name.clone(),
        gateway: campaign.brief.gateway.clone(),
        endpoint: campaign.brief.endpoint.name(),
        rows: survey.recipients,
        counts,
        in_part: 0,
        sent: 0,
        opted_out: 0,
        parts: survey.parts,
        at_least: false,
        time: began.elapsed(),
        how: "dry run",
        tone: if exit == SUCCESS { Tone::Good } else { Tone::Caution },
        stopped: None,
        why: None,
        results: Some(dry.results.display().to_string()),
        sandbox: serde_json::Value::Null,
        later: serde_json::Value::Null,
        rehearsal: false,
        notes,
        next: context.output.command(tried_command(&campaign.file, args)),
    };
    print_run_summary(&context.output, &summary, exit);
    Ok(exit)
}

/// The arguments of the rehearsed run, with the options that it needs.
fn tried_command(file: &Path, args: &RunArgs) -> String {
    let RunArgs { gateway, now, accept_changes, moved, no_wait, up_to, .. } = args;
    let mut command = run_arguments(file, gateway.as_deref());
    let options =
        [(*now, "--now"), (*accept_changes, "--accept-changes"), (*moved, "--moved"), (*no_wait, "--no-wait")];
    for (_, option) in options.into_iter().filter(|(given, _)| *given) {
        command += &format!(" {option}");
    }
    if let Some(number) = up_to {
        command += &format!(" --up-to {number}");
    }
    command
}
