//! The rows of a run by state, a page at a time, and the search for one.
//!
//! A page begins at a row and not behind so many others, so the last one of a million is as quick as the first.

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::fields::encoded;
use super::look::Look;
use super::refusal::{Refusal, Wrong};
use super::told::Told;
use crate::audience::parse;
use crate::delivery::FrozenInputs;
use crate::domain::{MessageId, Phone, Row};
use crate::ledger::{LedgerError, Run, State};
use crate::report::{ListedRow, RecipientKey, copies_of, is_owned, listed_rows, recipients};
use crate::runs::{Error, blocking};

/// How many rows a page has.
const ROWS: usize = 50;
/// The most rows of one number that are shown.
const FOUND: usize = 200;

#[derive(Serialize)]
struct View {
    name: String,
    path: String,
    /// The state of the rows, with read ones among the delivered. `None` for all rows.
    state: Option<&'static str>,
    states: Vec<StateLink>,
    rows: Vec<RowLine>,
    /// Which of all these rows they are; nothing where a search found them.
    shown: Option<Place>,
    /// Whether all of these rows are before the one from which they were asked for.
    beyond: bool,
    /// Where rows before these and behind these are.
    before: Option<String>,
    behind: Option<String>,
    /// Whether a search found these.
    found: bool,
    /// The address that shows numbers, or hides them again; nothing for who may not see them.
    numbers: Option<Numbers>,
}

/// Where rows stand among all that are in their state.
#[derive(Serialize)]
struct Place {
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
pub(super) struct Numbers {
    shown: bool,
    path: String,
}

impl Numbers {
    /// For a page at this address, whose query, where it has one, begins with `?`.
    pub(super) fn on(look: &Look, path: &str) -> Option<Self> {
        let shown = look.shows_numbers();
        let sign = if path.contains('?') { '&' } else { '?' };
        let path = if shown { path.to_owned() } else { format!("{path}{sign}numbers=shown") };
        look.visitor.decides.then_some(Self { shown, path })
    }
}

pub(super) async fn page(mut look: Look, Path(name): Path<String>) -> Response {
    let view = view(&mut look, &name).await;
    look.answer("pages/rows.html", view)
}

async fn view(look: &mut Look, name: &str) -> Result<View, Refusal> {
    let run = look.run(name).await?;
    LedgerError::refuse_purged(&run)?;
    let state = match look.query.get("state") {
        Some(word) => Some(State::ALL.into_iter().find(|state| state.name() == word).ok_or(Refusal::Unknown)?),
        None => None,
    };
    let from = look.query.get("from").and_then(|from| from.parse().ok()).map_or(Row::FIRST, Row::new);
    let index = look.pages.indexes.of(&look.pages.adapters.ledger, &run).await?;
    let mut rows = index.from(state, from, ROWS + 1);
    let behind = if rows.len() > ROWS { rows.pop() } else { None };
    let before = index.before(state, from, ROWS);
    let (skipped, all) = index.place(state, from);
    let number = |number: u64| look.words().number(number);
    let shown = Place { from: number(skipped + 1), to: number(skipped + rows.len() as u64), all: number(all) };
    let beyond = rows.is_empty() && all > 0;
    let shown = (!rows.is_empty()).then_some(shown);
    let listed = listed_rows(look.ledger(), &run, is_owned(look.ledger(), &run).await?, &rows).await?;
    let path = format!("/runs/{}", encoded(name));
    let here = |from: Row| address(&path, state, Some(from), look.shows_numbers());
    // What became of a row since it was looked up may have led it elsewhere.
    let listed = listed.into_iter().filter(|row| state.is_none_or(|state| state.covers(row.state)));
    let links = State::ALL.into_iter().filter(|state| index.count(*state) > 0).map(|of| StateLink {
        state: of.name(),
        rows: index.count(of),
        path: address(&path, Some(of), None, look.shows_numbers()),
        here: state == Some(of),
    });
    Ok(View {
        name: run.name(),
        state: state.map(State::name),
        states: links.collect(),
        rows: listed.map(|row| line(look, &path, row)).collect(),
        shown,
        beyond,
        before: before.map(&here),
        behind: behind.map(here),
        found: false,
        numbers: Numbers::on(look, &address(&path, state, Some(from), false)),
        path,
    })
}

/// The address of rows.
fn address(path: &str, state: Option<State>, from: Option<Row>, numbers: bool) -> String {
    let state = state.map(|state| format!("state={}", state.name()));
    let from = from.filter(|from| *from > Row::FIRST).map(|from| format!("from={from}"));
    let numbers = numbers.then(|| "numbers=shown".to_owned());
    let query: Vec<String> = [state, from, numbers].into_iter().flatten().collect();
    if query.is_empty() { format!("{path}/rows") } else { format!("{path}/rows?{}", query.join("&")) }
}

fn line(look: &Look, path: &str, ListedRow { row, phone, state, reason, sent_at }: ListedRow) -> RowLine {
    let numbers = if look.shows_numbers() { "?numbers=shown" } else { "" };
    RowLine {
        row: row.get(),
        path: format!("{path}/rows/{row}{numbers}"),
        to: phone.map(|phone| look.number(phone)),
        state: state.name(),
        known: reason.as_deref().and_then(|reason| look.words().kind("reason", reason)).map(str::to_owned),
        reason: reason.map(|reason| look.text(&reason, phone)),
        sent: sent_at.map(|at| look.moment(at)),
    }
}

/// Looks for a row by its number, by our identifier of its message, or by the number that it is for. What is looked for comes
/// in a form, so that nobody's number stands in an address.
pub(super) async fn find(Path(name): Path<String>, told: Told) -> Response {
    let Told { mut look, fields } = told;
    let wanted = fields.get("wanted").unwrap_or_default();
    let found = async {
        let run = look.run(&name).await?;
        LedgerError::refuse_purged(&run)?;
        Ok(match row_of(&run, wanted) {
            Some(row) => Found::Row(row),
            None => Found::Rows(rows_of_number(&look, &run, wanted).await?),
        })
    };
    let path = format!("/runs/{}", encoded(&name));
    match found.await {
        Ok(Found::Row(row)) => look.done(Ok(format!("{path}/rows/{row}"))),
        Ok(Found::Rows(rows)) => {
            let rows = rows.into_iter().map(|row| line(&look, &path, row)).collect();
            let view = View {
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
            look.answer("pages/rows.html", Ok(view))
        }
        Err(refusal) => look.answer::<View>("pages/rows.html", Err(refusal)),
    }
}

enum Found {
    Row(Row),
    Rows(Vec<ListedRow>),
}

/// The row that somebody names by its number or by the identifier of its message.
fn row_of(run: &Run, wanted: &str) -> Option<Row> {
    let number: u64 = wanted.parse().ok()?;
    let by_id = MessageId::new(number).and_then(|id| run.row_of(id));
    let by_row = u32::try_from(number).ok().map(Row::new);
    by_id.or_else(|| by_row.filter(|row| *row >= Row::FIRST && *row <= run.last_row()))
}

async fn rows_of_number(look: &Look, run: &Run, wanted: &str) -> Result<Vec<ListedRow>, Refusal> {
    let copies = copies_of(look.ledger(), run).await?;
    let frozen = FrozenInputs::of(&copies)?;
    let region = frozen.brief.region;
    let international = || parse(&format!("+{}", wanted.trim_start_matches('+')), None);
    let phone: Phone = parse(wanted, region).or_else(|_| international()).map_err(|_| Refusal::Wrong(Wrong::Search))?;
    let found = blocking(move || recipients(&copies, &frozen, RecipientKey::Number(phone))).await?;
    let mut rows: Vec<Row> = found.map_err(Error::from)?.into_iter().map(|recipient| recipient.row).collect();
    rows.truncate(FOUND);
    Ok(listed_rows(look.ledger(), run, is_owned(look.ledger(), run).await?, &rows).await?)
}
