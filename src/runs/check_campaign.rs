//! Everything that can be known of a campaign before it is sent, without asking its gateway.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Error, Inputs, ListSurvey, Observer, OwnFiles, refuse_start, survey_list, unfamiliar_ledger_warning};
use crate::check::online::Cost;
use crate::check::{
    RunStart, against_includes, invalid_rows, list_form, no_messages, notes, promised_receipts, timing_findings,
    unconfirmed_replica,
};
use crate::finding::{Finding, rules};
use crate::ledger::Ledger;
use crate::manifest::KeySource;

/// What a look at a campaign found.
#[derive(Debug)]
pub struct CheckedCampaign {
    /// What is wrong, and what is worth knowing.
    pub findings: Vec<Finding>,
    /// What is known of its recipients.
    pub list: ListSurvey,
    /// What its messages cost, where the profile has prices.
    pub cost: Option<Cost>,
    /// The currency of those.
    pub currency: Option<String>,
    /// Why `run` would refuse to send, if it would; one of the findings says so.
    pub refused: Option<Error>,
}

/// Looks at a campaign and at all its recipients, with what the ledger knows, if there is one.
///
/// # Errors
/// When its inputs are wrong, so that nothing more can be known, or the ledger cannot be read.
pub async fn check_campaign(
    inputs: &Arc<Inputs>,
    ledger: Option<&dyn Ledger>,
    files: OwnFiles<'_>,
    (observer, now): (&Observer, Timestamp),
) -> Result<CheckedCampaign, Error> {
    let start = RunStart::of(&inputs.campaign, now);
    let (list, mut findings) = match survey_list(inputs, ledger, observer).await {
        Ok(list) => {
            let findings = findings_of(inputs, Some(&list), start);
            (Some(list), findings)
        }
        // Problems of the list or the texts do not hide findings that do not depend on them.
        Err(Error::Findings(found)) => {
            let mut findings = findings_of(inputs, None, start);
            findings.retain(|finding| !found.contains(finding));
            findings.extend(found);
            (None, findings)
        }
        Err(error) => return Err(error),
    };
    findings.extend(files.finding(inputs));
    let Some(list) = list else { return Err(Error::Findings(findings)) };
    if let Some(ledger) = ledger {
        findings.extend(findings_of_ledger(inputs, ledger, now).await?);
    }
    let refused = match ledger {
        Some(ledger) => refuse_start(ledger, inputs).await.err(),
        None => None,
    };
    findings.extend(refused.as_ref().map(|refused| Finding::new(&rules::RUN_REFUSED, refused.to_string())));
    let cost = list.cost(inputs, &list.survey.planned_rows());
    let currency = inputs.destination.profile().and_then(|profile| profile.currency.clone());
    Ok(CheckedCampaign { findings, list, cost, currency, refused })
}

/// Findings about the ledger before a run.
pub(super) async fn findings_of_ledger(
    inputs: &Inputs,
    ledger: &dyn Ledger,
    now: Timestamp,
) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    if inputs.destination.is_live() {
        findings.extend(unconfirmed_replica(ledger.unconfirmed_replicas().await?));
    }
    if inputs.destination.remote().is_some() {
        findings.extend(unfamiliar_ledger_warning(ledger, now).await?);
    }
    Ok(findings)
}

/// Findings about a campaign and its list, if the list is known: warnings, a missing key, invalid rows, and whether messages can
/// leave in a run that starts then.
pub(super) fn findings_of(inputs: &Inputs, list: Option<&ListSurvey>, start: RunStart) -> Vec<Finding> {
    let profile = inputs.destination.profile();
    let mut findings = inputs.warnings.clone();
    let missing = profile.and_then(|profile| missing_key(&profile.api_key));
    findings.extend(missing.map(|why| Finding::new(&rules::API_KEY, why)));
    findings.extend(profile.map(|profile| promised_receipts(&inputs.campaign, profile)).unwrap_or_default());
    match list {
        Some(list) => {
            findings.extend(invalid_rows(&list.survey));
            findings.extend(no_messages(&list.survey, &inputs.campaign.brief));
            findings.extend(list.form.as_deref().map(|form| list_form(&inputs.campaign.recipients, form)));
            findings.extend(list.warnings(inputs, start));
            findings.extend(against_includes(&list.includes, &inputs.campaign));
        }
        None => findings.extend(timing_findings(&inputs.campaign, profile, None, start)),
    }
    let due = match start {
        RunStart::Scheduled(now) => inputs.campaign.due_after(now),
        RunStart::At(_) => None,
    };
    findings.extend(notes(&inputs.campaign, profile, list.map(|list| &list.survey), due));
    findings
}

/// Why there is no key to send with yet; it never shows any part of one.
fn missing_key(source: &KeySource) -> Option<String> {
    source.read("the API key (`api_key`)", &|name| std::env::var(name).ok()).err()
}
