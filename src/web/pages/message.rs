//! The history of one message: attempts, answers, questions, decisions.

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::fields::encoded;
use super::look::Look;
use super::refusal::Refusal;
use super::rows::Numbers;
use super::run::done;
use crate::domain::{Outcome, Receipt, Row};
use crate::ledger::{AskedRow, Author, Change, LedgerError, Run, State};
use crate::report::{DOUBTFUL, History, HistoryEntry, Incident, is_owned};
use crate::runs::{blocking, is_known, thaw};
use crate::web::files::FirstMessages;
use crate::web::words::Words;

/// Rows up to this one are looked up in the list while a page is made.
const NEAR: u32 = 100_000;
/// How much of an answer that was kept is shown.
const ANSWER: usize = 1_000;

#[derive(Serialize)]
struct View {
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
    entries: Vec<Entry>,
    /// How many rows a decision about it is about: one, where it waits for a decision.
    doubt: u64,
    numbers: Option<Numbers>,
    done: Option<String>,
}

/// Something that happened.
#[derive(Serialize)]
struct Entry {
    at: String,
    what: String,
    /// Words of others, or of ours in English.
    told: Option<String>,
}

pub(super) async fn page(mut look: Look, Path((name, row)): Path<(String, String)>) -> Response {
    let view = match row.parse() {
        Ok(row) => view(&mut look, &name, Row::new(row)).await,
        Err(_) => Err(Refusal::Unknown),
    };
    look.answer("pages/message.html", view)
}

async fn view(look: &mut Look, name: &str, row: Row) -> Result<View, Refusal> {
    let run = look.run(name).await?;
    LedgerError::refuse_purged(&run)?;
    if row < Row::FIRST || row > run.last_row() {
        return Err(Refusal::Unknown);
    }
    let owned = is_owned(look.ledger(), &run).await?;
    let history = History::of_row(look.ledger(), &run, owned, row).await?.ok_or(Refusal::Unknown)?;
    let path = format!("/runs/{}", encoded(name));
    let waits = DOUBTFUL.contains(&history.state);
    let is_there = !run.shared && history.left_out.is_none();
    let message = match look.query.get("message") {
        _ if !is_there => None,
        Some(_) => Some(message_of(look, &run, row).await?),
        // What happened is told whatever became of the copies.
        None if row.get() <= NEAR => message_of(look, &run, row).await.ok(),
        None => None,
    };
    Ok(View {
        run: run.name(),
        row: row.get(),
        to: history.phone.map(|phone| look.number(phone)),
        state: history.state.name(),
        left_out: history.left_out.as_deref().map(|why| reason(look.words(), why)),
        message_path: (is_there && message.is_none()).then(|| format!("{path}/rows/{row}?message=shown")),
        message,
        entries: entries(look, &history),
        doubt: waits.into(),
        numbers: Numbers::on(look, &format!("{path}/rows/{row}")),
        done: done(look),
        path,
    })
}

/// The message of a row of a run whose copies are there; the list is read up to it.
async fn message_of(look: &Look, run: &Run, row: Row) -> Result<FirstMessages, Refusal> {
    let (frozen, prepared) = thaw(look.ledger(), run).await?;
    let unmasked = look.shows_numbers();
    Ok(blocking(move || FirstMessages::of_row(&frozen.brief, prepared, row, unmasked)).await??)
}

/// A reason in the page's language, where it is one that we give.
fn reason(words: &Words, why: &str) -> String {
    words.kind("reason", why).unwrap_or(why).to_owned()
}

fn entries(look: &Look, history: &History) -> Vec<Entry> {
    let entry = |entry: &HistoryEntry| {
        let (what, told) = words_of(look.words(), &entry.what);
        let told = told.map(|told| look.text(&told, history.phone));
        Entry { at: look.moment(entry.at), what, told }
    };
    history.entries.iter().map(entry).collect()
}

/// What happened in the page's language, and what was told of it.
fn words_of(words: &Words, incident: &Incident) -> (String, Option<String>) {
    match incident {
        Incident::Attempt { envelope, id, others } => {
            let (envelope, id) = (envelope.to_string(), id.map_or(0, |id| id.get()).to_string());
            (words.count("pages.attempt", *others, &[("n", &envelope), ("code", &id)]), None)
        }
        Incident::Outcome { outcome, .. } => outcome_words(words, outcome),
        Incident::Answer { body, .. } => {
            (words.say("pages.answer").to_owned(), Some(body.chars().take(ANSWER).collect()))
        }
        Incident::Questions(AskedRow { asked, answer, .. }) => {
            (words.count("pages.asked", (*asked).into(), &[]), Some(answer.to_string()))
        }
        Incident::Receipt(receipt) => receipt_words(words, receipt),
        Incident::Change { change, .. } => change_words(words, change),
    }
}

fn outcome_words(words: &Words, outcome: &Outcome) -> (String, Option<String>) {
    let state = match outcome {
        Outcome::NotSent { .. } => State::NotSent,
        other => State::of(other),
    };
    let told = match outcome {
        Outcome::Accepted { msg_id, answer, .. } => {
            answer.clone().or_else(|| msg_id.as_ref().map(|id| format!("msg_id {id}")))
        }
        Outcome::Queued { request_id } => Some(format!("request_id {request_id}")),
        Outcome::Rejected { error } => Some(error.clone()),
        Outcome::NotSent { reason } | Outcome::InDoubt { reason } => Some(reason.to_string()),
    };
    (words.kind("state", state.name()).unwrap_or_default().to_owned(), told)
}

fn receipt_words(words: &Words, receipt: &Receipt) -> (String, Option<String>) {
    let channel =
        receipt.channel.as_ref().map(|channel| words.kind("channel", channel.word()).unwrap_or(channel.word()));
    let status = receipt.status.name();
    let what = match channel {
        Some(channel) => words.say_with("pages.receipt-of", &[("what", status), ("channel", channel)]),
        None => words.say_with("pages.receipt", &[("what", status)]),
    };
    let replies = receipt.replies.iter().map(|reply| reply.text.as_str());
    let told: Vec<&str> = receipt.error.as_deref().into_iter().chain(receipt.digit.as_deref()).chain(replies).collect();
    (what, (!told.is_empty()).then(|| told.join(" · ")))
}

fn change_words(words: &Words, change: &Change) -> (String, Option<String>) {
    let (word, by, told) = match change {
        Change::Found { status, .. } => ("found", None, Some(status.clone())),
        Change::NotFound { .. } => ("not_found", None, None),
        Change::Unresolved { .. } => ("unresolved", None, None),
        Change::AssumedSent { by, why } => ("sent", Some(by), why.clone()),
        Change::NotSent { by, why } => ("not_sent", Some(by), why.clone()),
        Change::SendAgain { by, why } => ("send_again", Some(by), why.clone()),
        Change::Retry { by, .. } => ("retry", Some(by), None),
    };
    let what = words.kind("pages-change", word).unwrap_or_default();
    let known = by.filter(|by| is_known(by));
    (known.map_or_else(|| what.to_owned(), |by: &Author| by_whom(words, what, by)), told)
}

fn by_whom(words: &Words, what: &str, by: &Author) -> String {
    words.say_with("pages.by", &[("what", what), ("who", &by.to_string())])
}
