//! Rows that cannot be sent to.

use std::collections::BTreeMap;

use super::rows;
use crate::check::{FILTERED, Survey};
use crate::finding::{Finding, Rule, RuleText, rules};
use crate::ledger::{ExcludedRows, RowState};
use crate::manifest::CampaignBrief;

pub(super) static RULE: Rule = Rule::warning(
    "invalid-row",
    RuleText {
        cause: "A row has no valid number or no valid message. Only this row is skipped; the other rows are not \
            affected.",
        example: &["list.csv: phone,first_name", "          38050,Olena"],
        fix: "correct the row or the message",
    },
);

/// The invalid rows by their reasons, the commonest first, as warnings; no more than 20 rows are named.
///
/// If a text fails with a row, the finding points at that part of the text.
#[must_use]
pub fn check_invalid_rows(survey: &Survey) -> Vec<Finding> {
    invalid_row_findings(&survey.left_out, &survey.failing)
}

/// The invalid rows as errors, if a text fails with every selected row, so that no messages are sent.
///
/// A single row does not prove that the text is wrong.
pub(in crate::check) fn check_failing_texts(brief: &CampaignBrief, survey: &Survey) -> Vec<Finding> {
    let sets = || survey.left_out.sets().filter(|(_, _, rows)| !rows.is_empty());
    let filtered = sets().filter(|(state, reason, _)| (*state, *reason) == (RowState::Skipped, FILTERED));
    let filtered: u64 = filtered.map(|(_, _, rows)| rows.len()).sum();
    let invalid = survey.left_out.count_rows(RowState::Invalid);
    let is_of_text = |reason: &str| survey.failing.contains_key(reason);
    let all_fail = sets().all(|(state, reason, _)| state != RowState::Invalid || is_of_text(reason));
    let are_too_many = brief.max_invalid.is_exceeded_by(invalid, invalid);
    if invalid < 2 || invalid + filtered < survey.recipients || !all_fail || !are_too_many {
        return Vec::new();
    }
    let error =
        |finding: Finding| Finding { rule: &rules::TEXT_FAILS, severity: rules::TEXT_FAILS.severity, ..finding };
    check_invalid_rows(survey).into_iter().map(error).collect()
}

fn invalid_row_findings(left_out: &ExcludedRows, failing: &BTreeMap<String, Finding>) -> Vec<Finding> {
    let mut findings = rows::reason_findings(&RULE, "invalid", &rows::group_by_reason(left_out, RowState::Invalid));
    for finding in &mut findings {
        let of_text = |(reason, _): &(&String, &Finding)| finding.message.ends_with(&format!(": {reason}"));
        let Some((reason, failing)) = failing.iter().find(of_text) else { continue };
        let subject = finding.message.len() - reason.len();
        finding.message.truncate(subject);
        finding.message += &failing.message;
        finding.place.clone_from(&failing.place);
        finding.help = match (failing.help.clone(), finding.help.take()) {
            (Some(remedy), Some(rest)) => Some(format!("{remedy}; {rest}")),
            (remedy, rest) => remedy.or(rest),
        };
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::rows::{ALL_ROWS_HINT, left_out_invalid};

    fn finding_messages(rows: &[(u32, &str)]) -> Vec<String> {
        invalid_row_findings(&left_out_invalid(rows), &BTreeMap::new())
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn invalid_rows_are_named_up_to_twenty() {
        assert_eq!(finding_messages(&[]), Vec::<String>::new());
        assert_eq!(finding_messages(&[(3, "a")]), ["row 3 is invalid: a"]);
        let several = [(3, "a"), (9, "b"), (5, "a"), (7, "a")];
        assert_eq!(finding_messages(&several), ["rows 3, 5 and 7 are invalid: a", "row 9 is invalid: b"]);
        let mut many: Vec<(u32, &str)> = (2..102).map(|row| (row, "a")).collect();
        many.push((200, "b"));
        let told = finding_messages(&many);
        assert!(told[0].starts_with("rows 2, 3, ") && told[0].ends_with(", 20 and 81 more are invalid: a"), "{told:?}");
        assert_eq!(told[1], "row 200 is invalid: b");
        assert_eq!(
            invalid_row_findings(&left_out_invalid(&many), &BTreeMap::new()).last().unwrap().help.as_deref(),
            Some(ALL_ROWS_HINT)
        );
        let reasons: Vec<String> = (0..50).map(|number| format!("reason {number}")).collect();
        let each: Vec<(u32, &str)> = reasons.iter().zip(2..).map(|(reason, row)| (row, reason.as_str())).collect();
        let told = finding_messages(&each);
        assert_eq!((told.len(), told[20].as_str()), (21, "30 more rows are invalid"));
    }
}
