//! Texts chosen by a column (`by`), if no row of the list matches one.

use crate::check::survey::Survey;
use crate::check::unmatched_cells::UnmatchedCells;
use crate::finding::{Finding, Rule, RuleText};
use crate::ledger::RowState;
use crate::manifest::CampaignBrief;

pub(super) static RULE: Rule = Rule::error(
    "no-text-chosen",
    RuleText {
        cause: "No row matches a key under `texts`. The words are probably spelled differently in the list.",
        example: &["message: { by: first_name, texts: { ivan: \"Hi, Ivan!\" } }"],
        fix: "spell the words as in the list, or add `else` with a message for all other rows",
    },
);

/// The error that no row has a text. There is none if a row has one, if rows are left out for another reason, or if the
/// campaign permits that all rows are invalid.
pub(in crate::check) fn check_no_text_chosen(
    brief: &CampaignBrief,
    survey: &Survey,
    unmatched: &UnmatchedCells,
) -> Option<Finding> {
    let invalid = survey.left_out.count_rows(RowState::Invalid);
    let has_other_reason = survey.left_out.sets().any(|(state, reason, rows)| {
        !rows.is_empty() && (state != RowState::Invalid || !unmatched.is_unmatched_reason(reason))
    });
    let may_be_empty = brief.may_be_empty || !brief.max_invalid.is_exceeded_by(invalid, invalid);
    if may_be_empty || has_other_reason || survey.count_planned() > 0 {
        return None;
    }
    let without_text = survey.failing.iter().filter(|(reason, _)| unmatched.is_unmatched_reason(reason));
    let rows = |reason: &str| {
        survey.left_out.sets().find(|(_, other, _)| *other == reason).map_or(0, |(_, _, rows)| rows.len())
    };
    let (_, failing) = without_text.max_by_key(|(reason, _)| rows(reason))?;
    let message = format!("no row gets a message: {}", failing.message);
    let finding = Finding::new(&RULE, message).at(failing.place.clone());
    Some(match &failing.help {
        Some(help) => finding.help(help.clone()),
        None => finding,
    })
}
