//! Letters that a program replaced with `?` or U+FFFD.

use std::ops::Range;

use crate::domain::Text;
use crate::finding::{Finding, Rule};
use crate::message::{TextProblem, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "lost-letters",
    "If a program saves text in an encoding that lacks its letters, it writes `?` or U+FFFD instead, and these would be sent.",
    "Export the list again from its source as UTF-8, or type the text again: this file no longer has the letters.",
);

/// A text that everybody gets.
pub(super) fn in_text(text: &Text, span: Range<usize>) -> TextProblem {
    let message = format!("`{}` has lost its letters", &text.source[span.clone()]);
    problem_at(text, span, &RULE, message, "type the word again, and save the file as UTF-8")
}

/// The cells of a column.
pub(super) fn in_rows(column: &str, example: &str, rows: &str) -> Finding {
    let message = format!("the column `{column}` has lost letters in {rows}: `{example}`");
    Finding::new(&RULE, message)
        .help("export the list again from its source as UTF-8; this file no longer has the letters")
}
