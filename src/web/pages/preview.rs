//! The first messages of a campaign file as phones show them.

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
use crate::runs::{blocking, campaign_file, look_at_armed};
use crate::web::files::{PreviewPage, PreviewView, Shown, preview_view};

/// How many rows are shown.
const ROWS: usize = 20;

#[derive(Serialize)]
struct View {
    #[serde(flatten)]
    preview: PreviewView,
    numbers: Option<Numbers>,
}

/// Of the campaign file that a run is of, as it is now.
pub(super) async fn of_run(look: Look, Path(name): Path<String>) -> Response {
    let view = async {
        let run = look.run(&name).await?;
        let file = campaign_file(look.ledger(), &run).await.filter(|_| !run.shared).ok_or(Refusal::Unknown)?;
        view(&look, &file, None, &format!("/runs/{}/preview", encoded(&name))).await
    };
    let view = view.await;
    look.answer("pages/preview.html", view)
}

/// Of what is armed, as it is sent when it is due next.
pub(super) async fn of_schedule(look: Look, Path(name): Path<String>) -> Response {
    let view = async {
        let armed = look.ledger().schedules().await?.into_iter().find(|armed| armed.name == name);
        let armed = armed.ok_or(Refusal::Unknown)?;
        let schedule = look_at_armed(&look.pages.adapters, &armed).await?.ok();
        let next = schedule.and_then(|schedule| schedule.after(look.pages.now()).next());
        view(&look, &PathBuf::from(armed.file), next, &format!("/schedules/{}/preview", encoded(&name))).await
    };
    let view = view.await;
    look.answer("pages/preview.html", view)
}

async fn view(look: &Look, file: &FilePath, occurrence: Option<Occurrence>, path: &str) -> Result<View, Refusal> {
    let (inputs, checked) = checked(look, file, occurrence).await.ok_or(Refusal::Later)??;
    let (language, now, unmasked) = (look.language, look.pages.now(), look.shows_numbers());
    let shown = move || {
        let shown = Shown { rows: None, most: ROWS, unmasked };
        let (list, findings, cost) = (&checked.list, checked.findings.as_slice(), checked.cost.as_ref());
        preview_view(&PreviewPage { inputs: &inputs, list, findings, cost, shown, now }, language)
    };
    Ok(View { preview: blocking(shown).await??, numbers: Numbers::on(look, path) })
}
