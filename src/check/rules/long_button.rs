//! A caption that some accounts do not show whole.

use crate::domain::{Stage, Text};
use crate::finding::Rule;
use crate::message::{TextProblem, problem_at};

pub(super) static RULE: Rule = Rule::note(
    "long-button",
    "A Viber button may have 30 characters, and with some accounts only 19.",
    "Write at most 19 characters, or ask the gateway's support what your account allows.",
);

/// The captions that are the same for everybody and longer than every account allows.
pub(super) fn judge(stage: &Stage<Text>) -> Vec<TextProblem> {
    let constant = |text: &Text| !text.source.contains("{{") && !text.source.contains("{%");
    let problems = stage.texts().filter_map(|(field, text)| {
        let (safe, length) = (field.everywhere?, text.source.chars().count());
        let (title, noun) = (stage.channel().facts().title, field.noun);
        (constant(text) && length > safe).then(|| {
            let message = format!("the {title} {noun} has {length} characters, and some accounts allow only {safe}");
            problem_at(text, 0..text.source.len(), &RULE, message, "shorten it, or ask the gateway's support")
        })
    });
    problems.collect()
}
