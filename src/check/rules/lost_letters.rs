//! Letters that a program replaced with `?` or U+FFFD.

use std::ops::Range;

use crate::domain::NamedTemplate;
use crate::finding::{Finding, Rule, RuleText};
use crate::message::{TextProblem, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "lost-letters",
    RuleText {
        cause: "Letters were replaced with `?` or U+FFFD. A program saved the text in an encoding that does not \
                support them.",
        example: &["message: \"????? ???????!\""],
        fix: "export the list again from its source as UTF-8, or type the text again; the original characters are \
              lost",
    },
);

/// A text that everybody gets.
pub(super) fn report_text(text: &NamedTemplate, span: Range<usize>) -> TextProblem {
    let message = format!("the original characters of `{}` are lost", &text.source[span.clone()]);
    problem_at(text, span, &RULE, message, "type the word again, and save the file as UTF-8")
}

/// The cells of a column.
pub(super) fn report_rows(column: &str, example: &str, rows: &str) -> Finding {
    let message = format!("the original characters in the column `{column}` are lost in {rows}: `{example}`");
    Finding::new(&RULE, message)
        .help("export the list again from its source as UTF-8; the characters cannot be restored from this file")
}
