//! Control characters in cells and texts.

use std::ops::Range;

use crate::domain::NamedTemplate;
use crate::finding::{Finding, Rule, RuleText};
use crate::message::{TextProblem, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "control-character",
    RuleText {
        cause: "A message or cell contains a control character. Phones show a box or nothing in its place, and the \
                SMS gets longer.",
        example: &["message: \"Sale\\x96today\""],
        fix: "remove the character, or export the list again as UTF-8; the character is often a dash or a quote from \
            another encoding",
    },
);

/// A text that everybody gets.
pub(super) fn report_text(text: &NamedTemplate, span: Range<usize>) -> TextProblem {
    let message = format!("this word contains a control character{}", format_code_point(&text.source[span.clone()]));
    problem_at(text, span, &RULE, message, "type the word again")
}

/// The cells of a column.
pub(super) fn report_rows(column: &str, example: &str, rows: &str) -> Finding {
    let message = format!("the column `{column}` contains a control character in {rows}{}", format_code_point(example));
    Finding::new(&RULE, message).help("export the list again as UTF-8, or remove the character from the list")
}

/// The code point of the first control character, which cannot be displayed.
fn format_code_point(word: &str) -> String {
    let found = word.chars().find(|c| c.is_control());
    found.map(|c| format!(": U+{:04X}", u32::from(c))).unwrap_or_default()
}
