//! The keys of one channel: its stage and the form of its message.

use super::Resolver;
use super::channels::ChannelEntry;
use crate::value::Seconds;
use crate::yaml::MapEntry;
use campaign_core::domain::{
    Card, ChannelField, FieldKind, FieldRequirement, FieldValue, MessageForm, NamedTemplate, OperationKind, Stage,
    StageValues,
};
use campaign_core::finding::{Finding, join_alternatives, join_names, rules};

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
            if let Some(value) = value.or_else(|| self.stand_in_value(field)) {
                values.set_value(field, value);
            }
        }
        Stage::of(slot.channel, values)
    }

    /// The placeholder for a required key without a value.
    fn stand_in_value(&mut self, field: &ChannelField) -> Option<FieldValue<NamedTemplate>> {
        let value = match field.kind {
            FieldKind::Template | FieldKind::Message | FieldKind::Choice(_)
                if field.need == FieldRequirement::Always =>
            {
                FieldValue::Text(NamedTemplate::stand_in())
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

    /// Reports the missing keys that the operation requires, together if the reason is the same.
    fn report_missing_fields(&mut self, kind: Option<OperationKind>, slot: &ChannelEntry<'_>) {
        let mut missing: Vec<(&str, Vec<&str>)> = Vec::new();
        for field in slot.channel.facts().fields {
            let why = match (field.need, kind) {
                (FieldRequirement::InPipeline(why), Some(OperationKind::Pipeline)) => why,
                (FieldRequirement::OutsidePipeline(why), Some(kind)) if kind != OperationKind::Pipeline => why,
                _ => continue,
            };
            if slot.section.entry(field.key).is_some() || slot.section.has_misspelt(field.key) {
                continue;
            }
            match missing.iter_mut().find(|(known, _)| *known == why) {
                Some((_, keys)) => keys.push(field.key),
                None => missing.push((why, vec![field.key])),
            }
        }
        for (why, keys) in missing {
            let keys = join_names(keys);
            let finding = Finding::new(&rules::MISSING_KEY, format!("`{}` needs {keys}", slot.channel));
            self.report.add(slot.name_span, finding.help(format!("add {keys}: {why}")));
        }
    }

    /// Reports a constant text that is not one of the allowed words.
    fn check_choice(&mut self, slot: &ChannelEntry<'_>, field: &ChannelField, words: &'static [&'static str]) {
        let Some((text, span)) = slot.section.typed_text(field.key) else { return };
        let constant = !text.contains("{{") && !text.contains("{%");
        if constant && !words.contains(&text) {
            let ChannelField { key, example, .. } = field;
            let message = format!("`{key}` is `{text}`, but must be {}", join_alternatives(words.iter().copied()));
            let help = format!("write `{key}: {example}`");
            self.report.add(span, Finding::new(&rules::UNKNOWN_VALUE, message).help(help));
        }
    }

    /// The cards under a key, with placeholders for missing or wrong parts.
    fn resolve_cards(&mut self, slot: &ChannelEntry<'_>, field: &ChannelField) -> Vec<Card<NamedTemplate>> {
        let cards = slot.section.find_value(field.key).and_then(|node| node.as_items()).unwrap_or_default();
        let texts = cards.iter().enumerate().map(|(index, card)| {
            let path = format!("{}.{}[{index}]", slot.path, field.key);
            let mut text = |key: &str| {
                let entry: &MapEntry = card.find_entry(key)?;
                self.resolve_text(format!("{path}.{key}"), entry)
            };
            let [caption, image, url, button] = Card::<()>::FIELDS.map(|field| text(field.key));
            let [image, url, button] = [image, url, button].map(|text| self.or_stand_in(text, NamedTemplate::stand_in));
            Card { caption, image, url, button }
        });
        texts.collect()
    }
}

impl Resolver<'_> {
    /// The form of a channel's message; `None` if the name is unknown or the channel has only one form.
    pub(super) fn resolve_form(
        &mut self,
        operation: Option<OperationKind>,
        slot: &ChannelEntry<'_>,
    ) -> Option<&'static MessageForm> {
        let facts = slot.channel.facts();
        let named = facts.fields.iter().find(|field| matches!(field.kind, FieldKind::Form(_)))?.key;
        if operation == Some(OperationKind::Pipeline) {
            return self.check_pipeline_form(slot, named);
        }
        let keys: Vec<&str> = facts.form_keys().collect();
        let typed = slot.section.typed_text(named);
        let form = match typed {
            Some((name, _)) => facts.forms.iter().find(|form| form.name == name)?,
            None => {
                let given: Vec<&str> = keys.iter().copied().filter(|key| slot.section.has_value(key)).collect();
                facts.find_form(&given)?
            }
        };
        let (title, name) = (facts.title, form.name);
        let missing = |key: &&&str| slot.section.entry(key).is_none() && !slot.section.has_misspelt(key);
        for key in form.required_keys.iter().filter(missing) {
            let (message, help) = match typed {
                Some(_) => (
                    format!("a {title} message of type `{name}` needs `{key}`"),
                    format!("add `{key}`, or change `{named}`"),
                ),
                None => {
                    let with = keys.iter().filter(|given| slot.section.has_value(given)).copied();
                    (
                        format!("a {title} message with {} also needs `{key}`", join_names(with)),
                        format!("add `{key}: …`"),
                    )
                }
            };
            self.report.add(slot.name_span, Finding::new(&rules::VIBER_TYPE, message).help(help));
        }
        for key in keys.iter().filter(|key| !form.allows_key(key)) {
            let Some(entry) = slot.section.entry(key) else { continue };
            let message = format!("a {title} message of type `{name}` cannot have `{key}`");
            let has = join_names(form.required_keys.iter().copied());
            let help = format!("remove the key, or change the type; type `{name}` allows {has}");
            self.report.add(&entry.key_span, Finding::new(&rules::VIBER_TYPE, message).help(help));
        }
        Some(form)
    }

    /// A pipeline stage carries the first form; keys of other forms are reported as not carried.
    fn check_pipeline_form(&mut self, slot: &ChannelEntry<'_>, named: &str) -> Option<&'static MessageForm> {
        let facts = slot.channel.facts();
        let carried = facts.forms.first()?;
        if let Some((name, span)) = slot.section.typed_text(named).filter(|(name, _)| *name != carried.name) {
            let message = format!(
                "a pipeline can send a {} message only as type `{}`, not as `{name}`",
                facts.title, carried.name
            );
            self.report.add(span, Finding::new(&rules::NOT_CARRIED, message).help(format!("remove `{named}`")));
        }
        Some(carried)
    }
}
