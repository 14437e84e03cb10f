//! The rows of a run by state, channel, reason, variant and page, and the history of one row.
//!
//! A page starts at a row number rather than an offset, so the last page of a million rows is as fast as the first.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::Path;
use axum::response::Response;
use roaring::RoaringBitmap;
use serde::Serialize;

use super::page_error::PageError;
use super::request::{PageRequest, encode_path_segment};
use super::run::done_message;
use crate::web::files::FirstMessages;
use crate::web::words::PageWords;
use campaign_core::domain::{Channel, OperationOutcome, Phone, Receipt, Row};
use campaign_engine::delivery::FrozenInputs;
use campaign_engine::report::{
    HistoryEntry, HistoryEvent, IN_DOUBT_STATES, ListColumn, MessageHistory, RecipientKey, ResultsError, RowFilter,
    RowIndex, RowSummary, RunFigures, find_recipients, is_owned, load_copies, load_row_summaries, read_list_headers,
};
use campaign_ledger::{AskedRow, Author, LedgerError, RowChange, RowState, Run};
use campaign_runs::{Error, is_known_author, open_copies, run_blocking};

/// The number of rows on a page.
const ROWS_PER_PAGE: usize = 50;
/// The maximum number of reasons by which rows can be filtered.
const MAX_REASONS: usize = 60;
/// The maximum number of rows with one phone number that are shown.
const MAX_ROWS_OF_PHONE: usize = 200;

#[derive(Serialize)]
struct RowsPageView {
    name: String,
    path: String,
    /// The state of the rows; read rows count as delivered. `None` for all rows.
    state: Option<&'static str>,
    states: Vec<StateLink>,
    rows: Vec<RowLine>,
    /// The position of these rows among all; `None` without rows.
    position: Option<PagePosition>,
    /// Whether the requested start is after the last of these rows.
    past_end: bool,
    /// The link to the previous rows.
    previous: Option<String>,
    /// The link to the next rows.
    next: Option<String>,
    channels: Vec<Choice>,
    reasons: Vec<ReasonChoice>,
    /// The variants of the campaign; empty if it has none.
    variants: Vec<Choice>,
    /// The columns of the list that can be shown.
    columns: Vec<Choice>,
    /// The column that is shown.
    column: Option<String>,
    /// Whether a filter or a column is set.
    filtered: bool,
    /// The path of the rows in all states.
    all_path: String,
    /// The query of the export of exactly these rows.
    export_query: String,
    /// The link that shows or hides phone numbers; `None` if the visitor is not allowed to see them.
    numbers: Option<NumbersLink>,
}

/// A value of a filter.
#[derive(Serialize)]
struct Choice {
    value: String,
    chosen: bool,
}

impl Choice {
    fn new(value: &str, chosen: Option<&str>) -> Self {
        Self { value: value.to_owned(), chosen: chosen == Some(value) }
    }
}

/// A reason by which rows can be filtered.
#[derive(Serialize)]
struct ReasonChoice {
    value: String,
    label: String,
    chosen: bool,
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

/// A row in a list.
#[derive(Serialize)]
pub(super) struct RowLine {
    row: u32,
    path: String,
    to: Option<String>,
    state: &'static str,
    reason: Option<String>,
    /// The reason in the page's language, if it is a known reason.
    translated: Option<String>,
    sent: Option<String>,
    /// The cell of the chosen column of the list.
    cell: Option<String>,
}

/// The link that shows numbers in full, or masks them again.
#[derive(Serialize)]
pub(super) struct NumbersLink {
    shown: bool,
    path: String,
}

impl NumbersLink {
    /// Creates the link that shows or hides phone numbers on a page; only visitors who may make decisions get the link.
    /// `path` can have a query.
    pub(super) fn for_page(request: &PageRequest, path: &str) -> Option<Self> {
        let is_shown = request.shows_numbers();
        let sign = if path.contains('?') { '&' } else { '?' };
        let path = if is_shown { path.to_owned() } else { format!("{path}{sign}numbers=shown") };
        request.visitor.decides.then_some(Self { shown: is_shown, path })
    }
}

/// The filters and the position of a page of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RowQuery {
    /// The state of the rows; read rows count as delivered. `None` for all rows.
    pub(super) state: Option<RowState>,
    pub(super) filter: RowFilter,
    /// The header of the column of the list that is shown.
    column: Option<String>,
    /// The first row; `None` for the first page.
    from: Option<Row>,
    /// Whether phone numbers are shown in full.
    numbers: bool,
}

impl RowQuery {
    /// Parses the row filters in the query of a request.
    ///
    /// # Errors
    /// If the query names an unknown state or channel.
    pub(super) fn from_request(request: &PageRequest) -> Result<Self, PageError> {
        let get = |name: &str| request.query.get(name);
        let state = match get("state") {
            Some(word) => Some(RowState::from_name(word).ok_or(PageError::Unknown)?),
            None => None,
        };
        let channel = match get("channel") {
            Some(word) => Some(Channel::from_name(word).ok_or(PageError::Unknown)?),
            None => None,
        };
        Ok(Self {
            state,
            filter: RowFilter {
                channel,
                reason: get("reason").map(str::to_owned),
                variant: get("variant").map(str::to_owned),
            },
            column: get("column").map(str::to_owned),
            from: get("from").and_then(|from| from.parse().ok()).map(Row::new),
            numbers: request.shows_numbers(),
        })
    }

    /// Returns the URL of a run's rows that match this query, relative to the run's page.
    fn path(&self, run: &str) -> String {
        let query = self.query();
        if query.is_empty() { format!("{run}/rows") } else { format!("{run}/rows?{query}") }
    }

    /// Returns this query in URL encoding.
    fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let mut add = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        };
        add("state", self.state.map(RowState::name));
        add("channel", self.filter.channel.map(Channel::name));
        add("reason", self.filter.reason.as_deref());
        add("variant", self.filter.variant.as_deref());
        add("column", self.column.as_deref());
        add("from", self.from.filter(|from| *from > Row::FIRST).map(|from| from.to_string()).as_deref());
        add("numbers", self.numbers.then_some("shown"));
        query.finish()
    }
}

pub(super) async fn show_rows(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = build_view(&mut request, &name).await;
    request.respond("pages/rows.html", view)
}

async fn build_view(request: &mut PageRequest, name: &str) -> Result<RowsPageView, PageError> {
    let run = request.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    let query = RowQuery::from_request(request)?;
    let (state, from) = (query.state, query.from.unwrap_or(Row::FIRST));
    let index = load_index(request, &run, &query.filter).await?;
    let mut rows = index.rows_from(state, from, ROWS_PER_PAGE + 1);
    let next = if rows.len() > ROWS_PER_PAGE { rows.pop() } else { None };
    let previous = index.find_page_start(state, from, ROWS_PER_PAGE);
    let (skipped, all) = index.count_before_and_total(state, from);
    let format = |number: u64| request.words().format_number(number);
    let position =
        PagePosition { from: format(skipped + 1), to: format(skipped + rows.len() as u64), all: format(all) };
    let past_end = rows.is_empty() && all > 0;
    let position = (!rows.is_empty()).then_some(position);
    let summaries = load_row_summaries(request.ledger(), &run, is_owned(request.ledger(), &run).await?, &rows).await?;
    let path = format!("/runs/{}", encode_path_segment(name));
    let link = |from: Row| RowQuery { from: Some(from), ..query.clone() }.path(&path);
    // The state of a row might have changed since the lookup.
    let summaries = summaries.into_iter().filter(|row| state.is_none_or(|state| state.includes_state(row.state)));
    let links = RowState::ALL.into_iter().filter(|state| index.count(*state) > 0).map(|row_state| StateLink {
        state: row_state.name(),
        rows: index.count(row_state),
        path: RowQuery { state: Some(row_state), from: None, ..query.clone() }.path(&path),
        is_current: state == Some(row_state),
    });
    let ListChoices { columns, variants, cells } = load_choices(request, &run, &query, &rows).await;
    let line_with_cell = |row: RowSummary| RowLine {
        cell: cells.get(&row.row).map(|cell| mask_cell(request, cell)),
        ..row_line(request, &path, row)
    };
    Ok(RowsPageView {
        name: run.name(),
        state: state.map(RowState::name),
        states: links.collect(),
        rows: summaries.map(line_with_cell).collect(),
        position,
        past_end,
        previous: previous.map(&link),
        next: next.map(link),
        channels: Channel::ALL
            .iter()
            .map(|channel| Choice::new(channel.name(), query.filter.channel.map(Channel::name)))
            .collect(),
        reasons: load_reasons(request, &run, &query).await?,
        variants,
        columns,
        column: query.column.clone(),
        filtered: !query.filter.is_unfiltered() || query.column.is_some(),
        all_path: RowQuery { state: None, from: None, ..query.clone() }.path(&path),
        export_query: RowQuery { from: None, column: None, numbers: false, ..query.clone() }.query(),
        numbers: NumbersLink::for_page(request, &RowQuery { numbers: false, ..query }.path(&path)),
        path,
    })
}

/// The minimum number of digits in a cell that might contain a phone number.
const MIN_PHONE_DIGITS: usize = 7;

/// Masks a cell that might contain a phone number, unless the page shows full numbers.
fn mask_cell(request: &PageRequest, cell: &str) -> String {
    let digits: Vec<char> = cell.chars().filter(|character| character.is_numeric()).collect();
    if request.shows_numbers() || digits.len() < MIN_PHONE_DIGITS {
        return cell.to_owned();
    }
    let last: String = digits[digits.len() - 2..].iter().collect();
    format!("…{last}")
}

/// Loads the index of a run's rows that match a filter.
pub(super) async fn load_index(
    request: &PageRequest,
    run: &Run,
    filter: &RowFilter,
) -> Result<Arc<RowIndex>, PageError> {
    request.pages.indexes.get_index(&request.pages.adapters.ledger, run, filter).await
}

/// Loads the reasons by which the rows of a run can be filtered: the chosen reason, then failures, then reasons for
/// rows without a message, each most frequent first.
async fn load_reasons(request: &PageRequest, run: &Run, query: &RowQuery) -> Result<Vec<ReasonChoice>, PageError> {
    let figures = RunFigures::load_stored(request.ledger(), run).await?;
    let chosen = query.filter.reason.as_deref();
    let reason_counts =
        figures.as_ref().map(|figures| [figures.failures.most_frequent(), figures.left_out.most_frequent()]);
    let mut texts: Vec<&str> = reason_counts.iter().flatten().flatten().map(|reason| reason.text).collect();
    texts.extend(chosen);
    let mut reasons: Vec<ReasonChoice> = Vec::new();
    for text in texts.into_iter().filter(|text| !text.is_empty()) {
        if reasons.iter().all(|known| known.value != text) {
            let label = request.words().item_name("reason", text).unwrap_or(text).to_owned();
            reasons.push(ReasonChoice { value: text.to_owned(), label, chosen: chosen == Some(text) });
        }
    }
    reasons.sort_by_key(|reason| !reason.chosen);
    reasons.truncate(MAX_REASONS);
    Ok(reasons)
}

/// The columns of the list and the variants, and the cells of the chosen column.
#[derive(Default)]
struct ListChoices {
    columns: Vec<Choice>,
    variants: Vec<Choice>,
    cells: BTreeMap<Row, String>,
}

/// Loads the columns, cells and variants that the copies of a run provide. Rows are listed even if the copies cannot be
/// read.
async fn load_choices(request: &PageRequest, run: &Run, query: &RowQuery, rows: &[Row]) -> ListChoices {
    if run.shared {
        return ListChoices::default();
    }
    let load = async {
        let copies = load_copies(request.ledger(), run).await.ok()?;
        let frozen = FrozenInputs::from_copies(&copies).ok()?;
        let arms = frozen.brief.list_arms();
        let names = arms.iter().filter_map(|arm| arm.name);
        let variants = names.map(|name| Choice::new(name, query.filter.variant.as_deref())).collect();
        let row_set: RoaringBitmap = rows.iter().map(|row| row.get()).collect();
        let header = query.column.clone().filter(|_| row_set.max().is_some_and(|last| last <= MAX_EAGER_ROW));
        let read_list = move || {
            let headers = read_list_headers(&copies, &frozen)?;
            let column = header.map(|header| ListColumn::read(&copies, &frozen, &header, &row_set)).transpose()?;
            Ok::<_, ResultsError>((headers, column.unwrap_or_default().cells))
        };
        let (headers, cells) = run_blocking(read_list).await.ok()?.ok()?;
        let columns = headers.iter().map(|header| Choice::new(header, query.column.as_deref())).collect();
        Some(ListChoices { columns, variants, cells })
    };
    load.await.unwrap_or_default()
}

pub(super) fn row_line(
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
        translated: reason.as_deref().and_then(|reason| request.words().item_name("reason", reason)).map(str::to_owned),
        reason: reason.map(|reason| request.mask_gateway_text(&reason, phone)),
        sent: sent_at.map(|at| request.format_moment_with_seconds(at)),
        cell: None,
    }
}

/// Finds at most [`MAX_ROWS_OF_PHONE`] rows with this phone number in a run's list.
///
/// # Errors
/// If the ledger or the copies of the run cannot be read.
pub(super) async fn find_rows_of_phone(
    request: &PageRequest,
    run: &Run,
    phone: Phone,
) -> Result<Vec<RowSummary>, PageError> {
    let copies = load_copies(request.ledger(), run).await?;
    let frozen = FrozenInputs::from_copies(&copies)?;
    let recipients = run_blocking(move || find_recipients(&copies, &frozen, RecipientKey::Number(phone))).await?;
    let mut rows: Vec<Row> = recipients.map_err(Error::from)?.into_iter().map(|recipient| recipient.row).collect();
    rows.truncate(MAX_ROWS_OF_PHONE);
    Ok(load_row_summaries(request.ledger(), run, is_owned(request.ledger(), run).await?, &rows).await?)
}

/// The last row whose message is loaded without a click. Loading a message reads the list up to its row.
const MAX_EAGER_ROW: u32 = 100_000;
/// The maximum length of a recorded answer on a page, in characters.
const MAX_ANSWER_LENGTH: usize = 1_000;

#[derive(Serialize)]
struct MessagePageView {
    run: String,
    path: String,
    row: u32,
    to: Option<String>,
    state: &'static str,
    /// The reason the row gets no message.
    skip_reason: Option<String>,
    /// The message; `None` if the row has no message, or if the data was removed.
    message: Option<FirstMessages>,
    /// The link that shows the message, if the row is too far down the list to load it at once, or if loading failed.
    message_path: Option<String>,
    entries: Vec<HistoryLine>,
    /// The number of rows that a decision concerns: 1 if the row is in doubt, otherwise 0.
    doubt: u64,
    numbers: Option<NumbersLink>,
    done: Option<String>,
}

/// An event in the history of a row.
#[derive(Serialize)]
struct HistoryLine {
    at: String,
    what: String,
    /// The untranslated text that belongs to the event, if any.
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
    // A row without any record can be a blank line of the list.
    let is_recorded = history.left_out.is_some() || !history.entries.is_empty();
    if !is_recorded && !load_index(request, &run, &RowFilter::default()).await?.contains(row) {
        return Err(PageError::Unknown);
    }
    let path = format!("/runs/{}", encode_path_segment(name));
    let row_path = format!("{path}/rows/{row}");
    let path_with_message = format!("{row_path}?message=shown");
    let numbers = if request.shows_numbers() { "&numbers=shown" } else { "" };
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
        skip_reason: history.left_out.as_deref().map(|reason| translate_reason(request.words(), reason)),
        message_path: (has_message && message.is_none()).then(|| format!("{path_with_message}{numbers}")),
        message,
        entries: history_lines(request, &history),
        doubt: is_in_doubt.into(),
        numbers: match request.query.get("message") {
            Some(_) => NumbersLink::for_page(request, &path_with_message),
            None => NumbersLink::for_page(request, &row_path),
        },
        done: done_message(request),
        path,
    })
}

/// Loads the message of a row from the copies of the run; reads the list up to this row.
async fn load_message(request: &PageRequest, run: &Run, row: Row) -> Result<FirstMessages, PageError> {
    let (frozen, prepared) = open_copies(request.ledger(), run).await?;
    let unmasked = request.shows_numbers();
    Ok(run_blocking(move || FirstMessages::read_row(&frozen.brief, prepared, row, unmasked)).await??)
}

/// Translates a known reason into the page's language; an unknown reason is returned unchanged.
pub(super) fn translate_reason(words: &PageWords, reason: &str) -> String {
    words.item_name("reason", reason).unwrap_or(reason).to_owned()
}

fn history_lines(request: &PageRequest, history: &MessageHistory) -> Vec<HistoryLine> {
    let line = |entry: &HistoryEntry| {
        let (what, text) = describe_event(request.words(), &entry.event);
        let text = text.map(|text| match &entry.event {
            HistoryEvent::Receipt(_) | HistoryEvent::Change { .. } => request.mask_written_text(&text, history.phone),
            _ => request.mask_gateway_text(&text, history.phone),
        });
        HistoryLine { at: request.format_moment_with_seconds(entry.at), what, text }
    };
    history.entries.iter().map(line).collect()
}

/// Describes an event in the page's language, and returns the untranslated text that belongs to the event, if any.
fn describe_event(words: &PageWords, event: &HistoryEvent) -> (String, Option<String>) {
    match event {
        HistoryEvent::Attempt { envelope, id, others } => {
            let (envelope, id) = (envelope.to_string(), id.map_or(0, |id| id.get()).to_string());
            let values = [("n", envelope.as_str()), ("code", id.as_str())];
            let label = match others {
                0 => words.say_with("pages.attempt-alone", &values),
                others => words.count("pages.attempt", *others, &values),
            };
            (label, None)
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
    (words.item_name("state", state.name()).unwrap_or_default().to_owned(), text)
}

fn describe_receipt(words: &PageWords, receipt: &Receipt) -> (String, Option<String>) {
    let channel = receipt
        .channel
        .as_ref()
        .map(|channel| words.item_name("channel", channel.as_str()).unwrap_or(channel.as_str()));
    let status = receipt.status.name();
    let event = match channel {
        Some(channel) => words.say_with("pages.receipt-of", &[("what", status), ("channel", channel)]),
        None => words.say_with("pages.receipt", &[("what", status)]),
    };
    let replies = receipt.replies.iter().map(|reply| reply.text.as_str());
    let texts: Vec<&str> =
        receipt.error.as_deref().into_iter().chain(receipt.digit.as_deref()).chain(replies).collect();
    (event, (!texts.is_empty()).then(|| texts.join(" · ")))
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
    let event = words.item_name("change", word).unwrap_or_default();
    let author = by.filter(|by| is_known_author(by));
    (author.map_or_else(|| event.to_owned(), |by: &Author| add_author(words, event, by)), text)
}

fn add_author(words: &PageWords, text: &str, by: &Author) -> String {
    words.say_with("pages.changed-by", &[("what", text), ("who", &by.to_string())])
}
