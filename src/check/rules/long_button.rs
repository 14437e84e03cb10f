//! A caption that some accounts do not show whole.

use crate::domain::{NamedTemplate, Stage};
use crate::finding::{Rule, RuleText};
use crate::message::{TextProblem, problem_at};

pub(super) static RULE: Rule = Rule::note(
    "long-button",
    RuleText {
        cause: "A Viber button has more than 19 characters. Up to 30 are allowed, but some accounts allow only 19.",
        example: &[
            "channels: [{ viber: { signature: OlenaCo, message: Hi, button: \"Shop the autumn sale now\",",
            "                      link: \"https://shop.example\", image: \"https://shop.example/a.png\" } }]",
        ],
        fix: "shorten the button text to 19 characters, or ask the gateway's support team what your account allows",
    },
);

/// The captions that are the same for everybody and longer than every account allows.
pub(super) fn check_long_buttons(stage: &Stage<NamedTemplate>) -> Vec<TextProblem> {
    let constant = |text: &NamedTemplate| !text.source.contains("{{") && !text.source.contains("{%");
    let problems = stage.texts().filter_map(|(field, text)| {
        let (safe, length) = (field.safe_length?, text.source.chars().count());
        let (title, noun) = (stage.channel().facts().title, field.noun);
        (constant(text) && length > safe).then(|| {
            let message = format!("the {title} {noun} has {length} characters, but some accounts allow only {safe}");
            let help = "shorten the text, or ask the gateway's support team what your account allows";
            problem_at(text, 0..text.source.len(), &RULE, message, help)
        })
    });
    problems.collect()
}
