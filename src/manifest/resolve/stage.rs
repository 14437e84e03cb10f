//! The keys of one channel become a stage, as the channel's own table says.

use super::Resolver;
use super::channels::ChannelEntry;
use crate::domain::{
    Card, ChannelField, FieldKind, FieldRequirement, FieldValue, NamedTemplate, OperationKind, Stage, StageValues,
};
use crate::finding::{Finding, join_alternatives, join_names, rules};
use crate::manifest::value::Seconds;
use crate::manifest::yaml::MapEntry;

impl Resolver<'_> {
    /// The stage of a channel in an operation of `kind`, with stand-ins for missing or wrong parts.
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

    /// The value of a key that a channel always has, if the file gives it none.
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

    /// Tells a constant text that is none of the words that it may become.
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

    /// The cards under a key, with stand-ins for missing or wrong parts.
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
