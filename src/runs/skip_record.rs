//! The ledger's record of a skipped occurrence.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Error, recorded_occurrence};
use crate::calendar::Occurrence;
use crate::finding::{BriefFinding, Finding, escape_to_one_line, mask_numbers};
use crate::ledger::{OccurrenceOutcome, OccurrenceRecord};

/// The reason why an occurrence was skipped, with the findings that refused it. It contains no phone numbers.
///
/// The ledger keeps it as text: the words alone, or JSON if there are findings. Earlier versions kept words alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkipRecord {
    /// The reason in words.
    pub why: String,
    /// The findings, if there are any.
    pub findings: Vec<BriefFinding>,
}

/// An occurrence that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedOccurrence {
    /// The occurrence.
    pub occurrence: Occurrence,
    /// Why.
    pub record: SkipRecord,
}

impl SkipRecord {
    /// A reason with its findings.
    #[must_use]
    pub fn new(why: &str, findings: &[Finding]) -> Self {
        Self { why: mask_numbers(why), findings: BriefFinding::from_findings(findings) }
    }

    /// The reason and the findings of an error. That nothing was sent goes without saying.
    #[must_use]
    pub fn from_error(error: &Error) -> Self {
        let message = error.to_string();
        Self::new(message.trim_end_matches("; nothing was sent"), error.findings())
    }

    /// Its text in the ledger.
    #[must_use]
    pub fn to_text(&self) -> String {
        let json = serde_json::to_string(self).ok().filter(|_| !self.findings.is_empty());
        json.unwrap_or_else(|| self.why.clone())
    }

    /// The record of a text in the ledger.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|_| Self { why: text.to_owned(), findings: Vec::new() })
    }
}

impl fmt::Display for SkipRecord {
    /// Writes it as one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape_to_one_line(&self.why))?;
        for (index, finding) in self.findings.iter().enumerate() {
            write!(f, "{} {finding}", if index == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl SkippedOccurrence {
    /// The skipped occurrence, if a record has one.
    pub(super) fn from_record(record: &OccurrenceRecord) -> Option<Self> {
        let OccurrenceOutcome::Skipped(reason) = &record.outcome else { return None };
        Some(Self { occurrence: recorded_occurrence(record)?, record: SkipRecord::from_text(reason) })
    }

    /// Its JSON form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { occurrence, record } = self;
        json!({
            "at": occurrence.format_moment(),
            "local": occurrence.format_nominal(),
            "reason": record.why,
            "findings": record.findings,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::rules;

    #[test]
    fn skip_record_survives_the_ledger() {
        let finding = Finding::new(&rules::CHECK, "the list is gone").help("bring it");
        for (why, findings) in [("missed", &[][..]), ("1 problem found", std::slice::from_ref(&finding))] {
            let record = SkipRecord::new(why, findings);
            assert_eq!(SkipRecord::from_text(&record.to_text()), record);
        }
        assert_eq!(SkipRecord::new("missed", &[]).to_text(), "missed", "as earlier versions wrote it");
        for earlier in ["1 problem found", "{", "{\"why\": 1}", "\"x\"", ""] {
            assert_eq!(SkipRecord::from_text(earlier).why, earlier);
        }
        let line = SkipRecord::new("1 problem found", &[finding.clone(), finding]).to_string();
        assert_eq!(line, "1 problem found: the list is gone [check]; the list is gone [check]");
    }
}
