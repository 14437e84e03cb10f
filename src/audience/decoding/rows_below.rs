//! Tables with rows above their header: blank lines replace these rows, so each row keeps its number.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::refusal;
use crate::audience::dialect::told;
use crate::audience::form_trouble as trouble;

/// How much is read at a time above the header, in bytes.
const BLOCK: usize = 1 << 12;
/// The byte order mark.
const MARK: &[u8] = "\u{feff}".as_bytes();
/// Signs after which a quote opens a cell.
const BEFORE_CELLS: [u8; 4] = *b",;\t|";

/// Blanks the rows above a header.
pub(in crate::audience) struct RowsBelow<R> {
    input: R,
    file: PathBuf,
    /// The row of the header, from 1.
    header: u32,
    /// Rows that are still above it.
    above: u32,
    /// The next output, from `at` on.
    ready: Vec<u8>,
    at: usize,
    begun: bool,
    place: Place,
}

/// The position of the last byte within its row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A quote would open a cell here.
    Beginning,
    Cell,
    Quoted,
    /// After a quote that closes the cell, unless it is doubled.
    BehindQuote,
    /// After a line end of one character that another can follow.
    BehindReturn,
}

impl<R: Read> RowsBelow<R> {
    /// A table whose header stands in that row.
    pub(in crate::audience) fn new(input: R, header: u32, file: &Path) -> Self {
        let (above, place) = (header.saturating_sub(1), Place::Beginning);
        Self { input, file: file.to_owned(), header, above, ready: Vec::new(), at: 0, begun: false, place }
    }

    /// Reads a block above the header, and keeps its output.
    fn advance(&mut self) -> io::Result<()> {
        let mut block = Vec::with_capacity(BLOCK);
        self.input.by_ref().take(BLOCK as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            return Err(refusal(trouble::no_header_row(&self.file, self.header)));
        }
        (self.at, self.ready) = (0, Vec::new());
        let start = if std::mem::replace(&mut self.begun, true) { 0 } else { line_before(&block) };
        self.ready.extend_from_slice(&block[..start]);
        let mut rest = block[start..].strip_prefix(MARK).unwrap_or(&block[start..]).iter();
        while self.above > 0 {
            let Some(&byte) = rest.next() else { return Ok(()) };
            self.pass(byte);
        }
        self.ready.extend_from_slice(rest.as_slice());
        Ok(())
    }

    /// Reads a byte above the header; only ends of rows are output.
    fn pass(&mut self, byte: u8) {
        self.place = match (self.place, byte) {
            (Place::Quoted, b'"') => Place::BehindQuote,
            (Place::Quoted, _) | (Place::Beginning | Place::BehindReturn | Place::BehindQuote, b'"') => Place::Quoted,
            (Place::BehindReturn, b'\n') => {
                self.ready.push(byte);
                Place::Beginning
            }
            (_, b'\n' | b'\r') => {
                self.ready.push(byte);
                self.above -= 1;
                if byte == b'\r' { Place::BehindReturn } else { Place::Beginning }
            }
            (_, byte) if BEFORE_CELLS.contains(&byte) => Place::Beginning,
            _ => Place::Cell,
        };
    }
}

/// The length of the line that names the delimiter, including a byte order mark; 0 without such a line.
fn line_before(head: &[u8]) -> usize {
    let text = head.strip_prefix(MARK).unwrap_or(head);
    told(text).filter(|told| told.is_line).map_or(0, |told| head.len() - text.len() + told.length)
}

impl<R: Read> Read for RowsBelow<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.ready.len() {
            if self.above == 0 {
                return self.input.read(buffer);
            }
            self.advance()?;
        }
        let ready = &self.ready[self.at..];
        let count = ready.len().min(buffer.len());
        buffer[..count].copy_from_slice(&ready[..count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audience::decoding::refused;

    fn below(text: &str, header: u32) -> Result<String, String> {
        let mut read = String::new();
        let mut rows = RowsBelow::new(text.as_bytes(), header, Path::new("list.csv"));
        match rows.read_to_string(&mut read) {
            Ok(_) => Ok(read),
            Err(error) => Err(refused(&error).unwrap().message.clone()),
        }
    }

    #[test]
    fn rows_above_the_header_are_blank_and_count() {
        for (text, header, expected) in [
            ("phone,name\n1,A\n", 1, "phone,name\n1,A\n"),
            ("Clients\nphone,name\n1,A\n", 2, "\nphone,name\n1,A\n"),
            ("Clients\r\n\r\nphone\r\n1\r\n", 3, "\r\n\r\nphone\r\n1\r\n"),
            ("Clients\r\rphone\r1\r", 3, "\r\rphone\r1\r"),
            ("\"Clients\nof \"\"spring\"\", all\",\nphone\n", 2, "\nphone\n"),
            ("Pizza 5\"\nphone\n", 2, "\nphone\n"),
            ("x,\"a\nb\";\"c\r\nd\"\nphone\n", 2, "\nphone\n"),
            ("\u{feff}\"Clients\nof spring\"\nphone\n", 2, "\nphone\n"),
            ("sep=;\r\nClients\nphone\n", 2, "sep=;\r\n\nphone\n"),
            ("\u{feff}sep=;\nClients\nphone\n", 2, "\u{feff}sep=;\n\nphone\n"),
            ("Clients\n", 2, "\n"),
        ] {
            assert_eq!(below(text, header).as_deref(), Ok(expected), "{text:?}");
        }
        let long = format!("{}\nphone\n1\n", "x".repeat(3 * BLOCK));
        assert_eq!(below(&long, 2).as_deref(), Ok("\nphone\n1\n"));
        assert!(below("a\nb\n", 4).unwrap_err().contains("has no row 4"));
    }
}
