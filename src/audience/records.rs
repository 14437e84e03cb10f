//! The file's records under their row numbers, before anybody knows what the columns mean.
//!
//! Refuses what is no CSV in UTF-8, and every way in which a row could be lost in silence.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use csv::StringRecord;

use super::cells::{QuoteFlaw, split_cells};
use super::chunk::Chunk;
use super::dialect::{guess_delimiter, read_declared_delimiter};
use super::form_trouble::format_rows;
use super::inspection::RecordInspection;
use super::intake::RecordInput;
use super::trouble::{self, FileExcerpt, RaggedRow};
use crate::domain::{Delimiter, Row};
use crate::finding::{Finding, SourceLocation};

/// The most columns of a list: as many as a spreadsheet has.
const MAX_COLUMNS: usize = 16_384;

/// The records behind the header.
pub(super) struct RecordReader<R> {
    csv: csv::Reader<RecordInput<R>>,
    header: HeaderLine,
    record: StringRecord,
    /// The last row met, blank ones included.
    row: u32,
    ended: bool,
    /// The column that holds the numbers, once it is known.
    phone: Option<usize>,
    /// The rows that do not fit the header, as far as they were met.
    ragged: Option<RaggedRows>,
}

/// Rows that do not fit the header.
struct RaggedRows {
    /// What is said of the first.
    first: Box<Finding>,
    /// The first of them.
    rows: Vec<u32>,
    count: usize,
}

/// The header as it stands in the file.
pub(super) struct HeaderLine {
    /// The file as the user called it.
    pub(super) file: PathBuf,
    /// The headers, trimmed.
    pub(super) headers: Vec<String>,
    pub(super) delimiter: Delimiter,
    /// Columns up to the last one that has a header.
    named: usize,
    line: u64,
    raw: Vec<u8>,
    /// Whether the first lines of the file each begin and end with a quote.
    pub(super) has_quoted_lines: bool,
}

impl HeaderLine {
    /// Refuses a record that has more or fewer cells than the header, once that is read.
    fn check_width(&self, spot: FileExcerpt<'_>, cells_found: usize) -> Result<(), Box<Finding>> {
        let expected = self.headers.len();
        if cells_found == expected || expected == 0 {
            return Ok(());
        }
        let first =
            split_cells(spot.raw, self.delimiter.to_byte()).nth(expected).map(|cell| cell.span.start..spot.raw.len());
        let ragged = RaggedRow { cells: cells_found, expected, delimiter: self.delimiter, surplus: first };
        Err(trouble::ragged_row(spot, ragged).into())
    }

    /// Makes a record fit that differs from the header by empty cells at its end alone.
    fn trim_width(&self, record: &mut StringRecord) {
        let (found, expected) = (record.len(), self.headers.len());
        if found > expected && expected > 0 && record.iter().skip(expected).all(|cell| cell.trim().is_empty()) {
            record.truncate(expected);
        } else if found < expected && found >= self.named {
            (found..expected).for_each(|_| record.push_field(""));
        }
    }

    /// The whole header as a piece of the file.
    pub(super) fn spot(&self) -> FileExcerpt<'_> {
        FileExcerpt { file: &self.file, line: self.line, raw: &self.raw }
    }

    /// Where a column's header stands.
    pub(super) fn header_place(&self, column: usize) -> SourceLocation {
        let cell = split_cells(&self.raw, self.delimiter.to_byte()).nth(column);
        self.spot().place(cell.map_or(self.spot().full_span(), |cell| cell.span))
    }
}

impl<R: Read> RecordReader<R> {
    /// Reads as far as the header.
    pub(super) fn open(input: R, file: &Path) -> Result<Self, Box<Finding>> {
        let mut intake = RecordInput::new(input);
        let head = intake.read_head().map_err(|error| trouble::unreadable(file, &error))?;
        let by_campaign = read_declared_delimiter(head).filter(|told| !told.is_line);
        let by_file =
            read_declared_delimiter(&head[by_campaign.map_or(0, |told| told.length)..]).filter(|told| told.is_line);
        let delimiter = by_campaign.or(by_file).map_or_else(|| guess_delimiter(head), |told| told.delimiter);
        let has_quoted_lines = are_lines_quoted(head);
        intake.skip(by_campaign.map_or(0, |told| told.length), 0);
        intake.skip(by_file.map_or(0, |told| told.length), u64::from(by_file.is_some()));
        let csv = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter.to_byte())
            .buffer_capacity(1 << 16)
            .from_reader(intake);
        let (file, headers, raw) = (file.to_owned(), Vec::new(), Vec::new());
        let header = HeaderLine { file, headers, delimiter, named: 0, line: 1, raw, has_quoted_lines };
        let record = StringRecord::new();
        let mut records = Self { csv, header, record, row: 0, ended: false, phone: None, ragged: None };
        records.read_header()?;
        Ok(records)
    }

    pub(super) fn into_input(self) -> R {
        self.csv.into_inner().into_input()
    }

    pub(super) fn header(&self) -> &HeaderLine {
        &self.header
    }

    /// The last row met; at the end the last one of the file.
    pub(super) fn last_row(&self) -> Row {
        Row::new(self.row)
    }

    /// Names the column that holds the numbers, by which a swallowed row is recognised.
    pub(super) fn set_phone_column(&mut self, column: usize) {
        self.phone = Some(column);
    }

    /// Fills the chunk; it stays empty at the end of the file.
    ///
    /// # Errors
    ///
    /// A row is not as it should be: the file counts as ended, and the chunk holds the records before it. Rows that do not
    /// fit the header are passed over, and told together at the end of the file.
    pub(super) fn fill_chunk(&mut self, chunk: &mut Chunk) -> Result<(), Box<Finding>> {
        chunk.reset(self.header.headers.len());
        while !chunk.is_full() {
            match self.next_record()? {
                Some(row) => chunk.push(row, &self.record),
                None => break,
            }
        }
        Ok(())
    }

    /// The next record that is not blank: its row, and where it stands in the file with its line end.
    pub(super) fn next_span(&mut self) -> Result<Option<(Row, Range<u64>)>, Box<Finding>> {
        let row = self.next_record()?;
        Ok(row.map(|row| (row, self.csv.get_ref().last_span())))
    }

    fn read_header(&mut self) -> Result<(), Box<Finding>> {
        if self.next_record()?.is_none() {
            return Err(trouble::empty_file(&self.header.file).into());
        }
        let trimmed = |cell: &str| cell.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').to_owned();
        self.header.headers = self.record.iter().map(trimmed).collect();
        self.header.named =
            self.header.headers.iter().rposition(|header| !header.is_empty()).map_or(0, |last| last + 1);
        let (line, raw) = self.csv.get_ref().last_record();
        (self.header.line, self.header.raw) = (line, raw.to_owned());
        if self.header.headers.len() > MAX_COLUMNS {
            let place = self.header.header_place(MAX_COLUMNS);
            return Err(trouble::too_many_columns(place, self.header.headers.len(), MAX_COLUMNS).into());
        }
        Ok(())
    }

    /// Reads the next record that is not blank.
    fn next_record(&mut self) -> Result<Option<Row>, Box<Finding>> {
        while !self.ended {
            // Whatever goes wrong below ends the file.
            self.ended = true;
            let read = self.csv.read_record(&mut self.record);
            let end = self.csv.position().byte();
            if let Err(error) = &read
                && let csv::ErrorKind::Io(error) = error.kind()
            {
                return Err(explain_read_error(self.csv.get_mut(), &self.header, error).into());
            }
            let raw = self.csv.get_mut().close_record(end);
            let found = u64::from(!raw.bytes.is_empty());
            let row = u32::try_from(u64::from(self.row) + raw.blank + found);
            self.row = row.map_err(|_| trouble::too_many_rows(&self.header.file))?;
            if found == 0 {
                return self.ragged.take().map_or(Ok(None), |ragged| Err(ragged.into_finding()));
            }
            let spot = FileExcerpt { file: &self.header.file, line: raw.line, raw: raw.bytes };
            if read.is_err() {
                let at = str::from_utf8(raw.bytes).map_or_else(|error| error.valid_up_to(), |_| 0);
                return Err(trouble::invalid_utf8(spot, at).into());
            }
            RecordInspection { spot, header: &self.header, phone: self.phone }.reject_flaws(&raw)?;
            self.ended = false;
            if self.record.as_slice().trim_start().is_empty() {
                continue;
            }
            if self.record.len() != self.header.headers.len() {
                self.header.trim_width(&mut self.record);
                if let Err(finding) = self.header.check_width(spot, self.record.len()) {
                    RaggedRows::add_row(&mut self.ragged, self.row, finding);
                    continue;
                }
            }
            return Ok(Some(Row::new(self.row)));
        }
        Ok(None)
    }
}

impl RaggedRows {
    /// Rows that are named.
    const NAMED: usize = 20;

    fn add_row(rows: &mut Option<Self>, row: u32, finding: Box<Finding>) {
        let rows = rows.get_or_insert_with(|| Self { first: finding, rows: Vec::new(), count: 0 });
        rows.count += 1;
        if rows.rows.len() < Self::NAMED {
            rows.rows.push(row);
        }
    }

    /// All of them as one finding.
    fn into_finding(self) -> Box<Finding> {
        let Self { mut first, rows, count } = self;
        if count > 1 {
            first.message += &format!("; {count} rows have this problem: {}", format_rows(&rows, count));
        }
        first
    }
}

/// Whether each of the first lines of a file begins and ends with a quote, except blank lines.
fn are_lines_quoted(head: &[u8]) -> bool {
    const LOOKED_AT: usize = 20;
    let mut lines: Vec<&[u8]> = head.split(|&byte| byte == b'\n').take(LOOKED_AT).collect();
    // The last line can be incomplete.
    lines.pop();
    let mut lines = lines.into_iter().map(|line| line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii());
    let is_quoted = |line: &[u8]| line.len() > 1 && line.starts_with(b"\"") && line.ends_with(b"\"");
    let first = lines.by_ref().find(|line| !line.is_empty());
    first.is_some_and(is_quoted) && lines.filter(|line| !line.is_empty()).all(is_quoted)
}

/// Why no further byte can be read.
fn explain_read_error<R: Read>(intake: &mut RecordInput<R>, header: &HeaderLine, error: &std::io::Error) -> Finding {
    if !intake.is_overlong() {
        return trouble::unreadable(&header.file, error);
    }
    let delimiter = header.delimiter.to_byte();
    let open =
        split_cells(intake.unfinished_record().bytes, delimiter).find(|cell| cell.flaw == Some(QuoteFlaw::Unclosed));
    let unclosed = open.filter(|_| !intake.closes_later(delimiter));
    let raw = intake.unfinished_record();
    let spot = FileExcerpt { file: &header.file, line: raw.line, raw: raw.bytes };
    unclosed.map_or_else(|| trouble::large_record(spot), |cell| trouble::unclosed_quote(spot, cell.span.start))
}

#[cfg(test)]
mod tests;
