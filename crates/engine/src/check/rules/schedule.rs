//! Rules about schedules, and helpers for findings about dates.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::check::timing::TimedCampaign;
use campaign_core::calendar::{
    DailyLimits, Occurrence, OccurrenceOutlook, Outlook, RunDeadline, Schedule, ScheduledRun,
};
use campaign_core::define_rules;
use campaign_core::domain::format_count;
use campaign_core::finding::{Finding, SourceLocation};

define_rules! {
    TIMING:
    pub error NEVER_SENDS = "never-sends" {
        cause: "No messages can ever be sent. The window never opens before the run ends.",
        example: [
            "timezone: Europe/Kyiv",
            "schedule: { every: \"day 21:00\" }",
            "delivery: { window: 09:00-20:00, until: 2h }",
        ],
        fix: "change `schedule`, `delivery.until` or `delivery.window` so that the window opens before the run ends",
    }
    warning SCHEDULE_OVER = "schedule-over" {
        cause: "The schedule has no future dates. This is fine for a campaign that has already been sent, but a \
                mistake in a new one.",
        example: ["timezone: Europe/Kyiv", "schedule: { at: 2024-12-05 10:00 }"],
        fix: "set a future date, and check it with `campaign schedule next`; `run --now` sends immediately, so first \
              use `campaign status` to check that the campaign has not been sent",
    }
    warning SKIPPED_OCCURRENCES = "skipped-occurrences" {
        cause: "Nothing can be sent on some scheduled dates. The cause is `until`, the window or an unfinished run.",
        example: [
            "timezone: Europe/Kyiv",
            "schedule: { every: \"day 10:00\" }",
            "delivery: { until: 2031-12-07 20:00 }",
        ],
        fix: "remove these dates from `schedule`, for example with `ends`, or change `until`, `window` or `rate`",
    }
}

/// The maximum number of dates that a finding names.
const MAX_NAMED: usize = 3;

/// A date of a schedule with its day of the week: `Mon 2026-12-07 10:00`.
pub(super) fn format_date(occurrence: &Occurrence) -> String {
    occurrence.nominal.strftime("%a %Y-%m-%d %H:%M").to_string()
}

/// Formats the dates of a schedule: the first few, then the number of further dates.
pub(super) fn format_dates(dates: &[&Occurrence]) -> String {
    let mut listed: Vec<String> = dates.iter().take(MAX_NAMED).map(|date| format_date(date)).collect();
    match dates.len() - listed.len() {
        0 => {}
        1 => listed.push("one more date".to_owned()),
        more => listed.push(format!("{more} more dates")),
    }
    let last = listed.pop().unwrap_or_default();
    if listed.is_empty() { last } else { format!("{} and {last}", listed.join(", ")) }
}

/// The scheduled runs that send messages, each with its date and outlook.
pub(super) fn sending_runs(runs: &[ScheduledRun]) -> impl Iterator<Item = (&Occurrence, Outlook)> {
    runs.iter().filter_map(|run| match run.outlook {
        OccurrenceOutlook::Sends(outlook) => Some((&run.occurrence, outlook)),
        OccurrenceOutlook::SendsNothing(_) | OccurrenceOutlook::Busy(_) => None,
    })
}

/// The reason why a run cannot send any messages.
pub(super) fn describe_obstacle(timed: &TimedCampaign<'_>, outlook: &Outlook) -> String {
    match (outlook.opens, outlook.ends) {
        (None, _) => "the window does not open within a year".to_owned(),
        (Some(_), Some(ends)) if ends <= outlook.begins => {
            format!("`until` is {}, which is before the run starts", timed.format_date(ends))
        }
        (Some(opens), Some(ends)) => {
            let (ends, opens) = (timed.format_date(ends), timed.format_date(opens));
            let hours = timed.windows.join(" and ");
            format!("`until` ends the run at {ends}, but the window opens only at {opens} (the window is {hours})")
        }
        (Some(_), None) => String::new(),
    }
}

/// The times of the schedule as written in the campaign file: `every: Mon 10:00`.
pub(super) fn format_written_times(timed: &TimedCampaign<'_>) -> Option<String> {
    ["at", "every", "cron"].into_iter().find_map(|key| {
        let place = timed.campaign.places.locate_key(&format!("schedule.{key}"))?;
        let times = place.source.text().get(place.span)?.trim_matches(['"', '\'']);
        (!times.contains('\n')).then(|| format!("`{key}: {times}`"))
    })
}

/// The location of the first of `keys` that is in the campaign file.
pub(super) fn find_key_place(timed: &TimedCampaign<'_>, keys: &[&str]) -> Option<SourceLocation> {
    keys.iter().find_map(|key| timed.campaign.places.locate_key(key))
}

/// The location of the schedule's times in the campaign file.
pub(super) fn find_times_place(timed: &TimedCampaign<'_>) -> Option<SourceLocation> {
    find_key_place(timed, &["schedule.at", "schedule.every", "schedule.cron", "schedule"])
}

/// The keys that decide when a run sends, most specific first.
const TIMING_KEYS: &[&str] = &["delivery.until", "delivery.window", "schedule"];
const NEVER_SENDS_HELP: &str =
    "change `schedule`, `delivery.until` or `delivery.window` so that the window is open during the run";

/// An error for a schedule that sends nothing on any of its dates.
pub(in crate::check) fn check_schedule(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    // `None` if any date has messages.
    let dates_without_messages: Option<Vec<(&Occurrence, &Outlook)>> = runs
        .iter()
        .map(|run| match &run.outlook {
            OccurrenceOutlook::SendsNothing(outlook) => Some((&run.occurrence, outlook)),
            OccurrenceOutlook::Sends(_) | OccurrenceOutlook::Busy(_) => None,
        })
        .collect();
    let dates = dates_without_messages?;
    let (date, outlook) = dates.first()?;
    Some(date_finding(timed, date, outlook))
}

/// An error for a schedule's only date, which has already passed, if its run could not have sent any messages.
pub(in crate::check) fn check_past_run(timed: &TimedCampaign<'_>, date: &Occurrence) -> Option<Finding> {
    let outlook = timed.limits.calculate_outlook(date.at);
    (!outlook.can_send()).then(|| date_finding(timed, date, &outlook))
}

/// An error for a run that can send no messages, unless a later start could help.
pub(in crate::check) fn check_run(timed: &TimedCampaign<'_>, outlook: &Outlook) -> Option<Finding> {
    let is_fixed = outlook.opens.is_none() || matches!(timed.limits.end, Some(RunDeadline::At(_)));
    check_immediate_run(timed, outlook).filter(|_| is_fixed)
}

/// An error for a run that begins now and can send no messages.
pub(in crate::check) fn check_immediate_run(timed: &TimedCampaign<'_>, outlook: &Outlook) -> Option<Finding> {
    let message = || format!("no messages can be sent: {}", describe_obstacle(timed, outlook));
    (!outlook.can_send()).then(|| never_sends_finding(timed, message()))
}

fn date_finding(timed: &TimedCampaign<'_>, date: &Occurrence, outlook: &Outlook) -> Finding {
    let times = format_written_times(timed).map_or_else(String::new, |times| format!(" {times}"));
    let message = format!(
        "no messages can ever be sent with the schedule{times}: on {}, {}",
        format_date(date),
        describe_obstacle(timed, outlook)
    );
    never_sends_finding(timed, message)
}

fn never_sends_finding(timed: &TimedCampaign<'_>, message: String) -> Finding {
    Finding::new(&NEVER_SENDS, message).help(NEVER_SENDS_HELP).at(find_key_place(timed, TIMING_KEYS))
}

const SCHEDULE_OVER_HELP: &str = "set a future date, and check it with `campaign schedule next`; to send immediately, use `run --now`, but first check with `campaign status` that the campaign has not been sent";

/// A warning about a schedule without future dates.
pub(in crate::check) fn schedule_over_finding(timed: &TimedCampaign<'_>) -> Finding {
    let schedule = timed.campaign.schedule.as_ref();
    let single_time = schedule.and_then(|schedule| schedule.timing.single_time());
    let ends = schedule.and_then(|schedule| schedule.ends);
    let (message, place) = match (single_time, ends) {
        (Some(single_time), Some(ends)) if single_time.date() > ends => {
            (format!("`ends` is before `at`: {ends}"), find_key_place(timed, &["schedule.ends"]))
        }
        (Some(single_time), _) => {
            let message = format!("`at` has passed: {}", single_time.strftime("%a %Y-%m-%d %H:%M"));
            (message, find_times_place(timed))
        }
        (None, ends) => {
            let ends = ends.map(|ends| format!(": `ends` is {ends}")).unwrap_or_default();
            (format!("the schedule has no future dates{ends}"), find_key_place(timed, &["schedule.ends"]))
        }
    };
    Finding::new(&SCHEDULE_OVER, message).help(SCHEDULE_OVER_HELP).at(place)
}

/// Warnings about dates on which nothing is sent, one for each reason.
pub(in crate::check) fn check_skipped_occurrences(
    timed: &TimedCampaign<'_>,
    schedule: &Schedule,
    now: Timestamp,
    runs: &[ScheduledRun],
) -> Vec<Finding> {
    let findings = [
        check_occurrences_past_until(timed, schedule, now),
        check_closed_runs(timed, runs),
        check_overlapping_runs(timed, runs),
    ];
    findings.into_iter().flatten().collect()
}

/// A warning about dates after a fixed `until`, on which no messages are sent.
fn check_occurrences_past_until(timed: &TimedCampaign<'_>, schedule: &Schedule, now: Timestamp) -> Option<Finding> {
    let Some(RunDeadline::At(until)) = timed.limits.end else { return None };
    let just_before = until.checked_sub(SignedDuration::from_micros(1)).unwrap_or(until);
    let first = schedule.occurrences_after(just_before.max(now)).next()?;
    let message =
        format!("no messages are sent from {} onward: `until` is {}", format_date(&first), timed.format_date(until));
    let date = first.nominal.date();
    let last = date.yesterday().unwrap_or(date);
    let help = format!(
        "write `ends: {last}` under `schedule`, or set `until` to a duration, counted from the start of each run, for example \
            `until: 12h`"
    );
    Some(Finding::new(&SKIPPED_OCCURRENCES, message).help(help).at(find_key_place(timed, &["delivery.until"])))
}

/// A warning about dates whose run ends before the window opens.
fn check_closed_runs(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let closed = runs.iter().filter_map(|run| match run.outlook {
        OccurrenceOutlook::SendsNothing(outlook) if outlook.ends.is_none_or(|ends| ends > outlook.begins) => {
            Some((&run.occurrence, outlook))
        }
        _ => None,
    });
    let closed: Vec<(&Occurrence, Outlook)> = closed.collect();
    let (first, outlook) = closed.first()?;
    let dates: Vec<_> = closed.iter().map(|(date, _)| *date).collect();
    let message = match dates.as_slice() {
        [_] => format!("no messages are sent on {}: {}", format_date(first), describe_obstacle(timed, outlook)),
        _ => format!(
            "no messages are sent on {}; on the first date, {}",
            format_dates(&dates),
            describe_obstacle(timed, outlook)
        ),
    };
    let help = "remove these dates from `schedule`, or change `until` or the window";
    Some(Finding::new(&SKIPPED_OCCURRENCES, message).help(help).at(find_times_place(timed)))
}

/// A warning about dates on which the previous run is still sending.
fn check_overlapping_runs(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let busy: Vec<_> = runs.iter().filter(|run| matches!(run.outlook, OccurrenceOutlook::Busy(_))).collect();
    let first = busy.first()?;
    let OccurrenceOutlook::Busy(finishes) = first.outlook else { return None };
    let dates: Vec<_> = busy.iter().map(|run| &run.occurrence).collect();
    let (previous, _) = sending_runs(runs).take_while(|(date, _)| date.at < first.occurrence.at).last()?;
    let run_length = match finishes {
        Some(finishes) => format!("until about {}", timed.format_date(finishes)),
        None => "for more than a year".to_owned(),
    };
    let verb = if dates.len() == 1 { "is" } else { "are" };
    let skipped = format!(
        "{} {verb} skipped: the run that starts on {} keeps sending {run_length}",
        format_dates(&dates),
        format_date(previous)
    );
    let due = format_span(first.occurrence.at.duration_since(previous.at));
    let times = format_written_times(timed).unwrap_or_else(|| "`schedule`".to_owned());
    let message = match finishes.map(|finishes| format_run_length(timed, previous.at, finishes)) {
        Some(length) => format!("{skipped}; {length}, but {times} starts the next run after {due}"),
        None => format!("{skipped}, but {times} starts the next run after {due}"),
    };
    let help = "schedule fewer dates, raise `rate` or `per_day`, or widen the window; messages are then sent faster \
                or at other times";
    Some(Finding::new(&SKIPPED_OCCURRENCES, message).help(help).at(find_times_place(timed)))
}

/// Describes the duration of a run.
fn format_run_length(timed: &TimedCampaign<'_>, begins: Timestamp, finishes: Timestamp) -> String {
    let count_days =
        |per_day: &DailyLimits, messages| per_day.count_days(messages, per_day.count_usage(&timed.limits.sent, begins));
    let takes_several_days =
        |per_day: &&DailyLimits| timed.messages.is_some_and(|messages| count_days(per_day, messages) > 1);
    let Some(per_day) = timed.limits.per_day.filter(takes_several_days) else {
        return format!("a run takes about {}", format_span(finishes.duration_since(begins)));
    };
    let elapsed = per_day.local_date(finishes).duration_since(per_day.local_date(begins));
    format!("a run takes {} because of `per_day`", format_count(elapsed.as_hours().unsigned_abs() / 24 + 1, "day"))
}

/// A duration in its largest units: `1 day`, `2 days 14 h`, `1 h 30 min`.
fn format_span(time: SignedDuration) -> String {
    let minutes = time.as_mins().unsigned_abs();
    let (days, hours, minutes) = (minutes / 1_440, minutes / 60 % 24, minutes % 60);
    let units = [
        (days, format_count(days, "day")),
        (hours, format!("{hours} h")),
        (if days > 0 { 0 } else { minutes }, format!("{minutes} min")),
    ];
    let units: Vec<String> = units.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words).collect();
    if units.is_empty() { "less than a minute".to_owned() } else { units.join(" ") }
}

/// A warning about a `wait_for_file` so long that nothing can be sent if the list arrives at the end of the wait.
pub(in crate::check) fn check_late_list(
    timed: &TimedCampaign<'_>,
    schedule: &Schedule,
    runs: &[ScheduledRun],
) -> Option<Finding> {
    let wait: Duration = schedule.wait_for_file?;
    let (date, _) = sending_runs(runs).next()?;
    let latest = date.at.checked_add(wait).ok()?;
    let outlook = timed.limits.calculate_outlook(latest);
    if outlook.can_send() {
        return None;
    }
    let message = format!(
        "if the list for {} arrives as late as {}, no messages are sent: {}",
        format_date(date),
        timed.format_date(latest),
        describe_obstacle(timed, &outlook)
    );
    let help = "set a shorter `wait_for_file` or a later `until`";
    Some(Finding::new(&SKIPPED_OCCURRENCES, message).help(help).at(find_key_place(timed, &["schedule.wait_for_file"])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_in_their_largest_units() {
        for (minutes, words) in [
            (0, "less than a minute"),
            (90, "1 h 30 min"),
            (1_440, "1 day"),
            (1_441, "1 day"),
            (3_720, "2 days 14 h"),
            (60, "1 h"),
        ] {
            assert_eq!(format_span(SignedDuration::from_mins(minutes)), words);
        }
    }
}
