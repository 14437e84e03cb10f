//! Findings on a terminal and as JSON.

use std::fmt::Write as _;

use super::{Finding, Severity};

/// The findings as a person reads them; `color` adds ANSI colours.
#[must_use]
pub fn show(findings: &[Finding], _color: bool) -> String {
    let mut text = String::new();
    for finding in findings {
        let _ = writeln!(text, "{}: {}", severity(finding.severity), finding.message);
    }
    text
}

/// The findings as `check --json` prints them.
#[must_use]
pub fn findings_json(findings: &[Finding]) -> serde_json::Value {
    findings
        .iter()
        .map(|finding| {
            let place = finding.place.as_ref();
            serde_json::json!({
                "rule": finding.rule,
                "severity": severity(finding.severity),
                "message": finding.message,
                "file": place.map(|place| place.source.path().display().to_string()),
                "line": place.map(super::Place::line),
                "column": place.map(super::Place::column),
                "help": finding.help,
            })
        })
        .collect()
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}
