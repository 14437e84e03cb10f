//! Tags of HTML in texts.

use crate::check::broken_text::html_tag;
use crate::domain::Text;
use crate::finding::Rule;
use crate::message::{TextProblem, problem_at, said};

pub(super) static RULE: Rule = Rule::warning(
    "html-tag",
    "A message is no web page: `<br>` and `<b>` are sent as they stand.",
    "Remove the tags; write a line break where one is meant, with the text behind `|` in YAML.",
);

/// The first tag of a text that everybody gets.
pub(super) fn judge(text: &Text) -> Vec<TextProblem> {
    let first = said(text).find_map(|(part, at)| html_tag(part).map(|tag| at.start + tag.start..at.start + tag.end));
    let problem = first.map(|span| {
        let tag = &text.source[span.clone()];
        let is_break = tag.to_ascii_lowercase().starts_with("<br");
        let help = if is_break {
            "write a line break: put the text behind `|`, in lines of its own"
        } else {
            "remove the tags"
        };
        let message = format!("`{tag}` would be sent as it stands");
        problem_at(text, span, &RULE, message, help)
    });
    problem.into_iter().collect()
}
