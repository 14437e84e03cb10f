//! Columns of the list that nothing uses.

use crate::check::Survey;
use crate::domain::OperationKind;
use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::note(
    "unused-column",
    "A column that no text uses is either no matter of this campaign, or was forgotten in its texts.",
    "There is nothing to mend if it is no matter of the campaign; it stands in the results all the same.",
);

/// The most columns that are named.
const NAMED: usize = 8;

/// The columns that neither texts nor the campaign use, all in one.
#[must_use]
pub(super) fn judge(survey: &Survey, kind: OperationKind) -> Option<Finding> {
    if kind.is_single() {
        return None;
    }
    let unused: Vec<String> = survey
        .columns
        .iter()
        .filter(|column| !column.used && !column.header.trim().is_empty())
        .map(|column| format!("`{}`", column.header))
        .collect();
    let (count, named) = (unused.len(), unused.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", "));
    let message = match count {
        0 => return None,
        1 => format!("no text uses the column {named}"),
        2..=NAMED => format!("no text uses the columns {named}"),
        _ => format!("no text uses the columns {named} and {} more", count - NAMED),
    };
    Some(Finding::new(&RULE, message))
}
