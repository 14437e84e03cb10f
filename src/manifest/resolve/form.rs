//! The form of a message, where its channel has several: which one it is, and what each needs.

use super::Resolver;
use super::channels::Slot;
use crate::domain::{FieldKind, Form, OperationKind};
use crate::finding::{Finding, list_all, rules};

impl Resolver<'_> {
    /// The form of a channel's message; nothing if it has none of that name, or has but one.
    pub(super) fn form(&mut self, operation: Option<OperationKind>, slot: &Slot<'_>) -> Option<&'static Form> {
        let facts = slot.channel.facts();
        let named = facts.fields.iter().find(|field| matches!(field.kind, FieldKind::Form(_)))?.key;
        if operation == Some(OperationKind::Pipeline) {
            return self.pipeline_form(slot, named);
        }
        let keys: Vec<&str> = facts.keys_of_forms().collect();
        let typed = slot.section.typed(named);
        let form = match typed {
            Some((name, _)) => facts.forms.iter().find(|form| form.name == name)?,
            None => {
                let given: Vec<&str> = keys.iter().copied().filter(|key| slot.section.has(key)).collect();
                facts.form_of(&given)?
            }
        };
        let (title, name) = (facts.title, form.name);
        let missing = |key: &&&str| slot.section.entry(key).is_none() && !slot.section.has_misspelt(key);
        for key in form.needs.iter().filter(missing) {
            let (message, help) = match typed {
                Some(_) => (
                    format!("a {title} message of type `{name}` needs `{key}`"),
                    format!("add `{key}`, or change `{named}`"),
                ),
                None => {
                    let with = keys.iter().filter(|given| slot.section.has(given)).copied();
                    (format!("a {title} message with {} also needs `{key}`", list_all(with)), format!("add `{key}: …`"))
                }
            };
            self.report.at(slot.name_span, Finding::new(&rules::VIBER_TYPE, message).help(help));
        }
        for key in keys.iter().filter(|key| !form.has(key)) {
            let Some(entry) = slot.section.entry(key) else { continue };
            let message = format!("a {title} message of type `{name}` cannot have `{key}`");
            let has = list_all(form.needs.iter().copied());
            let help = format!("remove the key, or change the type; type `{name}` allows {has}");
            self.report.at(&entry.key_span, Finding::new(&rules::VIBER_TYPE, message).help(help));
        }
        Some(form)
    }

    /// A stage of a pipeline carries the first form; keys of others are told as not carried.
    fn pipeline_form(&mut self, slot: &Slot<'_>, named: &str) -> Option<&'static Form> {
        let facts = slot.channel.facts();
        let carried = facts.forms.first()?;
        if let Some((name, span)) = slot.section.typed(named).filter(|(name, _)| *name != carried.name) {
            let message = format!(
                "a pipeline can send a {} message only as type `{}`, not as `{name}`",
                facts.title, carried.name
            );
            self.report.at(span, Finding::new(&rules::NOT_CARRIED, message).help(format!("remove `{named}`")));
        }
        Some(carried)
    }
}
