//! What a look at all recipients finds.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::exclude::find_excluded;
use super::inputs::Includes;
use super::{Error, Inputs, RunEvent, RunObserver, find_capped, find_opted_out, find_sent_recipients, run_blocking};
use crate::check::online::Cost;
use crate::check::{
    RunStart, Survey, SurveyExclusions, check_changed_rows, check_costly_characters, check_differing_duplicates,
    check_embedded_rows, check_empty_cells, check_inverted_zones, check_landlines, check_limits, check_opted_out_rows,
    check_row_anomalies, check_timing, check_unknown_zones,
};
use crate::finding::Finding;
use crate::ledger::Ledger;
use crate::report::find_unknown_results;

/// What a survey found, and what a run freezes.
#[derive(Debug)]
pub struct ListSurvey {
    /// What is known of the recipients.
    pub survey: Survey,
    /// The texts that others include or extend, by name.
    pub includes: Includes,
    /// SHA-256 of the recipients as text in UTF-8, in hexadecimal.
    pub sha256: String,
    /// How they are written, where it is no ordinary CSV in UTF-8.
    pub form: Option<String>,
    /// What is worth knowing of the sheet that they are, and of the lists of people who opted out.
    pub file_findings: Vec<Finding>,
}

impl ListSurvey {
    /// What the messages to these rows cost; nothing where the profile has no prices, or there is none.
    #[must_use]
    pub fn compute_cost(&self, inputs: &Inputs, rows: &RoaringBitmap) -> Option<Cost> {
        let profile = inputs.destination.profile().filter(|profile| !profile.prices.is_empty())?;
        Some(Cost::estimate(profile, &inputs.campaign.brief, &self.survey.by_size, rows))
    }

    /// What is worth a look: cells that may hide a row, landlines, in the messages holes, and characters that cost, limits and an
    /// end that come before the last message, and the local time in zones whose names mislead. A run that can never send is an
    /// error among them.
    #[must_use]
    pub fn warnings(&self, inputs: &Inputs, start: RunStart) -> Vec<Finding> {
        self.warnings_for_rows(inputs, &self.survey.planned_rows(), start)
    }

    /// The same findings if only these rows are sent.
    #[must_use]
    pub fn warnings_for_rows(&self, inputs: &Inputs, rows: &RoaringBitmap, start: RunStart) -> Vec<Finding> {
        let mut findings = self.file_findings.clone();
        findings.extend(check_changed_rows(&self.survey));
        findings.extend(check_opted_out_rows(&self.survey, &inputs.campaign.brief));
        findings.extend(check_differing_duplicates(&self.survey, &inputs.campaign));
        findings.extend(check_embedded_rows(&self.survey));
        findings.extend(check_landlines(&self.survey));
        findings.extend(check_empty_cells(&self.survey, &inputs.campaign.places));
        findings.extend(check_costly_characters(&self.survey, &inputs.campaign.brief, inputs.destination.profile()));
        findings.extend(check_row_anomalies(&self.survey));
        findings.extend(check_unknown_zones(&self.survey));
        findings.extend(check_inverted_zones(&inputs.campaign, &self.survey, start.now()));
        let profile = inputs.destination.profile();
        findings.extend(check_limits(&inputs.campaign, profile, &self.survey, rows));
        let timing = check_timing(&inputs.campaign, profile, Some((&self.survey, rows.len())), start);
        // The clocks of a part of the rows are not known, so that nothing is certain about all of them.
        let is_part = rows.len() < self.survey.count_planned();
        findings.extend(timing.into_iter().filter(|finding| !is_part || !finding.is_error()));
        findings
    }
}

/// Looks at all recipients off the asynchronous threads, with what the ledger knows, if there is one.
///
/// # Errors
/// When the inputs are wrong, or the ledger cannot be read.
pub async fn survey_list(
    inputs: &Arc<Inputs>,
    ledger: Option<&dyn Ledger>,
    observer: &RunObserver,
) -> Result<ListSurvey, Error> {
    let opened = Arc::clone(inputs);
    let edition = run_blocking(move || Ok::<_, Error>(opened.compile_campaign()?.edition)).await??;
    if inputs.destination.is_live()
        && let Some(sign) = find_unknown_results(ledger, &inputs.campaign.results_file()).await?
    {
        observer(RunEvent::Contradicted(sign));
    }
    let past = find_excluded(ledger, inputs, observer).await?;
    let excluded = match ledger {
        Some(ledger) => {
            let sent = find_sent_recipients(ledger, inputs, &edition).await?;
            let cancelled = sent.find_cancelled(ledger).await?.numbers;
            SurveyExclusions {
                rows: sent.find_sent_rows(ledger, inputs, (&cancelled, None)).await?,
                cancelled,
                already_sent: sent.numbers,
                opted_out: find_opted_out(ledger, inputs).await?.numbers,
                capped: find_capped(ledger, inputs).await?,
                excluded: past,
            }
        }
        None => SurveyExclusions::default(),
    };
    let inputs = Arc::clone(inputs);
    run_blocking(move || inputs.survey_recipients(&excluded, None)).await?
}
