//! The list of channels: the operation that carries it, keys that the operation cannot carry, and extra properties.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Resolver;
use crate::document::ConfigSection;
use crate::keys::{CHANNELS, ChannelItem, find_meant_item, parse_channel_item};
use crate::yaml::{MapEntry, Node, node_to_json};
use campaign_core::domain::{
    Channel, ChannelField, ExtraProperties, MessageContent, NamedTemplate, OperationKind, WirePlace,
};
use campaign_core::finding::{Finding, join_names, rules};

/// A channel of the list with its keys.
pub(super) struct ChannelEntry<'n> {
    /// The path of its keys, such as `channels[0].sms`.
    pub(super) path: String,
    /// The channel.
    pub(super) channel: Channel,
    /// The location of its name.
    pub(super) name_span: &'n Range<usize>,
    /// Its keys.
    pub(super) section: ConfigSection<'n>,
}

/// The channel of an item of the list, even if its name is misspelt.
fn read_listed_channel<'n>(item: &'n Node, index: usize, above: &str) -> Option<ChannelEntry<'n>> {
    let ChannelItem { channel, name_span, keys } = parse_channel_item(item).or_else(|| find_meant_item(item))?;
    let name = item.as_entries().and_then(|entries| entries.first()).map_or(channel.name(), |entry| entry.key.as_str());
    Some(ChannelEntry {
        path: format!("{above}channels[{index}].{name}"),
        channel,
        name_span,
        section: channel_section(channel, keys),
    })
}

/// The channel of an entry of a list without dashes.
fn read_undashed_channel<'n>(entry: &'n MapEntry, above: &str) -> Option<ChannelEntry<'n>> {
    let channel = Channel::from_name(&entry.key)?;
    let (path, section) = (format!("{above}channels.{}", entry.key), channel_section(channel, Some(&entry.value)));
    Some(ChannelEntry { path, channel, name_span: &entry.key_span, section })
}

/// The keys of a channel.
fn channel_section(channel: Channel, keys: Option<&Node>) -> ConfigSection<'_> {
    ConfigSection::new(None, CHANNELS).subsection(channel.name()).with_node(keys)
}

impl Resolver<'_> {
    /// The content of the `channels` of a map at this path, which is empty or ends with a dot. `None` if there are none.
    ///
    /// Unusable parts are reported, and omitted or replaced with a placeholder.
    pub(super) fn resolve_content(
        &mut self,
        root: ConfigSection<'_>,
        map: ConfigSection<'_>,
        above: &str,
    ) -> Option<MessageContent<NamedTemplate>> {
        let channels = map.find_value("channels")?;
        let (slots, complete) = match channels.as_items() {
            Some(items) => {
                let slots: Vec<ChannelEntry<'_>> = items
                    .iter()
                    .enumerate()
                    .filter_map(|(index, item)| read_listed_channel(item, index, above))
                    .collect();
                let complete = items.iter().all(|item| parse_channel_item(item).is_some()) && !slots.is_empty();
                (slots, complete)
            }
            None => {
                (channels.as_entries()?.iter().filter_map(|entry| read_undashed_channel(entry, above)).collect(), false)
            }
        };
        let kind = self.resolve_kind(root, &slots);
        let stages: Vec<_> = slots.iter().filter_map(|slot| self.resolve_stage(kind, slot)).collect();
        if let Some(kind) = kind {
            self.refuse_uncarried_keys(OperationChoice { kind, is_explicit: root.has_value("operation") }, &slots);
            self.refuse_two_short_links(&slots);
            self.refuse_collisions(kind, &slots);
        }
        self.gaps.any |= !complete || stages.len() < slots.len();
        let channels: Vec<Channel> = slots.iter().map(|slot| slot.channel).collect();
        let kind = self.or_stand_in(kind, || OperationKind::for_channels(&channels));
        Some(MessageContent { kind, stages })
    }

    /// The operation that carries the channels; `None` if none can.
    fn resolve_kind(&mut self, root: ConfigSection<'_>, slots: &[ChannelEntry<'_>]) -> Option<OperationKind> {
        let mut possible = true;
        for (index, slot) in slots.iter().enumerate() {
            if slots[..index].iter().any(|other| other.channel == slot.channel) {
                let finding = Finding::new(&rules::REPEATED_CHANNEL, format!("`{}` is listed twice", slot.channel));
                self.report.add(slot.name_span, finding.help("remove one of them; each channel is tried once"));
                possible = false;
            }
            if slot.channel.facts().single && slots.len() > 1 {
                let finding = Finding::new(
                    &rules::STANDS_ALONE,
                    format!("`{}` cannot be combined with other channels", slot.channel),
                );
                self.report.add(slot.name_span, finding.help("create a separate campaign for it"));
                possible = false;
            }
        }
        let forced = root.typed_text("operation").filter(|(name, _)| *name == OperationKind::Pipeline.name());
        let single = slots.iter().find(|slot| slot.channel.facts().single);
        if let (Some((_, span)), Some(slot)) = (forced, single) {
            let finding =
                Finding::new(&rules::STANDS_ALONE, format!("`{}` cannot be used in a pipeline", slot.channel));
            self.report.add(span, finding.help("remove `operation`"));
            possible = false;
        }
        let channels: Vec<Channel> = slots.iter().map(|slot| slot.channel).collect();
        let kind = if forced.is_some() { OperationKind::Pipeline } else { OperationKind::for_channels(&channels) };
        Some(kind).filter(|_| possible && !slots.is_empty())
    }

    /// In a combined operation, one `short_link` applies to all channels.
    fn refuse_two_short_links(&mut self, slots: &[ChannelEntry<'_>]) {
        let mut given = slots.iter().filter_map(|slot| {
            let (_, span) = slot.section.typed_text("short_link")?;
            Some((slot.section.parse_value::<bool>("short_link")?, span))
        });
        let Some((first, _)) = given.next() else { return };
        for (_, span) in given.filter(|&(value, _)| value != first) {
            let finding = Finding::new(&rules::SHORT_LINK, format!("another channel has `short_link: {first}`"));
            self.report.add(span, finding.help("use the same `short_link` for all channels of a message"));
        }
    }
}

/// Properties of every operation except pipeline stages.
const COMMON_PROPERTIES: [&str; 4] = ["type", "id", "phone", "hook"];

/// The operation that carries the channels.
#[derive(Clone, Copy)]
pub(super) struct OperationChoice {
    /// The kind of the operation.
    pub(super) kind: OperationKind,
    /// Whether the author requested it.
    pub(super) is_explicit: bool,
}

impl Resolver<'_> {
    /// Reports the keys that the operation cannot carry.
    pub(super) fn refuse_uncarried_keys(&mut self, carrier: OperationChoice, slots: &[ChannelEntry<'_>]) {
        let OperationChoice { kind, is_explicit: chosen } = carrier;
        let better = self.report_order(carrier, slots);
        let help = match kind {
            OperationKind::Pipeline if chosen => "remove the key, or remove `operation: pipeline`",
            OperationKind::Pipeline => {
                "remove the key; to send images or buttons, use `viber` then `sms`, `rcs` then `sms`, or `rcs` then \
                 `viber` then `sms`"
            }
            _ => "remove the key",
        };
        for slot in slots {
            for field in slot.channel.facts().fields {
                let (Some(entry), WirePlace::Nowhere(why)) = (slot.section.entry(field.key), field.place_in(kind))
                else {
                    continue;
                };
                if better.is_some_and(|better| !matches!(field.place_in(better), WirePlace::Nowhere(_))) {
                    continue;
                }
                let message = match kind {
                    OperationKind::Pipeline if !chosen => {
                        format!(
                            "a message with these channels is a `pipeline`, which does not support the key `{}` of \
                                `{}`: {why}",
                            field.key, slot.channel
                        )
                    }
                    _ => format!(
                        "a `{kind}` message does not support the key `{}` of `{}`: {why}",
                        field.key, slot.channel
                    ),
                };
                self.report.add(&entry.key_span, Finding::new(&rules::NOT_CARRIED, message).help(help));
            }
        }
    }
}

impl Resolver<'_> {
    /// Reports once that the same channels in another order carry these keys. Returns the kind of that order.
    fn report_order(&mut self, carrier: OperationChoice, slots: &[ChannelEntry<'_>]) -> Option<OperationKind> {
        let OperationChoice { kind: OperationKind::Pipeline, is_explicit: false } = carrier else { return None };
        let channels: Vec<Channel> = slots.iter().map(|slot| slot.channel).collect();
        let better = find_reordered_kind(&channels)?;
        let is_nowhere = |field: &ChannelField, kind| matches!(field.place_in(kind), WirePlace::Nowhere(_));
        let saved: Vec<(&str, Channel)> = slots
            .iter()
            .flat_map(|slot| slot.channel.facts().fields.iter().map(move |field| (slot, field)))
            .filter(|(slot, field)| slot.section.entry(field.key).is_some())
            .filter(|(_, field)| is_nowhere(field, OperationKind::Pipeline) && !is_nowhere(field, better))
            .map(|(slot, field)| (field.key, slot.channel))
            .collect();
        let (_, owner) = *saved.first()?;
        let before: Vec<&str> =
            channels.iter().take_while(|channel| **channel != owner).map(|channel| channel.name()).collect();
        let keys = join_names(saved.iter().map(|(key, _)| *key));
        let message = match before.as_slice() {
            [] => format!("in this order, the channels do not support {keys}"),
            before => format!(
                "with {} before `{owner}`, the channels do not support {keys}",
                join_names(before.iter().copied())
            ),
        };
        let order: Vec<String> = better.channels().iter().map(|channel| format!("`{channel}`")).collect();
        let (first, rest) = order.split_first()?;
        let help = format!(
            "put {first} first, then {}; a channel is tried only if the previous one fails",
            rest.join(", then ")
        );
        let place = slots.first()?.name_span;
        self.report.add(place, Finding::new(&rules::NOT_CARRIED, message).help(help));
        Some(better)
    }
}

/// The operation with a type of its own that carries the same channels in another order.
fn find_reordered_kind(channels: &[Channel]) -> Option<OperationKind> {
    OperationKind::ALL.into_iter().find(|kind| {
        let others = kind.channels();
        others.len() == channels.len() && others != channels && others.iter().all(|other| channels.contains(other))
    })
}

/// The properties that an operation already has where the `fields` of this channel are written.
pub(super) fn list_known_properties(kind: OperationKind, channel: Channel) -> Vec<&'static str> {
    let of = |channel: Channel| channel.facts().fields.iter().filter_map(move |field| field.place_in(kind).property());
    match kind {
        OperationKind::Pipeline => of(channel).collect(),
        _ => COMMON_PROPERTIES.into_iter().chain(kind.channels().iter().copied().flat_map(of)).collect(),
    }
}

impl Resolver<'_> {
    /// The extra properties of a channel, with their YAML types.
    pub(super) fn resolve_extra(&mut self, slot: &ChannelEntry<'_>) -> ExtraProperties {
        let entries = slot.section.find_value("fields").and_then(|node| node.as_entries()).unwrap_or_default();
        entries.iter().map(|entry| (entry.key.clone(), node_to_json(&entry.value))).collect()
    }

    /// Reports properties that the operation already has, and those that two channels define.
    pub(super) fn refuse_collisions(&mut self, kind: OperationKind, slots: &[ChannelEntry<'_>]) {
        let mut given: BTreeMap<&str, Channel> = BTreeMap::new();
        for slot in slots {
            let known = list_known_properties(kind, slot.channel);
            let entries = slot.section.find_value("fields").and_then(|node| node.as_entries()).unwrap_or_default();
            for entry in entries {
                let other = given.insert(&entry.key, slot.channel).filter(|_| kind != OperationKind::Pipeline);
                let finding = if known.contains(&entry.key.as_str()) {
                    Finding::new(&rules::FIELD_COLLISION, format!("`{kind}` already has a field `{}`", entry.key))
                        .help("use the channel's own keys; `fields` is only for properties that have no key")
                } else if let Some(other) = other {
                    Finding::new(
                        &rules::FIELD_COLLISION,
                        format!("`{other}` already sets the property `{}` of `{kind}`", entry.key),
                    )
                    .help("keep one of them; both channels share one message, so a property can be set only once")
                } else {
                    continue;
                };
                self.report.add(&entry.key_span, finding);
            }
        }
    }
}
