//! A sheet of an `.xlsx` workbook, read cell by cell.

use std::io::{Read, Seek};
use std::path::Path;

use calamine::{DataRef, Reader, SheetType, SheetVisible, Xlsx, XlsxError};

use super::hidden::hidden_rows;
use super::number_format::NumberFormat;
use super::rows::Rows;
use super::shown::shown;
use super::{Refusal, bound_count, bound_part, choose};
use crate::audience::decoding::{Sheet, Spool};
use crate::audience::form_trouble as trouble;

impl From<XlsxError> for Refusal {
    fn from(error: XlsxError) -> Self {
        match error {
            XlsxError::Io(error) => error.into(),
            error => Self::Damaged(error.to_string()),
        }
    }
}

pub(super) fn read<S: Read + Seek>(
    input: &mut S,
    file: &Path,
    wanted: Option<&str>,
) -> Result<(Spool, Sheet), Refusal> {
    for (part, what) in [
        ("xl/sharedStrings.xml", "its texts take more than 320 MiB"),
        ("xl/styles.xml", "its styles take more than 320 MiB"),
        ("xl/workbook.xml", "its list of sheets takes more than 320 MiB"),
        ("[Content_Types].xml", "its list of parts takes more than 320 MiB"),
    ] {
        bound_part(input, file, part, what)?;
    }
    bound_count(input, "xl/sharedStrings.xml")?;
    let mut book = Xlsx::new(&mut *input)?;
    let sheets = book.sheets_metadata().iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
    let sheets: Vec<(String, bool)> =
        sheets.map(|sheet| (sheet.name.clone(), sheet.visible == SheetVisible::Visible)).collect();
    let chosen = choose(file, &sheets, wanted)?;
    let name = sheets[chosen].0.clone();
    let mut cells = book.worksheet_cells_reader(&name)?;
    let formats: Vec<NumberFormat> = cells
        .styles()
        .iter()
        .map(|style| {
            style
                .number_format
                .as_ref()
                .map_or_else(NumberFormat::general, |format| NumberFormat::parse(&format.format_code, format.format_id))
        })
        .collect();
    let general = NumberFormat::general();
    let mut rows = Rows::new(file)?;
    while let Some((cell, style)) = cells.next_cell_with_style_id()? {
        let (row, column) = cell.get_position();
        let format = formats.get(style).unwrap_or(&general);
        match cell.get_value() {
            DataRef::Error(error) => rows.put_error(row, column, &error.to_string())?,
            value => rows.put(row, column, &shown(value, format))?,
        }
    }
    drop(cells);
    drop(book);
    let mut warnings = Vec::new();
    let hidden = hidden_rows(input, &name)?;
    if !hidden.is_empty() {
        warnings.push(trouble::hidden_rows(file, &name, &hidden));
    }
    let (errors, of_rows, first) = std::mem::take(&mut rows.errors);
    if errors > 0 {
        warnings.push(trouble::cell_errors(file, &name, errors, &of_rows, &first));
    }
    Ok((rows.end()?, Sheet { name, others: sheets.len() - 1, warnings }))
}
