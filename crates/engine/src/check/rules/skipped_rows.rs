//! Rules about rows without a message, and helpers for findings about rows.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use crate::check::column_cells::UnmatchedCells;
use crate::check::{ALREADY_SENT, DUPLICATE, FILTERED, REJECTED_IN_RUN, Survey};
use campaign_content::audience::PhoneProblem;
use campaign_content::message::{ConditionKind, enclose_condition, find_condition_checks, suggest_conversion};
use campaign_core::define_rules;
use campaign_core::domain::{CONSENT_EXPIRED, NO_CONSENT, format_count, format_thousands};
use campaign_core::finding::{Finding, Rule, rules};
use campaign_ledger::{CANCELLED_EARLIER, CAPPED, COUNTRY, ExcludedRows, OPTED_OUT, RowState};
use campaign_manifest::{CampaignBrief, Percentage};

define_rules! {
    RECIPIENTS:
    warning INVALID_ROW = "invalid-row" {
        cause: "A row has no valid number or no valid message. Only this row is skipped; the other rows are not \
                affected.",
        example: ["list.csv: phone,first_name", "          38050,Olena"],
        fix: "correct the row or the message",
    }
    error TOO_MANY_INVALID = "too-many-invalid" {
        cause: "Too many rows are invalid. The list or the message is probably wrong.",
        example: ["recipients: { file: list.csv, max_invalid: 10% }     # 40 of 200 rows have no valid number"],
        fix: "correct the list or the message; a higher `max_invalid` would also accept a list with the wrong phone \
              column",
    }
    warning NO_MESSAGES = "no-messages" {
        cause: "No row in the list gets a message. This might be the wrong list, or the campaign might already have \
                been sent.",
        example: ["list.csv: phone,first_name", "          38050,Olena"],
        fix: "check the reasons in the finding; to send to the same recipients again, set a new `edition`",
    }
    error NOBODY_MEANT = "nobody-meant" {
        cause: "No row matches the `where` condition. A word is probably spelled differently in the list.",
        example: ["recipients: { file: list.csv, where: first_name == \"olena\" }     # the list has Olena"],
        fix: "spell the word exactly as in the list; if an empty selection is fine, write `empty: ok`",
    }
    error NO_TEXT_CHOSEN = "no-text-chosen" {
        cause: "No key under `texts` occurs in the list. The words are probably spelled differently there.",
        example: ["message: { by: first_name, texts: { ivan: \"Hi, Ivan!\" } }"],
        fix: "spell the words as in the list, or add `else` with a message for all other rows",
    }
}

/// The maximum number of rows that the findings of a rule name.
const MAX_LISTED_ROWS: usize = 20;
/// The advice on where to find all rows.
pub(super) const ALL_ROWS_HINT: &str = "see the results of `run --dry-run` for all rows and reasons";

/// Rows with the same reason.
pub(super) struct ReasonRows<'l> {
    pub(super) reason: &'l str,
    pub(super) rows: &'l RoaringBitmap,
}

/// Groups the excluded rows in `state` by reason, most frequent reason first.
pub(super) fn group_by_reason(left_out: &ExcludedRows, state: RowState) -> Vec<ReasonRows<'_>> {
    let sets = left_out.sets().filter(|(row_state, ..)| *row_state == state);
    let mut reasons: Vec<_> = sets.map(|(_, reason, rows)| ReasonRows { reason, rows }).collect();
    reasons.sort_by_key(|group| Reverse(group.rows.len()));
    reasons
}

/// Describes rows by their count and the first row: `3 rows (first: row 5)`.
pub(super) fn describe_first(rows: &RoaringBitmap) -> String {
    let first = rows.min().unwrap_or_default();
    match rows.len() {
        1 => format!("row {first}"),
        count => format!("{count} rows (first: row {first})"),
    }
}

/// Describes rows by their count and the first few row numbers: `3 rows (5, 17 and 20)`.
pub(super) fn describe_first_few(rows: &RoaringBitmap) -> String {
    /// The number of rows that a person can check by hand.
    const FEW: usize = 5;
    let listed_rows: Vec<String> = rows.iter().take(FEW).map(|row| row.to_string()).collect();
    match (listed_rows.as_slice(), rows.len() - listed_rows.len() as u64) {
        ([row], 0) => format!("row {row}"),
        ([first @ .., last], 0) => format!("{} rows ({} and {last})", rows.len(), first.join(", ")),
        (listed_rows, more) => format!("{} rows ({} and {more} more)", rows.len(), listed_rows.join(", ")),
    }
}

/// Describes rows as the subject of a sentence, naming the first few: `rows 3 and 5 are`.
pub(super) fn describe_named_rows(rows: &RoaringBitmap) -> String {
    let listed_rows: Vec<String> = rows.iter().take(MAX_LISTED_ROWS).map(|row| row.to_string()).collect();
    format_subject_and_verb(&listed_rows, rows.len() - listed_rows.len() as u64)
}

/// Creates a finding for each reason until the limit of named rows is reached, and one for the remaining rows.
/// `description` describes all these rows.
pub(super) fn reason_findings(rule: &'static Rule, description: &str, reasons: &[ReasonRows<'_>]) -> Vec<Finding> {
    let (mut findings, mut listed, mut rest) = (Vec::new(), 0, 0);
    for (index, ReasonRows { reason, rows }) in reasons.iter().enumerate() {
        // Leaves room for at least one row of each remaining reason.
        let reasons_left = reasons.len() - index - 1;
        let available = MAX_LISTED_ROWS.saturating_sub(listed);
        let take = available.saturating_sub(reasons_left).max(1).min(available);
        if take == 0 {
            rest += rows.len();
            continue;
        }
        let listed_rows: Vec<String> = rows.iter().take(take).map(|row| row.to_string()).collect();
        listed += listed_rows.len();
        let subject = format_subject_and_verb(&listed_rows, rows.len() - listed_rows.len() as u64);
        findings.push(Finding::new(rule, format!("{subject} {description}: {reason}")));
    }
    match rest {
        0 => {}
        1 => findings.push(Finding::new(rule, format!("1 more row is {description}"))),
        rest => findings.push(Finding::new(rule, format!("{rest} more rows are {description}"))),
    }
    let total: u64 = reasons.iter().map(|group| group.rows.len()).sum();
    if total > listed as u64
        && let Some(last) = findings.pop()
    {
        findings.push(last.help(ALL_ROWS_HINT));
    }
    findings
}

/// Formats the named rows and the number of further rows as the start of a sentence: `rows 3 and 5 are`.
fn format_subject_and_verb(listed_rows: &[String], more: u64) -> String {
    match (listed_rows, more) {
        ([row], 0) => format!("row {row} is"),
        ([first @ .., last], 0) => format!("rows {} and {last} are", first.join(", ")),
        (listed_rows, more) => format!("rows {} and {more} more are", listed_rows.join(", ")),
    }
}

/// Warnings about invalid rows, one per reason, most frequent first; together they name at most 20 rows.
///
/// If a text cannot be rendered for a row, the finding points to the part of the text that fails.
pub fn check_invalid_rows(survey: &Survey) -> Vec<Finding> {
    invalid_row_findings(&survey.left_out, &survey.failing)
}

/// Errors about invalid rows, if the texts fail for every selected row and no messages can be sent.
///
/// A single row does not prove that the text is wrong.
pub(in crate::check) fn check_failing_texts(brief: &CampaignBrief, survey: &Survey) -> Vec<Finding> {
    let sets = || survey.left_out.sets().filter(|(_, _, rows)| !rows.is_empty());
    let filtered = sets().filter(|(state, reason, _)| (*state, *reason) == (RowState::Skipped, FILTERED));
    let filtered: u64 = filtered.map(|(_, _, rows)| rows.len()).sum();
    let invalid = survey.left_out.count_rows(RowState::Invalid);
    let is_text_failure = |reason: &str| survey.failing.contains_key(reason);
    let all_fail = sets().all(|(state, reason, _)| state != RowState::Invalid || is_text_failure(reason));
    let are_too_many = brief.max_invalid.is_exceeded_by(invalid, invalid);
    if invalid < 2 || invalid + filtered < survey.recipients || !all_fail || !are_too_many {
        return Vec::new();
    }
    let to_error =
        |finding: Finding| Finding { rule: &rules::TEXT_FAILS, severity: rules::TEXT_FAILS.severity, ..finding };
    check_invalid_rows(survey).into_iter().map(to_error).collect()
}

fn invalid_row_findings(left_out: &ExcludedRows, failing: &BTreeMap<String, Finding>) -> Vec<Finding> {
    let mut findings = reason_findings(&INVALID_ROW, "invalid", &group_by_reason(left_out, RowState::Invalid));
    for finding in &mut findings {
        let has_reason = |(reason, _): &(&String, &Finding)| finding.message.ends_with(&format!(": {reason}"));
        let Some((reason, failing)) = failing.iter().find(has_reason) else { continue };
        let reason_start = finding.message.len() - reason.len();
        finding.message.truncate(reason_start);
        finding.message += &failing.message;
        finding.place.clone_from(&failing.place);
        finding.help = match (failing.help.clone(), finding.help.take()) {
            (Some(remedy), Some(rest)) => Some(format!("{remedy}; {rest}")),
            (remedy, rest) => remedy.or(rest),
        };
    }
    findings
}

/// The minimum number of invalid rows whose share is checked, unless `max_invalid` is 0%: one bad number of three
/// proves nothing.
const MIN_INVALID_ROWS: u64 = 5;
/// The maximum number of rows that are named with their reasons.
const MAX_NAMED_ROWS: u64 = 20;

/// Errors if too many rows are invalid for the run to start. Empty if few enough rows are invalid.
pub(in crate::check) fn check_invalid_share(brief: &CampaignBrief, survey: &Survey) -> Vec<Finding> {
    let invalid = survey.left_out.count_rows(RowState::Invalid);
    if !exceeds_share(brief.max_invalid, invalid, survey.recipients) {
        return Vec::new();
    }
    let reasons = group_by_reason(&survey.left_out, RowState::Invalid);
    let most_common = match reasons.as_slice() {
        [] => String::new(),
        [only_reason] => format!(": {}", only_reason.reason),
        [first, ..] => format!("; most common reason: {} ({})", first.reason, format_count(first.rows.len(), "row")),
    };
    let message = format!(
        "{invalid} of {} rows are invalid, more than `max_invalid: {}` allows{most_common}",
        survey.recipients, brief.max_invalid,
    );
    let text_help = reasons.first().and_then(|first| survey.failing.get(first.reason)?.help.clone());
    let mut help = text_help.unwrap_or_else(|| choose_advice(&reasons, brief.region.is_some()).to_owned());
    if invalid > MAX_NAMED_ROWS {
        help += &format!(
            "; to list all of them, set `max_invalid: 100%` in a copy of the campaign file, never in the original, \
             and {ALL_ROWS_HINT}"
        );
    }
    let mut findings = vec![Finding::new(&TOO_MANY_INVALID, message).help(help)];
    findings.extend(check_invalid_rows(survey));
    findings
}

/// Whether more rows are invalid than `allowed` permits. Fewer than [`MIN_INVALID_ROWS`] invalid rows are always
/// permitted, unless `allowed` is zero.
fn exceeds_share(allowed: Percentage, invalid: u64, rows: u64) -> bool {
    (allowed == Percentage::NONE || invalid >= MIN_INVALID_ROWS) && allowed.is_exceeded_by(invalid, rows)
}

/// Chooses the advice that applies to the most rows.
fn choose_advice(reasons: &[ReasonRows<'_>], has_region: bool) -> &'static str {
    let mut rows: BTreeMap<&str, u64> = BTreeMap::new();
    for ReasonRows { reason, rows: group } in reasons {
        *rows.entry(find_advice(reason, has_region)).or_default() += group.len();
    }
    let most_common = rows.into_iter().max_by_key(|(_, count)| *count);
    most_common.map_or("correct the list", |(advice, _)| advice)
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
        Some(Ambiguous) => "write the numbers with a leading `+`, or as they are dialed in their country",
        Some(Several) => "put each number in its own row",
        Some(Words) => "put the numbers in a separate column",
        Some(Header) => "delete the rows that repeat the header",
        Some(TooShort | TooLong | Length | Country | Unassigned | Symbols | Sign(_)) => {
            "correct the numbers in the list"
        }
        None if reason.contains("`max_parts: ") => {
            "shorten the message or the cells that it uses, or raise `max_parts` at extra cost"
        }
        None => "correct the message, or the cells that it uses",
    }
}

/// The maximum number of reasons that a finding names. The others are counted together.
const MAX_NAMED_REASONS: usize = 5;

/// A warning that no row gets a message, with the reasons. `None` if a row gets a message, if the list is empty, or
/// with `empty: ok`.
pub fn check_no_messages(survey: &Survey, brief: &CampaignBrief) -> Option<Finding> {
    if survey.recipients == 0 || survey.count_planned() > 0 || brief.may_be_empty {
        return None;
    }
    let sets = survey.left_out.sets().filter(|(_, _, rows)| !rows.is_empty());
    let mut reasons: Vec<_> = sets.map(|(state, reason, rows)| (state, reason, rows.len())).collect();
    reasons.sort_by_key(|(_, _, rows)| Reverse(*rows));
    let (named, others) = reasons.split_at(reasons.len().min(MAX_NAMED_REASONS));
    let mut counts: Vec<String> =
        named.iter().map(|(state, reason, rows)| describe_reason(*state, reason, *rows)).collect();
    if !others.is_empty() {
        let rows = others.iter().map(|(_, _, rows)| rows).sum();
        counts.push(format!("{} for {}", format_thousands(rows), format_count(others.len() as u64, "other reason")));
    }
    let subject = match survey.recipients {
        1 => "the only row gets no message".to_owned(),
        rows => format!("none of the {} gets a message", format_count(rows, "row")),
    };
    let message = format!("{subject}: {}", counts.join(", "));
    let help = reasons.first().map_or("", |(state, reason, _)| advise_on_reason(*state, reason));
    Some(Finding::new(&NO_MESSAGES, message).help(help))
}

fn describe_reason(state: RowState, reason: &str, rows: u64) -> String {
    match state {
        RowState::Invalid => format!("{} invalid ({reason})", format_thousands(rows)),
        _ => format!("{} {reason}", format_thousands(rows)),
    }
}

/// The advice for rows with this state and reason.
fn advise_on_reason(state: RowState, reason: &str) -> &'static str {
    match (state, reason) {
        (RowState::Invalid, _) => "correct the list or the message",
        (_, ALREADY_SENT | CANCELLED_EARLIER) => "to send to these recipients again, set a new `edition`",
        (_, REJECTED_IN_RUN) => "resume the run so that it ends; then its rejected messages can be retried",
        (_, OPTED_OUT) => "check whether this is the right list; these recipients have opted out",
        (_, COUNTRY) => {
            "check whether this is the right list, and check `countries` in the campaign and in the profile's `policy`"
        }
        (_, CAPPED) => "send later, when the cap allows messages to these recipients again",
        (_, NO_CONSENT) => "check `recipients.consent`: its column or file, and the answers that mean consent (`is`)",
        (_, CONSENT_EXPIRED) => "ask these recipients for their consent again, or check the column of its dates (`at`)",
        (_, DUPLICATE) => "check the phone column; each number gets one message, unless `duplicates: allow` is set",
        _ => "check the list and the keys that skip recipients: `where`, `exclude`, `holdout`",
    }
}

/// An error that `recipients.where` selects no rows. `None` if some rows are selected, or if the campaign allows an
/// empty selection.
pub(in crate::check) fn check_empty_selection(brief: &CampaignBrief, survey: &Survey) -> Option<Finding> {
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
    let date = find_condition_checks(&enclose_condition(condition)).into_iter().find_map(|check| match check.kind {
        ConditionKind::IsDate { corrected } => Some((check.name, corrected)),
        _ => None,
    });
    let help = match date {
        Some((name, corrected)) => format!(
            "{}; for a day without its year, such as a birthday, compare both sides with `| date(format=\"%m-%d\")`",
            suggest_conversion(&name, &corrected)
        ),
        None => "spell the word exactly as in the list; the comparison is case-sensitive unless you add `| lower` \
                 after the name"
            .to_owned(),
    };
    Some(Finding::new(&NOBODY_MEANT, message).help(help))
}

/// An error that no row has a text. `None` if a row has a text, if rows are excluded for another reason, or if the
/// campaign allows all rows to be invalid.
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
    let finding = Finding::new(&NO_TEXT_CHOSEN, message).at(failing.place.clone());
    Some(match &failing.help {
        Some(help) => finding.help(help.clone()),
        None => finding,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invalid rows, each with the given reason.
    fn build_invalid_rows(rows: &[(u32, &str)]) -> ExcludedRows {
        let mut left_out = ExcludedRows::default();
        for (row, reason) in rows {
            left_out.insert(campaign_core::domain::Row::new(*row), RowState::Invalid, reason);
        }
        left_out
    }

    fn finding_messages(rows: &[(u32, &str)]) -> Vec<String> {
        invalid_row_findings(&build_invalid_rows(rows), &BTreeMap::new())
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn up_to_twenty_invalid_rows_are_named() {
        assert_eq!(finding_messages(&[]), Vec::<String>::new());
        assert_eq!(finding_messages(&[(3, "a")]), ["row 3 is invalid: a"]);
        let several = [(3, "a"), (9, "b"), (5, "a"), (7, "a")];
        assert_eq!(finding_messages(&several), ["rows 3, 5 and 7 are invalid: a", "row 9 is invalid: b"]);
        let mut many: Vec<(u32, &str)> = (2..102).map(|row| (row, "a")).collect();
        many.push((200, "b"));
        let messages = finding_messages(&many);
        assert!(
            messages[0].starts_with("rows 2, 3, ") && messages[0].ends_with(", 20 and 81 more are invalid: a"),
            "{messages:?}"
        );
        assert_eq!(messages[1], "row 200 is invalid: b");
        assert_eq!(
            invalid_row_findings(&build_invalid_rows(&many), &BTreeMap::new()).last().unwrap().help.as_deref(),
            Some(ALL_ROWS_HINT)
        );
        let reasons: Vec<String> = (0..50).map(|number| format!("reason {number}")).collect();
        let numbered_reasons: Vec<(u32, &str)> =
            reasons.iter().zip(2..).map(|(reason, row)| (row, reason.as_str())).collect();
        let messages = finding_messages(&numbered_reasons);
        assert_eq!((messages.len(), messages[20].as_str()), (21, "30 more rows are invalid"));
    }

    #[test]
    fn a_few_invalid_rows_are_accepted_unless_the_limit_is_zero() {
        for (allowed, invalid, exceeded) in
            [("0%", 0, false), ("0%", 1, true), ("0.01%", 4, false), ("10%", 4, false), ("10%", 5, true)]
        {
            assert_eq!(exceeds_share(allowed.parse().unwrap(), invalid, 20), exceeded, "{allowed} {invalid}");
        }
    }

    #[test]
    fn advice_matches_the_most_common_reason() {
        let national = PhoneProblem::National.to_string();
        let rounded = PhoneProblem::Rounded.to_string();
        let long = |characters: u32| format!("4 parts exceed `max_parts: 3`: the SMS text has {characters} characters");
        let advice = |rows: &[(u32, &str)], region| {
            choose_advice(&group_by_reason(&build_invalid_rows(rows), RowState::Invalid), region)
        };
        assert!(advice(&[(2, &national), (3, &national), (4, &rounded)], false).contains("`region: UA`"));
        assert!(advice(&[(2, &national), (3, &rounded), (4, &rounded)], false).contains("format the column as text"));
        let texts = [long(480), long(490)];
        let rows = [(2, texts[0].as_str()), (3, &texts[1]), (4, &rounded)];
        assert!(advice(&rows, false).contains("raise `max_parts`"), "texts of several lengths have the same advice");
        assert!(!advice(&[(2, &PhoneProblem::TooShort.to_string())], true).contains("region"));
    }
}
