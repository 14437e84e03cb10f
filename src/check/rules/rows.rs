//! Findings about rows: those of which the same is said together, counted, with examples.

use std::cmp::Reverse;

use roaring::RoaringBitmap;

use crate::finding::{Finding, Rule};
use crate::ledger::{ExcludedRows, RowState};

/// The most rows that are named.
const MAX_NAMED: usize = 20;
/// Where all of them stand.
pub(super) const ALL_ROWS_HINT: &str = "look up every row and its reason in the results of `run --dry-run`";

/// Rows of which the same is said.
pub(super) struct ReasonRows<'l> {
    /// What is said.
    pub(super) reason: &'l str,
    /// Which they are.
    pub(super) rows: &'l RoaringBitmap,
}

/// The rows that were left out in a state, by their reasons, the commonest first.
pub(super) fn group_by_reason(left_out: &ExcludedRows, state: RowState) -> Vec<ReasonRows<'_>> {
    let sets = left_out.sets().filter(|(each, ..)| *each == state);
    let mut reasons: Vec<_> = sets.map(|(_, reason, rows)| ReasonRows { reason, rows }).collect();
    reasons.sort_by_key(|alike| Reverse(alike.rows.len()));
    reasons
}

/// How many rows these are, and which is the first: `3 rows (first: row 5)`.
pub(super) fn describe_first(rows: &RoaringBitmap) -> String {
    let first = rows.min().unwrap_or_default();
    match rows.len() {
        1 => format!("row {first}"),
        count => format!("{count} rows (first: row {first})"),
    }
}

/// How many rows these are, and the first of them: `3 rows (5, 17 and 20)`.
pub(super) fn describe_first_few(rows: &RoaringBitmap) -> String {
    /// As many as a person goes through by hand.
    const FEW: usize = 5;
    let shown: Vec<String> = rows.iter().take(FEW).map(|row| row.to_string()).collect();
    match (shown.as_slice(), rows.len() - shown.len() as u64) {
        ([one], 0) => format!("row {one}"),
        ([first @ .., last], 0) => format!("{} rows ({} and {last})", rows.len(), first.join(", ")),
        (shown, more) => format!("{} rows ({} and {more} more)", rows.len(), shown.join(", ")),
    }
}

/// These rows as the subject of a sentence, the first ones by number: `rows 3 and 5 are`.
pub(super) fn describe_named_rows(rows: &RoaringBitmap) -> String {
    let shown: Vec<String> = rows.iter().take(MAX_NAMED).map(|row| row.to_string()).collect();
    format_subject(&shown, rows.len() - shown.len() as u64)
}

/// A finding for each reason that there is room for, and one for the rest; `what` is what all these rows are.
pub(super) fn reason_findings(rule: &'static Rule, what: &str, reasons: &[ReasonRows<'_>]) -> Vec<Finding> {
    let (mut findings, mut named, mut rest) = (Vec::new(), 0, 0);
    for (index, ReasonRows { reason, rows }) in reasons.iter().enumerate() {
        // As many as there is room for, if each reason behind this one is to have a row of its own.
        let behind = reasons.len() - index - 1;
        let room = MAX_NAMED.saturating_sub(named);
        let take = room.saturating_sub(behind).max(1).min(room);
        if take == 0 {
            rest += rows.len();
            continue;
        }
        let shown: Vec<String> = rows.iter().take(take).map(|row| row.to_string()).collect();
        named += shown.len();
        let subject = format_subject(&shown, rows.len() - shown.len() as u64);
        findings.push(Finding::new(rule, format!("{subject} {what}: {reason}")));
    }
    match rest {
        0 => {}
        1 => findings.push(Finding::new(rule, format!("1 more row is {what}"))),
        rest => findings.push(Finding::new(rule, format!("{rest} more rows are {what}"))),
    }
    let all: u64 = reasons.iter().map(|alike| alike.rows.len()).sum();
    if all > named as u64
        && let Some(last) = findings.pop()
    {
        findings.push(last.help(ALL_ROWS_HINT));
    }
    findings
}

/// The rows that are shown, and how many more there are, before what they are.
fn format_subject(shown: &[String], more: u64) -> String {
    match (shown, more) {
        ([one], 0) => format!("row {one} is"),
        ([first @ .., last], 0) => format!("rows {} and {last} are", first.join(", ")),
        (shown, more) => format!("rows {} and {more} more are", shown.join(", ")),
    }
}

/// Rows that are invalid, with their reasons.
#[cfg(test)]
pub(super) fn left_out_invalid(rows: &[(u32, &str)]) -> ExcludedRows {
    let mut left_out = ExcludedRows::default();
    for (row, reason) in rows {
        left_out.insert(crate::domain::Row::new(*row), RowState::Invalid, reason);
    }
    left_out
}
