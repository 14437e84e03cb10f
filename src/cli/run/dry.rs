//! `run --dry-run`: everything but sending.

use std::sync::Arc;
use std::time::Instant;

use super::ending::{left_out, run_again};
use crate::cli::context::Context;
use crate::cli::exit::{FINE, Failure, REJECTIONS};
use crate::cli::survey::{self, Inputs};
use crate::cli::target;
use crate::ledger::State;
use crate::report::{Listing, Summary, write_file};

pub(super) async fn dry_run(context: &Context, inputs: Arc<Inputs>, gateway: Option<&str>) -> Result<u8, Failure> {
    let began = Instant::now();
    let looked = survey::look(context, Arc::clone(&inputs)).await?;
    let campaign = &inputs.campaign;
    let results = target::of_campaign(context, campaign, campaign.dry_results_file())?;
    results.judge().map_err(|why| target::refuse(&why))?;
    let listing = Listing {
        recipients: &campaign.recipients,
        recipients_sha256: &looked.sha256,
        brief: &campaign.brief,
        run: "",
        kind: campaign.brief.content.kind,
        ids: None,
        orders: &[],
        left_out: &looked.survey.left_out,
        states: &[],
    };
    write_file(&results, &listing, None).await?;
    let counts = looked.survey.counts();
    let exit = if counts.get(State::Invalid) > 0 { REJECTIONS } else { FINE };
    let summary = Summary {
        run: None,
        campaign: campaign.brief.name.clone(),
        gateway: campaign.brief.gateway.clone(),
        endpoint: campaign.brief.endpoint.name(),
        rows: looked.survey.recipients,
        counts,
        parts: looked.survey.parts,
        time: began.elapsed(),
        stopped: None,
        results: Some(results.path().display().to_string()),
        exit,
        sandbox: serde_json::Value::Null,
        rehearsal: false,
        notes: left_out(&looked),
        next: context.output.command(run_again(&campaign.file, gateway)),
    };
    if context.output.json {
        context.output.object(&summary.json());
    } else {
        context.output.result(&summary.text());
    }
    Ok(exit)
}
