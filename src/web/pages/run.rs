//! A run's page: where it stands, its rows by state, its figures, its rows in doubt.
//!
//! Each of these is a part with a name of its own, which the live page puts in the place of the one that stands there. Those that
//! know who looks are a template each; the others are parts of every page of a run (`web/run_page`).

use std::sync::OnceLock;
use std::time::Duration;

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::fields::encode_path_segment;
use super::look::PageRequest;
use super::refusal::PageError;
use super::watched::RunReading;
use crate::ledger::{RowState, StateCounts};
use crate::report::{IN_DOUBT_STATES, RunStatus, RunView, displayed_counts};
use crate::web::run_page::{self, RunPagePart, RunPageView};
use crate::web::words::PageLanguage;

/// The parts of the page that know who looks: the name of each, and its template.
const VISITOR_PARTS: [(&str, &str); 3] = [
    ("standing", "pages/part_standing.html"),
    ("counts", "pages/part_counts.html"),
    ("doubt", "pages/part_doubt.html"),
];
/// Those that every page of a run has.
const SHARED_PARTS: [RunPagePart; 7] = [
    RunPagePart::Sentence,
    RunPagePart::Funnel,
    RunPagePart::Arrivals,
    RunPagePart::Failures,
    RunPagePart::Doubt,
    RunPagePart::Money,
    RunPagePart::Pace,
];

/// A run as its page shows it.
#[derive(Clone, Debug, Serialize)]
struct RunSummaryView {
    name: String,
    path: String,
    /// Whether it is being sent, so that it can be stopped.
    sending: bool,
    /// Whether somebody asked it to stop.
    stopping: bool,
    rehearsal: bool,
    rows: u64,
    parts: u64,
    /// Whether more may have been billed.
    parts_at_least: bool,
    counts: Vec<StateCountView>,
    /// How many messages were delivered only in part.
    in_part: u64,
    /// Rows that wait for a decision.
    doubt: u64,
    /// The same by state.
    doubtful: Vec<StateCountView>,
    /// Whether its rows can be looked into: they were not purged.
    kept: bool,
    gateway: String,
    began: String,
    ended: Option<String>,
    /// How long it took from one to the other.
    took: Option<String>,
}

/// How many rows are in a state, and where they are shown.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StateCountView {
    state: &'static str,
    rows: u64,
    path: String,
}

impl StateCountView {
    fn is_doubtful(&self) -> bool {
        IN_DOUBT_STATES.iter().any(|state| state.name() == self.state)
    }
}

/// What the templates of the page and of its parts show.
#[derive(Serialize)]
pub(super) struct RunPageContext {
    run: RunSummaryView,
    figures: RunPageView,
    /// What was just done.
    done: Option<String>,
}

/// A part of the page: the `id` of its element, and the element.
pub(super) type NamedPart = (String, String);

/// The parts of a reading that are the same for whoever looks: made once for each language, however many look.
#[derive(Default)]
pub(super) struct SharedParts([OnceLock<Vec<NamedPart>>; PageLanguage::ALL.len()]);

impl SharedParts {
    fn get_or_render(&self, look: &PageRequest, reading: &RunReading) -> Result<&[NamedPart], PageError> {
        let made = &self.0[look.language as usize];
        if let Some(parts) = made.get() {
            return Ok(parts);
        }
        let view = figures_view(look, reading);
        let part = |part: RunPagePart| {
            let html = run_page::render_run_part(look.language, &view, part)?;
            Ok((format!("run-{}", part.name()), html.trim().to_owned()))
        };
        let parts = SHARED_PARTS.into_iter().map(part).collect::<Result<_, PageError>>()?;
        Ok(made.get_or_init(|| parts))
    }
}

/// The figures of the run, as every page of a run shows them.
fn figures_view(look: &PageRequest, reading: &RunReading) -> RunPageView {
    let command = |arguments: String| format!("campaign {arguments}");
    let run = &reading.standing.view.run;
    let rows = format!("/runs/{}/rows", encode_path_segment(&run.name()));
    let page = run_page::RunPage {
        standing: &reading.standing,
        now: look.pages.now(),
        left: reading.left,
        zone: &look.zone,
        command: &command,
        // What was purged has none.
        rows: run.purged_at.is_none().then_some(&rows),
    };
    page.to_view(look.language)
}

/// The parts of the page that are made anew as the run goes on.
pub(super) fn render_parts(look: &PageRequest, reading: &RunReading) -> Result<Vec<NamedPart>, PageError> {
    #[derive(Serialize)]
    struct Own {
        run: RunSummaryView,
    }
    let own = Own { run: run_summary(look, reading) };
    let mut parts = Vec::with_capacity(VISITOR_PARTS.len() + SHARED_PARTS.len());
    for (id, template) in VISITOR_PARTS {
        parts.push((id.to_owned(), look.render_part(template, &own)?.trim().to_owned()));
    }
    parts.extend_from_slice(reading.shared.get_or_render(look, reading)?);
    Ok(parts)
}

pub(super) async fn show_run(mut look: PageRequest, Path(name): Path<String>) -> Response {
    let view = async {
        let run = look.find_run(&name).await?;
        let reading = look.pages.watched.read_once(run.key).await.ok_or(PageError::Later)??;
        Ok(RunPageContext {
            run: run_summary(&look, &reading),
            figures: figures_view(&look, &reading),
            done: done_message(&look),
        })
    };
    let view = view.await;
    look.respond("pages/run.html", view)
}

/// A run as its page shows it to whoever looks.
fn run_summary(look: &PageRequest, reading: &RunReading) -> RunSummaryView {
    let RunView { run, status, counts: by_state, parts } = &reading.standing.view;
    let name = run.name();
    let path = format!("/runs/{}", encode_path_segment(&name));
    let ended = run.ended_at.filter(|_| *status != RunStatus::Sending);
    let took = ended.and_then(|ended| Duration::try_from(ended.duration_since(run.began_at)).ok());
    RunSummaryView {
        sending: *status == RunStatus::Sending,
        stopping: run.stop_requested && *status == RunStatus::Sending,
        rehearsal: !run.live,
        rows: by_state.total(),
        parts: *parts,
        parts_at_least: reading.standing.has_unreported_parts(),
        doubt: count_doubtful(by_state),
        doubtful: state_counts(&path, by_state).into_iter().filter(StateCountView::is_doubtful).collect(),
        counts: state_counts(&path, by_state),
        in_part: reading.standing.count_partial(),
        kept: run.purged_at.is_none(),
        gateway: run.gateway.clone(),
        began: look.format_moment(run.began_at),
        ended: ended.map(|at| look.format_moment(at)),
        took: took.map(|took| look.words().format_duration(took)),
        path,
        name,
    }
}

/// What was just done, by the word in the address.
pub(super) fn done_message(look: &PageRequest) -> Option<String> {
    let word = look.query.get("done")?;
    look.words().kind("pages-done", word).map(str::to_owned)
}

/// The states that occur, each with the address of its rows. Delivered messages include those that were read.
pub(super) fn state_counts(path: &str, counts: &StateCounts) -> Vec<StateCountView> {
    let count = |(state, rows): (RowState, u64)| {
        let state = state.name();
        StateCountView { state, rows, path: format!("{path}/rows?state={state}") }
    };
    displayed_counts(counts).map(count).collect()
}

/// How many rows wait for a decision.
fn count_doubtful(counts: &StateCounts) -> u64 {
    IN_DOUBT_STATES.into_iter().map(|state| counts.get(state)).sum()
}
