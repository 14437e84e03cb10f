//! Records of a CSV file with their row numbers, checks for rows that could get lost, and the erasure of single rows.
//!
//! This module rejects everything that is not CSV in UTF-8. The CSV parser accepts any input, so a second scan of each
//! record rejects input that would silently lose rows or exhaust memory: unclosed quotes, rows inside a cell, NUL
//! characters, and impossible sizes.

#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use campaign_core::domain::{Delimiter, FORGOTTEN, Row};
use campaign_core::finding::{Finding, SourceLocation};
use csv::StringRecord;
use roaring::RoaringBitmap;

use super::columns::ListSettings;
use super::list_findings::{FileExcerpt, RaggedRow, format_rows, mask_numbers};
use super::phones::resembles_number;
use super::raw_records::{
    QuoteFlaw, RECORD_LIMIT, RawCell, RawRecord, RecordInput, count_line_ends, guess_delimiter,
    read_declared_delimiter, split_cells,
};
use super::reader::{Chunk, RecordFields};
use super::{columns, list_findings};

/// The maximum number of columns, as in a spreadsheet.
const MAX_COLUMNS: usize = 16_384;

/// The records after the header.
pub(super) struct RecordReader<R> {
    csv: csv::Reader<RecordInput<R>>,
    header: HeaderLine,
    record: StringRecord,
    /// The last row that was read, including blank ones.
    row: u32,
    ended: bool,
    /// The phone column, once it is known.
    phone: Option<usize>,
    /// The rows with a wrong number of cells so far.
    ragged: Option<RaggedRows>,
}

/// Rows whose number of cells differs from that of the header.
struct RaggedRows {
    /// The finding about the first row.
    first: Box<Finding>,
    /// The numbers of the first rows, at most [`Self::NAMED`].
    rows: Vec<u32>,
    count: usize,
}

/// The header line of the file.
pub(super) struct HeaderLine {
    /// The file name that the user gave.
    pub(super) file: PathBuf,
    /// The headers, trimmed.
    pub(super) headers: Vec<String>,
    pub(super) delimiter: Delimiter,
    /// The number of columns up to the last non-empty header.
    named: usize,
    line: u64,
    raw: Vec<u8>,
    /// Whether the first lines of the file each begin and end with a quote.
    pub(super) has_quoted_lines: bool,
}

impl HeaderLine {
    /// Rejects a record with more or fewer cells than the header.
    fn check_width(&self, excerpt: FileExcerpt<'_>, cells_found: usize) -> Result<(), Box<Finding>> {
        let expected = self.headers.len();
        if cells_found == expected || expected == 0 {
            return Ok(());
        }
        let surplus = split_cells(excerpt.raw, self.delimiter.to_byte())
            .nth(expected)
            .map(|cell| cell.span.start..excerpt.raw.len());
        let ragged = RaggedRow { cells: cells_found, expected, delimiter: self.delimiter, surplus };
        Err(list_findings::ragged_row(excerpt, ragged).into())
    }

    /// Adds or removes empty cells at the end of a record to match the header.
    fn fit_to_header(&self, record: &mut StringRecord) {
        let (cells, expected) = (record.len(), self.headers.len());
        if cells > expected && expected > 0 && record.iter().skip(expected).all(|cell| cell.trim().is_empty()) {
            record.truncate(expected);
        } else if cells < expected && cells >= self.named {
            (cells..expected).for_each(|_| record.push_field(""));
        }
    }

    /// The excerpt with the whole header.
    pub(super) fn header_excerpt(&self) -> FileExcerpt<'_> {
        FileExcerpt { file: &self.file, line: self.line, raw: &self.raw }
    }

    /// The location of a column's header.
    pub(super) fn header_place(&self, column: usize) -> SourceLocation {
        let cell = split_cells(&self.raw, self.delimiter.to_byte()).nth(column);
        self.header_excerpt().place(cell.map_or(self.header_excerpt().full_span(), |cell| cell.span))
    }
}

impl<R: Read> RecordReader<R> {
    /// Opens a file and reads its header.
    pub(super) fn open(input: R, file: &Path) -> Result<Self, Box<Finding>> {
        let mut input = RecordInput::new(input);
        let head = input.read_head().map_err(|error| list_findings::unreadable_file(file, &error))?;
        let by_campaign = read_declared_delimiter(head).filter(|declared| !declared.is_line);
        let by_file = read_declared_delimiter(&head[by_campaign.map_or(0, |declared| declared.length)..])
            .filter(|declared| declared.is_line);
        let delimiter = by_campaign.or(by_file).map_or_else(|| guess_delimiter(head), |declared| declared.delimiter);
        let has_quoted_lines = are_lines_quoted(head);
        input.skip(by_campaign.map_or(0, |declared| declared.length), 0);
        input.skip(by_file.map_or(0, |declared| declared.length), u64::from(by_file.is_some()));
        let csv = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter.to_byte())
            .buffer_capacity(1 << 16)
            .from_reader(input);
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

    /// The last row that was read. At the end, the last row of the file.
    pub(super) fn last_row(&self) -> Row {
        Row::new(self.row)
    }

    /// Sets the phone column, which helps to detect swallowed rows.
    pub(super) fn set_phone_column(&mut self, column: usize) {
        self.phone = Some(column);
    }

    /// Fills the chunk. The chunk stays empty at the end of the file.
    ///
    /// # Errors
    ///
    /// A broken row ends the file; the chunk then contains the records before it. Rows with a wrong number of cells are
    /// skipped and reported together at the end.
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

    /// Returns the row of the next non-blank record, and the byte range of the record with its line ending.
    pub(super) fn next_span(&mut self) -> Result<Option<(Row, Range<u64>)>, Box<Finding>> {
        let row = self.next_record()?;
        Ok(row.map(|row| (row, self.csv.get_ref().last_span())))
    }

    fn read_header(&mut self) -> Result<(), Box<Finding>> {
        if self.next_record()?.is_none() {
            return Err(list_findings::empty_file(&self.header.file).into());
        }
        let trimmed = |cell: &str| cell.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').to_owned();
        self.header.headers = self.record.iter().map(trimmed).collect();
        self.header.named =
            self.header.headers.iter().rposition(|header| !header.is_empty()).map_or(0, |last| last + 1);
        let (line, raw) = self.csv.get_ref().last_record();
        (self.header.line, self.header.raw) = (line, raw.to_owned());
        if self.header.headers.len() > MAX_COLUMNS {
            let place = self.header.header_place(MAX_COLUMNS);
            return Err(list_findings::too_many_columns(place, self.header.headers.len(), MAX_COLUMNS).into());
        }
        Ok(())
    }

    /// Reads the next non-blank record.
    fn next_record(&mut self) -> Result<Option<Row>, Box<Finding>> {
        while !self.ended {
            // After any error below, no more records are read.
            self.ended = true;
            let result = self.csv.read_record(&mut self.record);
            let end = self.csv.position().byte();
            if let Err(error) = &result
                && let csv::ErrorKind::Io(error) = error.kind()
            {
                return Err(explain_read_error(self.csv.get_mut(), &self.header, error).into());
            }
            let raw = self.csv.get_mut().close_record(end);
            let is_at_end = raw.bytes.is_empty();
            let row = u32::try_from(u64::from(self.row) + raw.blank + u64::from(!is_at_end));
            self.row = row.map_err(|_| list_findings::too_many_rows(&self.header.file))?;
            if is_at_end {
                return self.ragged.take().map_or(Ok(None), |ragged| Err(ragged.into_finding()));
            }
            let excerpt = FileExcerpt { file: &self.header.file, line: raw.line, raw: raw.bytes };
            if result.is_err() {
                let at = str::from_utf8(raw.bytes).map_or_else(|error| error.valid_up_to(), |_| 0);
                return Err(list_findings::invalid_utf8(excerpt, at).into());
            }
            RecordInspection { excerpt, header: &self.header, phone: self.phone }.reject_flaws(&raw)?;
            self.ended = false;
            if self.record.as_slice().trim_start().is_empty() {
                continue;
            }
            if self.record.len() != self.header.headers.len() {
                self.header.fit_to_header(&mut self.record);
                if let Err(finding) = self.header.check_width(excerpt, self.record.len()) {
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
    /// The maximum number of rows to name.
    const NAMED: usize = 20;

    fn add_row(ragged: &mut Option<Self>, row: u32, finding: Box<Finding>) {
        let ragged = ragged.get_or_insert_with(|| Self { first: finding, rows: Vec::new(), count: 0 });
        ragged.count += 1;
        if ragged.rows.len() < Self::NAMED {
            ragged.rows.push(row);
        }
    }

    /// Combines all rows with a wrong number of cells into a single finding.
    fn into_finding(self) -> Box<Finding> {
        let Self { mut first, rows, count } = self;
        if count > 1 {
            first.message += &format!("; {count} rows have this problem: {}", format_rows(&rows, count));
        }
        first
    }
}

/// Whether each of the first lines of a file, except blank ones, begins and ends with a quote.
fn are_lines_quoted(head: &[u8]) -> bool {
    const MAX_LINES: usize = 20;
    let mut lines: Vec<&[u8]> = head.split(|&byte| byte == b'\n').take(MAX_LINES).collect();
    // The last line can be incomplete.
    lines.pop();
    let mut lines = lines.into_iter().map(|line| line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii());
    let is_quoted = |line: &[u8]| line.len() > 1 && line.starts_with(b"\"") && line.ends_with(b"\"");
    let first = lines.by_ref().find(|line| !line.is_empty());
    first.is_some_and(is_quoted) && lines.filter(|line| !line.is_empty()).all(is_quoted)
}

/// The finding about a read error.
fn explain_read_error<R: Read>(input: &mut RecordInput<R>, header: &HeaderLine, error: &std::io::Error) -> Finding {
    if !input.is_overlong() {
        return list_findings::unreadable_file(&header.file, error);
    }
    let delimiter = header.delimiter.to_byte();
    let open_cell =
        split_cells(input.unfinished_record().bytes, delimiter).find(|cell| cell.flaw == Some(QuoteFlaw::Unclosed));
    let unclosed = open_cell.filter(|_| !input.is_quote_closed_later(delimiter));
    let raw = input.unfinished_record();
    let excerpt = FileExcerpt { file: &header.file, line: raw.line, raw: raw.bytes };
    unclosed.map_or_else(
        || list_findings::large_record(excerpt),
        |cell| list_findings::unclosed_quote(excerpt, cell.span.start),
    )
}

/// The maximum size of a cell in bytes.
pub const CELL_LIMIT: usize = 1 << 16;

/// A record to be checked.
pub(super) struct RecordInspection<'a> {
    /// The record.
    pub(super) excerpt: FileExcerpt<'a>,
    /// The header of its file.
    pub(super) header: &'a HeaderLine,
    /// The phone column, if it is known.
    pub(super) phone: Option<usize>,
}

impl RecordInspection<'_> {
    /// Rejects a record with a NUL character, faulty quotes, a swallowed row, or too much text.
    pub(super) fn reject_flaws(&self, raw: &RawRecord<'_>) -> Result<(), Box<Finding>> {
        let delimiter = self.header.delimiter.to_byte();
        if !raw.is_plain {
            if let Some(at) = raw.bytes.iter().position(|&byte| byte == 0) {
                return Err(list_findings::nul_character(self.excerpt, at).into());
            }
            // The start of the first cell whose closing quote could be the opening quote of the next cell.
            let mut doubtful = None;
            for (column, cell) in split_cells(raw.bytes, delimiter).enumerate() {
                self.reject_quote_flaws(&cell, column)?;
                if self.could_open_next_cell(&cell) {
                    self.reject_swallowed_row(&cell, column)?;
                    doubtful.get_or_insert(cell.span.start);
                } else if let Some(opened) = doubtful.filter(|_| has_stray_quote(&raw.bytes[cell.span])) {
                    return Err(list_findings::unclosed_quote(self.excerpt, opened).into());
                }
            }
        }
        if raw.bytes.len() > RECORD_LIMIT {
            return Err(list_findings::large_record(self.excerpt).into());
        }
        if raw.bytes.len() > CELL_LIMIT {
            let large = split_cells(raw.bytes, delimiter).find(|cell| cell.span.len() > CELL_LIMIT);
            return large.map_or(Ok(()), |cell| Err(list_findings::large_cell(self.excerpt, cell.span.start).into()));
        }
        Ok(())
    }

    fn reject_quote_flaws(&self, cell: &RawCell, column: usize) -> Result<(), Box<Finding>> {
        let (excerpt, start) = (self.excerpt, cell.span.start);
        Err(Box::new(match cell.flaw {
            None => return Ok(()),
            Some(QuoteFlaw::Unclosed) => list_findings::unclosed_quote(excerpt, start),
            // If the closing quote of a cell is on a later line, it was probably meant as the opening quote of another
            // cell.
            Some(QuoteFlaw::TextAfterQuote(at)) if count_line_ends(&excerpt.raw[start..at]) > 0 => {
                list_findings::unclosed_quote(excerpt, start)
            }
            Some(QuoteFlaw::TextAfterQuote(at)) if is_number_in_brackets(&excerpt.raw[at..cell.span.end]) => {
                let header = self.header.headers.get(column).map_or("", String::as_str);
                list_findings::number_after_name(excerpt, at, header)
            }
            Some(QuoteFlaw::TextAfterQuote(at)) => list_findings::text_after_quote(excerpt, at),
        }))
    }

    /// Whether the quote that closes a multi-line cell could be the opening quote of another cell.
    ///
    /// An unclosed quote extends to the next quoted cell, whose quote follows a delimiter or a line ending. A quote
    /// after anything else closes its own cell.
    fn could_open_next_cell(&self, cell: &RawCell) -> bool {
        let text = self.quoted_text(cell);
        // The next cell can begin with escaped quotes.
        let before = text.iter().rfind(|&&byte| byte != b'"');
        let is_doubtful = before.is_some_and(|&byte| byte == self.header.delimiter.to_byte() || is_line_end(byte));
        is_doubtful && text.iter().any(|&byte| is_line_end(byte))
    }

    /// Rejects a quoted cell if a line after the first looks like a row, or if the last line looks like the start of a
    /// row.
    ///
    /// Several lines in the phone column are probably several numbers, which is a problem of that row alone.
    fn reject_swallowed_row(&self, cell: &RawCell, column: usize) -> Result<(), Box<Finding>> {
        let Some(phone) = self.phone.filter(|&phone| phone != column) else { return Ok(()) };
        let (text, width, delimiter) =
            (self.quoted_text(cell), self.header.headers.len(), self.header.delimiter.to_byte());
        let looks_like_row =
            |line: &[u8], is_last| is_row(line, phone, delimiter, |found| found == width || is_last && found < width);
        let Some(at) = find_row(text, looks_like_row) else { return Ok(()) };
        let start = cell.span.start;
        Err(list_findings::swallowed_row(self.excerpt, start, self.excerpt.line_at(start + 1 + at)).into())
    }

    /// The raw text between the quotes of a cell. Empty if the cell is not quoted.
    fn quoted_text(&self, cell: &RawCell) -> &[u8] {
        let quoted = self.excerpt.raw[cell.span.clone()].trim_ascii_end();
        quoted.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or_default()
    }
}

/// Whether a text is a number in address-book format: `<+380501234567>`.
fn is_number_in_brackets(text: &[u8]) -> bool {
    let text = str::from_utf8(text).unwrap_or_default().trim();
    text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).is_some_and(resembles_number)
}

/// Whether a cell contains a quote but does not begin with one.
fn has_stray_quote(cell: &[u8]) -> bool {
    !cell.starts_with(b"\"") && cell.contains(&b'"')
}

/// Whether a cell outside the phone column contains a line that looks like a row.
///
/// A misplaced quote can hide such a row. Several lines in the phone column are probably several numbers.
pub fn contains_row(fields: RecordFields<'_>, phone: usize, delimiter: u8) -> bool {
    // Few records have a line end, and searching all cells at once is faster.
    if !fields.joined().bytes().fold(false, |found, byte| found | is_line_end(byte)) {
        return false;
    }
    let other_cells = fields.iter().enumerate().filter(|&(column, _)| column != phone);
    let mut multiline =
        other_cells.map(|(_, cell)| cell.as_bytes()).filter(|cell| cell.iter().any(|&byte| is_line_end(byte)));
    multiline
        .any(|cell| find_row(cell, |line, _| is_row(line, phone, delimiter, |found| found == fields.len())).is_some())
}

/// The start of the first line, after line 1, that looks like a row. The second argument of `is_row` says whether the
/// line is the last one.
fn find_row(text: &[u8], is_row: impl Fn(&[u8], bool) -> bool) -> Option<usize> {
    let mut starts = (1..text.len()).filter(|&at| is_line_end(text[at - 1]));
    starts.find(|&at| {
        let line = text[at..].split(|&byte| is_line_end(byte)).next().unwrap_or_default();
        is_row(line, at + line.len() == text.len())
    })
}

/// Whether a line has a phone number in the phone column, and a number of cells that `fits` accepts.
fn is_row(line: &[u8], phone: usize, delimiter: u8, fits: impl Fn(usize) -> bool) -> bool {
    let number = split_cells(line, delimiter).nth(phone).and_then(|cell| str::from_utf8(&line[cell.span]).ok());
    number.is_some_and(resembles_number) && fits(split_cells(line, delimiter).count())
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// The finding about a list in which each line is a single quoted cell with delimiters inside.
pub(super) fn find_quoted_lines(line: &HeaderLine, sample: &Chunk) -> Option<Finding> {
    let [header] = line.headers.as_slice() else { return None };
    let excerpt = line.header_excerpt();
    let rows = || sample.iter().map(|record| record.fields.get(0)).filter(|row| !row.is_empty());
    let width = |text: &str, delimiter: Delimiter| split_cells(text.as_bytes(), delimiter.to_byte()).count();
    let is_list = |delimiter: Delimiter| {
        let columns = width(header, delimiter);
        let matching = rows().filter(|row| width(row, delimiter) == columns).count();
        columns > 1 && matching * 2 > rows().count()
    };
    if !line.has_quoted_lines || !Delimiter::COMMON.into_iter().any(is_list) {
        return None;
    }
    // If the header was deleted, the first line is a recipient, whose data must not be shown.
    let is_recipient = mask_numbers(header) != *header;
    let excerpt = if is_recipient { FileExcerpt { raw: b"", ..excerpt } } else { excerpt };
    Some(list_findings::quoted_lines_finding(excerpt))
}

/// Writes a list without the personal data in these rows: a placeholder replaces the phone number, and all other cells
/// are empty. `open` opens the list from its beginning each time.
///
/// # Errors
///
/// The list cannot be read or written, or has no phone column.
pub fn write_with_erased_rows<R: Read>(
    open: impl Fn() -> io::Result<R>,
    file: &Path,
    settings: &ListSettings,
    rows: &RoaringBitmap,
    mut out: impl Write,
) -> io::Result<()> {
    let mut records = RecordReader::open(open()?, file).map_err(|finding| unreadable(&finding.message))?;
    let phone = columns::name_columns(records.header(), settings).phone();
    let phone = phone.ok_or_else(|| unreadable("it has no phone column"))?;
    let (columns, delimiter) = (records.header().headers.len(), records.header().delimiter.to_byte());
    let mut erased_row = vec![delimiter; columns.saturating_sub(1)];
    erased_row.splice(phone..phone, FORGOTTEN.bytes());
    let (mut list, mut copied) = (open()?, 0);
    while let Some((row, span)) = records.next_span().map_err(|finding| unreadable(&finding.message))? {
        if !rows.contains(row.get()) {
            continue;
        }
        copy_bytes(&mut list, span.start - copied, &mut out)?;
        let mut raw = Vec::new();
        list.by_ref().take(span.end - span.start).read_to_end(&mut raw)?;
        let text_end = raw.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
        out.write_all(&erased_row)?;
        out.write_all(&raw[text_end..])?;
        copied = span.end;
    }
    io::copy(&mut list, &mut out)?;
    out.flush()
}

fn copy_bytes(list: &mut impl Read, bytes: u64, out: &mut impl Write) -> io::Result<()> {
    match io::copy(&mut list.take(bytes), out)? == bytes {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn unreadable(reason: &str) -> io::Error {
    io::Error::other(reason.to_owned())
}

#[cfg(test)]
mod quoted_lines_tests {
    use std::path::Path;

    use crate::audience::{ListSettings, RecipientReader, suggest_columns};
    use campaign_core::finding::{Finding, render_findings};

    const LIST: &str =
        "\"phone,name,city\"\n\"+380501000001,\"\"Koval, Olena\"\",Kyiv\"\n\"+380671000002,Taras,\"\"Lviv\"\"\"\n";

    fn collect_findings(text: &str) -> Vec<Finding> {
        let settings =
            ListSettings { columns: vec![("phone".to_owned(), "tel".to_owned())], ..ListSettings::default() };
        let opened = RecipientReader::open(text.as_bytes(), Path::new("list.csv"), &settings).err().unwrap_or_default();
        opened
            .into_iter()
            .chain(suggest_columns(text.as_bytes(), Path::new("list.csv")).err().map(|finding| *finding))
            .collect()
    }

    #[test]
    fn quoted_lines_are_reported_without_personal_data() {
        let without_header = LIST.split_once('\n').unwrap().1;
        for text in [LIST, &LIST.replace(',', ";"), &format!("\u{feff}{LIST}"), without_header] {
            let findings = collect_findings(text);
            assert_eq!(findings.len(), 2, "{text}");
            for finding in findings {
                assert_eq!(finding.rule, "recipients-quoted-lines", "{text}");
                let output = render_findings(&[finding], false);
                assert!(!output.contains("1000001") && !output.contains("Olena"), "{output}");
            }
        }
    }

    #[test]
    fn quoted_cells_are_not_quoted_lines() {
        for text in [
            "\"phone\",\"name\"\n\"+380501000001\",\"Koval, Olena\"\n",
            "\"phone\"\n\"+380501000001\"\n",
            "\"sep=;\"\nphone;name\n+380501000001;Olena\n",
            "\"Clients; spring\"\nphone;name\n+380501000001;Olena\n",
            "\"Clients, all of them\"\n\"Olena\"\n\"Taras\"\n",
            "phone,name\n\"+380501000001,Olena\",x\n",
        ] {
            let rules: Vec<&str> = collect_findings(text).iter().map(|finding| finding.rule.id).collect();
            assert!(!rules.contains(&"recipients-quoted-lines"), "{text}: {rules:?}");
        }
    }

    #[test]
    fn row_with_a_number_is_never_quoted_as_a_title() {
        for text in ["+380501000001 Olena,\nb,c\nd,e\n", "\"Olena +380501000001\"\na;b\nc;d\n"] {
            for finding in collect_findings(text) {
                assert!(!format!("{finding:?}").contains("380501000001"), "{finding:?}");
            }
        }
    }
}

#[cfg(test)]
mod erasure_tests {
    use super::*;

    fn erase_rows(list: &str, rows: &[u32]) -> String {
        let settings = ListSettings { columns: Vec::new(), region: None, may_be_empty: true };
        let mut output = Vec::new();
        let open = || Ok(list.as_bytes());
        write_with_erased_rows(open, Path::new("list.csv"), &settings, &rows.iter().copied().collect(), &mut output)
            .unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn forgotten_rows_are_blanked_and_other_bytes_kept() {
        for (list, rows, expected) in [
            ("phone,name\n1,A\n2,B\n3,C\n", &[3][..], "phone,name\n1,A\nforgotten,\n3,C\n"),
            ("phone\n1\n2", &[2, 3], "phone\nforgotten\nforgotten"),
            (
                "\u{feff}name;phone;x\r\nA;1;\r\n\r\nB;2;y\r\n",
                &[4],
                "\u{feff}name;phone;x\r\nA;1;\r\n\r\n;forgotten;\r\n",
            ),
            ("sep=;\nphone;name\n1;A\n2;B\n", &[2], "sep=;\nphone;name\nforgotten;\n2;B\n"),
            ("phone,name\n\"1\",\"A\nB\"\"C\"\n\n2,B\n", &[2], "phone,name\nforgotten,\n\n2,B\n"),
            ("phone,name\n\n  \n1,A\n", &[4], "phone,name\n\n  \nforgotten,\n"),
            ("phone,name\n1,A\n", &[], "phone,name\n1,A\n"),
        ] {
            assert_eq!(erase_rows(list, rows), expected, "{list:?}");
        }
    }

    #[test]
    fn forgotten_rows_are_erased_anywhere_in_a_long_list() {
        let line = |row: u32, name: &str| format!("{},{name}\n", 380_501_000_000 + u64::from(row));
        let list = (2..30_000).map(|row| line(row, "Person")).collect::<String>();
        let output = erase_rows(&format!("phone,name\n{list}"), &[2, 15_000, 29_999]);
        let mut lines = output.lines().zip(1_u32..).skip(1);
        assert!(lines.all(|(text, row)| (text == "forgotten,") == [2, 15_000, 29_999].contains(&row)));
    }
}
