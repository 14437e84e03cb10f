//! A channel that has to be enabled for the account.

use crate::finding::{Finding, Rule};
use crate::manifest::{Campaign, Profile};

pub(super) static RULE: Rule = Rule::note(
    "whatsapp-route",
    "WhatsApp has to be enabled for the account; else every message with it is refused, its other channels too: `No route`.",
    "Ask your account manager whether it is, and try it with `run --limit 1`.",
);

/// What has to be known of an account that sends by such a channel.
pub(super) fn judge(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let stages = campaign.brief.contents().flat_map(|content| content.stages.iter().enumerate());
    let mut channels = stages.map(|(index, stage)| (index, stage.channel()));
    let (index, channel) = channels.find(|(_, channel)| channel.facts().enabled_by_hand && !profile.is_loopback())?;
    let (title, name) = (channel.facts().title, &profile.name);
    let message = format!("{title} has to be enabled for the account of `{name}`; else all these messages are refused");
    let place = campaign.places.of_key(&format!("channels[{index}].{channel}"));
    Some(Finding::new(&RULE, message).help("ask your account manager, and try it with `--limit 1` first").at(place))
}
