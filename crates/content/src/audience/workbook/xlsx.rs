//! Sheets of `.xlsx` workbooks, read cell by cell.
//!
//! The library finds parts through the workbook's relationships and reads many that are not needed. It therefore gets a
//! copy that contains only checked parts that fit into memory. The cells of one sheet and the shared strings are
//! unchanged; the parts that describe them are written from scratch.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::rc::Rc;

use calamine::{DataRef, Reader, Xlsx, XlsxError};
use quick_xml::escape::escape;
use quick_xml::events::{BytesStart, Event};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::archive::{MemoryBudget, WorkbookArchive, XmlEvents, attribute_value, local_attribute_value, text_size};
use super::cell_format::{NumberFormat, format_cell};
use super::{SheetRows, WorkbookError, choose_sheet};
use crate::audience::decoding::{SheetInfo, SpooledFile};
use crate::audience::list_findings;

impl From<XlsxError> for WorkbookError {
    fn from(error: XlsxError) -> Self {
        match error {
            XlsxError::Io(error) => error.into(),
            error => Self::Damaged(error.to_string()),
        }
    }
}

pub(super) fn read_xlsx<S: Read + Seek>(
    archive: &mut WorkbookArchive<'_, S>,
    sheet: Option<&str>,
) -> Result<(SpooledFile, SheetInfo), WorkbookError> {
    let file = archive.file;
    let mut budget = MemoryBudget::new(file);
    let parts = WorkbookParts::read(archive, &mut budget)?;
    let sheets: Vec<(String, bool)> = parts.sheets.iter().map(|sheet| (sheet.name.clone(), sheet.visible)).collect();
    let chosen = choose_sheet(file, &sheets, sheet)?;
    let name = sheets[chosen].0.clone();
    let formats = CellFormats::read(archive, &parts.styles_part(), &mut budget)?;
    check_shared_strings(archive, &parts.shared_strings_part(), &mut budget)?;
    let hidden = match archive.read_events(&parts.sheets[chosen].part)? {
        Some(events) => find_hidden_rows(events, file)?,
        None => return Err(WorkbookError::Damaged(format!("the file for the sheet `{name}` is missing"))),
    };
    let mut book = Xlsx::new(copy_sheet(archive, &parts, chosen, &formats)?)?;
    drop(formats);
    let mut rows = SheetRows::new(file)?;
    read_cells(&mut book, &mut rows)?;
    drop(book);
    rows.finish_sheet(&sheets, chosen, &hidden)
}

fn read_cells<S: Read + Seek>(book: &mut Xlsx<S>, rows: &mut SheetRows<'_>) -> Result<(), WorkbookError> {
    let mut cells = book.worksheet_cells_reader(SHEET)?;
    let general = Rc::new(NumberFormat::general());
    // Many styles share a format, so each format is parsed only once.
    let mut parsed: HashMap<(&str, Option<u32>), Rc<NumberFormat>> = HashMap::new();
    let mut formats = Vec::with_capacity(cells.styles().len());
    for style in cells.styles() {
        formats.push(match &style.number_format {
            None => Rc::clone(&general),
            Some(format) => {
                let (code, id) = (format.format_code.as_str(), format.format_id);
                Rc::clone(parsed.entry((code, id)).or_insert_with(|| Rc::new(NumberFormat::parse(code, id))))
            }
        });
    }
    drop(parsed);
    while let Some((cell, style)) = cells.next_cell_with_style_id()? {
        let (row, column) = cell.get_position();
        let format = formats.get(style).unwrap_or(&general);
        match cell.get_value() {
            DataRef::Error(error) => rows.put_error_cell(row, column, &error.to_string())?,
            value => rows.put_cell(row, column, &format_cell(value, format))?,
        }
    }
    Ok(())
}

/// The maximum length of a number format in bytes. Excel writes at most 255 characters.
const MAX_FORMAT: usize = 8 << 10;

/// The structure of an `.xlsx` workbook.
pub(super) struct WorkbookParts {
    /// The folder of its parts, with a trailing slash.
    folder: String,
    pub(super) sheets: Vec<SheetPart>,
    /// Whether its days count from 1904.
    pub(super) is_1904: bool,
}

/// A sheet with cells.
pub(super) struct SheetPart {
    pub(super) name: String,
    pub(super) visible: bool,
    /// The part with its cells.
    pub(super) part: String,
}

impl WorkbookParts {
    pub(super) fn read<S: Read + Seek>(
        archive: &mut WorkbookArchive<'_, S>,
        budget: &mut MemoryBudget<'_>,
    ) -> Result<Self, WorkbookError> {
        let (folder, name) = find_workbook_part(archive)?;
        let relations = read_relationships(archive, &format!("{folder}_rels/{name}.rels"), budget)?;
        let (mut sheets, mut is_1904) = (Vec::new(), false);
        visit_elements(archive, &format!("{folder}{name}"), |element| {
            match element.local_name().as_ref() {
                "sheet" => {
                    let relation = local_attribute_value(element, "id").and_then(|id| relations.get(&id));
                    let relation =
                        relation.ok_or_else(|| WorkbookError::Damaged("a sheet's file is missing".to_owned()))?;
                    if relation.kind.rsplit('/').next() == Some("worksheet") {
                        let (name, part) =
                            (attribute_value(element, "name").unwrap_or_default(), relation.resolve_part(&folder));
                        // Choosing a sheet copies the names, and reporting that no sheet matches copies them again, so
                        // memory for both copies is reserved.
                        budget.reserve(4 * (name.len() + size_of::<SheetPart>()) + 2 * part.len(), "its sheets")?;
                        let visible = attribute_value(element, "state").is_none_or(|state| state == "visible");
                        sheets.push(SheetPart { name, visible, part });
                    }
                }
                "workbookPr" => {
                    if let Some(value) = attribute_value(element, "date1904") {
                        is_1904 = value == "1" || value == "true";
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(Self { folder, sheets, is_1904 })
    }

    /// The name of the part with the shared strings of all cells.
    pub(super) fn shared_strings_part(&self) -> String {
        format!("{}sharedStrings.xml", self.folder)
    }

    /// The name of the part with the formats of all cells.
    pub(super) fn styles_part(&self) -> String {
        format!("{}styles.xml", self.folder)
    }
}

/// A relation of a part to another one.
struct Relation {
    kind: String,
    target: String,
}

impl Relation {
    fn resolve_part(&self, folder: &str) -> String {
        self.target.strip_prefix('/').map_or_else(|| format!("{folder}{}", self.target), str::to_owned)
    }
}

/// The folder and the name of the part with the list of sheets.
fn find_workbook_part<S: Read + Seek>(archive: &mut WorkbookArchive<'_, S>) -> Result<(String, String), WorkbookError> {
    let mut workbook = None;
    visit_elements(archive, "_rels/.rels", |element| {
        let is_document = |kind: String| kind.ends_with("/relationships/officeDocument");
        if element.local_name().as_ref() == "Relationship" && attribute_value(element, "Type").is_some_and(is_document)
        {
            workbook = attribute_value(element, "Target").or(workbook.take());
        }
        Ok(())
    })?;
    let workbook = workbook.ok_or_else(|| WorkbookError::Damaged("it has no list of sheets".to_owned()))?;
    let (folder, name) = workbook.rsplit_once('/').map_or(("", workbook.as_str()), |(folder, name)| (folder, name));
    let folder = folder.strip_prefix('/').unwrap_or(folder);
    let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    Ok((folder, if name.is_empty() { "workbook.xml".to_owned() } else { name.to_owned() }))
}

fn read_relationships<S: Read + Seek>(
    archive: &mut WorkbookArchive<'_, S>,
    part: &str,
    budget: &mut MemoryBudget<'_>,
) -> Result<HashMap<String, Relation>, WorkbookError> {
    let mut relations = HashMap::new();
    visit_elements(archive, part, |element| {
        if element.local_name().as_ref() == "Relationship"
            && let Some(id) = attribute_value(element, "Id")
        {
            let relation = Relation {
                kind: attribute_value(element, "Type").unwrap_or_default(),
                target: attribute_value(element, "Target").unwrap_or_default(),
            };
            let entry = 2 * size_of::<(String, Relation)>();
            budget.reserve(id.len() + relation.kind.len() + relation.target.len() + entry, "its part lists")?;
            relations.insert(id, relation);
        }
        Ok(())
    })?;
    Ok(relations)
}

/// Calls `visit` for each element of a part.
fn visit_elements<S: Read + Seek>(
    archive: &mut WorkbookArchive<'_, S>,
    part: &str,
    mut visit: impl FnMut(&BytesStart<'_>) -> Result<(), WorkbookError>,
) -> Result<(), WorkbookError> {
    let Some(mut events) = archive.read_events(part)? else { return Ok(()) };
    loop {
        match events.next_event()? {
            Event::Start(element) | Event::Empty(element) => visit(&element)?,
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// The number formats of the cells of a workbook.
#[derive(Default)]
pub(super) struct CellFormats {
    /// The format number of each style, if it has one.
    pub(super) style_formats: Vec<Option<u32>>,
    /// The codes of the formats that the workbook defines, by number.
    pub(super) codes: HashMap<u32, String>,
}

impl CellFormats {
    pub(super) fn read<S: Read + Seek>(
        archive: &mut WorkbookArchive<'_, S>,
        part: &str,
        budget: &mut MemoryBudget<'_>,
    ) -> Result<Self, WorkbookError> {
        let file = archive.file;
        let (mut formats, mut section) = (Self::default(), String::new());
        let Some(mut events) = archive.read_events(part)? else { return Ok(formats) };
        loop {
            match events.next_event()? {
                Event::Start(element) if matches!(element.local_name().as_ref(), "numFmts" | "cellXfs") => {
                    element.local_name().as_ref().clone_into(&mut section);
                }
                Event::End(element) if element.local_name().as_ref() == section => section.clear(),
                Event::Start(element) | Event::Empty(element) => {
                    match (section.as_str(), element.local_name().as_ref()) {
                        ("numFmts", "numFmt") => formats.add_format_code(&element, budget, file)?,
                        ("cellXfs", "xf") => formats.add_style(&element, budget)?,
                        _ => {}
                    }
                }
                Event::Eof => return Ok(formats),
                _ => {}
            }
        }
    }

    fn add_format_code(
        &mut self,
        element: &BytesStart<'_>,
        budget: &mut MemoryBudget<'_>,
        file: &std::path::Path,
    ) -> Result<(), WorkbookError> {
        /// The memory of a character of a parsed format, in bytes.
        const CHARACTER_MEMORY: usize = 128;
        let id = attribute_value(element, "numFmtId").and_then(|id| id.parse().ok());
        let Some((id, code)) = id.zip(attribute_value(element, "formatCode")) else { return Ok(()) };
        if code.len() > MAX_FORMAT {
            return Err(list_findings::large_workbook(file, "one of its number formats is larger than 8 KiB").into());
        }
        budget.reserve(CHARACTER_MEMORY * (1 + code.len()), "its number formats")?;
        self.codes.insert(id, code);
        Ok(())
    }

    fn add_style(&mut self, element: &BytesStart<'_>, budget: &mut MemoryBudget<'_>) -> Result<(), WorkbookError> {
        /// The library's memory for a style without its format code, in bytes.
        const STYLE_MEMORY: usize = 1 << 10;
        let id = attribute_value(element, "numFmtId").and_then(|id| id.parse().ok());
        let code = id.and_then(|id| self.codes.get(&id)).map_or(0, String::len);
        budget.reserve(STYLE_MEMORY + code, "its styles")?;
        self.style_formats.push(id);
        Ok(())
    }
}

/// Rejects shared strings that do not fit into memory. Each string is stored as a whole.
pub(super) fn check_shared_strings<S: Read + Seek>(
    archive: &mut WorkbookArchive<'_, S>,
    part: &str,
    budget: &mut MemoryBudget<'_>,
) -> Result<(), WorkbookError> {
    const SUBJECT: &str = "its shared strings";
    let Some(events) = archive.read_events(part)? else { return Ok(()) };
    let mut events = events.with_whole_elements("si");
    let (mut declared, mut count, mut growth, mut length) = (0_usize, 0_usize, 1, 0);
    loop {
        match events.next_event()? {
            Event::Start(element) | Event::Empty(element) => match element.local_name().as_ref() {
                "si" => {
                    budget.reserve(text_size(length), SUBJECT)?;
                    (count, growth, length) = (count + 1, 1, 0);
                }
                // A string that is built from several pieces grows, so it has spare capacity.
                "r" => growth = 2,
                "sst" => {
                    let unique = attribute_value(&element, "uniqueCount");
                    let unique = unique.map(|text| text.trim_start_matches(['+', '0']).parse().unwrap_or(usize::MAX));
                    declared = declared.max(unique.unwrap_or(0));
                }
                _ => {}
            },
            Event::Text(text) => length += growth * text.len(),
            Event::CData(text) => length += growth * text.len(),
            Event::Eof => break,
            _ => {}
        }
    }
    budget.reserve(text_size(length), SUBJECT)?;
    // The library allocates as many entries as the part declares.
    match declared.saturating_sub(count).checked_mul(size_of::<String>()) {
        Some(bytes) => budget.reserve(bytes, SUBJECT),
        None => Err(WorkbookError::Damaged("it has fewer shared strings than it declares".to_owned())),
    }
}

/// The hidden rows of a sheet, counted from 1, in the order of the sheet. Rejects a sheet with a cell that does not fit
/// into memory, or with a formula whose value was not saved, because such a cell would count as empty.
pub(super) fn find_hidden_rows<R: Read>(events: XmlEvents<R>, file: &Path) -> Result<Vec<u32>, WorkbookError> {
    /// The maximum number of rows in a sheet.
    const MAX_ROWS: usize = 1 << 20;
    let mut events = events.with_whole_elements("c");
    let (mut hidden, mut row) = (Vec::new(), 0_u32);
    let (mut cell, mut has_formula, mut has_value) = (String::new(), false, false);
    loop {
        let is_within = events.is_within_whole_element();
        match events.next_event()? {
            Event::Start(element) if element.local_name().as_ref() == "c" && !is_within => {
                cell = attribute_value(&element, "r").unwrap_or_default();
                (has_formula, has_value) = (false, false);
            }
            Event::Start(element) | Event::Empty(element) if is_within => match element.local_name().as_ref() {
                "f" => has_formula = true,
                "v" | "is" => has_value = true,
                _ => {}
            },
            Event::End(element) if element.local_name().as_ref() == "c" && has_formula && !has_value => {
                return Err(list_findings::unsaved_formula(file, &cell).into());
            }
            Event::Start(element) | Event::Empty(element) if element.local_name().as_ref() == "row" && !is_within => {
                row = attribute_value(&element, "r")
                    .and_then(|number| number.parse().ok())
                    .unwrap_or(row.saturating_add(1));
                if matches!(attribute_value(&element, "hidden").as_deref(), Some("1" | "true")) {
                    hidden.push(row);
                }
                if hidden.len() > MAX_ROWS {
                    return Err(WorkbookError::Damaged("a sheet has more rows than a spreadsheet allows".to_owned()));
                }
            }
            // The part is not read beyond the cells.
            Event::End(element) if element.local_name().as_ref() == "sheetData" && !is_within => return Ok(hidden),
            Event::Empty(element) if element.local_name().as_ref() == "sheetData" && !is_within => return Ok(hidden),
            Event::Eof => return Ok(hidden),
            _ => {}
        }
    }
}

const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// Writes a temporary workbook with a single sheet of this workbook. Its name in the copy is [`SHEET`].
pub(super) fn copy_sheet<S: Read + Seek>(
    archive: &mut WorkbookArchive<'_, S>,
    parts: &WorkbookParts,
    sheet_index: usize,
    formats: &CellFormats,
) -> Result<File, WorkbookError> {
    let mut writer = ZipWriter::new(BufWriter::new(tempfile::tempfile()?));
    for (part, text) in [
        ("_rels/.rels", relationships_xml("officeDocument", "xl/workbook.xml")),
        ("xl/_rels/workbook.xml.rels", relationships_xml("worksheet", "sheet.xml")),
        ("xl/workbook.xml", workbook_xml(parts.is_1904)),
        ("xl/styles.xml", styles_xml(formats)),
    ] {
        writer.start_file(part, SimpleFileOptions::default().compression_method(CompressionMethod::Stored))?;
        writer.write_all(text.as_bytes())?;
    }
    for (from, to) in
        [(&parts.sheets[sheet_index].part, "xl/sheet.xml"), (&parts.shared_strings_part(), "xl/sharedStrings.xml")]
    {
        if let Some(part) = archive.open_part(from)? {
            writer.raw_copy_file_rename(part, to)?;
        }
    }
    let mut file = writer.finish()?.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// The name of the sheet in the copy.
pub(super) const SHEET: &str = "sheet";

fn relationships_xml(kind: &str, target: &str) -> String {
    format!("<Relationships><Relationship Id=\"r\" Type=\"{RELATIONS}/{kind}\" Target=\"{target}\"/></Relationships>")
}

fn workbook_xml(is_1904: bool) -> String {
    let properties = if is_1904 { "<workbookPr date1904=\"1\"/>" } else { "" };
    format!("<workbook>{properties}<sheets><sheet name=\"{SHEET}\" id=\"r\"/></sheets></workbook>")
}

fn styles_xml(formats: &CellFormats) -> String {
    let mut text = "<styleSheet><numFmts>".to_owned();
    for (id, code) in &formats.codes {
        let _ = write!(text, "<numFmt numFmtId=\"{id}\" formatCode=\"{}\"/>", escape(code.as_str()));
    }
    text += "</numFmts><cellXfs>";
    for id in &formats.style_formats {
        let _ = match id {
            Some(id) => write!(text, "<xf numFmtId=\"{id}\"/>"),
            None => write!(text, "<xf/>"),
        };
    }
    text += "</cellXfs></styleSheet>";
    text
}
