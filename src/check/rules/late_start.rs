//! Scheduled dates whose messages wait more than an hour for the window.

use std::time::Duration;

use super::dates::{names, place_of_times, sending};
use crate::calendar::ScheduledRun;
use crate::check::timing::TimedCampaign;
use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::warning(
    "late-start",
    "A run that begins while the window is closed waits until the window opens. Its recipients get the message hours after the scheduled time.",
    "Set `schedule` to a time within the window of the campaign and the profile, or change `delivery.window`.",
);

/// How long messages may wait without a warning.
const SHORT: Duration = Duration::from_secs(3_600);

/// A warning about dates whose messages wait long.
pub(in crate::check) fn late_start(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let late: Vec<_> = sending(runs).filter(|(_, outlook)| outlook.wait() > SHORT).collect();
    let (_, first) = late.first()?;
    let dates: Vec<_> = late.iter().map(|(date, _)| *date).collect();
    let wait = hours(first.wait());
    let opens = timed.date(first.opens?);
    let message = match dates.as_slice() {
        [_] => format!("the messages of {} wait {wait}, until the window opens at {opens}", names(&dates)),
        _ => format!(
            "the messages of {} wait for the window; those of the first date wait {wait}, until {opens}",
            names(&dates)
        ),
    };
    let help = "set `schedule` to a time at which the window is open";
    Some(Finding::new(&RULE, message).help(help).at(place_of_times(timed)))
}

/// A time in hours and minutes: `11 h 30 min`.
fn hours(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match (minutes / 60, minutes % 60) {
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}
