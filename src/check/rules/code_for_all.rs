//! A channel for one-time codes that says the same to everybody.

use crate::domain::{Stage, Text};
use crate::finding::Rule;
use crate::message::{TextProblem, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "code-for-all",
    "The gateway has Telegram for one-time codes, and recommends calls for them alone; a text that is identical for everybody is not a code.",
    "Send each recipient their own code, or use another channel.",
);

/// The text of a code that has nothing of its recipient.
pub(super) fn judge(stage: &Stage<Text>) -> Vec<TextProblem> {
    let facts = stage.channel().facts();
    let messages = stage.texts().filter(|(field, _)| facts.personal && field.key == "message");
    let same = messages.filter(|(_, text)| !text.source.contains("{{") && !text.source.contains("{%"));
    let problem = |(_, text): (_, &Text)| {
        let title = facts.title;
        let message = format!("the {title} message is the same for everybody, and {title} is for one-time codes");
        let help = "say each person's code in it, such as `{{ code }}`, or take another channel";
        problem_at(text, 0..text.source.len(), &RULE, message, help)
    };
    same.map(problem).collect()
}
