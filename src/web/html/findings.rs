//! A finding as a page shows it: what is wrong, where, and what to do.

use serde::Serialize;

use crate::finding::{Finding, severity_word};

/// A finding. Its words are English, whatever the page's language is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingView {
    severity: &'static str,
    rule: &'static str,
    message: String,
    help: Option<String>,
    /// The file, the line and the column.
    place: Option<String>,
}

impl FindingView {
    /// A finding.
    #[must_use]
    pub fn of(finding: &Finding) -> Self {
        let place = finding.place.as_ref();
        Self {
            severity: severity_word(finding.severity),
            rule: finding.rule.id,
            message: finding.message.clone(),
            help: finding.help.clone(),
            place: place.map(|place| format!("{}:{}:{}", place.source.path().display(), place.line(), place.column())),
        }
    }
}
