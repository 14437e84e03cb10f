//! How a list of recipients is written, as far as somebody says it.

use encoding_rs::Encoding;

/// What a campaign says of the file in which its list stands; what it does not say is found out.
///
/// It is of the file alone: what a run freezes is text in UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFormat {
    /// The encoding of its text.
    pub encoding: Option<&'static Encoding>,
    /// What stands between two cells.
    pub delimiter: Option<Delimiter>,
    /// The sheet of a workbook.
    pub sheet: Option<String>,
    /// The row with the headers, as a spreadsheet numbers it; rows above it are ignored.
    pub header_row: Option<u32>,
}

/// What stands between two cells.
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
    /// The delimiters that are looked for, the one that wins a tie first.
    pub const COMMON: [Self; 4] = [Self::COMMA, Self::SEMICOLON, Self::TAB, Self::PIPE];

    /// The delimiter that is that sign; no letter, digit, quote or line end is one.
    #[must_use]
    pub fn new(byte: u8) -> Option<Self> {
        let may_be = matches!(byte, b'\t' | b' ' | b'!'..=b'~') && !byte.is_ascii_alphanumeric() && byte != b'"';
        may_be.then_some(Self(byte))
    }

    /// The sign.
    #[must_use]
    pub fn to_byte(self) -> u8 {
        self.0
    }

    /// What people call it.
    #[must_use]
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

    /// The delimiter that somebody wrote: the sign itself, or its name.
    #[must_use]
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
    fn delimiter_is_read_as_character_or_name() {
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
