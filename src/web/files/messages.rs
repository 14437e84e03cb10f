//! The first messages of a campaign as phones, with what was found of their texts beside them.

use std::io::Read;

use serde::Serialize;

use crate::check::CompiledCampaign;
use crate::domain::{Phone, Row, RowSet, Stage, Text};
use crate::finding::{Finding, Place};
use crate::ledger::{LeftOut, State};
use crate::manifest::{Arm, Brief, Places};
use crate::report::{MarkedMessage, marked_rows};
use crate::runs::{Error, Inputs};
use crate::web::html::{Fallbacks, FindingView, PhoneView};
use crate::web::words::Words;

/// Which messages are shown, and how.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'c> {
    /// Only these rows, where some are named.
    pub rows: Option<&'c RowSet>,
    /// So many at most.
    pub most: usize,
    /// Whether numbers are shown whole.
    pub unmasked: bool,
}

/// A row of the list.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MessageView {
    row: u32,
    /// The number, masked unless somebody asked for it.
    to: String,
    variant: Option<String>,
    phones: Fallbacks,
    /// Why nothing is sent to it.
    left_out: Option<LeftOutView>,
}

/// Why a row gets no message.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LeftOutView {
    state: &'static str,
    /// The reason in the page's language, where it is one that we give.
    reason: Option<String>,
    /// The reason in English.
    told: String,
}

impl LeftOutView {
    pub(super) fn of(words: &Words, state: State, reason: &str) -> Self {
        let known = words.kind("reason", reason).map(str::to_owned);
        Self { state: state.name(), reason: known, told: reason.to_owned() }
    }
}

impl MessageView {
    /// A row of which nothing is known yet.
    fn of(row: Row) -> Self {
        Self { row: row.get(), to: String::new(), variant: None, phones: Vec::new(), left_out: None }
    }

    /// Takes a message, with the number in it masked unless somebody asked for numbers; the name of the variant where it has one.
    fn take(&mut self, message: &MarkedMessage, arms: &[Arm<'_>], unmasked: bool) {
        let MarkedMessage { phone, arm, content } = message;
        self.to = number(*phone, unmasked);
        self.phones = PhoneView::all_of(content, (!unmasked).then_some(*phone));
        self.variant = arms.get(*arm).and_then(|arm| arm.name).map(str::to_owned);
    }
}

/// Shows these rows of the list of a run, as far as they have a message.
///
/// # Errors
/// When the list is damaged.
pub(super) fn messages_of_run<R: Read>(
    prepared: &mut CompiledCampaign<R>,
    brief: &Brief,
    rows: &RowSet,
    (most, unmasked): (usize, bool),
) -> Result<Vec<MessageView>, Error> {
    let (arms, none) = (brief.arms(), LeftOut::default());
    let mut views = Vec::new();
    let show = |row: Row, message: Result<MarkedMessage, (State, &str)>| {
        if let Ok(message) = message {
            let mut view = MessageView::of(row);
            view.take(&message, &arms, unmasked);
            views.push(view);
        }
    };
    let read = marked_rows(prepared, &none, Some(rows), most, show);
    read.map_err(|finding| Error::Findings(vec![*finding]))?;
    Ok(views)
}

/// The first messages, and the findings that are about none of their texts.
pub(super) struct Messages {
    pub(super) shown: Vec<MessageView>,
    pub(super) other_findings: Vec<FindingView>,
}

/// Shows messages of a list, of whose rows these are left out.
///
/// # Errors
/// When the inputs cannot be read.
pub(super) fn messages(
    inputs: &Inputs,
    left_out: &LeftOut,
    findings: &[Finding],
    shown: Shown<'_>,
    words: &Words,
) -> Result<Messages, Error> {
    let arms = inputs.campaign.brief.arms();
    let mut untold: Vec<&Finding> = findings.iter().collect();
    let mut views = Vec::new();
    let show = |row: Row, message: Result<MarkedMessage, (State, &str)>| {
        let mut view = MessageView::of(row);
        match message {
            Ok(message) => {
                view.take(&message, &arms, shown.unmasked);
                if let Some(arm) = arms.get(message.arm) {
                    tell_beside(&mut view.phones, arm, &mut untold, &inputs.campaign.places);
                }
            }
            Err((state, reason)) => view.left_out = Some(LeftOutView::of(words, state, reason)),
        }
        views.push(view);
    };
    let read = marked_rows(&mut inputs.open()?, left_out, shown.rows, shown.most, show);
    read.map_err(|finding| Error::Findings(vec![*finding]))?;
    if shown.rows.is_none() && views.iter().all(|view| view.phones.is_empty()) {
        show_anyway(inputs, &mut views, shown)?;
    }
    Ok(Messages { shown: views, other_findings: untold.into_iter().map(FindingView::of).collect() })
}

/// Gives rows that get no message the one that they would get, where there is no other to look at.
fn show_anyway(inputs: &Inputs, views: &mut [MessageView], shown: Shown<'_>) -> Result<(), Error> {
    let (arms, none) = (inputs.campaign.brief.arms(), LeftOut::default());
    let mut left = views.iter_mut().peekable();
    let show = |row: Row, message: Result<MarkedMessage, (State, &str)>| {
        while left.next_if(|view| view.row < row.get()).is_some() {}
        if let (Some(view), Ok(message)) = (left.next_if(|view| view.row == row.get()), message) {
            view.take(&message, &arms, shown.unmasked);
        }
    };
    let read = marked_rows(&mut inputs.open()?, &none, None, shown.most, show);
    read.map_err(|finding| Error::Findings(vec![*finding]))?;
    Ok(())
}

fn number(phone: Phone, unmasked: bool) -> String {
    if unmasked { format!("+{phone}") } else { phone.masked() }
}

/// Puts each finding beside the first phone that shows the text which it is about.
fn tell_beside(phones: &mut [PhoneView], arm: &Arm<'_>, untold: &mut Vec<&Finding>, places: &Places) {
    for (phone, stage) in phones.iter_mut().zip(&arm.content.stages) {
        untold.retain(|finding| {
            let about = finding.place.as_ref().is_some_and(|place| is_about(place, stage, places));
            phone.findings.extend(about.then(|| FindingView::of(finding)));
            !about
        });
    }
}

/// Whether a place lies in a text of this stage.
fn is_about(place: &Place, stage: &Stage<Text>, places: &Places) -> bool {
    stage.texts().any(|(_, text)| {
        let whole = places.of_text(&text.name, (1, 1), text.source.chars().count());
        whole.is_some_and(|whole| {
            let within = place.span.start >= whole.span.start && place.span.start <= whole.span.end;
            whole.source.path() == place.source.path() && within
        })
    })
}
