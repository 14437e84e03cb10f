//! A second look at a record that the CSV parser accepted.
//!
//! The parser finds some reading of anything. What is refused here would lose rows in silence or
//! take a program's memory: quotes that do not close, rows inside a cell, NULs, and sizes that
//! no recipient has.

use super::cells::{Cell, Flaw, cells};
use super::intake::{RECORD_LIMIT, RawRecord, line_ends};
use super::phones::resembles_number;
use super::records::HeaderLine;
use super::trouble::{self, Spot};
use crate::finding::Finding;

/// The most bytes that one cell may have.
const CELL_LIMIT: usize = 1 << 16;

/// What a record is judged by.
pub(super) struct Inspection<'a> {
    /// The record.
    pub(super) spot: Spot<'a>,
    /// The header of its file.
    pub(super) header: &'a HeaderLine,
    /// The column that holds the numbers, if it is known.
    pub(super) phone: Option<usize>,
}

impl Inspection<'_> {
    /// Refuses a record with a flaw.
    pub(super) fn refuse_flaws(&self, raw: &RawRecord<'_>) -> Result<(), Box<Finding>> {
        let delimiter = self.header.delimiter.byte();
        if !raw.plain {
            if let Some(at) = raw.bytes.iter().position(|&byte| byte == 0) {
                return Err(trouble::nul(self.spot, at).into());
            }
            for (column, cell) in cells(raw.bytes, delimiter).enumerate() {
                self.refuse_quotes(&cell)?;
                self.refuse_swallowed_row(&cell, column)?;
            }
        }
        if raw.bytes.len() > RECORD_LIMIT {
            return Err(trouble::large_record(self.spot).into());
        }
        if raw.bytes.len() > CELL_LIMIT {
            let large = cells(raw.bytes, delimiter).find(|cell| cell.span.len() > CELL_LIMIT);
            return large.map_or(Ok(()), |cell| Err(trouble::large_cell(self.spot, cell.span.start).into()));
        }
        Ok(())
    }

    fn refuse_quotes(&self, cell: &Cell) -> Result<(), Box<Finding>> {
        let (spot, start) = (self.spot, cell.span.start);
        Err(Box::new(match cell.flaw {
            None => return Ok(()),
            Some(Flaw::Unclosed) => trouble::unclosed_quote(spot, start),
            // The quote that closes a cell in another line was meant to open one.
            Some(Flaw::TextBehind(at)) if line_ends(&spot.raw[start..at]) > 0 => trouble::unclosed_quote(spot, start),
            Some(Flaw::TextBehind(at)) => trouble::text_behind_quote(spot, at),
        }))
    }

    /// Refuses a cell of several lines if one of them is a row by its number of cells and its phone.
    ///
    /// A line is judged as far as the cell goes: what stands behind its last line belongs to the row of the cell itself.
    /// Several lines in the phone column are rather several numbers, which is that row's trouble alone.
    fn refuse_swallowed_row(&self, cell: &Cell, column: usize) -> Result<(), Box<Finding>> {
        let Some(phone) = self.phone.filter(|&phone| phone != column) else { return Ok(()) };
        let delimiter = self.header.delimiter.byte();
        let raw = self.spot.raw[..cell.span.end].trim_ascii_end();
        let raw = raw.strip_suffix(b"\"").unwrap_or(raw);
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        for start in (cell.span.start + 1..raw.len()).filter(|&at| is_end(&raw[at - 1])) {
            let line = raw[start..].split(is_end).next().unwrap_or_default();
            let is_row = cells(line, delimiter).count() == self.header.headers.len();
            let phone = cells(line, delimiter).nth(phone);
            let number = phone.and_then(|cell| str::from_utf8(&line[cell.span]).ok());
            if is_row && number.is_some_and(resembles_number) {
                return Err(trouble::swallowed_row(self.spot, cell.span.start, self.spot.line_of(start)).into());
            }
        }
        Ok(())
    }
}
