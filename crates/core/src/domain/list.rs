//! Rows and file formats of recipient lists.

use std::fmt;

use encoding_rs::Encoding;
use serde::{Deserialize, Serialize};

/// The number of a row in the list of recipients, as a spreadsheet shows it: the header is row 1, and blank lines
/// count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Row(u32);

impl Row {
    /// The header's row.
    pub const HEADER: Row = Row(1);
    /// The row below the header, the first that can be a recipient.
    pub const FIRST: Row = Row(2);

    /// The row with this number.
    pub fn new(number: u32) -> Self {
        Self(number)
    }

    /// The row's number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Rows selected on the command line, such as `2-51,60`: ranges, each with its first and last row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSet(Vec<(u32, u32)>);

/// The reason why a selection of rows cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseRowsError {
    /// A part is neither a number nor a range.
    #[error("`{0}` is not a row or a range of rows; write, for example, `2-51,60`")]
    NotARange(String),
    /// The header was selected.
    #[error("row 1 is the header; the first recipient is in row 2")]
    Header,
    /// A range ends before it begins.
    #[error("`{0}` ends before it starts")]
    Backwards(String),
}

impl RowSet {
    /// Whether `row` is selected.
    pub fn contains(&self, row: Row) -> bool {
        self.0.iter().any(|&(first, last)| (first..=last).contains(&row.get()))
    }

    /// The row, if exactly one is selected.
    pub fn single_row(&self) -> Option<Row> {
        match self.0[..] {
            [(first, last)] if first == last => Some(Row(first)),
            _ => None,
        }
    }

    /// The last selected row.
    pub fn last_row(&self) -> Row {
        Row(self.0.iter().map(|&(_, last)| last).max().unwrap_or(0))
    }
}

impl FromIterator<u32> for RowSet {
    /// The rows with these numbers, which are expected in ascending order.
    fn from_iter<I: IntoIterator<Item = u32>>(rows: I) -> Self {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for row in rows {
            match ranges.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(row) => *last = row,
                _ => ranges.push((row, row)),
            }
        }
        Self(ranges)
    }
}

impl From<Row> for RowSet {
    fn from(row: Row) -> Self {
        Self(vec![(row.get(), row.get())])
    }
}

impl std::fmt::Display for RowSet {
    /// Formats the rows as on the command line: `2-51,60`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, (first, last)) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for RowSet {
    type Err = ParseRowsError;

    fn from_str(text: &str) -> Result<Self, ParseRowsError> {
        let mut ranges = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number =
                |digits: &str| digits.trim().parse::<u32>().map_err(|_| ParseRowsError::NotARange(part.to_owned()));
            let (first, last) = (number(first)?, number(last)?);
            if first <= 1 {
                return Err(ParseRowsError::Header);
            }
            if last < first {
                return Err(ParseRowsError::Backwards(part.to_owned()));
            }
            ranges.push((first, last));
        }
        Ok(Self(ranges))
    }
}

/// The format of the file with the list, as far as the campaign defines it. The rest is detected.
///
/// The format describes only the user's file: a run keeps a copy of the list as UTF-8 text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFormat {
    /// The text encoding.
    pub encoding: Option<&'static Encoding>,
    /// The separator between cells.
    pub delimiter: Option<Delimiter>,
    /// The sheet of a workbook.
    pub sheet: Option<String>,
    /// The row with the headers, as a spreadsheet numbers it; rows above it are ignored.
    pub header_row: Option<u32>,
}

/// The separator between cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delimiter(u8);

impl Delimiter {
    /// `,`
    pub const COMMA: Self = Self(b',');
    /// `;`
    pub const SEMICOLON: Self = Self(b';');
    /// A tab.
    pub const TAB: Self = Self(b'\t');
    /// `|`
    pub const PIPE: Self = Self(b'|');
    /// The delimiters that detection tries; the first one wins a tie.
    pub const COMMON: [Self; 4] = [Self::COMMA, Self::SEMICOLON, Self::TAB, Self::PIPE];

    /// The delimiter with this character. Letters, digits, double quotes, control characters other than the tab, and
    /// characters outside ASCII cannot be delimiters.
    pub fn new(byte: u8) -> Option<Self> {
        let is_allowed = matches!(byte, b'\t' | b' ' | b'!'..=b'~') && !byte.is_ascii_alphanumeric() && byte != b'"';
        is_allowed.then_some(Self(byte))
    }

    /// The delimiter as a byte.
    pub fn to_byte(self) -> u8 {
        self.0
    }

    /// The name of the delimiter for people, such as `comma`.
    pub fn name(self) -> String {
        match self {
            Self::COMMA => "comma".to_owned(),
            Self::SEMICOLON => "semicolon".to_owned(),
            Self::TAB => "tab".to_owned(),
            Self::PIPE => "vertical bar".to_owned(),
            Self(b' ') => "space".to_owned(),
            Self(byte) => format!("`{}`", char::from(byte)),
        }
    }

    /// Parses a delimiter, given by its name or as the character itself.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "comma" => Some(Self::COMMA),
            "semicolon" => Some(Self::SEMICOLON),
            "tab" | "\\t" => Some(Self::TAB),
            "pipe" => Some(Self::PIPE),
            "space" => Some(Self(b' ')),
            _ => match name.as_bytes() {
                [byte] => Self::new(*byte),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_set_accepts_numbers_and_ranges() {
        let rows: RowSet = "2-4, 60".parse().unwrap();
        let chosen: Vec<u32> = (1..100).filter(|&n| rows.contains(Row::new(n))).collect();
        assert_eq!(chosen, [2, 3, 4, 60]);
        assert_eq!(rows.to_string(), "2-4,60");
    }

    #[test]
    fn row_set_merges_adjacent_rows() {
        let rows: RowSet = [2, 3, 4, 9, 11, 12].into_iter().collect();
        assert_eq!(rows.to_string(), "2-4,9,11-12");
        assert_eq!(rows.single_row(), None);
        assert_eq!("7".parse::<RowSet>().unwrap().single_row(), Some(Row::new(7)));
    }

    #[test]
    fn row_set_rejects_the_header_and_malformed_text() {
        assert_eq!("1".parse::<RowSet>(), Err(ParseRowsError::Header));
        assert_eq!("1-5".parse::<RowSet>(), Err(ParseRowsError::Header));
        assert_eq!("5-2".parse::<RowSet>(), Err(ParseRowsError::Backwards("5-2".into())));
        assert_eq!("2,x".parse::<RowSet>(), Err(ParseRowsError::NotARange("x".into())));
        assert_eq!("".parse::<RowSet>(), Err(ParseRowsError::NotARange(String::new())));
    }
}

#[cfg(test)]
mod delimiter_tests {
    use super::*;

    #[test]
    fn delimiter_is_parsed_from_a_character_or_a_name() {
        for (written, name) in [
            (",", "comma"),
            (";", "semicolon"),
            ("\t", "tab"),
            ("tab", "tab"),
            ("\\t", "tab"),
            ("|", "vertical bar"),
            ("pipe", "vertical bar"),
            ("^", "`^`"),
            (" ", "space"),
        ] {
            assert_eq!(Delimiter::from_name(written).map(Delimiter::name).as_deref(), Some(name), "{written:?}");
        }
        for written in ["", "\"", "a", "0", "\n", "\r", ";;", "я", "\u{7f}"] {
            assert_eq!(Delimiter::from_name(written), None, "{written:?}");
        }
    }
}
