//! Making a plan: everything that can be known before a run, and the digest of it.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::account_rule::check_profile;
use super::planned::store_plan;
use super::{PlanOptions, PlannedCampaign};
use crate::check::online::Cost;
use crate::check::{RunStart, SurveyExclusions};
use crate::domain::Amount;
use crate::finding::Finding;
use crate::manifest::Resource;
use crate::report::Forecast;
use crate::runs::check_campaign::check_inputs;
use crate::runs::exclude::find_excluded;
use crate::runs::freeze::freeze_inputs;
use crate::runs::hours::{refuse_expired, refuse_unsendable_run};
use crate::runs::start::TodaysTexts;
use crate::runs::{
    Adapters, Error, Inputs, ListSurvey, ProtectedFiles, Round, RunRequest, find_capped, find_opted_out,
    find_sent_recipients, refuse_start, run_blocking,
};

/// A plan that was made and kept.
#[derive(Debug)]
pub struct CreatedPlan {
    /// Its digest.
    pub digest: String,
    /// What it is of.
    pub planned: PlannedCampaign,
    /// What was found in the list.
    pub list: ListSurvey,
    /// What it would do.
    pub forecast: Forecast,
    /// What the messages cost, where the profile has prices.
    pub cost: Option<Cost>,
    /// What is worth knowing and refuses nothing.
    pub findings: Vec<Finding>,
    /// The programs, addresses and sources that the campaign uses.
    pub resources: Vec<Resource>,
}

/// What `plan --json` prints, and other surfaces tell.
#[derive(Debug, serde::Serialize)]
pub struct PlanFigures {
    /// The digest of the plan.
    pub digest: String,
    /// The rows of the list.
    pub rows: u64,
    /// Them by what becomes of them.
    pub counts: serde_json::Value,
    /// How many people get a message.
    pub messages: u64,
    /// How many parts the messages have.
    pub parts: u64,
    /// What they cost at most; nothing where that is not known.
    pub cost: Option<Amount>,
    /// The currency of that.
    pub currency: Option<String>,
    /// The policy for rows in doubt.
    pub on_in_doubt: &'static str,
    /// The programs, addresses and sources that the campaign uses.
    pub resources: Vec<serde_json::Value>,
}

impl CreatedPlan {
    /// Its figures.
    #[must_use]
    pub fn figures(&self) -> PlanFigures {
        let PlannedCampaign { rows, messages, counts, parts, cost, currency, options, .. } = &self.planned;
        PlanFigures {
            digest: self.digest.clone(),
            rows: *rows,
            counts: crate::report::counts_json(counts),
            messages: *messages,
            parts: *parts,
            cost: *cost,
            currency: currency.clone(),
            on_in_doubt: options.on_in_doubt.unwrap_or_default().name(),
            resources: self.resources.iter().map(Resource::to_json).collect(),
        }
    }
}

/// Looks at the list of a campaign, to everybody of it `again` or to who has no message yet.
pub(super) async fn survey_for_plan(
    adapters: &Adapters,
    inputs: &Arc<Inputs>,
    again: bool,
) -> Result<ListSurvey, Error> {
    let ledger = adapters.ledger.as_ref();
    let (already, cancelled, rows) = match again {
        true => Default::default(),
        false => {
            let edition = TodaysTexts::compile(inputs).await?.edition;
            let sent = find_sent_recipients(ledger, inputs, &edition).await?;
            let cancelled = sent.find_cancelled(ledger).await?.numbers;
            let rows = sent.find_sent_rows(ledger, inputs, (&cancelled, None)).await?;
            (sent.numbers, cancelled, rows)
        }
    };
    let opted_out = find_opted_out(ledger, inputs).await?.numbers;
    let capped = find_capped(ledger, inputs).await?;
    let excluded = find_excluded(Some(ledger), inputs, &adapters.observer).await?;
    let excluded = SurveyExclusions { already_sent: already, rows, opted_out, cancelled, capped, excluded };
    let inputs = Arc::clone(inputs);
    run_blocking(move || inputs.survey_recipients(&excluded, None)).await?
}

/// Looks at everything as before a run, and keeps what it would send for thirty days.
///
/// # Errors
/// Why it could not be sent as it stands.
pub async fn create_plan(
    adapters: &Adapters,
    inputs: &Arc<Inputs>,
    request: &RunRequest,
) -> Result<CreatedPlan, Error> {
    let ledger = adapters.ledger.as_ref();
    let files = ProtectedFiles { state: &adapters.state, profiles: &adapters.profiles };
    if let Some(finding) = files.check_results_target(inputs) {
        return Err(Error::Findings(vec![finding]));
    }
    let now = (adapters.clock)();
    // An occurrence is planned when it is due. Other plans are of a later run, on the dates of the schedule if there are any.
    let start = match (&request.occurrence, inputs.campaign.next_due_after(now)) {
        (None, Some(_)) => RunStart::Scheduled(now),
        (Some(_), _) | (None, None) => RunStart::At(now),
    };
    refuse_expired(inputs, now)?;
    refuse_start(ledger, inputs).await?;
    if let Some(profile) = inputs.destination.profile() {
        check_profile(adapters, profile).await?;
    }
    let list = survey_for_plan(adapters, inputs, request.round != Round::Same).await?;
    let survey = &list.survey;
    refuse_unsendable_run(inputs, survey, start)?;
    let chosen = request.choose_rows(&survey.planned_rows(), survey.last_row)?;
    request.check_recipient_count(inputs.destination.profile(), survey.count_planned())?;
    let (planned, cost) = plan_campaign(inputs, &list, (&chosen, request));
    let digest = store_plan(adapters, planned.clone(), &inputs.destination).await?;
    let findings = check_inputs(inputs, Some(&list), start);
    let due = inputs.campaign.next_due_after(now);
    let forecast = Forecast::for_rows(&inputs.campaign, inputs.destination.profile(), (&list.survey, &chosen), due);
    let resources = inputs.campaign.list_resources(inputs.destination.profile());
    Ok(CreatedPlan { digest, planned, list, forecast, cost, findings, resources })
}

/// What a run to these rows would be, and what it costs where the profile has prices.
pub(super) fn plan_campaign(
    inputs: &Inputs,
    list: &ListSurvey,
    (chosen, request): (&RoaringBitmap, &RunRequest),
) -> (PlannedCampaign, Option<Cost>) {
    let (survey, cost) = (&list.survey, list.compute_cost(inputs, chosen));
    let parts = survey.by_size.iter().map(|(size, rows)| size.billed_parts() * rows.intersection_len(chosen)).sum();
    let currency = inputs.destination.profile().and_then(|profile| profile.currency.clone());
    let planned = PlannedCampaign {
        inputs: freeze_inputs(inputs, list),
        addresses: crate::runs::armed::format_addresses(&inputs.destination),
        account: inputs.destination.account_name().to_owned(),
        options: PlanOptions::from_request(request, inputs),
        rows: survey.recipients,
        messages: chosen.len(),
        counts: survey.count_by_state(),
        parts,
        cost: match &cost {
            Some(Cost::AtMost(cost)) => Some(*cost),
            _ => None,
        },
        currency,
    };
    (planned, cost)
}
