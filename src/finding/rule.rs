//! A rule: what findings have in common that say the same thing of different places.

use std::fmt;

use super::Severity;

/// A rule by which something is judged. Every rule of the house is in a list: `finding::rules`, or `check::rules`.
#[derive(Debug)]
pub struct Rule {
    /// Its name in kebab case, stable for programs.
    pub id: &'static str,
    /// Whether its findings refuse, warn or only tell.
    pub severity: Severity,
    /// Why it is a rule, in a sentence.
    pub why: &'static str,
    /// How to mend what breaks it, in a sentence.
    pub mend: &'static str,
}

impl Rule {
    /// A rule that refuses.
    pub(crate) const fn error(id: &'static str, why: &'static str, mend: &'static str) -> Self {
        Self { id, severity: Severity::Error, why, mend }
    }

    /// A rule that only tells how it will be.
    pub(crate) const fn note(id: &'static str, why: &'static str, mend: &'static str) -> Self {
        Self { id, severity: Severity::Note, why, mend }
    }

    /// A rule that warns.
    pub(crate) const fn warning(id: &'static str, why: &'static str, mend: &'static str) -> Self {
        Self { id, severity: Severity::Warning, why, mend }
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
