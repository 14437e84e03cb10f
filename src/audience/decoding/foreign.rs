//! Files that people take for lists, known by their first bytes.

/// A file that is no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForeignFormat(&'static str, ForeignAdvice);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForeignAdvice {
    /// A program can save it as a list.
    SaveAs,
    /// The list is in it.
    Unpack,
    /// It is another file.
    Other,
}

/// What files begin with that are no text.
const MAGIC: [(&[u8], ForeignFormat); 17] = [
    (b"%PDF", ForeignFormat("a PDF document", ForeignAdvice::Other)),
    (b"{\\rtf", ForeignFormat("a text document (RTF)", ForeignAdvice::SaveAs)),
    (b"7z\xbc\xaf", ForeignFormat("an archive (7z)", ForeignAdvice::Unpack)),
    (b"Rar!", ForeignFormat("an archive (RAR)", ForeignAdvice::Unpack)),
    (b"BZh", ForeignFormat("a compressed file (bzip2)", ForeignAdvice::Unpack)),
    (b"\xfd7zXZ", ForeignFormat("a compressed file (xz)", ForeignAdvice::Unpack)),
    (b"\x04\x22\x4d\x18", ForeignFormat("a compressed file (lz4)", ForeignAdvice::Unpack)),
    (b"LZIP\x01", ForeignFormat("a compressed file (lzip)", ForeignAdvice::Unpack)),
    (b"\x1f\x9d", ForeignFormat("a compressed file (compress)", ForeignAdvice::Unpack)),
    (b"\x1f\x8b", ForeignFormat("a file that was compressed twice", ForeignAdvice::Unpack)),
    (b"\x28\xb5\x2f\xfd", ForeignFormat("a file that was compressed twice", ForeignAdvice::Unpack)),
    (b"SQLite format 3\0", ForeignFormat("a database (SQLite)", ForeignAdvice::SaveAs)),
    (b"PAR1", ForeignFormat("a database table (Parquet)", ForeignAdvice::SaveAs)),
    (b"\x89PNG", ForeignFormat("an image", ForeignAdvice::Other)),
    (b"\xff\xd8\xff", ForeignFormat("an image", ForeignAdvice::Other)),
    (b"GIF8", ForeignFormat("an image", ForeignAdvice::Other)),
    (b"\x7fELF", ForeignFormat("a program", ForeignAdvice::Other)),
];

/// Tags by which a web page without a declaration is known (WHATWG, "MIME Sniffing", section 7.1).
const TAGS: [&str; 18] = [
    "html", "head", "script", "iframe", "h1", "div", "font", "table", "a", "style", "title", "b", "body", "br", "p",
    "meta", "center", "form",
];

/// Whether text begins as a web page. A tag ends with a space or `>`, so that a column `<phone>` is not taken for `<p`.
fn is_web_page(head: &[u8]) -> bool {
    let Some(rest) = head.strip_prefix(b"<") else { return false };
    if rest.starts_with(b"!--") || rest.get(..13).is_some_and(|rest| rest.eq_ignore_ascii_case(b"!doctype html")) {
        return true;
    }
    TAGS.iter().any(|tag| {
        let (name, end) = (rest.get(..tag.len()), rest.get(tag.len()));
        name.is_some_and(|name| name.eq_ignore_ascii_case(tag.as_bytes()))
            && end.is_some_and(|end| *end == b'>' || end.is_ascii_whitespace())
    })
}

impl ForeignFormat {
    pub(super) fn detect(head: &[u8]) -> Option<Self> {
        let by_magic = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, foreign)| foreign);
        by_magic.or_else(|| Self::detect_archive(head)).or_else(|| Self::detect_text(head))
    }

    /// An archive of files, whose magic stands behind the name of the first one.
    fn detect_archive(head: &[u8]) -> Option<Self> {
        let is_tar = head.get(257..262) == Some(b"ustar") && head.get(..257).is_some_and(|name| name.contains(&0));
        is_tar.then_some(Self("an archive (tar)", ForeignAdvice::Unpack))
    }

    /// Text that is no table, though it is often named so.
    fn detect_text(head: &[u8]) -> Option<Self> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        let begins = |with: &str| head.get(..with.len()).is_some_and(|head| head.eq_ignore_ascii_case(with.as_bytes()));
        if is_web_page(head) {
            return Some(Self(
                "a web page (HTML), which many programs export with a workbook's file extension",
                ForeignAdvice::SaveAs,
            ));
        }
        if begins("<?xml") || begins("<Workbook") {
            return Some(Self("an XML file", ForeignAdvice::SaveAs));
        }
        let json = match head.split_first() {
            Some((b'{', rest)) => rest.trim_ascii_start().starts_with(b"\""),
            Some((b'[', rest)) => {
                rest.trim_ascii_start().starts_with(b"{") || rest.trim_ascii_start().starts_with(b"[")
            }
            _ => false,
        };
        json.then_some(Self("a JSON file", ForeignAdvice::SaveAs))
    }

    pub(super) fn name(self) -> &'static str {
        self.0
    }

    /// What to do; nothing where it should be saved as a list.
    pub(super) fn advice(self) -> Option<&'static str> {
        match self.1 {
            ForeignAdvice::SaveAs => None,
            ForeignAdvice::Unpack => Some("unpack the file, and use the list inside"),
            ForeignAdvice::Other => Some("use a CSV file or a workbook"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_formats_are_recognised() {
        let mut tar = [0; 512];
        tar[..8].copy_from_slice(b"list.csv");
        tar[257..262].copy_from_slice(b"ustar");
        for (head, name) in [
            (&b"%PDF-1.7"[..], "a PDF document"),
            (b"\xef\xbb\xbf <!DOCTYPE html><html>", "a web page"),
            (b"<TABLE border=1>", "a web page"),
            (b"\n<!-- saved from url=(0014)about:internet -->", "a web page"),
            (b"<head>\n<title>Sign in</title>", "a web page"),
            (b"<p\n>Sign in", "a web page"),
            (b"<?xml version=\"1.0\"?><?mso-application", "an XML file"),
            (b"[ {\"phone\": 1}]", "a JSON file"),
            (b"{\n \"phone\": 1}", "a JSON file"),
            (b"7z\xbc\xaf\x27\x1c", "an archive (7z)"),
            (&tar, "an archive (tar)"),
        ] {
            assert!(ForeignFormat::detect(head).is_some_and(|foreign| foreign.name().starts_with(name)), "{name}");
        }
        for text in ["", "p", "phone", "<phone>,name", "<a", "[phone],name", "{phone}", "телефон", "Rar,phone"] {
            assert_eq!(ForeignFormat::detect(text.as_bytes()), None, "{text:?}");
        }
    }
}
