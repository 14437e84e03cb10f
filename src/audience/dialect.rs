//! How a file is written, judged by its first bytes: whether it is CSV at all, and its delimiter.

/// What stands between two cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    Comma,
    Semicolon,
    Tab,
    Pipe,
}

impl Delimiter {
    /// Every delimiter, the one that wins a tie first.
    const ALL: [Delimiter; 4] = [Delimiter::Comma, Delimiter::Semicolon, Delimiter::Tab, Delimiter::Pipe];

    pub(super) fn byte(self) -> u8 {
        match self {
            Delimiter::Comma => b',',
            Delimiter::Semicolon => b';',
            Delimiter::Tab => b'\t',
            Delimiter::Pipe => b'|',
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Delimiter::Comma => "comma",
            Delimiter::Semicolon => "semicolon",
            Delimiter::Tab => "tab",
            Delimiter::Pipe => "vertical bar",
        }
    }

    /// The delimiter that a line before the header names, as Excel writes it (`sep=;`), and the length of that line.
    pub(super) fn told(head: &[u8]) -> Option<(Self, usize)> {
        let (line, behind) = head.split_at(head.iter().position(|&byte| byte == b'\n')? + 1);
        let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', byte] = line.trim_ascii_end() else {
            // A tab at the end is the delimiter and no space.
            return (line.trim_ascii_end().eq_ignore_ascii_case(b"sep=") && line.get(4) == Some(&b'\t'))
                .then_some((Delimiter::Tab, head.len() - behind.len()));
        };
        let told = Self::ALL.into_iter().find(|delimiter| delimiter.byte() == *byte)?;
        Some((told, head.len() - behind.len()))
    }

    /// The delimiter that occurs most often in the header line outside quotes.
    pub(super) fn of(head: &[u8]) -> Self {
        let mut counts = [0_u32; Self::ALL.len()];
        let mut quoted = false;
        let mut inhabited = false;
        for &byte in head {
            match byte {
                b'"' => quoted = !quoted,
                b'\n' | b'\r' if !quoted && inhabited => break,
                _ if !quoted => {
                    for (count, delimiter) in counts.iter_mut().zip(Self::ALL) {
                        *count += u32::from(byte == delimiter.byte());
                    }
                }
                _ => {}
            }
            inhabited |= !byte.is_ascii_whitespace() && !matches!(byte, b',' | b';' | b'|');
        }
        let most = counts.into_iter().max().unwrap_or(0);
        Self::ALL.into_iter().zip(counts).find(|&(_, count)| count == most).map_or(Delimiter::Comma, |(found, _)| found)
    }
}

/// Files that people take for CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    /// Text in two bytes per character.
    Utf16,
    /// A workbook: Excel's, or LibreOffice's.
    Workbook,
    /// Packed or printed, named by its kind.
    Other(&'static str),
}

impl Foreign {
    /// What the file is instead of CSV in UTF-8.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        const MAGIC: [(&[u8], Foreign); 6] = [
            (b"PK\x03\x04", Foreign::Workbook),
            (b"\xd0\xcf\x11\xe0", Foreign::Workbook),
            (b"\xff\xfe", Foreign::Utf16),
            (b"\xfe\xff", Foreign::Utf16),
            (b"\x1f\x8b", Foreign::Other("a packed file (gzip)")),
            (b"%PDF", Foreign::Other("a PDF document")),
        ];
        let by_magic = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, foreign)| foreign);
        // Latin text in UTF-16 without a mark: every other byte is 0.
        by_magic.or_else(|| {
            matches!(head, [first, second, ..] if (*first == 0) != (*second == 0)).then_some(Foreign::Utf16)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_line_tells_the_delimiter() {
        for (head, delimiter) in [
            ("phone\n1;2;3", Delimiter::Comma),
            ("phone,name\n1;2;3;4", Delimiter::Comma),
            ("phone;name\r\n1,5;2,5", Delimiter::Semicolon),
            ("phone\tname, first", Delimiter::Comma),
            ("phone\tname\tcity, street", Delimiter::Tab),
            ("phone;\"name, first, second, third\"", Delimiter::Semicolon),
            ("\n\n;;\nphone;name", Delimiter::Semicolon),
            ("phone|name|city, street", Delimiter::Pipe),
            ("", Delimiter::Comma),
        ] {
            assert_eq!(Delimiter::of(head.as_bytes()), delimiter, "{head:?}");
        }
    }

    #[test]
    fn a_line_before_the_header_may_name_the_delimiter() {
        for (head, told) in [
            ("sep=;\r\nphone;name", Some((Delimiter::Semicolon, 7))),
            ("SEP=|\nphone|name", Some((Delimiter::Pipe, 6))),
            ("sep=\t\nphone\tname", Some((Delimiter::Tab, 6))),
            ("sep=^\nphone", None),
            ("sep=;", None),
            ("sep=;name\n1;2", None),
            ("phone;name\n", None),
        ] {
            assert_eq!(Delimiter::told(head.as_bytes()), told, "{head:?}");
        }
    }

    #[test]
    fn what_is_not_csv_is_recognised() {
        assert_eq!(Foreign::of(b"PK\x03\x04\x14\0"), Some(Foreign::Workbook));
        assert_eq!(Foreign::of(b"\xff\xfep\0h\0"), Some(Foreign::Utf16));
        assert_eq!(Foreign::of(b"p\0h\0o\0n\0e\0"), Some(Foreign::Utf16));
        assert_eq!(Foreign::of(b"\x1f\x8b\x08"), Some(Foreign::Other("a packed file (gzip)")));
        for text in ["", "p", "phone", "PKP,phone", "телефон"] {
            assert_eq!(Foreign::of(text.as_bytes()), None, "{text:?}");
        }
    }
}
