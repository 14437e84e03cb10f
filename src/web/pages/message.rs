//! The history of one message: attempts, answers, questions, decisions.

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::fields::encode_path_segment;
use super::look::PageRequest;
use super::refusal::PageError;
use super::rows::NumbersLink;
use super::run::done_message;
use crate::domain::{OperationOutcome, Receipt, Row};
use crate::ledger::{AskedRow, Author, LedgerError, RowChange, RowState, Run};
use crate::report::{HistoryEntry, HistoryEvent, IN_DOUBT_STATES, MessageHistory, is_owned};
use crate::runs::{is_known_author, open_copies, run_blocking};
use crate::web::files::FirstMessages;
use crate::web::words::PageWords;

/// Rows up to this one are looked up in the list while a page is made.
const MAX_EAGER_ROW: u32 = 100_000;
/// How much of an answer that was kept is shown.
const MAX_ANSWER_LENGTH: usize = 1_000;

#[derive(Serialize)]
struct MessagePageView {
    run: String,
    path: String,
    row: u32,
    to: Option<String>,
    state: &'static str,
    /// Why it is never sent.
    left_out: Option<String>,
    /// What was or will be sent; nothing where the row gets nothing, or its copies are gone.
    message: Option<FirstMessages>,
    /// Where that is shown, of a row that is too far down its list to be looked up unasked, or that could not be.
    message_path: Option<String>,
    entries: Vec<HistoryLine>,
    /// How many rows a decision about it is about: one, where it waits for a decision.
    doubt: u64,
    numbers: Option<NumbersLink>,
    done: Option<String>,
}

/// Something that happened.
#[derive(Serialize)]
struct HistoryLine {
    at: String,
    what: String,
    /// Words of others, or of ours in English.
    told: Option<String>,
}

pub(super) async fn show_message(mut look: PageRequest, Path((name, row)): Path<(String, String)>) -> Response {
    let view = match row.parse() {
        Ok(row) => build_view(&mut look, &name, Row::new(row)).await,
        Err(_) => Err(PageError::Unknown),
    };
    look.respond("pages/message.html", view)
}

async fn build_view(look: &mut PageRequest, name: &str, row: Row) -> Result<MessagePageView, PageError> {
    let run = look.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    if row < Row::FIRST || row > run.last_row() {
        return Err(PageError::Unknown);
    }
    let owned = is_owned(look.ledger(), &run).await?;
    let history = MessageHistory::load_row(look.ledger(), &run, owned, row).await?.ok_or(PageError::Unknown)?;
    let path = format!("/runs/{}", encode_path_segment(name));
    let waits = IN_DOUBT_STATES.contains(&history.state);
    let is_there = !run.shared && history.left_out.is_none();
    let message = match look.query.get("message") {
        _ if !is_there => None,
        Some(_) => Some(load_message(look, &run, row).await?),
        // What happened is told whatever became of the copies.
        None if row.get() <= MAX_EAGER_ROW => load_message(look, &run, row).await.ok(),
        None => None,
    };
    Ok(MessagePageView {
        run: run.name(),
        row: row.get(),
        to: history.phone.map(|phone| look.format_number(phone)),
        state: history.state.name(),
        left_out: history.left_out.as_deref().map(|why| translate_reason(look.words(), why)),
        message_path: (is_there && message.is_none()).then(|| format!("{path}/rows/{row}?message=shown")),
        message,
        entries: history_lines(look, &history),
        doubt: waits.into(),
        numbers: NumbersLink::for_page(look, &format!("{path}/rows/{row}")),
        done: done_message(look),
        path,
    })
}

/// The message of a row of a run whose copies are there; the list is read up to it.
async fn load_message(look: &PageRequest, run: &Run, row: Row) -> Result<FirstMessages, PageError> {
    let (frozen, prepared) = open_copies(look.ledger(), run).await?;
    let unmasked = look.shows_numbers();
    Ok(run_blocking(move || FirstMessages::read_row(&frozen.brief, prepared, row, unmasked)).await??)
}

/// A reason in the page's language, where it is one that we give.
fn translate_reason(words: &PageWords, why: &str) -> String {
    words.kind("reason", why).unwrap_or(why).to_owned()
}

fn history_lines(look: &PageRequest, history: &MessageHistory) -> Vec<HistoryLine> {
    let entry = |entry: &HistoryEntry| {
        let (what, told) = describe_incident(look.words(), &entry.event);
        let told = told.map(|told| look.mask_text(&told, history.phone));
        HistoryLine { at: look.format_moment(entry.at), what, told }
    };
    history.entries.iter().map(entry).collect()
}

/// What happened in the page's language, and what was told of it.
fn describe_incident(words: &PageWords, incident: &HistoryEvent) -> (String, Option<String>) {
    match incident {
        HistoryEvent::Attempt { envelope, id, others } => {
            let (envelope, id) = (envelope.to_string(), id.map_or(0, |id| id.get()).to_string());
            (words.count("pages.attempt", *others, &[("n", &envelope), ("code", &id)]), None)
        }
        HistoryEvent::Outcome { outcome, .. } => describe_outcome(words, outcome),
        HistoryEvent::Answer { body, .. } => {
            (words.say("pages.answer").to_owned(), Some(body.chars().take(MAX_ANSWER_LENGTH).collect()))
        }
        HistoryEvent::Questions(AskedRow { asked, answer, .. }) => {
            (words.count("pages.asked", (*asked).into(), &[]), Some(answer.to_string()))
        }
        HistoryEvent::Receipt(receipt) => describe_receipt(words, receipt),
        HistoryEvent::Change { change, .. } => describe_change(words, change),
    }
}

fn describe_outcome(words: &PageWords, outcome: &OperationOutcome) -> (String, Option<String>) {
    let state = match outcome {
        OperationOutcome::NotSent { .. } => RowState::NotSent,
        other => RowState::from_outcome(other),
    };
    let told = match outcome {
        OperationOutcome::Accepted { msg_id, answer, .. } => {
            answer.clone().or_else(|| msg_id.as_ref().map(|id| format!("msg_id {id}")))
        }
        OperationOutcome::Queued { request_id } => Some(format!("request_id {request_id}")),
        OperationOutcome::Rejected { error } => Some(error.clone()),
        OperationOutcome::NotSent { reason } | OperationOutcome::InDoubt { reason } => Some(reason.to_string()),
    };
    (words.kind("state", state.name()).unwrap_or_default().to_owned(), told)
}

fn describe_receipt(words: &PageWords, receipt: &Receipt) -> (String, Option<String>) {
    let channel =
        receipt.channel.as_ref().map(|channel| words.kind("channel", channel.as_str()).unwrap_or(channel.as_str()));
    let status = receipt.status.name();
    let what = match channel {
        Some(channel) => words.say_with("pages.receipt-of", &[("what", status), ("channel", channel)]),
        None => words.say_with("pages.receipt", &[("what", status)]),
    };
    let replies = receipt.replies.iter().map(|reply| reply.text.as_str());
    let told: Vec<&str> = receipt.error.as_deref().into_iter().chain(receipt.digit.as_deref()).chain(replies).collect();
    (what, (!told.is_empty()).then(|| told.join(" · ")))
}

fn describe_change(words: &PageWords, change: &RowChange) -> (String, Option<String>) {
    let (word, by, told) = match change {
        RowChange::Found { status, .. } => ("found", None, Some(status.clone())),
        RowChange::NotFound { .. } => ("not_found", None, None),
        RowChange::Unresolved { .. } => ("unresolved", None, None),
        RowChange::AssumedSent { by, why } => ("sent", Some(by), why.clone()),
        RowChange::NotSent { by, why } => ("not_sent", Some(by), why.clone()),
        RowChange::SendAgain { by, why } => ("send_again", Some(by), why.clone()),
        RowChange::Retry { by, .. } => ("retry", Some(by), None),
    };
    let what = words.kind("pages-change", word).unwrap_or_default();
    let known = by.filter(|by| is_known_author(by));
    (known.map_or_else(|| what.to_owned(), |by: &Author| with_author(words, what, by)), told)
}

fn with_author(words: &PageWords, what: &str, by: &Author) -> String {
    words.say_with("pages.by", &[("what", what), ("who", &by.to_string())])
}
