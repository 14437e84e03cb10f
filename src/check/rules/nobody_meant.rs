//! A condition that nobody of the list passes.

use crate::check::FILTERED;
use crate::check::survey::Survey;
use crate::finding::{Finding, Rule, RuleText};
use crate::ledger::RowState;
use crate::manifest::CampaignBrief;

pub(super) static RULE: Rule = Rule::error(
    "nobody-meant",
    RuleText {
        cause: "No row matches the condition `where`. A word is probably spelled differently in the list.",
        example: &["recipients: { file: list.csv, where: first_name == \"olena\" }     # the list has Olena"],
        fix: "spell the word exactly as in the list; if an empty selection is fine, write `empty: ok`",
    },
);

/// That `recipients.where` means nobody; nothing where it means somebody, or where that is fine.
pub(in crate::check) fn check_nobody_meant(brief: &CampaignBrief, survey: &Survey) -> Option<Finding> {
    let condition = brief.condition.as_ref()?;
    let mut skipped =
        survey.left_out.sets().filter(|(state, reason, _)| (*state, *reason) == (RowState::Skipped, FILTERED));
    let filtered = skipped.next().map_or(0, |(_, _, rows)| rows.len());
    if brief.may_be_empty || filtered < survey.recipients {
        return None;
    }
    let source = &condition.source;
    let message = match filtered {
        1 => format!("the only row does not match `where: {source}`"),
        rows => format!("none of the {rows} rows matches `where: {source}`"),
    };
    let help = "spell the word exactly as in the list; the comparison is case-sensitive unless you add `| lower` \
                after the name";
    Some(Finding::new(&RULE, message).help(help))
}
