//! Sheets of workbooks as CSV with the sheet's row numbers and the displayed text of cells.
//!
//! [`read_workbook`] writes the sheet into a [`SpooledFile`]. Workbooks are untrusted input: every file results in a
//! sheet or a finding. Memory use is limited before a file is opened, and panics in libraries are caught.

mod archive;
mod cell_format;
mod ods;
mod xls;
mod xlsx;

use std::fs::File;
use std::io;
use std::io::{Read, Seek};
use std::path::Path;

use csv::StringRecord;
use zip::result::ZipError;

use super::decoding::{SheetInfo, SpooledFile, extract_finding};
use super::list_findings;
use crate::audience::decoding::MAX_UNPACKED;
use crate::audience::raw_records::RECORD_LIMIT;
use archive::WorkbookArchive;
use campaign_core::finding::Finding;
use campaign_core::panics::catch_panic;

/// Whether a file is a workbook, or at least uses the container format of a workbook.
pub(super) fn is_workbook(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") || head.starts_with(b"\xd0\xcf\x11\xe0")
}

/// The reason why a workbook cannot be read as a list.
enum WorkbookError {
    Finding(Box<Finding>),
    /// The workbook is damaged, with the library's message if there is one.
    Damaged(String),
}

impl From<Box<Finding>> for WorkbookError {
    fn from(finding: Box<Finding>) -> Self {
        Self::Finding(finding)
    }
}

impl From<Finding> for WorkbookError {
    fn from(finding: Finding) -> Self {
        Self::Finding(finding.into())
    }
}

impl WorkbookError {
    /// The finding that the error carries, or else a report of damage with the message of the error.
    fn from_io(error: &std::io::Error) -> Self {
        extract_finding(error)
            .map_or_else(|| Self::Damaged(error.to_string()), |finding| Self::Finding(finding.clone().into()))
    }
}

impl From<std::io::Error> for WorkbookError {
    fn from(error: std::io::Error) -> Self {
        Self::from_io(&error)
    }
}

impl From<ZipError> for WorkbookError {
    fn from(error: ZipError) -> Self {
        match error {
            ZipError::Io(error) => error.into(),
            error => Self::Damaged(error.to_string()),
        }
    }
}

/// Reads the sheet with this name, or else the first visible sheet.
///
/// # Errors
///
/// The file is not a workbook, is damaged, locked or too large, or has no such sheet.
pub(super) fn read_workbook<S: Read + Seek>(
    mut input: S,
    file: &Path,
    sheet: Option<&str>,
) -> Result<(SpooledFile, SheetInfo), Box<Finding>> {
    let result = catch_panic(|| convert_workbook(&mut input, file, sheet));
    result.unwrap_or(Err(WorkbookError::Damaged(String::new()))).map_err(|error| match error {
        WorkbookError::Finding(finding) => finding,
        WorkbookError::Damaged(reason) => list_findings::damaged_workbook(file, &reason).into(),
    })
}

fn convert_workbook<S: Read + Seek>(
    input: &mut S,
    file: &Path,
    sheet: Option<&str>,
) -> Result<(SpooledFile, SheetInfo), WorkbookError> {
    let mut head = [0];
    input.read_exact(&mut head)?;
    input.rewind()?;
    if head == [0xd0] {
        return xls::read_xls(input, file, sheet);
    }
    let mut archive = WorkbookArchive::open(&mut *input, file)?;
    if archive.has_part("xl/workbook.bin") {
        return Err(list_findings::foreign_format(file, "a binary workbook (.xlsb)", None).into());
    }
    if archive.names().any(|name| name.starts_with("index/") && name.ends_with(".iwa")) {
        return Err(list_findings::foreign_format(file, "a Numbers document", None).into());
    }
    if archive.names().any(|name| name.starts_with("word/") || name.starts_with("ppt/")) {
        return Err(list_findings::foreign_format(file, "a Word or PowerPoint document", None).into());
    }
    if archive.has_part("content.xml") {
        return ods::read_ods(&mut archive, sheet);
    }
    if archive.has_part("[Content_Types].xml") || archive.names().any(|name| name.starts_with("xl/")) {
        return xlsx::read_xlsx(&mut archive, sheet);
    }
    Err(list_findings::foreign_format(file, "an archive (ZIP)", Some("unpack the file, and use the list inside"))
        .into())
}

/// The index of the requested sheet, or of the first visible sheet if none is requested. `sheets` contains each name
/// with a flag that is true for visible sheets.
fn choose_sheet(file: &Path, sheets: &[(String, bool)], sheet: Option<&str>) -> Result<usize, WorkbookError> {
    let names = || sheets.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let Some(sheet) = sheet else {
        return sheets
            .iter()
            .position(|(_, visible)| *visible)
            .ok_or_else(|| list_findings::no_visible_sheet(file, &names()).into());
    };
    let normalize = |name: &str| name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let exact = sheets.iter().position(|(name, _)| name == sheet);
    exact
        .or_else(|| sheets.iter().position(|(name, _)| normalize(name) == normalize(sheet)))
        .ok_or_else(|| list_findings::no_sheet(file, sheet, &names()).into())
}

/// The last row of a sheet, from 0.
const LAST_ROW: u32 = (1 << 20) - 1;
/// The last column of a sheet, from 0.
const LAST_COLUMN: u32 = (1 << 14) - 1;

/// Collects the cells of a sheet from the first row to the last, with warnings about them, and writes them as CSV.
struct SheetRows<'f> {
    file: &'f Path,
    /// The cells of the current row.
    cells: Vec<String>,
    /// The size of the text of these cells, in bytes.
    text_size: usize,
    /// The current row, from 0.
    row: u32,
    /// The number of written rows.
    written_rows: u32,
    /// The number of cells in the header.
    header_width: usize,
    /// The number of cells in the widest row.
    max_width: usize,
    out: csv::Writer<File>,
    /// The approximate number of written bytes.
    size: u64,
    /// The number of written rows with cells.
    filled_rows: u64,
    /// The number of cells in these rows.
    filled_cells: u64,
    errors: ErrorCells,
}

/// Cells with an error instead of a value.
#[derive(Default)]
struct ErrorCells {
    count: u64,
    /// The rows of these cells, from 1.
    rows: Vec<u32>,
    /// The text of the first cell.
    first_text: String,
}

impl<'f> SheetRows<'f> {
    fn new(file: &'f Path) -> io::Result<Self> {
        Ok(Self {
            file,
            cells: Vec::new(),
            text_size: 0,
            row: 0,
            written_rows: 0,
            header_width: 0,
            max_width: 0,
            out: create_writer()?,
            size: 0,
            filled_rows: 0,
            filled_cells: 0,
            errors: ErrorCells::default(),
        })
    }

    /// Adds a cell. Empty cells are ignored.
    fn put_cell(&mut self, row: u32, column: u32, text: &str) -> Result<(), WorkbookError> {
        if text.trim().is_empty() {
            return Ok(());
        }
        if row > LAST_ROW || column > LAST_COLUMN {
            return Err(WorkbookError::Damaged("a cell is outside the sheet".to_owned()));
        }
        if row != self.row {
            if row < self.row {
                return Err(WorkbookError::Damaged("its rows are not in order".to_owned()));
            }
            self.end_row()?;
            self.row = row;
        }
        // A row that is too long would be rejected later anyway, so it is rejected before its text uses more memory.
        self.text_size += text.len();
        if self.text_size > RECORD_LIMIT {
            return Err(self.long_row_finding(row).into());
        }
        let column = column as usize;
        if self.cells.len() <= column {
            self.cells.resize(column + 1, String::new());
        }
        text.clone_into(&mut self.cells[column]);
        Ok(())
    }

    /// The finding about a row with more text than a list allows.
    fn long_row_finding(&self, row: u32) -> Finding {
        list_findings::large_workbook(self.file, &format!("row {} has more than 1 MiB of text", u64::from(row) + 1))
    }

    /// Adds a cell that shows an error, and counts the error.
    fn put_error_cell(&mut self, row: u32, column: u32, text: &str) -> Result<(), WorkbookError> {
        if self.errors.count == 0 {
            text.clone_into(&mut self.errors.first_text);
        }
        self.errors.count += 1;
        if self.errors.rows.last() != Some(&(row + 1)) {
            self.errors.rows.push(row + 1);
        }
        self.put_cell(row, column, text)
    }

    /// Writes the current row, after the blank rows before it.
    fn end_row(&mut self) -> Result<(), WorkbookError> {
        if self.cells.is_empty() {
            return Ok(());
        }
        while self.written_rows < self.row {
            self.written_rows += 1;
            self.write_row(&[])?;
        }
        self.written_rows += 1;
        let width = self.cells.len();
        if self.header_width == 0 {
            self.header_width = width;
        }
        self.max_width = self.max_width.max(width);
        self.text_size = 0;
        self.cells.resize(width.max(self.header_width), String::new());
        let cells = std::mem::take(&mut self.cells);
        self.filled_rows += 1;
        self.filled_cells += cells.len() as u64;
        self.write_row(&cells)
    }

    /// Writes a row, or a blank row if there are no cells.
    fn write_row(&mut self, cells: &[String]) -> Result<(), WorkbookError> {
        self.size += cells.iter().map(|cell| cell.len() as u64 + 1).sum::<u64>() + 1;
        if self.size > MAX_UNPACKED {
            return Err(list_findings::unpacked_file_too_large(self.file).into());
        }
        match cells {
            [] => self.out.write_record([""]),
            cells => self.out.write_record(cells),
        }
        .map_err(|error| io::Error::other(error).into())
    }

    /// Finishes the sheet. Returns all rows, and the chosen sheet with warnings about hidden rows and about cells with
    /// errors.
    fn finish_sheet(
        mut self,
        sheets: &[(String, bool)],
        chosen: usize,
        hidden: &[u32],
    ) -> Result<(SpooledFile, SheetInfo), WorkbookError> {
        let (file, name) = (self.file, &sheets[chosen].0);
        let mut warnings = Vec::new();
        if !hidden.is_empty() {
            warnings.push(list_findings::hidden_rows(file, name, hidden));
        }
        let ErrorCells { count, rows, first_text } = std::mem::take(&mut self.errors);
        if count > 0 {
            warnings.push(list_findings::cell_errors(file, name, count, &rows, &first_text));
        }
        let others = sheets.iter().enumerate().filter(|(index, (_, visible))| *index != chosen && *visible);
        let visible_others = others.map(|(_, (name, _))| name.clone()).collect();
        let sheet = SheetInfo { name: name.clone(), others: sheets.len() - 1, visible_others, warnings };
        Ok((self.finish()?, sheet))
    }

    /// Returns all rows, padded to the same number of cells.
    fn finish(mut self) -> Result<SpooledFile, WorkbookError> {
        self.end_row()?;
        let max_width = self.max_width;
        if self.size + self.filled_rows * max_width as u64 - self.filled_cells > MAX_UNPACKED {
            return Err(list_findings::unpacked_file_too_large(self.file).into());
        }
        let spool = into_spooled_file(self.out)?;
        if self.header_width == max_width {
            return Ok(spool);
        }
        let mut narrow = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(1 << 16)
            .from_reader(spool.reader());
        let mut record = StringRecord::new();
        let mut padded = create_writer()?;
        while narrow.read_record(&mut record).map_err(io::Error::other)? {
            let blank = record.as_slice().is_empty();
            let padding = if blank { 0 } else { max_width - record.len() };
            padded.write_record(record.iter().chain(std::iter::repeat_n("", padding))).map_err(io::Error::other)?;
        }
        Ok(into_spooled_file(padded)?)
    }
}

fn create_writer() -> io::Result<csv::Writer<File>> {
    Ok(csv::WriterBuilder::new().flexible(true).buffer_capacity(1 << 16).from_writer(tempfile::tempfile()?))
}

fn into_spooled_file(writer: csv::Writer<File>) -> io::Result<SpooledFile> {
    Ok(SpooledFile::from_file(writer.into_inner().map_err(|error| io::Error::other(error.to_string()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_message(result: Result<impl Sized, WorkbookError>) -> String {
        match result {
            Ok(_) => String::new(),
            Err(WorkbookError::Finding(finding)) => finding.message,
            Err(WorkbookError::Damaged(reason)) => reason,
        }
    }

    #[test]
    fn row_with_too_much_text_is_rejected() {
        let mut rows = SheetRows::new(Path::new("list.xlsx")).unwrap();
        let text = "x".repeat(1 << 19);
        for row in 0..3 {
            assert_eq!(error_message(rows.put_cell(row, 0, &text)), "");
            assert_eq!(error_message(rows.put_cell(row, 1, &text)), "");
        }
        assert!(error_message(rows.put_cell(2, 2, "x")).contains("row 3 has more than 1 MiB of text"));
    }

    #[test]
    fn sheet_with_too_many_empty_cells_is_rejected() {
        let mut rows = SheetRows::new(Path::new("list.xlsx")).unwrap();
        for row in 0..300_000 {
            assert_eq!(error_message(rows.put_cell(row, 0, "x")), "");
        }
        assert_eq!(error_message(rows.put_cell(300_000, LAST_COLUMN, "x")), "");
        assert!(error_message(rows.finish()).contains("larger than 4 GiB"));
    }
}
