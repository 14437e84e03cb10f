//! A problem told to a person: what is wrong, where it stands, and what to do.
//!
//! A finding is data. It is shown only at the edge: underlined on a terminal, as JSON, or as other programs read findings.

mod brief;
mod github;
mod harmless;
mod place;
mod rule;
pub mod rules;
mod sarif;
mod show;
mod suggest;

pub use brief::{BriefFinding, without_numbers};
pub use github::github;
pub use harmless::{harmless, harmless_json, one_line};
pub use place::{Place, Source};
pub use rule::Rule;
pub use sarif::sarif;
pub use show::{findings_json, severity_word, show};
pub use suggest::{did_you_mean, list, list_all, quoted};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// How it will be; there is nothing to mend.
    Note,
    /// Worth knowing; nothing is refused.
    Warning,
    /// Nothing is sent before it is mended.
    Error,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is broken.
    pub rule: &'static Rule,
    /// Whether it refuses, warns or only tells.
    pub severity: Severity,
    /// What is wrong: a lowercase fragment with names in backticks.
    pub message: String,
    /// Where it stands; nothing when it stands in no file.
    pub place: Option<Place>,
    /// What to do.
    pub help: Option<String>,
}

impl Finding {
    /// A finding without a place, as severe as its rule.
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self { rule, severity: rule.severity, message: message.into(), place: None, help: None }
    }

    /// The same finding as a warning, where the rule is only likely to be broken.
    #[must_use]
    pub fn as_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    /// The same finding as an error, where warnings are errors.
    #[must_use]
    pub fn strictly(self) -> Self {
        let severity = if self.severity == Severity::Warning { Severity::Error } else { self.severity };
        Self { severity, ..self }
    }

    /// The same finding at a place.
    #[must_use]
    pub fn at(mut self, place: impl Into<Option<Place>>) -> Self {
        self.place = place.into();
        self
    }

    /// The same finding with what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether it refuses.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
