//! Results as a workbook: sheets with typed cells, a summary, and the figures of the run.
//!
//! As in all views, delivered messages include read ones.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use jiff::Timestamp;
use rust_xlsxwriter::{ExcelDateTime, Format, Workbook, Worksheet, XlsxError};

use super::columns::{COLUMN_NAMES, RESULT_COLUMNS};
use super::displayed_counts;
use super::run_figures::RunFigures;
use campaign_core::domain::Channel;
use campaign_core::panics::catch_panic;
use campaign_ledger::RowState;

/// The maximum number of rows in a sheet, including its header; further rows go to another sheet.
pub const MAX_SHEET_ROWS: u32 = 1_048_576;
/// The maximum length of a cell, in UTF-16 code units.
const MAX_CELL_UNITS: usize = 32_767;
/// The maximum length of a number of which a spreadsheet keeps every digit.
const MAX_EXACT_LENGTH: usize = 15;
/// The maximum number of digits that a spreadsheet shows unchanged.
const MAX_SHOWN_DIGITS: usize = 11;
/// The name of the figure for delivered messages.
pub(super) const DELIVERED_FIGURE: &str = "delivered (including read)";
/// The name of the figure for messages that were delivered only in part.
const PARTIAL_FIGURE: &str = "delivered only in part";
/// The result columns with numbers.
const NUMBER_COLUMNS: [&str; 3] = ["row", "id", "parts"];
/// The result columns with times. All result columns other than numbers and times are text.
const TIME_COLUMNS: [&str; 3] = ["submitted_at", "updated_at", "delivered_at"];

/// The size of the buffer for writing a workbook.
const WRITE_BUFFER_BYTES: usize = 1 << 16;

/// The value of a cell.
#[derive(Clone, Debug, PartialEq)]
enum SheetCell {
    Empty,
    Text(String),
    Whole(f64),
    Decimal(f64),
    /// Days since 1900, in the format of spreadsheets.
    Day(f64),
    /// Days since 1900 with a fraction, in UTC.
    Time(f64),
}

/// Writes a CSV with the results header as a workbook. Temporary data is written to `folder`.
///
/// # Errors
/// If the CSV cannot be read or the workbook cannot be written.
pub(super) fn write_workbook(csv: impl Read, figures: &[FigureRow], out: File, folder: &Path) -> io::Result<()> {
    // The library panics if it cannot write its temporary file.
    let written = catch_panic(|| write_with_row_limit(csv, figures, out, folder, MAX_SHEET_ROWS));
    let error = || io::Error::other("cannot create temporary files: disk full or permission denied");
    written.ok_or_else(error).flatten()
}

/// Writes a workbook with at most `max_rows` rows in each results sheet.
fn write_with_row_limit(
    csv: impl Read,
    figures: &[FigureRow],
    out: File,
    folder: &Path,
    max_rows: u32,
) -> io::Result<()> {
    let mut rows = csv::ReaderBuilder::new().has_headers(false).from_reader(csv);
    let mut workbook = Workbook::new();
    workbook.set_tempdir(folder).map_err(to_io_error)?;
    let formats = SheetFormats::new();
    let (mut headers, mut record) = (csv::StringRecord::new(), csv::StringRecord::new());
    rows.read_record(&mut headers)?;
    let mut has_more = rows.read_record(&mut record)?;
    let mut summary = ResultsSummary::default();
    for sheet in 1_u32.. {
        let sheet = begin_sheet(&mut workbook, sheet, &headers, &formats)?;
        for row in 1..max_rows {
            if !has_more {
                break;
            }
            for (column, text) in (0_u16..).zip(&record) {
                let cell = match RESULT_COLUMNS.get(usize::from(column)) {
                    Some(result_column) => result_cell(result_column.name, text),
                    None => list_cell(text),
                };
                formats.write_cell(sheet, row, column, cell).map_err(to_io_error)?;
            }
            summary.count_row(&record);
            has_more = rows.read_record(&mut record)?;
        }
        if !has_more {
            break;
        }
    }
    summary.write_sheet(workbook.add_worksheet(), &formats.header).map_err(to_io_error)?;
    if !figures.is_empty() {
        let sheet = workbook.add_worksheet_with_constant_memory().map_err(to_io_error)?;
        write_figures(sheet, figures, &formats).map_err(to_io_error)?;
    }
    let mut out = io::BufWriter::with_capacity(WRITE_BUFFER_BYTES, out);
    workbook.save_to_writer(&mut out).map_err(to_io_error)?;
    out.flush()?;
    out.get_ref().sync_all()
}

/// Adds a sheet of results with its header.
fn begin_sheet<'w>(
    workbook: &'w mut Workbook,
    number: u32,
    headers: &csv::StringRecord,
    formats: &SheetFormats,
) -> io::Result<&'w mut Worksheet> {
    let sheet = workbook.add_worksheet_with_constant_memory().map_err(to_io_error)?;
    let name = if number == 1 { "Results".to_owned() } else { format!("Results {number}") };
    sheet.set_name(name).and_then(|sheet| sheet.set_freeze_panes(1, 0)).map_err(to_io_error)?;
    for (column, header) in (0_u16..).zip(headers) {
        sheet
            .set_column_width(column, if TIME_COLUMNS.contains(&header) { 20.0 } else { 14.0 })
            .map_err(to_io_error)?;
        sheet.write_string_with_format(0, column, truncate_text(header), &formats.header).map_err(to_io_error)?;
    }
    Ok(sheet)
}

/// A row of the sheet of figures.
pub(super) struct FigureRow {
    figure: String,
    /// The channel; empty for all.
    channel: &'static str,
    messages: u64,
}

/// The figures of a run as sheet rows.
pub(super) fn figure_rows(figures: &RunFigures) -> Vec<FigureRow> {
    let row = |figure: &str, channel, messages| FigureRow { figure: figure.to_owned(), channel, messages };
    let mut rows = vec![row("rows", "", figures.counts.total())];
    rows.extend(displayed_counts(&figures.counts).map(|(state, count)| match state {
        RowState::Delivered => row(DELIVERED_FIGURE, "", count),
        state => row(&state.format_words(), "", count),
    }));
    rows.push(row(PARTIAL_FIGURE, "", figures.channels.count_partial()));
    for (channel, channel_figure) in figures.channels.iter() {
        let channel = channel.map_or("unknown", Channel::name);
        rows.push(row(DELIVERED_FIGURE, channel, channel_figure.counts.count_delivered()));
        rows.push(row("read", channel, channel_figure.read));
        rows.push(row(PARTIAL_FIGURE, channel, channel_figure.in_part));
        rows.push(row("delivery time is an upper bound", channel, channel_figure.times.count_upper_bounds()));
        rows.push(row("delivery time uncertain", channel, channel_figure.times.count_uncertain()));
    }
    rows.retain(|row| row.messages > 0);
    rows
}

fn write_figures(sheet: &mut Worksheet, figures: &[FigureRow], formats: &SheetFormats) -> Result<(), XlsxError> {
    sheet.set_name("Figures")?;
    sheet.set_column_width(0, 32.0)?;
    for (column, header) in (0_u16..).zip(["figure", "channel", "messages"]) {
        sheet.write_string_with_format(0, column, header, &formats.header)?;
    }
    for (row, FigureRow { figure, channel, messages }) in (1_u32..).zip(figures) {
        sheet.write_string(row, 0, figure)?;
        sheet.write_string(row, 1, *channel)?;
        sheet.write_number_with_format(row, 2, *messages as f64, &formats.integer)?;
    }
    Ok(())
}

/// Converts the text of a result column to a cell: a number, a time or text.
fn result_cell(column: &str, text: &str) -> SheetCell {
    let cell = if NUMBER_COLUMNS.contains(&column) {
        text.parse::<u32>().map(f64::from).ok().or_else(|| parse_exact(text)).map(SheetCell::Whole)
    } else if TIME_COLUMNS.contains(&column) {
        let seconds = text.parse::<Timestamp>().ok().map(Timestamp::as_second);
        seconds
            .and_then(|seconds| ExcelDateTime::from_timestamp(seconds).ok())
            .map(|time| SheetCell::Time(time.to_excel()))
    } else {
        None
    };
    cell.unwrap_or_else(|| text_cell(text))
}

/// Parses a number. Returns `None` if a spreadsheet would not keep every digit.
fn parse_exact(text: &str) -> Option<f64> {
    let number = text.parse::<f64>().ok()?;
    (text.len() <= MAX_EXACT_LENGTH && text != "-0" && number.to_string() == text).then_some(number)
}

/// Converts the text of a list column to a cell: a number that a spreadsheet displays unchanged, a date such as
/// 2026-12-01, or text.
fn list_cell(text: &str) -> SheetCell {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    if digits <= MAX_SHOWN_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-')) {
        if let Some(number) = parse_exact(text) {
            return if text.contains('.') { SheetCell::Decimal(number) } else { SheetCell::Whole(number) };
        }
        let is_date = text.len() == "2026-12-01".len() && text.parse::<jiff::civil::Date>().is_ok();
        if let Some(day) = is_date.then(|| ExcelDateTime::parse_from_str(text).ok()).flatten() {
            return SheetCell::Day(day.to_excel());
        }
    }
    text_cell(text)
}

fn text_cell(text: &str) -> SheetCell {
    if text.is_empty() { SheetCell::Empty } else { SheetCell::Text(truncate_text(text)) }
}

/// The text, truncated with an ellipsis if it is too long for a cell.
pub(super) fn truncate_text(text: &str) -> String {
    if text.encode_utf16().count() <= MAX_CELL_UNITS {
        return text.to_owned();
    }
    let mut units = 1;
    let prefix = text.chars().take_while(|character| {
        units += character.len_utf16();
        units <= MAX_CELL_UNITS
    });
    prefix.chain(['…']).collect()
}

/// The cell formats.
struct SheetFormats {
    header: Format,
    integer: Format,
    day: Format,
    time: Format,
}

impl SheetFormats {
    fn new() -> Self {
        let number = |format: &str| Format::new().set_num_format(format);
        Self {
            header: Format::new().set_bold(),
            integer: number("0"),
            day: number("yyyy-mm-dd"),
            time: number("yyyy-mm-dd hh:mm:ss"),
        }
    }

    fn write_cell(&self, sheet: &mut Worksheet, row: u32, column: u16, cell: SheetCell) -> Result<(), XlsxError> {
        match cell {
            SheetCell::Empty => return Ok(()),
            SheetCell::Text(text) => sheet.write_string(row, column, text),
            SheetCell::Whole(number) => sheet.write_number_with_format(row, column, number, &self.integer),
            SheetCell::Decimal(number) => sheet.write_number(row, column, number),
            SheetCell::Day(day) => sheet.write_number_with_format(row, column, day, &self.day),
            SheetCell::Time(time) => sheet.write_number_with_format(row, column, time, &self.time),
        }
        .map(|_| ())
    }
}

fn to_io_error(error: XlsxError) -> io::Error {
    match error {
        XlsxError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

/// The maximum number of reasons and runs that are counted separately: a reason can quote a row.
const MAX_REASONS: usize = 100;

/// The rows of results by state, reason and run.
#[derive(Debug, Default)]
pub(super) struct ResultsSummary {
    rows: u64,
    parts: u64,
    /// Whether the gateway did not report the parts of a message that it has.
    has_unreported_parts: bool,
    states: BTreeMap<String, u64>,
    /// Rows by state and reason, or by the gateway's error if the reason is unknown.
    reasons: BTreeMap<(String, String), u64>,
    /// Rows with further reasons, by state.
    other_reasons: BTreeMap<String, u64>,
    runs: BTreeMap<String, u64>,
    has_more_runs: bool,
}

impl ResultsSummary {
    /// Adds a row of results to the counts.
    pub(super) fn count_row(&mut self, record: &csv::StringRecord) {
        let cell = |name: &str| {
            let column = COLUMN_NAMES.iter().position(|column_name| *column_name == name);
            column.and_then(|column| record.get(column)).unwrap_or_default()
        };
        let state = cell("state");
        self.rows += 1;
        self.parts += cell("parts").parse().unwrap_or(0);
        let is_with_gateway = RowState::from_name(state).is_some_and(RowState::is_with_gateway);
        self.has_unreported_parts |= is_with_gateway && cell("parts").is_empty();
        count_key(&mut self.states, state);
        let reason = if cell("reason").is_empty() { cell("error") } else { cell("reason") };
        if !reason.is_empty() {
            let key = (state.to_owned(), reason.to_owned());
            match self.reasons.len() < MAX_REASONS || self.reasons.contains_key(&key) {
                true => *self.reasons.entry(key).or_default() += 1,
                false => count_key(&mut self.other_reasons, state),
            }
        }
        let run = cell("run");
        match self.runs.len() < MAX_REASONS || self.runs.contains_key(run) {
            _ if run.is_empty() => {}
            true => count_key(&mut self.runs, run),
            false => self.has_more_runs = true,
        }
    }

    /// Writes the summary sheet. All texts are written as text, even if they begin like a formula.
    pub(super) fn write_sheet(&self, sheet: &mut Worksheet, bold: &Format) -> Result<(), XlsxError> {
        sheet.set_name("Summary")?.set_column_width(0, 24.0)?.set_column_width(1, 12.0)?.set_column_width(2, 60.0)?;
        let mut lines = SummaryLines { sheet, bold, row: 0 };
        let mut runs: Vec<&str> = self.runs.keys().map(String::as_str).collect();
        runs.extend(self.has_more_runs.then_some("others"));
        lines.write_text(if runs.len() == 1 { "Run" } else { "Runs" }, &runs.join(", "))?;
        let count = |state: RowState| self.states.get(state.name()).copied().unwrap_or(0);
        lines.write_header(["", "Rows", ""])?;
        lines.write_count("Recipients", self.rows, "")?;
        lines.write_count("Delivered", count(RowState::Delivered) + count(RowState::Read), "includes read messages")?;
        lines.write_count("Read", count(RowState::Read), "")?;
        let note = if self.has_unreported_parts { "at least; the gateway did not report all parts" } else { "" };
        lines.write_count("Billed parts", self.parts, note)?;
        lines.write_header(["State", "Rows", ""])?;
        let state_names = RowState::ALL.map(RowState::name);
        for state in RowState::ALL {
            // As in all views, delivered messages include read ones.
            let (name, rows) = match state {
                RowState::Delivered => (DELIVERED_FIGURE, count(RowState::Delivered) + count(RowState::Read)),
                _ => (state.name(), count(state)),
            };
            if rows > 0 {
                lines.write_count(name, rows, "")?;
            }
        }
        if !self.reasons.is_empty() {
            lines.write_header(["State", "Rows", "Reason or error"])?;
        }
        for state in state_names {
            let mut reasons: Vec<_> = self.reasons.iter().filter(|((other, _), _)| other == state).collect();
            reasons.sort_by_key(|((_, reason), rows)| (std::cmp::Reverse(**rows), reason));
            for ((_, reason), rows) in reasons {
                lines.write_count(state, *rows, reason)?;
            }
            if let Some(rows) = self.other_reasons.get(state) {
                lines.write_count(state, *rows, "other reasons")?;
            }
        }
        Ok(())
    }
}

fn count_key(counts: &mut BTreeMap<String, u64>, key: &str) {
    match counts.get_mut(key) {
        Some(rows) => *rows += 1,
        None => drop(counts.insert(key.to_owned(), 1)),
    }
}

/// A writer of the lines of the summary sheet.
struct SummaryLines<'s> {
    sheet: &'s mut Worksheet,
    bold: &'s Format,
    row: u32,
}

impl SummaryLines<'_> {
    fn write_text(&mut self, name: &str, text: &str) -> Result<(), XlsxError> {
        self.sheet.write_string_with_format(self.row, 0, name, self.bold)?.write_string(self.row, 1, text)?;
        self.row += 1;
        Ok(())
    }

    /// Writes a header for the next lines, after an empty line.
    fn write_header(&mut self, names: [&str; 3]) -> Result<(), XlsxError> {
        self.row += 1;
        for (column, name) in (0..).zip(names) {
            self.sheet.write_string_with_format(self.row, column, name, self.bold)?;
        }
        self.row += 1;
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "a sheet has no other numbers")]
    fn write_count(&mut self, name: &str, rows: u64, note: &str) -> Result<(), XlsxError> {
        let text = truncate_text(note);
        self.sheet.write_string(self.row, 0, name)?.write_number(self.row, 1, rows as f64)?;
        if !text.is_empty() {
            self.sheet.write_string(self.row, 2, text)?;
        }
        self.row += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_the_limit_go_to_another_sheet() {
        use calamine::{Data, Reader as _, Xlsx};
        let folder = tempfile::tempdir().unwrap();
        for (rows, sheets) in [(0, 1), (2, 1), (3, 2), (4, 2), (5, 3)] {
            let headers = RESULT_COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>().join(",");
            let lines = (2..2 + rows)
                .map(|row| format!("{row},,38050000000{row},delivered{}\n", ",".repeat(RESULT_COLUMNS.len() - 4)));
            let csv = format!("{headers}\n{}", lines.collect::<String>());
            let out = tempfile::tempfile().unwrap();
            write_with_row_limit(csv.as_bytes(), &[], out.try_clone().unwrap(), folder.path(), 3).unwrap();
            let mut workbook: Xlsx<_> = Xlsx::new(io::BufReader::new(out)).unwrap();
            let names = workbook.sheet_names();
            let expected = ["Results", "Results 2", "Results 3"];
            assert_eq!(names, [&expected[..sheets], &["Summary"]].concat());
            let read = names[..sheets].iter().flat_map(|name| {
                let range = workbook.worksheet_range(name).unwrap();
                assert_eq!(range.get_value((0, 0)), Some(&Data::String("row".into())));
                range.rows().skip(1).map(|row| row[0].clone()).collect::<Vec<_>>()
            });
            assert_eq!(read.collect::<Vec<_>>(), (2..2 + rows).map(|row| Data::Float(row.into())).collect::<Vec<_>>());
        }
    }

    #[test]
    fn list_cells_become_numbers_only_if_no_digit_changes() {
        let text = |text: &str| SheetCell::Text(text.to_owned());
        for (cell, expected) in [
            ("", SheetCell::Empty),
            ("7", SheetCell::Whole(7.0)),
            ("-7", SheetCell::Whole(-7.0)),
            ("0", SheetCell::Whole(0.0)),
            ("12.5", SheetCell::Decimal(12.5)),
            ("12.50", text("12.50")),
            ("007", text("007")),
            ("-0", text("-0")),
            (".5", text(".5")),
            ("1e5", text("1e5")),
            ("12,5", text("12,5")),
            ("380501234567", text("380501234567")),
            ("12345678901", SheetCell::Whole(12_345_678_901.0)),
            ("0.1234567890123", text("0.1234567890123")),
            ("2026-12-01", SheetCell::Day(46_357.0)),
            ("2026-13-01", text("2026-13-01")),
            ("0001-01-01", text("0001-01-01")),
            ("=1+1", text("=1+1")),
            ("nan", text("nan")),
            ("inf", text("inf")),
        ] {
            assert_eq!(list_cell(cell), expected, "{cell}");
        }
    }

    #[test]
    fn result_columns_have_the_expected_types() {
        assert_eq!(result_cell("id", "78378000000020"), SheetCell::Whole(78_378_000_000_020.0));
        assert_eq!(result_cell("to", "380501234567"), SheetCell::Text("380501234567".into()));
        let written = "2026-11-23T02:00:00Z";
        assert_eq!(result_cell("submitted_at", written), SheetCell::Time(46_349.083_333_333_336));
        assert_eq!(result_cell("submitted_at", ""), SheetCell::Empty);
        assert!(
            NUMBER_COLUMNS
                .iter()
                .chain(&TIME_COLUMNS)
                .all(|name| RESULT_COLUMNS.iter().any(|column| column.name == *name))
        );
    }

    #[test]
    fn long_text_is_truncated_with_an_ellipsis() {
        let long = "😀".repeat(20_000);
        let cut = truncate_text(&long);
        assert!(cut.ends_with('…') && cut.encode_utf16().count() <= MAX_CELL_UNITS);
    }
}
