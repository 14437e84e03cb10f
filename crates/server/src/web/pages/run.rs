//! The pages of a run: state, rows by state, figures and rows in doubt, with live updates; the variants of its A/B
//! test; and downloads of its rows with full phone numbers, as CSV or as a workbook.
//!
//! A live page replaces its parts by name. Parts that depend on the visitor have their own templates. The other parts
//! (`server/web/run_page`) are rendered once for all visitors.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, Write as _};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderMap};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{Stream, unfold};
use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::caches::RunReading;
use super::page_error::{InvalidInput, PageError};
use super::request::{PageRequest, encode_path_segment};
use super::rows::{RowQuery, load_index};
use super::runs::run_path;
use super::sending::{count_retriable, offers_test};
use crate::web::charts::Length;
use crate::web::files::FirstMessages;
use crate::web::run_page::{self, RunPagePart, RunPageView, format_share};
use crate::web::words::PageLanguage;
use campaign_engine::delivery::FrozenInputs;
use campaign_engine::report::{
    ACCEPTED_STATES, IN_DOUBT_STATES, MAX_SHEET_ROWS, Proportion, ResultsTarget, RowFilter, RowIndex, RunResults,
    RunStatus, RunView, displayed_counts, is_owned, load_copies,
};
use campaign_ledger::{LedgerError, RowState, Run, RunId, StateCounts};
use campaign_manifest::CampaignPath;
use campaign_runs::{open_copies, run_blocking};

/// The maximum number of rows of a list whose first message is shown.
const MAX_EAGER_ROWS: u64 = 100_000;
/// The time for which the page waits for the first message.
const MESSAGE_TIMEOUT: Duration = Duration::from_millis(150);

/// The parts of the page that depend on the visitor: the name of each, and its template.
const VISITOR_PARTS: [(&str, &str); 4] = [
    ("standing", "pages/part_status.html"),
    ("counts", "pages/part_counts.html"),
    ("doubt", "pages/part_doubt.html"),
    ("retry", "pages/part_retry.html"),
];

/// A run as its page shows it.
#[derive(Clone, Debug, Serialize)]
struct RunSummaryView {
    /// Whether the campaign of the run has variants.
    has_variants: bool,
    name: String,
    campaign: String,
    path: String,
    /// Whether the run is being sent, so that it can be stopped.
    sending: bool,
    /// Whether a stop was requested.
    stopping: bool,
    rehearsal: bool,
    rows: u64,
    parts: u64,
    /// Whether the gateway might have billed further parts.
    parts_at_least: bool,
    counts: Vec<StateCountView>,
    /// The number of messages that were delivered only in part.
    in_part: u64,
    /// The number of rows that wait for a decision.
    doubt: u64,
    /// The rows in doubt, by state.
    doubtful: Vec<StateCountView>,
    /// The number of messages that can be retried here.
    retriable: Option<u64>,
    /// Whether the rows of the run can be shown, because they were not purged.
    has_rows: bool,
    gateway: String,
    began: String,
    ended: Option<String>,
    /// The time between start and end.
    took: Option<String>,
}

/// The number of rows in a state, and the link to these rows.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StateCountView {
    state: &'static str,
    rows: u64,
    path: String,
}

impl StateCountView {
    fn is_in_doubt(&self) -> bool {
        IN_DOUBT_STATES.iter().any(|state| state.name() == self.state)
    }
}

/// The data of the page's templates.
#[derive(Serialize)]
pub(super) struct RunPageContext {
    run: RunSummaryView,
    figures: RunPageView,
    /// The first message; `None` for long lists and without copies.
    first: Option<FirstMessages>,
    /// Whether a test can be sent from the page.
    tests: bool,
    /// The confirmation of the last action.
    done: Option<String>,
}

/// A part of the page: the `id` of its element, and the element.
pub(super) type NamedPart = (String, String);

/// The rendered parts that do not depend on the visitor, once per language.
#[derive(Default)]
pub(super) struct SharedParts([OnceLock<Vec<NamedPart>>; PageLanguage::ALL.len()]);

impl SharedParts {
    fn get_or_render(&self, request: &PageRequest, reading: &RunReading) -> Result<&[NamedPart], PageError> {
        let rendered = &self.0[request.language as usize];
        if let Some(parts) = rendered.get() {
            return Ok(parts);
        }
        let view = figures_view(request, reading);
        let part = |part: RunPagePart| {
            let html = run_page::render_run_part(request.language, &view, part)?;
            Ok((format!("run-{}", part.name()), html.trim().to_owned()))
        };
        let parts = RunPagePart::ALL.into_iter().map(part).collect::<Result<_, PageError>>()?;
        Ok(rendered.get_or_init(|| parts))
    }
}

/// Builds the view of a run's figures, which are the same for all visitors.
fn figures_view(request: &PageRequest, reading: &RunReading) -> RunPageView {
    let command = |arguments: String| format!("campaign {arguments}");
    let run = &reading.report.view.run;
    let rows = format!("/runs/{}/rows", encode_path_segment(&run.name()));
    let page = run_page::RunPage {
        report: &reading.report,
        title: request.title.as_deref(),
        now: request.pages.now(),
        time_left: reading.time_left,
        zone: &request.zone,
        command: &command,
        // A purged run has no rows.
        rows: run.purged_at.is_none().then_some(&rows),
    };
    page.to_view(request.language)
}

/// Describes the progress of a run that is being sent, and the remaining time if it is known.
pub(super) fn progress_sentence(request: &PageRequest, reading: &RunReading) -> String {
    let command = |arguments: String| arguments;
    let (now, zone) = (request.pages.now(), &request.zone);
    run_page::RunPage {
        report: &reading.report,
        title: None,
        now,
        time_left: reading.time_left,
        zone,
        command: &command,
        rows: None,
    }
    .describe_progress(request.words())
}

/// Renders the parts of the page that change while the run is being sent.
pub(super) fn render_parts(request: &PageRequest, reading: &RunReading) -> Result<Vec<NamedPart>, PageError> {
    #[derive(Serialize)]
    struct VisitorView {
        run: RunSummaryView,
    }
    let view = VisitorView { run: run_summary(request, reading) };
    let mut parts = Vec::with_capacity(VISITOR_PARTS.len() + RunPagePart::ALL.len());
    for (id, template) in VISITOR_PARTS {
        parts.push((id.to_owned(), request.render_part(template, &view)?.trim().to_owned()));
    }
    parts.extend_from_slice(reading.shared.get_or_render(request, reading)?);
    Ok(parts)
}

pub(super) async fn show_run(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = async {
        let run = request.find_run(&name).await?;
        let reading = request.pages.run_watcher.read_once(run.key).await.ok_or(PageError::Later)??;
        Ok(RunPageContext {
            run: run_summary(&request, &reading),
            figures: figures_view(&request, &reading),
            first: load_first_message(&request, &reading.report.view.run).await,
            tests: offers_test(&request, &reading.report.view.run),
            done: done_message(&request),
        })
    };
    let view = view.await;
    request.respond("pages/run.html", view)
}

/// Loads the first message of a run. The page is shown even if the message cannot be loaded.
async fn load_first_message(request: &PageRequest, run: &Run) -> Option<FirstMessages> {
    if run.shared || run.purged_at.is_some() || run.recipients > MAX_EAGER_ROWS {
        return None;
    }
    let load = async {
        let (frozen, prepared) = open_copies(request.ledger(), run).await.ok()?;
        let (excluded, last) = (request.ledger().load_excluded_rows(run.key).await.ok()?.rows(), run.last_row());
        let first = move || FirstMessages::read_first(&frozen.brief, prepared, &excluded, last, 1, false);
        run_blocking(first).await.ok()?.ok()
    };
    tokio::time::timeout(MESSAGE_TIMEOUT, load).await.ok()?
}

/// Builds the summary of a run for a visitor.
fn run_summary(request: &PageRequest, reading: &RunReading) -> RunSummaryView {
    let RunView { run, status, counts, parts } = &reading.report.view;
    let name = run.name();
    let path = format!("/runs/{}", encode_path_segment(&name));
    let ended = run.ended_at.filter(|_| *status != RunStatus::Sending);
    let took = ended.and_then(|ended| Duration::try_from(ended.duration_since(run.began_at)).ok());
    RunSummaryView {
        has_variants: request.has_variants && run.purged_at.is_none(),
        campaign: run.campaign.clone(),
        sending: *status == RunStatus::Sending,
        stopping: run.stop_requested && *status == RunStatus::Sending,
        rehearsal: !run.live,
        rows: counts.total(),
        parts: *parts,
        parts_at_least: reading.report.has_unreported_parts(),
        doubt: count_rows_in_doubt(counts),
        retriable: count_retriable(&reading.report.view),
        doubtful: state_counts(&path, counts).into_iter().filter(StateCountView::is_in_doubt).collect(),
        counts: state_counts(&path, counts),
        in_part: reading.report.count_partial(),
        has_rows: run.purged_at.is_none(),
        gateway: run.gateway.clone(),
        began: request.format_moment(run.began_at),
        ended: ended.map(|at| request.format_moment(at)),
        took: took.map(|took| request.words().format_duration(took)),
        path,
        name,
    }
}

/// The confirmation message for the action named in `?done=`.
pub(super) fn done_message(request: &PageRequest) -> Option<String> {
    let word = request.query.get("done")?;
    request.words().item_name("confirmation", word).map(str::to_owned)
}

/// Counts the rows in each state that has rows, with a link to these rows. The number of delivered messages includes
/// read messages.
pub(super) fn state_counts(path: &str, counts: &StateCounts) -> Vec<StateCountView> {
    let count = |(state, rows): (RowState, u64)| {
        let state = state.name();
        StateCountView { state, rows, path: format!("{path}/rows?state={state}") }
    };
    displayed_counts(counts).map(count).collect()
}

/// Counts the rows that wait for a decision.
fn count_rows_in_doubt(counts: &StateCounts) -> u64 {
    IN_DOUBT_STATES.into_iter().map(|state| counts.get(state)).sum()
}

/// The interval of keep-alive messages, shorter than the idle timeout of connections.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// The interval between two checks of the visitor's session.
const SESSION_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The time for which a browser waits before it reconnects.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// A page that is open in a browser and gets live updates.
struct LivePage {
    request: PageRequest,
    readings: watch::Receiver<Option<Result<Arc<RunReading>, Arc<LedgerError>>>>,
    closing: watch::Receiver<bool>,
    ticks: Interval,
    /// The parts that the browser already has.
    sent_parts: Vec<NamedPart>,
    /// The identifier of these parts; see [`parts_id`].
    id: String,
    /// Whether the session has ended.
    session_ended: bool,
    _permit: OwnedSemaphorePermit,
}

/// The event that ends the wait of a live page.
enum LivePageEvent {
    /// The server shuts down, or the run is no longer read.
    End,
    /// It is time to check the session.
    Tick,
    /// The run was read.
    Reading,
}

pub(super) async fn stream_run(mut request: PageRequest, Path(name): Path<String>, headers: HeaderMap) -> Response {
    let run = match request.find_run(&name).await {
        Ok(run) => run,
        Err(refusal) => return request.respond_to_action(Err(refusal)),
    };
    let Ok(permit) = Arc::clone(&request.pages.live_pages).try_acquire_owned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let last_event_id = headers.get("last-event-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    let ping = KeepAlive::new().interval(PING_INTERVAL).text("ping");
    Sse::new(event_stream(request, run.key, last_event_id, permit)).keep_alive(ping).into_response()
}

fn event_stream(
    request: PageRequest,
    run: RunId,
    last_event_id: String,
    permit: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let mut readings = request.pages.run_watcher.follow_run(run);
    // A reading from before the page was opened is also new to the page.
    readings.mark_changed();
    let closing = request.pages.closing.subscribe();
    let mut ticks = interval(SESSION_CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let open = LivePage {
        request,
        readings,
        closing,
        ticks,
        sent_parts: Vec::new(),
        id: last_event_id,
        session_ended: false,
        _permit: permit,
    };
    unfold(open, |mut open| async move { open.next_event().await.map(|event| (Ok(event), open)) })
}

impl LivePage {
    /// Waits for the next event to send, and returns `None` when the stream ends.
    async fn next_event(&mut self) -> Option<Event> {
        while !self.session_ended {
            match self.wait_for_event().await {
                LivePageEvent::End => return None,
                LivePageEvent::Tick if self.is_session_valid().await => {}
                LivePageEvent::Tick => {
                    self.session_ended = true;
                    return Some(Event::default().event("gone").data("gone"));
                }
                LivePageEvent::Reading => {
                    if let Some(event) = self.render_changed_parts() {
                        return Some(event);
                    }
                }
            }
        }
        None
    }

    async fn wait_for_event(&mut self) -> LivePageEvent {
        let Self { readings, closing, ticks, .. } = self;
        tokio::select! {
            _ = closing.wait_for(|closing| *closing) => LivePageEvent::End,
            _ = ticks.tick() => LivePageEvent::Tick,
            changed = readings.changed() => if changed.is_ok() { LivePageEvent::Reading } else { LivePageEvent::End },
        }
    }

    /// Whether the session is still valid.
    async fn is_session_valid(&self) -> bool {
        let visitor = self.request.pages.find_visitor(&self.request.session).await;
        visitor.is_ok_and(|visitor| visitor.as_ref() == Some(&self.request.visitor))
    }

    /// Renders the parts of the page and returns an event with the changed parts, or `None` if no part changed.
    fn render_changed_parts(&mut self) -> Option<Event> {
        let reading = match self.readings.borrow_and_update().as_ref()? {
            Ok(reading) => Arc::clone(reading),
            Err(error) => {
                tracing::warn!("a run cannot be read for its page: {error}");
                return None;
            }
        };
        let parts = render_parts(&self.request, &reading)
            .map_err(|refusal| tracing::warn!("cannot render a part of a page: {refusal}"))
            .ok()?;
        let id = parts_id(&parts);
        if id == self.id {
            self.sent_parts = parts;
            return None;
        }
        let changed = parts.iter().enumerate().filter(|(index, part)| self.sent_parts.get(*index) != Some(*part));
        let changed: Map<String, Value> =
            changed.map(|(_, (name, html))| (name.clone(), html.as_str().into())).collect();
        (self.sent_parts, self.id) = (parts, id.clone());
        // JSON escapes line breaks, so the data is a single line, as an event requires.
        Some(Event::default().event("parts").id(id).retry(RECONNECT_DELAY).data(Value::Object(changed).to_string()))
    }
}

/// The number of bytes of the hash that identifies the parts of a page.
const PARTS_ID_BYTES: usize = 8;

/// Returns an identifier of these parts: the first bytes of a hash of their content, in hexadecimal.
fn parts_id(parts: &[NamedPart]) -> String {
    let hash = parts.iter().fold(Sha256::new(), |hash, (_, part)| hash.chain_update(part).chain_update([0]));
    hash.finalize().iter().take(PARTS_ID_BYTES).fold(String::new(), |mut id, byte| {
        // Writing to a string cannot fail.
        let _ = write!(id, "{byte:02x}");
        id
    })
}

#[derive(Serialize)]
struct VariantsPageView {
    name: String,
    path: String,
    variants: Vec<VariantLine>,
}

/// The messages of a variant.
#[derive(Serialize)]
struct VariantLine {
    name: String,
    /// The path of the rows with this variant.
    path: String,
    /// Messages that the gateway accepted.
    sent: u64,
    delivered: Option<ShareRange>,
    read: Option<ShareRange>,
    /// Failed and rejected messages.
    failed: u64,
}

/// A share with its 95 % confidence interval.
#[derive(Serialize)]
struct ShareRange {
    rows: u64,
    text: String,
    /// The interval in words.
    interval: String,
    from: Length,
    length: Length,
}

impl ShareRange {
    /// Creates the range of a share; returns `None` if the group is empty.
    fn new(request: &PageRequest, successes: u64, total: u64) -> Option<Self> {
        let words = request.words();
        let text = format_share(words, successes, total)?;
        let interval = Proportion { total, successes }.wilson_interval();
        let percent = |share: f64| words.format_decimal((share * 1_000.0).round() / 10.0);
        let (from, length) = Length::from_range(interval.low, interval.high);
        let (low, high) = (percent(interval.low), percent(interval.high));
        let interval_text = words.say_with("variants.interval", &[("from", &low), ("to", &high)]);
        Some(Self { rows: successes, text, interval: interval_text, from, length })
    }
}

pub(super) async fn show_variants(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = build_variants_view(&mut request, &name).await;
    request.respond("pages/variants.html", view)
}

async fn build_variants_view(request: &mut PageRequest, name: &str) -> Result<VariantsPageView, PageError> {
    let run = request.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    let copies = load_copies(request.ledger(), &run).await?;
    let brief = FrozenInputs::from_copies(&copies)?.brief;
    let arms = brief.list_arms();
    let names: Vec<&str> = arms.iter().filter_map(|arm| arm.name).collect();
    if names.is_empty() {
        return Err(PageError::Unknown);
    }
    let path = run_path(&run.name());
    let mut variants = Vec::with_capacity(names.len());
    for variant in names {
        let filter = RowFilter { variant: Some(variant.to_owned()), ..RowFilter::default() };
        let index = load_index(request, &run, &filter).await?;
        variants.push(variant_line(request, &path, variant, &index));
    }
    Ok(VariantsPageView { name: run.name(), path, variants })
}

fn variant_line(request: &PageRequest, path: &str, name: &str, index: &RowIndex) -> VariantLine {
    let count = |state: RowState| index.count(state);
    // The delivered rows of an index include the read rows.
    let sent = ACCEPTED_STATES.into_iter().filter(|state| *state != RowState::Read).map(count).sum();
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("variant", name).finish();
    VariantLine {
        name: name.to_owned(),
        path: format!("{path}/rows?{query}"),
        sent,
        delivered: ShareRange::new(request, count(RowState::Delivered), sent),
        read: ShareRange::new(request, count(RowState::Read), sent),
        failed: count(RowState::Failed) + count(RowState::Rejected),
    }
}

/// The size of a chunk of a download, in bytes.
const CHUNK_BYTES: usize = 1 << 16;

/// The formats of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExportFormat {
    Csv,
    Workbook,
}

impl ExportFormat {
    fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Workbook => "xlsx",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Workbook => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        }
    }
}

/// Exports exactly the rows that the rows page shows with the same filters.
pub(super) async fn export_rows(mut request: PageRequest, Path(name): Path<String>) -> Response {
    match open_export(&mut request, &name).await {
        Ok(response) => response,
        Err(refusal) => request.respond_to_action(Err(refusal)),
    }
}

async fn open_export(request: &mut PageRequest, name: &str) -> Result<Response, PageError> {
    request.require_decider()?;
    let run = request.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    let query = RowQuery::from_request(request)?;
    let format = match request.query.get("format") {
        None | Some("csv") => ExportFormat::Csv,
        Some("xlsx") => ExportFormat::Workbook,
        Some(_) => return Err(PageError::Unknown),
    };
    let rows = load_index(request, &run, &query.filter).await?.rows(query.state);
    if format == ExportFormat::Workbook && rows.len() >= u64::from(MAX_SHEET_ROWS) {
        return Err(PageError::InvalidInput(InvalidInput::Sheet));
    }
    let state = query.state.map(|state| format!("-{}", state.name())).unwrap_or_default();
    let file_name = format!("{}{state}.{}", run.name(), format.extension());
    let by = &request.visitor.name;
    tracing::info!("{by} downloads {} rows of {name}", rows.len());
    let file = {
        let _lock = request.pages.exporting.lock().await;
        write_export(request, &run, rows, format).await?
    };
    let headers = [
        (CONTENT_TYPE, format.media_type().to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{file_name}\"")),
    ];
    Ok((headers, Body::from_stream(stream_file(file))).into_response())
}

/// Writes rows to an unnamed temporary file, and returns the file, rewound to the start.
async fn write_export(
    request: &PageRequest,
    run: &Run,
    rows: RoaringBitmap,
    format: ExportFormat,
) -> Result<File, PageError> {
    let ledger = request.ledger();
    let results = RunResults::open(ledger, run, is_owned(ledger, run).await?).await?.with_rows(rows);
    match format {
        ExportFormat::Csv => {
            let mut out = BufWriter::new(tempfile::tempfile()?);
            results.write_csv(&mut out).await?;
            out.flush()?;
            let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            Ok(file)
        }
        ExportFormat::Workbook => {
            let folder = tempfile::tempdir()?;
            let path = folder.path().join("rows.xlsx");
            results.write_file(&ResultsTarget::new(CampaignPath::anywhere(path.clone()), Vec::new())).await?;
            // The open file remains readable after its folder is deleted.
            Ok(File::open(path)?)
        }
    }
}

/// Streams the content of a file in chunks.
fn stream_file(file: File) -> impl Stream<Item = io::Result<Bytes>> {
    unfold(Some(file), |file| async move {
        let mut file = file?;
        let read_chunk = run_blocking(move || {
            let mut chunk = vec![0; CHUNK_BYTES];
            let length = file.read(&mut chunk)?;
            chunk.truncate(length);
            Ok::<_, io::Error>((chunk, file))
        });
        match read_chunk.await {
            Ok(Ok((chunk, file))) => (!chunk.is_empty()).then(|| (Ok(Bytes::from(chunk)), Some(file))),
            Ok(Err(error)) => Some((Err(error), None)),
            Err(error) => Some((Err(io::Error::other(error.to_string())), None)),
        }
    })
}
