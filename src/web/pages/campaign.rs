//! The campaign of a run: what was frozen, and the file as it is now with what `check` finds in it.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Path;
use axum::response::Response;
use serde::Serialize;

use super::fields::encode_path_segment;
use super::look::PageRequest;
use super::refusal::PageError;
use crate::calendar::Occurrence;
use crate::delivery::FrozenInputs;
use crate::finding::{Finding, rules};
use crate::manifest::CampaignDay;
use crate::report::load_copies;
use crate::runs::{CheckedCampaign, Error, Inputs, ProtectedFiles, check_campaign, find_campaign_file, run_blocking};
use crate::web::html::FindingView;

/// How long somebody waits until a campaign was looked at with its whole list.
const CHECK_TIMEOUT: Duration = Duration::from_secs(8);

#[derive(Serialize)]
struct CampaignPageView {
    run: String,
    path: String,
    /// What the run was frozen with, as YAML.
    frozen: Option<String>,
    /// The texts that others include, with their names.
    texts: Vec<IncludedText>,
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
struct IncludedText {
    name: String,
    text: String,
}

pub(super) async fn show_campaign(mut look: PageRequest, Path(name): Path<String>) -> Response {
    let view = build_view(&mut look, &name).await;
    look.respond("pages/campaign.html", view)
}

async fn build_view(look: &mut PageRequest, name: &str) -> Result<CampaignPageView, PageError> {
    let run = look.find_run(name).await?;
    let frozen = match run.purged_at {
        Some(_) => None,
        None => Some(FrozenInputs::from_copies(&load_copies(look.ledger(), &run).await?)?),
    };
    let file = find_campaign_file(look.ledger(), &run).await.filter(|_| !run.shared);
    let (now, (findings, looking)) = match &file {
        Some(file) => (read_text(file.clone()).await?, find_problems(look, file).await),
        None => (None, (Vec::new(), false)),
    };
    let there = now.is_some();
    let of_frozen = frozen.as_ref().map(|frozen| serde_yaml::to_string(&frozen.brief));
    let (texts, day) = frozen.map(|frozen| (frozen.includes, frozen.today)).unzip();
    Ok(CampaignPageView {
        run: run.name(),
        path: format!("/runs/{}", encode_path_segment(name)),
        frozen: of_frozen.transpose().map_err(|error| PageError::Failed(error.to_string()))?,
        texts: texts.unwrap_or_default().into_iter().map(|(name, text)| IncludedText { name, text }).collect(),
        day,
        file: file.map(|file| file.display().to_string()),
        now,
        findings: findings.iter().filter(|_| there).map(FindingView::from_finding).collect(),
        looking,
    })
}

/// What stands in a file; nothing where it cannot be read.
async fn read_text(file: PathBuf) -> Result<Option<String>, PageError> {
    let read = move || {
        let opened = crate::regular_file::open(&file).ok()?;
        std::io::read_to_string(opened).ok()
    };
    Ok(run_blocking(read).await?)
}

/// What is found of a campaign, and whether that is not known yet.
async fn find_problems(look: &PageRequest, file: &FilePath) -> (Vec<Finding>, bool) {
    match check_campaign_file(look, file, None).await {
        Some(Ok((_, checked))) => (checked.findings, false),
        Some(Err(Error::Findings(findings) | Error::UnknownGateway { findings, .. })) => (findings, false),
        Some(Err(error)) => (vec![Finding::new(&rules::CHECK, error.to_string())], false),
        None => (Vec::new(), true),
    }
}

/// Looks at a campaign as `check` does, with its whole list, one after another; nothing where that takes long. A list that is
/// no file is not fetched. What is armed is looked at as this occurrence of it sends it.
pub(super) async fn check_campaign_file(
    look: &PageRequest,
    file: &FilePath,
    occurrence: Option<Occurrence>,
) -> Option<Result<(Arc<Inputs>, CheckedCampaign), Error>> {
    let looking = async {
        let _turn = look.pages.looking.lock().await;
        let (adapters, now) = (&look.pages.adapters, look.pages.now());
        let (file, profiles) = (file.to_owned(), adapters.profiles.clone());
        let load = move || match occurrence {
            Some(occurrence) => {
                let day = CampaignDay::Coming(occurrence.nominal.date());
                Inputs::load(&file, None, &profiles, day).map(|inputs| inputs.for_occurrence(&occurrence))
            }
            None => Inputs::load(&file, None, &profiles, CampaignDay::Of(now)),
        };
        let inputs = Arc::new(run_blocking(load).await??);
        let files = ProtectedFiles { state: &adapters.state, profiles: &adapters.profiles };
        let heard = (&adapters.observer, now);
        let checked = check_campaign(&inputs, Some(adapters.ledger.as_ref()), files, heard).await?;
        Ok((inputs, checked))
    };
    tokio::time::timeout(CHECK_TIMEOUT, looking).await.ok()
}
