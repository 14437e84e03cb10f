//! Columns of the list that nothing uses.

use crate::check::Survey;
use crate::domain::OperationKind;
use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::note(
    "unused-column",
    RuleText {
        cause: "A column of the list is not used. You might have forgotten to insert it into a message.",
        example: &["message: \"Hi, {{ first_name }}!\"             # the column `code` is not used"],
        fix: "use the column in a message, or ignore this note; the results contain the column in any case",
    },
);

/// The most columns that are named.
const MAX_NAMED: usize = 8;

/// The columns that neither texts nor the campaign use, all in one.
#[must_use]
pub(super) fn check_unused_columns(survey: &Survey, kind: OperationKind) -> Option<Finding> {
    if kind.is_single() {
        return None;
    }
    let unused: Vec<String> = survey
        .columns
        .iter()
        .filter(|column| !column.is_used && !column.header.trim().is_empty())
        .map(|column| format!("`{}`", column.header))
        .collect();
    let (count, named) = (unused.len(), unused.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", "));
    let message = match count {
        0 => return None,
        1 => format!("no message uses the column {named}"),
        2..=MAX_NAMED => format!("no message uses the columns {named}"),
        _ => format!("no message uses the columns {named} and {} more", count - MAX_NAMED),
    };
    Some(Finding::new(&RULE, message))
}
