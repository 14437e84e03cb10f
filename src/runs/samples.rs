//! Sample messages of a campaign, and what a call would send of a run that exists already.

use std::borrow::Cow;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::launch::Session;
use super::{Error, Inputs, ListSurvey, find_opted_out, run_blocking};
use crate::check::{Survey, SurveyExclusions};
use crate::domain::{MessageContent, Phone, Row, RowSet};
use crate::ledger::Run;
use crate::report::{RowPreview, preview_rows};

/// The most samples that are shown.
const MAX_SAMPLES: usize = 5;

/// The message of one row, as an example.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The row.
    pub row: Row,
    /// The recipient.
    pub phone: Phone,
    /// The name of its variant. `None` without variants.
    pub variant: Option<String>,
    /// What it says.
    pub content: MessageContent<Cow<'static, str>>,
}

/// What a call would send of a run that exists already.
#[derive(Debug)]
pub struct RestOfRun {
    /// The campaign with the list of the run.
    pub inputs: Arc<Inputs>,
    /// What is known of the list.
    pub survey: ListSurvey,
    /// The rows that the call would send.
    pub rows: RoaringBitmap,
    /// Some of their messages.
    pub samples: Vec<Sample>,
}

impl ListSurvey {
    /// Messages to some of these rows: one for each variant and for each outcome of a condition, five at most.
    ///
    /// # Errors
    /// When the list cannot be read again.
    pub fn pick_samples(&self, inputs: &Inputs, rows: &RoaringBitmap) -> Result<Vec<Sample>, Error> {
        let chosen = self.survey.shapes.pick_samples(rows, MAX_SAMPLES);
        let numbers: Vec<String> = chosen.iter().map(Row::to_string).collect();
        let Ok(chosen) = numbers.join(",").parse::<RowSet>() else { return Ok(Vec::new()) };
        let arms = inputs.campaign.brief.list_arms();
        let mut samples = Vec::new();
        let add = |row, preview: RowPreview<'_>| {
            if let RowPreview::Message { phone, content } = preview {
                let arm = self.survey.shapes.find_arm(row).and_then(|arm| arms.get(arm));
                let variant = arm.and_then(|arm| arm.name).map(str::to_owned);
                samples.push(Sample { row, phone, variant, content: content.to_owned_texts() });
            }
        };
        let shown =
            preview_rows(&mut inputs.compile_campaign()?, &self.survey.left_out, Some(&chosen), numbers.len(), add);
        shown.map_err(|finding| Error::Findings(vec![*finding]))?;
        Ok(samples)
    }
}

impl Session {
    /// What this call would send of a run, of whose rows these are chosen. Recipients who opted out are left out.
    pub(super) async fn survey_rest(
        &self,
        run: &Run,
        choose: impl FnOnce(&Survey) -> Result<RoaringBitmap, Error>,
    ) -> Result<RestOfRun, Error> {
        let inputs = self.load_with_list_of(run).await?;
        let opted_out = find_opted_out(self.adapters.ledger.as_ref(), &inputs).await?.numbers;
        let excluded = SurveyExclusions { opted_out, ..SurveyExclusions::default() };
        let listed = Arc::clone(&inputs);
        let survey = run_blocking(move || listed.survey_recipients(&excluded, None)).await??;
        let rows = choose(&survey.survey)?;
        let samples = survey.pick_samples(&inputs, &rows)?;
        Ok(RestOfRun { inputs, survey, rows, samples })
    }
}
