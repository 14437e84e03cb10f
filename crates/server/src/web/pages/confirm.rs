//! Confirmation pages of the dashboard: what an action will do, and how many rows it affects.
//!
//! A confirmation page changes nothing. Its form leads to the action in `decisions`, which applies the rules of its
//! command.

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::decisions::parse_phone;
use super::page_error::{InvalidInput, PageError};
use super::request::{DecisionForm, PageRequest, VerifiedForm};
use super::runs::{MessageSums, run_path};
use super::schedules::schedule_path;
use crate::web::words::PageWords;
use campaign_core::domain::Row;
use campaign_engine::report::{RunStatus, RunView, is_owned, load_row_summaries};
use campaign_ledger::{LedgerError, Run};
use campaign_runs::{OptOutTerms, find_schedule, list_opt_outs};

/// The effect of an action, and the form that requests the action.
#[derive(Default, Serialize)]
struct ConfirmPageView {
    heading: String,
    /// The subject of the action.
    subject: String,
    /// The effects of the action, in sentences.
    effects: Vec<String>,
    /// The path of the action.
    action: String,
    /// Further fields of the form.
    fields: Vec<HiddenField>,
    /// The number that the user must type.
    typed: Option<u64>,
    /// Whether a reason can be given.
    reason: bool,
    button: String,
    danger: bool,
    /// The path of the page that the user came from.
    back: String,
}

#[derive(Serialize)]
struct HiddenField {
    name: &'static str,
    value: String,
}

impl ConfirmPageView {
    fn with_field(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push(HiddenField { name, value: value.into() });
        self
    }
}

fn respond(request: &PageRequest, view: Result<ConfirmPageView, PageError>) -> Response {
    request.respond("pages/confirm.html", view)
}

/// Loads the run with its current counts. Fails if the visitor is not allowed to make decisions, or if the run was
/// purged.
async fn load_run_for_decision(request: &mut PageRequest, name: &str) -> Result<RunView, PageError> {
    request.require_decider()?;
    let run = request.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    let owned = is_owned(request.ledger(), &run).await?;
    Ok(RunView::load(request.ledger(), run, owned).await?)
}

pub(super) async fn confirm_stop(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = async {
        let view = load_run_for_decision(&mut request, &name).await?;
        let words = request.words();
        let effects = match view.status {
            RunStatus::Sending => {
                vec![words.say("confirm.stop").to_owned(), words.say("confirm.stop-resume").to_owned()]
            }
            _ => vec![words.say("confirmation.not-sending").to_owned()],
        };
        let path = run_path(&view.run.name());
        Ok(ConfirmPageView {
            heading: words.say("confirm.stop-title").to_owned(),
            subject: view.run.name(),
            effects,
            action: format!("{path}/stop"),
            button: words.say("pages.stop").to_owned(),
            danger: true,
            back: path,
            ..ConfirmPageView::default()
        })
    };
    let view = view.await;
    respond(&request, view)
}

/// Returns the heading, the effect and the button label of a decision; `None` means an unknown decision.
fn decision_words(words: &PageWords, decision: &str) -> Option<[String; 3]> {
    let texts = match decision {
        "sent" => [words.say("confirm.sent-title"), words.say("confirm.sent"), words.say("pages.sent")],
        "not-sent" => [words.say("confirm.not-sent-title"), words.say("confirm.not-sent"), words.say("pages.not-sent")],
        "send-again" => [words.say("confirm.again-title"), words.say("confirm.again"), words.say("pages.send-again")],
        _ => return None,
    };
    Some(texts.map(str::to_owned))
}

pub(super) async fn confirm_resolve(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = async {
        let view = load_run_for_decision(&mut request, &name).await?;
        let decision = request.query.get("decision").unwrap_or_default().to_owned();
        let invalid = || PageError::InvalidInput(InvalidInput::Decision);
        let [heading, effect, button] = decision_words(request.words(), &decision).ok_or_else(invalid)?;
        let row = match request.query.get("row") {
            Some(row) => Some(find_row(&request, &view.run, row).await?),
            None => None,
        };
        let rows = if row.is_some() { 1 } else { MessageSums::from_counts(&view.counts).doubt };
        let path = run_path(&view.run.name());
        let subject = match row {
            Some(row) => {
                format!("{} · {}", view.run.name(), request.words().say_with("message.row", &[("n", &row.to_string())]))
            }
            None => view.run.name(),
        };
        let confirm = ConfirmPageView {
            heading,
            subject,
            effects: vec![request.words().count("confirm.rows", rows, &[]), effect],
            action: format!("{path}/resolve"),
            typed: Some(rows),
            reason: true,
            button,
            danger: decision == "send-again",
            back: row.map_or_else(|| format!("{path}#run-doubt"), |row| format!("{path}/rows/{row}")),
            ..ConfirmPageView::default()
        };
        let confirm = confirm.with_field("decision", decision);
        Ok(match row {
            Some(row) => confirm.with_field("row", row.to_string()),
            None => confirm,
        })
    };
    let view = view.await;
    respond(&request, view)
}

/// Finds the row with this number in the run.
async fn find_row(request: &PageRequest, run: &Run, row: &str) -> Result<Row, PageError> {
    let row = Row::new(row.parse().map_err(|_| PageError::Unknown)?);
    if row < Row::FIRST || row > run.last_row() {
        return Err(PageError::Unknown);
    }
    let owned = is_owned(request.ledger(), run).await?;
    let summaries = load_row_summaries(request.ledger(), run, owned, &[row]).await?;
    summaries.first().map(|summary| summary.row).ok_or(PageError::Unknown)
}

pub(super) async fn confirm_reconcile(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = async {
        let view = load_run_for_decision(&mut request, &name).await?;
        let words = request.words();
        let rows = MessageSums::from_counts(&view.counts).doubt;
        let path = run_path(&view.run.name());
        Ok(ConfirmPageView {
            heading: words.say("confirm.reconcile-title").to_owned(),
            subject: view.run.name(),
            effects: vec![words.count("confirm.reconcile", rows, &[]), words.say("confirm.reconcile-sends").to_owned()],
            action: format!("{path}/reconcile"),
            button: words.say("pages.reconcile").to_owned(),
            back: format!("{path}#run-doubt"),
            ..ConfirmPageView::default()
        })
    };
    let view = view.await;
    respond(&request, view)
}

pub(super) async fn confirm_pause(request: PageRequest, Path(name): Path<String>) -> Response {
    let words = request.words();
    let texts = [words.say("confirm.pause-title"), words.say("confirm.pause"), words.say("pages.pause")];
    confirm_schedule_action(&request, &name, "pause", texts).await
}

pub(super) async fn confirm_resume(request: PageRequest, Path(name): Path<String>) -> Response {
    let words = request.words();
    let texts = [words.say("confirm.resume-title"), words.say("confirm.resume"), words.say("pages.resume")];
    confirm_schedule_action(&request, &name, "resume", texts).await
}

async fn confirm_schedule_action(
    request: &PageRequest,
    name: &str,
    action: &str,
    [heading, effect, button]: [&str; 3],
) -> Response {
    let view = async {
        request.require_decider()?;
        find_schedule(request.ledger(), name).await?.ok_or(PageError::Unknown)?;
        Ok(ConfirmPageView {
            heading: heading.to_owned(),
            subject: name.to_owned(),
            effects: vec![effect.to_owned()],
            action: format!("{}/{action}", schedule_path(name)),
            button: button.to_owned(),
            back: "/schedules".to_owned(),
            ..ConfirmPageView::default()
        })
    };
    respond(request, view.await)
}

/// Asks for confirmation before a phone number is added to the suppression list. The phone number is sent in the form,
/// not in the URL.
pub(super) async fn confirm_suppression(DecisionForm(VerifiedForm { request, fields }): DecisionForm) -> Response {
    let view = async {
        let phone = parse_phone(fields.get("phone").unwrap_or_default())?;
        let words = request.words();
        let opt_outs = list_opt_outs(request.ledger(), phone, &OptOutTerms::default()).await?;
        let general = opt_outs.iter().find(|entry| entry.scope.campaign().is_none());
        let mut effects = vec![words.say("confirm.suppress").to_owned()];
        effects
            .extend(general.map(|entry| {
                words.say_with("confirm.suppressed-since", &[("when", &request.format_moment(entry.at))])
            }));
        let confirm = ConfirmPageView {
            heading: words.say("confirm.suppress-title").to_owned(),
            subject: format!("+{phone}"),
            effects,
            action: "/opt-outs".to_owned(),
            button: words.say("pages.suppress").to_owned(),
            back: "/opt-outs".to_owned(),
            ..ConfirmPageView::default()
        };
        let reason = fields.get("why").unwrap_or_default();
        Ok(confirm.with_field("phone", format!("+{phone}")).with_field("why", reason))
    };
    let view = view.await;
    respond(&request, view)
}

/// Asks for confirmation before a phone number is removed from the suppression list.
pub(super) async fn confirm_removal(DecisionForm(VerifiedForm { request, fields }): DecisionForm) -> Response {
    let view = async {
        let phone = parse_phone(fields.get("phone").unwrap_or_default())?;
        let words = request.words();
        let opt_outs = list_opt_outs(request.ledger(), phone, &OptOutTerms::default()).await?;
        let effects = match opt_outs.len() as u64 {
            0 => vec![words.say("confirmation.not-listed").to_owned()],
            entries => {
                vec![words.count("confirm.removal-entries", entries, &[]), words.say("confirm.removal").to_owned()]
            }
        };
        let confirm = ConfirmPageView {
            heading: words.say("confirm.removal-title").to_owned(),
            subject: format!("+{phone}"),
            effects,
            action: "/opt-outs/removed".to_owned(),
            button: words.say("pages.remove-opt-out").to_owned(),
            danger: true,
            reason: true,
            typed: (!opt_outs.is_empty()).then_some(opt_outs.len() as u64),
            back: "/opt-outs".to_owned(),
            ..ConfirmPageView::default()
        };
        Ok(confirm.with_field("phone", format!("+{phone}")))
    };
    let view = view.await;
    respond(&request, view)
}
