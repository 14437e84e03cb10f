//! What an operation carries of its channels (contract 4.3), so that nothing is dropped in silence.

use super::Resolver;
use super::channels::ChannelEntry;
use crate::domain::{Channel, ChannelField, OperationKind, WirePlace};
use crate::finding::{Finding, join_names, rules};

/// Properties of every operation that is no stage of a pipeline.
const COMMON_PROPERTIES: [&str; 4] = ["type", "id", "phone", "hook"];

/// The operation that the channels become.
#[derive(Clone, Copy)]
pub(super) struct OperationChoice {
    /// What it is.
    pub(super) kind: OperationKind,
    /// Whether the author asked for it.
    pub(super) is_explicit: bool,
}

impl Resolver<'_> {
    /// Tells the keys that the operation has no place for.
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

/// The operation of its own that tries the same channels in another order.
fn find_reordered_kind(channels: &[Channel]) -> Option<OperationKind> {
    OperationKind::ALL.into_iter().find(|kind| {
        let others = kind.channels();
        others.len() == channels.len() && others != channels && others.iter().all(|other| channels.contains(other))
    })
}

/// The properties that an operation already has, where `fields` of that channel are written.
pub(super) fn list_known_properties(kind: OperationKind, channel: Channel) -> Vec<&'static str> {
    let of = |channel: Channel| channel.facts().fields.iter().filter_map(move |field| field.place_in(kind).property());
    match kind {
        OperationKind::Pipeline => of(channel).collect(),
        _ => COMMON_PROPERTIES.into_iter().chain(kind.channels().iter().copied().flat_map(of)).collect(),
    }
}
