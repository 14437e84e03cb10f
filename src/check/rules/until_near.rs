//! An `until` that comes before the last message can leave.

use super::dates::{find_key_place, format_date, sending_runs};
use crate::calendar::{Outlook, ScheduledRun};
use crate::check::timing::TimedCampaign;
use crate::domain::{choose_plural, format_count};
use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "until-near",
    RuleText {
        cause: "Not all messages can be sent before `until`. The remaining messages are skipped.",
        example: &["timezone: Europe/Kyiv", "delivery: { until: 1h, per_day: 1 }"],
        fix: "start earlier, or send to fewer recipients; a later `until` or a higher `rate` or `per_day` also helps, \
              but then messages are sent later or faster",
    },
);

/// A warning about a run that begins now and cannot send all of its messages before `until`.
pub(in crate::check) fn check_until_near(timed: &TimedCampaign<'_>, outlook: &Outlook) -> Option<Finding> {
    until_near_finding(timed, "", outlook)
}

/// The same warning for the dates of a schedule.
pub(in crate::check) fn check_until_near_on_dates(timed: &TimedCampaign<'_>, runs: &[ScheduledRun]) -> Option<Finding> {
    let short: Vec<_> = sending_runs(runs).filter(|(_, outlook)| outlook.unsent > 0).collect();
    let (date, outlook) = short.first()?;
    let finding = until_near_finding(timed, &format!(" scheduled for {}", format_date(date)), outlook)?;
    let more = match short.len() - 1 {
        0 => String::new(),
        1 => "; one more date is affected".to_owned(),
        more => format!("; {more} more dates are affected"),
    };
    let message = finding.message.clone() + &more;
    Some(Finding { message, ..finding })
}

fn until_near_finding(timed: &TimedCampaign<'_>, date: &str, outlook: &Outlook) -> Option<Finding> {
    let messages = timed.messages?;
    let (unsent, ends) = (outlook.unsent, outlook.ends.filter(|_| outlook.unsent > 0)?);
    let time = ends.to_zoned(timed.campaign.home_zone()).strftime("%Y-%m-%d %H:%M");
    let leaving = messages.saturating_sub(unsent);
    let message = format!(
        "about {leaving} of {}{date} can be sent before {time}; {} skipped",
        format_count(messages, "message"),
        choose_plural(unsent, "the other one is", &format!("the other {unsent} are"))
    );
    Some(Finding::new(&RULE, message).at(find_key_place(timed, &["delivery.until"])))
}
