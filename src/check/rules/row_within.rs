//! A cell with what looks like a row: its quotes may be misplaced, and somebody would get nothing.

use super::rows::first_of;
use crate::check::Survey;
use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::warning(
    "row-within",
    "A quoted cell may hold anything, but a line in it that has the cells and the number of a row is perhaps a row: misplaced \
     quotes hide it, and that person gets nothing.",
    "Look at the cell in a spreadsheet. If the line is a row, mend the quotes around it; if it is text, all is well.",
);

/// The rows with a cell that holds what looks like a row.
#[must_use]
pub fn rows_within(survey: &Survey) -> Option<Finding> {
    let rows = Some(&survey.rows_within).filter(|rows| !rows.is_empty())?;
    let message = format!("a cell with several lines holds what looks like a row: {}", first_of(rows));
    Some(Finding::new(&RULE, message).help("if somebody is missing there, mend the quotes; if it is text, all is well"))
}
