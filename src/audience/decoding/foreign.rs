//! Files that people take for lists, known by their first bytes.

/// A file that is no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foreign(&'static str, Advice);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advice {
    /// A program can save it as a list.
    SaveAs,
    /// The list is in it.
    Unpack,
    /// It is another file.
    Other,
}

/// What files begin with that are no text.
const MAGIC: [(&[u8], Foreign); 14] = [
    (b"%PDF", Foreign("a PDF document", Advice::Other)),
    (b"{\\rtf", Foreign("a text document (RTF)", Advice::SaveAs)),
    (b"7z\xbc\xaf", Foreign("an archive (7z)", Advice::Unpack)),
    (b"Rar!", Foreign("an archive (RAR)", Advice::Unpack)),
    (b"BZh", Foreign("a packed file (bzip2)", Advice::Unpack)),
    (b"\xfd7zXZ", Foreign("a packed file (xz)", Advice::Unpack)),
    (b"\x1f\x8b", Foreign("a file that was packed twice", Advice::Unpack)),
    (b"\x28\xb5\x2f\xfd", Foreign("a file that was packed twice", Advice::Unpack)),
    (b"SQLite format 3\0", Foreign("a database (SQLite)", Advice::SaveAs)),
    (b"PAR1", Foreign("a table of a database (Parquet)", Advice::SaveAs)),
    (b"\x89PNG", Foreign("a picture", Advice::Other)),
    (b"\xff\xd8\xff", Foreign("a picture", Advice::Other)),
    (b"GIF8", Foreign("a picture", Advice::Other)),
    (b"\x7fELF", Foreign("a program", Advice::Other)),
];

impl Foreign {
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        let by_magic = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, foreign)| foreign);
        by_magic.or_else(|| Self::of_text(head))
    }

    /// Text that is no table, though it is often named so.
    fn of_text(head: &[u8]) -> Option<Self> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        let begins = |with: &str| head.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with.as_bytes()));
        if begins("<html") || begins("<!doctype html") || begins("<table") || begins("<meta") {
            return Some(Self(
                "a web page (HTML), as many programs export it under the name of a workbook",
                Advice::SaveAs,
            ));
        }
        if begins("<?xml") || begins("<Workbook") {
            return Some(Self("an XML file", Advice::SaveAs));
        }
        let json = match head.split_first() {
            Some((b'{', rest)) => rest.trim_ascii_start().starts_with(b"\""),
            Some((b'[', rest)) => {
                rest.trim_ascii_start().starts_with(b"{") || rest.trim_ascii_start().starts_with(b"[")
            }
            _ => false,
        };
        json.then_some(Self("a JSON file", Advice::SaveAs))
    }

    pub(super) fn name(self) -> &'static str {
        self.0
    }

    /// What to do; nothing where it should be saved as a list.
    pub(super) fn help(self) -> Option<&'static str> {
        match self.1 {
            Advice::SaveAs => None,
            Advice::Unpack => Some("unpack it, and give the list that is in it"),
            Advice::Other => Some("give the list itself: a CSV file or a workbook"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_list_is_recognised() {
        for (head, name) in [
            (&b"%PDF-1.7"[..], "a PDF document"),
            (b"\xef\xbb\xbf <!DOCTYPE html><html>", "a web page"),
            (b"<TABLE border=1>", "a web page"),
            (b"<?xml version=\"1.0\"?><?mso-application", "an XML file"),
            (b"[ {\"phone\": 1}]", "a JSON file"),
            (b"{\n \"phone\": 1}", "a JSON file"),
            (b"7z\xbc\xaf\x27\x1c", "an archive (7z)"),
        ] {
            assert!(Foreign::of(head).is_some_and(|foreign| foreign.name().starts_with(name)), "{name}");
        }
        for text in ["", "p", "phone", "<phone>,name", "[phone],name", "{phone}", "телефон", "Rar,phone"] {
            assert_eq!(Foreign::of(text.as_bytes()), None, "{text:?}");
        }
    }
}
