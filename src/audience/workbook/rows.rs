//! The cells of a sheet on their way to CSV: a line for each row, with as many cells as the widest has.

use std::fs::File;
use std::io;
use std::path::Path;

use csv::StringRecord;

use super::WorkbookError;
use crate::audience::decoding::{MAX_UNPACKED, SpooledFile};
use crate::audience::form_trouble as trouble;
use crate::audience::intake::RECORD_LIMIT;
use crate::finding::Finding;

/// The last row and column of a sheet, from 0.
const LAST: (u32, u32) = ((1 << 20) - 1, (1 << 14) - 1);

/// Takes the cells of a sheet from its first row to its last, and what is worth knowing of them.
pub(super) struct SheetRows<'f> {
    file: &'f Path,
    /// The cells of the row that is being read.
    cells: Vec<String>,
    /// The bytes of their texts.
    held: usize,
    /// That row, from 0.
    row: u32,
    /// Rows that were written.
    done: u32,
    /// Cells of the header, and of the widest row.
    width: (usize, usize),
    out: csv::Writer<File>,
    /// About how many bytes were written.
    size: u64,
    /// Rows with cells that were written, and all their cells.
    filled: (u64, u64),
    /// Cells with an error instead of a value, their rows from 1, and what the first shows.
    pub(super) errors: (u64, Vec<u32>, String),
}

impl<'f> SheetRows<'f> {
    pub(super) fn new(file: &'f Path) -> io::Result<Self> {
        Ok(Self {
            file,
            cells: Vec::new(),
            held: 0,
            row: 0,
            done: 0,
            width: (0, 0),
            out: create_writer()?,
            size: 0,
            filled: (0, 0),
            errors: (0, Vec::new(), String::new()),
        })
    }

    /// Takes a cell; an empty one is none.
    pub(super) fn put_cell(&mut self, row: u32, column: u32, text: &str) -> Result<(), WorkbookError> {
        if text.trim().is_empty() {
            return Ok(());
        }
        if row > LAST.0 || column > LAST.1 {
            return Err(WorkbookError::Damaged("a cell is outside the sheet".to_owned()));
        }
        if row != self.row {
            if row < self.row {
                return Err(WorkbookError::Damaged("its rows are not in order".to_owned()));
            }
            self.end_row()?;
            self.row = row;
        }
        // A list with such a row is refused later in any case.
        self.held += text.len();
        if self.held > RECORD_LIMIT {
            return Err(self.long_row_finding(row).into());
        }
        let column = column as usize;
        if self.cells.len() <= column {
            self.cells.resize(column + 1, String::new());
        }
        text.clone_into(&mut self.cells[column]);
        Ok(())
    }

    /// That a row has more text than a list may have in one.
    pub(super) fn long_row_finding(&self, row: u32) -> Finding {
        trouble::large_workbook(self.file, &format!("row {} has more than 1 MiB of text", u64::from(row) + 1))
    }

    /// Takes a cell that shows an error.
    pub(super) fn put_error_cell(&mut self, row: u32, column: u32, shown: &str) -> Result<(), WorkbookError> {
        if self.errors.0 == 0 {
            shown.clone_into(&mut self.errors.2);
        }
        self.errors.0 += 1;
        if self.errors.1.last() != Some(&(row + 1)) {
            self.errors.1.push(row + 1);
        }
        self.put_cell(row, column, shown)
    }

    /// Writes the row that was read, behind the blank ones before it.
    fn end_row(&mut self) -> Result<(), WorkbookError> {
        if self.cells.is_empty() {
            return Ok(());
        }
        while self.done < self.row {
            self.done += 1;
            self.write_row(&[])?;
        }
        self.done += 1;
        let own = self.cells.len();
        if self.width.0 == 0 {
            self.width.0 = own;
        }
        self.width.1 = self.width.1.max(own);
        self.held = 0;
        self.cells.resize(own.max(self.width.0), String::new());
        let cells = std::mem::take(&mut self.cells);
        self.filled = (self.filled.0 + 1, self.filled.1 + cells.len() as u64);
        self.write_row(&cells)
    }

    /// Writes a row; without cells a blank one.
    fn write_row(&mut self, cells: &[String]) -> Result<(), WorkbookError> {
        self.size += cells.iter().map(|cell| cell.len() as u64 + 1).sum::<u64>() + 1;
        if self.size > MAX_UNPACKED {
            return Err(trouble::unpacks_too_much(self.file).into());
        }
        match cells {
            [] => self.out.write_record([""]),
            cells => self.out.write_record(cells),
        }
        .map_err(|error| io::Error::other(error).into())
    }

    /// All rows, with as many cells each.
    pub(super) fn finish(mut self) -> Result<SpooledFile, WorkbookError> {
        self.end_row()?;
        let (header, widest) = self.width;
        let (rows, cells) = self.filled;
        if self.size + rows * widest as u64 - cells > MAX_UNPACKED {
            return Err(trouble::unpacks_too_much(self.file).into());
        }
        let spool = spool_file(self.out)?;
        if header == widest {
            return Ok(spool);
        }
        let mut narrow = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(1 << 16)
            .from_reader(spool.reader());
        let mut record = StringRecord::new();
        let mut copy = create_writer()?;
        while narrow.read_record(&mut record).map_err(io::Error::other)? {
            let blank = record.as_slice().is_empty();
            let padding = if blank { 0 } else { widest - record.len() };
            copy.write_record(record.iter().chain(std::iter::repeat_n("", padding))).map_err(io::Error::other)?;
        }
        Ok(spool_file(copy)?)
    }
}

fn create_writer() -> io::Result<csv::Writer<File>> {
    Ok(csv::WriterBuilder::new().flexible(true).buffer_capacity(1 << 16).from_writer(tempfile::tempfile()?))
}

fn spool_file(written: csv::Writer<File>) -> io::Result<SpooledFile> {
    Ok(SpooledFile::from_file(written.into_inner().map_err(|error| io::Error::other(error.to_string()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a refusal says.
    fn refusal_text(result: Result<impl Sized, WorkbookError>) -> String {
        match result {
            Ok(_) => String::new(),
            Err(WorkbookError::Finding(finding)) => finding.message,
            Err(WorkbookError::Damaged(why)) => why,
        }
    }

    #[test]
    fn row_with_too_much_text_is_rejected() {
        let mut rows = SheetRows::new(Path::new("list.xlsx")).unwrap();
        let text = "x".repeat(1 << 19);
        for row in 0..3 {
            assert_eq!(refusal_text(rows.put_cell(row, 0, &text)), "");
            assert_eq!(refusal_text(rows.put_cell(row, 1, &text)), "");
        }
        assert!(refusal_text(rows.put_cell(2, 2, "x")).contains("row 3 has more than 1 MiB of text"));
    }

    #[test]
    fn rows_with_too_many_empty_cells_are_rejected() {
        let mut rows = SheetRows::new(Path::new("list.xlsx")).unwrap();
        for row in 0..300_000 {
            assert_eq!(refusal_text(rows.put_cell(row, 0, "x")), "");
        }
        assert_eq!(refusal_text(rows.put_cell(300_000, LAST.1, "x")), "");
        assert!(refusal_text(rows.finish()).contains("more than 4 GiB"));
    }
}
