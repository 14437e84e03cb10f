//! The rows of a run by state, a page at a time, and the search for one.
//!
//! A page begins at a row and not behind so many others, so the last one of a million is as quick as the first.

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::fields::encode_path_segment;
use super::look::PageRequest;
use super::refusal::{InvalidInput, PageError};
use super::told::VerifiedForm;
use crate::audience::parse_phone_number;
use crate::delivery::FrozenInputs;
use crate::domain::{MessageId, Phone, Row};
use crate::ledger::{LedgerError, RowState, Run};
use crate::report::{RecipientKey, RowSummary, find_recipients, is_owned, load_copies, load_row_summaries};
use crate::runs::{Error, run_blocking};

/// How many rows a page has.
const ROWS_PER_PAGE: usize = 50;
/// The most rows of one number that are shown.
const MAX_FOUND: usize = 200;

#[derive(Serialize)]
struct RowsPageView {
    name: String,
    path: String,
    /// The state of the rows, with read ones among the delivered. `None` for all rows.
    state: Option<&'static str>,
    states: Vec<StateLink>,
    rows: Vec<RowLine>,
    /// Which of all these rows they are; nothing where a search found them.
    shown: Option<PagePosition>,
    /// Whether all of these rows are before the one from which they were asked for.
    beyond: bool,
    /// Where rows before these and behind these are.
    before: Option<String>,
    behind: Option<String>,
    /// Whether a search found these.
    found: bool,
    /// The address that shows numbers, or hides them again; nothing for who may not see them.
    numbers: Option<NumbersLink>,
}

/// Where rows stand among all that are in their state.
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
    here: bool,
}

#[derive(Serialize)]
struct RowLine {
    row: u32,
    path: String,
    to: Option<String>,
    state: &'static str,
    reason: Option<String>,
    /// The reason in the page's language, where it is one that we give.
    known: Option<String>,
    sent: Option<String>,
}

/// Where numbers are shown whole, or masked again.
#[derive(Serialize)]
pub(super) struct NumbersLink {
    shown: bool,
    path: String,
}

impl NumbersLink {
    /// For a page at this address, whose query, where it has one, begins with `?`.
    pub(super) fn for_page(look: &PageRequest, path: &str) -> Option<Self> {
        let shown = look.shows_numbers();
        let sign = if path.contains('?') { '&' } else { '?' };
        let path = if shown { path.to_owned() } else { format!("{path}{sign}numbers=shown") };
        look.visitor.decides.then_some(Self { shown, path })
    }
}

pub(super) async fn show_rows(mut look: PageRequest, Path(name): Path<String>) -> Response {
    let view = build_view(&mut look, &name).await;
    look.respond("pages/rows.html", view)
}

async fn build_view(look: &mut PageRequest, name: &str) -> Result<RowsPageView, PageError> {
    let run = look.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    let state = match look.query.get("state") {
        Some(word) => Some(RowState::ALL.into_iter().find(|state| state.name() == word).ok_or(PageError::Unknown)?),
        None => None,
    };
    let from = look.query.get("from").and_then(|from| from.parse().ok()).map_or(Row::FIRST, Row::new);
    let index = look.pages.indexes.get_index(&look.pages.adapters.ledger, &run).await?;
    let mut rows = index.rows_from(state, from, ROWS_PER_PAGE + 1);
    let behind = if rows.len() > ROWS_PER_PAGE { rows.pop() } else { None };
    let before = index.find_page_start(state, from, ROWS_PER_PAGE);
    let (skipped, all) = index.count_before(state, from);
    let number = |number: u64| look.words().format_number(number);
    let shown = PagePosition { from: number(skipped + 1), to: number(skipped + rows.len() as u64), all: number(all) };
    let beyond = rows.is_empty() && all > 0;
    let shown = (!rows.is_empty()).then_some(shown);
    let listed = load_row_summaries(look.ledger(), &run, is_owned(look.ledger(), &run).await?, &rows).await?;
    let path = format!("/runs/{}", encode_path_segment(name));
    let here = |from: Row| rows_url(&path, state, Some(from), look.shows_numbers());
    // What became of a row since it was looked up may have led it elsewhere.
    let listed = listed.into_iter().filter(|row| state.is_none_or(|state| state.includes_state(row.state)));
    let links = RowState::ALL.into_iter().filter(|state| index.count(*state) > 0).map(|of| StateLink {
        state: of.name(),
        rows: index.count(of),
        path: rows_url(&path, Some(of), None, look.shows_numbers()),
        here: state == Some(of),
    });
    Ok(RowsPageView {
        name: run.name(),
        state: state.map(RowState::name),
        states: links.collect(),
        rows: listed.map(|row| row_line(look, &path, row)).collect(),
        shown,
        beyond,
        before: before.map(&here),
        behind: behind.map(here),
        found: false,
        numbers: NumbersLink::for_page(look, &rows_url(&path, state, Some(from), false)),
        path,
    })
}

/// The address of rows.
fn rows_url(path: &str, state: Option<RowState>, from: Option<Row>, numbers: bool) -> String {
    let state = state.map(|state| format!("state={}", state.name()));
    let from = from.filter(|from| *from > Row::FIRST).map(|from| format!("from={from}"));
    let numbers = numbers.then(|| "numbers=shown".to_owned());
    let query: Vec<String> = [state, from, numbers].into_iter().flatten().collect();
    if query.is_empty() { format!("{path}/rows") } else { format!("{path}/rows?{}", query.join("&")) }
}

fn row_line(look: &PageRequest, path: &str, RowSummary { row, phone, state, reason, sent_at }: RowSummary) -> RowLine {
    let numbers = if look.shows_numbers() { "?numbers=shown" } else { "" };
    RowLine {
        row: row.get(),
        path: format!("{path}/rows/{row}{numbers}"),
        to: phone.map(|phone| look.format_number(phone)),
        state: state.name(),
        known: reason.as_deref().and_then(|reason| look.words().kind("reason", reason)).map(str::to_owned),
        reason: reason.map(|reason| look.mask_text(&reason, phone)),
        sent: sent_at.map(|at| look.format_moment(at)),
    }
}

/// Looks for a row by its number, by our identifier of its message, or by the number that it is for. What is looked for comes
/// in a form, so that nobody's number stands in an address.
pub(super) async fn find_rows(Path(name): Path<String>, told: VerifiedForm) -> Response {
    let VerifiedForm { mut look, fields } = told;
    let wanted = fields.get("wanted").unwrap_or_default();
    let found = async {
        let run = look.find_run(&name).await?;
        LedgerError::refuse_purged(&run)?;
        Ok(match parse_row(&run, wanted) {
            Some(row) => RowSearch::Row(row),
            None => RowSearch::Rows(find_rows_of_number(&look, &run, wanted).await?),
        })
    };
    let path = format!("/runs/{}", encode_path_segment(&name));
    match found.await {
        Ok(RowSearch::Row(row)) => look.respond_to_order(Ok(format!("{path}/rows/{row}"))),
        Ok(RowSearch::Rows(rows)) => {
            let rows = rows.into_iter().map(|row| row_line(&look, &path, row)).collect();
            let view = RowsPageView {
                name,
                path,
                state: None,
                states: Vec::new(),
                rows,
                shown: None,
                beyond: false,
                before: None,
                behind: None,
                found: true,
                numbers: None,
            };
            look.respond("pages/rows.html", Ok(view))
        }
        Err(refusal) => look.respond::<RowsPageView>("pages/rows.html", Err(refusal)),
    }
}

enum RowSearch {
    Row(Row),
    Rows(Vec<RowSummary>),
}

/// The row that somebody names by its number or by the identifier of its message.
fn parse_row(run: &Run, wanted: &str) -> Option<Row> {
    let number: u64 = wanted.parse().ok()?;
    let by_id = MessageId::new(number).and_then(|id| run.find_row(id));
    let by_row = u32::try_from(number).ok().map(Row::new);
    by_id.or_else(|| by_row.filter(|row| *row >= Row::FIRST && *row <= run.last_row()))
}

async fn find_rows_of_number(look: &PageRequest, run: &Run, wanted: &str) -> Result<Vec<RowSummary>, PageError> {
    let copies = load_copies(look.ledger(), run).await?;
    let frozen = FrozenInputs::from_copies(&copies)?;
    let region = frozen.brief.region;
    let international = || parse_phone_number(&format!("+{}", wanted.trim_start_matches('+')), None);
    let phone: Phone = parse_phone_number(wanted, region)
        .or_else(|_| international())
        .map_err(|_| PageError::InvalidInput(InvalidInput::Search))?;
    let found = run_blocking(move || find_recipients(&copies, &frozen, RecipientKey::Number(phone))).await?;
    let mut rows: Vec<Row> = found.map_err(Error::from)?.into_iter().map(|recipient| recipient.row).collect();
    rows.truncate(MAX_FOUND);
    Ok(load_row_summaries(look.ledger(), run, is_owned(look.ledger(), run).await?, &rows).await?)
}
