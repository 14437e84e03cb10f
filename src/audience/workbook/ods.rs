//! A sheet of an `.ods` workbook, which keeps the text that each cell shows beside its value.

use std::collections::HashSet;
use std::io::{Read, Seek};

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use zip::read::ZipFile;

use super::archive::Archive;
use super::budget::Budget;
use super::events::{Events, value};
use super::rows::Rows;
use super::{Refusal, choose, chosen_sheet};
use crate::audience::decoding::{Sheet, Spool};
use crate::audience::form_trouble as trouble;
use crate::audience::intake::RECORD_LIMIT;
use crate::audience::is_shortened;

/// The most cells of a row that are written one by one; a sheet has no more columns.
const MOST_CELLS: usize = 1 << 14;

pub(super) fn read<S: Read + Seek>(
    archive: &mut Archive<'_, S>,
    wanted: Option<&str>,
) -> Result<(Spool, Sheet), Refusal> {
    let file = archive.file;
    let sheets = sheets(archive)?;
    let chosen = choose(file, &sheets, wanted)?;
    let name = sheets[chosen].0.clone();
    let mut reader = SheetReader { xml: xml(archive)?, rows: Rows::new(file)?, row: 0, hidden: Vec::new() };
    reader.find(chosen)?;
    reader.read()?;
    let SheetReader { mut rows, hidden, .. } = reader;
    let mut warnings = Vec::new();
    if !hidden.is_empty() {
        warnings.push(trouble::hidden_rows(file, &name, &hidden));
    }
    let (errors, of_rows, first) = std::mem::take(&mut rows.errors);
    if errors > 0 {
        warnings.push(trouble::cell_errors(file, &name, errors, &of_rows, &first));
    }
    Ok((rows.end()?, chosen_sheet(&sheets, chosen, warnings)))
}

type Xml<'a, S> = Events<ZipFile<'a, S>>;

fn xml<'a, S: Read + Seek>(archive: &'a mut Archive<'_, S>) -> Result<Xml<'a, S>, Refusal> {
    archive.events("content.xml")?.ok_or_else(|| damaged("it has no content"))
}

fn damaged(error: impl std::fmt::Display) -> Refusal {
    Refusal::Damaged(error.to_string())
}

/// The names of all sheets, and whether they are visible.
fn sheets<S: Read + Seek>(archive: &mut Archive<'_, S>) -> Result<Vec<(String, bool)>, Refusal> {
    /// What a name takes besides its bytes: its place in a list that has room for more.
    const EACH: usize = 64;
    let mut budget = Budget::new(archive.file);
    let mut xml = xml(archive)?;
    let (mut sheets, mut style, mut hidden) = (Vec::new(), String::new(), HashSet::new());
    loop {
        match xml.next()? {
            Event::Start(element) | Event::Empty(element) => match element.local_name().as_ref() {
                "style" => style = value(&element, "style:name").unwrap_or_default(),
                "table-properties" if value(&element, "table:display").as_deref() == Some("false") => {
                    budget.take(EACH + style.len(), "its styles")?;
                    hidden.insert(style.clone());
                }
                "table" => {
                    let visible = value(&element, "table:style-name").is_none_or(|style| !hidden.contains(&style));
                    let name = value(&element, "table:name").unwrap_or_default();
                    // Names are copied when none is chosen.
                    budget.take(EACH + 4 * name.len(), "its sheets")?;
                    sheets.push((name, visible));
                }
                _ => {}
            },
            Event::Eof => return Ok(sheets),
            _ => {}
        }
    }
}

/// Reads one sheet.
struct SheetReader<'a, 'f, S: Read + Seek> {
    xml: Xml<'a, S>,
    rows: Rows<'f>,
    /// The row that comes next, from 0.
    row: u32,
    hidden: Vec<u32>,
}

/// A cell as it is shown.
#[derive(Default)]
struct Shown {
    text: String,
    is_error: bool,
    repeated: u32,
}

impl<S: Read + Seek> SheetReader<'_, '_, S> {
    /// Goes to the beginning of the sheet at that place.
    fn find(&mut self, mut place: usize) -> Result<(), Refusal> {
        loop {
            match self.xml.next()? {
                Event::Start(element) if element.local_name().as_ref() == "table" => {
                    if place == 0 {
                        return Ok(());
                    }
                    place -= 1;
                }
                Event::Empty(element) if element.local_name().as_ref() == "table" => place = place.saturating_sub(1),
                Event::Eof => return Err(damaged("it is incomplete")),
                _ => {}
            }
        }
    }

    fn read(&mut self) -> Result<(), Refusal> {
        loop {
            match self.xml.next()? {
                Event::Start(element) if element.local_name().as_ref() == "table-row" => {
                    let (repeated, hidden) = row_of(&element);
                    self.read_row(repeated, hidden)?;
                }
                Event::Empty(element) if element.local_name().as_ref() == "table-row" => {
                    self.row = self.row.saturating_add(row_of(&element).0);
                }
                Event::End(element) if element.local_name().as_ref() == "table" => return Ok(()),
                Event::Eof => return Err(damaged("it is incomplete")),
                _ => {}
            }
        }
    }

    fn read_row(&mut self, repeated: u32, hidden: bool) -> Result<(), Refusal> {
        let mut cells = Vec::new();
        let mut held = 0;
        loop {
            match self.xml.next()? {
                Event::Start(element) if is_cell(&element) => {
                    let (owned, mut shown) =
                        (element.to_owned(), Shown { repeated: columns_of(&element), ..Shown::default() });
                    self.read_text(&mut shown)?;
                    shown.judge(&owned);
                    held += shown.text.len();
                    cells.push(shown);
                }
                Event::Empty(element) if is_cell(&element) => {
                    cells.push(Shown { repeated: columns_of(&element), ..Shown::default() });
                }
                Event::End(element) if element.local_name().as_ref() == "table-row" => break,
                Event::Eof => return Err(damaged("it is incomplete")),
                _ => {}
            }
            if held > RECORD_LIMIT {
                return Err(self.rows.too_long(self.row).into());
            }
            if cells.len() > MOST_CELLS {
                return Err(damaged("a row has more than 16384 cells"));
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
                let many = if cell.text.is_empty() { 0 } else { cell.repeated };
                for at in column..column.saturating_add(many) {
                    match cell.is_error {
                        true => self.rows.put_error(self.row, at, &cell.text)?,
                        false => self.rows.put(self.row, at, &cell.text)?,
                    }
                }
                column = column.saturating_add(cell.repeated);
            }
            self.row = self.row.saturating_add(1);
        }
        Ok(())
    }

    /// Reads a cell to its end: its paragraphs, without notes and drawings.
    fn read_text(&mut self, shown: &mut Shown) -> Result<(), Refusal> {
        let (mut paragraphs, mut within, mut aside) = (0, 0_u32, 0_u32);
        loop {
            match self.xml.next()? {
                Event::Start(element) => match element.local_name().as_ref() {
                    "annotation" | "frame" | "shapes" | "table" => aside += 1,
                    _ if aside > 0 => aside += 1,
                    "p" => {
                        if paragraphs > 0 {
                            shown.text.push('\n');
                        }
                        (paragraphs, within) = (paragraphs + 1, within + 1);
                    }
                    "s" => {
                        shown.space(&element);
                        within += 1;
                    }
                    _ => within += 1,
                },
                Event::Empty(element) if aside == 0 => match element.local_name().as_ref() {
                    "s" => shown.space(&element),
                    "tab" => shown.text.push('\t'),
                    "line-break" => shown.text.push('\n'),
                    _ => {}
                },
                Event::End(_) if aside > 0 => aside -= 1,
                Event::End(_) if within > 0 => within -= 1,
                Event::End(_) => return Ok(()),
                Event::Text(text) if aside == 0 && within > 0 => shown.text.push_str(&text.xml10_content()),
                Event::GeneralRef(reference) if aside == 0 && within > 0 => {
                    let character = reference.resolve_char_ref().ok().flatten();
                    shown.text.extend(character);
                    if character.is_none() {
                        shown.text.push_str(resolve_predefined_entity(&reference.xml10_content()).unwrap_or_default());
                    }
                }
                Event::Eof => return Err(damaged("it ends unexpectedly")),
                _ => {}
            }
            if shown.text.len() > RECORD_LIMIT {
                return Err(self.rows.too_long(self.row).into());
            }
        }
    }
}

impl Shown {
    fn space(&mut self, element: &BytesStart<'_>) {
        let count = value(element, "text:c").and_then(|count| count.parse().ok()).unwrap_or(1_usize);
        self.text.extend(std::iter::repeat_n(' ', count.min(1024)));
    }

    /// Shows all digits of a number that a narrow cell or its format has shortened, and knows an error.
    fn judge(&mut self, element: &BytesStart<'_>) {
        let kind =
            value(element, "calcext:value-type").or_else(|| value(element, "office:value-type")).unwrap_or_default();
        self.is_error = kind == "error" || self.text.starts_with("Err:") || self.text.starts_with("#N/A");
        if kind == "float"
            && (is_shortened(&self.text) || self.text.starts_with("###"))
            && let Some(number) = value(element, "office:value").and_then(|number| number.parse::<f64>().ok())
        {
            self.text = super::number_format::NumberFormat::general().number(number);
        }
    }
}

fn is_cell(element: &BytesStart<'_>) -> bool {
    matches!(element.local_name().as_ref(), "table-cell" | "covered-table-cell")
}

fn columns_of(element: &BytesStart<'_>) -> u32 {
    repeated(element, "table:number-columns-repeated")
}

/// How often a row is repeated, and whether it is hidden.
fn row_of(element: &BytesStart<'_>) -> (u32, bool) {
    let hidden = matches!(value(element, "table:visibility").as_deref(), Some("collapse" | "filter"));
    (repeated(element, "table:number-rows-repeated"), hidden)
}

fn repeated(element: &BytesStart<'_>, attribute: &str) -> u32 {
    value(element, attribute).and_then(|count| count.parse().ok()).unwrap_or(1).max(1)
}
