//! First messages as phones show them: of a run, as it is sent, and of what is armed.

use std::path::{Path as FilePath, PathBuf};

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::campaign::checked;
use super::fields::encoded;
use super::look::Look;
use super::refusal::Refusal;
use super::rows::Numbers;
use crate::calendar::Occurrence;
use crate::runs::{blocking, find_schedule, look_at_armed, thaw};
use crate::web::files::{FirstMessages, PreviewPage, PreviewView, Shown, preview_view};

/// How many rows are shown.
const ROWS: usize = 20;

#[derive(Serialize)]
struct View {
    #[serde(flatten)]
    preview: PreviewView,
    numbers: Option<Numbers>,
}

#[derive(Serialize)]
struct OfRun {
    run: String,
    path: String,
    #[serde(flatten)]
    first: FirstMessages,
    numbers: Option<Numbers>,
}

/// Of a run, from what it is sent from.
pub(super) async fn of_run(mut look: Look, Path(name): Path<String>) -> Response {
    let view = of(&mut look, name).await;
    look.answer("pages/messages.html", view)
}

async fn of(look: &mut Look, name: String) -> Result<OfRun, Refusal> {
    let run = look.run(&name).await?;
    if run.shared || run.purged_at.is_some() {
        return Err(Refusal::Unknown);
    }
    let (frozen, prepared) = thaw(look.ledger(), &run).await?;
    let (left_out, last) = (look.ledger().left_out(run.key).await?.rows(), run.last_row());
    let shown = (ROWS, look.shows_numbers());
    let first = blocking(move || FirstMessages::read(&frozen.brief, prepared, (&left_out, last), shown)).await??;
    let path = format!("/runs/{}", encoded(&name));
    let numbers = Numbers::on(look, &format!("{path}/preview"));
    Ok(OfRun { run: name, path, first, numbers })
}

/// Of what is armed, as it is sent when it is due next.
pub(super) async fn of_schedule(look: Look, Path(name): Path<String>) -> Response {
    let view = async {
        let armed = find_schedule(look.ledger(), &name).await?.ok_or(Refusal::Unknown)?;
        let schedule = look_at_armed(&look.pages.adapters, &armed).await?.ok();
        let next = schedule.and_then(|schedule| schedule.after(look.pages.now()).next());
        preview(&look, &PathBuf::from(armed.file), next, &format!("/schedules/{}/preview", encoded(&name))).await
    };
    let view = view.await;
    look.answer("pages/preview.html", view)
}

async fn preview(look: &Look, file: &FilePath, occurrence: Option<Occurrence>, path: &str) -> Result<View, Refusal> {
    let (inputs, checked) = checked(look, file, occurrence).await.ok_or(Refusal::Later)??;
    let (language, now, unmasked) = (look.language, look.pages.now(), look.shows_numbers());
    let shown = move || {
        let shown = Shown { rows: None, most: ROWS, unmasked };
        let (list, findings, cost) = (&checked.list, checked.findings.as_slice(), checked.cost.as_ref());
        preview_view(&PreviewPage { inputs: &inputs, list, findings, cost, shown, now }, language)
    };
    Ok(View { preview: blocking(shown).await??, numbers: Numbers::on(look, path) })
}
