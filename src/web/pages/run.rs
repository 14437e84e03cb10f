//! A run's page: where it stands, its rows by state, its figures, its rows in doubt.
//!
//! Each of these is a part with a name of its own, which the live page puts in the place of the one that stands there. Those that
//! know who looks are a template each; the others are parts of every page of a run (`web/run_page`).

use std::sync::OnceLock;
use std::time::Duration;

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::fields::encoded;
use super::look::Look;
use super::refusal::Refusal;
use super::watched::Reading;
use crate::ledger::{State, StateCounts};
use crate::report::{DOUBTFUL, RunStatus, RunView, shown_counts};
use crate::web::run_page::{self, Part, RunPageView};
use crate::web::words::Language;

/// The parts of the page that know who looks: the name of each, and its template.
const OWN: [(&str, &str); 3] = [
    ("standing", "pages/part_standing.html"),
    ("counts", "pages/part_counts.html"),
    ("doubt", "pages/part_doubt.html"),
];
/// Those that every page of a run has.
const FIGURES: [Part; 7] =
    [Part::Sentence, Part::Funnel, Part::Arrivals, Part::Failures, Part::Doubt, Part::Money, Part::Pace];

/// A run as its page shows it.
#[derive(Clone, Debug, Serialize)]
struct RunPage {
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
    counts: Vec<Count>,
    /// How many messages were delivered only in part.
    in_part: u64,
    /// Rows that wait for a decision.
    doubt: u64,
    /// The same by state.
    doubtful: Vec<Count>,
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
pub(super) struct Count {
    state: &'static str,
    rows: u64,
    path: String,
}

impl Count {
    fn is_doubtful(&self) -> bool {
        DOUBTFUL.iter().any(|state| state.name() == self.state)
    }
}

/// What the templates of the page and of its parts show.
#[derive(Serialize)]
pub(super) struct View {
    run: RunPage,
    figures: RunPageView,
    /// What was just done.
    done: Option<String>,
}

/// A part of the page: the `id` of its element, and the element.
pub(super) type NamedPart = (String, String);

/// The parts of a reading that are the same for whoever looks: made once for each language, however many look.
#[derive(Default)]
pub(super) struct SharedParts([OnceLock<Vec<NamedPart>>; Language::ALL.len()]);

impl SharedParts {
    fn of(&self, look: &Look, reading: &Reading) -> Result<&[NamedPart], Refusal> {
        let made = &self.0[look.language as usize];
        if let Some(parts) = made.get() {
            return Ok(parts);
        }
        let view = figures(look, reading);
        let part = |part: Part| {
            let html = run_page::part(look.language, &view, part)?;
            Ok((format!("run-{}", part.name()), html.trim().to_owned()))
        };
        let parts = FIGURES.into_iter().map(part).collect::<Result<_, Refusal>>()?;
        Ok(made.get_or_init(|| parts))
    }
}

/// The figures of the run, as every page of a run shows them.
fn figures(look: &Look, reading: &Reading) -> RunPageView {
    let command = |arguments: String| format!("campaign {arguments}");
    let run = &reading.standing.view.run;
    let rows = format!("/runs/{}/rows", encoded(&run.name()));
    let page = run_page::RunPage {
        standing: &reading.standing,
        now: look.pages.now(),
        left: reading.left,
        zone: &look.zone,
        command: &command,
        // What was purged has none.
        rows: run.purged_at.is_none().then_some(&rows),
    };
    page.view(look.language)
}

/// The parts of the page that are made anew as the run goes on.
pub(super) fn parts(look: &Look, reading: &Reading) -> Result<Vec<NamedPart>, Refusal> {
    #[derive(Serialize)]
    struct Own {
        run: RunPage,
    }
    let own = Own { run: run_page(look, reading) };
    let mut parts = Vec::with_capacity(OWN.len() + FIGURES.len());
    for (id, template) in OWN {
        parts.push((id.to_owned(), look.part(template, &own)?.trim().to_owned()));
    }
    parts.extend_from_slice(reading.shared.of(look, reading)?);
    Ok(parts)
}

pub(super) async fn page(mut look: Look, Path(name): Path<String>) -> Response {
    let view = async {
        let run = look.run(&name).await?;
        let reading = look.pages.watched.glance(run.key).await.ok_or(Refusal::Later)??;
        Ok(View { run: run_page(&look, &reading), figures: figures(&look, &reading), done: done(&look) })
    };
    let view = view.await;
    look.answer("pages/run.html", view)
}

/// A run as its page shows it to whoever looks.
fn run_page(look: &Look, reading: &Reading) -> RunPage {
    let RunView { run, status, counts: by_state, parts } = &reading.standing.view;
    let name = run.name();
    let path = format!("/runs/{}", encoded(&name));
    let ended = run.ended_at.filter(|_| *status != RunStatus::Sending);
    let took = ended.and_then(|ended| Duration::try_from(ended.duration_since(run.began_at)).ok());
    RunPage {
        sending: *status == RunStatus::Sending,
        stopping: run.stop_requested && *status == RunStatus::Sending,
        rehearsal: !run.live,
        rows: by_state.total(),
        parts: *parts,
        parts_at_least: reading.standing.parts_at_least(),
        doubt: doubt(by_state),
        doubtful: counts(&path, by_state).into_iter().filter(Count::is_doubtful).collect(),
        counts: counts(&path, by_state),
        in_part: reading.standing.in_part(),
        kept: run.purged_at.is_none(),
        gateway: run.gateway.clone(),
        began: look.moment(run.began_at),
        ended: ended.map(|at| look.moment(at)),
        took: took.map(|took| look.words().duration(took)),
        path,
        name,
    }
}

/// What was just done, by the word in the address.
pub(super) fn done(look: &Look) -> Option<String> {
    let word = look.query.get("done")?;
    look.words().kind("pages-done", word).map(str::to_owned)
}

/// The states that occur, each with the address of its rows. Delivered messages include those that were read.
pub(super) fn counts(path: &str, counts: &StateCounts) -> Vec<Count> {
    let count = |(state, rows): (State, u64)| {
        let state = state.name();
        Count { state, rows, path: format!("{path}/rows?state={state}") }
    };
    shown_counts(counts).map(count).collect()
}

/// How many rows wait for a decision.
fn doubt(counts: &StateCounts) -> u64 {
    DOUBTFUL.into_iter().map(|state| counts.get(state)).sum()
}
