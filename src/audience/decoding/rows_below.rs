//! Tables with rows above their header: blank lines replace these rows, so each row keeps its number.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::finding_error;
use crate::audience::dialect::read_declared_delimiter;
use crate::audience::form_trouble as trouble;

/// How much is read at a time above the header, in bytes.
const BLOCK: usize = 1 << 12;
/// The byte order mark.
const MARK: &[u8] = "\u{feff}".as_bytes();
/// Signs after which a quote opens a cell.
const BEFORE_CELLS: [u8; 4] = *b",;\t|";

/// Blanks the rows above a header.
pub(in crate::audience) struct RowBlanker<R> {
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
    place: RowPosition,
}

/// The position of the last byte within its row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowPosition {
    /// A quote would open a cell here.
    Beginning,
    Cell,
    Quoted,
    /// After a quote that closes the cell, unless it is doubled.
    AfterQuote,
    /// After a line end of one character that another can follow.
    AfterReturn,
}

impl<R: Read> RowBlanker<R> {
    /// A table whose header stands in that row.
    pub(in crate::audience) fn new(input: R, header: u32, file: &Path) -> Self {
        let (above, place) = (header.saturating_sub(1), RowPosition::Beginning);
        Self { input, file: file.to_owned(), header, above, ready: Vec::new(), at: 0, begun: false, place }
    }

    /// Reads a block above the header, and keeps its output.
    fn read_block(&mut self) -> io::Result<()> {
        let mut block = Vec::with_capacity(BLOCK);
        self.input.by_ref().take(BLOCK as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            return Err(finding_error(trouble::no_header_row(&self.file, self.header)));
        }
        (self.at, self.ready) = (0, Vec::new());
        let start = if std::mem::replace(&mut self.begun, true) { 0 } else { delimiter_line_length(&block) };
        self.ready.extend_from_slice(&block[..start]);
        let mut rest = block[start..].strip_prefix(MARK).unwrap_or(&block[start..]).iter();
        while self.above > 0 {
            let Some(&byte) = rest.next() else { return Ok(()) };
            self.blank_byte(byte);
        }
        self.ready.extend_from_slice(rest.as_slice());
        Ok(())
    }

    /// Reads a byte above the header; only ends of rows are output.
    fn blank_byte(&mut self, byte: u8) {
        self.place = match (self.place, byte) {
            (RowPosition::Quoted, b'"') => RowPosition::AfterQuote,
            (RowPosition::Quoted, _)
            | (RowPosition::Beginning | RowPosition::AfterReturn | RowPosition::AfterQuote, b'"') => {
                RowPosition::Quoted
            }
            (RowPosition::AfterReturn, b'\n') => {
                self.ready.push(byte);
                RowPosition::Beginning
            }
            (_, b'\n' | b'\r') => {
                self.ready.push(byte);
                self.above -= 1;
                if byte == b'\r' { RowPosition::AfterReturn } else { RowPosition::Beginning }
            }
            (_, byte) if BEFORE_CELLS.contains(&byte) => RowPosition::Beginning,
            _ => RowPosition::Cell,
        };
    }
}

/// The length of the line that names the delimiter, including a byte order mark; 0 without such a line.
fn delimiter_line_length(head: &[u8]) -> usize {
    let text = head.strip_prefix(MARK).unwrap_or(head);
    read_declared_delimiter(text).filter(|told| told.is_line).map_or(0, |told| head.len() - text.len() + told.length)
}

impl<R: Read> Read for RowBlanker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.ready.len() {
            if self.above == 0 {
                return self.input.read(buffer);
            }
            self.read_block()?;
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
    use crate::audience::decoding::find_finding;

    fn read_below(text: &str, header: u32) -> Result<String, String> {
        let mut read = String::new();
        let mut rows = RowBlanker::new(text.as_bytes(), header, Path::new("list.csv"));
        match rows.read_to_string(&mut read) {
            Ok(_) => Ok(read),
            Err(error) => Err(find_finding(&error).unwrap().message.clone()),
        }
    }

    #[test]
    fn rows_above_the_header_are_blank_but_counted() {
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
            assert_eq!(read_below(text, header).as_deref(), Ok(expected), "{text:?}");
        }
        let long = format!("{}\nphone\n1\n", "x".repeat(3 * BLOCK));
        assert_eq!(read_below(&long, 2).as_deref(), Ok("\nphone\n1\n"));
        assert!(read_below("a\nb\n", 4).unwrap_err().contains("has no row 4"));
    }
}
