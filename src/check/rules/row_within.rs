//! A cell with what looks like a row: its quotes may be misplaced, and somebody would get nothing.

use super::rows::describe_first;
use crate::check::Survey;
use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "row-within",
    RuleText {
        cause: "A quoted cell seems to contain a row. A misplaced quote might hide a recipient, who would not get a \
                message.",
        example: &["list.csv: phone,first_name", "          380501234567,\"Olena", "          380671234567,Taras\""],
        fix: "check the cell in a spreadsheet; if it contains a separate row, correct the quotes",
    },
);

/// The rows with a cell that holds what looks like a row.
#[must_use]
pub fn check_embedded_rows(survey: &Survey) -> Option<Finding> {
    let rows = Some(&survey.embedded_rows).filter(|rows| !rows.is_empty())?;
    let message = format!("a cell with several lines seems to contain another row: {}", describe_first(rows));
    let help =
        "if a recipient is missing from the list, correct the quotes; if the cell is just text, ignore this warning";
    Some(Finding::new(&RULE, message).help(help))
}
