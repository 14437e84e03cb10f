//! The front page: runs, what is armed, who opted out, who ordered what.

use std::collections::BTreeMap;

use axum::response::Response;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::Serialize;

use super::fields::encode_path_segment;
use super::look::PageRequest;
use super::opt_outs::{OptOutDays, RepliesToReview, ReplyToReview};
use super::orders::OrderOutcome;
use super::refusal::PageError;
use super::run::{StateCountView, done_message, state_counts};
use crate::ledger::DamagedRun;
use crate::report::RunView;
use crate::runs::{ScheduleStatus, ScheduleView, load_schedule_views, run_blocking};
use crate::web::charts::{self, CalendarView};

/// How many runs are shown; the others by `?from=`.
const RUNS_PER_PAGE: usize = 30;
/// On how many days, today's among them, what is armed is told.
const CALENDAR_DAYS: u16 = 30;
/// The most occurrences that are told of one schedule.
const MAX_OCCURRENCES: usize = 62;
/// How many orders are told.
const SHOWN_ORDERS: usize = 10;

#[derive(Serialize)]
struct FrontPageView {
    /// What was just done.
    done: Option<String>,
    runs: Vec<RunLine>,
    /// The runs whose records are damaged.
    damaged: Vec<DamagedLine>,
    /// Where the next runs are; nothing at the end.
    more: Option<usize>,
    /// Whether runs are being read and take long.
    reading: bool,
    schedules: Vec<ScheduleLine>,
    /// What is due, on a calendar and day by day; nothing where nothing is.
    calendar: Option<CalendarView>,
    days: Vec<DueDay>,
    opt_outs: Option<OptOutsView>,
    /// What of the suppression list is damaged.
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
    /// What is damaged, in English.
    problem: Option<String>,
    /// When the last occurrence was skipped, if it was.
    skipped: Option<String>,
    /// Why it was skipped, or the findings about the file, in English.
    why: Vec<String>,
    next: Option<String>,
}

/// A day on which something is due.
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

/// Replies that look like an opt-out and were not taken as one.
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
    /// Nothing in orders of earlier versions.
    outcome: Option<&'static str>,
}

pub(super) async fn show_front_page(look: PageRequest) -> Response {
    let view = build_view(&look).await;
    look.respond("pages/front.html", view)
}

async fn build_view(look: &PageRequest) -> Result<FrontPageView, PageError> {
    let from = look.query.get("from").and_then(|from| from.parse().ok()).unwrap_or(0_usize);
    let read = look.pages.views.read_latest().await?;
    let reading = read.is_none();
    let list = read.unwrap_or_default();
    let views = &list.views;
    let damaged = |run: &DamagedRun| DamagedLine { name: run.name.clone(), problem: run.error.describe_damage() };
    let (armed, now) = (load_schedule_views(&look.pages.adapters).await?, look.pages.now());
    let days = coming_days(look, &armed, now);
    let (counted, opt_outs_problem) = match look.pages.opt_outs.read_days(&look.pages.adapters.ledger, now).await {
        Ok(counted) => (counted, None),
        Err(error) if error.concerns_records() => (None, Some(error.describe_damage())),
        Err(error) => return Err(error.into()),
    };
    let to_review = look.pages.opt_outs.read_replies(&look.pages.adapters.ledger, now).await?;
    let mut runs = Vec::new();
    for view in views.iter().skip(from).take(RUNS_PER_PAGE) {
        let zone = look.pages.zones.zone_of_run(look.ledger(), &view.run).await;
        runs.push(run_line(look, view, &zone));
    }
    let orders = look.pages.orders.clone();
    let orders = run_blocking(move || orders.read_latest(SHOWN_ORDERS)).await??;
    Ok(FrontPageView {
        done: done_message(look),
        runs,
        damaged: list.damaged.iter().filter(|_| from == 0).map(damaged).collect(),
        more: (views.len() > from + RUNS_PER_PAGE).then_some(from + RUNS_PER_PAGE),
        reading,
        schedules: armed.iter().map(|armed| schedule_line(look, armed)).collect(),
        calendar: build_calendar(&days, now),
        days: days.into_values().collect(),
        opt_outs: counted.map(|counted| opt_outs_view(look, &counted)),
        opt_outs_problem,
        replies: to_review.map(|to_review| replies_view(look, &to_review)),
        orders: orders
            .into_iter()
            .map(|order| OrderLine {
                at: look.format_moment(order.at),
                by: order.by,
                order: order.order,
                of: order.of,
                outcome: order.outcome.map(OrderOutcome::word),
            })
            .collect(),
    })
}

fn run_line(look: &PageRequest, view: &RunView, zone: &TimeZone) -> RunLine {
    let name = view.run.name();
    let path = format!("/runs/{}", encode_path_segment(&name));
    RunLine {
        status: view.status.as_str(),
        rehearsal: !view.run.live,
        began: look.format_moment_in(zone, view.run.began_at),
        rows: view.run.recipients,
        counts: state_counts(&path, &view.counts),
        path,
        name,
    }
}

fn schedule_line(look: &PageRequest, view: &ScheduleView) -> ScheduleLine {
    let next = view.next.as_ref().filter(|_| view.state == ScheduleStatus::Active);
    let skipped = view.skipped.as_ref();
    let findings = skipped.into_iter().flat_map(|skipped| &skipped.record.findings).chain(&view.findings);
    let why = skipped.map(|skipped| skipped.record.why.clone());
    ScheduleLine {
        skipped: skipped.map(|skipped| look.words().format_moment_in_zone(&skipped.occurrence.local_time())),
        why: why.into_iter().chain(findings.map(ToString::to_string)).collect(),
        name: view.name.clone(),
        path: schedule_path(&view.name),
        state: view.state.as_str(),
        problem: view.state.problem().map(str::to_owned),
        next: next.map(|next| look.words().format_moment_in_zone(&next.local_time())),
    }
}

fn schedule_path(schedule: &str) -> String {
    format!("/schedules/{}", encode_path_segment(schedule))
}

/// The next days, each with what is due; nothing where nothing is.
fn build_calendar(days: &BTreeMap<Date, DueDay>, now: Timestamp) -> Option<CalendarView> {
    let named = |due: &DueEntry| format!("{} {}", due.time, due.name);
    let due: BTreeMap<Date, Vec<String>> =
        days.iter().map(|(date, day)| (*date, day.due.iter().map(named).collect())).collect();
    // By a clock that is behind this machine's it may still be yesterday.
    let (today, earliest) = (local_date(now), *due.keys().next()?);
    Some(if earliest < today {
        charts::build_calendar(earliest, CALENDAR_DAYS + 1, &due)
    } else {
        charts::build_calendar(today, CALENDAR_DAYS, &due)
    })
}

/// What is due in the next days, each at its day and time on the clock of its schedule.
fn coming_days(look: &PageRequest, armed: &[ScheduleView], now: Timestamp) -> BTreeMap<Date, DueDay> {
    let behind = local_date(now).saturating_add(i64::from(CALENDAR_DAYS).days());
    let mut due: Vec<(DateTime, &str)> = Vec::new();
    for view in armed.iter().filter(|view| view.state == ScheduleStatus::Active) {
        let Some(schedule) = &view.schedule else { continue };
        let coming =
            schedule.occurrences_after(now.max(view.since)).map(|occurrence| occurrence.local_time().datetime());
        let coming = coming.take_while(|local| local.date() < behind).take(MAX_OCCURRENCES);
        due.extend(coming.map(|local| (local, view.name.as_str())));
    }
    due.sort_unstable();
    let mut days: BTreeMap<Date, DueDay> = BTreeMap::new();
    for (local, name) in due {
        let date = local.date();
        let day = days.entry(date).or_insert_with(|| DueDay { day: look.words().format_day(date), due: Vec::new() });
        day.due.push(DueEntry {
            time: look.words().format_time(local.time()),
            name: name.to_owned(),
            path: schedule_path(name),
        });
    }
    days
}

fn local_date(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::system()).date()
}

fn opt_outs_view(look: &PageRequest, counted: &OptOutDays) -> OptOutsView {
    let day = |(date, people): (&Date, &u64)| OptOutDay { day: look.words().format_day(*date), people: *people };
    OptOutsView { all: counted.all, days: counted.days.iter().rev().map(day).collect() }
}

fn replies_view(look: &PageRequest, to_review: &RepliesToReview) -> RepliesView {
    let line = |ReplyToReview { run, zone, reply }: &ReplyToReview| ReplyLine {
        at: look.format_moment_in(zone, reply.at),
        to: look.format_number(reply.phone),
        text: look.mask_text(&reply.text, Some(reply.phone)),
        path: format!("/runs/{}/rows/{}", encode_path_segment(run), reply.row),
        run: run.clone(),
    };
    RepliesView { all: to_review.all, newest: to_review.newest.iter().map(line).collect() }
}
