//! What is wrong with the texts of a message, and what is worth a look. Pure.
//!
//! The rules are those of `check`. A finished text has no template: what stands in it is sent as it stands.

use std::borrow::Cow;

use crate::audience::ValidNumber;
use crate::check::check_message;
use crate::domain::{MessageContent, Stage, measure_sms};
use crate::finding::Finding;

/// How many parts of an SMS need no warning.
const FEW_PARTS: usize = 3;
/// How the tags of templates begin.
const TAGS: [&str; 2] = ["{{", "{%"];

/// Why a message cannot be sent.
pub(super) fn find_errors(content: &MessageContent<Cow<'_, str>>) -> Vec<String> {
    let unfilled = content.stages.iter().flat_map(|stage| {
        let title = stage.channel().facts().title;
        stage.texts().filter_map(move |(field, text)| {
            let tag = TAGS.into_iter().find(|tag| text.contains(tag))?;
            let noun = field.noun;
            Some(format!("the {title} {noun} contains `{tag}`, which would be sent literally; write the value instead"))
        })
    });
    let findings = check_message(content);
    unfilled.chain(findings.iter().filter(|finding| finding.is_error()).map(describe_finding)).collect()
}

/// What a person should look at before they confirm a message.
pub(super) fn find_warnings(content: &MessageContent<Cow<'_, str>>, number: Option<ValidNumber>) -> Vec<String> {
    let mut warnings: Vec<String> =
        check_message(content).iter().filter(|finding| !finding.is_error()).map(describe_finding).collect();
    for stage in &content.stages {
        let title = stage.channel().facts().title;
        let texts = stage.texts().filter(|(_, text)| !TAGS.into_iter().any(|tag| text.contains(tag)));
        warnings.extend(texts.filter(|(_, text)| has_word_in_braces(text)).map(|(field, _)| {
            format!(
                "the {title} {} contains a word in braces, which would be sent literally; is a value missing?",
                field.noun
            )
        }));
    }
    let parts = content.stages.iter().filter_map(Stage::billed_text).map(|text| measure_sms(text).parts);
    warnings.extend(
        parts
            .filter(|parts| *parts > FEW_PARTS)
            .map(|parts| format!("the SMS has {parts} parts, and each part is billed")),
    );
    let mobile = content.stages.iter().all(|stage| stage.channel().facts().mobile);
    if mobile && number.is_some_and(|number| number.landline) {
        let landline = "the number belongs to a landline or a service, which cannot receive this message; ask for a \
                        mobile number";
        warnings.push(landline.to_owned());
    }
    warnings
}

/// Whether a word stands in braces, as programs write a value that is to be filled in.
fn has_word_in_braces(text: &str) -> bool {
    let is_word = |inner: &str| {
        inner.starts_with(char::is_alphabetic) && inner.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
    };
    text.split('{').skip(1).any(|rest| rest.split_once('}').is_some_and(|(inner, _)| is_word(inner)))
}

fn describe_finding(finding: &Finding) -> String {
    match &finding.help {
        Some(help) => format!("{}; {help}", finding.message),
        None => finding.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_in_braces_counts_as_a_missing_value() {
        for text in ["Dear {name}", "{first_name}, hello", "{user.name}", "a } {ім'я} {рік}"] {
            assert!(has_word_in_braces(text), "{text}");
        }
        for text in ["Dear Olena", "{}", "{ }", "{1}", "a { b } c", "}name{", "{name"] {
            assert!(!has_word_in_braces(text), "{text}");
        }
    }
}
