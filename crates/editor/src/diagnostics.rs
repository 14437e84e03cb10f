//! Findings as diagnostics of the Language Server Protocol.

use std::path::Path;

use campaign_core::finding::{Finding, Severity, SourceLocation, SourceText, mask_numbers};
use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Position, Range, Url,
};

use crate::position::ColumnUnit;

/// The name of the program beside its diagnostics.
const SOURCE: &str = "campaign";

/// The endings of files that are no texts: findings about their rows are shown at the key that names them.
const TABLE_ENDINGS: [&str; 9] = ["csv", "tsv", "xlsx", "xlsm", "xls", "ods", "gz", "zst", "zip"];

/// Whether findings about a file are shown in that file itself.
pub(crate) fn is_shown_in_file(path: &Path) -> bool {
    let is_table = |ending: &str| TABLE_ENDINGS.contains(&ending.to_ascii_lowercase().as_str());
    path.is_absolute() && !path.extension().and_then(|ending| ending.to_str()).is_some_and(is_table)
}

/// A finding at its own place or, if it has none, at the beginning of its file.
pub(crate) fn to_diagnostic(finding: &Finding, unit: ColumnUnit) -> Diagnostic {
    let range = finding.place.as_ref().map(|place| unit.locate(place)).unwrap_or_default();
    new_diagnostic(finding, range, String::new())
}

/// A finding that cannot be shown at its own place, at another one: the key that names the list, or the beginning of
/// the file.
pub(crate) fn to_anchored_diagnostic(
    finding: &Finding,
    anchor: Option<&SourceLocation>,
    unit: ColumnUnit,
) -> Diagnostic {
    let first = Range::new(Position::default(), Position::new(0, 1));
    let range = anchor.map_or(first, |anchor| unit.locate(anchor));
    let Some(place) = &finding.place else { return new_diagnostic(finding, range, String::new()) };
    let file = place.source.path();
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    let diagnostic = new_diagnostic(finding, range, format!("{name}:{}: ", place.line_number()));
    let related = Url::from_file_path(file).ok().map(|uri| DiagnosticRelatedInformation {
        location: Location::new(uri, unit.locate(place)),
        message: format!("line {} of the list", place.line_number()),
    });
    Diagnostic { related_information: related.map(|related| vec![related]), ..diagnostic }
}

fn new_diagnostic(finding: &Finding, range: Range, prefix: String) -> Diagnostic {
    let mut message = prefix + &mask_numbers(&finding.message);
    if let Some(help) = &finding.help {
        message += &format!("\nhelp: {}", mask_numbers(help));
    }
    Diagnostic {
        range,
        severity: Some(to_severity(finding.severity)),
        code: Some(NumberOrString::String(finding.rule.id.to_owned())),
        source: Some(SOURCE.to_owned()),
        message,
        ..Diagnostic::default()
    }
}

fn to_severity(severity: Severity) -> DiagnosticSeverity {
    match severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Note => DiagnosticSeverity::INFORMATION,
    }
}

/// Moves a finding about an older text to its place in the new text. `None` if its lines changed.
pub(crate) fn move_finding(finding: &Finding, new: &SourceText) -> Option<Finding> {
    let place = finding.place.as_ref()?;
    let (old, text) = (place.source.text(), new.text());
    if old == text {
        return Some(finding.clone());
    }
    let same = |(a, b): &(u8, u8)| a == b;
    let before = old.bytes().zip(text.bytes()).take_while(same).count();
    let most = old.len().min(text.len()) - before;
    let after = old.bytes().rev().zip(text.bytes().rev()).take_while(same).count().min(most);
    let span = match place.span.clone() {
        span if span.end < before => span,
        span if span.start > old.len() - after => {
            let moved = |at: usize| at + text.len() - old.len();
            moved(span.start)..moved(span.end)
        }
        _ => return None,
    };
    let place = SourceLocation { first_line: place.first_line, ..SourceLocation::new(new, span) };
    // The edits of a fix apply only to the older text.
    Some(Finding { place: Some(place), fix: None, ..finding.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::finding::rules;

    fn finding(text: &str, needle: &str) -> Finding {
        let start = text.find(needle).unwrap();
        let place = SourceLocation::new(&SourceText::new("/a/sale.yaml", text), start..start + needle.len());
        Finding::new(&rules::CHECK, "`+380501234567` is odd").at(place).help("call +380501234567")
    }

    #[test]
    fn diagnostic_includes_rule_and_help_but_no_phone_number() {
        let diagnostic = to_diagnostic(&finding("name: x\nvars: я odd\n", "odd"), ColumnUnit::Utf16);
        assert_eq!(diagnostic.message, "`+…67` is odd\nhelp: call +…67");
        assert_eq!(diagnostic.code, Some(NumberOrString::String("check".into())));
        assert_eq!(diagnostic.range, Range::new(Position::new(1, 8), Position::new(1, 11)));
        assert!(diagnostic.code_description.is_none());
    }

    #[test]
    fn list_finding_is_anchored_in_the_campaign_and_names_its_row() {
        let list = SourceText::new("/a/list.csv", "phone\nodd\n");
        let odd = Finding::new(&rules::CHECK, "odd").at(SourceLocation::new(&list, 6..9));
        let campaign = SourceText::new("/a/sale.yaml", "recipients: { file: list.csv }");
        let anchor = SourceLocation::new(&campaign, 20..28);
        let diagnostic = to_anchored_diagnostic(&odd, Some(&anchor), ColumnUnit::Utf16);
        assert_eq!(diagnostic.range.start, Position::new(0, 20));
        assert_eq!(diagnostic.message, "list.csv:2: odd");
        let related = diagnostic.related_information.unwrap();
        assert_eq!(related[0].location.range.start, Position::new(1, 0));
        assert!(is_shown_in_file(Path::new("/a/sale.yaml")) && !is_shown_in_file(Path::new("/a/LIST.CSV")));
        assert!(!is_shown_in_file(Path::new("list.txt")), "an address is no file");
    }

    #[test]
    fn finding_moves_with_its_line_until_the_line_changes() {
        let old = "name: x\nvars: odd\nedition: y\n";
        let moved = |new: &str| {
            let source = SourceText::new("/a/sale.yaml", new);
            let place = move_finding(&finding(old, "odd"), &source)?.place?;
            Some(new[place.span].to_owned())
        };
        for new in
            [old, "name: xyz\nvars: odd\nedition: y\n", "vars: odd\nedition: y\n", "name: x\nvars: odd\nedition: yz\n"]
        {
            assert_eq!(moved(new).as_deref(), Some("odd"), "{new}");
        }
        assert_eq!(moved("name: x\nvars: od\nedition: y\n"), None);
        assert_eq!(moved(""), None);
    }
}
