//! What stands between cells, judged by the first bytes of a list or told by its first line.

use super::decoding::DELIMITER_LINE_END;
use crate::domain::Delimiter;

/// A delimiter that is told before the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeclaredDelimiter {
    pub(super) delimiter: Delimiter,
    /// The bytes by which it is told.
    pub(super) length: usize,
    /// Whether they are a line of the file.
    pub(super) is_line: bool,
}

/// The delimiter that is told before the header: by Excel in a line (`sep=;`), or by the campaign, whose word counts.
pub(super) fn read_declared_delimiter(head: &[u8]) -> Option<DeclaredDelimiter> {
    let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', byte, behind @ ..] = head else { return None };
    let delimiter = Delimiter::new(*byte)?;
    if let Some(behind) = behind.strip_prefix(DELIMITER_LINE_END.as_bytes()) {
        let behind = behind.strip_prefix(DELIMITER_LINE_END.as_bytes()).unwrap_or(behind);
        return Some(DeclaredDelimiter { delimiter, length: head.len() - behind.len(), is_line: false });
    }
    let line_end = behind.iter().position(|&byte| byte == b'\n')?;
    let is_all = behind[..line_end].trim_ascii_end().is_empty();
    is_all.then_some(DeclaredDelimiter { delimiter, length: 5 + line_end + 1, is_line: true })
}

/// The delimiter that occurs most often in the header line outside quotes.
pub(super) fn guess_delimiter(head: &[u8]) -> Delimiter {
    let mut counts = [0_u32; Delimiter::COMMON.len()];
    let mut quoted = false;
    let mut inhabited = false;
    for &byte in head {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted && inhabited => break,
            _ if !quoted => {
                for (count, delimiter) in counts.iter_mut().zip(Delimiter::COMMON) {
                    *count += u32::from(byte == delimiter.to_byte());
                }
            }
            _ => {}
        }
        inhabited |= !byte.is_ascii_whitespace() && !matches!(byte, b',' | b';' | b'|');
    }
    let most = counts.into_iter().max().unwrap_or(0);
    Delimiter::COMMON
        .into_iter()
        .zip(counts)
        .find(|&(_, count)| count == most)
        .map_or(Delimiter::COMMA, |(found, _)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_line_reveals_the_delimiter() {
        for (head, delimiter) in [
            ("phone\n1;2;3", Delimiter::COMMA),
            ("phone,name\n1;2;3;4", Delimiter::COMMA),
            ("phone;name\r\n1,5;2,5", Delimiter::SEMICOLON),
            ("phone\tname, first", Delimiter::COMMA),
            ("phone\tname\tcity, street", Delimiter::TAB),
            ("phone;\"name, first, second, third\"", Delimiter::SEMICOLON),
            ("\n\n;;\nphone;name", Delimiter::SEMICOLON),
            ("phone|name|city, street", Delimiter::PIPE),
            ("", Delimiter::COMMA),
        ] {
            assert_eq!(guess_delimiter(head.as_bytes()), delimiter, "{head:?}");
        }
    }

    #[test]
    fn line_before_the_header_can_declare_the_delimiter() {
        for (head, expected) in [
            ("sep=;\r\nphone;name", Some((Delimiter::SEMICOLON, 7, true))),
            ("SEP=|\nphone|name", Some((Delimiter::PIPE, 6, true))),
            ("sep=\t\nphone\tname", Some((Delimiter::TAB, 6, true))),
            ("sep=;\u{feff}phone;name", Some((Delimiter::SEMICOLON, 8, false))),
            ("sep=;\u{feff}\u{feff}phone;name", Some((Delimiter::SEMICOLON, 11, false))),
            ("sep=;", None),
            ("sep=a\nphone", None),
            ("sep=;name\n1;2", None),
            ("phone;name\n", None),
        ] {
            let found =
                read_declared_delimiter(head.as_bytes()).map(|told| (told.delimiter, told.length, told.is_line));
            assert_eq!(found, expected, "{head:?}");
        }
    }
}
