//! Scheduled dates on which nothing is sent.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::dates::{
    describe_obstacle, find_key_place, find_times_place, format_date, format_dates, format_written_times, sending_runs,
};
use crate::calendar::{DailyLimits, Occurrence, OccurrenceOutlook, Outlook, RunDeadline, Schedule, ScheduledRun};
use crate::check::timing::TimedCampaign;
use crate::domain::format_count;
use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "skipped-occurrences",
    RuleText {
        cause: "No messages are sent on some scheduled dates. `until`, the window or the previous run prevents this.",
        example: &[
            "timezone: Europe/Kyiv",
            "schedule: { every: \"day 10:00\" }",
            "delivery: { until: 2031-12-07 20:00 }",
        ],
        fix: "remove these dates from `schedule`, for example with `ends`, or change `until`, `window` or `rate`",
    },
);

/// Warnings about dates on which nothing is sent, one for each reason.
pub(in crate::check) fn check_skipped_occurrences(
    timed: &TimedCampaign<'_>,
    (schedule, now): (&Schedule, Timestamp),
    runs: &[ScheduledRun],
) -> Vec<Finding> {
    let (busy, ended) = (check_overlapping_runs(timed, runs), check_after_until(timed, schedule, now));
    let closed = check_closed_runs(timed, runs);
    [ended, closed, busy].into_iter().flatten().collect()
}

/// Dates after a fixed `until`.
fn check_after_until(timed: &TimedCampaign<'_>, schedule: &Schedule, now: Timestamp) -> Option<Finding> {
    let Some(RunDeadline::At(until)) = timed.limits.end else { return None };
    let before = until.checked_sub(SignedDuration::from_micros(1)).unwrap_or(until);
    let first = schedule.occurrences_after(before.max(now)).next()?;
    let message =
        format!("no messages are sent from {} onwards: `until` is {}", format_date(&first), timed.format_date(until));
    let date = first.nominal.date();
    let last = date.yesterday().unwrap_or(date);
    let help = format!(
        "write `ends: {last}` under `schedule`, or set `until` to a duration from the start of each run, for example \
            `until: 12h`"
    );
    Some(Finding::new(&RULE, message).help(help).at(find_key_place(timed, &["delivery.until"])))
}

/// Dates whose run ends before the window opens.
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
    Some(Finding::new(&RULE, message).help(help).at(find_times_place(timed)))
}

/// Dates on which the previous run is still being sent.
fn check_overlapping_runs(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let busy: Vec<_> = runs.iter().filter(|run| matches!(run.outlook, OccurrenceOutlook::Busy(_))).collect();
    let first = busy.first()?;
    let OccurrenceOutlook::Busy(finishes) = first.outlook else { return None };
    let dates: Vec<_> = busy.iter().map(|run| &run.occurrence).collect();
    let (begun, _) = sending_runs(runs).take_while(|(date, _)| date.at < first.occurrence.at).last()?;
    let lasts = match finishes {
        Some(finishes) => format!("until about {}", timed.format_date(finishes)),
        None => "for more than a year".to_owned(),
    };
    let verb = if dates.len() == 1 { "is" } else { "are" };
    let still = format!(
        "{} {verb} skipped: the run that starts on {} is still sending, {lasts}",
        format_dates(&dates),
        format_date(begun)
    );
    let due = format_span(first.occurrence.at.duration_since(begun.at));
    let times = format_written_times(timed).unwrap_or_else(|| "`schedule`".to_owned());
    let message = match finishes.map(|finishes| format_run_length(timed, begun.at, finishes)) {
        Some(length) => format!("{still}; {length}, but {times} starts the next run after {due}"),
        None => format!("{still}, but {times} starts the next run after {due}"),
    };
    let help = "schedule fewer dates, raise `rate` or `per_day`, or widen the window; messages are then sent faster \
                or at other hours";
    Some(Finding::new(&RULE, message).help(help).at(find_times_place(timed)))
}

/// How long a run lasts.
fn format_run_length(timed: &TimedCampaign<'_>, begins: Timestamp, finishes: Timestamp) -> String {
    let over_days = |per_day: &&DailyLimits| timed.messages.is_some_and(|messages| per_day.count_days(messages) > 1);
    let Some(per_day) = timed.limits.per_day.filter(over_days) else {
        return format!("a run takes about {}", format_span(finishes.duration_since(begins)));
    };
    let between = per_day.local_date(finishes).duration_since(per_day.local_date(begins));
    format!("a run takes {} because of `per_day`", format_count(between.as_hours().unsigned_abs() / 24 + 1, "day"))
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

/// A `wait_for_file` so long that nothing can be sent if the list arrives at its end.
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
    Some(Finding::new(&RULE, message).help(help).at(find_key_place(timed, &["schedule.wait_for_file"])))
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
