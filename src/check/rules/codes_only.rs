//! Words where a channel carries a code alone.

use crate::domain::{NamedTemplate, Stage, TextLimit};
use crate::finding::{Rule, RuleText};
use crate::message::{TextProblem, constant_parts, problem_at};

pub(super) static RULE: Rule = Rule::error(
    "codes-only",
    RuleText {
        cause: "Telegram sends only one-time codes. The gateway accepts 4 to 8 digits, without words or spaces.",
        example: &["channels: [{ telegram: { message: \"Your code: {{ code }}\" } }]"],
        fix: "write only the code, `message: \"{{ code }}\"`, or use another channel for words",
    },
);

/// The first words in the text of a code, where everybody gets them.
pub(super) fn check_code_text(stage: &Stage<NamedTemplate>) -> Vec<TextProblem> {
    let codes = stage.texts().filter(|(field, _)| matches!(field.limit, TextLimit::Digits { .. }));
    // Without a tag it is judged whole, and what stands in a condition may not be sent.
    let filled = codes.filter(|(_, text)| text.source.contains("{{") && !text.source.contains("{%"));
    let problem = |(_, text): (_, &NamedTemplate)| {
        let (words, at) = constant_parts(text).find(|(part, _)| part.bytes().any(|byte| !byte.is_ascii_digit()))?;
        let title = stage.channel().facts().title;
        let words = if words.trim().is_empty() { "a space".to_owned() } else { format!("`{}`", words.trim()) };
        let message = format!("{title} cannot send {words}: it accepts only a code of 4 to 8 digits");
        let help = "write only the code, for example `message: \"{{ code }}\"`, or use `sms` or `viber` for words";
        Some(problem_at(text, at, &RULE, message, help))
    };
    filled.filter_map(problem).collect()
}
