//! Texts that are the same for everybody: what is wrong with them is found before anything is sent.

use crate::domain::text_violation;
use crate::finding::{Finding, Rule};
use crate::manifest::{Brief, Places};
use crate::message::Messages;

pub(super) static RULE: Rule = Rule::error(
    "text-refused",
    "The gateway takes, charges and then drops texts that no phone will show.",
    "Bring the text within the limits of its channel.",
);

/// The limits that constant texts break.
pub(in crate::check) fn judge(brief: &Brief, messages: &Messages, places: Option<&Places>) -> Vec<Finding> {
    let constants = messages.constants();
    let mut findings = Vec::new();
    for (stage, constant) in brief.content.stages.iter().zip(&constants.stages) {
        for ((field, text), (_, value)) in stage.texts().zip(constant.texts()) {
            let Some(violation) = value.and_then(|value| text_violation(stage, field, value)) else { continue };
            let place = places.and_then(|places| places.of_text(&text.name, (1, 1), text.source.chars().count()));
            findings.push(Finding::new(&RULE, violation.to_string()).at(place));
        }
    }
    findings
}
