//! Fuzz targets: parsers of untrusted input, each with a property that must hold for any bytes.
//!
//! Most properties compare a reader with a second one that shares no code with it. `fuzz/main.rs` searches for inputs
//! that break a property, and `tests/fuzzed.rs` replays the known inputs.

mod answers;
mod assistant;
mod backup;
mod campaign_file;
mod gateways_file;
mod phones;
mod recipients;
mod replies;
mod results;
mod schedules;
mod texts;
mod webhooks;

use std::sync::LazyLock;

use campaign_core::finding::{Finding, render_findings};

/// A parser of untrusted input.
pub(crate) struct FuzzTarget {
    /// Its name, and that of its folder in `fuzz/corpus`.
    pub(crate) name: &'static str,
    /// Panics if the property does not hold for these bytes.
    pub(crate) check: fn(&[u8]),
}

/// All fuzz targets.
pub(crate) const TARGETS: [FuzzTarget; 12] = [
    FuzzTarget { name: "answers", check: answers::check },
    FuzzTarget { name: "assistant", check: assistant::check },
    FuzzTarget { name: "backup", check: backup::check },
    FuzzTarget { name: "campaign_file", check: campaign_file::check },
    FuzzTarget { name: "gateways_file", check: gateways_file::check },
    FuzzTarget { name: "phones", check: phones::check },
    FuzzTarget { name: "recipients", check: recipients::check },
    FuzzTarget { name: "replies", check: replies::check },
    FuzzTarget { name: "results", check: results::check },
    FuzzTarget { name: "schedules", check: schedules::check },
    FuzzTarget { name: "texts", check: texts::check },
    FuzzTarget { name: "webhooks", check: webhooks::check },
];

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
});

/// Waits for a future.
fn wait_for<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// The first byte, which selects a variant of the check, and the rest; `None` if there are no bytes.
fn split_choice(data: &[u8], choices: u8) -> Option<(u8, &[u8])> {
    data.split_first().map(|(choice, rest)| (choice % choices, rest))
}

/// The value that libyaml reads from a text. `None` if the text might mean something else in YAML 1.2, because libyaml
/// reads YAML 1.1.
///
/// # Panics
/// If libyaml rejects a text about which the versions cannot differ.
fn read_with_libyaml(text: &str) -> Option<serde_yaml::Value> {
    /// Characters that only one of the two versions takes for line breaks, and byte order marks.
    const SPECIAL: [char; 4] = ['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}'];
    if text.contains(SPECIAL) || has_ambiguous_question_mark(text) {
        return None;
    }
    match serde_yaml::from_str(text) {
        Ok(value) => Some(value),
        // YAML 1.2 allows colons within a text, and keys of several lines, between braces. It also allows tabs after
        // some signs, such as `?`.
        Err(_) if text.contains(['{', '[', '\t']) => None,
        Err(error) => panic!("libyaml rejects an accepted file: {error}"),
    }
}

/// Whether a `?` might be a part of a text between braces in YAML 1.2, and the sign of a key in YAML 1.1.
fn has_ambiguous_question_mark(text: &str) -> bool {
    let is_followed_by_text =
        |after: &str| after.chars().next().is_some_and(|next| !next.is_whitespace() && !",]}".contains(next));
    text.contains(['{', '[']) && text.split('?').skip(1).any(is_followed_by_text)
}

/// Checks that all findings can be displayed and mark existing text.
fn check_findings(findings: &[Finding]) {
    for finding in findings {
        assert!(!finding.message.trim().is_empty(), "a finding without a message: {}", finding.rule.id);
        if let Some(place) = &finding.place {
            assert!(place.source.text().get(place.span.clone()).is_some(), "a mark outside the file: {finding:?}");
        }
        assert!(!render_findings(std::slice::from_ref(finding), false).is_empty(), "{finding:?}");
    }
}
