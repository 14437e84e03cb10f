//! `run --dry-run`: everything except sending.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::divided::{left_out, variants};
use super::ending::{print, run_again};
use super::summary::{Summary, Tone};
use crate::check::RunStart;
use crate::cli::args::RunArgs;
use crate::cli::context::Context;
use crate::cli::exit::{FINE, REJECTIONS};
use crate::cli::failure::Failure;
use crate::ledger::State;
use crate::report::cost_words;
use crate::runs::{self, Inputs, OwnFiles};

pub(super) async fn dry_run(context: &Context, inputs: Arc<Inputs>, args: &RunArgs) -> Result<u8, Failure> {
    let (began, accept_changes) = (Instant::now(), args.accept_changes || args.moved);
    let (state, profiles, ledger) = (context.state()?, context.profiles(), context.existing_ledger().await?);
    let inputs = context.listed(inputs, true, ledger.as_deref()).await?;
    let files = OwnFiles { state: &state, profiles: &profiles };
    let waiting = context.output.waiting("Reading the list…");
    let dry = runs::dry_run(&inputs, ledger.as_deref(), files, accept_changes, &context.observer).await?;
    drop(waiting);
    let (campaign, survey) = (&inputs.campaign, &dry.survey.survey);
    let counts = survey.counts();
    let exit = if counts.get(State::Invalid) > 0 { REJECTIONS } else { FINE };
    let rows = survey.planned_rows();
    if !context.output.json {
        context.output.findings(&dry.survey.warnings(&inputs, RunStart::At(Timestamp::now())));
    }
    let mut notes = vec!["A dry run sends no messages.".to_owned()];
    notes.extend(left_out(&survey.left_out));
    notes.extend(variants(&campaign.brief, survey, &rows).map(|each| format!("variants: {each}")));
    if let (Some(profile), Some(cost)) = (inputs.destination.profile(), dry.survey.cost(&inputs, &rows)) {
        notes.push(format!("a run {}", cost_words(&cost, profile.currency.as_deref())));
    }
    let summary = Summary {
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
        tone: if exit == FINE { Tone::Good } else { Tone::Caution },
        stopped: None,
        why: None,
        results: Some(dry.results.display().to_string()),
        sandbox: serde_json::Value::Null,
        later: serde_json::Value::Null,
        rehearsal: false,
        notes,
        next: context.output.command(run_as_tried(&campaign.file, args)),
    };
    print(&context.output, &summary, exit);
    Ok(exit)
}

/// The arguments of the rehearsed run, with the options that it needs.
fn run_as_tried(file: &Path, args: &RunArgs) -> String {
    let RunArgs { gateway, now, accept_changes, moved, no_wait, up_to, .. } = args;
    let mut command = run_again(file, gateway.as_deref());
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
