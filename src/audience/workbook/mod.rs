//! A sheet of a workbook becomes CSV under the sheet's row numbers, its cells as they are shown.
//!
//! [`read`] writes it into a [`Spool`]. A workbook is what somebody sends; whatever is in it, it ends here with a sheet or
//! with a finding: what it would take in memory is bounded before it is opened, and a library that panics is caught.

mod compound;
mod date_format;
mod hidden;
mod number_format;
mod ods;
mod rows;
mod shown;
mod xls;
mod xlsx;

use std::io::{Read, Seek};
use std::path::Path;

use zip::ZipArchive;

use super::decoding::{Sheet, Spool, refused};
use super::form_trouble as trouble;
use crate::finding::Finding;
use crate::quietly::quietly;

/// The most bytes of one part of a workbook that are kept in memory while it is read.
const MOST_KEPT: u64 = 320 << 20;
/// The most that deflate makes of a byte.
const MOST_OF_A_BYTE: u64 = 1032;

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

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        refused(&error)
            .map_or_else(|| Self::Damaged(error.to_string()), |finding| Self::Finding(finding.clone().into()))
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
    let archive = ZipArchive::new(&mut *input).map_err(|error| Refusal::Damaged(error.to_string()))?;
    let names: Vec<String> = archive.file_names().filter_map(Result::ok).map(|name| name.replace('\\', "/")).collect();
    drop(archive);
    let has = |part: &str| names.iter().any(|name| name == part);
    if has("xl/workbook.bin") {
        return Err(trouble::foreign(file, "a binary workbook (.xlsb)", None).into());
    }
    if names.iter().any(|name| name.starts_with("Index/") && name.ends_with(".iwa")) {
        return Err(trouble::foreign(file, "a document of Numbers", None).into());
    }
    if names.iter().any(|name| name.starts_with("word/") || name.starts_with("ppt/")) {
        return Err(trouble::foreign(file, "a document of Word or PowerPoint", None).into());
    }
    if has("content.xml") {
        return ods::read(input, file, wanted);
    }
    if has("[Content_Types].xml") || names.iter().any(|name| name.starts_with("xl/")) {
        return xlsx::read(input, file, wanted);
    }
    Err(trouble::foreign(file, "an archive (ZIP)", Some("unpack it, and give the list that is in it")).into())
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

/// Refuses a part of a workbook that would fill the memory, whatever it says of its own size.
fn bound_part<S: Read + Seek>(input: &mut S, file: &Path, part: &str, what: &str) -> Result<(), Refusal> {
    let mut archive = ZipArchive::new(&mut *input).map_err(|error| Refusal::Damaged(error.to_string()))?;
    let Ok(mut entry) = archive.by_name(part) else { return Ok(()) };
    let (size, packed) = (entry.size(), entry.compressed_size());
    let too_large = || Refusal::from(trouble::large_workbook(file, what));
    if size > MOST_KEPT {
        return Err(too_large());
    }
    if packed.saturating_mul(MOST_OF_A_BYTE) > MOST_KEPT {
        let unpacked = std::io::copy(&mut entry.by_ref().take(MOST_KEPT + 1), &mut std::io::sink())?;
        if unpacked > MOST_KEPT {
            return Err(too_large());
        }
    }
    Ok(())
}

/// Refuses texts that say they are more than their part has bytes for, since room is made for what it says.
fn bound_count<S: Read + Seek>(input: &mut S, part: &str) -> Result<(), Refusal> {
    /// The shortest element of a text: `<si/>`.
    const SHORTEST: u64 = 5;
    let mut archive = ZipArchive::new(&mut *input).map_err(|error| Refusal::Damaged(error.to_string()))?;
    let Ok(entry) = archive.by_name(part) else { return Ok(()) };
    let most = entry.size() / SHORTEST;
    let mut head = Vec::new();
    entry.take(1 << 12).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    let counts = head
        .match_indices("uniqueCount")
        .map(|(at, _)| head[at + 11..].trim_start_matches([' ', '=', '"', '\'', '+', '0']));
    let told = counts.map(|digits| digits.chars().take_while(char::is_ascii_digit).take(20).collect::<String>());
    match told.filter_map(|digits| digits.parse::<u128>().ok()).any(|count| count > u128::from(most)) {
        true => Err(Refusal::Damaged("it says that it has more texts than it has".to_owned())),
        false => Ok(()),
    }
}
