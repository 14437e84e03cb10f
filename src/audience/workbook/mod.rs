//! A sheet of a workbook becomes CSV under the sheet's row numbers, its cells as they are shown.
//!
//! [`read`] writes it into a [`Spool`]. A workbook is what somebody sends; whatever is in it, it ends here with a sheet or
//! with a finding: what it would take in memory is bounded before it is opened, and a library that panics is caught.

mod archive;
mod biff;
mod budget;
mod compound;
mod copy;
mod date_format;
mod events;
mod number_format;
mod ods;
mod parts;
mod rows;
mod shown;
mod xls;
mod xlsx;

use std::io::{Read, Seek};
use std::path::Path;

use zip::result::ZipError;

use archive::WorkbookArchive;

use super::decoding::{SheetInfo, SpooledFile, find_finding};
use super::form_trouble as trouble;
use crate::finding::Finding;
use crate::quietly::catch_panic;

/// Whether a file is a workbook, or at least packed like one.
pub(super) fn is_workbook(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") || head.starts_with(b"\xd0\xcf\x11\xe0")
}

/// Why a workbook gives no list.
enum WorkbookError {
    Finding(Box<Finding>),
    /// It is damaged, in the words of the library, or in none.
    Damaged(String),
}

impl From<Box<Finding>> for WorkbookError {
    fn from(finding: Box<Finding>) -> Self {
        Self::Finding(finding)
    }
}

impl From<Finding> for WorkbookError {
    fn from(finding: Finding) -> Self {
        Self::Finding(finding.into())
    }
}

impl WorkbookError {
    /// The finding that an error carries, or its words.
    fn from_io(error: &std::io::Error) -> Self {
        find_finding(error)
            .map_or_else(|| Self::Damaged(error.to_string()), |finding| Self::Finding(finding.clone().into()))
    }
}

impl From<std::io::Error> for WorkbookError {
    fn from(error: std::io::Error) -> Self {
        Self::from_io(&error)
    }
}

impl From<ZipError> for WorkbookError {
    fn from(error: ZipError) -> Self {
        match error {
            ZipError::Io(error) => error.into(),
            error => Self::Damaged(error.to_string()),
        }
    }
}

/// Reads a sheet: the one of that name, else the first that is visible.
///
/// # Errors
/// When it is no workbook, is damaged, locked or too large, or has no such sheet.
pub(super) fn read_workbook<S: Read + Seek>(
    mut input: S,
    file: &Path,
    wanted: Option<&str>,
) -> Result<(SpooledFile, SheetInfo), Box<Finding>> {
    let read = catch_panic(|| convert_workbook(&mut input, file, wanted));
    read.unwrap_or(Err(WorkbookError::Damaged(String::new()))).map_err(|refusal| match refusal {
        WorkbookError::Finding(finding) => finding,
        WorkbookError::Damaged(why) => trouble::damaged_workbook(file, &why).into(),
    })
}

fn convert_workbook<S: Read + Seek>(
    input: &mut S,
    file: &Path,
    wanted: Option<&str>,
) -> Result<(SpooledFile, SheetInfo), WorkbookError> {
    let mut head = [0];
    input.read_exact(&mut head)?;
    input.rewind()?;
    if head == [0xd0] {
        return xls::read_xls(input, file, wanted);
    }
    let mut archive = WorkbookArchive::open(&mut *input, file)?;
    if archive.has_part("xl/workbook.bin") {
        return Err(trouble::foreign_format(file, "a binary workbook (.xlsb)", None).into());
    }
    if archive.names().any(|name| name.starts_with("index/") && name.ends_with(".iwa")) {
        return Err(trouble::foreign_format(file, "a Numbers document", None).into());
    }
    if archive.names().any(|name| name.starts_with("word/") || name.starts_with("ppt/")) {
        return Err(trouble::foreign_format(file, "a Word or PowerPoint document", None).into());
    }
    if archive.has_part("content.xml") {
        return ods::read_ods(&mut archive, wanted);
    }
    if archive.has_part("[Content_Types].xml") || archive.names().any(|name| name.starts_with("xl/")) {
        return xlsx::read_xlsx(&mut archive, wanted);
    }
    Err(trouble::foreign_format(file, "an archive (ZIP)", Some("unpack the file, and use the list inside")).into())
}

/// The chosen sheet, with the notes about it.
fn describe_sheet(sheets: &[(String, bool)], chosen: usize, warnings: Vec<Finding>) -> SheetInfo {
    let others = sheets.iter().enumerate().filter(|(index, (_, visible))| *index != chosen && *visible);
    let visible_others = others.map(|(_, (name, _))| name.clone()).collect();
    SheetInfo { name: sheets[chosen].0.clone(), others: sheets.len() - 1, visible_others, warnings }
}

/// The sheet that is meant among those with these names, of which the first ones that are visible have `true`.
fn choose_sheet(file: &Path, sheets: &[(String, bool)], wanted: Option<&str>) -> Result<usize, WorkbookError> {
    let names = || sheets.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let Some(wanted) = wanted else {
        return sheets
            .iter()
            .position(|(_, visible)| *visible)
            .ok_or_else(|| trouble::no_visible_sheet(file, &names()).into());
    };
    let forgiving = |name: &str| name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let exact = sheets.iter().position(|(name, _)| name == wanted);
    exact
        .or_else(|| sheets.iter().position(|(name, _)| forgiving(name) == forgiving(wanted)))
        .ok_or_else(|| trouble::no_sheet(file, wanted, &names()).into())
}
