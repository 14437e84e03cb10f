//! The cost is limited, and the profile does not say what a channel costs.

use crate::check::online::Prices;
use crate::finding::{Finding, Rule, list};
use crate::manifest::{Campaign, Profile};

pub(super) static RULE: Rule = Rule::error(
    "missing-price",
    "`limits.cost` cannot be kept where nobody knows what a message costs.",
    "Add `prices` for the campaign's channels to the profile. Without `limits.cost`, no run stops because of its cost.",
);

pub(super) fn judge(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    campaign.limits.cost?;
    let missing = Prices::of(profile, &campaign.brief).err()?;
    let channels = list(missing.iter().map(|channel| channel.name()));
    let message = format!("`limits.cost` needs a price for {channels}, and `{}` has none", profile.name);
    let help = format!("add `prices: {{ {}: … }}` to the profile", missing.first()?.name());
    Some(Finding::new(&RULE, message).help(help).at(campaign.places.of_key("limits.cost")?))
}
