//! The campaign of a run: what was frozen, and the file as it is now with what `check` finds in it.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::fields::encoded;
use super::look::Look;
use super::refusal::Refusal;
use crate::calendar::Occurrence;
use crate::delivery::FrozenInputs;
use crate::finding::{Finding, rules};
use crate::manifest::Day;
use crate::report::copies_of;
use crate::runs::{CheckedCampaign, Error, Inputs, OwnFiles, blocking, campaign_file, check_campaign};
use crate::web::html::FindingView;

/// How long somebody waits until a campaign was looked at with its whole list.
const PATIENCE: Duration = Duration::from_secs(8);

#[derive(Serialize)]
struct View {
    run: String,
    path: String,
    /// What the run was frozen with, as YAML.
    frozen: Option<String>,
    /// The texts that others include, with their names.
    texts: Vec<Text>,
    /// The day that texts saw.
    day: Option<String>,
    /// The campaign file.
    file: Option<String>,
    /// What stands in it now; nothing where it is not there.
    now: Option<String>,
    findings: Vec<FindingView>,
    /// Whether looking at it takes longer than somebody waits.
    looking: bool,
}

#[derive(Serialize)]
struct Text {
    name: String,
    text: String,
}

pub(super) async fn page(mut look: Look, Path(name): Path<String>) -> Response {
    let view = view(&mut look, &name).await;
    look.answer("pages/campaign.html", view)
}

async fn view(look: &mut Look, name: &str) -> Result<View, Refusal> {
    let run = look.run(name).await?;
    let frozen = match run.purged_at {
        Some(_) => None,
        None => Some(FrozenInputs::of(&copies_of(look.ledger(), &run).await?)?),
    };
    let file = campaign_file(look.ledger(), &run).await.filter(|_| !run.shared);
    let (now, (findings, looking)) = match &file {
        Some(file) => (text_of(file.clone()).await?, findings(look, file).await),
        None => (None, (Vec::new(), false)),
    };
    let there = now.is_some();
    let of_frozen = frozen.as_ref().map(|frozen| serde_yaml::to_string(&frozen.brief));
    let (texts, day) = frozen.map(|frozen| (frozen.includes, frozen.today)).unzip();
    Ok(View {
        run: run.name(),
        path: format!("/runs/{}", encoded(name)),
        frozen: of_frozen.transpose().map_err(|error| Refusal::Failed(error.to_string()))?,
        texts: texts.unwrap_or_default().into_iter().map(|(name, text)| Text { name, text }).collect(),
        day,
        file: file.map(|file| file.display().to_string()),
        now,
        findings: findings.iter().filter(|_| there).map(FindingView::of).collect(),
        looking,
    })
}

/// What stands in a file; nothing where it cannot be read.
async fn text_of(file: PathBuf) -> Result<Option<String>, Refusal> {
    let read = move || {
        let opened = crate::regular_file::open(&file).ok()?;
        std::io::read_to_string(opened).ok()
    };
    Ok(blocking(read).await?)
}

/// What is found of a campaign, and whether that is not known yet.
async fn findings(look: &Look, file: &FilePath) -> (Vec<Finding>, bool) {
    match checked(look, file, None).await {
        Some(Ok((_, checked))) => (checked.findings, false),
        Some(Err(Error::Findings(findings) | Error::UnknownGateway { findings, .. })) => (findings, false),
        Some(Err(error)) => (vec![Finding::new(&rules::CHECK, error.to_string())], false),
        None => (Vec::new(), true),
    }
}

/// Looks at a campaign as `check` does, with its whole list, one after another; nothing where that takes long. A list that is
/// no file is not fetched. What is armed is looked at as this occurrence of it sends it.
pub(super) async fn checked(
    look: &Look,
    file: &FilePath,
    occurrence: Option<Occurrence>,
) -> Option<Result<(Arc<Inputs>, CheckedCampaign), Error>> {
    let looking = async {
        let _turn = look.pages.looking.lock().await;
        let (adapters, now) = (&look.pages.adapters, look.pages.now());
        let (file, profiles) = (file.to_owned(), adapters.profiles.clone());
        let load = move || match occurrence {
            Some(occurrence) => {
                let day = Day::Coming(occurrence.nominal.date());
                Inputs::load(&file, None, &profiles, day).map(|inputs| inputs.of_occurrence(&occurrence))
            }
            None => Inputs::load(&file, None, &profiles, Day::Of(now)),
        };
        let inputs = Arc::new(blocking(load).await??);
        let files = OwnFiles { state: &adapters.state, profiles: &adapters.profiles };
        let heard = (&adapters.observer, now);
        let checked = check_campaign(&inputs, Some(adapters.ledger.as_ref()), files, heard).await?;
        Ok((inputs, checked))
    };
    tokio::time::timeout(PATIENCE, looking).await.ok()
}
