//! Sheets of `.ods` workbooks, which store both the value and the displayed text of each cell.

use std::collections::HashSet;
use std::io::{Read, Seek};

use jiff::civil::{Date, DateTime, Time};
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use zip::read::ZipFile;

use super::archive::{MemoryBudget, WorkbookArchive, XmlEvents, attribute_value};
use super::{SheetRows, WorkbookError, choose_sheet};
use crate::audience::decoding::{SheetInfo, SpooledFile};
use crate::audience::is_shortened_number;
use crate::audience::raw_records::RECORD_LIMIT;

/// The maximum number of cells in a row, as many as a sheet has columns.
const MAX_CELLS: usize = 1 << 14;

pub(super) fn read_ods<S: Read + Seek>(
    archive: &mut WorkbookArchive<'_, S>,
    sheet: Option<&str>,
) -> Result<(SpooledFile, SheetInfo), WorkbookError> {
    let file = archive.file;
    let WorkbookOutline { sheets, date_styles } = read_outline(archive)?;
    let chosen = choose_sheet(file, &sheets, sheet)?;
    let mut reader = SheetReader {
        xml: open_content(archive)?,
        rows: SheetRows::new(file)?,
        row: 0,
        hidden: Vec::new(),
        date_styles,
        columns: Vec::new(),
    };
    reader.seek_sheet(chosen)?;
    reader.read_rows()?;
    reader.rows.finish_sheet(&sheets, chosen, &reader.hidden)
}

type ContentXml<'a, S> = XmlEvents<ZipFile<'a, S>>;

fn open_content<'a, S: Read + Seek>(
    archive: &'a mut WorkbookArchive<'_, S>,
) -> Result<ContentXml<'a, S>, WorkbookError> {
    archive.read_events("content.xml")?.ok_or_else(|| damaged_error("it has no content"))
}

fn damaged_error(error: impl std::fmt::Display) -> WorkbookError {
    WorkbookError::Damaged(error.to_string())
}

/// The sheets and styles of a workbook.
#[derive(Default)]
struct WorkbookOutline {
    /// The names of all sheets, and whether each sheet is visible.
    sheets: Vec<(String, bool)>,
    /// The styles of cells whose dates have the system's short format.
    date_styles: HashSet<String>,
}

fn read_outline<S: Read + Seek>(archive: &mut WorkbookArchive<'_, S>) -> Result<WorkbookOutline, WorkbookError> {
    /// The memory of a name's entry in a list with spare capacity, without the name's bytes.
    const ENTRY_SIZE: usize = 64;
    let mut budget = MemoryBudget::new(archive.file);
    let mut xml = open_content(archive)?;
    let (mut sheets, mut style, mut hidden) = (Vec::new(), String::new(), HashSet::new());
    let (mut local_formats, mut formats) = (HashSet::new(), Vec::new());
    loop {
        match xml.next_event()? {
            Event::Start(element) | Event::Empty(element) => match element.local_name().as_ref() {
                // Only formats with automatic order show day and month in an order that depends on the system.
                "date-style" if attribute_value(&element, "number:automatic-order").as_deref() == Some("true") => {
                    let name = attribute_value(&element, "style:name").unwrap_or_default();
                    budget.reserve(ENTRY_SIZE + name.len(), "its styles")?;
                    local_formats.insert(name);
                }
                "style" => {
                    style = attribute_value(&element, "style:name").unwrap_or_default();
                    if let Some(format) = attribute_value(&element, "style:data-style-name") {
                        budget.reserve(ENTRY_SIZE + style.len() + format.len(), "its styles")?;
                        formats.push((style.clone(), format));
                    }
                }
                "table-properties" if attribute_value(&element, "table:display").as_deref() == Some("false") => {
                    budget.reserve(ENTRY_SIZE + style.len(), "its styles")?;
                    hidden.insert(style.clone());
                }
                "table" => {
                    let visible =
                        attribute_value(&element, "table:style-name").is_none_or(|style| !hidden.contains(&style));
                    let name = attribute_value(&element, "table:name").unwrap_or_default();
                    // If no sheet is chosen, the names are copied, so memory for the copies is reserved too.
                    budget.reserve(ENTRY_SIZE + 4 * name.len(), "its sheets")?;
                    sheets.push((name, visible));
                }
                _ => {}
            },
            Event::Eof => {
                formats.retain(|(_, format)| local_formats.contains(format));
                let date_styles = formats.into_iter().map(|(style, _)| style).collect();
                return Ok(WorkbookOutline { sheets, date_styles });
            }
            _ => {}
        }
    }
}

/// Reads one sheet.
struct SheetReader<'a, 'f, S: Read + Seek> {
    xml: ContentXml<'a, S>,
    rows: SheetRows<'f>,
    /// The index of the next row, starting at 0.
    row: u32,
    /// The numbers of the hidden rows with cells, starting at 1.
    hidden: Vec<u32>,
    /// The styles of cells whose dates have the system's short format.
    date_styles: HashSet<String>,
    /// The default styles of consecutive columns: the column after the last of them, and whether their dates have the
    /// system's short format.
    columns: Vec<(u32, bool)>,
}

/// A cell as displayed.
#[derive(Default)]
struct ShownCell {
    text: String,
    is_error: bool,
    /// The number of consecutive columns with this cell.
    repeated: u32,
}

impl<S: Read + Seek> SheetReader<'_, '_, S> {
    /// Moves to the start of the sheet with this index.
    fn seek_sheet(&mut self, mut index: usize) -> Result<(), WorkbookError> {
        loop {
            match self.xml.next_event()? {
                Event::Start(element) if element.local_name().as_ref() == "table" => {
                    if index == 0 {
                        return Ok(());
                    }
                    index -= 1;
                }
                Event::Empty(element) if element.local_name().as_ref() == "table" => index = index.saturating_sub(1),
                Event::Eof => return Err(damaged_error("it is incomplete")),
                _ => {}
            }
        }
    }

    fn read_rows(&mut self) -> Result<(), WorkbookError> {
        loop {
            match self.xml.next_event()? {
                Event::Start(element) | Event::Empty(element) if element.local_name().as_ref() == "table-column" => {
                    let element = element.to_owned();
                    self.add_columns(&element);
                }
                Event::Start(element) if element.local_name().as_ref() == "table-row" => {
                    let (repeated, hidden) = repeated_rows(&element);
                    self.read_row(repeated, hidden)?;
                }
                Event::Empty(element) if element.local_name().as_ref() == "table-row" => {
                    self.row = self.row.saturating_add(repeated_rows(&element).0);
                }
                Event::End(element) if element.local_name().as_ref() == "table" => return Ok(()),
                Event::Eof => return Err(damaged_error("it is incomplete")),
                _ => {}
            }
        }
    }

    fn add_columns(&mut self, element: &BytesStart<'_>) {
        if self.columns.len() < MAX_CELLS {
            let last = self.columns.last().map_or(0, |(end, _)| *end);
            let style = attribute_value(element, "table:default-cell-style-name");
            let is_local = style.is_some_and(|style| self.date_styles.contains(&style));
            self.columns.push((last.saturating_add(repeated_columns(element)), is_local));
        }
    }

    /// Whether the date of a cell in this column has the system's short format.
    fn has_local_date(&self, element: &BytesStart<'_>, column: u32) -> bool {
        match attribute_value(element, "table:style-name") {
            Some(style) => self.date_styles.contains(&style),
            None => self.columns.iter().find(|(end, _)| column < *end).is_some_and(|(_, is_local)| *is_local),
        }
    }

    fn read_row(&mut self, repeated: u32, hidden: bool) -> Result<(), WorkbookError> {
        let mut cells = Vec::new();
        let (mut text_size, mut column) = (0, 0_u32);
        loop {
            match self.xml.next_event()? {
                Event::Start(element) if is_cell(&element) => {
                    let (owned, mut cell) = (
                        element.to_owned(),
                        ShownCell { repeated: repeated_columns(&element), ..ShownCell::default() },
                    );
                    self.read_cell_text(&mut cell)?;
                    cell.restore_stored_value(&owned, self.has_local_date(&owned, column));
                    column = column.saturating_add(cell.repeated);
                    text_size += cell.text.len();
                    cells.push(cell);
                }
                Event::Empty(element) if is_cell(&element) => {
                    let repeated = repeated_columns(&element);
                    column = column.saturating_add(repeated);
                    cells.push(ShownCell { repeated, ..ShownCell::default() });
                }
                Event::End(element) if element.local_name().as_ref() == "table-row" => break,
                Event::Eof => return Err(damaged_error("it is incomplete")),
                _ => {}
            }
            if text_size > RECORD_LIMIT {
                return Err(self.rows.long_row_finding(self.row).into());
            }
            if cells.len() > MAX_CELLS {
                return Err(damaged_error("a row has more than 16384 cells"));
            }
        }
        if cells.iter().all(|cell| cell.text.is_empty()) {
            self.row = self.row.saturating_add(repeated);
            return Ok(());
        }
        for _ in 0..repeated {
            if hidden {
                self.hidden.push(self.row.saturating_add(1));
            }
            let mut column = 0_u32;
            for cell in &cells {
                let count = if cell.text.is_empty() { 0 } else { cell.repeated };
                for at in column..column.saturating_add(count) {
                    match cell.is_error {
                        true => self.rows.put_error_cell(self.row, at, &cell.text)?,
                        false => self.rows.put_cell(self.row, at, &cell.text)?,
                    }
                }
                column = column.saturating_add(cell.repeated);
            }
            self.row = self.row.saturating_add(1);
        }
        Ok(())
    }

    /// Reads a cell to its end. Keeps the paragraphs, but not notes and drawings.
    fn read_cell_text(&mut self, cell: &mut ShownCell) -> Result<(), WorkbookError> {
        let (mut paragraphs, mut depth, mut ignored_depth) = (0, 0_u32, 0_u32);
        loop {
            match self.xml.next_event()? {
                Event::Start(element) => match element.local_name().as_ref() {
                    "annotation" | "frame" | "shapes" | "table" => ignored_depth += 1,
                    _ if ignored_depth > 0 => ignored_depth += 1,
                    "p" => {
                        if paragraphs > 0 {
                            cell.text.push('\n');
                        }
                        (paragraphs, depth) = (paragraphs + 1, depth + 1);
                    }
                    "s" => {
                        cell.add_spaces(&element);
                        depth += 1;
                    }
                    _ => depth += 1,
                },
                Event::Empty(element) if ignored_depth == 0 => match element.local_name().as_ref() {
                    "s" => cell.add_spaces(&element),
                    "tab" => cell.text.push('\t'),
                    "line-break" => cell.text.push('\n'),
                    _ => {}
                },
                Event::End(_) if ignored_depth > 0 => ignored_depth -= 1,
                Event::End(_) if depth > 0 => depth -= 1,
                Event::End(_) => return Ok(()),
                Event::Text(text) if ignored_depth == 0 && depth > 0 => cell.text.push_str(&text.xml10_content()),
                Event::GeneralRef(reference) if ignored_depth == 0 && depth > 0 => {
                    let character = reference.resolve_char_ref().ok().flatten();
                    cell.text.extend(character);
                    if character.is_none() {
                        cell.text.push_str(resolve_predefined_entity(&reference.xml10_content()).unwrap_or_default());
                    }
                }
                Event::Eof => return Err(damaged_error("it ends unexpectedly")),
                _ => {}
            }
            if cell.text.len() > RECORD_LIMIT {
                return Err(self.rows.long_row_finding(self.row).into());
            }
        }
    }
}

impl ShownCell {
    fn add_spaces(&mut self, element: &BytesStart<'_>) {
        /// The maximum number of spaces that one element can add.
        const MAX_SPACES: usize = 1024;
        let count = attribute_value(element, "text:c").and_then(|count| count.parse().ok()).unwrap_or(1_usize);
        self.text.extend(std::iter::repeat_n(' ', count.min(MAX_SPACES)));
    }

    /// Replaces a displayed number that is shortened or `###` with the stored value, and a date in the system's short
    /// format with the form that other workbooks have. Flags error cells.
    fn restore_stored_value(&mut self, element: &BytesStart<'_>, has_local_date: bool) {
        let kind = attribute_value(element, "calcext:value-type")
            .or_else(|| attribute_value(element, "office:value-type"))
            .unwrap_or_default();
        self.is_error = kind == "error" || self.text.starts_with("Err:") || self.text.starts_with("#N/A");
        if kind == "float"
            && (is_shortened_number(&self.text) || self.text.starts_with("###"))
            && let Some(number) = attribute_value(element, "office:value").and_then(|number| number.parse::<f64>().ok())
        {
            self.text = super::cell_format::NumberFormat::general().format_number(number);
        }
        if kind == "date"
            && has_local_date
            && let Some(time) = attribute_value(element, "office:date-value").and_then(|time| parse_date_value(&time))
        {
            let format = if self.text.contains(':') { "%d.%m.%Y %-H:%M" } else { "%d.%m.%Y" };
            self.text = time.strftime(format).to_string();
        }
    }
}

/// Parses a date with or without a time.
fn parse_date_value(value: &str) -> Option<DateTime> {
    value.parse().ok().or_else(|| Some(value.parse::<Date>().ok()?.to_datetime(Time::midnight())))
}

fn is_cell(element: &BytesStart<'_>) -> bool {
    matches!(element.local_name().as_ref(), "table-cell" | "covered-table-cell")
}

fn repeated_columns(element: &BytesStart<'_>) -> u32 {
    read_repeat_count(element, "table:number-columns-repeated")
}

/// The number of repetitions of a row, and whether the row is hidden.
fn repeated_rows(element: &BytesStart<'_>) -> (u32, bool) {
    let hidden = matches!(attribute_value(element, "table:visibility").as_deref(), Some("collapse" | "filter"));
    (read_repeat_count(element, "table:number-rows-repeated"), hidden)
}

fn read_repeat_count(element: &BytesStart<'_>, attribute: &str) -> u32 {
    attribute_value(element, attribute).and_then(|count| count.parse().ok()).unwrap_or(1).max(1)
}
