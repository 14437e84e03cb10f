//! An archive with the checked parts of an `.xlsx` workbook and no others, for the library that reads its cells.
//!
//! The library finds parts by what the workbook says of itself, and reads many that nothing here needs. In the copy it finds
//! only what was looked at: the cells of one sheet and the shared texts as they are, and descriptions that are written anew.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};

use quick_xml::escape::escape;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::WorkbookError;
use super::archive::WorkbookArchive;
use super::parts::{CellFormats, WorkbookParts};

const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// A copy in which the sheet of that number is the only one, under [`SHEET`].
pub(super) fn copy_sheet<S: Read + Seek>(
    archive: &mut WorkbookArchive<'_, S>,
    parts: &WorkbookParts,
    chosen: usize,
    formats: &CellFormats,
) -> Result<File, WorkbookError> {
    let mut copy = ZipWriter::new(BufWriter::new(tempfile::tempfile()?));
    for (part, text) in [
        ("_rels/.rels", relations_xml("officeDocument", "xl/workbook.xml")),
        ("xl/_rels/workbook.xml.rels", relations_xml("worksheet", "sheet.xml")),
        ("xl/workbook.xml", workbook_xml(parts.is_1904)),
        ("xl/styles.xml", styles_xml(formats)),
    ] {
        copy.start_file(part, SimpleFileOptions::default().compression_method(CompressionMethod::Stored))?;
        copy.write_all(text.as_bytes())?;
    }
    for (from, to) in [(&parts.sheets[chosen].part, "xl/sheet.xml"), (&parts.texts_part(), "xl/sharedStrings.xml")] {
        if let Some(part) = archive.open_part(from)? {
            copy.raw_copy_file_rename(part, to)?;
        }
    }
    let mut copy = copy.finish()?.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    copy.seek(SeekFrom::Start(0))?;
    Ok(copy)
}

/// The name of the sheet in the copy.
pub(super) const SHEET: &str = "sheet";

fn relations_xml(kind: &str, target: &str) -> String {
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
    for id in &formats.of_styles {
        let _ = match id {
            Some(id) => write!(text, "<xf numFmtId=\"{id}\"/>"),
            None => write!(text, "<xf/>"),
        };
    }
    text += "</cellXfs></styleSheet>";
    text
}
