//! Positions in a text: bytes, and lines with columns in the editor's unit.

use std::ops::Range;

use campaign_core::finding::SourceLocation;
use lsp_types::Position;

/// The unit of columns, which the editor and the server agree on.
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
    #[must_use]
    pub fn to_position(self, text: &str, byte: usize) -> Position {
        let before = &text[..floor_boundary(text, byte)];
        let line = before.bytes().filter(|&byte| byte == b'\n').count();
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let column = before[start..].trim_start_matches('\u{feff}').chars().map(|character| self.width(character));
        Position::new(clamp(line), clamp(column.sum()))
    }

    /// The byte at a position. A position outside the text is moved to the end of its line or of the text.
    #[must_use]
    pub fn to_byte(self, text: &str, position: Position) -> usize {
        let Some(start) = find_line(text, position.line as usize) else { return text.len() };
        let line = text[start..].split('\n').next().unwrap_or("");
        let line = line.strip_suffix('\r').unwrap_or(line);
        let mut left = position.character as usize;
        for (at, character) in line.char_indices() {
            let width = if character == '\u{feff}' { 0 } else { self.width(character) };
            if left < width {
                return start + at;
            }
            left -= width;
        }
        start + line.len()
    }

    /// The range of some bytes.
    #[must_use]
    pub fn to_range(self, text: &str, span: &Range<usize>) -> lsp_types::Range {
        lsp_types::Range::new(self.to_position(text, span.start), self.to_position(text, span.end.max(span.start)))
    }

    /// The range of a finding's location. It contains at least one character, so that editors show it.
    #[must_use]
    pub fn locate(self, place: &SourceLocation) -> lsp_types::Range {
        let text = place.source.text();
        let mut span = place.span.clone();
        if span.is_empty() {
            let next = text[span.start..].chars().next().filter(|next| !matches!(next, '\n' | '\r'));
            span.end += next.map_or(0, char::len_utf8);
        }
        let mut range = self.to_range(text, &span);
        let above = clamp(place.first_line.saturating_sub(1));
        range.start.line = range.start.line.saturating_add(above);
        range.end.line = range.end.line.saturating_add(above);
        range
    }

    /// The text after a change. Without a range, the change is the whole text.
    #[must_use]
    pub fn apply_change(self, text: &str, range: Option<lsp_types::Range>, new: &str) -> String {
        let Some(range) = range else { return new.to_owned() };
        let start = self.to_byte(text, range.start);
        let end = self.to_byte(text, range.end).max(start);
        format!("{}{new}{}", &text[..start], &text[end..])
    }
}

fn clamp(number: usize) -> u32 {
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

/// The first byte of a line, from 0.
fn find_line(text: &str, line: usize) -> Option<usize> {
    match line {
        0 => Some(0),
        _ => text.match_indices('\n').nth(line - 1).map(|(end, _)| end + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::finding::SourceText;

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
        let range = |a, b, c, d| Some(lsp_types::Range::new(Position::new(a, b), Position::new(c, d)));
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
