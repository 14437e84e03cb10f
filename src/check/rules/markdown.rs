//! Markdown in texts.

use super::as_it_stands;
use crate::check::broken_text::markdown;
use crate::domain::Text;
use crate::finding::{Rule, RuleText, list_all};
use crate::message::{TextProblem, masked};

pub(super) static RULE: Rule = Rule::warning(
    "markdown",
    RuleText {
        cause: "Markdown would be sent literally. No channel renders `**bold**` or `[text](address)`.",
        example: &["message: \"**Sale** until Sunday\""],
        fix: "remove the Markdown, and write plain addresses; WhatsApp and Viber show `*word*` in bold",
    },
);

/// The words and links of a text that everybody gets.
pub(super) fn judge(text: &Text) -> Vec<TextProblem> {
    let help = |found: &[&str]| {
        let plain = found.iter().map(|found| match found.rsplit_once("](") {
            Some((_, address)) if found.starts_with('[') => address.trim_end_matches(')'),
            _ => found.trim_matches(['*', '_']),
        });
        format!("write {}", list_all(plain))
    };
    as_it_stands::finding(text, &markdown(&masked(text), &text.source), &RULE, help).into_iter().collect()
}
