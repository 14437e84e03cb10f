//! The first messages of a campaign as they look on a phone, with the findings about their texts.

use std::io::Read;

use serde::Serialize;

use crate::web::html::{Fallbacks, FindingView, PhoneView};
use crate::web::words::PageWords;
use campaign_core::domain::{NamedTemplate, Phone, Row, RowSet, Stage};
use campaign_core::finding::{Finding, SourceLocation};
use campaign_engine::check::CompiledCampaign;
use campaign_engine::report::{MarkedMessage, preview_marked_rows};
use campaign_ledger::{ExcludedRows, RowState};
use campaign_manifest::{CampaignBrief, MessageArm, SourceMap};
use campaign_runs::{Error, Inputs};

/// Which messages to show, and how.
#[derive(Clone, Copy, Debug)]
pub struct MessageSelection<'c> {
    /// Only these rows, if some were named.
    pub rows: Option<&'c RowSet>,
    /// The maximum number of messages.
    pub most: usize,
    /// Whether numbers are shown in full.
    pub unmasked: bool,
}

/// A row of the list.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MessageView {
    row: u32,
    /// The number, masked unless numbers were requested.
    to: String,
    variant: Option<String>,
    phones: Fallbacks,
    /// Why the row gets no message.
    skipped: Option<SkipReasonView>,
}

/// Why a row gets no message.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SkipReasonView {
    state: &'static str,
    /// The reason in the page's language, if it is a known reason.
    translated: Option<String>,
    /// The reason in English.
    english: String,
}

impl SkipReasonView {
    pub(super) fn from_reason(words: &PageWords, state: RowState, reason: &str) -> Self {
        let translated = words.item_name("reason", reason).map(str::to_owned);
        Self { state: state.name(), translated, english: reason.to_owned() }
    }
}

impl MessageView {
    /// A row without any known content.
    fn empty(row: Row) -> Self {
        Self { row: row.get(), to: String::new(), variant: None, phones: Vec::new(), skipped: None }
    }

    /// Sets the message and the name of its variant, if any. The recipient's number is masked unless `unmasked` is set.
    fn set_message(&mut self, message: &MarkedMessage, arms: &[MessageArm<'_>], unmasked: bool) {
        let MarkedMessage { phone, arm, content } = message;
        self.to = format_number(*phone, unmasked);
        self.phones = PhoneView::from_content(content, (!unmasked).then_some(*phone));
        self.variant = arms.get(*arm).and_then(|arm| arm.name).map(str::to_owned);
    }
}

/// Collects the messages of these rows of a run's list; rows without a message are skipped.
///
/// # Errors
/// When the list is damaged.
pub(super) fn collect_run_messages<R: Read>(
    prepared: &mut CompiledCampaign<R>,
    brief: &CampaignBrief,
    rows: &RowSet,
    most: usize,
    unmasked: bool,
) -> Result<Vec<MessageView>, Error> {
    let (arms, none) = (brief.list_arms(), ExcludedRows::default());
    let mut views = Vec::new();
    let show = |row: Row, message: Result<MarkedMessage, (RowState, &str)>| {
        if let Ok(message) = message {
            let mut view = MessageView::empty(row);
            view.set_message(&message, &arms, unmasked);
            views.push(view);
        }
    };
    let read = preview_marked_rows(prepared, &none, Some(rows), most, show);
    read.map_err(|finding| Error::Findings(vec![*finding]))?;
    Ok(views)
}

/// The first messages, and the findings that are not about their texts.
pub(super) struct CampaignMessages {
    pub(super) shown: Vec<MessageView>,
    pub(super) other_findings: Vec<FindingView>,
}

/// Collects messages of a list. Excluded rows have their reasons instead.
///
/// # Errors
/// When the inputs cannot be read.
pub(super) fn collect_messages(
    inputs: &Inputs,
    excluded: &ExcludedRows,
    findings: &[Finding],
    shown: MessageSelection<'_>,
    words: &PageWords,
) -> Result<CampaignMessages, Error> {
    let arms = inputs.campaign.brief.list_arms();
    let mut other_findings: Vec<&Finding> = findings.iter().collect();
    let mut views = Vec::new();
    let show = |row: Row, message: Result<MarkedMessage, (RowState, &str)>| {
        let mut view = MessageView::empty(row);
        match message {
            Ok(message) => {
                view.set_message(&message, &arms, shown.unmasked);
                if let Some(arm) = arms.get(message.arm) {
                    attach_findings(&mut view.phones, arm, &mut other_findings, &inputs.campaign.places);
                }
            }
            Err((state, reason)) => view.skipped = Some(SkipReasonView::from_reason(words, state, reason)),
        }
        views.push(view);
    };
    let read = preview_marked_rows(&mut inputs.compile_campaign()?, excluded, shown.rows, shown.most, show);
    read.map_err(|finding| Error::Findings(vec![*finding]))?;
    if shown.rows.is_none() && views.iter().all(|view| view.phones.is_empty()) {
        add_messages_of_skipped_rows(inputs, &mut views, shown)?;
    }
    Ok(CampaignMessages {
        shown: views,
        other_findings: other_findings.into_iter().map(FindingView::from_finding).collect(),
    })
}

/// Adds the messages of the skipped rows, for a list whose shown rows are all skipped.
fn add_messages_of_skipped_rows(
    inputs: &Inputs,
    views: &mut [MessageView],
    shown: MessageSelection<'_>,
) -> Result<(), Error> {
    let (arms, none) = (inputs.campaign.brief.list_arms(), ExcludedRows::default());
    let mut left = views.iter_mut().peekable();
    let show = |row: Row, message: Result<MarkedMessage, (RowState, &str)>| {
        while left.next_if(|view| view.row < row.get()).is_some() {}
        if let (Some(view), Ok(message)) = (left.next_if(|view| view.row == row.get()), message) {
            view.set_message(&message, &arms, shown.unmasked);
        }
    };
    let read = preview_marked_rows(&mut inputs.compile_campaign()?, &none, None, shown.most, show);
    read.map_err(|finding| Error::Findings(vec![*finding]))?;
    Ok(())
}

fn format_number(phone: Phone, unmasked: bool) -> String {
    if unmasked { format!("+{phone}") } else { phone.format_masked() }
}

/// Moves each finding to the first phone that shows its text.
fn attach_findings(
    phones: &mut [PhoneView],
    arm: &MessageArm<'_>,
    other_findings: &mut Vec<&Finding>,
    places: &SourceMap,
) {
    for (phone, stage) in phones.iter_mut().zip(&arm.content.stages) {
        other_findings.retain(|finding| {
            let about = finding.place.as_ref().is_some_and(|place| is_within_stage(place, stage, places));
            phone.findings.extend(about.then(|| FindingView::from_finding(finding)));
            !about
        });
    }
}

/// Whether a place lies in a text of this stage.
fn is_within_stage(place: &SourceLocation, stage: &Stage<NamedTemplate>, places: &SourceMap) -> bool {
    stage.texts().any(|(_, text)| {
        let whole = places.locate_text(&text.name, 1, 1, text.source.chars().count());
        whole.is_some_and(|whole| {
            let within = place.span.start >= whole.span.start && place.span.start <= whole.span.end;
            whole.source.path() == place.source.path() && within
        })
    })
}
