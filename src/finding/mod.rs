//! A problem told to a person: what is wrong, where it stands, and what to do.
//!
//! A finding is data. It is shown only at the edge: underlined on a terminal, or as JSON.

mod harmless;
mod place;
mod show;
mod suggest;

pub use harmless::{harmless, harmless_json, one_line};
pub use place::{Place, Source};
pub use show::{findings_json, show};
pub use suggest::{did_you_mean, list, list_all};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is refused.
    Warning,
    /// Nothing is sent before it is mended.
    Error,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name in kebab case, stable for programs.
    pub rule: &'static str,
    /// Whether it refuses or warns.
    pub severity: Severity,
    /// What is wrong: a lowercase fragment with names in backticks.
    pub message: String,
    /// Where it stands; nothing when it stands in no file.
    pub place: Option<Place>,
    /// What to do.
    pub help: Option<String>,
}

impl Finding {
    /// An error without a place.
    pub fn error(rule: &'static str, message: impl Into<String>) -> Self {
        Self { rule, severity: Severity::Error, message: message.into(), place: None, help: None }
    }

    /// A warning without a place.
    pub fn warning(rule: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(rule, message) }
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
