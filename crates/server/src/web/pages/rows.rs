//! The rows of a run by state and page, the search for a row, and the history of one row.
//!
//! A page starts at a row number and not at an offset, so the last page of a million rows is as fast as the first.

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::page_error::{InvalidInput, PageError};
use super::request::{PageRequest, VerifiedForm, encode_path_segment};
use super::run::done_message;
use crate::web::files::FirstMessages;
use crate::web::words::PageWords;
use campaign_content::audience::parse_phone_number;
use campaign_core::domain::{MessageId, OperationOutcome, Phone, Receipt, Row};
use campaign_engine::delivery::FrozenInputs;
use campaign_engine::report::{
    HistoryEntry, HistoryEvent, IN_DOUBT_STATES, MessageHistory, RecipientKey, RowSummary, find_recipients, is_owned,
    load_copies, load_row_summaries,
};
use campaign_ledger::{AskedRow, Author, LedgerError, RowChange, RowState, Run};
use campaign_runs::{Error, is_known_author, open_copies, run_blocking};

/// The number of rows on a page.
const ROWS_PER_PAGE: usize = 50;
/// The largest number of rows of one number that are shown.
const MAX_FOUND: usize = 200;

#[derive(Serialize)]
struct RowsPageView {
    name: String,
    path: String,
    /// The state of the rows; read rows count as delivered. `None` for all rows.
    state: Option<&'static str>,
    states: Vec<StateLink>,
    rows: Vec<RowLine>,
    /// The position of these rows among all; `None` for search results.
    position: Option<PagePosition>,
    /// Whether the requested start is after the last of these rows.
    past_end: bool,
    /// The links to the previous and next rows.
    previous: Option<String>,
    next: Option<String>,
    /// Whether these are search results.
    is_search: bool,
    /// The link that shows or hides numbers; `None` without the right to see them.
    numbers: Option<NumbersLink>,
}

/// The position of rows among all rows in their state.
#[derive(Serialize)]
struct PagePosition {
    from: String,
    to: String,
    all: String,
}

#[derive(Serialize)]
struct StateLink {
    state: &'static str,
    rows: u64,
    path: String,
    is_current: bool,
}

#[derive(Serialize)]
struct RowLine {
    row: u32,
    path: String,
    to: Option<String>,
    state: &'static str,
    reason: Option<String>,
    /// The reason in the page's language, if it is one of ours.
    translated: Option<String>,
    sent: Option<String>,
}

/// The link that shows numbers in full, or masks them again.
#[derive(Serialize)]
pub(super) struct NumbersLink {
    shown: bool,
    path: String,
}

impl NumbersLink {
    /// The link for a page at this path, which may have a query.
    pub(super) fn for_page(request: &PageRequest, path: &str) -> Option<Self> {
        let shown = request.shows_numbers();
        let sign = if path.contains('?') { '&' } else { '?' };
        let path = if shown { path.to_owned() } else { format!("{path}{sign}numbers=shown") };
        request.visitor.decides.then_some(Self { shown, path })
    }
}

pub(super) async fn show_rows(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = build_view(&mut request, &name).await;
    request.respond("pages/rows.html", view)
}

async fn build_view(request: &mut PageRequest, name: &str) -> Result<RowsPageView, PageError> {
    let run = request.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    let state = match request.query.get("state") {
        Some(word) => Some(RowState::ALL.into_iter().find(|state| state.name() == word).ok_or(PageError::Unknown)?),
        None => None,
    };
    let from = request.query.get("from").and_then(|from| from.parse().ok()).map_or(Row::FIRST, Row::new);
    let index = request.pages.indexes.get_index(&request.pages.adapters.ledger, &run).await?;
    let mut rows = index.rows_from(state, from, ROWS_PER_PAGE + 1);
    let next = if rows.len() > ROWS_PER_PAGE { rows.pop() } else { None };
    let previous = index.find_page_start(state, from, ROWS_PER_PAGE);
    let (skipped, all) = index.count_before(state, from);
    let number = |number: u64| request.words().format_number(number);
    let position =
        PagePosition { from: number(skipped + 1), to: number(skipped + rows.len() as u64), all: number(all) };
    let past_end = rows.is_empty() && all > 0;
    let position = (!rows.is_empty()).then_some(position);
    let listed = load_row_summaries(request.ledger(), &run, is_owned(request.ledger(), &run).await?, &rows).await?;
    let path = format!("/runs/{}", encode_path_segment(name));
    let link = |from: Row| rows_url(&path, state, Some(from), request.shows_numbers());
    // The state of a row might have changed since the lookup.
    let listed = listed.into_iter().filter(|row| state.is_none_or(|state| state.includes_state(row.state)));
    let links = RowState::ALL.into_iter().filter(|state| index.count(*state) > 0).map(|of| StateLink {
        state: of.name(),
        rows: index.count(of),
        path: rows_url(&path, Some(of), None, request.shows_numbers()),
        is_current: state == Some(of),
    });
    Ok(RowsPageView {
        name: run.name(),
        state: state.map(RowState::name),
        states: links.collect(),
        rows: listed.map(|row| row_line(request, &path, row)).collect(),
        position,
        past_end,
        previous: previous.map(&link),
        next: next.map(link),
        is_search: false,
        numbers: NumbersLink::for_page(request, &rows_url(&path, state, Some(from), false)),
        path,
    })
}

/// The URL of a page of rows.
fn rows_url(path: &str, state: Option<RowState>, from: Option<Row>, numbers: bool) -> String {
    let state = state.map(|state| format!("state={}", state.name()));
    let from = from.filter(|from| *from > Row::FIRST).map(|from| format!("from={from}"));
    let numbers = numbers.then(|| "numbers=shown".to_owned());
    let query: Vec<String> = [state, from, numbers].into_iter().flatten().collect();
    if query.is_empty() { format!("{path}/rows") } else { format!("{path}/rows?{}", query.join("&")) }
}

fn row_line(
    request: &PageRequest,
    path: &str,
    RowSummary { row, phone, state, reason, sent_at }: RowSummary,
) -> RowLine {
    let numbers = if request.shows_numbers() { "?numbers=shown" } else { "" };
    RowLine {
        row: row.get(),
        path: format!("{path}/rows/{row}{numbers}"),
        to: phone.map(|phone| request.format_number(phone)),
        state: state.name(),
        translated: reason.as_deref().and_then(|reason| request.words().kind("reason", reason)).map(str::to_owned),
        reason: reason.map(|reason| request.mask_text(&reason, phone)),
        sent: sent_at.map(|at| request.format_moment(at)),
    }
}

/// Finds rows by row number, message identifier or phone number. The search term is in a form, so that no phone number
/// appears in a URL.
pub(super) async fn find_rows(Path(name): Path<String>, form: VerifiedForm) -> Response {
    let VerifiedForm { mut request, fields } = form;
    let wanted = fields.get("wanted").unwrap_or_default();
    let found = async {
        let run = request.find_run(&name).await?;
        LedgerError::refuse_purged(&run)?;
        Ok(match resolve_row(&run, wanted) {
            Some(row) => RowSearch::Row(row),
            None => RowSearch::Rows(find_rows_of_number(&request, &run, wanted).await?),
        })
    };
    let path = format!("/runs/{}", encode_path_segment(&name));
    match found.await {
        Ok(RowSearch::Row(row)) => request.respond_to_order(Ok(format!("{path}/rows/{row}"))),
        Ok(RowSearch::Rows(rows)) => {
            let rows = rows.into_iter().map(|row| row_line(&request, &path, row)).collect();
            let view = RowsPageView {
                name,
                path,
                state: None,
                states: Vec::new(),
                rows,
                position: None,
                past_end: false,
                previous: None,
                next: None,
                is_search: true,
                numbers: None,
            };
            request.respond("pages/rows.html", Ok(view))
        }
        Err(refusal) => request.respond::<RowsPageView>("pages/rows.html", Err(refusal)),
    }
}

enum RowSearch {
    Row(Row),
    Rows(Vec<RowSummary>),
}

/// Finds a row of the run by message identifier or row number; the identifier takes precedence.
fn resolve_row(run: &Run, wanted: &str) -> Option<Row> {
    let number: u64 = wanted.parse().ok()?;
    let by_id = MessageId::new(number).and_then(|id| run.find_row(id));
    let by_row = u32::try_from(number).ok().map(Row::new);
    by_id.or_else(|| by_row.filter(|row| *row >= Row::FIRST && *row <= run.last_row()))
}

async fn find_rows_of_number(request: &PageRequest, run: &Run, wanted: &str) -> Result<Vec<RowSummary>, PageError> {
    let copies = load_copies(request.ledger(), run).await?;
    let frozen = FrozenInputs::from_copies(&copies)?;
    let region = frozen.brief.region;
    let international = || parse_phone_number(&format!("+{}", wanted.trim_start_matches('+')), None);
    let phone: Phone = parse_phone_number(wanted, region)
        .or_else(|_| international())
        .map_err(|_| PageError::InvalidInput(InvalidInput::Search))?;
    let found = run_blocking(move || find_recipients(&copies, &frozen, RecipientKey::Number(phone))).await?;
    let mut rows: Vec<Row> = found.map_err(Error::from)?.into_iter().map(|recipient| recipient.row).collect();
    rows.truncate(MAX_FOUND);
    Ok(load_row_summaries(request.ledger(), run, is_owned(request.ledger(), run).await?, &rows).await?)
}

/// The messages of rows up to this one are loaded without a click, because that reads the list up to the row.
const MAX_EAGER_ROW: u32 = 100_000;
/// The largest length of a recorded answer on a page.
const MAX_ANSWER_LENGTH: usize = 1_000;

#[derive(Serialize)]
struct MessagePageView {
    run: String,
    path: String,
    row: u32,
    to: Option<String>,
    state: &'static str,
    /// Why the row gets no message.
    skip_reason: Option<String>,
    /// The message; `None` if the row has no message, or if the data was removed.
    message: Option<FirstMessages>,
    /// The link that shows the message, if the row is too far down the list to load it at once, or if loading failed.
    message_path: Option<String>,
    entries: Vec<HistoryLine>,
    /// The number of rows that a decision concerns: 1 if the row is in doubt, or 0.
    doubt: u64,
    numbers: Option<NumbersLink>,
    done: Option<String>,
}

/// An event.
#[derive(Serialize)]
struct HistoryLine {
    at: String,
    what: String,
    /// The text that came with it: not ours, or in English.
    text: Option<String>,
}

pub(super) async fn show_message(mut request: PageRequest, Path((name, row)): Path<(String, String)>) -> Response {
    let view = match row.parse() {
        Ok(row) => build_message_view(&mut request, &name, Row::new(row)).await,
        Err(_) => Err(PageError::Unknown),
    };
    request.respond("pages/message.html", view)
}

async fn build_message_view(request: &mut PageRequest, name: &str, row: Row) -> Result<MessagePageView, PageError> {
    let run = request.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    if row < Row::FIRST || row > run.last_row() {
        return Err(PageError::Unknown);
    }
    let owned = is_owned(request.ledger(), &run).await?;
    let history = MessageHistory::load_row(request.ledger(), &run, owned, row).await?.ok_or(PageError::Unknown)?;
    let path = format!("/runs/{}", encode_path_segment(name));
    let is_in_doubt = IN_DOUBT_STATES.contains(&history.state);
    let has_message = !run.shared && history.left_out.is_none();
    let message = match request.query.get("message") {
        _ if !has_message => None,
        Some(_) => Some(load_message(request, &run, row).await?),
        // The history is shown even if the message cannot be loaded.
        None if row.get() <= MAX_EAGER_ROW => load_message(request, &run, row).await.ok(),
        None => None,
    };
    Ok(MessagePageView {
        run: run.name(),
        row: row.get(),
        to: history.phone.map(|phone| request.format_number(phone)),
        state: history.state.name(),
        skip_reason: history.left_out.as_deref().map(|why| translate_reason(request.words(), why)),
        message_path: (has_message && message.is_none()).then(|| format!("{path}/rows/{row}?message=shown")),
        message,
        entries: history_lines(request, &history),
        doubt: is_in_doubt.into(),
        numbers: NumbersLink::for_page(request, &format!("{path}/rows/{row}")),
        done: done_message(request),
        path,
    })
}

/// The message of a row of a run whose copies exist; reads the list up to that row.
async fn load_message(request: &PageRequest, run: &Run, row: Row) -> Result<FirstMessages, PageError> {
    let (frozen, prepared) = open_copies(request.ledger(), run).await?;
    let unmasked = request.shows_numbers();
    Ok(run_blocking(move || FirstMessages::read_row(&frozen.brief, prepared, row, unmasked)).await??)
}

/// Translates a reason into the page's language, if it is one of ours.
fn translate_reason(words: &PageWords, why: &str) -> String {
    words.kind("reason", why).unwrap_or(why).to_owned()
}

fn history_lines(request: &PageRequest, history: &MessageHistory) -> Vec<HistoryLine> {
    let entry = |entry: &HistoryEntry| {
        let (what, text) = describe_event(request.words(), &entry.event);
        let text = text.map(|text| request.mask_text(&text, history.phone));
        HistoryLine { at: request.format_moment(entry.at), what, text }
    };
    history.entries.iter().map(entry).collect()
}

/// Describes an event in the page's language, with the text that came with it.
fn describe_event(words: &PageWords, event: &HistoryEvent) -> (String, Option<String>) {
    match event {
        HistoryEvent::Attempt { envelope, id, others } => {
            let (envelope, id) = (envelope.to_string(), id.map_or(0, |id| id.get()).to_string());
            (words.count("pages.attempt", *others, &[("n", &envelope), ("code", &id)]), None)
        }
        HistoryEvent::Outcome { outcome, .. } => describe_outcome(words, outcome),
        HistoryEvent::Answer { body, .. } => {
            (words.say("pages.answer").to_owned(), Some(body.chars().take(MAX_ANSWER_LENGTH).collect()))
        }
        HistoryEvent::Inquiries(AskedRow { asked, answer, .. }) => {
            (words.count("pages.status-requests", (*asked).into(), &[]), Some(answer.to_string()))
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
    let text = match outcome {
        OperationOutcome::Accepted { msg_id, answer, .. } => {
            answer.clone().or_else(|| msg_id.as_ref().map(|id| format!("msg_id {id}")))
        }
        OperationOutcome::Queued { request_id } => Some(format!("request_id {request_id}")),
        OperationOutcome::Rejected { error } => Some(error.clone()),
        OperationOutcome::NotSent { reason } | OperationOutcome::InDoubt { reason } => Some(reason.to_string()),
    };
    (words.kind("state", state.name()).unwrap_or_default().to_owned(), text)
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
    let texts: Vec<&str> =
        receipt.error.as_deref().into_iter().chain(receipt.digit.as_deref()).chain(replies).collect();
    (what, (!texts.is_empty()).then(|| texts.join(" · ")))
}

fn describe_change(words: &PageWords, change: &RowChange) -> (String, Option<String>) {
    let (word, by, text) = match change {
        RowChange::Found { status, .. } => ("found", None, Some(status.clone())),
        RowChange::NotFound { .. } => ("not_found", None, None),
        RowChange::Unresolved { .. } => ("unresolved", None, None),
        RowChange::AssumedSent { by, why } => ("sent", Some(by), why.clone()),
        RowChange::NotSent { by, why } => ("not_sent", Some(by), why.clone()),
        RowChange::SendAgain { by, why } => ("send_again", Some(by), why.clone()),
        RowChange::Retry { by, .. } => ("retry", Some(by), None),
    };
    let what = words.kind("change", word).unwrap_or_default();
    let author = by.filter(|by| is_known_author(by));
    (author.map_or_else(|| what.to_owned(), |by: &Author| with_author(words, what, by)), text)
}

fn with_author(words: &PageWords, what: &str, by: &Author) -> String {
    words.say_with("pages.changed-by", &[("what", what), ("who", &by.to_string())])
}
