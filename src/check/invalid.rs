//! Rows that cannot be sent to, as findings: which they are, why, and what to do about most of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::survey::Survey;
use crate::audience::PhoneProblem;
use crate::finding::Finding;
use crate::ledger::{LeftOut, State};
use crate::manifest::Brief;

/// The most rows that are named.
const NAMED: usize = 20;
/// Where all of them stand.
const ALL_OF_THEM: &str = "the results of a `--dry-run` have every row with its reason";

/// The invalid rows by their reasons, the commonest first, as warnings; no more than 20 rows are named.
#[must_use]
pub fn invalid_rows(left_out: &LeftOut) -> Vec<Finding> {
    let reasons = reasons(left_out);
    let (mut findings, mut named, mut rest) = (Vec::new(), 0, 0);
    for (index, (reason, rows)) in reasons.iter().enumerate() {
        // As many as there is room for, if each reason behind this one is to have a row of its own.
        let behind = reasons.len() - index - 1;
        let room = NAMED.saturating_sub(named);
        let take = room.saturating_sub(behind).max(1).min(room);
        if take == 0 {
            rest += rows.len();
            continue;
        }
        let shown: Vec<String> = rows.iter().take(take).map(|row| row.to_string()).collect();
        named += shown.len();
        findings.push(Finding::warning("invalid-row", message(&shown, rows.len() - shown.len() as u64, reason)));
    }
    match (rest, findings.last_mut()) {
        (0, _) => {}
        (1, _) => findings.push(Finding::warning("invalid-row", "1 more row is invalid")),
        (rest, _) => findings.push(Finding::warning("invalid-row", format!("{rest} more rows are invalid"))),
    }
    if left_out.count(State::Invalid) > named as u64
        && let Some(last) = findings.pop()
    {
        findings.push(last.help(ALL_OF_THEM));
    }
    findings
}

fn message(shown: &[String], more: u64, reason: &str) -> String {
    match (shown, more) {
        ([one], 0) => format!("row {one} is invalid: {reason}"),
        ([first @ .., last], 0) => format!("rows {} and {last} are invalid: {reason}", first.join(", ")),
        (shown, more) => format!("rows {} and {more} more are invalid: {reason}", shown.join(", ")),
    }
}

/// The reasons with their rows, the commonest first.
fn reasons(left_out: &LeftOut) -> Vec<(&str, &RoaringBitmap)> {
    let invalid = left_out.sets().filter(|(state, ..)| *state == State::Invalid);
    let mut reasons: Vec<_> = invalid.map(|(_, reason, rows)| (reason, rows)).collect();
    reasons.sort_by_key(|(_, rows)| Reverse(rows.len()));
    reasons
}

/// Why so many rows are invalid that nothing is sent, and which they are.
pub(super) fn too_many_invalid(brief: &Brief, survey: &Survey) -> Vec<Finding> {
    let reasons = reasons(&survey.left_out);
    let told: Vec<String> = reasons
        .iter()
        .take(5)
        .map(|(reason, rows)| format!("{} × {reason} (first in row {})", rows.len(), rows.min().unwrap_or_default()))
        .collect();
    let message = format!(
        "{} of {} rows are invalid, more than `max_invalid: {}`: {}",
        survey.left_out.count(State::Invalid),
        survey.recipients,
        brief.max_invalid,
        told.join("; ")
    );
    let advice = advice(&reasons, brief.region.is_some());
    let help = format!("{advice}; with `max_invalid: 100%` {ALL_OF_THEM}");
    let mut findings = vec![Finding::error("too-many-invalid", message).help(help)];
    findings.extend(invalid_rows(&survey.left_out));
    findings
}

/// What to do about the reasons that most rows have in common.
fn advice(reasons: &[(&str, &RoaringBitmap)], has_region: bool) -> &'static str {
    let mut rows: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, set) in reasons {
        *rows.entry(advice_for(reason, has_region)).or_default() += set.len();
    }
    let commonest = rows.into_iter().max_by_key(|(_, count)| *count);
    commonest.map_or("mend the list", |(advice, _)| advice)
}

fn advice_for(reason: &str, has_region: bool) -> &'static str {
    use PhoneProblem::{
        Country, Empty, Length, Letters, National, Rounded, Several, Symbols, TooLong, TooShort, Unassigned,
    };
    match PhoneProblem::ALL.into_iter().find(|problem| problem.to_string() == reason) {
        Some(National) => "set `recipients.region` to the country of the numbers, such as `region: UA`",
        Some(Rounded) => {
            "the digits are lost in this file: format the column as text where the list comes from, and save it anew"
        }
        Some(TooShort | Length | Country | Unassigned) if !has_region => {
            "mend the numbers; if they are national ones, set `recipients.region`, such as `region: UA`"
        }
        Some(Empty | Letters) => {
            "mend the list, or name the column that holds the numbers: `columns: { phone: \"…\" }`"
        }
        Some(Several) => "give each number a row of its own",
        Some(TooShort | TooLong | Length | Country | Unassigned | Symbols) => "mend the numbers in the list",
        None if reason.contains("`max_parts: ") => "shorten the text or the cells that it uses, or raise `max_parts`",
        None => "mend the text, or the cells that it uses",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Row;

    fn left_out(rows: &[(u32, &str)]) -> LeftOut {
        let mut left_out = LeftOut::default();
        rows.iter().for_each(|(row, reason)| left_out.insert(Row::new(*row), State::Invalid, reason));
        left_out
    }

    fn messages(rows: &[(u32, &str)]) -> Vec<String> {
        invalid_rows(&left_out(rows)).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn rows_are_named_with_their_reason_and_no_more_than_twenty() {
        assert_eq!(messages(&[]), Vec::<String>::new());
        assert_eq!(messages(&[(3, "a")]), ["row 3 is invalid: a"]);
        let several = [(3, "a"), (9, "b"), (5, "a"), (7, "a")];
        assert_eq!(messages(&several), ["rows 3, 5 and 7 are invalid: a", "row 9 is invalid: b"]);
        let mut many: Vec<(u32, &str)> = (2..102).map(|row| (row, "a")).collect();
        many.push((200, "b"));
        let told = messages(&many);
        assert!(told[0].starts_with("rows 2, 3, ") && told[0].ends_with(", 20 and 81 more are invalid: a"), "{told:?}");
        assert_eq!(told[1], "row 200 is invalid: b");
        assert_eq!(invalid_rows(&left_out(&many)).last().unwrap().help.as_deref(), Some(ALL_OF_THEM));
        let reasons: Vec<String> = (0..50).map(|number| format!("reason {number}")).collect();
        let each: Vec<(u32, &str)> = reasons.iter().zip(2..).map(|(reason, row)| (row, reason.as_str())).collect();
        let told = messages(&each);
        assert_eq!((told.len(), told[20].as_str()), (21, "30 more rows are invalid"));
    }

    #[test]
    fn advice_is_for_what_most_rows_have_in_common() {
        let national = PhoneProblem::National.to_string();
        let rounded = PhoneProblem::Rounded.to_string();
        let long =
            |characters: u32| format!("4 parts, more than `max_parts: 3`: the SMS text has {characters} characters");
        let advice = |rows: &[(u32, &str)], region| advice(&reasons(&left_out(rows)), region);
        assert!(advice(&[(2, &national), (3, &national), (4, &rounded)], false).contains("`region: UA`"));
        assert!(advice(&[(2, &national), (3, &rounded), (4, &rounded)], false).contains("format the column as text"));
        let texts = [long(480), long(490)];
        let rows = [(2, texts[0].as_str()), (3, &texts[1]), (4, &rounded)];
        assert!(advice(&rows, false).contains("raise `max_parts`"), "texts of several lengths are one matter");
        assert!(!advice(&[(2, &PhoneProblem::TooShort.to_string())], true).contains("region"));
    }
}
