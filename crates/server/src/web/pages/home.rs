//! The home page: runs, schedules, opt-outs and recent actions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use serde::Serialize;

use super::decisions::OrderOutcome;
use super::page_error::PageError;
use super::request::{PageRequest, encode_path_segment};
use super::run::{StateCountView, done_message, state_counts};
use crate::web::cache::{CachePolicy, SingleFlightCache};
use crate::web::charts::{self, CalendarView};
use campaign_engine::report::{RunView, UnclearReply, find_unclear_replies, load_display_zone};
use campaign_ledger::{DamagedRun, Ledger, LedgerError, Run, RunFilter};
use campaign_runs::{ScheduleStatus, ScheduleView, load_schedule_views, run_blocking};

/// The number of runs on a page; `?from=` shows the others.
const RUNS_PER_PAGE: usize = 30;
/// The number of days in the calendar, including today.
const CALENDAR_DAYS: u16 = 30;
/// The maximum number of occurrences of one schedule.
const MAX_OCCURRENCES: usize = 62;
/// The number of recent actions.
const SHOWN_ORDERS: usize = 10;

#[derive(Serialize)]
struct HomePageView {
    /// The confirmation of the last action.
    done: Option<String>,
    runs: Vec<RunLine>,
    /// The runs whose records are damaged.
    damaged: Vec<DamagedLine>,
    /// The offset of the next runs; `None` at the end.
    more: Option<usize>,
    /// Whether reading the runs takes long.
    reading: bool,
    schedules: Vec<ScheduleLine>,
    /// The occurrences in a calendar and by day; `None` if there are none.
    calendar: Option<CalendarView>,
    days: Vec<DueDay>,
    opt_outs: Option<OptOutsView>,
    /// Why a part of the suppression list cannot be read.
    opt_outs_problem: Option<String>,
    replies: Option<RepliesView>,
    orders: Vec<OrderLine>,
}

#[derive(Serialize)]
struct RunLine {
    name: String,
    path: String,
    status: &'static str,
    rehearsal: bool,
    began: String,
    rows: u64,
    counts: Vec<StateCountView>,
}

/// A run that cannot be read.
#[derive(Serialize)]
struct DamagedLine {
    name: String,
    problem: String,
}

#[derive(Serialize)]
struct ScheduleLine {
    name: String,
    path: String,
    state: &'static str,
    /// The damage, in English.
    problem: Option<String>,
    /// The time of the last skipped occurrence, if there is one.
    skipped: Option<String>,
    /// Why it was skipped, or the findings about the file, in English.
    why: Vec<String>,
    next: Option<String>,
}

/// A day with occurrences.
#[derive(Serialize)]
struct DueDay {
    day: String,
    due: Vec<DueEntry>,
}

#[derive(Serialize)]
struct DueEntry {
    time: String,
    name: String,
    path: String,
}

#[derive(Serialize)]
struct OptOutsView {
    all: u64,
    days: Vec<OptOutDay>,
}

#[derive(Serialize)]
struct OptOutDay {
    day: String,
    people: u64,
}

/// Replies that look like an opt-out and were not recorded as such.
#[derive(Serialize)]
struct RepliesView {
    all: usize,
    newest: Vec<ReplyLine>,
}

#[derive(Serialize)]
struct ReplyLine {
    at: String,
    to: String,
    text: String,
    run: String,
    path: String,
}

#[derive(Serialize)]
struct OrderLine {
    at: String,
    by: String,
    order: String,
    of: String,
    /// `None` in orders of earlier versions.
    outcome: Option<&'static str>,
}

pub(super) async fn show_home_page(request: PageRequest) -> Response {
    let view = build_view(&request).await;
    request.respond("pages/home.html", view)
}

async fn build_view(request: &PageRequest) -> Result<HomePageView, PageError> {
    let from = request.query.get("from").and_then(|from| from.parse().ok()).unwrap_or(0_usize);
    let read = request.pages.run_list.read_latest().await?;
    let reading = read.is_none();
    let list = read.unwrap_or_default();
    let views = &list.views;
    let damaged = |run: &DamagedRun| DamagedLine { name: run.name.clone(), problem: run.error.describe_damage() };
    let (schedules, now) = (load_schedule_views(&request.pages.adapters).await?, request.pages.now());
    let days = coming_days(request, &schedules, now);
    let (counted, opt_outs_problem) = match request.pages.opt_outs.read_days(&request.pages.adapters.ledger, now).await
    {
        Ok(counted) => (counted, None),
        Err(error) if error.concerns_records() => (None, Some(error.describe_damage())),
        Err(error) => return Err(error.into()),
    };
    let to_review = request.pages.opt_outs.read_replies(&request.pages.adapters.ledger, now).await?;
    let mut runs = Vec::new();
    for view in views.iter().skip(from).take(RUNS_PER_PAGE) {
        let zone = request.pages.zones.zone_of_run(request.ledger(), &view.run).await;
        runs.push(run_line(request, view, &zone));
    }
    let orders = request.pages.orders.clone();
    let orders = run_blocking(move || orders.read_latest(SHOWN_ORDERS)).await??;
    Ok(HomePageView {
        done: done_message(request),
        runs,
        damaged: list.damaged.iter().filter(|_| from == 0).map(damaged).collect(),
        more: (views.len() > from + RUNS_PER_PAGE).then_some(from + RUNS_PER_PAGE),
        reading,
        schedules: schedules.iter().map(|schedule| schedule_line(request, schedule)).collect(),
        calendar: build_calendar(&days, now),
        days: days.into_values().collect(),
        opt_outs: counted.map(|counted| opt_outs_view(request, &counted)),
        opt_outs_problem,
        replies: to_review.map(|to_review| replies_view(request, &to_review)),
        orders: orders
            .into_iter()
            .map(|order| OrderLine {
                at: request.format_moment(order.at),
                by: order.by,
                order: order.order,
                of: order.of,
                outcome: order.outcome.map(OrderOutcome::word),
            })
            .collect(),
    })
}

fn run_line(request: &PageRequest, view: &RunView, zone: &TimeZone) -> RunLine {
    let name = view.run.name();
    let path = format!("/runs/{}", encode_path_segment(&name));
    RunLine {
        status: view.status.as_str(),
        rehearsal: !view.run.live,
        began: request.format_moment_in(zone, view.run.began_at),
        rows: view.run.recipients,
        counts: state_counts(&path, &view.counts),
        path,
        name,
    }
}

fn schedule_line(request: &PageRequest, view: &ScheduleView) -> ScheduleLine {
    let next = view.next.as_ref().filter(|_| view.state == ScheduleStatus::Active);
    let skipped = view.skipped.as_ref();
    let findings = skipped.into_iter().flat_map(|skipped| &skipped.record.findings).chain(&view.findings);
    let why = skipped.map(|skipped| skipped.record.why.clone());
    ScheduleLine {
        skipped: skipped.map(|skipped| request.words().format_moment_in_zone(&skipped.occurrence.local_time())),
        why: why.into_iter().chain(findings.map(ToString::to_string)).collect(),
        name: view.name.clone(),
        path: schedule_path(&view.name),
        state: view.state.as_str(),
        problem: view.state.problem().map(str::to_owned),
        next: next.map(|next| request.words().format_moment_in_zone(&next.local_time())),
    }
}

fn schedule_path(schedule: &str) -> String {
    format!("/schedules/{}", encode_path_segment(schedule))
}

/// The calendar of the next days; `None` without occurrences.
fn build_calendar(days: &BTreeMap<Date, DueDay>, now: Timestamp) -> Option<CalendarView> {
    let named = |due: &DueEntry| format!("{} {}", due.time, due.name);
    let due: BTreeMap<Date, Vec<String>> =
        days.iter().map(|(date, day)| (*date, day.due.iter().map(named).collect())).collect();
    // In a time zone behind that of this machine, it may still be yesterday.
    let (today, earliest) = (local_date(now), *due.keys().next()?);
    Some(if earliest < today {
        charts::build_calendar(earliest, CALENDAR_DAYS + 1, &due)
    } else {
        charts::build_calendar(today, CALENDAR_DAYS, &due)
    })
}

/// The occurrences of the next days, by date in the time zone of their schedule.
fn coming_days(request: &PageRequest, schedules: &[ScheduleView], now: Timestamp) -> BTreeMap<Date, DueDay> {
    let end = local_date(now).saturating_add(i64::from(CALENDAR_DAYS).days());
    let mut due: Vec<(DateTime, &str)> = Vec::new();
    for view in schedules.iter().filter(|view| view.state == ScheduleStatus::Active) {
        let Some(schedule) = &view.schedule else { continue };
        let coming =
            schedule.occurrences_after(now.max(view.since)).map(|occurrence| occurrence.local_time().datetime());
        let coming = coming.take_while(|local| local.date() < end).take(MAX_OCCURRENCES);
        due.extend(coming.map(|local| (local, view.name.as_str())));
    }
    due.sort_unstable();
    let mut days: BTreeMap<Date, DueDay> = BTreeMap::new();
    for (local, name) in due {
        let date = local.date();
        let day = days.entry(date).or_insert_with(|| DueDay { day: request.words().format_day(date), due: Vec::new() });
        day.due.push(DueEntry {
            time: request.words().format_time(local.time()),
            name: name.to_owned(),
            path: schedule_path(name),
        });
    }
    days
}

fn local_date(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::system()).date()
}

fn opt_outs_view(request: &PageRequest, counted: &OptOutDays) -> OptOutsView {
    let day = |(date, people): (&Date, &u64)| OptOutDay { day: request.words().format_day(*date), people: *people };
    OptOutsView { all: counted.all, days: counted.days.iter().rev().map(day).collect() }
}

fn replies_view(request: &PageRequest, to_review: &RepliesToReview) -> RepliesView {
    let line = |ReplyToReview { run, zone, reply }: &ReplyToReview| ReplyLine {
        at: request.format_moment_in(zone, reply.at),
        to: request.format_number(reply.phone),
        text: request.mask_text(&reply.text, Some(reply.phone)),
        path: format!("/runs/{}/rows/{}", encode_path_segment(run), reply.row),
        run: run.clone(),
    };
    RepliesView { all: to_review.all, newest: to_review.newest.iter().map(line).collect() }
}

/// The number of days whose opt-outs are shown.
pub(super) const SHOWN_DAYS: i64 = 30;
/// The number of records per read.
const BATCH_SIZE: u32 = 10_000;
/// The largest age and the largest number of runs whose replies are read.
const MAX_RUN_AGE: SignedDuration = SignedDuration::from_hours(30 * 24);
const MAX_RUNS: usize = 50;
/// The number of replies that are shown.
const SHOWN_REPLIES: usize = 20;

/// The policy for opt-outs and replies: reading them takes at most 1/50 of the time.
const OPT_OUT_POLICY: CachePolicy =
    CachePolicy { min_ttl: Duration::from_secs(10), ttl_factor: 50, timeout: Duration::from_secs(4), max_entries: 1 };

/// Cached opt-outs and replies.
pub(super) struct OptOutCache {
    days: SingleFlightCache<OptOutDays>,
    replies: SingleFlightCache<RepliesToReview>,
}

impl Default for OptOutCache {
    fn default() -> Self {
        Self { days: SingleFlightCache::new(OPT_OUT_POLICY), replies: SingleFlightCache::new(OPT_OUT_POLICY) }
    }
}

/// The suppression list in figures.
#[derive(Clone, Debug, Default)]
pub(super) struct OptOutDays {
    /// The number of opt-outs on each of the last days, in their order; only days with an opt-out.
    pub(super) days: BTreeMap<Date, u64>,
    /// The number of recipients on the list.
    pub(super) all: u64,
}

/// Replies that look like an opt-out and were not recorded as such.
#[derive(Clone, Debug, Default)]
pub(super) struct RepliesToReview {
    /// The newest replies.
    pub(super) newest: Vec<ReplyToReview>,
    /// The number of replies.
    pub(super) all: usize,
}

/// A reply with the name and the time zone of its run.
#[derive(Clone, Debug)]
pub(super) struct ReplyToReview {
    pub(super) run: String,
    pub(super) zone: TimeZone,
    pub(super) reply: UnclearReply,
}

impl OptOutCache {
    /// The opt-outs by day; `None` while counting takes long.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn read_days(
        &self,
        ledger: &Arc<dyn Ledger>,
        now: Timestamp,
    ) -> Result<Option<Arc<OptOutDays>>, LedgerError> {
        let ledger = Arc::clone(ledger);
        self.days.get_or_load((), (), async move { count_opt_outs(ledger.as_ref(), now).await }).await
    }

    /// The replies to review; `None` while reading them takes long.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn read_replies(
        &self,
        ledger: &Arc<dyn Ledger>,
        now: Timestamp,
    ) -> Result<Option<Arc<RepliesToReview>>, LedgerError> {
        let ledger = Arc::clone(ledger);
        self.replies.get_or_load((), (), async move { read_replies_to_review(ledger.as_ref(), now).await }).await
    }

    /// Removes the cached values after a page recorded an opt-out.
    pub(super) async fn invalidate(&self) {
        self.days.clear().await;
        self.replies.clear().await;
    }
}

async fn count_opt_outs(ledger: &dyn Ledger, now: Timestamp) -> Result<OptOutDays, LedgerError> {
    let zone = TimeZone::system();
    let today = now.to_zoned(zone.clone()).date();
    let since = today.checked_sub((SHOWN_DAYS - 1).days()).unwrap_or(today);
    let (mut counted, mut next) = (OptOutDays::default(), None);
    loop {
        let part = ledger.list_opt_outs(next, BATCH_SIZE).await?;
        for opt_out in &part.entries {
            let day = opt_out.at.to_zoned(zone.clone()).date();
            counted.all += 1;
            if day >= since {
                *counted.days.entry(day).or_default() += 1;
            }
        }
        match part.next {
            Some(following) => next = Some(following),
            None => return Ok(counted),
        }
    }
}

async fn read_replies_to_review(ledger: &dyn Ledger, now: Timestamp) -> Result<RepliesToReview, LedgerError> {
    // A damaged run is shown among the runs; the replies to others are shown nevertheless.
    let stored = ledger.list_stored_runs(RunFilter { live: true, ..RunFilter::all() }).await?;
    let mut runs: Vec<Run> = stored.into_iter().filter_map(Result::ok).collect();
    runs.retain(|run| run.receipts > 0 && run.purged_at.is_none() && now.duration_since(run.began_at) < MAX_RUN_AGE);
    runs.sort_unstable_by_key(|run| std::cmp::Reverse(run.began_at));
    let mut replies = Vec::new();
    for run in runs.iter().take(MAX_RUNS) {
        let name = run.name();
        let unclear = match find_unclear_replies(ledger, run).await {
            Err(error) if error.concerns_records() => continue,
            unclear => unclear?,
        };
        if unclear.is_empty() {
            continue;
        }
        let zone = load_display_zone(ledger, run).await;
        let of_run = |reply| ReplyToReview { run: name.clone(), zone: zone.clone(), reply };
        replies.extend(unclear.into_iter().map(of_run));
    }
    replies.sort_by_key(|review| std::cmp::Reverse(review.reply.at));
    let all = replies.len();
    replies.truncate(SHOWN_REPLIES);
    Ok(RepliesToReview { newest: replies, all })
}
