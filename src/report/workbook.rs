//! Results as a workbook: the rows of a CSV become sheets, in which times are times and numbers are numbers, with a summary.
//!
//! A last sheet has the figures of the run, counted as everywhere else: delivered messages include those that were read.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use jiff::Timestamp;
use rust_xlsxwriter::{ExcelDateTime, Format, Workbook, Worksheet, XlsxError};

use super::columns::RESULT_COLUMNS;
use super::displayed_counts;
use super::run_figures::RunFigures;
use super::workbook_summary::ResultsSummary;
use crate::domain::Channel;
use crate::ledger::RowState;
use crate::quietly::catch_panic;

/// The most rows of a sheet, with its header; further rows go to another sheet.
pub const MAX_SHEET_ROWS: u32 = 1_048_576;
/// The most characters of a cell, as UTF-16 counts them.
const MAX_CELL_UNITS: usize = 32_767;
/// The most digits that a spreadsheet shows as they are.
const MAX_SHOWN_DIGITS: usize = 11;
/// The figure of delivered messages, and of those among them that arrived only in part.
pub(super) const DELIVERED_FIGURE: &str = "delivered (including read)";
const PARTIAL_FIGURE: &str = "delivered only in part";
/// The columns of ours that hold numbers, and those that hold times; all others of ours are text.
const NUMBER_COLUMNS: [&str; 3] = ["row", "id", "parts"];
const TIME_COLUMNS: [&str; 3] = ["submitted_at", "updated_at", "delivered_at"];

/// What stands in a cell of a sheet.
#[derive(Clone, Debug, PartialEq)]
enum SheetCell {
    Empty,
    Text(String),
    Whole(f64),
    Decimal(f64),
    /// Days since 1900, as a sheet counts them.
    Day(f64),
    /// The same, with a part of a day; in UTC.
    Time(f64),
}

/// Writes the rows of a CSV with the header of results as a workbook; a folder takes what memory should not hold.
///
/// # Errors
/// When it cannot be read or written.
pub(super) fn write_workbook(csv: impl Read, figures: &[FigureRow], out: File, folder: &Path) -> io::Result<()> {
    // The library panics where the file that takes what memory should not hold cannot be written.
    let written = catch_panic(|| write_with_row_limit(csv, figures, out, folder, MAX_SHEET_ROWS));
    let why = || io::Error::other("cannot create temporary files: disk full or permission denied");
    written.ok_or_else(why).flatten()
}

/// Writes a workbook with this many rows in each sheet of results.
fn write_with_row_limit(
    csv: impl Read,
    figures: &[FigureRow],
    out: File,
    folder: &Path,
    most_rows: u32,
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
        for row in 1..most_rows {
            if !has_more {
                break;
            }
            for (column, text) in (0_u16..).zip(&record) {
                let cell = match RESULT_COLUMNS.get(usize::from(column)) {
                    Some(ours) => result_cell(ours.name, text),
                    None => list_cell(text),
                };
                formats.write_cell(sheet, (row, column), cell).map_err(to_io_error)?;
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
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
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
    /// Its channel; empty for all.
    channel: &'static str,
    messages: u64,
}

/// The figures of a run as rows of a sheet.
pub(super) fn figure_rows(figures: &RunFigures) -> Vec<FigureRow> {
    let row = |figure: &str, channel, messages| FigureRow { figure: figure.to_owned(), channel, messages };
    let mut rows = vec![row("rows", "", figures.counts.total())];
    rows.extend(displayed_counts(&figures.counts).map(|(state, count)| match state {
        RowState::Delivered => row(DELIVERED_FIGURE, "", count),
        state => row(&state.format_words(), "", count),
    }));
    rows.push(row(PARTIAL_FIGURE, "", figures.channels.count_partial()));
    for (channel, of) in figures.channels.iter() {
        let channel = channel.map_or("unknown", Channel::name);
        rows.push(row(DELIVERED_FIGURE, channel, of.counts.count_delivered()));
        rows.push(row("read", channel, of.read));
        rows.push(row(PARTIAL_FIGURE, channel, of.in_part));
        rows.push(row("delivery time is an upper bound", channel, of.times.at_latest()));
        rows.push(row("delivery time uncertain", channel, of.times.uncertain()));
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
        sheet.write_number_with_format(row, 2, *messages as f64, &formats.whole)?;
    }
    Ok(())
}

/// A cell of one of our columns.
fn result_cell(column: &str, text: &str) -> SheetCell {
    let known = if NUMBER_COLUMNS.contains(&column) {
        text.parse::<u32>().map(f64::from).ok().or_else(|| parse_exact(text)).map(SheetCell::Whole)
    } else if TIME_COLUMNS.contains(&column) {
        let seconds = text.parse::<Timestamp>().ok().map(Timestamp::as_second);
        seconds
            .and_then(|seconds| ExcelDateTime::from_timestamp(seconds).ok())
            .map(|time| SheetCell::Time(time.to_excel()))
    } else {
        None
    };
    known.unwrap_or_else(|| text_cell(text))
}

/// A whole number, if a spreadsheet keeps each of its digits.
fn parse_exact(text: &str) -> Option<f64> {
    let number = text.parse::<f64>().ok()?;
    (text.len() <= 15 && text != "-0" && number.to_string() == text).then_some(number)
}

/// A cell of the list's own: a number where it is written as one that a spreadsheet writes alike, a date such as 2026-12-01.
fn list_cell(text: &str) -> SheetCell {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    if digits <= MAX_SHOWN_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-')) {
        if let Some(number) = parse_exact(text) {
            return if text.contains('.') { SheetCell::Decimal(number) } else { SheetCell::Whole(number) };
        }
        let is_date = text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok();
        if let Some(day) = is_date.then(|| ExcelDateTime::parse_from_str(text).ok()).flatten() {
            return SheetCell::Day(day.to_excel());
        }
    }
    text_cell(text)
}

fn text_cell(text: &str) -> SheetCell {
    if text.is_empty() { SheetCell::Empty } else { SheetCell::Text(truncate_text(text)) }
}

/// A text, or as much of it as a cell holds.
pub(super) fn truncate_text(text: &str) -> String {
    if text.encode_utf16().count() <= MAX_CELL_UNITS {
        return text.to_owned();
    }
    let mut units = 1;
    let whole = text.chars().take_while(|character| {
        units += character.len_utf16();
        units <= MAX_CELL_UNITS
    });
    whole.chain(['…']).collect()
}

/// How cells look.
struct SheetFormats {
    header: Format,
    whole: Format,
    day: Format,
    time: Format,
}

impl SheetFormats {
    fn new() -> Self {
        let number = |format: &str| Format::new().set_num_format(format);
        Self {
            header: Format::new().set_bold(),
            whole: number("0"),
            day: number("yyyy-mm-dd"),
            time: number("yyyy-mm-dd hh:mm:ss"),
        }
    }

    fn write_cell(&self, sheet: &mut Worksheet, (row, column): (u32, u16), cell: SheetCell) -> Result<(), XlsxError> {
        match cell {
            SheetCell::Empty => return Ok(()),
            SheetCell::Text(text) => sheet.write_string(row, column, text),
            SheetCell::Whole(number) => sheet.write_number_with_format(row, column, number, &self.whole),
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
            let mut book: Xlsx<_> = Xlsx::new(io::BufReader::new(out)).unwrap();
            let names = book.sheet_names();
            let expected = ["Results", "Results 2", "Results 3"];
            assert_eq!(names, [&expected[..sheets], &["Summary"]].concat());
            let read = names[..sheets].iter().flat_map(|name| {
                let range = book.worksheet_range(name).unwrap();
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
    fn result_columns_have_their_types() {
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
