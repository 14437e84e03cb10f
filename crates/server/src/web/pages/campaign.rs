//! Campaign pages: the list of campaigns with their latest run and schedule, and the previews of runs and schedules.
//! The campaign of a run is shown as frozen and as it is now, with findings.

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Path;
use axum::response::Response;
use campaign_core::calendar::Occurrence;
use campaign_core::finding::{Finding, rules};
use campaign_engine::delivery::FrozenInputs;
use campaign_engine::report::{RunView, load_copies};
use campaign_manifest::CampaignDay;
use campaign_runs::{
    CheckedCampaign, Error, Inputs, ProtectedFiles, ScheduleStatus, ScheduleView, check_campaign, find_campaign_file,
    find_schedule, load_schedule, load_schedule_views, open_copies, run_blocking,
};
use serde::Serialize;

use super::page_error::PageError;
use super::request::{PageRequest, encode_path_segment};
use super::rows::NumbersLink;
use super::runs::{RunLine, is_regular, run_path};
use super::schedules::{schedule_path, schedule_zones};
use super::sending::offers_test;
use crate::web::files::{FindingView, FirstMessages, MessageSelection, PreviewPage, PreviewView, build_preview_view};

/// The time for which a page waits for the check of a campaign with its whole list.
const CHECK_TIMEOUT: Duration = Duration::from_secs(8);

#[derive(Serialize)]
struct CampaignPageView {
    run: String,
    path: String,
    /// The frozen campaign as YAML.
    frozen: Option<String>,
    /// The included texts, with their names.
    texts: Vec<IncludedText>,
    /// The day for which the texts were filled.
    day: Option<String>,
    /// The campaign file.
    file: Option<String>,
    /// The current content of the file; `None` if it does not exist.
    current: Option<String>,
    findings: Vec<FindingView>,
    /// Whether the check took too long.
    check_slow: bool,
    /// Whether a test can be sent from the page.
    tests: bool,
}

#[derive(Serialize)]
struct IncludedText {
    name: String,
    text: String,
}

pub(super) async fn show_campaign(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = build_view(&mut request, &name).await;
    request.respond("pages/campaign.html", view)
}

async fn build_view(request: &mut PageRequest, name: &str) -> Result<CampaignPageView, PageError> {
    let run = request.find_run(name).await?;
    let frozen = match run.purged_at {
        Some(_) => None,
        None => Some(FrozenInputs::from_copies(&load_copies(request.ledger(), &run).await?)?),
    };
    let file = find_campaign_file(request.ledger(), &run).await.filter(|_| !run.shared);
    let (current, (findings, check_slow)) = match &file {
        Some(file) => (read_text(file.clone()).await?, find_problems(request, file).await),
        None => (None, (Vec::new(), false)),
    };
    let file_exists = current.is_some();
    let frozen_yaml = frozen.as_ref().map(|frozen| serde_yaml::to_string(&frozen.brief));
    let (texts, day) = frozen.map(|frozen| (frozen.includes, frozen.today)).unzip();
    Ok(CampaignPageView {
        run: run.name(),
        path: format!("/runs/{}", encode_path_segment(name)),
        frozen: frozen_yaml.transpose().map_err(|error| PageError::Failed(error.to_string()))?,
        texts: texts.unwrap_or_default().into_iter().map(|(name, text)| IncludedText { name, text }).collect(),
        day,
        file: file.map(|file| file.display().to_string()),
        tests: offers_test(request, &run) && current.is_some(),
        current,
        findings: findings.iter().filter(|_| file_exists).map(FindingView::from_finding).collect(),
        check_slow,
    })
}

/// Reads a text file, or returns `None` if the file cannot be read.
async fn read_text(file: PathBuf) -> Result<Option<String>, PageError> {
    let read = move || {
        let opened = campaign_core::regular_file::open(&file).ok()?;
        std::io::read_to_string(opened).ok()
    };
    Ok(run_blocking(read).await?)
}

/// Checks a campaign, and returns its findings and whether the check took too long.
async fn find_problems(request: &PageRequest, file: &FilePath) -> (Vec<Finding>, bool) {
    match check_campaign_file(request, file, None).await {
        Some(Ok((_, checked))) => (checked.findings, false),
        Some(Err(Error::Findings(findings) | Error::UnknownGateway { findings, .. })) => (findings, false),
        Some(Err(error)) => (vec![Finding::new(&rules::CHECK, error.to_string())], false),
        None => (Vec::new(), true),
    }
}

/// Checks a campaign with its whole list, as `check` does; returns `None` if the check takes too long. If an occurrence
/// of a schedule is given, the campaign is checked as that occurrence would send it.
///
/// Campaigns are checked one at a time. A list that is not a file is not fetched.
pub(super) async fn check_campaign_file(
    request: &PageRequest,
    file: &FilePath,
    occurrence: Option<Occurrence>,
) -> Option<Result<(Arc<Inputs>, CheckedCampaign), Error>> {
    let check = async {
        let _lock = request.pages.checking.lock().await;
        let (adapters, now) = (&request.pages.adapters, request.pages.now());
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
        let ledger = Some(adapters.ledger.as_ref());
        let checked = check_campaign(&inputs, ledger, files, &adapters.observer, now).await?;
        Ok((inputs, checked))
    };
    tokio::time::timeout(CHECK_TIMEOUT, check).await.ok()
}

/// The number of rows that a preview shows.
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

/// Shows the preview of a run, built from the copies that the run stores.
pub(super) async fn show_run_preview(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = build_run_preview(&mut request, name).await;
    request.respond("pages/run_preview.html", view)
}

async fn build_run_preview(request: &mut PageRequest, name: String) -> Result<RunPreviewView, PageError> {
    let run = request.find_run(&name).await?;
    if run.shared || run.purged_at.is_some() {
        return Err(PageError::Unknown);
    }
    let (frozen, prepared) = open_copies(request.ledger(), &run).await?;
    let (excluded, last) = (request.ledger().load_excluded_rows(run.key).await?.rows(), run.last_row());
    let unmasked = request.shows_numbers();
    let first =
        run_blocking(move || FirstMessages::read_first(&frozen.brief, prepared, &excluded, last, SHOWN_ROWS, unmasked))
            .await??;
    let path = format!("/runs/{}", encode_path_segment(&name));
    let numbers = NumbersLink::for_page(request, &format!("{path}/preview"));
    Ok(RunPreviewView { run: name, path, first, numbers })
}

/// Shows the preview of a schedule's next occurrence.
pub(super) async fn show_schedule_preview(request: PageRequest, Path(name): Path<String>) -> Response {
    let view = async {
        let active = find_schedule(request.ledger(), &name).await?.ok_or(PageError::Unknown)?;
        let schedule = load_schedule(&request.pages.adapters, &active).await?.ok();
        let next = schedule.and_then(|schedule| schedule.occurrences_after(request.pages.now()).next());
        build_schedule_preview(
            &request,
            &PathBuf::from(active.file),
            next,
            &format!("/schedules/{}/preview", encode_path_segment(&name)),
        )
        .await
    };
    let view = view.await;
    request.respond("pages/schedule_preview.html", view)
}

async fn build_schedule_preview(
    request: &PageRequest,
    file: &FilePath,
    occurrence: Option<Occurrence>,
    path: &str,
) -> Result<SchedulePreviewView, PageError> {
    let (inputs, checked) = check_campaign_file(request, file, occurrence).await.ok_or(PageError::Later)??;
    let (language, now, unmasked) = (request.language, request.pages.now(), request.shows_numbers());
    let build_preview = move || {
        let selection = MessageSelection { rows: None, max: SHOWN_ROWS, unmasked };
        let (list, findings, cost) = (&checked.list, checked.findings.as_slice(), checked.cost.as_ref());
        build_preview_view(&PreviewPage { inputs: &inputs, list, findings, cost, selection, now }, language)
    };
    Ok(SchedulePreviewView {
        preview: run_blocking(build_preview).await??,
        numbers: NumbersLink::for_page(request, path),
    })
}

#[derive(Serialize)]
struct CampaignsPageView {
    /// Whether the runs are still being read.
    reading: bool,
    campaigns: Vec<CampaignLine>,
}

#[derive(Serialize)]
struct CampaignLine {
    name: String,
    /// The path of the campaign's runs.
    path: String,
    /// The number of runs, without rehearsals.
    runs: u64,
    rehearsals: u64,
    /// The latest run, or else the latest rehearsal.
    latest: Option<RunLine>,
    /// The path of the campaign page of the latest run.
    file_path: Option<String>,
    /// The state of the campaign's schedule.
    schedule: Option<&'static str>,
    /// The path of the preview of the campaign's schedule.
    schedule_path: Option<String>,
    next: Option<String>,
}

/// The runs and schedule of a campaign.
#[derive(Default)]
struct KnownCampaign<'v> {
    /// The runs of the campaign, latest first.
    runs: Vec<&'v RunView>,
    rehearsals: Vec<&'v RunView>,
    schedule: Option<&'v ScheduleView>,
}

pub(super) async fn show_campaigns(mut request: PageRequest) -> Response {
    let view = build_list_view(&mut request).await;
    request.respond("pages/campaigns.html", view)
}

async fn build_list_view(request: &mut PageRequest) -> Result<CampaignsPageView, PageError> {
    let run_list = request.pages.run_list.read_latest().await?;
    let reading = run_list.is_none();
    let list = run_list.unwrap_or_default();
    let schedules = load_schedule_views(&request.pages.adapters).await?;
    let mut known: BTreeMap<&str, KnownCampaign<'_>> = BTreeMap::new();
    // Runs of lookups, calls and test messages have names with a dot. They belong to no campaign.
    for view in list.views.iter().filter(|view| !view.run.campaign.contains('.')) {
        let campaign = known.entry(&view.run.campaign).or_default();
        if is_regular(&view.run) { campaign.runs.push(view) } else { campaign.rehearsals.push(view) }
    }
    for schedule in &schedules {
        known.entry(&schedule.name).or_default().schedule = Some(schedule);
    }
    let mut zones = schedule_zones(&schedules);
    for campaign in known.values() {
        let Some(latest) = campaign.runs.first().or(campaign.rehearsals.first()) else { continue };
        zones.push(request.pages.traits.load(request.ledger(), &latest.run).await.zone);
    }
    request.use_common_zone(&zones);
    let mut campaigns = Vec::with_capacity(known.len());
    for (name, campaign) in known {
        campaigns.push(build_campaign_line(request, name, &campaign).await?);
    }
    Ok(CampaignsPageView { reading, campaigns })
}

async fn build_campaign_line(
    request: &PageRequest,
    name: &str,
    known: &KnownCampaign<'_>,
) -> Result<CampaignLine, PageError> {
    let latest = known.runs.first().or(known.rehearsals.first());
    let schedule = known.schedule;
    let next = schedule.filter(|view| view.state == ScheduleStatus::Active).and_then(|view| view.next.as_ref());
    let next = next.map(|next| next.local_time());
    Ok(CampaignLine {
        name: name.to_owned(),
        path: format!("/runs?campaign={}", encode_path_segment(name)),
        runs: known.runs.len() as u64,
        rehearsals: known.rehearsals.len() as u64,
        file_path: latest.map(|view| format!("{}/campaign", run_path(&view.run.name()))),
        latest: match latest {
            Some(view) => Some(RunLine::load(request, view).await?),
            None => None,
        },
        schedule: schedule.map(|view| view.state.as_str()),
        schedule_path: schedule.map(|view| format!("{}/preview", schedule_path(&view.name))),
        next: next.map(|at| request.format_moment_in(at.time_zone(), at.timestamp())),
    })
}
