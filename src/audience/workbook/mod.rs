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

use archive::Archive;

use super::decoding::{Sheet, Spool, refused};
use super::form_trouble as trouble;
use crate::finding::Finding;
use crate::quietly::quietly;

/// Whether a file is a workbook, or at least packed like one.
pub(super) fn is_workbook(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") || head.starts_with(b"\xd0\xcf\x11\xe0")
}

/// Why a workbook gives no list.
enum Refusal {
    Finding(Box<Finding>),
    /// It is damaged, in the words of the library, or in none.
    Damaged(String),
}

impl From<Box<Finding>> for Refusal {
    fn from(finding: Box<Finding>) -> Self {
        Self::Finding(finding)
    }
}

impl From<Finding> for Refusal {
    fn from(finding: Finding) -> Self {
        Self::Finding(finding.into())
    }
}

impl Refusal {
    /// The finding that an error carries, or its words.
    fn of_io(error: &std::io::Error) -> Self {
        refused(error).map_or_else(|| Self::Damaged(error.to_string()), |finding| Self::Finding(finding.clone().into()))
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::of_io(&error)
    }
}

impl From<ZipError> for Refusal {
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
pub(super) fn read<S: Read + Seek>(
    mut input: S,
    file: &Path,
    wanted: Option<&str>,
) -> Result<(Spool, Sheet), Box<Finding>> {
    let read = quietly(|| convert(&mut input, file, wanted));
    read.unwrap_or(Err(Refusal::Damaged(String::new()))).map_err(|refusal| match refusal {
        Refusal::Finding(finding) => finding,
        Refusal::Damaged(why) => trouble::damaged_workbook(file, &why).into(),
    })
}

fn convert<S: Read + Seek>(input: &mut S, file: &Path, wanted: Option<&str>) -> Result<(Spool, Sheet), Refusal> {
    let mut head = [0];
    input.read_exact(&mut head)?;
    input.rewind()?;
    if head == [0xd0] {
        return xls::read(input, file, wanted);
    }
    let mut archive = Archive::open(&mut *input, file)?;
    if archive.has("xl/workbook.bin") {
        return Err(trouble::foreign(file, "a binary workbook (.xlsb)", None).into());
    }
    if archive.names().any(|name| name.starts_with("index/") && name.ends_with(".iwa")) {
        return Err(trouble::foreign(file, "a Numbers document", None).into());
    }
    if archive.names().any(|name| name.starts_with("word/") || name.starts_with("ppt/")) {
        return Err(trouble::foreign(file, "a Word or PowerPoint document", None).into());
    }
    if archive.has("content.xml") {
        return ods::read(&mut archive, wanted);
    }
    if archive.has("[Content_Types].xml") || archive.names().any(|name| name.starts_with("xl/")) {
        return xlsx::read(&mut archive, wanted);
    }
    Err(trouble::foreign(file, "an archive (ZIP)", Some("unpack the file, and use the list inside")).into())
}

/// The chosen sheet, with the notes about it.
fn chosen_sheet(sheets: &[(String, bool)], chosen: usize, warnings: Vec<Finding>) -> Sheet {
    let others = sheets.iter().enumerate().filter(|(index, (_, visible))| *index != chosen && *visible);
    let visible_others = others.map(|(_, (name, _))| name.clone()).collect();
    Sheet { name: sheets[chosen].0.clone(), others: sheets.len() - 1, visible_others, warnings }
}

/// The sheet that is meant among those with these names, of which the first ones that are visible have `true`.
fn choose(file: &Path, sheets: &[(String, bool)], wanted: Option<&str>) -> Result<usize, Refusal> {
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
