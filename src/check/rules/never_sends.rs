//! A run that can never send: every window is closed from its beginning to its end.

use super::dates::{name, obstacle, place, written_times};
use crate::calendar::{Course, Occurrence, Outlook, RunEnd, ScheduledRun};
use crate::check::timing::TimedCampaign;
use crate::finding::{Finding, Rule};

/// The rule of runs that can never send.
pub static RULE: Rule = Rule::error(
    "never-sends",
    "Messages leave between the beginning of a run and `until`, while the windows of the campaign and the profile are open. If these times never meet, every recipient is skipped.",
    "Change `schedule`, `delivery.until` or `delivery.window` so that a window is open between the beginning of the run and its end.",
);

const KEYS: &[&str] = &["delivery.until", "delivery.window", "schedule"];
const HELP: &str =
    "change `schedule`, `delivery.until` or `delivery.window` so that a window is open while the run lasts";

/// A schedule that sends nothing on any of its dates.
pub(in crate::check) fn schedule_never_sends(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let nothing = runs.iter().filter_map(|run| match run.course {
        Course::SendsNothing(outlook) => Some((&run.occurrence, outlook)),
        Course::Sends(_) | Course::Busy(_) => None,
    });
    let nothing: Vec<_> = nothing.collect();
    let (date, outlook) = nothing.first().filter(|_| nothing.len() == runs.len())?;
    Some(on_a_date(timed, date, outlook))
}

/// The only run of a schedule, which is past.
pub(in crate::check) fn past_run_never_sends(timed: &TimedCampaign<'_>, date: &Occurrence) -> Option<Finding> {
    let outlook = timed.limits.outlook(date.at);
    (!outlook.sends()).then(|| on_a_date(timed, date, &outlook))
}

/// A run that begins now, if no later beginning could help.
pub(in crate::check) fn run_never_sends(timed: &TimedCampaign<'_>, outlook: &Outlook) -> Option<Finding> {
    let is_fixed = outlook.opens.is_none() || matches!(timed.limits.end, Some(RunEnd::At(_)));
    if outlook.sends() || !is_fixed {
        return None;
    }
    Some(finding(timed, format!("no message can leave: {}", obstacle(timed, outlook))))
}

fn on_a_date(timed: &TimedCampaign<'_>, date: &Occurrence, outlook: &Outlook) -> Finding {
    let times = written_times(timed).map_or_else(String::new, |times| format!(" {times}"));
    let message = format!("the schedule{times} can never send: on {}, {}", name(date), obstacle(timed, outlook));
    finding(timed, message)
}

fn finding(timed: &TimedCampaign<'_>, message: String) -> Finding {
    Finding::new(&RULE, message).help(HELP).at(place(timed, KEYS))
}
