//! A fallback that comes days later, because nobody said how long the channel before it is tried.

use crate::domain::{MessageContent, NamedTemplate, OperationKind, WirePlace};
use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::Campaign;

pub(super) static RULE: Rule = Rule::note(
    "late-fallback",
    RuleText {
        cause: "The next channel is tried up to two days later. Two days is the default lifetime of a channel.",
        example: &[
            "channels:",
            "  - viber: { signature: OlenaCo, message: Hi }",
            "  - sms: { signature: OlenaCo, message: Hi }",
        ],
        fix: "add a lifetime to the first channel, for example `lifetime: 1h`",
    },
);

/// The first channel with another one behind it that could have a lifetime and has none, of the campaign or a variant.
pub(super) fn check_late_fallback(campaign: &Campaign) -> Option<Finding> {
    let of_variants = campaign.brief.variants.iter();
    let of_variants =
        of_variants.filter_map(|variant| Some((format!("variants.{}.", variant.name), variant.content.as_ref()?)));
    let all = std::iter::once((String::new(), &campaign.brief.content)).chain(of_variants);
    all.into_iter().find_map(|(path, content)| check_channels(campaign, &path, content))
}

/// The same of the channels that stand under a path of keys.
fn check_channels(campaign: &Campaign, path: &str, content: &MessageContent<NamedTemplate>) -> Option<Finding> {
    if content.kind == OperationKind::Pipeline {
        return None;
    }
    let (_, before) = content.stages.split_last()?;
    let (index, channel) = before.iter().enumerate().find_map(|(index, stage)| {
        let field = stage.channel().facts().fields.iter().find(|field| field.key == "lifetime")?;
        let possible = !matches!(field.place_in(content.kind), WirePlace::Nowhere(_));
        let said = stage.values().any(|(field, _)| field.key == "lifetime");
        (possible && !said).then(|| (index, stage.channel()))
    })?;
    let next = content.stages.get(index + 1)?.channel();
    let message = format!("`{channel}` has no `lifetime`, so {next} might be tried up to two days later");
    let place = campaign.places.locate_key(&format!("{path}channels[{index}].{channel}"));
    Some(
        Finding::new(&RULE, message)
            .help(format!("add a lifetime to `{channel}`, for example `lifetime: 1h`"))
            .at(place),
    )
}
