//! A finding as a page shows it: what is wrong, where, and what to do.

use serde::Serialize;

use crate::finding::{Finding, severity_word};

/// A finding. Its words are English, whatever the page's language is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingView {
    severity: &'static str,
    rule: &'static str,
    message: Vec<FindingFragment>,
    help: Option<Vec<FindingFragment>>,
    /// The file, the line and the column.
    place: Option<String>,
}

/// A piece of what is told, which quotes names between backticks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct FindingFragment {
    text: String,
    code: bool,
}

/// What is told, with what stands between backticks as code; the last of an odd number of them is only a sign.
fn split_code(told: &str) -> Vec<FindingFragment> {
    let signs = told.matches('`').count() / 2 * 2;
    let pieces = told.splitn(signs + 1, '`').enumerate();
    let words = pieces.map(|(index, text)| FindingFragment { text: text.to_owned(), code: index % 2 == 1 });
    words.filter(|word| !word.text.is_empty()).collect()
}

impl FindingView {
    /// A finding.
    #[must_use]
    pub fn from_finding(finding: &Finding) -> Self {
        let place = finding.place.as_ref();
        Self {
            severity: severity_word(finding.severity),
            rule: finding.rule.id,
            message: split_code(&finding.message),
            help: finding.help.as_deref().map(split_code),
            place: place.map(|place| {
                format!("{}:{}:{}", place.source.path().display(), place.line_number(), place.column_number())
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_between_backticks_are_code() {
        let table = [
            ("the link `http://a` is", "the link |[http://a]| is"),
            ("`a` and `b`", "[a]| and |[b]"),
            ("a ` b", "a ` b"),
            ("`a` ` b", "[a]| ` b"),
            ("", ""),
        ];
        for (told, expected) in table {
            let shown =
                split_code(told).into_iter().map(|word| if word.code { format!("[{}]", word.text) } else { word.text });
            assert_eq!(shown.collect::<Vec<_>>().join("|"), expected, "{told}");
        }
    }
}
