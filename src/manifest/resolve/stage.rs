//! The keys of one channel become a stage, as the channel's own table says.

use super::Resolver;
use super::channels::Slot;
use crate::domain::{Card, Field, FieldKind, Need, OperationKind, Stage, Text, Value, Values};
use crate::finding::{Finding, list, list_all, rules};
use crate::manifest::value::Seconds;
use crate::manifest::yaml::Entry;

impl Resolver<'_> {
    /// The stage of a channel in an operation of `kind`, with stand-ins for missing or wrong parts.
    pub(super) fn stage(&mut self, kind: Option<OperationKind>, slot: &Slot<'_>) -> Option<Stage<Text>> {
        let facts = slot.channel.facts();
        let form = self.form(kind, slot);
        let mut values = Values::new(self.extra(slot));
        self.require(kind, slot);
        for field in facts.fields {
            let value = match field.kind {
                FieldKind::Template | FieldKind::Message => self.slot_text(slot, field),
                FieldKind::Choice(words) => {
                    self.refuse_other_words(slot, field, words);
                    self.slot_text(slot, field)
                }
                FieldKind::Form(_) => {
                    self.gaps.any |= form.is_none();
                    form.or(facts.forms.first()).map(|form| Value::Word(form.name))
                }
                FieldKind::Word(words) => {
                    let typed = slot.section.typed(field.key);
                    typed.and_then(|(typed, _)| words.iter().find(|word| **word == typed)).map(|word| Value::Word(word))
                }
                FieldKind::Seconds { .. } => {
                    slot.section.parsed(field.key).map(|Seconds(seconds)| Value::Number(seconds))
                }
                FieldKind::Number { .. } => slot.section.parsed(field.key).map(Value::Number),
                FieldKind::Flag => slot.section.parsed(field.key).map(Value::Flag),
                FieldKind::Cards { .. } => Some(Value::Cards(self.cards(slot, field))),
                FieldKind::Extra => None,
            };
            if let Some(value) = value.or_else(|| self.stand_in(field)) {
                values.set(field, value);
            }
        }
        Stage::of(slot.channel, values)
    }

    /// The value of a key that a channel always has, if the file gives it none.
    fn stand_in(&mut self, field: &Field) -> Option<Value<Text>> {
        let value = match field.kind {
            FieldKind::Template | FieldKind::Message | FieldKind::Choice(_) if field.need == Need::Always => {
                Value::Text(Text::stand_in())
            }
            FieldKind::Number { .. } => Value::Number(field.default?.parse().ok()?),
            _ => return None,
        };
        self.gaps.any = true;
        Some(value)
    }

    /// The text under a key of a channel.
    fn slot_text(&mut self, slot: &Slot<'_>, field: &Field) -> Option<Value<Text>> {
        let entry = slot.section.entry(field.key)?;
        self.text(format!("{}.{}", slot.path, field.key), entry).map(Value::Text)
    }

    /// Reports the missing keys that the operation requires, together if the reason is the same.
    fn require(&mut self, kind: Option<OperationKind>, slot: &Slot<'_>) {
        let mut missing: Vec<(&str, Vec<&str>)> = Vec::new();
        for field in slot.channel.facts().fields {
            let why = match (field.need, kind) {
                (Need::InPipeline(why), Some(OperationKind::Pipeline)) => why,
                (Need::OutsidePipeline(why), Some(kind)) if kind != OperationKind::Pipeline => why,
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
            let keys = list_all(keys);
            let finding = Finding::new(&rules::MISSING_KEY, format!("`{}` needs {keys}", slot.channel));
            self.report.at(slot.name_span, finding.help(format!("add {keys}: {why}")));
        }
    }

    /// Tells a constant text that is none of the words that it may become.
    fn refuse_other_words(&mut self, slot: &Slot<'_>, field: &Field, words: &'static [&'static str]) {
        let Some((text, span)) = slot.section.typed(field.key) else { return };
        let constant = !text.contains("{{") && !text.contains("{%");
        if constant && !words.contains(&text) {
            let Field { key, example, .. } = field;
            let message = format!("`{key}` is `{text}`, but must be {}", list(words.iter().copied()));
            let help = format!("write `{key}: {example}`");
            self.report.at(span, Finding::new(&rules::UNKNOWN_VALUE, message).help(help));
        }
    }

    /// The cards under a key, with stand-ins for missing or wrong parts.
    fn cards(&mut self, slot: &Slot<'_>, field: &Field) -> Vec<Card<Text>> {
        let cards = slot.section.value(field.key).and_then(|node| node.items()).unwrap_or_default();
        let texts = cards.iter().enumerate().map(|(index, card)| {
            let path = format!("{}.{}[{index}]", slot.path, field.key);
            let mut text = |key: &str| {
                let entry: &Entry = card.get(key)?;
                self.text(format!("{path}.{key}"), entry)
            };
            let [caption, image, url, button] = Card::<()>::FIELDS.map(|field| text(field.key));
            let [image, url, button] = [image, url, button].map(|text| self.or_stand_in(text, Text::stand_in));
            Card { caption, image, url, button }
        });
        texts.collect()
    }
}
