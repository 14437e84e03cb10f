//! Whether the channels of a campaign have the form that they must have.

use super::structure::{check_value, head_span};
use super::{CHANNELS, ChannelItem, find_key, find_meant_item, key_names, parse_channel_item};
use crate::domain::Channel;
use crate::finding::{Finding, did_you_mean, join_alternatives, rules};
use crate::manifest::report::FindingCollector;
use crate::manifest::yaml::{MapEntry, Node, NodeContent};

/// Checks an item of the list of channels.
pub(super) fn check_channel(item: &Node, report: &mut FindingCollector) {
    if let Some(found) = parse_channel_item(item) {
        return check_channel_keys(&found, item, report);
    }
    let finding = match &item.content {
        NodeContent::Scalar(scalar) => unknown_channel_finding(&scalar.text),
        NodeContent::Map(entries) => match entries.as_slice() {
            [one] => {
                report.add(&one.key_span, unknown_channel_finding(&one.key));
                if let Some(meant) = find_meant_item(item) {
                    check_channel_keys(&meant, item, report);
                }
                return;
            }
            _ => crowded_item_finding(entries),
        },
        NodeContent::List(_) => {
            Finding::new(&rules::WRONG_TYPE, "each item of `channels` must be a channel, not a list")
                .help("write each channel as `- sms: …`")
        }
    };
    report.add(&head_span(item), finding);
}

/// Checks the keys of a channel.
fn check_channel_keys(found: &ChannelItem<'_>, item: &Node, report: &mut FindingCollector) {
    let nothing = Node { content: NodeContent::Map(Vec::new()), span: item.span.clone() };
    let key = found.channel.name().to_owned();
    let entry = MapEntry { key, key_span: found.name_span.clone(), value: found.keys.cloned().unwrap_or(nothing) };
    if let Some(key) = find_key(CHANNELS, &entry.key) {
        check_value(key, &entry, report);
    }
}

/// An item that is a map of several keys: two channels, or a channel whose keys are not indented.
fn crowded_item_finding(entries: &[MapEntry]) -> Finding {
    let channels: Vec<&MapEntry> = entries.iter().filter(|entry| Channel::from_name(&entry.key).is_some()).collect();
    match channels.as_slice() {
        [] => Finding::new(&rules::UNKNOWN_CHANNEL, "this item does not name a channel")
            .help(format!("start the item with a channel: {}", join_alternatives(key_names(CHANNELS)))),
        [one] if one.value.is_null() => {
            Finding::new(&rules::YAML_INDENTATION, format!("the keys of `{}` are not indented", one.key))
                .help(format!("indent the keys two spaces deeper than `{}`", one.key))
        }
        [one] => Finding::new(
            &rules::YAML_INDENTATION,
            format!("other keys are at the same level as the channel `{}`", one.key),
        )
        .help("indent the keys that belong to the channel, and start other channels with `- `"),
        [first, second, ..] => {
            Finding::new(&rules::CROWDED_ITEM, format!("`{}` and `{}` are in the same item", first.key, second.key))
                .help(format!("start each channel with its own dash: `- {}: …`", second.key))
        }
    }
}

fn unknown_channel_finding(name: &str) -> Finding {
    let finding = Finding::new(&rules::UNKNOWN_CHANNEL, format!("`{name}` is not a channel"));
    match did_you_mean(name, key_names(CHANNELS)) {
        Some(meant) => finding.help(format!("did you mean `{meant}`?")),
        None => finding.help(format!("use one of the supported channels: {}", join_alternatives(key_names(CHANNELS)))),
    }
}

/// Checks channels that stand in a map, where a list has to be.
pub(super) fn check_missing_dashes(entry: &MapEntry, channels: &[MapEntry], report: &mut FindingCollector) {
    let first = channels.first().map_or("sms", |channel| channel.key.as_str());
    let finding = Finding::new(&rules::WRONG_TYPE, "`channels` must be a list, but the dashes are missing");
    report.add(&entry.key_span, finding.help(format!("start each channel with a dash: `- {first}: …`")));
    for channel in channels {
        match find_key(CHANNELS, &channel.key) {
            Some(key) => check_value(key, channel, report),
            None => report.add(&channel.key_span, unknown_channel_finding(&channel.key)),
        }
    }
}
