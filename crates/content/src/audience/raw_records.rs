//! Raw records of a CSV file: their bytes, the cells in them, and the delimiter.
//!
//! The CSV parser unquotes cells, skips blank lines and accepts any input. This module keeps the parser's input until
//! the record is checked, so that lines can be counted and shown. Memory use is limited by the longest allowed record.
//! A second scan of the quotes finds what the parser silently accepts: an unclosed quote, and text after a closing
//! quote.

use std::io;
use std::io::Read;
use std::ops::Range;

use super::decoding::DELIMITER_LINE_END;
use campaign_core::domain::Delimiter;

/// The maximum size of a record in bytes.
pub const RECORD_LIMIT: usize = 1 << 20;
/// The size of a read, in bytes.
const BLOCK: usize = 1 << 16;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A reader that remembers the current record.
///
/// `window` is the part of the file that is in memory. It begins at byte `base`, counted after the byte order mark.
/// Always `last.0 <= start <= parser_end <= window.len()`:
///
/// - `last.0..start` is the last closed record, or empty after another read;
/// - `start..parser_end` is the part of the current and following records that the parser has read;
/// - `parser_end..` is the part that the parser reads next.
///
/// The parser's position counts the same bytes and is always between `base + start` and `base + parser_end`. The parser
/// asks for more only when it has consumed everything. Then [`refill`](Self::refill) drops the bytes before `start` and
/// moves `base` there.
pub(super) struct RecordInput<R> {
    input: R,
    /// Buffer for the input.
    block: Box<[u8]>,
    /// The bytes that were read and are still needed.
    window: Vec<u8>,
    /// The number of bytes before the list: the byte order mark and skipped lines.
    before: u64,
    /// The start of `window` in the file, not counting the bytes before the list.
    base: u64,
    /// The start of the current record in `window`.
    start: usize,
    /// The start of the last closed record in `window`, and its line.
    last: (usize, u64),
    /// The end of the part of `window` that the parser has read.
    parser_end: usize,
    has_ended: bool,
    /// Whether reading failed because the record is longer than [`RECORD_LIMIT`].
    is_overlong: bool,
    /// The number of blank lines before the current record.
    blank: u64,
    /// The first line of the current record, from 1.
    line: u64,
    /// Whether the last line ended with CR, so that a following LF belongs to it.
    after_cr: bool,
}

/// A record as it is in the file.
pub(super) struct RawRecord<'a> {
    /// The number of blank lines before the record.
    pub(super) blank: u64,
    /// The first line of the record, from 1.
    pub(super) line: u64,
    /// The bytes of the record, including the line ending.
    pub(super) bytes: &'a [u8],
    /// Whether the record has no quote and no NUL, and is therefore one line.
    pub(super) is_plain: bool,
}

impl<R: Read> RecordInput<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            block: vec![0; BLOCK].into_boxed_slice(),
            window: Vec::new(),
            before: 0,
            base: 0,
            start: 0,
            last: (0, 1),
            parser_end: 0,
            has_ended: false,
            is_overlong: false,
            blank: 0,
            line: 1,
            after_cr: false,
        }
    }

    pub(super) fn into_input(self) -> R {
        self.input
    }

    /// Reads the first block of the file without its byte order mark, before any bytes are passed to the parser.
    pub(super) fn read_head(&mut self) -> io::Result<&[u8]> {
        while self.window.len() < BLOCK && !self.has_ended {
            self.refill()?;
        }
        if self.window.starts_with(BOM) {
            self.window.drain(..BOM.len());
            self.before = BOM.len() as u64;
        }
        Ok(&self.window)
    }

    /// Skips `length` bytes at the beginning, which span `lines` lines and are not part of the list.
    pub(super) fn skip(&mut self, length: usize, lines: u64) {
        self.window.drain(..length);
        self.before += length as u64;
        self.line += lines;
        self.last.1 = self.line;
    }

    /// Whether reading failed because the record is longer than [`RECORD_LIMIT`].
    pub(super) fn is_overlong(&self) -> bool {
        self.is_overlong
    }

    /// The bytes of a record that could not be read completely.
    pub(super) fn unfinished_record(&self) -> RawRecord<'_> {
        let bytes = &self.window[self.start..self.parser_end];
        RawRecord { blank: self.blank, line: self.line, bytes, is_plain: false }
    }

    /// Whether the next quote that is not doubled closes the open quoted cell. A closing quote is followed, possibly
    /// after spaces, by a delimiter, a line end or the end of the file. Discards everything that is read.
    pub(super) fn is_quote_closed_later(&mut self, delimiter: u8) -> bool {
        let (mut behind_quote, mut bytes) = (false, self.window.split_off(self.parser_end));
        loop {
            for &byte in &bytes {
                match (behind_quote, byte) {
                    (quote, b'"') => behind_quote = !quote,
                    (false, _) | (true, b' ') => {}
                    (true, byte) => return byte == delimiter || matches!(byte, b'\n' | b'\r'),
                }
            }
            bytes.clear();
            match read_despite_interrupts(&mut self.input, &mut self.block) {
                Ok(0) | Err(_) => return behind_quote,
                Ok(count) => bytes.extend_from_slice(&self.block[..count]),
            }
        }
    }

    /// Closes the record that ends at this position of the parser, and begins the next one.
    pub(super) fn close_record(&mut self, end: u64) -> RawRecord<'_> {
        // The parser has consumed everything before `end`, and no more than it was given.
        let end = usize::try_from(end.saturating_sub(self.base)).unwrap_or(usize::MAX).min(self.parser_end);
        self.skip_line_ends(end);
        let (blank, line) = (std::mem::take(&mut self.blank), self.line);
        let bytes = &self.window[self.start..end];
        // Unlike `any`, the fold can be vectorized.
        let is_plain = !bytes.iter().fold(false, |found, &byte| found | (byte == b'"') | (byte == 0));
        if is_plain {
            self.line += u64::from(!bytes.is_empty());
        } else {
            self.line += count_line_ends(bytes);
        }
        if let Some(&last) = bytes.last() {
            self.after_cr = last == b'\r';
        }
        self.last = (self.start, line);
        self.start = end;
        RawRecord { blank, line, bytes, is_plain }
    }

    /// The byte range of the last closed record in the file, with its line ending.
    pub(super) fn last_span(&self) -> Range<u64> {
        let file_offset = |at: usize| self.before + self.base + at as u64;
        file_offset(self.last.0)..file_offset(self.start)
    }

    /// The line number and the bytes of the last closed record, available until the next read.
    pub(super) fn last_record(&self) -> (u64, &[u8]) {
        let (start, line) = self.last;
        (line, &self.window[start..self.start])
    }

    /// Counts and skips line endings before the record, which the parser skips silently.
    fn skip_line_ends(&mut self, end: usize) {
        while let Some(&byte @ (b'\r' | b'\n')) = self.window[..end].get(self.start) {
            if byte == b'\r' || !self.after_cr {
                self.blank += 1;
                self.line += 1;
            }
            self.after_cr = byte == b'\r';
            self.start += 1;
        }
    }

    fn refill(&mut self) -> io::Result<()> {
        self.skip_line_ends(self.parser_end);
        if self.window.len() - self.start > RECORD_LIMIT {
            self.is_overlong = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.window.drain(..self.start);
        self.base += self.start as u64;
        self.parser_end -= self.start;
        self.start = 0;
        self.last = (0, self.line);
        let count = read_despite_interrupts(&mut self.input, &mut self.block)?;
        self.window.extend_from_slice(&self.block[..count]);
        self.has_ended = count == 0;
        Ok(())
    }
}

impl<R: Read> Read for RecordInput<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.parser_end == self.window.len() && !self.has_ended {
            self.refill()?;
        }
        let rest = &self.window[self.parser_end..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.parser_end += count;
        Ok(count)
    }
}

fn read_despite_interrupts(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Counts the line endings (LF, CRLF or CR) in these bytes.
pub(super) fn count_line_ends(bytes: &[u8]) -> u64 {
    let mut after_cr = false;
    let mut count = 0;
    for &byte in bytes {
        count += u64::from(byte == b'\r' || (byte == b'\n' && !after_cr));
        after_cr = byte == b'\r';
    }
    count
}

/// A cell as it is in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawCell {
    /// The cell's bytes with its quotes.
    pub(super) span: Range<usize>,
    /// A problem with its quotes.
    pub(super) flaw: Option<QuoteFlaw>,
}

/// A problem with a quoted cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuoteFlaw {
    /// The closing quote is missing.
    Unclosed,
    /// Text follows the closing quote, at this byte.
    TextAfterQuote(usize),
}

/// The cells of a record, from its bytes with or without the line end.
pub(super) struct RawCells<'a> {
    raw: &'a [u8],
    delimiter: u8,
    next: Option<usize>,
}

/// Splits a record into cells.
pub(super) fn split_cells(raw: &[u8], delimiter: u8) -> RawCells<'_> {
    RawCells { raw, delimiter, next: Some(0) }
}

impl RawCells<'_> {
    fn find_byte(&self, from: usize, matches: impl Fn(u8) -> bool) -> Option<usize> {
        self.raw.get(from..)?.iter().position(|&byte| matches(byte)).map(|at| from + at)
    }

    /// The end of the unquoted cell that continues at `from`.
    fn find_cell_end(&self, from: usize) -> usize {
        let delimiter = self.delimiter;
        self.find_byte(from, |byte| byte == delimiter || byte == b'\n' || byte == b'\r').unwrap_or(self.raw.len())
    }

    /// The position after the closing quote of the cell that opens at `start`.
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
                Some(after) => {
                    let end = self.find_cell_end(after);
                    let text = self.find_byte(after, |byte| byte != b' ').filter(|&at| at < end);
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

/// A delimiter that is declared before the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeclaredDelimiter {
    pub(super) delimiter: Delimiter,
    /// The length of the declaration in bytes.
    pub(super) length: usize,
    /// Whether the declaration is a line of the file.
    pub(super) is_line: bool,
}

/// Reads the delimiter declared at the beginning of `head`, by the campaign or by a line of the file such as Excel's
/// `sep=;`.
pub(super) fn read_declared_delimiter(head: &[u8]) -> Option<DeclaredDelimiter> {
    let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', byte, rest @ ..] = head else { return None };
    let delimiter = Delimiter::new(*byte)?;
    if let Some(rest) = rest.strip_prefix(DELIMITER_LINE_END.as_bytes()) {
        let rest = rest.strip_prefix(DELIMITER_LINE_END.as_bytes()).unwrap_or(rest);
        return Some(DeclaredDelimiter { delimiter, length: head.len() - rest.len(), is_line: false });
    }
    let line_end = rest.iter().position(|&byte| byte == b'\n')?;
    let is_whole_line = rest[..line_end].trim_ascii_end().is_empty();
    let length = head.len() - rest.len() + line_end + 1;
    is_whole_line.then_some(DeclaredDelimiter { delimiter, length, is_line: true })
}

/// The delimiter that occurs most often in the header line outside quotes.
pub(super) fn guess_delimiter(head: &[u8]) -> Delimiter {
    let mut counts = [0_u32; Delimiter::COMMON.len()];
    let mut quoted = false;
    let mut has_content = false;
    for &byte in head {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted && has_content => break,
            _ if !quoted => {
                for (count, delimiter) in counts.iter_mut().zip(Delimiter::COMMON) {
                    *count += u32::from(byte == delimiter.to_byte());
                }
            }
            _ => {}
        }
        has_content |= !byte.is_ascii_whitespace() && !matches!(byte, b',' | b';' | b'|');
    }
    let highest = counts.into_iter().max().unwrap_or(0);
    Delimiter::COMMON
        .into_iter()
        .zip(counts)
        .find(|&(_, count)| count == highest)
        .map_or(Delimiter::COMMA, |(found, _)| found)
}

#[cfg(test)]
mod input_tests {
    use super::*;

    #[test]
    fn all_three_line_endings_are_counted() {
        for (text, lines) in [("", 0), ("a", 0), ("a\nb\n", 2), ("a\r\nb\r\n", 2), ("a\rb\r", 2), ("\n\r\n\r", 3)] {
            assert_eq!(count_line_ends(text.as_bytes()), lines, "{text:?}");
        }
    }

    #[test]
    fn endless_record_does_not_exhaust_memory() {
        let mut input = RecordInput::new(io::repeat(b'x'));
        let error = io::copy(&mut input, &mut io::sink()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(input.is_overlong());
        assert!(input.window.len() <= RECORD_LIMIT + 2 * BLOCK);
    }

    #[test]
    fn blank_lines_do_not_exhaust_memory() {
        let lines = 3 * RECORD_LIMIT as u64;
        let mut input = RecordInput::new(io::repeat(b'\n').take(lines));
        io::copy(&mut input, &mut io::sink()).unwrap();
        assert_eq!(input.close_record(lines).blank, lines);
    }

    #[test]
    fn byte_order_mark_is_dropped() {
        let mut input = RecordInput::new("\u{feff}phone\n".as_bytes());
        assert_eq!(input.read_head().unwrap(), b"phone\n");
    }
}

#[cfg(test)]
mod cells_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn malformed_quotes_are_reported_at_their_position() {
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
        fn cell_count_matches_the_csv_parser(raw in "[a\", ]{1,12}") {
            let mut parser = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(raw.as_bytes());
            let parsed = parser.records().next().unwrap().unwrap();
            prop_assert_eq!(split_cells(raw.as_bytes(), b',').count(), parsed.len());
        }
    }
}

#[cfg(test)]
mod delimiter_tests {
    use super::*;

    #[test]
    fn delimiter_is_detected_from_the_header_line() {
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
            let found = read_declared_delimiter(head.as_bytes())
                .map(|declared| (declared.delimiter, declared.length, declared.is_line));
            assert_eq!(found, expected, "{head:?}");
        }
    }
}
