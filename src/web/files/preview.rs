//! The page of `preview`: the first messages as people will see them.

use jiff::Timestamp;
use serde::Serialize;

use super::messages::{CampaignMessages, MessageSelection, MessageView, collect_messages};
use super::shared::{CampaignFigures, LeftOutTable, describe_destination};
use crate::check::online::Cost;
use crate::finding::Finding;
use crate::runs::{Error, Inputs, ListSurvey};
use crate::web::html::{FindingView, PageFormat, render};
use crate::web::words::{PageLanguage, PageWords};

/// What a preview is made of.
pub struct PreviewPage<'c> {
    /// The campaign.
    pub inputs: &'c Inputs,
    /// What was found of its list.
    pub list: &'c ListSurvey,
    /// What `check` finds.
    pub findings: &'c [Finding],
    /// What the messages cost, where that is known.
    pub cost: Option<&'c Cost>,
    /// Which messages are shown.
    pub shown: MessageSelection<'c>,
    /// When it is made.
    pub now: Timestamp,
}

/// What it shows.
#[derive(Serialize)]
pub struct PreviewView {
    name: String,
    way: String,
    file: String,
    made: String,
    rows: u64,
    figures: CampaignFigures,
    left_out: LeftOutTable,
    findings: Vec<FindingView>,
    messages: Vec<MessageView>,
    shown: usize,
}

/// Makes the page, and tells how many rows it shows.
///
/// # Errors
/// When the inputs cannot be read.
pub fn render_preview_page(page: &PreviewPage<'_>, language: PageLanguage) -> Result<(String, usize), Error> {
    let view = build_preview_view(page, language)?;
    let html =
        render(language, PageFormat::File, "preview.html", &view).map_err(|error| Error::Input(error.to_string()))?;
    Ok((html, view.shown))
}

/// What the page shows.
///
/// # Errors
/// When the inputs cannot be read.
pub fn build_preview_view(page: &PreviewPage<'_>, language: PageLanguage) -> Result<PreviewView, Error> {
    let PreviewPage { inputs, list, findings, cost, shown, now } = page;
    let (words, brief, survey) = (PageWords::in_language(language), &inputs.campaign.brief, &list.survey);
    let CampaignMessages { shown: messages, other_findings } =
        collect_messages(inputs, &survey.left_out, findings, *shown, words)?;
    let currency = inputs.destination.profile().and_then(|profile| profile.currency.as_deref());
    let (shown, left_out) = (messages.len(), LeftOutTable::from_left_out(words, &survey.left_out));
    Ok(PreviewView {
        name: brief.name.clone(),
        way: describe_destination(words, inputs),
        file: inputs.campaign.file.display().to_string(),
        made: words.format_moment_in_zone(&now.to_zoned(brief.home_zone())),
        rows: survey.recipients,
        figures: CampaignFigures {
            rows: survey.recipients,
            messages: survey.count_planned(),
            parts: survey.parts,
            left_out: left_out.all,
            cost: cost.map(|cost| words.format_cost(cost, currency)),
        },
        left_out,
        findings: other_findings,
        messages,
        shown,
    })
}
