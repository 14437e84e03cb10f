//! The list of channels: which operation it becomes, and the rules over several channels.

use std::ops::Range;

use super::Resolver;
use super::carried::Carrier;
use crate::domain::{Channel, Content, OperationKind, Text};
use crate::finding::{Finding, rules};
use crate::manifest::keys::{CHANNELS, ChannelItem, channel_item, meant_item};
use crate::manifest::section::Section;
use crate::manifest::yaml::{Entry, Node};

/// A channel of the list with its keys.
pub(super) struct Slot<'n> {
    /// The path of its keys, such as `channels[0].sms`.
    pub(super) path: String,
    /// The channel.
    pub(super) channel: Channel,
    /// Where its name stands.
    pub(super) name_span: &'n Range<usize>,
    /// Its keys.
    pub(super) section: Section<'n>,
}

/// The channel of an item of the list, even if its name is misspelt.
fn listed<'n>(item: &'n Node, index: usize, above: &str) -> Option<Slot<'n>> {
    let ChannelItem { channel, name_span, keys } = channel_item(item).or_else(|| meant_item(item))?;
    let name = item.entries().and_then(|entries| entries.first()).map_or(channel.name(), |entry| entry.key.as_str());
    Some(Slot { path: format!("{above}channels[{index}].{name}"), channel, name_span, section: keys_of(channel, keys) })
}

/// The channel of an entry of a list without dashes.
fn without_dash<'n>(entry: &'n Entry, above: &str) -> Option<Slot<'n>> {
    let channel = Channel::from_name(&entry.key)?;
    let (path, section) = (format!("{above}channels.{}", entry.key), keys_of(channel, Some(&entry.value)));
    Some(Slot { path, channel, name_span: &entry.key_span, section })
}

/// The keys of a channel.
fn keys_of(channel: Channel, keys: Option<&Node>) -> Section<'_> {
    Section::new(None, CHANNELS).section(channel.name()).with(keys)
}

impl Resolver<'_> {
    /// The content of the `channels` of a map at this path, which is empty or ends with a dot. `None` if there are none.
    ///
    /// Unusable parts are omitted or replaced with a stand-in, and reported.
    pub(super) fn content(&mut self, root: Section<'_>, map: Section<'_>, above: &str) -> Option<Content<Text>> {
        let channels = map.value("channels")?;
        let (slots, complete) = match channels.items() {
            Some(items) => {
                let slots: Vec<Slot<'_>> =
                    items.iter().enumerate().filter_map(|(index, item)| listed(item, index, above)).collect();
                let complete = items.iter().all(|item| channel_item(item).is_some()) && !slots.is_empty();
                (slots, complete)
            }
            None => (channels.entries()?.iter().filter_map(|entry| without_dash(entry, above)).collect(), false),
        };
        let kind = self.kind(root, &slots);
        let stages: Vec<_> = slots.iter().filter_map(|slot| self.stage(kind, slot)).collect();
        if let Some(kind) = kind {
            self.refuse_not_carried(Carrier { kind, chosen: root.has("operation") }, &slots);
            self.refuse_two_short_links(&slots);
            self.refuse_collisions(kind, &slots);
        }
        self.gaps.any |= !complete || stages.len() < slots.len();
        let channels: Vec<Channel> = slots.iter().map(|slot| slot.channel).collect();
        let kind = self.or_stand_in(kind, || OperationKind::of(&channels));
        Some(Content { kind, stages })
    }

    /// The operation that carries the channels; nothing if none can.
    fn kind(&mut self, root: Section<'_>, slots: &[Slot<'_>]) -> Option<OperationKind> {
        let mut possible = true;
        for (index, slot) in slots.iter().enumerate() {
            if slots[..index].iter().any(|other| other.channel == slot.channel) {
                let finding = Finding::new(&rules::REPEATED_CHANNEL, format!("`{}` is listed twice", slot.channel));
                self.report.at(slot.name_span, finding.help("remove one of them; each channel is tried once"));
                possible = false;
            }
            if slot.channel.facts().single && slots.len() > 1 {
                let finding = Finding::new(
                    &rules::STANDS_ALONE,
                    format!("`{}` cannot be combined with other channels", slot.channel),
                );
                self.report.at(slot.name_span, finding.help("create a separate campaign for it"));
                possible = false;
            }
        }
        let forced = root.typed("operation").filter(|(name, _)| *name == OperationKind::Pipeline.name());
        let single = slots.iter().find(|slot| slot.channel.facts().single);
        if let (Some((_, span)), Some(slot)) = (forced, single) {
            let finding =
                Finding::new(&rules::STANDS_ALONE, format!("`{}` cannot be used in a pipeline", slot.channel));
            self.report.at(span, finding.help("remove `operation`"));
            possible = false;
        }
        let channels: Vec<Channel> = slots.iter().map(|slot| slot.channel).collect();
        let kind = if forced.is_some() { OperationKind::Pipeline } else { OperationKind::of(&channels) };
        Some(kind).filter(|_| possible && !slots.is_empty())
    }

    /// In a combined operation one `short_link` serves all channels.
    fn refuse_two_short_links(&mut self, slots: &[Slot<'_>]) {
        let mut given = slots.iter().filter_map(|slot| {
            let (_, span) = slot.section.typed("short_link")?;
            Some((slot.section.parsed::<bool>("short_link")?, span))
        });
        let Some((first, _)) = given.next() else { return };
        for (_, span) in given.filter(|&(value, _)| value != first) {
            let finding = Finding::new(&rules::SHORT_LINK, format!("another channel has `short_link: {first}`"));
            self.report.at(span, finding.help("use the same `short_link` for all channels of a message"));
        }
    }
}
