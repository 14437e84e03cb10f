//! Texts that are the same for everybody, and that a channel would not take.

use super::lex::is_constant;
use super::problem::TextProblem;
use crate::domain::{MessageContent, NamedTemplate, TextLimit, find_text_violation};
use crate::finding::rules;

/// The limits of the channels that constant texts break.
pub(super) fn check_constants(content: &MessageContent<NamedTemplate>) -> Vec<TextProblem> {
    let mut problems = Vec::new();
    for stage in &content.stages {
        for (field, text) in stage.texts().filter(|(_, text)| is_constant(&text.source)) {
            let violation = find_text_violation(stage, field, &stage.outgoing_text(field, &text.source));
            problems.extend(violation.map(|violation| {
                let (whole, message) = (0..text.source.len(), violation.to_string());
                let help = limit_help(field.limit, &text.source);
                TextProblem::new(&text.name, &text.source, whole, &rules::TEXT_REFUSED, message).with_help(help)
            }));
        }
    }
    problems
}

/// How a text comes within its limit.
fn limit_help(limit: TextLimit, text: &str) -> Option<String> {
    let bare = !text.contains("://") && !text.contains(char::is_whitespace) && text.contains('.');
    match limit {
        TextLimit::NotEmpty => None,
        TextLimit::AtMost(_) => Some("shorten the text".to_owned()),
        TextLimit::Parts => Some("shorten the message, or raise `max_parts`, which costs more".to_owned()),
        TextLimit::AlphaName => Some("write the sender name exactly as registered".to_owned()),
        TextLimit::WebAddress | TextLimit::Image(_) if bare => {
            Some(format!("write `https://{}`", text.trim_start_matches('/')))
        }
        TextLimit::WebAddress | TextLimit::Image(_) => {
            Some("write the whole URL, for example `https://shop.example/sale`".to_owned())
        }
        TextLimit::Digits { .. } => Some("write only the code, for example `{{ code }}`".to_owned()),
        TextLimit::OneOf(_) => Some("write one of these values".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::message::compile_messages;
    use crate::message::fixtures::{names, sms_content};

    #[test]
    fn channel_limits_are_reported_with_other_problems() {
        let problems =
            compile_messages(&sms_content("Olena & Company", "{{ nope }}"), &names(), &mut |_| Err("none".to_owned()))
                .unwrap_err();
        let told: Vec<&str> = problems.iter().map(|problem| problem.rule.id).collect();
        assert_eq!(told, ["unknown-variable", "text-refused"]);
    }
}
