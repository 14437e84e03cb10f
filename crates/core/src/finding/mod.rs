//! Findings: problems with a location and a remedy, and the rules behind them.
//!
//! A finding is data. Other code prints it on a terminal, as JSON, as GitHub workflow commands or as SARIF. A
//! [`BriefFinding`] is the form that is stored, logged and sent.

mod fix;
mod render;
pub mod rules;
mod wording;

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use fix::{Fix, FixEdit, apply_fixes};
pub use render::{
    KEPT_BLANK, PROSE_WIDTH, findings_json, is_kept_whole, keep_digit_groups, render_findings,
    render_findings_in_columns, render_github_commands, render_sarif, severity_word,
};
#[cfg(test)]
pub(crate) use tests::RULE_TEXT;
pub use wording::{
    did_you_mean, escape_controls, escape_json_controls, escape_to_one_line, join_alternatives, join_names,
    mask_numbers, only_candidate, quote_for_shell, quote_for_yaml,
};

/// The maximum number of findings that are stored, logged or sent together.
const MAX_FINDINGS: usize = 5;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information without a remedy.
    Note,
    /// Probably a mistake; it does not stop a run.
    Warning,
    /// The finding stops a run.
    Error,
}

/// A problem with its location and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of problem.
    pub rule: &'static Rule,
    /// The severity of this finding, which can differ from that of its rule.
    pub severity: Severity,
    /// The problem: lower case, no full stop, user input in backticks.
    pub message: String,
    /// The key, column or variable that the problem is about, if other code needs to know it.
    pub subject: Option<String>,
    /// The location, if the problem is in a file.
    pub place: Option<SourceLocation>,
    /// The remedy, in the same form as the message.
    pub help: Option<String>,
    /// The edit that removes the finding, if there is exactly one and it cannot change who gets which message.
    pub fix: Option<Fix>,
}

impl Finding {
    /// A finding without a location, with the severity of its rule.
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        let (severity, message) = (rule.severity, message.into());
        Self { rule, severity, message, subject: None, place: None, help: None, fix: None }
    }

    /// Turns the finding into a warning, for a problem that is only likely.
    #[must_use]
    pub fn into_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    /// Turns the finding into a note, for a problem that needs no action now.
    #[must_use]
    pub fn into_note(self) -> Self {
        Self { severity: Severity::Note, ..self }
    }

    /// Turns a warning into an error.
    #[must_use]
    pub fn into_strict(self) -> Self {
        let severity = if self.severity == Severity::Warning { Severity::Error } else { self.severity };
        Self { severity, ..self }
    }

    /// Adds the key, column or variable that the finding is about.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Adds a location to the finding.
    #[must_use]
    pub fn at(mut self, place: impl Into<Option<SourceLocation>>) -> Self {
        self.place = place.into();
        self
    }

    /// Adds a remedy to the finding.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether the finding stops a run.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The text of a file and the path that the user typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText(Arc<(PathBuf, String)>);

impl SourceText {
    /// The text of the file at `path`, as findings show it.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        Self(Arc::new((path.into(), text.into())))
    }

    /// The file's path as the user typed it.
    pub fn path(&self) -> &Path {
        &self.0.0
    }

    /// The file's text.
    pub fn text(&self) -> &str {
        &self.0.1
    }
}

/// A location in a file: a range of bytes, shown as line and column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file. If the file is too large to keep in memory, only the lines around the location.
    pub source: SourceText,
    /// Bytes of the source's text, on character boundaries.
    pub span: Range<usize>,
    /// The number of the source's first line in its file; 1 for a whole file.
    pub first_line: usize,
}

impl SourceLocation {
    /// The location of these bytes in a whole file; a span that is out of bounds or splits a character is clamped.
    pub fn new(source: &SourceText, span: Range<usize>) -> Self {
        let text = source.text();
        let floor = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (start, end) = (floor(span.start), floor(span.end));
        Self { source: source.clone(), span: start..end.max(start), first_line: 1 }
    }

    /// The line of the first character, from 1.
    pub fn line_number(&self) -> usize {
        self.first_line + self.text_before().bytes().filter(|&byte| byte == b'\n').count()
    }

    /// The column of the first character, from 1, in characters.
    pub fn column_number(&self) -> usize {
        let line = self.text_before().rsplit('\n').next().unwrap_or("");
        line.trim_start_matches('\u{feff}').chars().count() + 1
    }

    /// The line of the first character, and the columns of the first character and after the last character. Lines and
    /// columns count from 1, and columns are in UTF-16 units.
    ///
    /// The end is never before the beginning, and stays on the first line if the location spans several lines.
    pub(crate) fn utf16_range(&self) -> (usize, std::ops::RangeInclusive<usize>) {
        let count_units = |text: &str| text.encode_utf16().count();
        let line = self.text_before().rsplit('\n').next().unwrap_or("").trim_start_matches('\u{feff}');
        let marked = self.source.text()[self.span.clone()].lines().next().unwrap_or("");
        let start = count_units(line) + 1;
        (self.line_number(), start..=start + count_units(marked))
    }

    /// The line and column of a byte of the source, both from 1. `count` returns the length of the text before the byte
    /// in its line.
    pub(crate) fn position_of(&self, at: usize, count: impl Fn(&str) -> usize) -> (usize, usize) {
        let before = self.source.text().get(..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or("").trim_start_matches('\u{feff}');
        (self.first_line + before.bytes().filter(|&byte| byte == b'\n').count(), count(line) + 1)
    }

    fn text_before(&self) -> &str {
        &self.source.text()[..self.span.start]
    }
}

/// A finding for the ledger, logs and notifications: without its source excerpt, and without phone numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BriefFinding {
    /// The id of the rule.
    pub rule: String,
    /// The severity as a word.
    pub severity: String,
    /// The problem.
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
    /// The first findings that are errors, or the first findings of any severity if there are no errors.
    pub fn from_findings(findings: &[Finding]) -> Vec<Self> {
        let has_errors = findings.iter().any(Finding::is_error);
        findings.iter().filter(|finding| finding.is_error() || !has_errors).take(MAX_FINDINGS).map(Self::from).collect()
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

/// The kind of a finding. All rules are in the lists of `finding::rules` and `check::rules`.
#[derive(Debug)]
pub struct Rule {
    /// The name in kebab case, stable for programs.
    pub id: &'static str,
    /// The severity of its findings.
    pub severity: Severity,
    /// The text that `campaign explain` shows.
    pub text: RuleText,
}

/// The explanation of a rule, for `campaign explain`.
#[derive(Debug)]
pub struct RuleText {
    /// The cause and why it matters. The first sentence fits into a list of rules.
    pub cause: &'static str,
    /// Lines that break the rule: keys of a campaign, or a file name followed by its content, such as `list.csv:
    /// phone,first_name`.
    pub example: &'static [&'static str],
    /// The remedy: an imperative in lower case, without a full stop.
    pub fix: &'static str,
}

impl RuleText {
    /// The first sentence of the cause, without its full stop.
    pub fn summary(&self) -> &'static str {
        self.cause.split_once(". ").map_or(self.cause, |(first, _)| first).trim_end_matches('.')
    }
}

impl Rule {
    /// A rule whose findings stop a run.
    pub const fn error(id: &'static str, text: RuleText) -> Self {
        Self { id, severity: Severity::Error, text }
    }

    /// A rule whose findings are information.
    pub const fn note(id: &'static str, text: RuleText) -> Self {
        Self { id, severity: Severity::Note, text }
    }

    /// A rule whose findings are warnings.
    pub const fn warning(id: &'static str, text: RuleText) -> Self {
        Self { id, severity: Severity::Warning, text }
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Rule {}

impl PartialEq<str> for Rule {
    fn eq(&self, id: &str) -> bool {
        self.id == id
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The explanation of a rule for tests.
    pub(crate) const RULE_TEXT: RuleText =
        RuleText { cause: "This is wrong. It matters.", example: &["name: x"], fix: "correct it" };

    #[test]
    fn summary_of_a_rule_is_the_first_sentence_of_its_cause() {
        assert_eq!(RULE_TEXT.summary(), "This is wrong");
        assert_eq!(RuleText { cause: "Only this.", ..RULE_TEXT }.summary(), "Only this");
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
