//! Rules: kinds of findings, with their explanations.

use std::fmt;

use super::Severity;

/// The kind of a finding. All rules are in the lists of `finding::rules` and `check::rules`.
#[derive(Debug)]
pub struct Rule {
    /// Its name in kebab case, stable for programs.
    pub id: &'static str,
    /// The severity of its findings.
    pub severity: Severity,
    /// What `campaign explain` shows.
    pub text: RuleText,
}

/// The explanation of a rule, for `campaign explain`.
#[derive(Debug)]
pub struct RuleText {
    /// What is wrong, and why it matters. The first sentence fits into a list of rules.
    pub cause: &'static str,
    /// Lines that break the rule: keys of a campaign, or a file after its name, such as `list.csv: phone,first_name`.
    pub example: &'static [&'static str],
    /// What to do: an imperative in lower case, without a full stop.
    pub fix: &'static str,
}

impl RuleText {
    /// The first sentence of the cause, without its full stop.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        self.cause.split_once(". ").map_or(self.cause, |(first, _)| first).trim_end_matches('.')
    }
}

impl Rule {
    /// A rule whose findings stop a run.
    pub(crate) const fn error(id: &'static str, text: RuleText) -> Self {
        Self { id, severity: Severity::Error, text }
    }

    /// A rule whose findings are information.
    pub(crate) const fn note(id: &'static str, text: RuleText) -> Self {
        Self { id, severity: Severity::Note, text }
    }

    /// A rule whose findings are warnings.
    pub(crate) const fn warning(id: &'static str, text: RuleText) -> Self {
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

    /// The explanation of a rule that only a test has.
    pub(crate) const RULE_TEXT: RuleText =
        RuleText { cause: "This is wrong. It matters.", example: &["name: x"], fix: "correct it" };

    #[test]
    fn summary_of_a_rule_is_the_first_sentence_of_its_cause() {
        assert_eq!(RULE_TEXT.summary(), "This is wrong");
        assert_eq!(RuleText { cause: "Only this.", ..RULE_TEXT }.summary(), "Only this");
    }
}
