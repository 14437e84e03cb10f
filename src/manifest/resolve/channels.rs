//! The list of channels: which operation it becomes, and the rules over several channels.

use std::ops::Range;

use super::Resolver;
use super::carried::Carrier;
use crate::domain::{Channel, Content, OperationKind, Text};
use crate::finding::{Finding, rules};
use crate::manifest::keys::{CHANNELS, channel_item};
use crate::manifest::section::Section;

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

impl Resolver<'_> {
    /// What is said by the `channels` of a map, which stands at this path, empty or with its dot; nothing where a channel
    /// cannot be used, which was told.
    pub(super) fn content(&mut self, root: Section<'_>, map: Section<'_>, above: &str) -> Option<Content<Text>> {
        let items = map.value("channels")?.items()?;
        let slots: Vec<Slot<'_>> = items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| {
                let found = channel_item(item)?;
                let name = found.channel.name();
                let keys = Section::new(None, CHANNELS).section(name).with(found.keys);
                let path = format!("{above}channels[{index}].{name}");
                Some(Slot { path, channel: found.channel, name_span: found.name_span, section: keys })
            })
            .collect();
        let kind = self.kind(root, &slots);
        let stages: Vec<_> = slots.iter().map(|slot| self.stage(kind, slot)).collect();
        if let Some(kind) = kind {
            self.refuse_not_carried(Carrier { kind, chosen: root.has("operation") }, &slots);
            self.refuse_two_short_links(&slots);
            self.refuse_collisions(kind, &slots);
        }
        let complete = slots.len() == items.len() && !slots.is_empty();
        let stages = stages.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Content { kind: kind.filter(|_| complete)?, stages })
    }

    /// The operation that carries the channels; nothing if none can.
    fn kind(&mut self, root: Section<'_>, slots: &[Slot<'_>]) -> Option<OperationKind> {
        let mut possible = true;
        for (index, slot) in slots.iter().enumerate() {
            if slots[..index].iter().any(|other| other.channel == slot.channel) {
                let finding =
                    Finding::new(&rules::REPEATED_CHANNEL, format!("`{}` stands here a second time", slot.channel));
                self.report
                    .at(slot.name_span, finding.help("remove one of them; a channel is tried once (contract 4.3)"));
                possible = false;
            }
            if slot.channel.facts().single && slots.len() > 1 {
                let finding = Finding::new(
                    &rules::STANDS_ALONE,
                    format!("`{}` cannot stand beside other channels", slot.channel),
                );
                self.report.at(slot.name_span, finding.help("give it a campaign of its own"));
                possible = false;
            }
        }
        let forced = root.typed("operation").filter(|(name, _)| *name == OperationKind::Pipeline.name());
        let single = slots.iter().find(|slot| slot.channel.facts().single);
        if let (Some((_, span)), Some(slot)) = (forced, single) {
            let finding =
                Finding::new(&rules::STANDS_ALONE, format!("`{}` cannot be a stage of a pipeline", slot.channel));
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
            let finding = Finding::new(&rules::SHORT_LINK, format!("another channel says `short_link: {first}`"));
            self.report.at(span, finding.help("one `short_link` serves all channels of the message; make them agree"));
        }
    }
}
