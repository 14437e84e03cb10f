//! Where the cells of a record stand in its bytes, and what is wrong with their quotes.
//!
//! The CSV parser gives the values; this second look finds what it accepts in silence: a quote
//! that is never closed, and text behind a closing quote, by which a forgotten quote shows.

use std::ops::Range;

/// One cell as it stands in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// The cell's bytes with its quotes.
    pub(super) span: Range<usize>,
    /// What is wrong with its quotes.
    pub(super) flaw: Option<Flaw>,
}

/// What is wrong with a quoted cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The closing quote is missing.
    Unclosed,
    /// Text stands behind the closing quote, at that byte.
    TextBehind(usize),
}

/// The cells of a record, from its bytes with or without the line end.
pub(super) struct Cells<'a> {
    raw: &'a [u8],
    delimiter: u8,
    next: Option<usize>,
}

/// The cells of a record.
pub(super) fn cells(raw: &[u8], delimiter: u8) -> Cells<'_> {
    Cells { raw, delimiter, next: Some(0) }
}

impl Cells<'_> {
    fn seek(&self, from: usize, wanted: impl Fn(u8) -> bool) -> Option<usize> {
        self.raw.get(from..)?.iter().position(|&byte| wanted(byte)).map(|at| from + at)
    }

    /// Where the cell ends that goes on unquoted at `from`.
    fn end(&self, from: usize) -> usize {
        let delimiter = self.delimiter;
        self.seek(from, |byte| byte == delimiter || byte == b'\n' || byte == b'\r').unwrap_or(self.raw.len())
    }

    /// Where the quoted cell that opens at `start` continues behind its closing quote.
    fn behind_quotes(&self, start: usize) -> Option<usize> {
        let mut at = start + 1;
        loop {
            let quote = self.seek(at, |byte| byte == b'"')?;
            if self.raw.get(quote + 1) != Some(&b'"') {
                return Some(quote + 1);
            }
            at = quote + 2;
        }
    }
}

impl Iterator for Cells<'_> {
    type Item = Cell;

    fn next(&mut self) -> Option<Cell> {
        let start = self.next.take()?;
        let (end, flaw) = if self.raw.get(start) == Some(&b'"') {
            match self.behind_quotes(start) {
                None => (self.raw.len(), Some(Flaw::Unclosed)),
                Some(behind) => {
                    let end = self.end(behind);
                    let text = self.seek(behind, |byte| byte != b' ').filter(|&at| at < end);
                    (end, text.map(Flaw::TextBehind))
                }
            }
        } else {
            (self.end(start), None)
        };
        if self.raw.get(end) == Some(&self.delimiter) {
            self.next = Some(end + 1);
        }
        Some(Cell { span: start..end, flaw })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn flawed_quotes_are_found_where_they_stand() {
        let flaw = |raw: &str| cells(raw.as_bytes(), b',').find_map(|cell| Some((cell.span.start, cell.flaw?)));
        for (raw, expected) in [
            ("a,\"b\"\n", None),
            ("a,\"b\"\"c\",d\r\n", None),
            ("a,\"b\" ,c", None),
            ("a,5\" pizza\n", None),
            ("a,\"b\nc,d\n", Some((2, Flaw::Unclosed))),
            ("a,\"b\"\"\n", Some((2, Flaw::Unclosed))),
            ("a,\"b\nc,\"d\"\n", Some((2, Flaw::TextBehind(8)))),
            ("\"TOV \"Sun\"\"\n", Some((0, Flaw::TextBehind(6)))),
        ] {
            assert_eq!(flaw(raw), expected, "{raw:?}");
        }
    }

    proptest! {
        #[test]
        fn cells_are_cut_where_the_parser_cuts_them(raw in "[a\", ]{1,12}") {
            let mut parser = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(raw.as_bytes());
            let parsed = parser.records().next().unwrap().unwrap();
            prop_assert_eq!(cells(raw.as_bytes(), b',').count(), parsed.len());
        }
    }
}
