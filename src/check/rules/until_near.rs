//! An `until` that comes before the last message can leave.

use super::dates::{name, place, sending};
use crate::calendar::{Outlook, ScheduledRun};
use crate::check::timing::TimedCampaign;
use crate::domain::{one_or, plural};
use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::warning(
    "until-near",
    "Messages that have not left by `until` are skipped. At this rate and within these windows, there is not enough time for all of them.",
    "Begin earlier, or send to fewer people. With a later `until`, or a higher `rate` or `per_day`, people get messages later or faster than planned.",
);

/// A warning about a run that begins now and cannot send all of its messages before `until`.
pub(in crate::check) fn until_near(timed: &TimedCampaign<'_>, outlook: &Outlook) -> Option<Finding> {
    finding(timed, "", outlook)
}

/// The same warning for the dates of a schedule.
pub(in crate::check) fn until_near_on_dates(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let short: Vec<_> = sending(runs).filter(|(_, outlook)| outlook.unsent > 0).collect();
    let (date, outlook) = short.first()?;
    let finding = finding(timed, &format!(" of {}", name(date)), outlook)?;
    let more = match short.len() - 1 {
        0 => String::new(),
        1 => "; one more date is affected".to_owned(),
        more => format!("; {more} more dates are affected"),
    };
    let message = finding.message.clone() + &more;
    Some(Finding { message, ..finding })
}

fn finding(timed: &TimedCampaign<'_>, date: &str, outlook: &Outlook) -> Option<Finding> {
    let messages = timed.messages?;
    let (unsent, ends) = (outlook.unsent, outlook.ends.filter(|_| outlook.unsent > 0)?);
    let time = ends.to_zoned(timed.campaign.home()).strftime("%Y-%m-%d %H:%M");
    let leaving = messages.saturating_sub(unsent);
    let message = format!(
        "of {}{date} about {leaving} can leave before {time}: {unsent} {} skipped by `until`",
        plural(messages, "message"),
        one_or(unsent, "is", "are")
    );
    Some(Finding::new(&RULE, message).at(place(timed, &["delivery.until"])))
}
