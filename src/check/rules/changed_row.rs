//! Rows that might already have a message, in a list with `duplicates: allow`.

use super::rows::describe_first_few;
use crate::check::{MIGHT_BE_SENT, Survey};
use crate::finding::{Finding, Rule, RuleText};
use crate::ledger::RowState;

pub(super) static RULE: Rule = Rule::warning(
    "changed-row",
    RuleText {
        cause: "The recipient might already have got a message. The row has changed: with `duplicates: allow`, rows are \
                identified by phone number and message text.",
        example: &["recipients: { file: list.csv, duplicates: allow }     # and a row was edited after the run"],
        fix: "restore the original row in the list, or send the changed row in a new `edition`",
    },
);

/// Skipped rows: a row with the same number got a message and is no longer in the list.
#[must_use]
pub fn check_changed_rows(survey: &Survey) -> Option<Finding> {
    let mut sets = survey.left_out.sets();
    let (.., rows) = sets.find(|(state, reason, _)| *state == RowState::Skipped && *reason == MIGHT_BE_SENT)?;
    let (what, number) = match rows.len() {
        1 => ("is skipped", "its number already got a message"),
        _ => ("are skipped", "their numbers already got messages"),
    };
    let message = format!(
        "{} {what}: {number} in this edition, for a row that is no longer in the list",
        describe_first_few(rows)
    );
    Some(Finding::new(&RULE, message).help("restore the original row, or send the changed row in a new `edition`"))
}
