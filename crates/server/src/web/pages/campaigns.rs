//! The list of campaigns: their latest run and their schedule.

use std::collections::BTreeMap;

use axum::response::Response;
use serde::Serialize;

use super::page_error::PageError;
use super::request::{PageRequest, encode_path_segment};
use super::runs::{RunLine, is_regular, run_path};
use super::schedules::{schedule_path, schedule_zones};
use campaign_engine::report::RunView;
use campaign_runs::{ScheduleStatus, ScheduleView, load_schedule_views};

#[derive(Serialize)]
struct CampaignsPageView {
    /// Whether reading the runs takes long.
    reading: bool,
    campaigns: Vec<CampaignLine>,
}

#[derive(Serialize)]
struct CampaignLine {
    name: String,
    /// The path of its runs.
    path: String,
    /// The number of runs, without rehearsals.
    runs: u64,
    rehearsals: u64,
    /// The latest run, or else the latest rehearsal.
    latest: Option<RunLine>,
    /// The path of the campaign page of that run.
    file_path: Option<String>,
    /// The state of its schedule, and the path of the preview.
    schedule: Option<&'static str>,
    schedule_path: Option<String>,
    next: Option<String>,
}

/// The runs and schedule of a campaign.
#[derive(Default)]
struct KnownCampaign<'v> {
    /// Its runs, the latest first.
    runs: Vec<&'v RunView>,
    rehearsals: Vec<&'v RunView>,
    schedule: Option<&'v ScheduleView>,
}

pub(super) async fn show_campaigns(mut request: PageRequest) -> Response {
    let view = build_view(&mut request).await;
    request.respond("pages/campaigns.html", view)
}

async fn build_view(request: &mut PageRequest) -> Result<CampaignsPageView, PageError> {
    let read = request.pages.run_list.read_latest().await?;
    let reading = read.is_none();
    let list = read.unwrap_or_default();
    let schedules = load_schedule_views(&request.pages.adapters).await?;
    let mut known: BTreeMap<&str, KnownCampaign<'_>> = BTreeMap::new();
    // The names of lookups, calls and test messages contain a dot. They belong to no campaign.
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
        campaigns.push(campaign_line(request, name, &campaign).await?);
    }
    Ok(CampaignsPageView { reading, campaigns })
}

async fn campaign_line(
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
