//! Runs that can never send, because the windows are closed from start to end.

use super::dates::{describe_obstacle, find_key_place, format_date, format_written_times};
use crate::calendar::{Occurrence, OccurrenceOutlook, Outlook, RunDeadline, ScheduledRun};
use crate::check::timing::TimedCampaign;
use crate::finding::{Finding, Rule, RuleText};

/// The rule of runs that can never send.
pub static RULE: Rule = Rule::error(
    "never-sends",
    RuleText {
        cause: "No messages can ever be sent. The window never opens before the run ends.",
        example: &[
            "timezone: Europe/Kyiv",
            "schedule: { every: \"day 21:00\" }",
            "delivery: { window: 09:00-20:00, until: 2h }",
        ],
        fix: "change `schedule`, `delivery.until` or `delivery.window` so that the window opens before the run ends",
    },
);

const KEYS: &[&str] = &["delivery.until", "delivery.window", "schedule"];
const HELP: &str = "change `schedule`, `delivery.until` or `delivery.window` so that the window is open during the run";

/// An error for a schedule that sends nothing on any of its dates.
pub(in crate::check) fn check_schedule(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let nothing = runs.iter().filter_map(|run| match run.outlook {
        OccurrenceOutlook::SendsNothing(outlook) => Some((&run.occurrence, outlook)),
        OccurrenceOutlook::Sends(_) | OccurrenceOutlook::Busy(_) => None,
    });
    let nothing: Vec<_> = nothing.collect();
    let (date, outlook) = nothing.first().filter(|_| nothing.len() == runs.len())?;
    Some(date_finding(timed, date, outlook))
}

/// An error for the past date of a schedule with a single date.
pub(in crate::check) fn check_past_run(timed: &TimedCampaign<'_>, date: &Occurrence) -> Option<Finding> {
    let outlook = timed.limits.calculate_outlook(date.at);
    (!outlook.can_send()).then(|| date_finding(timed, date, &outlook))
}

/// An error for a run that begins now, unless a later start could help.
pub(in crate::check) fn check_run(timed: &TimedCampaign<'_>, outlook: &Outlook) -> Option<Finding> {
    let is_fixed = outlook.opens.is_none() || matches!(timed.limits.end, Some(RunDeadline::At(_)));
    if outlook.can_send() || !is_fixed {
        return None;
    }
    Some(never_sends_finding(timed, format!("no messages can be sent: {}", describe_obstacle(timed, outlook))))
}

fn date_finding(timed: &TimedCampaign<'_>, date: &Occurrence, outlook: &Outlook) -> Finding {
    let times = format_written_times(timed).map_or_else(String::new, |times| format!(" {times}"));
    let message = format!(
        "the schedule{times} can never send messages: on {}, {}",
        format_date(date),
        describe_obstacle(timed, outlook)
    );
    never_sends_finding(timed, message)
}

fn never_sends_finding(timed: &TimedCampaign<'_>, message: String) -> Finding {
    Finding::new(&RULE, message).help(HELP).at(find_key_place(timed, KEYS))
}
