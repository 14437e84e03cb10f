//! Scheduled dates whose messages wait more than an hour for the window.

use std::time::Duration;

use super::dates::{find_times_place, format_dates, sending_runs};
use crate::calendar::ScheduledRun;
use crate::check::timing::TimedCampaign;
use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "late-start",
    RuleText {
        cause: "Scheduled messages wait for the window to open. The run starts while the window is closed, so they \
                are sent hours later.",
        example: &["timezone: Europe/Kyiv", "schedule: { every: \"day 06:00\" }", "delivery: { window: 09:00-20:00 }"],
        fix: "schedule the run for a time when the window is open, or change `delivery.window`",
    },
);

/// How long messages may wait without a warning.
const TOLERATED_WAIT: Duration = Duration::from_secs(3_600);

/// A warning about dates whose messages wait long.
pub(in crate::check) fn check_late_start(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let late: Vec<_> =
        sending_runs(runs).filter(|(_, outlook)| outlook.first_message_wait() > TOLERATED_WAIT).collect();
    let (_, first) = late.first()?;
    let dates: Vec<_> = late.iter().map(|(date, _)| *date).collect();
    let wait = format_hours(first.first_message_wait());
    let opens = timed.format_date(first.opens?);
    let message = match dates.as_slice() {
        [_] => {
            format!("the messages scheduled for {} wait {wait} until the window opens at {opens}", format_dates(&dates))
        }
        _ => format!(
            "the messages scheduled for {} wait for the window to open; on the first date, they wait {wait} until \
             {opens}",
            format_dates(&dates)
        ),
    };
    let help = "set `schedule` to a time when the window is open";
    Some(Finding::new(&RULE, message).help(help).at(find_times_place(timed)))
}

/// A time in hours and minutes: `11 h 30 min`.
fn format_hours(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match (minutes / 60, minutes % 60) {
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}
