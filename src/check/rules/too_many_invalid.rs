//! So many rows cannot be sent to that the list or the text is probably the wrong one.

use std::collections::BTreeMap;

use super::invalid_row::check_invalid_rows;
use super::rows::{self, ALL_ROWS_HINT, ReasonRows};
use crate::audience::PhoneProblem;
use crate::check::survey::Survey;
use crate::domain::format_count;
use crate::finding::{Finding, Rule, RuleText};
use crate::ledger::RowState;
use crate::manifest::CampaignBrief;

pub(super) static RULE: Rule = Rule::error(
    "too-many-invalid",
    RuleText {
        cause: "Too many rows are invalid. The list or the message is probably wrong.",
        example: &["recipients: { file: list.csv, max_invalid: 10% }     # 40 of 200 rows have no valid number"],
        fix: "correct the list or the message; a higher `max_invalid` would also accept a list with the wrong phone \
              column",
    },
);

/// The share counts from so many invalid rows: one bad number of three says nothing of a list.
const MIN_INVALID_ROWS: u64 = 5;
/// So many rows are named below with their reasons.
const MAX_NAMED_ROWS: u64 = 20;

/// Why so many rows are invalid that nothing is sent, and which they are; nothing if they are few.
pub(in crate::check) fn check_invalid_share(brief: &CampaignBrief, survey: &Survey) -> Vec<Finding> {
    let invalid = survey.left_out.count_rows(RowState::Invalid);
    if invalid < MIN_INVALID_ROWS || !brief.max_invalid.is_exceeded_by(invalid, survey.recipients) {
        return Vec::new();
    }
    let reasons = rows::group_by_reason(&survey.left_out, RowState::Invalid);
    let commonest = match reasons.as_slice() {
        [] => String::new(),
        [one] => format!(": {}", one.reason),
        [first, ..] => format!("; most common reason: {} ({})", first.reason, format_count(first.rows.len(), "row")),
    };
    let message = format!(
        "{invalid} of {} rows are invalid, more than `max_invalid: {}` allows{commonest}",
        survey.recipients, brief.max_invalid,
    );
    let of_text = reasons.first().and_then(|first| survey.failing.get(first.reason)?.help.clone());
    let mut help = of_text.unwrap_or_else(|| format_advice(&reasons, brief.region.is_some()).to_owned());
    if invalid > MAX_NAMED_ROWS {
        help += &format!(
            "; to list all of them, set `max_invalid: 100%` in a copy of the campaign file, never in the original, \
             and {ALL_ROWS_HINT}"
        );
    }
    let mut findings = vec![Finding::new(&RULE, message).help(help)];
    findings.extend(check_invalid_rows(survey));
    findings
}

/// What to do about the reasons that most rows have in common.
fn format_advice(reasons: &[ReasonRows<'_>], has_region: bool) -> &'static str {
    let mut rows: BTreeMap<&str, u64> = BTreeMap::new();
    for ReasonRows { reason, rows: alike } in reasons {
        *rows.entry(find_advice(reason, has_region)).or_default() += alike.len();
    }
    let commonest = rows.into_iter().max_by_key(|(_, count)| *count);
    commonest.map_or("correct the list", |(advice, _)| advice)
}

fn find_advice(reason: &str, has_region: bool) -> &'static str {
    use PhoneProblem::{
        Ambiguous, Country, Empty, Header, Length, Letters, National, Rounded, Several, Sign, Symbols, TooLong,
        TooShort, Unassigned, Words,
    };
    match PhoneProblem::from_reason(reason) {
        Some(National) => "set `recipients.region` to the country of the numbers, for example `region: UA`",
        Some(Rounded) => {
            "format the column as text in the original file, and export the list again: the numbers in this file have \
             lost digits"
        }
        Some(TooShort | Length | Country | Unassigned) if !has_region => {
            "correct the numbers; if they are national numbers, set `recipients.region`, for example `region: UA`"
        }
        Some(Empty | Letters) => "correct the list, or name the phone column: `columns: { phone: \"…\" }`",
        Some(Ambiguous) => "write the numbers with `+`, or as they are dialed in their country",
        Some(Several) => "put each number in its own row",
        Some(Words) => "put the numbers in a separate column",
        Some(Header) => "delete the rows that repeat the header",
        Some(TooShort | TooLong | Length | Country | Unassigned | Symbols | Sign(_)) => {
            "correct the numbers in the list"
        }
        None if reason.contains("`max_parts: ") => {
            "shorten the message or the cells that it uses, or raise `max_parts`, which costs more"
        }
        None => "correct the message, or the cells that it uses",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::rows::left_out_invalid;

    #[test]
    fn advice_matches_the_most_common_reason() {
        let national = PhoneProblem::National.to_string();
        let rounded = PhoneProblem::Rounded.to_string();
        let long = |characters: u32| format!("4 parts exceed `max_parts: 3`: the SMS text has {characters} characters");
        let advice = |rows: &[(u32, &str)], region| {
            format_advice(&rows::group_by_reason(&left_out_invalid(rows), RowState::Invalid), region)
        };
        assert!(advice(&[(2, &national), (3, &national), (4, &rounded)], false).contains("`region: UA`"));
        assert!(advice(&[(2, &national), (3, &rounded), (4, &rounded)], false).contains("format the column as text"));
        let texts = [long(480), long(490)];
        let rows = [(2, texts[0].as_str()), (3, &texts[1]), (4, &rounded)];
        assert!(advice(&rows, false).contains("raise `max_parts`"), "texts of several lengths are one matter");
        assert!(!advice(&[(2, &PhoneProblem::TooShort.to_string())], true).contains("region"));
    }
}
