//! The content of messages: `channels` with the keys of each channel, and `variants` and `holdout`, which divide
//! recipients.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Resolver;
use crate::campaign::{Holdout, MessageVariant, VARIANT};
use crate::document::ConfigSection;
use crate::keys::{CHANNELS, ChannelItem, HOLDOUT, VARIANT_KEYS, guess_channel_item, parse_channel_item};
use crate::value::{Percentage, Seconds};
use crate::yaml::{MapEntry, Node, node_to_json};
use campaign_core::domain::{
    Card, Channel, ChannelField, ExtraProperties, FieldKind, FieldRequirement, FieldValue, MessageContent, MessageForm,
    NamedTemplate, OperationKind, Stage, StageValues, WirePlace,
};
use campaign_core::finding::{Finding, join_alternatives, join_names, rules};

/// The maximum length of the name of a variant or a group, in characters.
const MAX_NAME_LENGTH: usize = 64;

/// A channel in the `channels` list, with its keys.
pub(super) struct ChannelEntry<'n> {
    /// The path of the channel's keys, such as `channels[0].sms`.
    pub(super) path: String,
    pub(super) channel: Channel,
    /// The location of the channel's name.
    pub(super) name_span: &'n Range<usize>,
    /// The keys of the channel.
    pub(super) section: ConfigSection<'n>,
}

/// Reads a channel from an item of the list, even if the name of the channel is misspelt.
fn read_listed_channel<'n>(item: &'n Node, index: usize, prefix: &str) -> Option<ChannelEntry<'n>> {
    let ChannelItem { channel, name_span, keys } = parse_channel_item(item).or_else(|| guess_channel_item(item))?;
    let name = item.as_entries().and_then(|entries| entries.first()).map_or(channel.name(), |entry| entry.key.as_str());
    Some(ChannelEntry {
        path: format!("{prefix}channels[{index}].{name}"),
        channel,
        name_span,
        section: channel_section(channel, keys),
    })
}

/// Reads a channel from an entry of `channels` that was written without a dash.
fn read_undashed_channel<'n>(entry: &'n MapEntry, prefix: &str) -> Option<ChannelEntry<'n>> {
    let channel = Channel::from_name(&entry.key)?;
    let (path, section) = (format!("{prefix}channels.{}", entry.key), channel_section(channel, Some(&entry.value)));
    Some(ChannelEntry { path, channel, name_span: &entry.key_span, section })
}

/// The section with the keys of a channel.
fn channel_section(channel: Channel, keys: Option<&Node>) -> ConfigSection<'_> {
    ConfigSection::new(None, CHANNELS).subsection(channel.name()).with_node(keys)
}

impl Resolver<'_> {
    /// The content of the `channels` in `map`. The path `prefix` of the map is empty or ends with a dot. `None` if the
    /// map has no `channels`.
    ///
    /// Unusable parts are reported, and either omitted or replaced with placeholders.
    pub(super) fn resolve_content(
        &mut self,
        root: ConfigSection<'_>,
        map: ConfigSection<'_>,
        prefix: &str,
    ) -> Option<MessageContent<NamedTemplate>> {
        let channels = map.find_value("channels")?;
        let (slots, is_complete) = match channels.as_items() {
            Some(items) => {
                let slots: Vec<ChannelEntry<'_>> = items
                    .iter()
                    .enumerate()
                    .filter_map(|(index, item)| read_listed_channel(item, index, prefix))
                    .collect();
                let is_complete = items.iter().all(|item| parse_channel_item(item).is_some()) && !slots.is_empty();
                (slots, is_complete)
            }
            None => (
                channels.as_entries()?.iter().filter_map(|entry| read_undashed_channel(entry, prefix)).collect(),
                false,
            ),
        };
        let kind = self.resolve_kind(root, &slots);
        let stages: Vec<_> = slots.iter().filter_map(|slot| self.resolve_stage(kind, slot)).collect();
        if let Some(kind) = kind {
            self.report_uncarried_keys(OperationChoice { kind, is_explicit: root.has_value("operation") }, &slots);
            self.report_differing_short_links(&slots);
            self.report_property_collisions(kind, &slots);
        }
        self.gaps.any |= !is_complete || stages.len() < slots.len();
        let channels: Vec<Channel> = slots.iter().map(|slot| slot.channel).collect();
        let kind = self.or_placeholder(kind, || OperationKind::for_channels(&channels));
        Some(MessageContent { kind, stages })
    }

    /// The operation that carries the channels; `None` if no operation can.
    fn resolve_kind(&mut self, root: ConfigSection<'_>, slots: &[ChannelEntry<'_>]) -> Option<OperationKind> {
        let mut is_possible = true;
        for (index, slot) in slots.iter().enumerate() {
            if slots[..index].iter().any(|other| other.channel == slot.channel) {
                let finding = Finding::new(&rules::REPEATED_CHANNEL, format!("`{}` is listed twice", slot.channel));
                self.report.add(slot.name_span, finding.help("remove one of them; each channel is tried only once"));
                is_possible = false;
            }
            if slot.channel.facts().single && slots.len() > 1 {
                let finding = Finding::new(
                    &rules::STANDS_ALONE,
                    format!("`{}` cannot be combined with other channels", slot.channel),
                );
                self.report.add(slot.name_span, finding.help("create a separate campaign for it"));
                is_possible = false;
            }
        }
        let forced = root.typed_text("operation").filter(|(name, _)| *name == OperationKind::Pipeline.name());
        let single = slots.iter().find(|slot| slot.channel.facts().single);
        if let (Some((_, span)), Some(slot)) = (forced, single) {
            let finding =
                Finding::new(&rules::STANDS_ALONE, format!("`{}` cannot be used in a pipeline", slot.channel));
            self.report.add(span, finding.help("remove `operation`"));
            is_possible = false;
        }
        let channels: Vec<Channel> = slots.iter().map(|slot| slot.channel).collect();
        let kind = if forced.is_some() { OperationKind::Pipeline } else { OperationKind::for_channels(&channels) };
        Some(kind).filter(|_| is_possible && !slots.is_empty())
    }

    /// Reports differing values of `short_link`, because one value applies to all channels of a combined operation.
    fn report_differing_short_links(&mut self, slots: &[ChannelEntry<'_>]) {
        let mut short_links = slots.iter().filter_map(|slot| {
            let (_, span) = slot.section.typed_text("short_link")?;
            Some((slot.section.parse_value::<bool>("short_link")?, span))
        });
        let Some((first, _)) = short_links.next() else { return };
        for (_, span) in short_links.filter(|&(value, _)| value != first) {
            let finding = Finding::new(&rules::SHORT_LINK, format!("another channel has `short_link: {first}`"));
            self.report.add(span, finding.help("use the same `short_link` for all channels of a message"));
        }
    }
}

/// Properties of every operation, which the stages of a pipeline do not have.
const COMMON_PROPERTIES: [&str; 4] = ["type", "id", "phone", "hook"];

/// The chosen operation for the channels.
#[derive(Clone, Copy)]
pub(super) struct OperationChoice {
    /// The kind of the operation.
    pub(super) kind: OperationKind,
    /// Whether the author chose the kind with `operation`.
    pub(super) is_explicit: bool,
}

impl Resolver<'_> {
    /// Reports the keys that the operation cannot carry.
    pub(super) fn report_uncarried_keys(&mut self, choice: OperationChoice, slots: &[ChannelEntry<'_>]) {
        let OperationChoice { kind, is_explicit } = choice;
        let better_kind = self.report_channel_order(choice, slots);
        let help = match kind {
            OperationKind::Pipeline if is_explicit => "remove the key, or remove `operation: pipeline`",
            OperationKind::Pipeline => {
                "remove the key; to send images or buttons, use `viber` then `sms`, `rcs` then `sms`, or `rcs` then \
                 `viber` then `sms`"
            }
            _ => "remove the key",
        };
        for slot in slots {
            for field in slot.channel.facts().fields {
                let (Some(entry), WirePlace::Nowhere(reason)) = (slot.section.entry(field.key), field.place_in(kind))
                else {
                    continue;
                };
                if better_kind.is_some_and(|better_kind| !matches!(field.place_in(better_kind), WirePlace::Nowhere(_)))
                {
                    continue;
                }
                let message = match kind {
                    OperationKind::Pipeline if !is_explicit => {
                        format!(
                            "a message with these channels is a `pipeline`, which does not support the key `{}` of \
                                `{}`: {reason}",
                            field.key, slot.channel
                        )
                    }
                    _ => format!(
                        "a `{kind}` message does not support the key `{}` of `{}`: {reason}",
                        field.key, slot.channel
                    ),
                };
                self.report.add(&entry.key_span, Finding::new(&rules::NOT_CARRIED, message).help(help));
            }
        }
    }
}

impl Resolver<'_> {
    /// Reports in one finding which keys would be supported if the channels were in another order. Returns the
    /// operation that carries the channels in that order.
    fn report_channel_order(&mut self, choice: OperationChoice, slots: &[ChannelEntry<'_>]) -> Option<OperationKind> {
        let OperationChoice { kind: OperationKind::Pipeline, is_explicit: false } = choice else { return None };
        let channels: Vec<Channel> = slots.iter().map(|slot| slot.channel).collect();
        let better_kind = find_reordered_kind(&channels)?;
        let is_nowhere = |field: &ChannelField, kind| matches!(field.place_in(kind), WirePlace::Nowhere(_));
        let supported: Vec<(&str, Channel)> = slots
            .iter()
            .flat_map(|slot| slot.channel.facts().fields.iter().map(move |field| (slot, field)))
            .filter(|(slot, field)| slot.section.entry(field.key).is_some())
            .filter(|(_, field)| is_nowhere(field, OperationKind::Pipeline) && !is_nowhere(field, better_kind))
            .map(|(slot, field)| (field.key, slot.channel))
            .collect();
        let (_, owner) = *supported.first()?;
        let before: Vec<&str> =
            channels.iter().take_while(|channel| **channel != owner).map(|channel| channel.name()).collect();
        let keys = join_names(supported.iter().map(|(key, _)| *key));
        let message = match before.as_slice() {
            [] => format!("in this order, the channels do not support {keys}"),
            before => format!(
                "with {} before `{owner}`, the channels do not support {keys}",
                join_names(before.iter().copied())
            ),
        };
        let order: Vec<String> = better_kind.channels().iter().map(|channel| format!("`{channel}`")).collect();
        let (first, rest) = order.split_first()?;
        let help = format!(
            "put {first} first, then {}; a channel is tried only if the previous one fails",
            rest.join(", then ")
        );
        let place = slots.first()?.name_span;
        self.report.add(place, Finding::new(&rules::NOT_CARRIED, message).help(help));
        Some(better_kind)
    }
}

/// The combined operation that carries the same channels in another order.
fn find_reordered_kind(channels: &[Channel]) -> Option<OperationKind> {
    OperationKind::ALL.into_iter().find(|kind| {
        let carried = kind.channels();
        let is_same_set = carried.len() == channels.len() && carried.iter().all(|channel| channels.contains(channel));
        is_same_set && carried != channels
    })
}

/// The standard properties of the JSON object to which the `fields` of this channel are added.
pub(super) fn list_known_properties(kind: OperationKind, channel: Channel) -> Vec<&'static str> {
    let properties =
        |channel: Channel| channel.facts().fields.iter().filter_map(move |field| field.place_in(kind).property());
    match kind {
        OperationKind::Pipeline => properties(channel).collect(),
        _ => COMMON_PROPERTIES.into_iter().chain(kind.channels().iter().copied().flat_map(properties)).collect(),
    }
}

impl Resolver<'_> {
    /// The extra properties of a channel, with their YAML types.
    pub(super) fn resolve_extra(&mut self, slot: &ChannelEntry<'_>) -> ExtraProperties {
        let entries = slot.section.find_value("fields").and_then(|node| node.as_entries()).unwrap_or_default();
        entries.iter().map(|entry| (entry.key.clone(), node_to_json(&entry.value))).collect()
    }

    /// Reports extra properties that the operation already has or that two channels define.
    pub(super) fn report_property_collisions(&mut self, kind: OperationKind, slots: &[ChannelEntry<'_>]) {
        let mut properties: BTreeMap<&str, Channel> = BTreeMap::new();
        for slot in slots {
            let known_properties = list_known_properties(kind, slot.channel);
            let entries = slot.section.find_value("fields").and_then(|node| node.as_entries()).unwrap_or_default();
            for entry in entries {
                let earlier_channel =
                    properties.insert(&entry.key, slot.channel).filter(|_| kind != OperationKind::Pipeline);
                // Earlier versions had no key for the unsubscribe link, so it was set under `fields`.
                let is_legacy_property = entry.key == "unsubscribe_link" && !slot.section.has_value(&entry.key);
                let finding = if known_properties.contains(&entry.key.as_str()) && !is_legacy_property {
                    Finding::new(&rules::FIELD_COLLISION, format!("`{kind}` already has a field `{}`", entry.key))
                        .help("use the channel's own keys; `fields` is only for properties that have no key")
                } else if let Some(other) = earlier_channel {
                    Finding::new(
                        &rules::FIELD_COLLISION,
                        format!("`{other}` already sets the property `{}` of `{kind}`", entry.key),
                    )
                    .help("keep one of them; both channels share a single message, so a property can be set only once")
                } else {
                    continue;
                };
                self.report.add(&entry.key_span, finding);
            }
        }
    }
}

impl Resolver<'_> {
    /// The stage of a channel in an operation of `kind`, with placeholders for missing or wrong parts.
    pub(super) fn resolve_stage(
        &mut self,
        kind: Option<OperationKind>,
        slot: &ChannelEntry<'_>,
    ) -> Option<Stage<NamedTemplate>> {
        let facts = slot.channel.facts();
        let form = self.resolve_form(kind, slot);
        let mut values = StageValues::new(self.resolve_extra(slot));
        self.report_missing_fields(kind, slot);
        for field in facts.fields {
            let value = match field.kind {
                FieldKind::Template | FieldKind::Message => self.resolve_channel_text(slot, field),
                FieldKind::Choice(words) => {
                    self.check_choice(slot, field, words);
                    self.resolve_channel_text(slot, field)
                }
                FieldKind::Form(_) => {
                    self.gaps.any |= form.is_none();
                    form.or(facts.forms.first()).map(|form| FieldValue::Word(form.name))
                }
                FieldKind::Word(words) => {
                    let typed = slot.section.typed_text(field.key);
                    typed
                        .and_then(|(typed, _)| words.iter().find(|word| **word == typed))
                        .map(|word| FieldValue::Word(word))
                }
                FieldKind::Seconds { .. } => {
                    slot.section.parse_value(field.key).map(|Seconds(seconds)| FieldValue::Number(seconds))
                }
                FieldKind::Number { .. } => slot.section.parse_value(field.key).map(FieldValue::Number),
                FieldKind::Flag => slot.section.parse_value(field.key).map(FieldValue::Flag),
                FieldKind::Cards { .. } => Some(FieldValue::Cards(self.resolve_cards(slot, field))),
                FieldKind::Extra => None,
            };
            if let Some(value) = value.or_else(|| self.placeholder_value(field)) {
                values.set_value(field, value);
            }
        }
        Stage::of(slot.channel, values)
    }

    /// The placeholder for a required key without a value.
    fn placeholder_value(&mut self, field: &ChannelField) -> Option<FieldValue<NamedTemplate>> {
        let value = match field.kind {
            FieldKind::Template | FieldKind::Message | FieldKind::Choice(_)
                if field.need == FieldRequirement::Always =>
            {
                FieldValue::Text(NamedTemplate::placeholder())
            }
            FieldKind::Number { .. } => FieldValue::Number(field.default?.parse().ok()?),
            _ => return None,
        };
        self.gaps.any = true;
        Some(value)
    }

    /// The text under a key of a channel.
    fn resolve_channel_text(
        &mut self,
        slot: &ChannelEntry<'_>,
        field: &ChannelField,
    ) -> Option<FieldValue<NamedTemplate>> {
        let entry = slot.section.entry(field.key)?;
        self.resolve_text(format!("{}.{}", slot.path, field.key), entry).map(FieldValue::Text)
    }

    /// Reports missing keys that the operation requires. Keys with the same reason are reported together.
    fn report_missing_fields(&mut self, kind: Option<OperationKind>, slot: &ChannelEntry<'_>) {
        let mut missing: Vec<(&str, Vec<&str>)> = Vec::new();
        for field in slot.channel.facts().fields {
            let reason = match (field.need, kind) {
                (FieldRequirement::InPipeline(reason), Some(OperationKind::Pipeline)) => reason,
                (FieldRequirement::OutsidePipeline(reason), Some(kind)) if kind != OperationKind::Pipeline => reason,
                _ => continue,
            };
            if slot.section.entry(field.key).is_some() || slot.section.has_misspelling(field.key) {
                continue;
            }
            match missing.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, keys)) => keys.push(field.key),
                None => missing.push((reason, vec![field.key])),
            }
        }
        for (reason, keys) in missing {
            let keys = join_names(keys);
            let finding = Finding::new(&rules::MISSING_KEY, format!("`{}` needs {keys}", slot.channel));
            self.report.add(slot.name_span, finding.help(format!("add {keys}: {reason}")));
        }
    }

    /// Reports a constant text that is not one of the allowed words.
    fn check_choice(&mut self, slot: &ChannelEntry<'_>, field: &ChannelField, words: &'static [&'static str]) {
        let Some((text, span)) = slot.section.typed_text(field.key) else { return };
        let is_constant = !text.contains("{{") && !text.contains("{%");
        if is_constant && !words.contains(&text) {
            let ChannelField { key, example, .. } = field;
            let message = format!("`{key}` is `{text}`, but must be {}", join_alternatives(words.iter().copied()));
            let help = format!("write `{key}: {example}`");
            self.report.add(span, Finding::new(&rules::UNKNOWN_VALUE, message).help(help));
        }
    }

    /// The cards under a key, with placeholders for missing or wrong parts.
    fn resolve_cards(&mut self, slot: &ChannelEntry<'_>, field: &ChannelField) -> Vec<Card<NamedTemplate>> {
        let cards = slot.section.find_value(field.key).and_then(|node| node.as_items()).unwrap_or_default();
        let resolved = cards.iter().enumerate().map(|(index, card)| {
            let path = format!("{}.{}[{index}]", slot.path, field.key);
            let mut read_text = |key: &str| {
                let entry: &MapEntry = card.find_entry(key)?;
                self.resolve_text(format!("{path}.{key}"), entry)
            };
            let [caption, image, url, button] = Card::<()>::FIELDS.map(|field| read_text(field.key));
            let [image, url, button] =
                [image, url, button].map(|text| self.or_placeholder(text, NamedTemplate::placeholder));
            Card { caption, image, url, button }
        });
        resolved.collect()
    }
}

impl Resolver<'_> {
    /// The form of a channel's message; `None` if the form's name is unknown or the channel has only one form.
    pub(super) fn resolve_form(
        &mut self,
        operation: Option<OperationKind>,
        slot: &ChannelEntry<'_>,
    ) -> Option<&'static MessageForm> {
        let facts = slot.channel.facts();
        let form_key = facts.fields.iter().find(|field| matches!(field.kind, FieldKind::Form(_)))?.key;
        if operation == Some(OperationKind::Pipeline) {
            return self.check_pipeline_form(slot, form_key);
        }
        let keys: Vec<&str> = facts.form_keys().collect();
        let typed = slot.section.typed_text(form_key);
        let form = match typed {
            Some((name, _)) => facts.forms.iter().find(|form| form.name == name)?,
            None => {
                let present_keys: Vec<&str> = keys.iter().copied().filter(|key| slot.section.has_value(key)).collect();
                facts.find_form(&present_keys)?
            }
        };
        let (title, name) = (facts.title, form.name);
        let is_missing = |key: &&&str| slot.section.entry(key).is_none() && !slot.section.has_misspelling(key);
        for key in form.required_keys.iter().filter(is_missing) {
            let (message, help) = match typed {
                Some(_) => (
                    format!("a {title} message of type `{name}` needs `{key}`"),
                    format!("add `{key}`, or change `{form_key}`"),
                ),
                None => {
                    let with = join_names(keys.iter().filter(|key| slot.section.has_value(key)).copied());
                    let needs = match with.as_str() {
                        "" => format!("a {title} message needs `{key}`"),
                        with => format!("a {title} message with {with} also needs `{key}`"),
                    };
                    (needs, format!("add `{key}: …`"))
                }
            };
            self.report.add(slot.name_span, Finding::new(&rules::VIBER_TYPE, message).help(help));
        }
        for key in keys.iter().filter(|key| !form.allows_key(key)) {
            let Some(entry) = slot.section.entry(key) else { continue };
            let message = format!("a {title} message of type `{name}` cannot have `{key}`");
            let allowed = join_names(form.required_keys.iter().copied());
            let help = format!("remove the key, or change the type; type `{name}` allows {allowed}");
            self.report.add(&entry.key_span, Finding::new(&rules::VIBER_TYPE, message).help(help));
        }
        Some(form)
    }

    /// Returns the first form, which is the only one that a pipeline can carry. Reports another form in the campaign.
    fn check_pipeline_form(&mut self, slot: &ChannelEntry<'_>, form_key: &str) -> Option<&'static MessageForm> {
        let facts = slot.channel.facts();
        let carried = facts.forms.first()?;
        if let Some((name, span)) = slot.section.typed_text(form_key).filter(|(name, _)| *name != carried.name) {
            let message = format!(
                "a pipeline can send a {} message only as type `{}`, not as `{name}`",
                facts.title, carried.name
            );
            self.report.add(span, Finding::new(&rules::NOT_CARRIED, message).help(format!("remove `{form_key}`")));
        }
        Some(carried)
    }
}

impl Resolver<'_> {
    /// The variants. Missing or invalid parts are reported and replaced with placeholders.
    pub(super) fn resolve_variants(
        &mut self,
        root: ConfigSection<'_>,
        content: Option<&MessageContent<NamedTemplate>>,
        vars: &[(String, String)],
    ) -> Vec<MessageVariant> {
        let Some(entry) = root.entry("variants").filter(|_| root.has_value("variants")) else { return Vec::new() };
        let columns = self.columns.clone();
        let Some(entries) = entry.value.as_entries() else {
            // The structure check reports a value that is not a map.
            self.gaps.any = true;
            return Vec::new();
        };
        let variants: Vec<_> = entries.iter().map(|entry| self.resolve_variant(root, entry, &columns)).collect();
        for (name, _) in columns.iter().chain(vars).filter(|(name, _)| name == VARIANT) {
            let message = format!(
                "in templates, `{name}` is the recipient's variant, but there is also a \
                column or constant with this name"
            );
            let finding = Finding::new(&rules::NAME_CLASH, message).help("rename that column or constant");
            self.report.add(&entry.key_span, finding);
        }
        let single_kind = content.filter(|content| content.kind.is_single()).map(|content| content.kind.name());
        if let Some(kind) = single_kind {
            let finding =
                Finding::new(&rules::STANDS_ALONE, format!("`{kind}` has no message text, so it cannot have variants"));
            self.report.add(&entry.key_span, finding.help("remove `variants`"));
        }
        if entries.iter().all(|entry| read_share(entry).is_some()) {
            self.check_share_total(root, entry, &variants);
        }
        variants
    }

    fn resolve_variant(
        &mut self,
        root: ConfigSection<'_>,
        entry: &MapEntry,
        columns: &[(String, String)],
    ) -> MessageVariant {
        let name = self.check_group_name(entry.key.as_str(), &entry.key_span, "a variant");
        let name = self.or_placeholder(name, || entry.key.clone());
        let section = ConfigSection::new(Some(&entry.value), VARIANT_KEYS);
        let share = self.or_placeholder(read_share(entry), || Percentage::WHOLE);
        let vars = self.resolve_vars(section, columns);
        let path = format!("variants.{name}.");
        let content = match section.entry("channels") {
            Some(_) => {
                let content = self.resolve_content(root, section, &path);
                self.gaps.any |= content.is_none();
                if let Some(kind) = content.as_ref().map(|content| content.kind).filter(|kind| kind.is_single()) {
                    let message = format!("`{kind}` cannot be a variant of a message");
                    let finding = Finding::new(&rules::STANDS_ALONE, message).help("create a separate campaign for it");
                    self.report.add(&entry.key_span, finding);
                }
                content
            }
            None => None,
        };
        MessageVariant { name, share, content, vars }
    }

    /// Reports shares whose sum is not 100 %.
    fn check_share_total(&mut self, root: ConfigSection<'_>, entry: &MapEntry, variants: &[MessageVariant]) {
        let holdout = read_holdout(root).map_or(0, |holdout| u32::from(holdout.share.hundredths()));
        let total = variants.iter().map(|variant| u32::from(variant.share.hundredths())).sum::<u32>() + holdout;
        if total != u32::from(Percentage::WHOLE.hundredths()) {
            let with = if holdout == 0 { "" } else { " and `holdout`" };
            let message = format!("the shares of the variants{with} add up to {}%, not 100%", f64::from(total) / 100.0);
            let help = "change the shares so that they add up to 100%; use `holdout` for recipients who get no \
                message";
            self.report.add(&entry.key_span, Finding::new(&rules::SHARES, message).help(help));
        }
    }

    /// The holdout group. `None` if the key is missing or invalid, or if its share is 0 %.
    pub(super) fn resolve_holdout(&mut self, root: ConfigSection<'_>) -> Option<Holdout> {
        let (entry, holdout) = (root.entry("holdout")?, read_holdout(root)?);
        if let Some(group) = &holdout.group {
            self.check_group_name(group, &entry.value.span, "a group")?;
        }
        if holdout.share == Percentage::WHOLE {
            let finding =
                Finding::new(&rules::SHARES, "`holdout` includes all recipients, so no messages would be sent");
            self.report.add(&entry.key_span, finding.help("write a smaller share, such as `10%`"));
        }
        Some(holdout).filter(|holdout| holdout.share > Percentage::NONE)
    }

    /// Returns the name of a variant or a group if it is valid. Reports any other name; `noun` says what it names.
    fn check_group_name(&mut self, name: &str, span: &Range<usize>, noun: &str) -> Option<String> {
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        if !name.is_empty() && name.chars().all(fits) && name.chars().count() <= MAX_NAME_LENGTH {
            return Some(name.to_owned());
        }
        let finding = Finding::new(&rules::VARIABLE_NAME, format!("`{name}` is not a valid name for {noun}"));
        self.report.add(span, finding.help("use letters, digits, `-` and `_`, as in `a` or `short-text`"));
        None
    }
}

/// The share of a variant.
fn read_share(entry: &MapEntry) -> Option<Percentage> {
    ConfigSection::new(Some(&entry.value), VARIANT_KEYS).parse_value("share")
}

fn read_holdout(root: ConfigSection<'_>) -> Option<Holdout> {
    let node = root.find_value("holdout")?;
    if node.as_scalar().is_some() {
        return Some(Holdout { share: root.parse_value("holdout")?, group: None });
    }
    let section = ConfigSection::new(Some(node), HOLDOUT);
    Some(Holdout {
        share: section.parse_value("share")?,
        group: section.typed_text("group").map(|(group, _)| group.to_owned()),
    })
}
