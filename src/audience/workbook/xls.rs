//! A sheet of an `.xls` workbook, which is read whole.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use calamine::{Data, DataRef, Reader, SheetType, SheetVisible, Xls, XlsError};

use super::compound::check_compound;
use super::number_format::NumberFormat;
use super::rows::SheetRows;
use super::shown::format_cell;
use super::{WorkbookError, choose_sheet, describe_sheet};
use crate::audience::decoding::{SheetInfo, SpooledFile};
use crate::audience::form_trouble as trouble;

/// The most bytes of a file that is read whole.
const MAX_BYTES: u64 = 64 << 20;
/// The most bytes of memory that the library may take.
const MAX_MEMORY: u64 = 224 << 20;

pub(super) fn read_xls<S: Read + Seek>(
    input: &mut S,
    file: &Path,
    wanted: Option<&str>,
) -> Result<(SpooledFile, SheetInfo), WorkbookError> {
    if input.seek(SeekFrom::End(0))? > MAX_BYTES {
        return Err(trouble::large_workbook(file, "the .xls file is larger than 64 MiB").into());
    }
    input.rewind()?;
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let locked = check_compound(&bytes, MAX_MEMORY)
        .map_err(|flaw| flaw.into_error(|| trouble::large_workbook(file, "its sheets need too much memory").into()))?;
    drop(bytes);
    input.rewind()?;
    match Xls::new(&mut *input) {
        Ok(book) => read_sheet(book, file, wanted),
        // What Excel locks looks like an .xls from outside.
        Err(XlsError::Password) => Err(trouble::locked_workbook(file).into()),
        Err(_) if locked => Err(trouble::locked_workbook(file).into()),
        Err(error) => Err(WorkbookError::Damaged(error.to_string())),
    }
}

fn read_sheet<S: Read + Seek>(
    mut book: Xls<S>,
    file: &Path,
    wanted: Option<&str>,
) -> Result<(SpooledFile, SheetInfo), WorkbookError> {
    let sheets = book.sheets_metadata().iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
    let sheets: Vec<(String, bool)> =
        sheets.map(|sheet| (sheet.name.clone(), sheet.visible == SheetVisible::Visible)).collect();
    let chosen = choose_sheet(file, &sheets, wanted)?;
    let name = sheets[chosen].0.clone();
    let range = book.worksheet_range(&name).map_err(|error| WorkbookError::Damaged(error.to_string()))?;
    let (top, left) = range.start().unwrap_or_default();
    let format = NumberFormat::general();
    let mut rows = SheetRows::new(file)?;
    for (row, column, value) in range.used_cells() {
        let row = u32::try_from(row).unwrap_or(u32::MAX).saturating_add(top);
        let column = u32::try_from(column).unwrap_or(u32::MAX).saturating_add(left);
        match value {
            Data::Error(error) => rows.put_error_cell(row, column, &error.to_string())?,
            value => rows.put_cell(row, column, &format_cell(&borrow_data(value), &format))?,
        }
    }
    let mut warnings = Vec::new();
    let (errors, of_rows, first) = std::mem::take(&mut rows.errors);
    if errors > 0 {
        warnings.push(trouble::cell_errors(file, &name, errors, &of_rows, &first));
    }
    Ok((rows.finish()?, describe_sheet(&sheets, chosen, warnings)))
}

fn borrow_data(value: &Data) -> DataRef<'_> {
    match value {
        Data::Int(number) => DataRef::Int(*number),
        Data::Float(number) => DataRef::Float(*number),
        Data::String(text) => DataRef::SharedString(text),
        Data::Bool(yes) => DataRef::Bool(*yes),
        Data::DateTime(time) => DataRef::DateTime(*time),
        Data::DateTimeIso(text) => DataRef::DateTimeIso(text.clone()),
        Data::DurationIso(text) => DataRef::DurationIso(text.clone()),
        Data::Error(error) => DataRef::Error(error.clone()),
        Data::Empty => DataRef::Empty,
    }
}
