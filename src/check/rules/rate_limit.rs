//! A pace that the profile does not allow.

use crate::finding::{Finding, Rule, rules};
use crate::manifest::{Campaign, Profile, Rate};

pub(super) static RULE: Rule = Rule::error(
    "rate-limit",
    "The profile's rate is what the account is allowed; a gateway that gets more refuses it.",
    "Lower `delivery.rate`.",
);

pub(super) fn judge(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let (asked, allowed) = (campaign.delivery.rate?, profile.rate);
    let finding = if asked == Rate::Unlimited && !profile.is_loopback() {
        Finding::new(&rules::UNLIMITED_RATE, "`unlimited` is only for a gateway on this machine")
    } else if asked > allowed {
        Finding::new(&RULE, format!("`rate` is {asked}, but `{}` allows {allowed}", profile.name))
    } else {
        return None;
    };
    let place = campaign.places.of_key("delivery.rate")?;
    Some(finding.help(format!("write at most `rate: {allowed}`")).at(place))
}
