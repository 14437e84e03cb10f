//! The schedules page of the dashboard: the state and next occurrence of each schedule, and a calendar.

use std::collections::BTreeMap;

use axum::response::Response;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};
use serde::Serialize;

use super::page_error::PageError;
use super::request::{PageRequest, encode_path_segment};
use super::run::done_message;
use crate::web::charts::{self, CalendarView};
use campaign_runs::{PendingOccurrence, PendingState, ScheduleStatus, ScheduleView, load_schedule_views};

/// The number of days in the calendar, including today.
const CALENDAR_DAYS: u16 = 30;
/// The maximum number of occurrences of one schedule in the calendar: one each hour.
const MAX_OCCURRENCES: usize = 24 * CALENDAR_DAYS as usize;

#[derive(Serialize)]
struct SchedulesPageView {
    /// The confirmation of the last action.
    done: Option<String>,
    schedules: Vec<ScheduleLine>,
    /// The calendar of the occurrences; `None` if there are no occurrences.
    calendar: Option<CalendarView>,
    /// The occurrences by day.
    days: Vec<DueDay>,
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
    /// The reason the occurrence was skipped, if the page has words for it.
    skip_reason: Option<String>,
    /// Any other reason the occurrence was skipped, and the findings about the campaign file, in English.
    why: Vec<String>,
    /// The occurrence that was due but has no record, with the reason.
    pending: Option<String>,
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

pub(super) async fn show_schedules(mut request: PageRequest) -> Response {
    let view = async {
        let schedules = load_schedule_views(&request.pages.adapters).await?;
        request.use_common_zone(&schedule_zones(&schedules));
        let now = request.pages.now();
        let days = coming_days(&request, &schedules, now);
        Ok(SchedulesPageView {
            done: done_message(&request),
            schedules: schedules.iter().map(|schedule| schedule_line(&request, schedule)).collect(),
            calendar: build_calendar(&days, now),
            days: days.into_values().collect(),
        })
    };
    let view: Result<_, PageError> = view.await;
    request.respond("pages/schedules.html", view)
}

/// Collects the time zones of the schedules whose next occurrence is known.
pub(super) fn schedule_zones(schedules: &[ScheduleView]) -> Vec<TimeZone> {
    let next = schedules.iter().filter_map(|view| view.next.as_ref());
    next.map(|next| next.local_time().time_zone().clone()).collect()
}

/// The time and schedule of an upcoming occurrence.
#[derive(Serialize)]
pub(super) struct NextOccurrence {
    when: String,
    name: String,
    path: String,
}

/// Lists up to `max` next occurrences of all active schedules in chronological order.
pub(super) fn next_occurrences(request: &PageRequest, schedules: &[ScheduleView], max: usize) -> Vec<NextOccurrence> {
    let now = request.pages.now();
    let mut due = Vec::new();
    for view in schedules.iter().filter(|view| view.state == ScheduleStatus::Active) {
        let Some(schedule) = &view.schedule else { continue };
        let coming = schedule.occurrences_after(now.max(view.since)).take(max);
        due.extend(coming.map(|occurrence| (occurrence.local_time(), &view.name)));
    }
    due.sort_by_key(|(at, name)| (at.timestamp(), (*name).clone()));
    let next = due.into_iter().take(max).map(|(at, name)| NextOccurrence {
        when: request.format_moment_in(at.time_zone(), at.timestamp()),
        name: name.clone(),
        path: schedule_path(name),
    });
    next.collect()
}

fn schedule_line(request: &PageRequest, view: &ScheduleView) -> ScheduleLine {
    let next = view.next.as_ref().filter(|_| view.state == ScheduleStatus::Active);
    let skipped = view.skipped.as_ref();
    let findings = skipped.into_iter().flat_map(|skipped| &skipped.record.findings).chain(&view.findings);
    let skip_reason = skipped.and_then(|skipped| request.words().item_name("skip-reason", &skipped.record.why));
    let untranslated = skipped.filter(|_| skip_reason.is_none()).map(|skipped| skipped.record.why.clone());
    ScheduleLine {
        skipped: skipped.map(|skipped| format_local(request, &skipped.occurrence.local_time())),
        skip_reason: skip_reason.map(str::to_owned),
        why: untranslated.into_iter().chain(findings.map(ToString::to_string)).collect(),
        pending: view.pending.as_ref().map(|pending| describe_pending(request, pending)),
        name: view.name.clone(),
        path: schedule_path(&view.name),
        state: view.state.as_str(),
        problem: view.state.problem().map(str::to_owned),
        next: next.map(|next| format_local(request, &next.local_time())),
    }
}

fn describe_pending(request: &PageRequest, pending: &PendingOccurrence) -> String {
    let (words, when) = (request.words(), format_local(request, &pending.occurrence.local_time()));
    let when = ("when", when.as_str());
    match &pending.state {
        PendingState::Due => words.say_with("pages.due", &[when]),
        PendingState::AwaitsList(list) => {
            let list = list.file_name().unwrap_or_default().to_string_lossy();
            words.say_with("pages.due-without-list", &[when, ("list", &list)])
        }
        PendingState::AwaitsApproval(_) => words.say_with("pages.due-unapproved", &[when]),
        PendingState::Missed => words.say_with("pages.due-missed", &[when]),
    }
}

/// Formats a local time, and names the time zone if it differs from the time zone of the page.
fn format_local(request: &PageRequest, at: &Zoned) -> String {
    request.format_moment_in(at.time_zone(), at.timestamp())
}

pub(super) fn schedule_path(schedule: &str) -> String {
    format!("/schedules/{}", encode_path_segment(schedule))
}

/// Builds the calendar of the next days, or returns `None` if there are no occurrences.
fn build_calendar(days: &BTreeMap<Date, DueDay>, now: Timestamp) -> Option<CalendarView> {
    let label = |due: &DueEntry| format!("{} {}", due.time, due.name);
    let due: BTreeMap<Date, Vec<String>> =
        days.iter().map(|(date, day)| (*date, day.due.iter().map(label).collect())).collect();
    // In a time zone behind that of this machine, it might still be yesterday.
    let (today, earliest) = (local_date(now), *due.keys().next()?);
    Some(if earliest < today {
        charts::build_calendar(earliest, CALENDAR_DAYS + 1, &due)
    } else {
        charts::build_calendar(today, CALENDAR_DAYS, &due)
    })
}

/// Collects the occurrences of the next days by date, each in the time zone of the schedule.
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
