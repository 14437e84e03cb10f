//! Messages with a hole, because their row has nothing in a column that the text relies on.

use super::rows::first_of;
use crate::check::Survey;
use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::warning(
    "empty-cell",
    "Where a text names a column and the row has nothing there, the message has a hole: \u{201c}Hello, !\u{201d}.",
    "Fill the cells, or give the text another word for these rows with `default(value='…', boolean=true)`.",
);

/// The columns that a text relies on and that are empty in rows to be sent to, with how many and the first.
#[must_use]
pub fn empty_cells(survey: &Survey) -> Vec<Finding> {
    let finding = |(name, rows): (&String, _)| {
        let finding =
            Finding::new(&RULE, format!("`{name}` is empty in {}; the message has a hole there", first_of(rows)));
        finding.help(format!(
            "fill the cells, or write `{{{{ {name} | default(value='…', boolean=true) }}}}` with another word for these rows"
        ))
    };
    survey.empty.iter().map(finding).collect()
}
