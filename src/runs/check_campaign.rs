//! Everything that can be known of a campaign before it is sent, without asking its gateway.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Error, Inputs, ListSurvey, ProtectedFiles, RunObserver, refuse_start, survey_list, unfamiliar_ledger_warning,
};
use crate::check::online::Cost;
use crate::check::{
    RunStart, check_includes, check_invalid_rows, check_no_messages, check_promised_receipts, check_replicas,
    check_timing, collect_notes, list_form_note,
};
use crate::finding::{Finding, rules};
use crate::ledger::Ledger;
use crate::manifest::SecretSource;

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
    files: ProtectedFiles<'_>,
    (observer, now): (&RunObserver, Timestamp),
) -> Result<CheckedCampaign, Error> {
    let start = RunStart::for_campaign(&inputs.campaign, now);
    let (list, mut findings) = match survey_list(inputs, ledger, observer).await {
        Ok(list) => {
            let findings = check_inputs(inputs, Some(&list), start);
            (Some(list), findings)
        }
        // Problems of the list or the texts do not hide findings that do not depend on them.
        Err(Error::Findings(found)) => {
            let mut findings = check_inputs(inputs, None, start);
            findings.retain(|finding| !found.contains(finding));
            findings.extend(found);
            (None, findings)
        }
        Err(error) => return Err(error),
    };
    findings.extend(files.check_results_target(inputs));
    let Some(list) = list else { return Err(Error::Findings(findings)) };
    if let Some(ledger) = ledger {
        findings.extend(check_ledger_for_run(inputs, ledger, now).await?);
    }
    let refused = match ledger {
        Some(ledger) => refuse_start(ledger, inputs).await.err(),
        None => None,
    };
    findings.extend(refused.as_ref().map(|refused| Finding::new(&rules::RUN_REFUSED, refused.to_string())));
    let cost = list.compute_cost(inputs, &list.survey.planned_rows());
    let currency = inputs.destination.profile().and_then(|profile| profile.currency.clone());
    Ok(CheckedCampaign { findings, list, cost, currency, refused })
}

/// Findings about the ledger before a run.
pub(super) async fn check_ledger_for_run(
    inputs: &Inputs,
    ledger: &dyn Ledger,
    now: Timestamp,
) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    if inputs.destination.is_live() {
        findings.extend(check_replicas(ledger.count_unconfirmed_replicas().await?));
    }
    if inputs.destination.remote_profile().is_some() {
        findings.extend(unfamiliar_ledger_warning(ledger, now).await?);
    }
    Ok(findings)
}

/// Findings about a campaign and its list, if the list is known: warnings, a missing key, invalid rows, and whether messages can
/// leave in a run that starts then.
pub(super) fn check_inputs(inputs: &Inputs, list: Option<&ListSurvey>, start: RunStart) -> Vec<Finding> {
    let profile = inputs.destination.profile();
    let mut findings = inputs.warnings.clone();
    let missing = profile.and_then(|profile| find_missing_key(&profile.api_key));
    findings.extend(missing.map(|why| Finding::new(&rules::API_KEY, why)));
    findings.extend(profile.map(|profile| check_promised_receipts(&inputs.campaign, profile)).unwrap_or_default());
    match list {
        Some(list) => {
            findings.extend(check_invalid_rows(&list.survey));
            findings.extend(check_no_messages(&list.survey, &inputs.campaign.brief));
            findings.extend(list.form.as_deref().map(|form| list_form_note(&inputs.campaign.recipients, form)));
            findings.extend(list.warnings(inputs, start));
            findings.extend(check_includes(&list.includes, &inputs.campaign));
        }
        None => findings.extend(check_timing(&inputs.campaign, profile, None, start)),
    }
    let due = match start {
        RunStart::Scheduled(now) => inputs.campaign.next_due_after(now),
        RunStart::At(_) => None,
    };
    findings.extend(collect_notes(&inputs.campaign, profile, list.map(|list| &list.survey), due));
    findings
}

/// Why there is no key to send with yet; it never shows any part of one.
fn find_missing_key(source: &SecretSource) -> Option<String> {
    source.read_secret("the API key (`api_key`)", &|name| std::env::var(name).ok()).err()
}
