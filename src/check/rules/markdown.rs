//! Markdown in texts.

use super::as_it_stands;
use crate::check::broken_text::find_markdown;
use crate::domain::NamedTemplate;
use crate::finding::{Rule, RuleText, join_names};
use crate::message::{TextProblem, mask_tags};

pub(super) static RULE: Rule = Rule::warning(
    "markdown",
    RuleText {
        cause: "Markdown would be sent literally. No channel renders `**bold**` or `[text](address)`.",
        example: &["message: \"**Sale** until Sunday\""],
        fix: "remove the Markdown, and write plain addresses; WhatsApp and Viber show `*word*` in bold",
    },
);

/// The words and links of a text that everybody gets.
pub(super) fn check_markdown(text: &NamedTemplate) -> Vec<TextProblem> {
    let help = |found: &[&str]| {
        let plain = found.iter().map(|found| match found.rsplit_once("](") {
            Some((_, address)) if found.starts_with('[') => address.trim_end_matches(')'),
            _ => found.trim_matches(['*', '_']),
        });
        format!("write {}", join_names(plain))
    };
    as_it_stands::markup_finding(text, &find_markdown(&mask_tags(text), &text.source), &RULE, help)
        .into_iter()
        .collect()
}
