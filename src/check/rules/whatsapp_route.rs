//! A channel that has to be enabled for the account.

use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::{Campaign, Profile};

pub(super) static RULE: Rule = Rule::note(
    "whatsapp-route",
    RuleText {
        cause: "WhatsApp must be enabled for the account. Otherwise the gateway rejects all messages with `No route`, \
                even if they have other channels.",
        example: &["channels: [{ whatsapp: { signature: OlenaCo, message: Hi } }]"],
        fix: "ask your account manager whether WhatsApp is enabled, and try `run --limit 1` first",
    },
);

/// What has to be known of an account that sends by such a channel.
pub(super) fn note_whatsapp_route(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let stages = campaign.brief.all_contents().flat_map(|content| content.stages.iter().enumerate());
    let mut channels = stages.map(|(index, stage)| (index, stage.channel()));
    let (index, channel) = channels.find(|(_, channel)| channel.facts().enabled_by_hand && !profile.is_loopback())?;
    let (title, name) = (channel.facts().title, &profile.name);
    let message = format!(
        "{title} must be enabled for the account in the profile `{name}`; otherwise, the gateway rejects all \
            of these messages"
    );
    let place = campaign.places.locate_key(&format!("channels[{index}].{channel}"));
    let help = "ask your account manager whether this channel is enabled, and try `run --limit 1` first";
    Some(Finding::new(&RULE, message).help(help).at(place))
}
