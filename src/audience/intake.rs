//! The bytes of the file on their way to the CSV parser.
//!
//! The parser unquotes cells, skips blank lines and never complains; what it was given is kept
//! here until the record is judged, so that lines can be counted and shown. Memory is bounded by
//! the longest record allowed. Nothing here knows cells.

use std::io::{self, Read};
use std::ops::Range;

/// The most bytes that one record may have.
pub const RECORD_LIMIT: usize = 1 << 20;
/// How much is asked of the input at a time, in bytes.
const BLOCK: usize = 1 << 16;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A reader that remembers the record being read.
///
/// `held` is a window on the file behind its byte order mark, and begins at byte `base` of that.
/// Always `last.0 <= start <= given <= held.len()`:
///
/// - `last.0..start` is the record that was closed last; it is empty once more was read;
/// - `start..given` is what the parser has of the record being read and of those behind it;
/// - `given..` is what the parser gets next.
///
/// The parser's position counts the same bytes; it is never before `base + start` or behind
/// `base + given`. The parser asks for more only when it has consumed all that it was given, and
/// [`refill`](Self::refill) then forgets what lies before `start` and moves `base` there.
pub(super) struct RecordInput<R> {
    input: R,
    /// Where the input puts its bytes.
    block: Box<[u8]>,
    /// What was read and is not yet forgotten.
    held: Vec<u8>,
    /// The bytes before the list: the byte order mark, and what was passed over.
    before: u64,
    /// Where `held` begins in the file, in bytes behind those.
    base: u64,
    /// Where the record being read begins in `held`.
    start: usize,
    /// Where the record that was closed last begins in `held`, and its line.
    last: (usize, u64),
    /// How much of `held` the parser has.
    given: usize,
    ended: bool,
    overlong: bool,
    /// Blank lines met before the record being read.
    blank: u64,
    /// The line in which the record being read begins, from 1.
    line: u64,
    /// Whether the last line ended with CR, so that an LF at once belongs to it.
    after_cr: bool,
}

/// One record as it stands in the file.
pub(super) struct RawRecord<'a> {
    /// Blank lines before it.
    pub(super) blank: u64,
    /// The line in which it begins, from 1.
    pub(super) line: u64,
    /// Its bytes with the line end.
    pub(super) bytes: &'a [u8],
    /// Whether it has neither a quote nor a NUL and is therefore one line.
    pub(super) plain: bool,
}

impl<R: Read> RecordInput<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            block: vec![0; BLOCK].into_boxed_slice(),
            held: Vec::new(),
            before: 0,
            base: 0,
            start: 0,
            last: (0, 1),
            given: 0,
            ended: false,
            overlong: false,
            blank: 0,
            line: 1,
            after_cr: false,
        }
    }

    pub(super) fn into_input(self) -> R {
        self.input
    }

    /// The first block of the file without its byte order mark, before anything is given out.
    pub(super) fn read_head(&mut self) -> io::Result<&[u8]> {
        while self.held.len() < BLOCK && !self.ended {
            self.refill()?;
        }
        if self.held.starts_with(BOM) {
            self.held.drain(..BOM.len());
            self.before = BOM.len() as u64;
        }
        Ok(&self.held)
    }

    /// Passes over the first bytes of the head, which are so many lines and no part of the list.
    pub(super) fn skip(&mut self, length: usize, lines: u64) {
        self.held.drain(..length);
        self.before += length as u64;
        self.line += lines;
        self.last.1 = self.line;
    }

    /// Whether reading failed because the record is longer than [`RECORD_LIMIT`].
    pub(super) fn is_overlong(&self) -> bool {
        self.overlong
    }

    /// What is held of a record that could not be read to its end.
    pub(super) fn unfinished_record(&self) -> RawRecord<'_> {
        let bytes = &self.held[self.start..self.given];
        RawRecord { blank: self.blank, line: self.line, bytes, plain: false }
    }

    /// Whether the quoted cell that is open where reading ended is closed later: by the next quote that is not doubled, if a
    /// cell ends behind it. Reads on as far as that, and keeps nothing.
    pub(super) fn closes_later(&mut self, delimiter: u8) -> bool {
        let (mut behind_quote, mut bytes) = (false, self.held.split_off(self.given));
        loop {
            for &byte in &bytes {
                match (behind_quote, byte) {
                    (quote, b'"') => behind_quote = !quote,
                    (false, _) | (true, b' ') => {}
                    (true, byte) => return byte == delimiter || matches!(byte, b'\n' | b'\r'),
                }
            }
            bytes.clear();
            match read_some(&mut self.input, &mut self.block) {
                Ok(0) | Err(_) => return behind_quote,
                Ok(count) => bytes.extend_from_slice(&self.block[..count]),
            }
        }
    }

    /// Closes the record that ends at that byte of the file and begins the next one.
    pub(super) fn close_record(&mut self, end: u64) -> RawRecord<'_> {
        // The parser has consumed what lies before `end`, and nothing that it was not given.
        let end = usize::try_from(end.saturating_sub(self.base)).unwrap_or(usize::MAX).min(self.given);
        self.skip_line_ends(end);
        let (blank, line) = (std::mem::take(&mut self.blank), self.line);
        let bytes = &self.held[self.start..end];
        let plain = !bytes.iter().fold(false, |found, &byte| found | (byte == b'"') | (byte == 0));
        if plain {
            self.line += u64::from(!bytes.is_empty());
        } else {
            self.line += count_line_ends(bytes);
        }
        if let Some(&last) = bytes.last() {
            self.after_cr = last == b'\r';
        }
        self.last = (self.start, line);
        self.start = end;
        RawRecord { blank, line, bytes, plain }
    }

    /// Where the record that was closed last stands in the file, with its line end.
    pub(super) fn last_span(&self) -> Range<u64> {
        let at = |held: usize| self.before + self.base + held as u64;
        at(self.last.0)..at(self.start)
    }

    /// The line and the bytes of the record that was closed last, until more is read.
    pub(super) fn last_record(&self) -> (u64, &[u8]) {
        let (start, line) = self.last;
        (line, &self.held[start..self.start])
    }

    /// Counts and passes the line ends before the record; the parser passes them in silence.
    fn skip_line_ends(&mut self, end: usize) {
        while let Some(&byte @ (b'\r' | b'\n')) = self.held[..end].get(self.start) {
            if byte == b'\r' || !self.after_cr {
                self.blank += 1;
                self.line += 1;
            }
            self.after_cr = byte == b'\r';
            self.start += 1;
        }
    }

    fn refill(&mut self) -> io::Result<()> {
        self.skip_line_ends(self.given);
        if self.held.len() - self.start > RECORD_LIMIT {
            self.overlong = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.held.drain(..self.start);
        self.base += self.start as u64;
        self.given -= self.start;
        self.start = 0;
        self.last = (0, self.line);
        let count = read_some(&mut self.input, &mut self.block)?;
        self.held.extend_from_slice(&self.block[..count]);
        self.ended = count == 0;
        Ok(())
    }
}

impl<R: Read> Read for RecordInput<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.held.len() && !self.ended {
            self.refill()?;
        }
        let rest = &self.held[self.given..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}

fn read_some(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// How many lines end in these bytes, whether with LF, CRLF or CR.
pub(super) fn count_line_ends(bytes: &[u8]) -> u64 {
    let mut after_cr = false;
    let mut count = 0;
    for &byte in bytes {
        count += u64::from(byte == b'\r' || (byte == b'\n' && !after_cr));
        after_cr = byte == b'\r';
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_line_endings_are_counted() {
        for (text, lines) in [("", 0), ("a", 0), ("a\nb\n", 2), ("a\r\nb\r\n", 2), ("a\rb\r", 2), ("\n\r\n\r", 3)] {
            assert_eq!(count_line_ends(text.as_bytes()), lines, "{text:?}");
        }
    }

    #[test]
    fn endless_record_does_not_fill_the_memory() {
        let mut intake = RecordInput::new(io::repeat(b'x'));
        let error = io::copy(&mut intake, &mut io::sink()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(intake.is_overlong());
        assert!(intake.held.len() <= RECORD_LIMIT + 2 * BLOCK);
    }

    #[test]
    fn blank_lines_do_not_fill_the_memory() {
        let lines = 3 * RECORD_LIMIT as u64;
        let mut intake = RecordInput::new(io::repeat(b'\n').take(lines));
        io::copy(&mut intake, &mut io::sink()).unwrap();
        assert_eq!(intake.close_record(lines).blank, lines);
    }

    #[test]
    fn byte_order_mark_is_dropped() {
        let mut intake = RecordInput::new("\u{feff}phone\n".as_bytes());
        assert_eq!(intake.read_head().unwrap(), b"phone\n");
    }
}
