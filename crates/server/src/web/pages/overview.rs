//! The overview page of the dashboard: figures for today and the last seven days, active runs, problems, next
//! occurrences, deliveries per day, and the latest runs and actions.

use std::time::Duration;

use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tokio::time::timeout;

use super::activity::{ActivityView, MoneySums, RecentActivity};
use super::decisions::{ActionOutcome, ActionRecord};
use super::page_error::PageError;
use super::request::PageRequest;
use super::run::done_message;
use super::runs::{DamagedLine, MessageSums, RunLine, is_message_run, is_regular, run_path, start_of_period};
use super::schedules::{NextOccurrence, next_occurrences, schedule_zones};
use crate::web::charts::{Bar, Length, scale_bars};
use crate::web::run_page::format_share;
use campaign_engine::report::{RunList, RunStatus, RunView};
use campaign_ledger::{LedgerError, RowState};
use campaign_runs::{ScheduleStatus, ScheduleView, SkipRecord, load_schedule_views, run_blocking, wants_receipts};

/// The maximum number of recent runs to show.
const SHOWN_RUNS: usize = 8;
/// The maximum number of active runs to show.
const SHOWN_SENDING: usize = 6;
/// The maximum number of next occurrences to show.
const SHOWN_OCCURRENCES: usize = 6;
/// The maximum number of recent actions to show.
const SHOWN_ACTIONS: usize = 10;
/// The maximum number of alerts to show.
const SHOWN_ALERTS: usize = 12;
/// The timeout for reading the progress of a run, the replies or the opt-outs.
const READING_TIMEOUT: Duration = Duration::from_millis(200);
/// The age up to which a run that stopped needs attention.
const STOPPED_AGE: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The time within which the first receipt of a run is expected.
const RECEIPT_DELAY: SignedDuration = SignedDuration::from_mins(30);
/// The age up to which missing receipts need attention.
const RECEIPT_AGE: SignedDuration = SignedDuration::from_hours(4 * 24);

#[derive(Serialize)]
struct OverviewPageView {
    /// The confirmation of the last action.
    done: Option<String>,
    /// Whether the runs are still being read.
    reading: bool,
    damaged: Vec<DamagedLine>,
    /// Today and the last seven days.
    periods: Vec<PeriodView>,
    sending: Vec<SendingView>,
    alerts: Vec<Alert>,
    /// The number of further alerts.
    more_alerts: usize,
    next: Vec<NextOccurrence>,
    /// Deliveries per day by channel; `None` while they are still being counted.
    activity: Option<ActivityView>,
    runs: Vec<RunLine>,
    actions: Vec<ActionLine>,
}

/// The figures of the runs that started in a period.
#[derive(Serialize)]
struct PeriodView {
    /// `today` or `week`.
    name: &'static str,
    tiles: Vec<Tile>,
}

/// A figure with its name and a note, such as the number of messages.
#[derive(Serialize)]
struct Tile {
    name: &'static str,
    value: String,
    note: Option<String>,
    /// The class in the stylesheet, if the figure needs attention; otherwise empty.
    class: &'static str,
}

/// A run that is being sent.
#[derive(Serialize)]
struct SendingView {
    name: String,
    path: String,
    rehearsal: bool,
    /// The processed share of the run's messages.
    length: Length,
    percent: String,
    progress: String,
}

/// Something that needs attention.
#[derive(Serialize)]
struct Alert {
    /// `bad`, `warn` or `note`.
    class: &'static str,
    text: String,
    /// A reason in English.
    english: Option<String>,
    path: String,
}

#[derive(Serialize)]
struct ActionLine {
    at: String,
    by: String,
    action: String,
    target: String,
    /// `None` in records of earlier versions.
    outcome: Option<&'static str>,
}

impl ActionLine {
    fn new(request: &PageRequest, record: ActionRecord) -> Self {
        let ActionRecord { at, by, action, target, outcome, id: _, reason: _ } = record;
        Self { at: request.format_moment(at), by, action, target, outcome: outcome.map(ActionOutcome::word) }
    }
}

pub(super) async fn show_overview(mut request: PageRequest) -> Response {
    let view = build_view(&mut request).await;
    request.respond("pages/overview.html", view)
}

async fn build_view(request: &mut PageRequest) -> Result<OverviewPageView, PageError> {
    let run_list = request.pages.run_list.read_latest().await?;
    let reading = run_list.is_none();
    let list = run_list.unwrap_or_default();
    let schedules = load_schedule_views(&request.pages.adapters).await?;
    let latest: Vec<&RunView> = list.views.iter().filter(|view| is_regular(&view.run)).take(SHOWN_RUNS).collect();
    let mut zones = schedule_zones(&schedules);
    for view in &latest {
        zones.push(request.pages.traits.load(request.ledger(), &view.run).await.zone);
    }
    request.use_common_zone(&zones);
    let (ledger, now) = (request.pages.adapters.ledger.clone(), request.pages.now());
    // A value that takes longer is shown when the page is loaded again.
    let (activity, replies, opt_outs) = tokio::join!(
        RecentActivity::load(request, &list),
        timeout(READING_TIMEOUT, request.pages.opt_outs.read_replies(&ledger, now)),
        timeout(READING_TIMEOUT, request.pages.opt_outs.read_opt_out_days(&ledger, now)),
    );
    let (activity, replies) = (activity?, replies.ok().transpose()?.flatten());
    let mut alerts = find_alerts(request, &list, &schedules, activity.as_deref()).await?;
    alerts.extend(replies.and_then(|replies| replies_alert(request, replies.all)));
    if let Ok(Err(error)) = opt_outs {
        alerts.push(opt_outs_alert(request, error)?);
    }
    alerts.sort_by_key(|alert| alert.class != "bad");
    let more_alerts = alerts.len().saturating_sub(SHOWN_ALERTS);
    alerts.truncate(SHOWN_ALERTS);
    let mut runs = Vec::with_capacity(latest.len());
    for view in latest {
        runs.push(RunLine::load(request, view).await?);
    }
    let log = request.pages.action_log.clone();
    let actions = run_blocking(move || log.read_latest(SHOWN_ACTIONS)).await??;
    Ok(OverviewPageView {
        done: done_message(request),
        reading,
        damaged: list.damaged.iter().map(DamagedLine::new).collect(),
        periods: [("today", 1), ("week", 7)]
            .map(|(name, days)| period_view(request, &list, activity.as_deref(), name, days))
            .into(),
        sending: load_sending_views(request, &list).await,
        alerts,
        more_alerts,
        next: next_occurrences(request, &schedules, SHOWN_OCCURRENCES),
        activity: activity.map(|activity| activity.to_view(request)),
        runs,
        actions: actions.into_iter().map(|record| ActionLine::new(request, record)).collect(),
    })
}

/// Builds the view of the regular runs that started in the last `days` days.
fn period_view(
    request: &PageRequest,
    list: &RunList,
    activity: Option<&RecentActivity>,
    name: &'static str,
    days: u32,
) -> PeriodView {
    let since = start_of_period(&request.zone, request.pages.now(), days);
    let started = || list.views.iter().filter(|view| is_message_run(&view.run) && view.run.began_at >= since);
    let sums = started().fold(MessageSums::default(), |sums, view| sums.plus(MessageSums::from_counts(&view.counts)));
    let words = request.words();
    let format = |number: u64| words.format_number(number);
    let share = |part: u64, total: u64| format_share(words, part, total).unwrap_or_else(|| "–".to_owned());
    let tile = |name, value, note| Tile { name, value, note, class: "" };
    let runs = started().count() as u64;
    let mut tiles = vec![
        tile("sent", format(sums.accepted), Some(words.count("overview.runs", runs, &[]))),
        tile("delivered", share(sums.delivered, sums.accepted), Some(format(sums.delivered))),
        tile("read", share(sums.read, sums.accepted), Some(format(sums.read))),
        Tile {
            class: if sums.failed > 0 { "tile-bad" } else { "" },
            ..tile("failed", share(sums.failed, sums.count_answered()), Some(format(sums.failed)))
        },
        Tile { class: if sums.doubt > 0 { "tile-warn" } else { "" }, ..tile("in_doubt", format(sums.doubt), None) },
    ];
    if let Some(activity) = activity {
        let money = MoneySums::from_runs(activity, started().map(|view| view.run.key));
        tiles.extend(money.format(words).map(|(value, note)| tile("cost", value, note)));
    }
    PeriodView { name, tiles }
}

/// Loads the views of the runs that are being sent, with the progress of each run.
async fn load_sending_views(request: &PageRequest, list: &RunList) -> Vec<SendingView> {
    let mut sending = Vec::new();
    let running = list.views.iter().filter(|view| view.status == RunStatus::Sending);
    for view in running.take(SHOWN_SENDING) {
        let reading = request.pages.run_watcher.read_once(view.run.key);
        let reading = timeout(READING_TIMEOUT, reading).await.ok().flatten().and_then(Result::ok);
        let view = reading.as_ref().map_or(view, |reading| &reading.report.view);
        let waiting: u64 = [RowState::Planned, RowState::Sending].map(|state| view.counts.get(state)).iter().sum();
        let skipped: u64 = [RowState::Skipped, RowState::Invalid].map(|state| view.counts.get(state)).iter().sum();
        let planned = view.run.recipients.saturating_sub(skipped);
        let processed = planned.saturating_sub(waiting);
        let length = scale_bars(vec![Bar::new("", processed, "")], Some(planned)).pop().map(|bar| bar.length);
        let progress = match &reading {
            Some(reading) => super::run::progress_sentence(request, reading),
            None => request.words().count(
                "run.processed",
                planned,
                &[("processed", &request.words().format_number(processed))],
            ),
        };
        sending.push(SendingView {
            name: view.run.name(),
            path: run_path(&view.run.name()),
            rehearsal: !view.run.live,
            length: length.unwrap_or_default(),
            percent: format_share(request.words(), processed, planned).unwrap_or_default(),
            progress,
        });
    }
    sending
}

/// Finds what needs attention in runs, schedules and budgets.
async fn find_alerts(
    request: &PageRequest,
    list: &RunList,
    schedules: &[ScheduleView],
    activity: Option<&RecentActivity>,
) -> Result<Vec<Alert>, PageError> {
    let (words, now) = (request.words(), request.pages.now());
    let mut alerts = Vec::new();
    for view in list.views.iter().filter(|view| is_regular(&view.run)) {
        alerts.extend(doubt_alert(request, view));
        alerts.extend(stopped_alert(request, view, now));
    }
    for schedule in schedules {
        alerts.extend(schedule_alert(request, schedule));
    }
    if let Some(activity) = activity {
        for budget in activity.tight_budgets() {
            let text = words.say_with(
                "alert.budget",
                &[("name", &budget.run), ("what", &budget.format_used(words)), ("all", &budget.format_limit(words))],
            );
            alerts.push(Alert { class: "warn", text, english: None, path: run_path(&budget.run) });
        }
    }
    for view in find_runs_without_receipts(list, now).await? {
        let text = words.say_with("alert.receipts", &[("name", &view.run.name())]);
        alerts.push(Alert { class: "warn", text, english: None, path: run_path(&view.run.name()) });
    }
    Ok(alerts)
}

fn replies_alert(request: &PageRequest, replies: usize) -> Option<Alert> {
    let text = request.words().count("alert.replies", replies as u64, &[]);
    (replies > 0).then(|| Alert { class: "warn", text, english: None, path: "/replies".to_owned() })
}

/// Reports a damaged suppression list.
///
/// # Errors
/// If the ledger cannot be read at all.
fn opt_outs_alert(request: &PageRequest, error: LedgerError) -> Result<Alert, PageError> {
    if !error.concerns_records() {
        return Err(error.into());
    }
    let (text, english) = (request.words().say("alert.opt-outs").to_owned(), Some(error.describe_damage()));
    Ok(Alert { class: "bad", text, english, path: "/opt-outs".to_owned() })
}

fn doubt_alert(request: &PageRequest, view: &RunView) -> Option<Alert> {
    let doubt = MessageSums::from_counts(&view.counts).doubt;
    if doubt == 0 || view.run.purged_at.is_some() {
        return None;
    }
    let name = view.run.name();
    let text = request.words().count("alert.doubt", doubt, &[("name", &name)]);
    Some(Alert { class: "bad", text, english: None, path: format!("{}#run-doubt", run_path(&name)) })
}

fn stopped_alert(request: &PageRequest, view: &RunView, now: Timestamp) -> Option<Alert> {
    let name = view.run.name();
    let text = match view.status {
        RunStatus::Stopped(_) => request.words().say_with("alert.stopped", &[("name", &name)]),
        RunStatus::Interrupted => request.words().say_with("alert.interrupted", &[("name", &name)]),
        _ => return None,
    };
    let stopped_at = view.run.ended_at.unwrap_or(view.run.began_at);
    if view.run.purged_at.is_some() || now.duration_since(stopped_at) > STOPPED_AGE {
        return None;
    }
    let english = view.status.reason().map(str::to_owned);
    Some(Alert { class: "bad", text, english, path: run_path(&name) })
}

fn schedule_alert(request: &PageRequest, schedule: &ScheduleView) -> Option<Alert> {
    let words = request.words();
    let name = [("name", schedule.name.as_str())];
    let (text, english) = match (&schedule.state, &schedule.skipped) {
        (ScheduleStatus::Damaged(problem), _) => {
            (words.say_with("alert.schedule-damaged", &name), Some(problem.clone()))
        }
        (ScheduleStatus::Changed(_), _) => (words.say_with("alert.schedule-changed", &name), None),
        // A person paused the schedule or activated it again.
        (_, Some(skipped)) if skipped.record.why == SkipRecord::WITHDRAWN => return None,
        (_, Some(skipped)) => {
            let at = skipped.occurrence.local_time();
            let when = request.format_moment_in(at.time_zone(), at.timestamp());
            let text = words.say_with("alert.skipped", &[("name", &schedule.name), ("when", &when)]);
            match words.item_name("skip-reason", &skipped.record.why) {
                Some(reason) => (format!("{text} {reason}"), None),
                None => (text, Some(skipped.record.why.clone())),
            }
        }
        _ => return None,
    };
    Some(Alert { class: "bad", text, english, path: "/schedules".to_owned() })
}

/// Finds the live runs that began a while ago and expect delivery receipts, but have not received any.
async fn find_runs_without_receipts(list: &RunList, now: Timestamp) -> Result<Vec<&RunView>, PageError> {
    let is_silent = |view: &&RunView| {
        let age = now.duration_since(view.run.began_at);
        let waiting = [RowState::Accepted, RowState::Queued].map(|state| view.counts.get(state)).iter().sum::<u64>();
        is_regular(&view.run)
            && (RECEIPT_DELAY..RECEIPT_AGE).contains(&age)
            && view.run.receipts == 0
            && waiting > 0
            && !view.run.is_shared_single_run()
            && view.run.purged_at.is_none()
    };
    let silent: Vec<&RunView> = list.views.iter().filter(is_silent).collect();
    let runs: Vec<_> = silent.iter().map(|view| view.run.clone()).collect();
    let needs_receipts =
        run_blocking(move || runs.iter().map(|run| wants_receipts(run, now)).collect::<Vec<_>>()).await?;
    let silent = silent.into_iter().zip(needs_receipts).filter(|(_, needs)| *needs).map(|(view, _)| view);
    Ok(silent.take(SHOWN_ALERTS).collect())
}
