//! Rows that might have a message, in a list with `duplicates: allow`.

use super::rows::first_few;
use crate::check::{MIGHT_BE_SENT, Survey};
use crate::finding::{Finding, Rule};
use crate::ledger::State;

pub(super) static RULE: Rule = Rule::warning(
    "changed-row",
    "With `duplicates: allow`, a row is known again by its number and its text. If a row with a message is not in the list any more, \
     it was removed or changed, and another row of its number can be the changed one.",
    "Put the earlier row back into the list, or send the row under another `edition`.",
);

/// The rows that are skipped because a row of their number has a message and is not in the list any more.
#[must_use]
pub fn changed_rows(survey: &Survey) -> Option<Finding> {
    let mut sets = survey.left_out.sets();
    let (.., rows) = sets.find(|(state, reason, _)| *state == State::Skipped && *reason == MIGHT_BE_SENT)?;
    let (what, number) = if rows.len() == 1 { ("is skipped", "its number") } else { ("are skipped", "their number") };
    let message = format!(
        "{} {what}: a row of {number} has the message of this edition, and its text is not in the list any more",
        first_few(rows)
    );
    Some(Finding::new(&RULE, message).help("put the earlier row back, or send the row under another `edition`"))
}
