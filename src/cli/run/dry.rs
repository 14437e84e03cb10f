//! `run --dry-run`: everything but sending.

use std::sync::Arc;
use std::time::Instant;

use super::divided::{left_out, variants};
use super::ending::{print, run_again};
use super::summary::Summary;
use crate::cli::context::Context;
use crate::cli::exit::{FINE, REJECTIONS};
use crate::cli::failure::Failure;
use crate::ledger::State;
use crate::report::cost_words;
use crate::runs::{self, Inputs, OwnFiles};

pub(super) async fn dry_run(
    context: &Context,
    inputs: Arc<Inputs>,
    gateway: Option<&str>,
    accept_changes: bool,
) -> Result<u8, Failure> {
    let began = Instant::now();
    let (state, profiles, ledger) = (context.state()?, context.profiles(), context.existing_ledger().await?);
    let inputs = context.listed(inputs, true, ledger.as_deref()).await?;
    let files = OwnFiles { state: &state, profiles: &profiles };
    let dry = runs::dry_run(&inputs, ledger.as_deref(), files, accept_changes, &context.observer).await?;
    let (campaign, survey) = (&inputs.campaign, &dry.survey.survey);
    let counts = survey.counts();
    let exit = if counts.get(State::Invalid) > 0 { REJECTIONS } else { FINE };
    let mut notes = left_out(&dry.survey);
    notes.extend(variants(&campaign.brief, survey));
    if let (Some(profile), Some(cost)) =
        (inputs.destination.profile(), dry.survey.cost(&inputs, &survey.planned_rows()))
    {
        notes.push(format!("this {}", cost_words(&cost, profile.currency.as_deref())));
    }
    let summary = Summary {
        run: None,
        campaign: campaign.brief.name.clone(),
        gateway: campaign.brief.gateway.clone(),
        endpoint: campaign.brief.endpoint.name(),
        rows: survey.recipients,
        counts,
        sent: 0,
        opted_out: 0,
        parts: survey.parts,
        at_least: false,
        time: began.elapsed(),
        how: "dry run: nothing was sent".to_owned(),
        stopped: None,
        why: None,
        results: Some(dry.results.display().to_string()),
        sandbox: serde_json::Value::Null,
        later: serde_json::Value::Null,
        rehearsal: false,
        notes,
        next: context.output.command(run_again(&campaign.file, gateway)),
    };
    print(&context.output, &summary, exit);
    Ok(exit)
}
