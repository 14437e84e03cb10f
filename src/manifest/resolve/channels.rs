//! The list of channels: which operation it becomes, and the rules over several channels.

use std::ops::Range;

use super::Resolver;
use super::carried::OperationChoice;
use crate::domain::{Channel, MessageContent, NamedTemplate, OperationKind};
use crate::finding::{Finding, rules};
use crate::manifest::keys::{CHANNELS, ChannelItem, find_meant_item, parse_channel_item};
use crate::manifest::section::ConfigSection;
use crate::manifest::yaml::{MapEntry, Node};

/// A channel of the list with its keys.
pub(super) struct ChannelEntry<'n> {
    /// The path of its keys, such as `channels[0].sms`.
    pub(super) path: String,
    /// The channel.
    pub(super) channel: Channel,
    /// Where its name stands.
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
    /// Unusable parts are omitted or replaced with a stand-in, and reported.
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

    /// The operation that carries the channels; nothing if none can.
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

    /// In a combined operation one `short_link` serves all channels.
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
