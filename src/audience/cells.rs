//! Where the cells of a record stand in its bytes, and what is wrong with their quotes.
//!
//! The CSV parser gives the values; this second look finds what it accepts in silence: a quote
//! that is never closed, and text behind a closing quote, by which a forgotten quote shows.

use std::ops::Range;

/// One cell as it stands in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawCell {
    /// The cell's bytes with its quotes.
    pub(super) span: Range<usize>,
    /// What is wrong with its quotes.
    pub(super) flaw: Option<QuoteFlaw>,
}

/// What is wrong with a quoted cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuoteFlaw {
    /// The closing quote is missing.
    Unclosed,
    /// Text stands behind the closing quote, at that byte.
    TextAfterQuote(usize),
}

/// The cells of a record, from its bytes with or without the line end.
pub(super) struct RawCells<'a> {
    raw: &'a [u8],
    delimiter: u8,
    next: Option<usize>,
}

/// The cells of a record.
pub(super) fn split_cells(raw: &[u8], delimiter: u8) -> RawCells<'_> {
    RawCells { raw, delimiter, next: Some(0) }
}

impl RawCells<'_> {
    fn find_byte(&self, from: usize, wanted: impl Fn(u8) -> bool) -> Option<usize> {
        self.raw.get(from..)?.iter().position(|&byte| wanted(byte)).map(|at| from + at)
    }

    /// Where the cell ends that goes on unquoted at `from`.
    fn find_cell_end(&self, from: usize) -> usize {
        let delimiter = self.delimiter;
        self.find_byte(from, |byte| byte == delimiter || byte == b'\n' || byte == b'\r').unwrap_or(self.raw.len())
    }

    /// Where the quoted cell that opens at `start` continues behind its closing quote.
    fn find_closing_quote(&self, start: usize) -> Option<usize> {
        let mut at = start + 1;
        loop {
            let quote = self.find_byte(at, |byte| byte == b'"')?;
            if self.raw.get(quote + 1) != Some(&b'"') {
                return Some(quote + 1);
            }
            at = quote + 2;
        }
    }
}

impl Iterator for RawCells<'_> {
    type Item = RawCell;

    fn next(&mut self) -> Option<RawCell> {
        let start = self.next.take()?;
        let (end, flaw) = if self.raw.get(start) == Some(&b'"') {
            match self.find_closing_quote(start) {
                None => (self.raw.len(), Some(QuoteFlaw::Unclosed)),
                Some(behind) => {
                    let end = self.find_cell_end(behind);
                    let text = self.find_byte(behind, |byte| byte != b' ').filter(|&at| at < end);
                    (end, text.map(QuoteFlaw::TextAfterQuote))
                }
            }
        } else {
            (self.find_cell_end(start), None)
        };
        if self.raw.get(end) == Some(&self.delimiter) {
            self.next = Some(end + 1);
        }
        Some(RawCell { span: start..end, flaw })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn flawed_quotes_are_reported_at_their_position() {
        let flaw = |raw: &str| split_cells(raw.as_bytes(), b',').find_map(|cell| Some((cell.span.start, cell.flaw?)));
        for (raw, expected) in [
            ("a,\"b\"\n", None),
            ("a,\"b\"\"c\",d\r\n", None),
            ("a,\"b\" ,c", None),
            ("a,5\" pizza\n", None),
            ("a,\"b\nc,d\n", Some((2, QuoteFlaw::Unclosed))),
            ("a,\"b\"\"\n", Some((2, QuoteFlaw::Unclosed))),
            ("a,\"b\nc,\"d\"\n", Some((2, QuoteFlaw::TextAfterQuote(8)))),
            ("\"TOV \"Sun\"\"\n", Some((0, QuoteFlaw::TextAfterQuote(6)))),
        ] {
            assert_eq!(flaw(raw), expected, "{raw:?}");
        }
    }

    proptest! {
        #[test]
        fn cells_are_split_as_by_the_csv_parser(raw in "[a\", ]{1,12}") {
            let mut parser = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(raw.as_bytes());
            let parsed = parser.records().next().unwrap().unwrap();
            prop_assert_eq!(split_cells(raw.as_bytes(), b',').count(), parsed.len());
        }
    }
}
