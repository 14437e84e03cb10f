//! A time after which nothing leaves, and that comes before the last message can have left.

use jiff::{SignedDuration, Timestamp};

use crate::calendar::Capacity;
use crate::finding::{Finding, Rule};
use crate::manifest::{Campaign, Profile, Until};

pub(super) static RULE: Rule = Rule::warning(
    "until-near",
    "What has not left when `until` comes is skipped: at this rate, and within these hours, that is not for everybody.",
    "Begin earlier, or send to fewer people. With a later `until`, or a higher `rate` or `per_day`, people get messages later or faster than planned.",
);

/// What is said where not all of so many messages can leave from now on before `until`.
#[must_use]
pub fn until_near(campaign: &Campaign, profile: Option<&Profile>, messages: u64, now: Timestamp) -> Option<Finding> {
    let until = match campaign.until? {
        Until::At(_) => campaign.until_at()?,
        Until::After(time) => now.checked_add(SignedDuration::try_from(time).ok()?).ok()?,
    };
    let (windows, _) = campaign.windows_at_home(profile);
    let rate = campaign.rate(profile).and_then(|rate| rate.per_second());
    let capacity = Capacity { rate, windows: &windows, per_day: campaign.per_day.as_ref() };
    let leaving = capacity.leaving(messages, now, until);
    // What is already over is refused, in other words.
    if leaving >= messages || until <= now {
        return None;
    }
    let time = until.to_zoned(campaign.home()).strftime("%Y-%m-%d %H:%M").to_string();
    let message = format!(
        "of {messages} messages about {leaving} can leave before {time}: {} are skipped by `until`",
        messages - leaving
    );
    Some(Finding::new(&RULE, message).at(campaign.places.of_key("delivery.until")))
}
