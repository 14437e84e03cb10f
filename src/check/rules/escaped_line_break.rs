//! Line breaks in texts that are written as `\n`.

use crate::check::broken_text::escaped_line_break;
use crate::domain::Text;
use crate::finding::Rule;
use crate::message::{TextProblem, problem_at, said};

pub(super) static RULE: Rule = Rule::warning(
    "escaped-line-break",
    "`\\n` is a line break between double quotes of YAML only; between single quotes and in text files it is sent as it stands.",
    "Write the line break itself, or put the text between double quotes in the campaign file.",
);

/// The first `\n` of a text that everybody gets.
pub(super) fn judge(text: &Text) -> Vec<TextProblem> {
    let first = said(text)
        .find_map(|(part, at)| escaped_line_break(part).map(|found| at.start + found.start..at.start + found.end));
    let problem = first.map(|span| {
        let message = format!("`{}` would be sent as it stands", &text.source[span.clone()]);
        let help = "write a line break itself; in the campaign file put the text behind `|`, or between double quotes";
        problem_at(text, span, &RULE, message, help)
    });
    problem.into_iter().collect()
}
