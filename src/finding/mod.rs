//! Findings: problems with their place and remedy, and the rules behind them.
//!
//! A finding is data. Only the edge prints it: on a terminal, as JSON, as GitHub workflow commands or as SARIF.

mod brief;
mod github;
mod harmless;
mod place;
mod rule;
pub mod rules;
mod sarif;
mod show;
mod suggest;

pub use brief::{BriefFinding, mask_numbers};
pub use github::render_github_commands;
pub use harmless::{escape_controls, escape_json_controls, escape_to_one_line};
pub use place::{SourceLocation, SourceText};
#[cfg(test)]
pub(crate) use rule::tests::RULE_TEXT;
pub use rule::{Rule, RuleText};
pub use sarif::render_sarif;
pub use show::{
    KEPT_BLANK, PROSE_WIDTH, findings_json, is_kept_whole, render_findings, render_findings_in_columns, severity_word,
};
pub use suggest::{did_you_mean, join_alternatives, join_names, quote_for_shell};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information; there is nothing to fix.
    Note,
    /// Probably a mistake; it does not stop a run.
    Warning,
    /// It stops a run.
    Error,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of problem.
    pub rule: &'static Rule,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong: lower case, no full stop, user input in backticks.
    pub message: String,
    /// Its place, if it is in a file.
    pub place: Option<SourceLocation>,
    /// What to do, in the same form as the message.
    pub help: Option<String>,
}

impl Finding {
    /// A finding without a place, with the severity of its rule.
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self { rule, severity: rule.severity, message: message.into(), place: None, help: None }
    }

    /// The same finding as a warning, if the problem is only likely.
    #[must_use]
    pub fn as_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    /// The same finding as an error, if warnings count as errors.
    #[must_use]
    pub fn into_strict(self) -> Self {
        let severity = if self.severity == Severity::Warning { Severity::Error } else { self.severity };
        Self { severity, ..self }
    }

    /// The same finding at a place.
    #[must_use]
    pub fn at(mut self, place: impl Into<Option<SourceLocation>>) -> Self {
        self.place = place.into();
        self
    }

    /// The same finding with a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether it stops a run.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
