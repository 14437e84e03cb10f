//! Scheduled dates on which nothing is sent.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::dates::{name, names, obstacle, place, place_of_times, sending, written_times};
use crate::calendar::{Course, Occurrence, Outlook, PerDay, RunEnd, Schedule, ScheduledRun};
use crate::check::timing::TimedCampaign;
use crate::domain::plural;
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
pub(in crate::check) fn skipped_occurrences(
    timed: &TimedCampaign<'_>,
    (schedule, now): (&Schedule, Timestamp),
    runs: &[ScheduledRun],
) -> Vec<Finding> {
    let (busy, ended) = (still_sending(timed, runs), after_until(timed, schedule, now));
    let closed = closed_until_the_end(timed, runs);
    [ended, closed, busy].into_iter().flatten().collect()
}

/// Dates after a fixed `until`.
fn after_until(timed: &TimedCampaign<'_>, schedule: &Schedule, now: Timestamp) -> Option<Finding> {
    let Some(RunEnd::At(until)) = timed.limits.end else { return None };
    let before = until.checked_sub(SignedDuration::from_micros(1)).unwrap_or(until);
    let first = schedule.after(before.max(now)).next()?;
    let message = format!("no messages are sent from {} onwards: `until` is {}", name(&first), timed.date(until));
    let date = first.nominal.date();
    let last = date.yesterday().unwrap_or(date);
    let help = format!(
        "write `ends: {last}` under `schedule`, or set `until` to a duration from the start of each run, for example \
            `until: 12h`"
    );
    Some(Finding::new(&RULE, message).help(help).at(place(timed, &["delivery.until"])))
}

/// Dates whose run ends before the window opens.
fn closed_until_the_end(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let closed = runs.iter().filter_map(|run| match run.course {
        Course::SendsNothing(outlook) if outlook.ends.is_none_or(|ends| ends > outlook.begins) => {
            Some((&run.occurrence, outlook))
        }
        _ => None,
    });
    let closed: Vec<(&Occurrence, Outlook)> = closed.collect();
    let (first, outlook) = closed.first()?;
    let dates: Vec<_> = closed.iter().map(|(date, _)| *date).collect();
    let message = match dates.as_slice() {
        [_] => format!("no messages are sent on {}: {}", name(first), obstacle(timed, outlook)),
        _ => format!("no messages are sent on {}; on the first date, {}", names(&dates), obstacle(timed, outlook)),
    };
    let help = "remove these dates from `schedule`, or change `until` or the window";
    Some(Finding::new(&RULE, message).help(help).at(place_of_times(timed)))
}

/// Dates on which the previous run is still being sent.
fn still_sending(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let busy: Vec<_> = runs.iter().filter(|run| matches!(run.course, Course::Busy(_))).collect();
    let first = busy.first()?;
    let Course::Busy(finishes) = first.course else { return None };
    let dates: Vec<_> = busy.iter().map(|run| &run.occurrence).collect();
    let (begun, _) = sending(runs).take_while(|(date, _)| date.at < first.occurrence.at).last()?;
    let lasts = match finishes {
        Some(finishes) => format!("until about {}", timed.date(finishes)),
        None => "for more than a year".to_owned(),
    };
    let verb = if dates.len() == 1 { "is" } else { "are" };
    let still =
        format!("{} {verb} skipped: the run that starts on {} is still sending, {lasts}", names(&dates), name(begun));
    let due = span(first.occurrence.at.duration_since(begun.at));
    let times = written_times(timed).unwrap_or_else(|| "`schedule`".to_owned());
    let message = match finishes.map(|finishes| length(timed, begun.at, finishes)) {
        Some(length) => format!("{still}; {length}, but {times} starts the next run after {due}"),
        None => format!("{still}, but {times} starts the next run after {due}"),
    };
    let help = "schedule fewer dates, raise `rate` or `per_day`, or widen the window; messages are then sent faster \
                or at other hours";
    Some(Finding::new(&RULE, message).help(help).at(place_of_times(timed)))
}

/// How long a run lasts.
fn length(timed: &TimedCampaign<'_>, begins: Timestamp, finishes: Timestamp) -> String {
    let over_days = |per_day: &&PerDay| timed.messages.is_some_and(|messages| per_day.days(messages) > 1);
    let Some(per_day) = timed.limits.per_day.filter(over_days) else {
        return format!("a run takes about {}", span(finishes.duration_since(begins)));
    };
    let between = per_day.day(finishes).duration_since(per_day.day(begins));
    format!("a run takes {} because of `per_day`", plural(between.as_hours().unsigned_abs() / 24 + 1, "day"))
}

/// A duration in its largest units: `1 day`, `2 days 14 h`, `1 h 30 min`.
fn span(time: SignedDuration) -> String {
    let minutes = time.as_mins().unsigned_abs();
    let (days, hours, minutes) = (minutes / 1_440, minutes / 60 % 24, minutes % 60);
    let units = [
        (days, plural(days, "day")),
        (hours, format!("{hours} h")),
        (if days > 0 { 0 } else { minutes }, format!("{minutes} min")),
    ];
    let units: Vec<String> = units.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words).collect();
    if units.is_empty() { "less than a minute".to_owned() } else { units.join(" ") }
}

/// A `wait_for_file` so long that nothing can be sent if the list arrives at its end.
pub(in crate::check) fn late_list(
    timed: &TimedCampaign<'_>,
    schedule: &Schedule,
    runs: &[ScheduledRun],
) -> Option<Finding> {
    let wait: Duration = schedule.wait_for_file?;
    let (date, _) = sending(runs).next()?;
    let latest = date.at.checked_add(wait).ok()?;
    let outlook = timed.limits.outlook(latest);
    if outlook.sends() {
        return None;
    }
    let message = format!(
        "if the list for {} arrives as late as {}, no messages are sent: {}",
        name(date),
        timed.date(latest),
        obstacle(timed, &outlook)
    );
    let help = "set a shorter `wait_for_file` or a later `until`";
    Some(Finding::new(&RULE, message).help(help).at(place(timed, &["schedule.wait_for_file"])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_written_in_its_largest_units() {
        for (minutes, words) in [
            (0, "less than a minute"),
            (90, "1 h 30 min"),
            (1_440, "1 day"),
            (1_441, "1 day"),
            (3_720, "2 days 14 h"),
            (60, "1 h"),
        ] {
            assert_eq!(span(SignedDuration::from_mins(minutes)), words);
        }
    }
}
