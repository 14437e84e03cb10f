//! `fields`: extra properties of a channel, sent as they are.

use std::collections::BTreeMap;

use super::Resolver;
use super::carried::list_known_properties;
use super::channels::ChannelEntry;
use crate::domain::{Channel, ExtraProperties, OperationKind};
use crate::finding::{Finding, rules};
use crate::manifest::yaml::node_to_json;

impl Resolver<'_> {
    /// The extra properties of a channel, with the types that YAML gives them.
    pub(super) fn resolve_extra(&mut self, slot: &ChannelEntry<'_>) -> ExtraProperties {
        let entries = slot.section.find_value("fields").and_then(|node| node.as_entries()).unwrap_or_default();
        entries.iter().map(|entry| (entry.key.clone(), node_to_json(&entry.value))).collect()
    }

    /// Tells properties that the operation already has, and those that two channels give it.
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
