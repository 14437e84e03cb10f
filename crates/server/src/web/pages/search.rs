//! The search box on every page: a run, a campaign, a message ID, a phone number, or a row of the current run.
//!
//! The search term is sent in the body of a POST request, so that no phone number appears in a URL.

use std::time::Duration;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tokio::time::Instant;

use super::page_error::{InvalidInput, PageError};
use super::request::{PageRequest, VerifiedForm, encode_path_segment};
use super::rows::{RowLine, find_rows_of_phone, row_line};
use super::runs::run_path;
use campaign_content::audience::parse_phone_number;
use campaign_core::domain::{MessageId, Phone, Row};
use campaign_engine::delivery::FrozenInputs;
use campaign_engine::report::{RunList, load_copies};
use campaign_ledger::{LedgerError, Run};
use campaign_runs::{OptOutTerms, list_opt_outs};

/// The time limit for searching the lists of runs for a phone number, the latest run first.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(4);
/// The maximum number of runs, and of campaigns, in the results.
const MAX_RESULTS: usize = 20;

/// The results of a search.
#[derive(Default, Serialize)]
struct SearchPageView {
    /// Whether the user has searched for something.
    searched: bool,
    /// Whether the search term is invalid.
    invalid: bool,
    campaigns: Vec<FoundCampaign>,
    /// The phone number, masked unless the page shows full numbers; `None` if the search term is not a phone number.
    phone: Option<String>,
    /// The opt-outs of the phone number: the time of each, and the campaign if only one campaign is concerned.
    opt_outs: Vec<FoundOptOut>,
    runs: Vec<FoundRun>,
    /// The number of runs whose lists were not searched.
    unsearched: u64,
}

#[derive(Serialize)]
struct FoundCampaign {
    name: String,
    path: String,
}

#[derive(Serialize)]
struct FoundOptOut {
    at: String,
    campaign: Option<String>,
}

#[derive(Serialize)]
struct FoundRun {
    name: String,
    path: String,
    rows: Vec<RowLine>,
}

/// The result of a search.
enum SearchOutcome {
    /// The page that the search term identifies.
    Page(String),
    /// The places where the term was found.
    Results(SearchPageView),
}

/// Shows the empty search page.
pub(super) async fn show_search(request: PageRequest) -> Response {
    request.respond("pages/search.html", Ok(SearchPageView::default()))
}

/// Searches everything, or only the run that the form names.
pub(super) async fn search(form: VerifiedForm) -> Response {
    let VerifiedForm { request, fields } = form;
    let (run, query) = (fields.get("run").map(str::to_owned), fields.get("wanted").unwrap_or_default());
    respond_to_search(request, run, query).await
}

/// Searches a run.
pub(super) async fn search_run(Path(name): Path<String>, form: VerifiedForm) -> Response {
    let VerifiedForm { request, fields } = form;
    respond_to_search(request, Some(name), fields.get("wanted").unwrap_or_default()).await
}

async fn respond_to_search(mut request: PageRequest, run: Option<String>, query: &str) -> Response {
    request.searched = Some(query.to_owned());
    let outcome = match &run {
        Some(run) => find_in_run(&mut request, run, query).await,
        None => find_anywhere(&mut request, query).await,
    };
    match outcome {
        Ok(SearchOutcome::Page(path)) => request.respond_to_action(Ok(path)),
        Ok(SearchOutcome::Results(view)) => request.respond("pages/search.html", Ok(view)),
        Err(PageError::InvalidInput(_)) => {
            let view = SearchPageView { searched: true, invalid: true, ..SearchPageView::default() };
            (StatusCode::UNPROCESSABLE_ENTITY, request.respond("pages/search.html", Ok(view))).into_response()
        }
        Err(refusal) => request.respond::<SearchPageView>("pages/search.html", Err(refusal)),
    }
}

/// Finds a row of a run by message ID, row number or phone number. Any other term is searched for in all runs.
async fn find_in_run(request: &mut PageRequest, name: &str, query: &str) -> Result<SearchOutcome, PageError> {
    let run = request.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    if let Some(row) = find_row_by_query(&run, query) {
        return Ok(SearchOutcome::Page(format!("{}/rows/{row}", run_path(name))));
    }
    let copies = load_copies(request.ledger(), &run).await?;
    let region = FrozenInputs::from_copies(&copies)?.brief.region;
    let Ok(phone) = parse_phone_number(query, region).or_else(|_| parse_international_number(query)) else {
        return find_anywhere(request, query).await;
    };
    let mut view = load_phone_view(request, phone).await?;
    view.runs.extend(find_phone_in_run(request, &run, phone).await?);
    Ok(SearchOutcome::Results(view))
}

async fn find_anywhere(request: &mut PageRequest, query: &str) -> Result<SearchOutcome, PageError> {
    let list = request.pages.run_list.read_latest().await?.ok_or(PageError::Later)?;
    if let Some(path) = find_page(&list, query) {
        return Ok(SearchOutcome::Page(path));
    }
    if let Ok(phone) = parse_international_number(query) {
        return Ok(SearchOutcome::Results(find_phone_in_all_runs(request, &list, phone).await?));
    }
    let campaigns = find_campaigns(&list, query);
    if campaigns.is_empty() {
        return Err(PageError::InvalidInput(InvalidInput::Search));
    }
    Ok(SearchOutcome::Results(SearchPageView { searched: true, campaigns, ..SearchPageView::default() }))
}

fn parse_international_number(query: &str) -> Result<Phone, ()> {
    parse_phone_number(&format!("+{}", query.trim_start_matches('+')), None).map_err(drop)
}

/// Finds a row of the run by message ID or row number; the ID takes precedence.
fn find_row_by_query(run: &Run, query: &str) -> Option<Row> {
    let number: u64 = query.parse().ok()?;
    let row_by_id = MessageId::new(number).and_then(|id| run.find_row(id));
    let row_by_number = u32::try_from(number).ok().map(Row::new);
    row_by_id.or_else(|| row_by_number.filter(|row| *row >= Row::FIRST && *row <= run.last_row()))
}

/// Finds the page of the run or campaign with exactly this name, or of the message with this ID.
fn find_page(list: &RunList, query: &str) -> Option<String> {
    let mut runs = list.views.iter().map(|view| &view.run);
    if let Some(id) = query.parse().ok().and_then(MessageId::new) {
        let (run, row) = runs.find_map(|run| Some((run, run.find_row(id)?)))?;
        return Some(format!("{}/rows/{row}", run_path(&run.name())));
    }
    let query = query.to_lowercase();
    if query.contains('@') {
        return runs.find(|run| run.name() == query).map(|run| run_path(&run.name()));
    }
    runs.find(|run| run.campaign == query).map(|run| campaign_runs_path(&run.campaign))
}

fn campaign_runs_path(campaign: &str) -> String {
    format!("/runs?campaign={}&everything=1", encode_path_segment(campaign))
}

/// Finds the campaigns whose names contain all words of the search term.
fn find_campaigns(list: &RunList, query: &str) -> Vec<FoundCampaign> {
    let query = query.to_lowercase();
    let words: Vec<&str> =
        query.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut names: Vec<&str> = list.views.iter().map(|view| view.run.campaign.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let matching = names.into_iter().filter(|name| !words.is_empty() && words.iter().all(|word| name.contains(word)));
    let campaign = |name: &str| FoundCampaign { name: name.to_owned(), path: campaign_runs_path(name) };
    matching.take(MAX_RESULTS).map(campaign).collect()
}

/// Loads the opt-outs of a phone number, without the messages to the number.
async fn load_phone_view(request: &PageRequest, phone: Phone) -> Result<SearchPageView, PageError> {
    let entries = list_opt_outs(request.ledger(), phone, &OptOutTerms::default()).await?;
    let opt_out = |entry: &campaign_ledger::OptOut| FoundOptOut {
        at: request.format_moment(entry.at),
        campaign: entry.scope.campaign().map(str::to_owned),
    };
    Ok(SearchPageView {
        searched: true,
        phone: Some(request.format_number(phone)),
        opt_outs: entries.iter().map(opt_out).collect(),
        ..SearchPageView::default()
    })
}

/// Finds the messages to a phone number in the lists of all runs, latest run first, until the time limit.
async fn find_phone_in_all_runs(
    request: &PageRequest,
    list: &RunList,
    phone: Phone,
) -> Result<SearchPageView, PageError> {
    let mut view = load_phone_view(request, phone).await?;
    let until = Instant::now() + SEARCH_TIMEOUT;
    let mut runs = list.views.iter().map(|view| &view.run).filter(|run| run.purged_at.is_none());
    while view.runs.len() < MAX_RESULTS && Instant::now() < until {
        let Some(run) = runs.next() else { return Ok(view) };
        match find_phone_in_run(request, run, phone).await {
            Ok(found_run) => view.runs.extend(found_run),
            // The copies of this run cannot be read; the other runs are still searched.
            Err(_) => view.unsearched += 1,
        }
    }
    view.unsearched += runs.count() as u64;
    Ok(view)
}

/// Finds the rows of a run with this phone number; `None` if there are no such rows.
async fn find_phone_in_run(request: &PageRequest, run: &Run, phone: Phone) -> Result<Option<FoundRun>, PageError> {
    let rows = find_rows_of_phone(request, run, phone).await?;
    let path = run_path(&run.name());
    let rows: Vec<RowLine> = rows.into_iter().map(|row| row_line(request, &path, row)).collect();
    Ok((!rows.is_empty()).then(|| FoundRun { name: run.name(), path, rows }))
}
