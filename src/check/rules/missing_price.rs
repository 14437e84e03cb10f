//! The cost is limited, and the profile does not say what a channel costs.

use crate::check::online::MessagePrices;
use crate::finding::{Finding, Rule, RuleText, join_alternatives};
use crate::manifest::{Campaign, Profile};

pub(super) static RULE: Rule = Rule::error(
    "missing-price",
    RuleText {
        cause: "The profile has no price for a channel. A cost limit cannot be applied without prices.",
        example: &["limits: { cost: 5000 }                      # the profile has no `prices`"],
        fix: "add `prices` for the campaign's channels to the profile; if you remove `limits.cost`, the cost of a run \
              is not limited",
    },
);

pub(super) fn check_prices(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    campaign.limits.cost?;
    let missing = MessagePrices::for_campaign(profile, &campaign.brief).err()?;
    let channels = join_alternatives(missing.iter().map(|channel| channel.name()));
    let message =
        format!("`limits.cost` needs a price for {channels}, which the profile `{}` does not have", profile.name);
    let help = format!("add `prices: {{ {}: … }}` to the profile", missing.first()?.name());
    Some(Finding::new(&RULE, message).help(help).at(campaign.places.locate_key("limits.cost")?))
}
