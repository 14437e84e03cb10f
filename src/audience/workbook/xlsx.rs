//! A sheet of an `.xlsx` workbook, read cell by cell.
//!
//! The library reads a copy of the workbook that has only parts that fit into the memory (`copy.rs`).

use std::collections::HashMap;
use std::io::{Read, Seek};
use std::rc::Rc;

use calamine::{DataRef, Reader, Xlsx, XlsxError};

use super::archive::WorkbookArchive;
use super::budget::MemoryBudget;
use super::copy::{SHEET, copy_sheet};
use super::number_format::NumberFormat;
use super::parts::{CellFormats, WorkbookParts, check_shared_texts, find_hidden_rows};
use super::rows::SheetRows;
use super::shown::format_cell;
use super::{WorkbookError, choose_sheet, describe_sheet};
use crate::audience::decoding::{SheetInfo, SpooledFile};
use crate::audience::form_trouble as trouble;

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
    wanted: Option<&str>,
) -> Result<(SpooledFile, SheetInfo), WorkbookError> {
    let file = archive.file;
    let mut budget = MemoryBudget::new(file);
    let parts = WorkbookParts::read(archive, &mut budget)?;
    let sheets: Vec<(String, bool)> = parts.sheets.iter().map(|sheet| (sheet.name.clone(), sheet.visible)).collect();
    let chosen = choose_sheet(file, &sheets, wanted)?;
    let name = sheets[chosen].0.clone();
    let formats = CellFormats::read(archive, &parts.styles_part(), &mut budget)?;
    check_shared_texts(archive, &parts.texts_part(), &mut budget)?;
    let hidden = match archive.read_events(&parts.sheets[chosen].part)? {
        Some(events) => find_hidden_rows(events)?,
        None => return Err(WorkbookError::Damaged(format!("the file for the sheet `{name}` is missing"))),
    };
    let mut book = Xlsx::new(copy_sheet(archive, &parts, chosen, &formats)?)?;
    drop(formats);
    let mut rows = SheetRows::new(file)?;
    read_cells(&mut book, &mut rows)?;
    drop(book);
    let mut warnings = Vec::new();
    if !hidden.is_empty() {
        warnings.push(trouble::hidden_rows(file, &name, &hidden));
    }
    let (errors, of_rows, first) = std::mem::take(&mut rows.errors);
    if errors > 0 {
        warnings.push(trouble::cell_errors(file, &name, errors, &of_rows, &first));
    }
    Ok((rows.finish()?, describe_sheet(&sheets, chosen, warnings)))
}

fn read_cells<S: Read + Seek>(book: &mut Xlsx<S>, rows: &mut SheetRows<'_>) -> Result<(), WorkbookError> {
    let mut cells = book.worksheet_cells_reader(SHEET)?;
    let general = Rc::new(NumberFormat::general());
    // Many styles have the same format.
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
