//! Characters in texts as addresses write them.

use crate::check::broken_text::url_escape;
use crate::domain::Text;
use crate::finding::Rule;
use crate::message::{TextProblem, problem_at, said};

pub(super) static RULE: Rule = Rule::warning(
    "url-escape",
    "`%0A` is a line break in an address only; in a text it is sent as it stands.",
    "Write a line break or a blank itself.",
);

/// The first such character of a text that everybody gets.
pub(super) fn judge(text: &Text) -> Vec<TextProblem> {
    let first =
        said(text).find_map(|(part, at)| url_escape(part).map(|found| at.start + found.start..at.start + found.end));
    let problem = first.map(|span| {
        let escape = &text.source[span.clone()];
        let help = match escape {
            "%20" => "write a blank",
            _ => "write a line break: put the text behind `|`, in lines of its own",
        };
        let message = format!("`{escape}` would be sent as it stands");
        problem_at(text, span, &RULE, message, help)
    });
    problem.into_iter().collect()
}
