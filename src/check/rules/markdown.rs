//! Words between double asterisks in texts.

use crate::check::broken_text::markdown;
use crate::domain::Text;
use crate::finding::Rule;
use crate::message::{TextProblem, problem_at, said};

pub(super) static RULE: Rule = Rule::warning(
    "markdown",
    "No channel makes words between `**` bold: the asterisks are sent as they stand.",
    "Remove the asterisks; WhatsApp and Viber make words between single ones bold.",
);

/// The first such words of a text that everybody gets.
pub(super) fn judge(text: &Text) -> Vec<TextProblem> {
    let first =
        said(text).find_map(|(part, at)| markdown(part).map(|found| at.start + found.start..at.start + found.end));
    let problem = first.map(|span| {
        let bold = &text.source[span.clone()];
        let help = format!("write `{}`", bold.trim_matches('*'));
        let message = format!("`{bold}` would be sent with its asterisks");
        problem_at(text, span, &RULE, message, &help)
    });
    problem.into_iter().collect()
}
