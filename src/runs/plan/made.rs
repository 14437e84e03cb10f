//! Making a plan: everything that can be known before a run, and the digest of it.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::account_rule::check_profile;
use super::planned::keep;
use super::{PlanOptions, PlannedCampaign};
use crate::check::online::Cost;
use crate::check::{Excluded, RunStart};
use crate::domain::Amount;
use crate::finding::Finding;
use crate::manifest::Resource;
use crate::report::Forecast;
use crate::runs::check_campaign::findings_of;
use crate::runs::exclude::excluded;
use crate::runs::freeze::frozen;
use crate::runs::hours::{refuse_never_sends, refuse_over};
use crate::runs::start::TodaysTexts;
use crate::runs::{
    Adapters, Error, Inputs, ListSurvey, OwnFiles, Request, Round, already_sent, blocking, capped, opted_out,
    refuse_start,
};

/// A plan that was made and kept.
#[derive(Debug)]
pub struct MadePlan {
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

impl MadePlan {
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
            resources: self.resources.iter().map(Resource::json).collect(),
        }
    }
}

/// Looks at the list of a campaign, to everybody of it `again` or to who has no message yet.
pub(super) async fn surveyed(adapters: &Adapters, inputs: &Arc<Inputs>, again: bool) -> Result<ListSurvey, Error> {
    let ledger = adapters.ledger.as_ref();
    let (already, cancelled, rows) = match again {
        true => Default::default(),
        false => {
            let edition = TodaysTexts::of(inputs).await?.edition;
            let sent = already_sent(ledger, inputs, &edition).await?;
            let cancelled = sent.cancelled(ledger).await?.numbers;
            let rows = sent.rows(ledger, inputs, (&cancelled, None)).await?;
            (sent.numbers, cancelled, rows)
        }
    };
    let opted_out = opted_out(ledger, inputs).await?.numbers;
    let capped = capped(ledger, inputs).await?;
    let excluded = excluded(Some(ledger), inputs, &adapters.observer).await?;
    let excluded = Excluded { already, rows, opted_out, cancelled, capped, excluded };
    let inputs = Arc::clone(inputs);
    blocking(move || inputs.survey(&excluded, None)).await?
}

/// Looks at everything as before a run, and keeps what it would send for thirty days.
///
/// # Errors
/// Why it could not be sent as it stands.
pub async fn plan(adapters: &Adapters, inputs: &Arc<Inputs>, request: &Request) -> Result<MadePlan, Error> {
    let ledger = adapters.ledger.as_ref();
    let files = OwnFiles { state: &adapters.state, profiles: &adapters.profiles };
    if let Some(finding) = files.finding(inputs) {
        return Err(Error::Findings(vec![finding]));
    }
    let now = (adapters.clock)();
    // An occurrence is planned when it is due. Other plans are of a later run, on the dates of the schedule if there are any.
    let start = match (&request.occurrence, inputs.campaign.due_after(now)) {
        (None, Some(_)) => RunStart::Scheduled(now),
        (Some(_), _) | (None, None) => RunStart::At(now),
    };
    refuse_over(inputs, now)?;
    refuse_start(ledger, inputs).await?;
    if let Some(profile) = inputs.destination.profile() {
        check_profile(adapters, profile).await?;
    }
    let list = surveyed(adapters, inputs, request.round != Round::Same).await?;
    let survey = &list.survey;
    refuse_never_sends(inputs, survey, start)?;
    let chosen = request.chosen(&survey.planned_rows(), survey.last_row)?;
    request.check_number(inputs.destination.profile(), survey.planned())?;
    let (planned, cost) = planned(inputs, &list, (&chosen, request));
    let digest = keep(adapters, planned.clone(), &inputs.destination).await?;
    let findings = findings_of(inputs, Some(&list), start);
    let due = inputs.campaign.due_after(now);
    let forecast = Forecast::of(&inputs.campaign, inputs.destination.profile(), (&list.survey, &chosen), due);
    let resources = inputs.campaign.resources(inputs.destination.profile());
    Ok(MadePlan { digest, planned, list, forecast, cost, findings, resources })
}

/// What a run to these rows would be, and what it costs where the profile has prices.
pub(super) fn planned(
    inputs: &Inputs,
    list: &ListSurvey,
    (chosen, request): (&RoaringBitmap, &Request),
) -> (PlannedCampaign, Option<Cost>) {
    let (survey, cost) = (&list.survey, list.cost(inputs, chosen));
    let parts = survey.by_size.iter().map(|(size, rows)| size.parts() * rows.intersection_len(chosen)).sum();
    let currency = inputs.destination.profile().and_then(|profile| profile.currency.clone());
    let planned = PlannedCampaign {
        inputs: frozen(inputs, list),
        addresses: crate::runs::armed::addresses(&inputs.destination),
        account: inputs.destination.account().to_owned(),
        options: PlanOptions::of(request, inputs),
        rows: survey.recipients,
        messages: chosen.len(),
        counts: survey.counts(),
        parts,
        cost: match &cost {
            Some(Cost::AtMost(cost)) => Some(*cost),
            _ => None,
        },
        currency,
    };
    (planned, cost)
}
