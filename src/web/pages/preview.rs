//! First messages as phones show them: of a run, as it is sent, and of what is armed.

use std::path::{Path as FilePath, PathBuf};

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::campaign::check_campaign_file;
use super::fields::encode_path_segment;
use super::look::PageRequest;
use super::refusal::PageError;
use super::rows::NumbersLink;
use crate::calendar::Occurrence;
use crate::runs::{find_schedule, load_schedule, open_copies, run_blocking};
use crate::web::files::{FirstMessages, MessageSelection, PreviewPage, PreviewView, build_preview_view};

/// How many rows are shown.
const SHOWN_ROWS: usize = 20;

#[derive(Serialize)]
struct SchedulePreviewView {
    #[serde(flatten)]
    preview: PreviewView,
    numbers: Option<NumbersLink>,
}

#[derive(Serialize)]
struct RunPreviewView {
    run: String,
    path: String,
    #[serde(flatten)]
    first: FirstMessages,
    numbers: Option<NumbersLink>,
}

/// Of a run, from what it is sent from.
pub(super) async fn show_run_preview(mut look: PageRequest, Path(name): Path<String>) -> Response {
    let view = build_run_preview(&mut look, name).await;
    look.respond("pages/messages.html", view)
}

async fn build_run_preview(look: &mut PageRequest, name: String) -> Result<RunPreviewView, PageError> {
    let run = look.find_run(&name).await?;
    if run.shared || run.purged_at.is_some() {
        return Err(PageError::Unknown);
    }
    let (frozen, prepared) = open_copies(look.ledger(), &run).await?;
    let (left_out, last) = (look.ledger().load_excluded_rows(run.key).await?.rows(), run.last_row());
    let shown = (SHOWN_ROWS, look.shows_numbers());
    let first =
        run_blocking(move || FirstMessages::read_first(&frozen.brief, prepared, (&left_out, last), shown)).await??;
    let path = format!("/runs/{}", encode_path_segment(&name));
    let numbers = NumbersLink::for_page(look, &format!("{path}/preview"));
    Ok(RunPreviewView { run: name, path, first, numbers })
}

/// Of what is armed, as it is sent when it is due next.
pub(super) async fn show_schedule_preview(look: PageRequest, Path(name): Path<String>) -> Response {
    let view = async {
        let armed = find_schedule(look.ledger(), &name).await?.ok_or(PageError::Unknown)?;
        let schedule = load_schedule(&look.pages.adapters, &armed).await?.ok();
        let next = schedule.and_then(|schedule| schedule.occurrences_after(look.pages.now()).next());
        build_schedule_preview(
            &look,
            &PathBuf::from(armed.file),
            next,
            &format!("/schedules/{}/preview", encode_path_segment(&name)),
        )
        .await
    };
    let view = view.await;
    look.respond("pages/preview.html", view)
}

async fn build_schedule_preview(
    look: &PageRequest,
    file: &FilePath,
    occurrence: Option<Occurrence>,
    path: &str,
) -> Result<SchedulePreviewView, PageError> {
    let (inputs, checked) = check_campaign_file(look, file, occurrence).await.ok_or(PageError::Later)??;
    let (language, now, unmasked) = (look.language, look.pages.now(), look.shows_numbers());
    let shown = move || {
        let shown = MessageSelection { rows: None, most: SHOWN_ROWS, unmasked };
        let (list, findings, cost) = (&checked.list, checked.findings.as_slice(), checked.cost.as_ref());
        build_preview_view(&PreviewPage { inputs: &inputs, list, findings, cost, shown, now }, language)
    };
    Ok(SchedulePreviewView { preview: run_blocking(shown).await??, numbers: NumbersLink::for_page(look, path) })
}
