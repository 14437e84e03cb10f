//! Rows that might already have a message, in a list with `duplicates: allow`.

use super::rows::first_few;
use crate::check::{MIGHT_BE_SENT, Survey};
use crate::finding::{Finding, Rule};
use crate::ledger::State;

pub(super) static RULE: Rule = Rule::warning(
    "changed-row",
    "With `duplicates: allow`, a row is identified by its number and text. If a row that got a message is missing from the list, \
     another row of its number might be that row with changes.",
    "Restore the earlier row in the list, or send the new row under another `edition`.",
);

/// Skipped rows: a row with the same number got a message and is no longer in the list.
#[must_use]
pub fn changed_rows(survey: &Survey) -> Option<Finding> {
    let mut sets = survey.left_out.sets();
    let (.., rows) = sets.find(|(state, reason, _)| *state == State::Skipped && *reason == MIGHT_BE_SENT)?;
    let (what, number) = if rows.len() == 1 { ("is skipped", "its number") } else { ("are skipped", "their number") };
    let message = format!(
        "{} {what}: a row with {number} already has a message of this edition, and its text is no longer in the list",
        first_few(rows)
    );
    Some(Finding::new(&RULE, message).help("restore the earlier row, or send this row under another `edition`"))
}
