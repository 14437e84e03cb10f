//! Findings for the ledger, logs and notifications: without source excerpts, and without phone numbers.

use std::fmt;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::{Finding, SourceLocation, escape_to_one_line, severity_word};

/// The maximum number of findings that are kept.
const MAX_FINDINGS: usize = 5;
/// The maximum number of characters of a text that are kept.
const MAX_CHARACTERS: usize = 400;
/// The minimum number of digits of a phone number.
const MIN_PHONE_DIGITS: usize = 9;

/// A finding without its source excerpt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BriefFinding {
    /// The id of the rule.
    pub rule: String,
    /// The severity as a word.
    pub severity: String,
    /// What is wrong.
    pub message: String,
    /// The file, if it has one.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// The remedy.
    pub help: Option<String>,
}

impl BriefFinding {
    /// The first findings that are errors, or the first ones if there are no errors.
    #[must_use]
    pub fn from_findings(findings: &[Finding]) -> Vec<Self> {
        let refuses = findings.iter().any(Finding::is_error);
        findings.iter().filter(|finding| finding.is_error() || !refuses).take(MAX_FINDINGS).map(Self::from).collect()
    }
}

impl From<&Finding> for BriefFinding {
    fn from(finding: &Finding) -> Self {
        let place = finding.place.as_ref();
        Self {
            rule: finding.rule.id.to_owned(),
            severity: severity_word(finding.severity).to_owned(),
            message: mask_numbers(&finding.message),
            file: place.map(|place| place.source.path().display().to_string()),
            line: place.map(SourceLocation::line_number),
            column: place.map(SourceLocation::column_number),
            help: finding.help.as_deref().map(mask_numbers),
        }
    }
}

impl fmt::Display for BriefFinding {
    /// Writes one line: `sale.csv:3:1: the message [rule]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}:", escape_to_one_line(file))?;
            for number in [self.line, self.column].into_iter().flatten() {
                write!(f, "{number}:")?;
            }
            f.write_str(" ")?;
        }
        write!(f, "{} [{}]", escape_to_one_line(&self.message), self.rule)
    }
}

/// The beginning of a text, with each phone number masked as `…` and its last two digits. A phone number has nine
/// digits or more, with or without spaces, dashes, dots and brackets between them. Dates are not masked.
#[must_use]
pub fn mask_numbers(text: &str) -> String {
    let kept: String = text.chars().take(MAX_CHARACTERS).collect();
    let cut = if kept.len() < text.len() { "…" } else { "" };
    let mut shown = String::with_capacity(kept.len());
    let mut rest = kept.as_str();
    while let Some(at) = rest.find(|c: char| c.is_numeric()) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let end = find_number_end(from);
        let (number, behind) = from.split_at(end);
        let digits: Vec<char> = number.chars().filter(|c| c.is_numeric()).collect();
        match digits.as_slice() {
            [.., tens, ones] if digits.len() >= MIN_PHONE_DIGITS => shown.extend(['…', *tens, *ones]),
            _ => shown.push_str(number),
        }
        rest = behind;
    }
    shown + rest + cut
}

/// Where the digits or the date at the beginning of a text end.
fn find_number_end(text: &str) -> usize {
    if let Some(date) = find_date_end(text) {
        return date;
    }
    let (mut end, mut between) = (0, 0);
    for (at, c) in text.char_indices() {
        if c.is_numeric() {
            if between > 0 && find_date_end(&text[at..]).is_some() {
                return end;
            }
            (end, between) = (at + c.len_utf8(), 0);
        } else if between < 2 && (c.is_whitespace() || matches!(c, '-' | '.' | '(' | ')' | '/')) {
            between += 1;
        } else {
            break;
        }
    }
    end
}

/// The end of a date at the beginning of a text: `2026-12-01`.
fn find_date_end(text: &str) -> Option<usize> {
    const LENGTH: usize = 10;
    let date: Date = text.get(..LENGTH)?.parse().ok()?;
    let ends = !text[LENGTH..].starts_with(|c: char| c.is_numeric());
    (ends && (1970..2200).contains(&date.year())).then_some(LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{SourceText, rules};

    #[test]
    fn phone_numbers_are_masked_but_dates_are_kept() {
        for (text, expected) in [
            ("`380501234567` stands in 2 rows", "`…67` stands in 2 rows"),
            ("+38 (050) 123-45-67, 050.123.45.67", "+…67, …67"),
            ("٠١٢٣٤٥٦٧٨٩", "…٨٩"),
            ("daily-2026-12-01.csv at 2026-12-01 10:00", "daily-2026-12-01.csv at 2026-12-01 10:00"),
            ("2026-12-01 380501234567", "2026-12-01 …67"),
            ("rows 12, 13 and 14 of 2 001", "rows 12, 13 and 14 of 2 001"),
            ("daily-20261201.csv", "daily-20261201.csv"),
            ("", ""),
        ] {
            assert_eq!(mask_numbers(text), expected);
        }
        assert_eq!(mask_numbers(&"a".repeat(500)), "a".repeat(MAX_CHARACTERS) + "…");
    }

    #[test]
    fn brief_finding_contains_rule_and_position() {
        let source = SourceText::new("list.csv", "phone\n380501234567\n");
        let place = SourceLocation::new(&source, 6..18);
        let finding = Finding::new(&rules::CHECK, "`380501234567` is odd").at(place).help("call +380501234567");
        let brief = BriefFinding::from(&finding);
        assert_eq!(brief.to_string(), "list.csv:2:1: `…67` is odd [check]");
        assert_eq!(brief.help.as_deref(), Some("call +…67"));
        let warning = finding.clone().into_warning();
        let all: Vec<Finding> = std::iter::once(warning).chain(vec![finding; 9]).collect();
        assert_eq!(BriefFinding::from_findings(&all).len(), MAX_FINDINGS);
        assert!(BriefFinding::from_findings(&all).iter().all(|brief| brief.severity == "error"));
    }
}
