//! Conversions to the types of the Language Server Protocol: positions in a text, and findings as diagnostics.

use std::path::Path;

use campaign_core::finding::{Finding, Severity, SourceLocation, SourceText, mask_numbers};
use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Position, Range, Url,
};

/// The name that editors show as the source of a diagnostic.
const SOURCE: &str = "campaign";

/// The extensions of recipient lists. Findings about the rows of a list are shown at the key that names the file.
const TABLE_EXTENSIONS: [&str; 9] = ["csv", "tsv", "xlsx", "xlsm", "xls", "ods", "gz", "zst", "zip"];

/// The unit in which columns are counted, on which the editor and the server agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnUnit {
    /// Bytes.
    Utf8,
    /// UTF-16 code units.
    #[default]
    Utf16,
}

impl ColumnUnit {
    fn width(self, character: char) -> usize {
        match self {
            ColumnUnit::Utf8 => character.len_utf8(),
            ColumnUnit::Utf16 => character.len_utf16(),
        }
    }

    /// The position of a byte. A byte order mark has no width.
    pub fn to_position(self, text: &str, byte: usize) -> Position {
        let before = &text[..floor_boundary(text, byte)];
        let line = before.bytes().filter(|&byte| byte == b'\n').count();
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let column = before[start..].trim_start_matches('\u{feff}').chars().map(|character| self.width(character));
        Position::new(clamp_to_u32(line), clamp_to_u32(column.sum()))
    }

    /// The byte at a position. A position outside the text is moved to the end of its line or of the text.
    pub fn to_byte(self, text: &str, position: Position) -> usize {
        let Some(start) = find_line(text, position.line as usize) else { return text.len() };
        let line = text[start..].split('\n').next().unwrap_or("");
        let line = line.strip_suffix('\r').unwrap_or(line);
        let mut remaining = position.character as usize;
        for (at, character) in line.char_indices() {
            let width = if character == '\u{feff}' { 0 } else { self.width(character) };
            if remaining < width {
                return start + at;
            }
            remaining -= width;
        }
        start + line.len()
    }

    /// The range of the bytes in `span`.
    pub fn to_range(self, text: &str, span: &std::ops::Range<usize>) -> Range {
        Range::new(self.to_position(text, span.start), self.to_position(text, span.end.max(span.start)))
    }

    /// The range of a finding's location. The range contains at least one character if possible, so that editors show
    /// the finding.
    pub fn locate(self, place: &SourceLocation) -> Range {
        let text = place.source.text();
        let mut span = place.span.clone();
        if span.is_empty() {
            let next = text[span.start..].chars().next().filter(|next| !matches!(next, '\n' | '\r'));
            span.end += next.map_or(0, char::len_utf8);
        }
        let mut range = self.to_range(text, &span);
        let above = clamp_to_u32(place.first_line.saturating_sub(1));
        range.start.line = range.start.line.saturating_add(above);
        range.end.line = range.end.line.saturating_add(above);
        range
    }

    /// The text after a change. If there is no range, `new_text` replaces the whole text.
    pub fn apply_change(self, text: &str, range: Option<Range>, new_text: &str) -> String {
        let Some(range) = range else { return new_text.to_owned() };
        let start = self.to_byte(text, range.start);
        let end = self.to_byte(text, range.end).max(start);
        format!("{}{new_text}{}", &text[..start], &text[end..])
    }
}

fn clamp_to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The last character boundary that is not after `byte`.
pub(crate) fn floor_boundary(text: &str, byte: usize) -> usize {
    let mut at = byte.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The offset of the first byte of a line; lines count from 0.
fn find_line(text: &str, line: usize) -> Option<usize> {
    match line {
        0 => Some(0),
        _ => text.match_indices('\n').nth(line - 1).map(|(end, _)| end + 1),
    }
}

/// Whether findings about a file are shown in that file itself.
pub(crate) fn is_shown_in_file(path: &Path) -> bool {
    let is_table = |extension: &str| TABLE_EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str());
    path.is_absolute() && !path.extension().and_then(|extension| extension.to_str()).is_some_and(is_table)
}

/// Converts a finding to a diagnostic at its own location or, without a location, at the beginning of the file.
pub(crate) fn to_diagnostic(finding: &Finding, unit: ColumnUnit) -> Diagnostic {
    let range = finding.place.as_ref().map(|place| unit.locate(place)).unwrap_or_default();
    new_diagnostic(finding, range, String::new())
}

/// Converts a finding that cannot be shown at its own location to a diagnostic at `anchor`, or else at the beginning of
/// the file. `anchor` is the key that names the list.
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

/// Moves a finding about an older text to its location in the new text. `None` if the changed part of the text
/// contains or touches the finding.
pub(crate) fn move_finding(finding: &Finding, new_text: &SourceText) -> Option<Finding> {
    let place = finding.place.as_ref()?;
    let (old, text) = (place.source.text(), new_text.text());
    if old == text {
        return Some(finding.clone());
    }
    let is_same = |(a, b): &(u8, u8)| a == b;
    let before = old.bytes().zip(text.bytes()).take_while(is_same).count();
    let max_after = old.len().min(text.len()) - before;
    let after = old.bytes().rev().zip(text.bytes().rev()).take_while(is_same).count().min(max_after);
    let span = match place.span.clone() {
        span if span.end < before => span,
        span if span.start > old.len() - after => {
            let move_offset = |at: usize| at + text.len() - old.len();
            move_offset(span.start)..move_offset(span.end)
        }
        _ => return None,
    };
    let place = SourceLocation { first_line: place.first_line, ..SourceLocation::new(new_text, span) };
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
        let finding = Finding::new(&rules::CHECK, "odd").at(SourceLocation::new(&list, 6..9));
        let campaign = SourceText::new("/a/sale.yaml", "recipients: { file: list.csv }");
        let anchor = SourceLocation::new(&campaign, 20..28);
        let diagnostic = to_anchored_diagnostic(&finding, Some(&anchor), ColumnUnit::Utf16);
        assert_eq!(diagnostic.range.start, Position::new(0, 20));
        assert_eq!(diagnostic.message, "list.csv:2: odd");
        let related = diagnostic.related_information.unwrap();
        assert_eq!(related[0].location.range.start, Position::new(1, 0));
        assert!(is_shown_in_file(Path::new("/a/sale.yaml")) && !is_shown_in_file(Path::new("/a/LIST.CSV")));
        assert!(!is_shown_in_file(Path::new("list.txt")), "a relative path is not the path of a file");
    }

    #[test]
    fn finding_moves_with_its_text_until_the_text_changes() {
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

    #[test]
    fn columns_are_counted_in_the_units_of_the_editor() {
        let text = "name: x\r\nvars: { a: Олена 🎉 b }\n";
        for (needle, utf8, utf16) in [("name", (0, 0), (0, 0)), ("Олена", (1, 11), (1, 11)), ("b }", (1, 27), (1, 20))]
        {
            let byte = text.find(needle).unwrap();
            for (unit, (line, column)) in [(ColumnUnit::Utf8, utf8), (ColumnUnit::Utf16, utf16)] {
                let position = Position::new(line, column);
                assert_eq!(unit.to_position(text, byte), position, "{needle} {unit:?}");
                assert_eq!(unit.to_byte(text, position), byte, "{needle} {unit:?}");
            }
        }
    }

    #[test]
    fn position_outside_the_text_is_clamped() {
        let unit = ColumnUnit::Utf16;
        for (text, line, column, byte) in [
            ("", 0, 0, 0),
            ("", 7, 7, 0),
            ("ab\r\ncd", 0, 99, 2),
            ("ab\ncd", 9, 0, 5),
            ("a🎉", 0, 2, 1),
            ("🎉", 0, 1, 0),
        ] {
            assert_eq!(unit.to_byte(text, Position::new(line, column)), byte, "{text:?} {line}:{column}");
        }
        assert_eq!(unit.to_position("я", 1), Position::new(0, 0));
        assert_eq!(unit.to_position("я", 99), Position::new(0, 1));
    }

    #[test]
    fn change_replaces_its_range_or_the_whole_text() {
        let unit = ColumnUnit::Utf16;
        let range = |a, b, c, d| Some(Range::new(Position::new(a, b), Position::new(c, d)));
        assert_eq!(unit.apply_change("ab\ncd\n", range(0, 1, 1, 1), "X"), "aXd\n");
        assert_eq!(unit.apply_change("ab", range(5, 5, 0, 0), "!"), "ab!");
        assert_eq!(unit.apply_change("ab", None, "new"), "new");
    }

    #[test]
    fn empty_location_is_widened_to_one_character() {
        let place = SourceLocation { first_line: 5, ..SourceLocation::new(&SourceText::new("a", "x\nyz"), 2..2) };
        let range = ColumnUnit::Utf16.locate(&place);
        assert_eq!((range.start, range.end), (Position::new(5, 0), Position::new(5, 1)));
    }
}
