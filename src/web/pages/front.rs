//! The front page: runs, what is armed, who opted out, who ordered what.

use std::collections::BTreeMap;

use axum::response::Response;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::Serialize;

use super::fields::encoded;
use super::look::Look;
use super::opt_outs::{OptOutDays, RepliesToReview, ReplyToReview};
use super::orders::OrderOutcome;
use super::refusal::Refusal;
use super::run::{Count, counts, done};
use crate::ledger::DamagedRun;
use crate::report::RunView;
use crate::runs::{ArmedState, ArmedView, armed_views, blocking};
use crate::web::charts::{self, CalendarView};

/// How many runs are shown; the others by `?from=`.
const RUNS: usize = 30;
/// On how many days, today's among them, what is armed is told.
const DAYS: u16 = 30;
/// The most occurrences that are told of one schedule.
const MOST: usize = 62;
/// How many orders are told.
const ORDERS: usize = 10;

#[derive(Serialize)]
struct View {
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
    days: Vec<Day>,
    opt_outs: Option<OptOuts>,
    /// What of the suppression list is damaged.
    opt_outs_problem: Option<String>,
    replies: Option<Replies>,
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
    counts: Vec<Count>,
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
struct Day {
    day: String,
    due: Vec<Due>,
}

#[derive(Serialize)]
struct Due {
    time: String,
    name: String,
    path: String,
}

#[derive(Serialize)]
struct OptOuts {
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
struct Replies {
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

pub(super) async fn page(look: Look) -> Response {
    let view = view(&look).await;
    look.answer("pages/front.html", view)
}

async fn view(look: &Look) -> Result<View, Refusal> {
    let from = look.query.get("from").and_then(|from| from.parse().ok()).unwrap_or(0_usize);
    let read = look.pages.views.latest().await?;
    let reading = read.is_none();
    let list = read.unwrap_or_default();
    let views = &list.views;
    let damaged = |run: &DamagedRun| DamagedLine { name: run.name.clone(), problem: run.error.damage() };
    let (armed, now) = (armed_views(&look.pages.adapters).await?, look.pages.now());
    let days = coming_days(look, &armed, now);
    let (counted, opt_outs_problem) = match look.pages.opt_outs.days(&look.pages.adapters.ledger, now).await {
        Ok(counted) => (counted, None),
        Err(error) if error.concerns_records() => (None, Some(error.damage())),
        Err(error) => return Err(error.into()),
    };
    let to_review = look.pages.opt_outs.replies(&look.pages.adapters.ledger, now).await?;
    let mut runs = Vec::new();
    for view in views.iter().skip(from).take(RUNS) {
        let zone = look.pages.zones.of(look.ledger(), &view.run).await;
        runs.push(run_line(look, view, &zone));
    }
    let orders = look.pages.orders.clone();
    let orders = blocking(move || orders.latest(ORDERS)).await??;
    Ok(View {
        done: done(look),
        runs,
        damaged: list.damaged.iter().filter(|_| from == 0).map(damaged).collect(),
        more: (views.len() > from + RUNS).then_some(from + RUNS),
        reading,
        schedules: armed.iter().map(|armed| schedule_line(look, armed)).collect(),
        calendar: calendar(&days, now),
        days: days.into_values().collect(),
        opt_outs: counted.map(|counted| opt_outs(look, &counted)),
        opt_outs_problem,
        replies: to_review.map(|to_review| replies(look, &to_review)),
        orders: orders
            .into_iter()
            .map(|order| OrderLine {
                at: look.moment(order.at),
                by: order.by,
                order: order.order,
                of: order.of,
                outcome: order.outcome.map(OrderOutcome::word),
            })
            .collect(),
    })
}

fn run_line(look: &Look, view: &RunView, zone: &TimeZone) -> RunLine {
    let name = view.run.name();
    let path = format!("/runs/{}", encoded(&name));
    RunLine {
        status: view.status.word(),
        rehearsal: !view.run.live,
        began: look.moment_on(zone, view.run.began_at),
        rows: view.run.recipients,
        counts: counts(&path, &view.counts),
        path,
        name,
    }
}

fn schedule_line(look: &Look, view: &ArmedView) -> ScheduleLine {
    let next = view.next.as_ref().filter(|_| view.state == ArmedState::Armed);
    let skipped = view.skipped.as_ref();
    let findings = skipped.into_iter().flat_map(|skipped| &skipped.record.findings).chain(&view.findings);
    let why = skipped.map(|skipped| skipped.record.why.clone());
    ScheduleLine {
        skipped: skipped.map(|skipped| look.words().moment_in_zone(&skipped.occurrence.local())),
        why: why.into_iter().chain(findings.map(ToString::to_string)).collect(),
        name: view.name.clone(),
        path: path(&view.name),
        state: view.state.word(),
        problem: view.state.problem().map(str::to_owned),
        next: next.map(|next| look.words().moment_in_zone(&next.local())),
    }
}

fn path(schedule: &str) -> String {
    format!("/schedules/{}", encoded(schedule))
}

/// The next days, each with what is due; nothing where nothing is.
fn calendar(days: &BTreeMap<Date, Day>, now: Timestamp) -> Option<CalendarView> {
    let named = |due: &Due| format!("{} {}", due.time, due.name);
    let due: BTreeMap<Date, Vec<String>> =
        days.iter().map(|(date, day)| (*date, day.due.iter().map(named).collect())).collect();
    // By a clock that is behind this machine's it may still be yesterday.
    let (today, earliest) = (today(now), *due.keys().next()?);
    Some(if earliest < today {
        charts::calendar(earliest, DAYS + 1, &due)
    } else {
        charts::calendar(today, DAYS, &due)
    })
}

/// What is due in the next days, each at its day and time on the clock of its schedule.
fn coming_days(look: &Look, armed: &[ArmedView], now: Timestamp) -> BTreeMap<Date, Day> {
    let behind = today(now).saturating_add(i64::from(DAYS).days());
    let mut due: Vec<(DateTime, &str)> = Vec::new();
    for view in armed.iter().filter(|view| view.state == ArmedState::Armed) {
        let Some(schedule) = &view.schedule else { continue };
        let coming = schedule.after(now.max(view.since)).map(|occurrence| occurrence.local().datetime());
        let coming = coming.take_while(|local| local.date() < behind).take(MOST);
        due.extend(coming.map(|local| (local, view.name.as_str())));
    }
    due.sort_unstable();
    let mut days: BTreeMap<Date, Day> = BTreeMap::new();
    for (local, name) in due {
        let date = local.date();
        let day = days.entry(date).or_insert_with(|| Day { day: look.words().day(date), due: Vec::new() });
        day.due.push(Due { time: look.words().time(local.time()), name: name.to_owned(), path: path(name) });
    }
    days
}

fn today(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::system()).date()
}

fn opt_outs(look: &Look, counted: &OptOutDays) -> OptOuts {
    let day = |(date, people): (&Date, &u64)| OptOutDay { day: look.words().day(*date), people: *people };
    OptOuts { all: counted.all, days: counted.days.iter().rev().map(day).collect() }
}

fn replies(look: &Look, to_review: &RepliesToReview) -> Replies {
    let line = |ReplyToReview { run, zone, reply }: &ReplyToReview| ReplyLine {
        at: look.moment_on(zone, reply.at),
        to: look.number(reply.phone),
        text: look.text(&reply.text, Some(reply.phone)),
        path: format!("/runs/{}/rows/{}", encoded(run), reply.row),
        run: run.clone(),
    };
    Replies { all: to_review.all, newest: to_review.newest.iter().map(line).collect() }
}
