//! A file in which somebody has a list becomes text in UTF-8, whatever it is written in.
//!
//! [`decode`] unpacks, finds the encoding, and reads the sheet of a workbook. What comes out is CSV under the line
//! and row numbers of the file, and is all that is looked at, copied and hashed; ordinary CSV in UTF-8 passes as it is.
//! Nothing here knows cells or columns.

mod foreign;
mod packed;
mod refusal;
mod rows_below;
mod spool;
mod text;
mod written;
mod zstd_frame;

use std::fmt;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::domain::{Delimiter, ListFormat, Region};
use crate::finding::{Finding, rules};

use super::form_trouble as trouble;
use super::trouble::unreadable;
use super::workbook;
use foreign::ForeignFormat;
use packed::Compression;
pub(super) use refusal::{find_finding, finding_error};
pub(super) use rows_below::RowBlanker;
pub use spool::{SpoolReader, SpooledFile};
use text::TextDecoder;
pub use written::{DetectedFormat, SheetInfo};

/// The most bytes that come out of a packed file or a workbook.
pub(super) const MAX_UNPACKED: u64 = 4 << 30;
/// How much of a file is looked at to know what it is.
const HEAD: usize = 1 << 12;
/// What stands behind `sep=` and the delimiter in the one line that is not the file's, and therefore no line.
///
/// With it what comes out says its delimiter by itself, also where it was frozen.
pub(super) const DELIMITER_LINE_END: &str = "\u{feff}";

/// A list as text in UTF-8.
pub struct DecodedText {
    input: Box<dyn Read + Send>,
    format: Arc<DetectedFormat>,
    /// What a workbook became.
    spool: Option<SheetText>,
}

/// A sheet as text, which can be read again.
#[derive(Clone)]
struct SheetText {
    spool: SpooledFile,
    /// The header row and the file name, if there are rows above the header.
    header: Option<(u32, PathBuf)>,
}

impl SheetText {
    fn open(&self) -> Box<dyn Read + Send> {
        let reader = self.spool.reader();
        match &self.header {
            Some((row, file)) => Box::new(RowBlanker::new(reader, *row, file)),
            None => Box::new(reader),
        }
    }
}

impl DecodedText {
    /// Text that is UTF-8 already.
    #[must_use]
    pub fn from_utf8(input: Box<dyn Read + Send>) -> Self {
        Self { input, format: Arc::default(), spool: None }
    }

    /// How the file is written, as far as it was read.
    #[must_use]
    pub fn format(&self) -> &Arc<DetectedFormat> {
        &self.format
    }

    /// The same from its beginning, of a file that is too dear to be read twice.
    #[must_use]
    pub fn reopen(&self) -> Option<Self> {
        let spool = self.spool.clone()?;
        Some(Self { input: spool.open(), format: Arc::clone(&self.format), spool: Some(spool) })
    }
}

impl Read for DecodedText {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer)
    }
}

/// Shows how the file is written alone: what it holds is personal.
impl fmt::Debug for DecodedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoded").field("written", &self.format).finish_non_exhaustive()
    }
}

/// A file with its name and its description.
#[derive(Clone, Copy)]
struct DecodingSource<'f> {
    /// Its name in findings.
    file: &'f Path,
    form: &'f ListFormat,
    region: Option<Region>,
    /// Whether a campaign describes its form, so that findings can suggest keys of the campaign.
    has_keys: bool,
    packed: Option<&'static str>,
}

impl DecodingSource<'_> {
    /// The header row and the file, if there are rows above the header.
    fn header_row(&self) -> Option<(u32, PathBuf)> {
        self.form.header_row.filter(|row| *row > 1).map(|row| (row, self.file.to_owned()))
    }
}

/// Begins to read a file as a list of that form.
///
/// `file` is the name by which findings call it; `region` is where its people are, which tells encodings apart that share
/// most of their letters.
///
/// # Errors
///
/// The file is no list: something else, damaged, or not of the form that was told. What stands further behind is told
/// while it is read.
pub fn decode<S: Read + Seek + Send + 'static>(
    input: S,
    file: &Path,
    form: &ListFormat,
    region: Option<Region>,
) -> Result<DecodedText, Box<Finding>> {
    decode_source(input, DecodingSource { file, form, region, has_keys: true, packed: None })
}

/// Opens a table whose form no campaign describes, such as purchases, opt-outs or results.
///
/// Its findings suggest no keys of a campaign file.
///
/// # Errors
///
/// Those of [`decode`].
pub fn decode_table<S: Read + Seek + Send + 'static>(
    input: S,
    file: &Path,
    region: Option<Region>,
) -> Result<DecodedText, Box<Finding>> {
    decode_source(input, DecodingSource { file, form: &ListFormat::default(), region, has_keys: false, packed: None })
}

fn decode_source<S: Read + Seek + Send + 'static>(
    mut input: S,
    source: DecodingSource<'_>,
) -> Result<DecodedText, Box<Finding>> {
    let file = source.file;
    let unreadable = |error: io::Error| Box::new(unreadable(file, &error));
    let head = read_head(&mut input).map_err(unreadable)?;
    input.rewind().map_err(unreadable)?;
    let Some(packing) = Compression::detect(&head) else {
        return decode_unpacked(input, head, source);
    };
    let source = DecodingSource { packed: Some(packing.name()), ..source };
    let mut packed = packing.unpack(Box::new(input), &head, file).map_err(unreadable)?;
    let head = read_head(&mut packed).map_err(unreadable)?;
    let rest = io::Cursor::new(head.clone()).chain(packed);
    if !workbook::is_workbook(&head) {
        return decode_text(Box::new(rest), &head, source);
    }
    let unpacked = SpooledFile::copy_from(rest).map_err(unreadable)?;
    self::decode_unpacked(unpacked.reader(), head, source)
}

fn decode_unpacked<S: Read + Seek + Send + 'static>(
    input: S,
    head: Vec<u8>,
    source: DecodingSource<'_>,
) -> Result<DecodedText, Box<Finding>> {
    if !workbook::is_workbook(&head) {
        return decode_text(Box::new(input), &head, source);
    }
    let DecodingSource { file, form, packed, .. } = source;
    let (spool, sheet) = workbook::read_workbook(input, file, form.sheet.as_deref()).map_err(|mut finding| {
        if !source.has_keys && finding.rule == &rules::RECIPIENTS_SHEET {
            finding.help = Some("make the sheet visible and save the workbook, or save the sheet as CSV".to_owned());
        }
        finding
    })?;
    let told = [("encoding", form.encoding.is_some()), ("delimiter", form.delimiter.is_some())];
    if let Some((key, _)) = told.into_iter().find(|(_, is_told)| *is_told) {
        return Err(trouble::text_key_of_workbook(file, key).into());
    }
    let written =
        DetectedFormat { packed, sheet: Some(sheet), header_row: form.header_row, ..DetectedFormat::default() };
    let spool = SheetText { spool, header: source.header_row() };
    Ok(DecodedText { input: spool.open(), format: Arc::new(written), spool: Some(spool) })
}

fn decode_text(
    input: Box<dyn Read + Send>,
    head: &[u8],
    source: DecodingSource<'_>,
) -> Result<DecodedText, Box<Finding>> {
    let DecodingSource { file, form, packed, .. } = source;
    if let Some(foreign) = ForeignFormat::detect(head) {
        return Err(trouble::foreign_format(file, foreign.name(), foreign.advice()).into());
    }
    if let Some(sheet) = &form.sheet {
        return Err(trouble::sheet_key_of_text(file, sheet).into());
    }
    let written = Arc::new(DetectedFormat { packed, header_row: form.header_row, ..DetectedFormat::default() });
    let text = TextDecoder::new(input, head, source, Arc::clone(&written))?;
    let text: Box<dyn Read + Send> = match source.header_row() {
        Some((row, file)) => Box::new(RowBlanker::new(text, row, &file)),
        None => Box::new(text),
    };
    let input: Box<dyn Read + Send> = match form.delimiter {
        None => text,
        Some(delimiter) => Box::new(io::Cursor::new(delimiter_line(delimiter)).chain(text)),
    };
    Ok(DecodedText { input, format: written, spool: None })
}

/// What is put before a list whose delimiter was told.
pub(super) fn delimiter_line(delimiter: Delimiter) -> Vec<u8> {
    [b"sep=", &[delimiter.to_byte()][..], DELIMITER_LINE_END.as_bytes()].concat()
}

/// The first bytes of a file.
fn read_head(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    input.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests;
