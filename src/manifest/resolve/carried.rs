//! What an operation carries of its channels (contract 4.3), so that nothing is dropped in silence.

use super::Resolver;
use super::channels::Slot;
use crate::domain::{Channel, OperationKind, WirePlace};
use crate::finding::{Finding, rules};

/// Properties of every operation that is no stage of a pipeline.
const COMMON: [&str; 4] = ["type", "id", "phone", "hook"];

/// The operation that the channels become.
#[derive(Clone, Copy)]
pub(super) struct Carrier {
    /// What it is.
    pub(super) kind: OperationKind,
    /// Whether the author asked for it.
    pub(super) chosen: bool,
}

impl Resolver<'_> {
    /// Tells the keys that the operation has no place for.
    pub(super) fn refuse_not_carried(&mut self, carrier: Carrier, slots: &[Slot<'_>]) {
        let Carrier { kind, chosen } = carrier;
        let help = match kind {
            OperationKind::Pipeline if chosen => "remove it, or remove `operation: pipeline`",
            OperationKind::Pipeline => {
                "remove it; pictures, buttons and the like are carried by one channel alone, `viber` then `sms`, `rcs` then `sms`, \
                 or `rcs` then `viber` then `sms`"
            }
            _ => "remove it",
        };
        for slot in slots {
            for field in slot.channel.facts().fields {
                let (Some(entry), WirePlace::Nowhere(why)) = (slot.section.entry(field.key), field.place(kind)) else {
                    continue;
                };
                let message = match kind {
                    OperationKind::Pipeline if !chosen => {
                        format!(
                            "these channels one after another are a `pipeline`, which cannot carry `{}` of `{}`: {why}",
                            field.key, slot.channel
                        )
                    }
                    _ => format!("a `{kind}` cannot carry `{}` of `{}`: {why}", field.key, slot.channel),
                };
                self.report.at(&entry.key_span, Finding::new(&rules::NOT_CARRIED, message).help(help));
            }
        }
    }
}

/// The properties that an operation already has, where `fields` of that channel are written.
pub(super) fn known_properties(kind: OperationKind, channel: Channel) -> Vec<&'static str> {
    let of = |channel: Channel| channel.facts().fields.iter().filter_map(move |field| field.place(kind).property());
    match kind {
        OperationKind::Pipeline => of(channel).collect(),
        _ => COMMON.into_iter().chain(kind.channels().iter().copied().flat_map(of)).collect(),
    }
}
