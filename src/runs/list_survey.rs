//! What a look at all recipients finds.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::exclude::excluded;
use super::inputs::Includes;
use super::{Error, Event, Inputs, Observer, already_sent, blocking, capped, opted_out};
use crate::check::online::Cost;
use crate::check::{
    Excluded, RunStart, Survey, changed_rows, costly_characters, differing_duplicates, empty_cells, inverted_zones,
    landlines, odd_rows, opted_out_rows, over_limits, rows_within, timing_findings, unknown_zones,
};
use crate::finding::Finding;
use crate::ledger::Ledger;
use crate::report::unknown_results;

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
    pub of_files: Vec<Finding>,
}

impl ListSurvey {
    /// What the messages to these rows cost; nothing where the profile has no prices, or there is none.
    #[must_use]
    pub fn cost(&self, inputs: &Inputs, rows: &RoaringBitmap) -> Option<Cost> {
        let profile = inputs.destination.profile().filter(|profile| !profile.prices.is_empty())?;
        Some(Cost::of(profile, &inputs.campaign.brief, &self.survey.by_size, rows))
    }

    /// What is worth a look: cells that may hide a row, landlines, in the messages holes, and characters that cost, limits and an
    /// end that come before the last message, and the local time in zones whose names mislead. A run that can never send is an
    /// error among them.
    #[must_use]
    pub fn warnings(&self, inputs: &Inputs, start: RunStart) -> Vec<Finding> {
        self.warnings_of(inputs, &self.survey.planned_rows(), start)
    }

    /// The same findings if only these rows are sent.
    #[must_use]
    pub fn warnings_of(&self, inputs: &Inputs, rows: &RoaringBitmap, start: RunStart) -> Vec<Finding> {
        let mut findings = self.of_files.clone();
        findings.extend(changed_rows(&self.survey));
        findings.extend(opted_out_rows(&self.survey, &inputs.campaign.brief));
        findings.extend(differing_duplicates(&self.survey, &inputs.campaign));
        findings.extend(rows_within(&self.survey));
        findings.extend(landlines(&self.survey));
        findings.extend(empty_cells(&self.survey, &inputs.campaign.places));
        findings.extend(costly_characters(&self.survey, &inputs.campaign.brief, inputs.destination.profile()));
        findings.extend(odd_rows(&self.survey));
        findings.extend(unknown_zones(&self.survey));
        findings.extend(inverted_zones(&inputs.campaign, &self.survey, start.now()));
        let profile = inputs.destination.profile();
        findings.extend(over_limits(&inputs.campaign, profile, &self.survey, rows));
        let timing = timing_findings(&inputs.campaign, profile, Some((&self.survey, rows.len())), start);
        // The clocks of a part of the rows are not known, so that nothing is certain about all of them.
        let is_part = rows.len() < self.survey.planned();
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
    observer: &Observer,
) -> Result<ListSurvey, Error> {
    let opened = Arc::clone(inputs);
    let edition = blocking(move || Ok::<_, Error>(opened.open()?.edition)).await??;
    if inputs.destination.is_live()
        && let Some(sign) = unknown_results(ledger, &inputs.campaign.results_file()).await?
    {
        observer(Event::Contradicted(sign));
    }
    let past = excluded(ledger, inputs, observer).await?;
    let excluded = match ledger {
        Some(ledger) => {
            let sent = already_sent(ledger, inputs, &edition).await?;
            let cancelled = sent.cancelled(ledger).await?.numbers;
            Excluded {
                rows: sent.rows(ledger, inputs, (&cancelled, None)).await?,
                cancelled,
                already: sent.numbers,
                opted_out: opted_out(ledger, inputs).await?.numbers,
                capped: capped(ledger, inputs).await?,
                excluded: past,
            }
        }
        None => Excluded::default(),
    };
    let inputs = Arc::clone(inputs);
    blocking(move || inputs.survey(&excluded, None)).await?
}
