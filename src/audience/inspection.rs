//! A second look at a record that the CSV parser accepted.
//!
//! The parser finds some reading of anything. What is refused here would lose rows in silence or
//! take a program's memory: quotes that do not close, rows inside a cell, NULs, and sizes that
//! no recipient has.

use super::cells::{QuoteFlaw, RawCell, split_cells};
use super::chunk::RecordFields;
use super::intake::{RECORD_LIMIT, RawRecord, count_line_ends};
use super::phones::resembles_number;
use super::records::HeaderLine;
use super::trouble::{self, FileExcerpt};
use crate::finding::Finding;

/// The most bytes that one cell may have.
pub const CELL_LIMIT: usize = 1 << 16;

/// What a record is judged by.
pub(super) struct RecordInspection<'a> {
    /// The record.
    pub(super) spot: FileExcerpt<'a>,
    /// The header of its file.
    pub(super) header: &'a HeaderLine,
    /// The column that holds the numbers, if it is known.
    pub(super) phone: Option<usize>,
}

impl RecordInspection<'_> {
    /// Refuses a record with a flaw.
    pub(super) fn reject_flaws(&self, raw: &RawRecord<'_>) -> Result<(), Box<Finding>> {
        let delimiter = self.header.delimiter.to_byte();
        if !raw.plain {
            if let Some(at) = raw.bytes.iter().position(|&byte| byte == 0) {
                return Err(trouble::nul_character(self.spot, at).into());
            }
            // Where a cell begins whose closing quote may be one that opens another cell.
            let mut doubtful = None;
            for (column, cell) in split_cells(raw.bytes, delimiter).enumerate() {
                self.reject_quotes(&cell, column)?;
                if self.could_open_next_cell(&cell) {
                    self.reject_swallowed_row(&cell, column)?;
                    doubtful.get_or_insert(cell.span.start);
                } else if let Some(opened) = doubtful.filter(|_| has_stray_quote(&raw.bytes[cell.span])) {
                    return Err(trouble::unclosed_quote(self.spot, opened).into());
                }
            }
        }
        if raw.bytes.len() > RECORD_LIMIT {
            return Err(trouble::large_record(self.spot).into());
        }
        if raw.bytes.len() > CELL_LIMIT {
            let large = split_cells(raw.bytes, delimiter).find(|cell| cell.span.len() > CELL_LIMIT);
            return large.map_or(Ok(()), |cell| Err(trouble::large_cell(self.spot, cell.span.start).into()));
        }
        Ok(())
    }

    fn reject_quotes(&self, cell: &RawCell, column: usize) -> Result<(), Box<Finding>> {
        let (spot, start) = (self.spot, cell.span.start);
        Err(Box::new(match cell.flaw {
            None => return Ok(()),
            Some(QuoteFlaw::Unclosed) => trouble::unclosed_quote(spot, start),
            // The quote that closes a cell in another line was meant to open one.
            Some(QuoteFlaw::TextAfterQuote(at)) if count_line_ends(&spot.raw[start..at]) > 0 => {
                trouble::unclosed_quote(spot, start)
            }
            Some(QuoteFlaw::TextAfterQuote(at)) if is_number_in_brackets(&spot.raw[at..cell.span.end]) => {
                let header = self.header.headers.get(column).map_or("", String::as_str);
                trouble::number_after_name(spot, at, header)
            }
            Some(QuoteFlaw::TextAfterQuote(at)) => trouble::text_after_quote(spot, at),
        }))
    }

    /// Whether the quote that closes a cell of several lines may be one that opens another cell.
    ///
    /// A quote that nobody closed goes as far as the next quoted cell, whose quote stands behind a delimiter or a line end.
    /// A quote behind anything else closes its own cell, whatever is written there.
    fn could_open_next_cell(&self, cell: &RawCell) -> bool {
        let text = self.quoted_text(cell);
        // The cell that is opened may begin with quotes of its own.
        let before = text.iter().rfind(|&&byte| byte != b'"');
        let doubtful = before.is_some_and(|&byte| byte == self.header.delimiter.to_byte() || is_line_end(byte));
        doubtful && text.iter().any(|&byte| is_line_end(byte))
    }

    /// Refuses a cell if one of its lines is a row, or its last line may be the beginning of one.
    ///
    /// Several lines in the phone column are rather several numbers, which is that row's trouble alone.
    fn reject_swallowed_row(&self, cell: &RawCell, column: usize) -> Result<(), Box<Finding>> {
        let Some(phone) = self.phone.filter(|&phone| phone != column) else { return Ok(()) };
        let (text, width, delimiter) =
            (self.quoted_text(cell), self.header.headers.len(), self.header.delimiter.to_byte());
        let is_row =
            |line: &[u8], is_last| is_row(line, phone, delimiter, |found| found == width || is_last && found < width);
        let Some(at) = find_row(text, is_row) else { return Ok(()) };
        let start = cell.span.start;
        Err(trouble::swallowed_row(self.spot, start, self.spot.line_at(start + 1 + at)).into())
    }

    /// What stands between the quotes of a cell, as it is written; nothing where there are none.
    fn quoted_text(&self, cell: &RawCell) -> &[u8] {
        let quoted = self.spot.raw[cell.span.clone()].trim_ascii_end();
        quoted.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or_default()
    }
}

/// Whether a text is a number in address-book form: `<+380501234567>`.
fn is_number_in_brackets(text: &[u8]) -> bool {
    let text = str::from_utf8(text).unwrap_or_default().trim();
    text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).is_some_and(resembles_number)
}

/// Whether a cell that does not begin with a quote has one.
fn has_stray_quote(cell: &[u8]) -> bool {
    !cell.starts_with(b"\"") && cell.contains(&b'"')
}

/// Whether a cell beside the number has a line that is a row by its cells and its number.
///
/// It may be one that a misplaced quote hides. Several lines in the column of the numbers are rather several numbers.
#[must_use]
pub fn contains_row(fields: RecordFields<'_>, phone: usize, delimiter: u8) -> bool {
    let beside = fields.iter().enumerate().filter(|&(column, _)| column != phone);
    let mut several = beside.map(|(_, cell)| cell.as_bytes()).filter(|cell| cell.iter().any(|&byte| is_line_end(byte)));
    several
        .any(|cell| find_row(cell, |line, _| is_row(line, phone, delimiter, |found| found == fields.len())).is_some())
}

/// Where the first line behind the first line end begins that is a row; whether a line is the last one is said, too.
fn find_row(text: &[u8], is_row: impl Fn(&[u8], bool) -> bool) -> Option<usize> {
    let mut starts = (1..text.len()).filter(|&at| is_line_end(text[at - 1]));
    starts.find(|&at| {
        let line = text[at..].split(|&byte| is_line_end(byte)).next().unwrap_or_default();
        is_row(line, at + line.len() == text.len())
    })
}

/// Whether a line has a number where a row has it, and as many cells as are wanted.
fn is_row(line: &[u8], phone: usize, delimiter: u8, fits: impl Fn(usize) -> bool) -> bool {
    let number = split_cells(line, delimiter).nth(phone).and_then(|cell| str::from_utf8(&line[cell.span]).ok());
    number.is_some_and(resembles_number) && fits(split_cells(line, delimiter).count())
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}
