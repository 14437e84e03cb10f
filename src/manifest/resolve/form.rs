//! The form of a message, where its channel has several: which one it is, and what each needs.

use super::Resolver;
use super::channels::ChannelEntry;
use crate::domain::{FieldKind, MessageForm, OperationKind};
use crate::finding::{Finding, join_names, rules};

impl Resolver<'_> {
    /// The form of a channel's message; nothing if it has none of that name, or has but one.
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

    /// A stage of a pipeline carries the first form; keys of others are told as not carried.
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
