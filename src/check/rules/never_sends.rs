//! Runs that can never send, because the windows are closed from start to end.

use super::dates::{name, obstacle, place, written_times};
use crate::calendar::{Course, Occurrence, Outlook, RunEnd, ScheduledRun};
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
pub(in crate::check) fn schedule_never_sends(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let nothing = runs.iter().filter_map(|run| match run.course {
        Course::SendsNothing(outlook) => Some((&run.occurrence, outlook)),
        Course::Sends(_) | Course::Busy(_) => None,
    });
    let nothing: Vec<_> = nothing.collect();
    let (date, outlook) = nothing.first().filter(|_| nothing.len() == runs.len())?;
    Some(on_a_date(timed, date, outlook))
}

/// An error for the past date of a schedule with a single date.
pub(in crate::check) fn past_run_never_sends(timed: &TimedCampaign<'_>, date: &Occurrence) -> Option<Finding> {
    let outlook = timed.limits.outlook(date.at);
    (!outlook.sends()).then(|| on_a_date(timed, date, &outlook))
}

/// An error for a run that begins now, unless a later start could help.
pub(in crate::check) fn run_never_sends(timed: &TimedCampaign<'_>, outlook: &Outlook) -> Option<Finding> {
    let is_fixed = outlook.opens.is_none() || matches!(timed.limits.end, Some(RunEnd::At(_)));
    if outlook.sends() || !is_fixed {
        return None;
    }
    Some(finding(timed, format!("no messages can be sent: {}", obstacle(timed, outlook))))
}

fn on_a_date(timed: &TimedCampaign<'_>, date: &Occurrence, outlook: &Outlook) -> Finding {
    let times = written_times(timed).map_or_else(String::new, |times| format!(" {times}"));
    let message =
        format!("the schedule{times} can never send messages: on {}, {}", name(date), obstacle(timed, outlook));
    finding(timed, message)
}

fn finding(timed: &TimedCampaign<'_>, message: String) -> Finding {
    Finding::new(&RULE, message).help(HELP).at(place(timed, KEYS))
}
