//! A channel for one-time codes that says the same to everybody.

use crate::domain::{NamedTemplate, Stage};
use crate::finding::{Rule, RuleText};
use crate::message::{TextProblem, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "code-for-all",
    RuleText {
        cause: "All recipients would get the same code. Telegram and verification calls are for one-time codes \
                only.",
        example: &["channels: [{ telegram: { message: \"1234\" } }]"],
        fix: "send each recipient their own code, for example with `{{ code }}`, or use another channel",
    },
);

/// The text of a code that has nothing of its recipient.
pub(super) fn check_constant_code(stage: &Stage<NamedTemplate>) -> Vec<TextProblem> {
    let facts = stage.channel().facts();
    let messages = stage.texts().filter(|(field, _)| facts.personal && field.key == "message");
    let same = messages.filter(|(_, text)| !text.source.contains("{{") && !text.source.contains("{%"));
    let problem = |(_, text): (_, &NamedTemplate)| {
        let title = facts.title;
        let message = format!("all recipients get the same {title} message, but {title} is for one-time codes");
        let help = "insert each recipient's own code, for example with `{{ code }}`, or use another channel";
        problem_at(text, 0..text.source.len(), &RULE, message, help)
    };
    same.map(problem).collect()
}
