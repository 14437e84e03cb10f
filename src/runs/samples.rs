//! Sample messages of a campaign, and what a call would send of a run that exists already.

use std::borrow::Cow;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::launch::Session;
use super::{Error, Inputs, ListSurvey, blocking, opted_out};
use crate::check::{Excluded, Survey};
use crate::domain::{Content, Phone, Row, RowSet};
use crate::ledger::Run;
use crate::report::{RowPreview, preview_rows};

/// The most samples that are shown.
const MOST: usize = 5;

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
    pub content: Content<Cow<'static, str>>,
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
    pub fn samples(&self, inputs: &Inputs, rows: &RoaringBitmap) -> Result<Vec<Sample>, Error> {
        let chosen = self.survey.shapes.samples(rows, MOST);
        let numbers: Vec<String> = chosen.iter().map(Row::to_string).collect();
        let Ok(chosen) = numbers.join(",").parse::<RowSet>() else { return Ok(Vec::new()) };
        let arms = inputs.campaign.brief.arms();
        let mut samples = Vec::new();
        let add = |row, preview: RowPreview<'_>| {
            if let RowPreview::Message { phone, content } = preview {
                let arm = self.survey.shapes.arm_of(row).and_then(|arm| arms.get(arm));
                let variant = arm.and_then(|arm| arm.name).map(str::to_owned);
                samples.push(Sample { row, phone, variant, content: content.owned() });
            }
        };
        let shown = preview_rows(&mut inputs.open()?, &self.survey.left_out, Some(&chosen), numbers.len(), add);
        shown.map_err(|finding| Error::Findings(vec![*finding]))?;
        Ok(samples)
    }
}

impl Session {
    /// What this call would send of a run, of whose rows these are chosen. Recipients who opted out are left out.
    pub(super) async fn rest_of(
        &self,
        run: &Run,
        choose: impl FnOnce(&Survey) -> Result<RoaringBitmap, Error>,
    ) -> Result<RestOfRun, Error> {
        let inputs = self.listed_as_in(run).await?;
        let opted_out = opted_out(self.adapters.ledger.as_ref(), &inputs).await?.numbers;
        let excluded = Excluded { opted_out, ..Excluded::default() };
        let listed = Arc::clone(&inputs);
        let survey = blocking(move || listed.survey(&excluded, None)).await??;
        let rows = choose(&survey.survey)?;
        let samples = survey.samples(&inputs, &rows)?;
        Ok(RestOfRun { inputs, survey, rows, samples })
    }
}
