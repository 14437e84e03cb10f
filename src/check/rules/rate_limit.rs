//! A pace that the profile does not allow.

use crate::finding::{Finding, Rule, RuleText, rules};
use crate::manifest::{Campaign, Profile, Rate};

pub(super) static RULE: Rule = Rule::error(
    "rate-limit",
    RuleText {
        cause: "The campaign's rate exceeds the profile's. The gateway rejects messages that exceed the account's rate.",
        example: &["delivery: { rate: 500/s }                   # the profile allows 100/s"],
        fix: "lower `delivery.rate` to the rate shown in the finding",
    },
);

pub(super) fn check_rate_limit(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let (asked, allowed) = (campaign.delivery.rate?, profile.rate);
    let finding = if asked == Rate::Unlimited && !profile.is_loopback() {
        Finding::new(&rules::UNLIMITED_RATE, "`rate: unlimited` is allowed only for a gateway on this machine")
    } else if asked > allowed {
        Finding::new(&RULE, format!("`rate` is {asked}, but the profile `{}` allows {allowed}", profile.name))
    } else {
        return None;
    };
    let place = campaign.places.locate_key("delivery.rate")?;
    Some(finding.help(format!("write `rate: {allowed}` or less")).at(place))
}
