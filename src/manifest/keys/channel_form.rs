//! Whether the channels of a campaign have the form that they must have.

use super::structure::{head, value};
use super::{CHANNELS, ChannelItem, channel_item, find, meant_item, names};
use crate::domain::Channel;
use crate::finding::{Finding, did_you_mean, list, rules};
use crate::manifest::report::Report;
use crate::manifest::yaml::{Content, Entry, Node};

/// Checks an item of the list of channels.
pub(super) fn channel(item: &Node, report: &mut Report) {
    if let Some(found) = channel_item(item) {
        return channel_keys(&found, item, report);
    }
    let finding = match &item.content {
        Content::Scalar(scalar) => unknown_channel(&scalar.text),
        Content::Map(entries) => match entries.as_slice() {
            [one] => {
                report.at(&one.key_span, unknown_channel(&one.key));
                if let Some(meant) = meant_item(item) {
                    channel_keys(&meant, item, report);
                }
                return;
            }
            _ => crowded(entries),
        },
        Content::List(_) => Finding::new(&rules::WRONG_TYPE, "each item of `channels` must be a channel, not a list")
            .help("write each channel as `- sms: …`"),
    };
    report.at(&head(item), finding);
}

/// Checks the keys of a channel.
fn channel_keys(found: &ChannelItem<'_>, item: &Node, report: &mut Report) {
    let nothing = Node { content: Content::Map(Vec::new()), span: item.span.clone() };
    let key = found.channel.name().to_owned();
    let entry = Entry { key, key_span: found.name_span.clone(), value: found.keys.cloned().unwrap_or(nothing) };
    if let Some(key) = find(CHANNELS, &entry.key) {
        value(key, &entry, report);
    }
}

/// An item that is a map of several keys: two channels, or a channel whose keys are not indented.
fn crowded(entries: &[Entry]) -> Finding {
    let channels: Vec<&Entry> = entries.iter().filter(|entry| Channel::from_name(&entry.key).is_some()).collect();
    match channels.as_slice() {
        [] => Finding::new(&rules::UNKNOWN_CHANNEL, "this item does not name a channel")
            .help(format!("start the item with a channel: {}", list(names(CHANNELS)))),
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

fn unknown_channel(name: &str) -> Finding {
    let finding = Finding::new(&rules::UNKNOWN_CHANNEL, format!("`{name}` is not a channel"));
    match did_you_mean(name, names(CHANNELS)) {
        Some(meant) => finding.help(format!("did you mean `{meant}`?")),
        None => finding.help(format!("use one of the supported channels: {}", list(names(CHANNELS)))),
    }
}

/// Checks channels that stand in a map, where a list has to be.
pub(super) fn without_dashes(entry: &Entry, channels: &[Entry], report: &mut Report) {
    let first = channels.first().map_or("sms", |channel| channel.key.as_str());
    let finding = Finding::new(&rules::WRONG_TYPE, "`channels` must be a list, but the dashes are missing");
    report.at(&entry.key_span, finding.help(format!("start each channel with a dash: `- {first}: …`")));
    for channel in channels {
        match find(CHANNELS, &channel.key) {
            Some(key) => value(key, channel, report),
            None => report.at(&channel.key_span, unknown_channel(&channel.key)),
        }
    }
}
