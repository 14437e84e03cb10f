//! Characters as HTML writes them.

use std::ops::Range;

use crate::check::broken_text::typed;
use crate::domain::Text;
use crate::finding::{Finding, Rule};
use crate::message::{TextProblem, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "html-entity",
    "A message is no web page: `&amp;`, `&#039;` and `&nbsp;` are sent as they stand.",
    "Write the character itself, and have the list exported without HTML.",
);

/// A text that everybody gets.
pub(super) fn in_text(text: &Text, span: Range<usize>) -> TextProblem {
    let entity = &text.source[span.clone()];
    let help = match typed(entity) {
        Some(character) if character == " " => "write a blank".to_owned(),
        Some(character) => format!("write `{character}`"),
        None => "write the character itself".to_owned(),
    };
    let message = format!("`{entity}` would be sent as it stands");
    problem_at(text, span, &RULE, message, &help)
}

/// The cells of a column.
pub(super) fn in_rows(column: &str, example: &str, rows: &str) -> Finding {
    let meant = typed(example).filter(|character| character != " ").map(|character| format!(" for `{character}`"));
    let message = format!("the column `{column}` has `{example}`{} in {rows}", meant.unwrap_or_default());
    Finding::new(&RULE, message).help("export the list again without HTML, or replace these characters in the list")
}
