//! UTF-8 text that a program read in another encoding.

use std::ops::Range;

use crate::check::broken_text::find_misread_word;
use crate::domain::NamedTemplate;
use crate::finding::{Finding, Rule, RuleText};
use crate::message::{TextProblem, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "misread-encoding",
    RuleText {
        cause: "UTF-8 text was read in another encoding. Non-ASCII letters became two or three other characters: \
                `cafÃ©` for `café`.",
        example: &["message: \"See you at the cafÃ©\""],
        fix: "export the list again from its source as UTF-8, or type the text again",
    },
);

/// A text that everybody gets.
pub(super) fn report_text(text: &NamedTemplate, span: Range<usize>) -> TextProblem {
    let word = &text.source[span.clone()];
    let help = match find_misread_word(word) {
        Some((_, said)) => format!("write `{said}`, and save the file as UTF-8"),
        None => "type the word again, and save the file as UTF-8".to_owned(),
    };
    let message = format!("`{word}` is UTF-8 text that was read in another encoding");
    problem_at(text, span, &RULE, message, &help)
}

/// The cells of a column.
pub(super) fn report_rows(column: &str, example: &str, rows: &str) -> Finding {
    let said = find_misread_word(example).map(|(_, said)| format!(", which should be `{said}`")).unwrap_or_default();
    let message =
        format!("the column `{column}` has UTF-8 text that was read in another encoding, in {rows}: `{example}`{said}");
    Finding::new(&RULE, message).help("export the list again from its source as UTF-8")
}
