//! A condition that nobody of the list passes.

use crate::check::FILTERED;
use crate::check::survey::Survey;
use crate::finding::{Finding, Rule};
use crate::ledger::State;
use crate::manifest::Brief;

pub(super) static RULE: Rule = Rule::error(
    "nobody-meant",
    "A condition that nobody of the list passes is probably written otherwise than the list.",
    "Write the condition as the cells are written, or `empty: ok` where a list without anybody is fine.",
);

/// That `recipients.where` means nobody; nothing where it means somebody, or where that is fine.
pub(in crate::check) fn judge(brief: &Brief, survey: &Survey) -> Option<Finding> {
    let condition = brief.condition.as_ref()?;
    let mut skipped =
        survey.left_out.sets().filter(|(state, reason, _)| (*state, *reason) == (State::Skipped, FILTERED));
    let filtered = skipped.next().map_or(0, |(_, _, rows)| rows.len());
    if brief.may_be_empty || filtered < survey.recipients {
        return None;
    }
    let rows = if filtered == 1 { "the only row".to_owned() } else { format!("none of {filtered} rows") };
    let message = if filtered == 1 {
        format!("{rows} is not meant by `where: {}`", condition.source)
    } else {
        format!("{rows} is meant by `where: {}`", condition.source)
    };
    let help =
        "write it as the cells are written, letter by letter; capitals count, unless `| lower` stands behind the name";
    Some(Finding::new(&RULE, message).help(help))
}
