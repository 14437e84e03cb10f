//! Which parts of an `.xlsx` workbook are its sheets, and how its cells are formatted.

use std::collections::HashMap;
use std::io::{Read, Seek};

use quick_xml::events::{BytesStart, Event};

use super::WorkbookError;
use super::archive::WorkbookArchive;
use super::budget::{MemoryBudget, text_size};
use super::events::{XmlEvents, attribute_value, local_attribute_value};
use crate::audience::form_trouble as trouble;

/// The most bytes of a number format. Excel writes at most 255 characters.
const MAX_FORMAT: usize = 8 << 10;

/// What an `.xlsx` workbook says of itself.
pub(super) struct WorkbookParts {
    /// The folder of its parts, with a slash behind it.
    folder: String,
    pub(super) sheets: Vec<SheetPart>,
    /// Whether its days count from 1904.
    pub(super) is_1904: bool,
}

/// A sheet with cells.
pub(super) struct SheetPart {
    pub(super) name: String,
    pub(super) visible: bool,
    /// Where its cells are.
    pub(super) part: String,
}

impl WorkbookParts {
    pub(super) fn read<S: Read + Seek>(
        archive: &mut WorkbookArchive<'_, S>,
        budget: &mut MemoryBudget<'_>,
    ) -> Result<Self, WorkbookError> {
        let (folder, name) = find_workbook_part(archive)?;
        let relations = read_relations(archive, &format!("{folder}_rels/{name}.rels"), budget)?;
        let (mut sheets, mut is_1904) = (Vec::new(), false);
        each_element(archive, &format!("{folder}{name}"), |element| {
            match element.local_name().as_ref() {
                "sheet" => {
                    let relation = local_attribute_value(element, "id").and_then(|id| relations.get(&id));
                    let relation =
                        relation.ok_or_else(|| WorkbookError::Damaged("a sheet's file is missing".to_owned()))?;
                    if relation.kind.rsplit('/').next() == Some("worksheet") {
                        let (name, part) =
                            (attribute_value(element, "name").unwrap_or_default(), relation.resolve_part(&folder));
                        // Names are copied when a sheet is chosen, and once more when none is.
                        budget.reserve(4 * (name.len() + size_of::<SheetPart>()) + 2 * part.len(), "its sheets")?;
                        let visible = attribute_value(element, "state").is_none_or(|state| state == "visible");
                        sheets.push(SheetPart { name, visible, part });
                    }
                }
                "workbookPr" => {
                    if let Some(says) = attribute_value(element, "date1904") {
                        is_1904 = says == "1" || says == "true";
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(Self { folder, sheets, is_1904 })
    }

    /// The part that has the texts of all cells.
    pub(super) fn texts_part(&self) -> String {
        format!("{}sharedStrings.xml", self.folder)
    }

    /// The part that has the formats of all cells.
    pub(super) fn styles_part(&self) -> String {
        format!("{}styles.xml", self.folder)
    }
}

/// What relates to a part.
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
    each_element(archive, "_rels/.rels", |element| {
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

fn read_relations<S: Read + Seek>(
    archive: &mut WorkbookArchive<'_, S>,
    part: &str,
    budget: &mut MemoryBudget<'_>,
) -> Result<HashMap<String, Relation>, WorkbookError> {
    let mut relations = HashMap::new();
    each_element(archive, part, |element| {
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

/// Looks at all elements of a part.
fn each_element<S: Read + Seek>(
    archive: &mut WorkbookArchive<'_, S>,
    part: &str,
    mut look: impl FnMut(&BytesStart<'_>) -> Result<(), WorkbookError>,
) -> Result<(), WorkbookError> {
    let Some(mut events) = archive.read_events(part)? else { return Ok(()) };
    loop {
        match events.next_event()? {
            Event::Start(element) | Event::Empty(element) => look(&element)?,
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// The number formats of the cells of a workbook.
#[derive(Default)]
pub(super) struct CellFormats {
    /// The format that each style has.
    pub(super) of_styles: Vec<Option<u32>>,
    /// The formats that the workbook describes itself.
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
                        ("numFmts", "numFmt") => formats.add_code(&element, budget, file)?,
                        ("cellXfs", "xf") => formats.add_style(&element, budget)?,
                        _ => {}
                    }
                }
                Event::Eof => return Ok(formats),
                _ => {}
            }
        }
    }

    fn add_code(
        &mut self,
        element: &BytesStart<'_>,
        budget: &mut MemoryBudget<'_>,
        file: &std::path::Path,
    ) -> Result<(), WorkbookError> {
        /// What becomes of a character of a format when it is read, in bytes.
        const EACH: usize = 128;
        let id = attribute_value(element, "numFmtId").and_then(|id| id.parse().ok());
        let Some((id, code)) = id.zip(attribute_value(element, "formatCode")) else { return Ok(()) };
        if code.len() > MAX_FORMAT {
            return Err(trouble::large_workbook(file, "one of its number formats is larger than 8 KiB").into());
        }
        budget.reserve(EACH * (1 + code.len()), "its number formats")?;
        self.codes.insert(id, code);
        Ok(())
    }

    fn add_style(&mut self, element: &BytesStart<'_>, budget: &mut MemoryBudget<'_>) -> Result<(), WorkbookError> {
        /// What the library keeps of a style besides the code of its format, in bytes.
        const EACH: usize = 1 << 10;
        let id = attribute_value(element, "numFmtId").and_then(|id| id.parse().ok());
        let code = id.and_then(|id| self.codes.get(&id)).map_or(0, String::len);
        budget.reserve(EACH + code, "its styles")?;
        self.of_styles.push(id);
        Ok(())
    }
}

/// Refuses the shared texts of a workbook if they do not fit into the memory; each is kept whole.
pub(super) fn check_shared_texts<S: Read + Seek>(
    archive: &mut WorkbookArchive<'_, S>,
    part: &str,
    budget: &mut MemoryBudget<'_>,
) -> Result<(), WorkbookError> {
    const THINGS: &str = "its shared strings";
    let Some(events) = archive.read_events(part)? else { return Ok(()) };
    let mut events = events.with_whole_elements("si");
    let (mut said, mut count, mut pieces, mut length) = (0_usize, 0_usize, 1, 0);
    loop {
        match events.next_event()? {
            Event::Start(element) | Event::Empty(element) => match element.local_name().as_ref() {
                "si" => {
                    budget.reserve(text_size(length), THINGS)?;
                    (count, pieces, length) = (count + 1, 1, 0);
                }
                // A text of several pieces grows, and then has room for more.
                "r" => pieces = 2,
                "sst" => {
                    let told = attribute_value(&element, "uniqueCount");
                    let told = told.map(|told| told.trim_start_matches(['+', '0']).parse().unwrap_or(usize::MAX));
                    said = said.max(told.unwrap_or(0));
                }
                _ => {}
            },
            Event::Text(text) => length += pieces * text.len(),
            Event::CData(text) => length += pieces * text.len(),
            Event::Eof => break,
            _ => {}
        }
    }
    budget.reserve(text_size(length), THINGS)?;
    // The library makes room for as many as the part says.
    match said.saturating_sub(count).checked_mul(size_of::<String>()) {
        Some(more) => budget.reserve(more, THINGS),
        None => Err(WorkbookError::Damaged("it has fewer shared strings than it declares".to_owned())),
    }
}

/// The hidden rows of a sheet, from 1 and in their order. Refuses a sheet of which a cell does not fit into the memory.
pub(super) fn find_hidden_rows<R: Read>(events: XmlEvents<R>) -> Result<Vec<u32>, WorkbookError> {
    /// The most rows of a sheet.
    const MOST_ROWS: usize = 1 << 20;
    let mut events = events.with_whole_elements("c");
    let (mut hidden, mut row) = (Vec::new(), 0_u32);
    loop {
        let is_within = events.is_within();
        match events.next_event()? {
            Event::Start(element) | Event::Empty(element) if element.local_name().as_ref() == "row" && !is_within => {
                row = attribute_value(&element, "r")
                    .and_then(|number| number.parse().ok())
                    .unwrap_or(row.saturating_add(1));
                if matches!(attribute_value(&element, "hidden").as_deref(), Some("1" | "true")) {
                    hidden.push(row);
                }
                if hidden.len() > MOST_ROWS {
                    return Err(WorkbookError::Damaged("a sheet has more rows than a spreadsheet allows".to_owned()));
                }
            }
            // What comes behind the cells is not read.
            Event::End(element) if element.local_name().as_ref() == "sheetData" && !is_within => return Ok(hidden),
            Event::Empty(element) if element.local_name().as_ref() == "sheetData" && !is_within => return Ok(hidden),
            Event::Eof => return Ok(hidden),
            _ => {}
        }
    }
}
