//! Decoding of recipient lists: compressed files, other encodings and workbooks become UTF-8 text.
//!
//! The output of [`decode`] is CSV in which lines and rows have the same numbers as in the file. Only this output is
//! checked, copied and hashed. Ordinary CSV in UTF-8 passes unchanged. This module knows nothing about cells or
//! columns.

mod formats;
#[cfg(test)]
mod tests;
mod text;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::{fmt, io};

use encoding_rs::Encoding;

use super::list_findings::unreadable_file;
use super::{list_findings, workbook};
use campaign_core::domain::{Delimiter, ListFormat};
use campaign_core::finding::{Finding, rules};
use formats::{Compression, ForeignFormat};
use text::TextDecoder;

pub use text::EncodingHints;
pub(super) use text::RowBlanker;

/// The maximum uncompressed size of a file or a workbook.
pub(super) const MAX_UNPACKED: u64 = 4 << 30;
/// The number of bytes that are read to detect the format.
const HEAD: usize = 1 << 12;
/// The end of a `sep=` line that campaign inserts. The reader does not count such a line as part of the file.
///
/// The line makes the decoded text declare its own delimiter, even in a run's copy of the list.
pub(super) const DELIMITER_LINE_END: &str = "\u{feff}";

/// A list as text in UTF-8.
pub struct DecodedText {
    input: Box<dyn Read + Send>,
    format: Arc<DetectedFormat>,
    /// The text of a workbook's sheet.
    spool: Option<SheetText>,
}

/// The text of a sheet, which can be read several times.
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
    /// Wraps text that is already UTF-8.
    pub fn from_utf8(input: Box<dyn Read + Send>) -> Self {
        Self { input, format: Arc::default(), spool: None }
    }

    /// The format of the file, as far as it has been detected.
    pub fn format(&self) -> &Arc<DetectedFormat> {
        &self.format
    }

    /// Returns the same text, but reading it fails once `stop` is set.
    #[must_use]
    pub fn with_stop_flag(self, stop: Arc<AtomicBool>) -> Self {
        Self { input: Box::new(StoppableReader { input: self.input, stop }), ..self }
    }

    /// A second reader from the beginning, if the decoded file was spooled; otherwise `None`.
    pub fn reopen(&self) -> Option<Self> {
        let spool = self.spool.clone()?;
        Some(Self { input: spool.open(), format: Arc::clone(&self.format), spool: Some(spool) })
    }
}

/// A reader that fails once `stop` is set.
struct StoppableReader {
    input: Box<dyn Read + Send>,
    stop: Arc<AtomicBool>,
}

impl Read for StoppableReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(io::Error::other("the reading was stopped")),
            false => self.input.read(buffer),
        }
    }
}

impl Read for DecodedText {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer)
    }
}

/// Shows only the format: the content is personal data.
impl fmt::Debug for DecodedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodedText").field("format", &self.format).finish_non_exhaustive()
    }
}

/// The settings for decoding a file.
#[derive(Clone, Copy)]
struct DecodingSource<'f> {
    /// The file's name in findings.
    file: &'f Path,
    format: &'f ListFormat,
    hints: EncodingHints,
    /// Whether a campaign describes the file, so that findings can suggest keys of the campaign.
    has_campaign: bool,
    /// The name of the file's compression.
    packed: Option<&'static str>,
}

impl DecodingSource<'_> {
    /// The row number of the header and the path of the file, if there are rows above the header.
    fn header_row(&self) -> Option<(u32, PathBuf)> {
        self.format.header_row.filter(|row| *row > 1).map(|row| (row, self.file.to_owned()))
    }
}

/// Opens a file as a list in the format that `format` declares.
///
/// `file` is the name of the file in findings. `hints` help to distinguish encodings that share most letters; the
/// region of the recipients is enough.
///
/// # Errors
///
/// The file is not a list: it has another format, is damaged, or does not match `format`. Problems later in the file
/// are reported while the file is read.
pub fn decode<S: Read + Seek + Send + 'static>(
    input: S,
    file: &Path,
    format: &ListFormat,
    hints: impl Into<EncodingHints>,
) -> Result<DecodedText, Box<Finding>> {
    decode_source(input, DecodingSource { file, format, hints: hints.into(), has_campaign: true, packed: None })
}

/// Opens a table that no campaign describes, such as purchases, opt-outs or results.
///
/// The findings about such a table do not suggest keys of a campaign file.
///
/// # Errors
///
/// The errors of [`decode`].
pub fn decode_table<S: Read + Seek + Send + 'static>(
    input: S,
    file: &Path,
    hints: impl Into<EncodingHints>,
) -> Result<DecodedText, Box<Finding>> {
    let (format, hints) = (&ListFormat::default(), hints.into());
    decode_source(input, DecodingSource { file, format, hints, has_campaign: false, packed: None })
}

fn decode_source<S: Read + Seek + Send + 'static>(
    mut input: S,
    source: DecodingSource<'_>,
) -> Result<DecodedText, Box<Finding>> {
    let file = source.file;
    let unreadable = |error: io::Error| Box::new(unreadable_file(file, &error));
    let head = read_head(&mut input).map_err(unreadable)?;
    input.rewind().map_err(unreadable)?;
    let Some(compression) = Compression::detect(&head) else {
        return decode_unpacked(input, head, source);
    };
    let source = DecodingSource { packed: Some(compression.name()), ..source };
    let mut packed = compression.unpack(Box::new(input), &head, file).map_err(unreadable)?;
    let head = read_head(&mut packed).map_err(unreadable)?;
    let rest = io::Cursor::new(head.clone()).chain(packed);
    if !workbook::is_workbook(&head) {
        return decode_text(Box::new(rest), &head, source);
    }
    let unpacked = SpooledFile::copy_from(rest).map_err(unreadable)?;
    decode_unpacked(unpacked.reader(), head, source)
}

fn decode_unpacked<S: Read + Seek + Send + 'static>(
    input: S,
    head: Vec<u8>,
    source: DecodingSource<'_>,
) -> Result<DecodedText, Box<Finding>> {
    if !workbook::is_workbook(&head) {
        return decode_text(Box::new(input), &head, source);
    }
    let DecodingSource { file, format, packed, .. } = source;
    let (spool, sheet) = workbook::read_workbook(input, file, format.sheet.as_deref()).map_err(|mut finding| {
        if !source.has_campaign && finding.rule == &rules::RECIPIENTS_SHEET {
            finding.help = Some("make the sheet visible and save the workbook, or save the sheet as CSV".to_owned());
        }
        finding
    })?;
    let declared = [("encoding", format.encoding.is_some()), ("delimiter", format.delimiter.is_some())];
    if let Some((key, _)) = declared.into_iter().find(|(_, is_declared)| *is_declared) {
        return Err(list_findings::text_key_for_workbook(file, key).into());
    }
    let detected =
        DetectedFormat { packed, sheet: Some(sheet), header_row: format.header_row, ..DetectedFormat::default() };
    let spool = SheetText { spool, header: source.header_row() };
    Ok(DecodedText { input: spool.open(), format: Arc::new(detected), spool: Some(spool) })
}

fn decode_text(
    input: Box<dyn Read + Send>,
    head: &[u8],
    source: DecodingSource<'_>,
) -> Result<DecodedText, Box<Finding>> {
    let DecodingSource { file, format, packed, .. } = source;
    if let Some(foreign) = ForeignFormat::detect(head) {
        return Err(list_findings::foreign_format(file, foreign.name(), foreign.advice()).into());
    }
    if let Some(sheet) = &format.sheet {
        return Err(list_findings::sheet_key_for_text_file(file, sheet).into());
    }
    let detected = Arc::new(DetectedFormat { packed, header_row: format.header_row, ..DetectedFormat::default() });
    let text = TextDecoder::new(input, head, source, Arc::clone(&detected))?;
    let text: Box<dyn Read + Send> = match source.header_row() {
        Some((row, file)) => Box::new(RowBlanker::new(text, row, &file)),
        None => Box::new(text),
    };
    let input: Box<dyn Read + Send> = match format.delimiter {
        None => text,
        Some(delimiter) => Box::new(io::Cursor::new(delimiter_line(delimiter)).chain(text)),
    };
    Ok(DecodedText { input, format: detected, spool: None })
}

/// The line that declares the delimiter of a list.
pub(super) fn delimiter_line(delimiter: Delimiter) -> Vec<u8> {
    [b"sep=", &[delimiter.to_byte()][..], DELIMITER_LINE_END.as_bytes()].concat()
}

/// Reads the first bytes of a file.
fn read_head(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    input.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// A finding that ends reading, as an error.
#[derive(Debug)]
struct FindingError(Finding);

impl fmt::Display for FindingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for FindingError {}

/// An error that carries a finding through a reader.
pub(in crate::audience) fn finding_error(finding: Finding) -> io::Error {
    io::Error::other(FindingError(finding))
}

/// The finding that an error carries.
pub(in crate::audience) fn extract_finding(error: &io::Error) -> Option<&Finding> {
    let inner: &dyn std::error::Error = error.get_ref()?;
    inner.downcast_ref::<FindingError>().map(|error| &error.0)
}

/// A temporary file that can be read any number of times.
#[derive(Clone, Debug)]
pub struct SpooledFile(Arc<File>);

impl SpooledFile {
    /// Copies the whole input into a temporary file.
    ///
    /// # Errors
    /// The input cannot be read, or the disk is full.
    pub(crate) fn copy_from(mut input: impl Read) -> io::Result<Self> {
        let mut file = tempfile::tempfile()?;
        io::copy(&mut input, &mut file)?;
        Ok(Self(Arc::new(file)))
    }

    /// Wraps a file that is already written.
    pub(in crate::audience) fn from_file(file: File) -> Self {
        Self(Arc::new(file))
    }

    /// A reader of the whole content.
    pub fn reader(&self) -> SpoolReader {
        SpoolReader { file: Arc::clone(&self.0), at: 0 }
    }
}

/// Reads a [`SpooledFile`] from its beginning, independently of other readers.
#[derive(Debug)]
pub struct SpoolReader {
    file: Arc<File>,
    at: u64,
}

impl Read for SpoolReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let count = std::os::unix::fs::FileExt::read_at(self.file.as_ref(), buffer, self.at)?;
        #[cfg(windows)]
        let count = std::os::windows::fs::FileExt::seek_read(self.file.as_ref(), buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for SpoolReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// The detected format of a file. By default it is ordinary UTF-8 text.
#[derive(Debug, Default)]
pub struct DetectedFormat {
    /// The name of the compression, if any.
    packed: Option<&'static str>,
    /// The encoding of the text, unless it is UTF-8. Known at the latest after the first non-ASCII character.
    encoding: OnceLock<&'static Encoding>,
    /// The warning about an uncertain encoding. Known as soon as the encoding is.
    encoding_warning: OnceLock<Finding>,
    /// The sheet that was read, if the file is a workbook.
    sheet: Option<SheetInfo>,
    /// The header row, if specified.
    header_row: Option<u32>,
}

/// The sheet of a workbook.
#[derive(Debug, Default)]
pub struct SheetInfo {
    /// The name of the sheet.
    pub name: String,
    /// The number of other sheets in the workbook, including hidden ones.
    pub others: usize,
    /// The names of other visible sheets.
    pub(crate) visible_others: Vec<String>,
    /// Warnings about the sheet.
    pub warnings: Vec<Finding>,
}

impl DetectedFormat {
    /// The format and the delimiter in words. `None` for an uncompressed CSV file in UTF-8 with commas or semicolons
    /// and its header in the first row.
    pub fn describe(&self, delimiter: u8) -> Option<String> {
        let mut parts = Vec::new();
        parts.extend(self.packed.map(|packed| format!("compressed with {packed}")));
        parts.extend(self.encoding.get().map(|encoding| format!("encoding {}", encoding_name(encoding))));
        match &self.sheet {
            Some(SheetInfo { name, others: 0, .. }) => parts.push(format!("sheet `{name}`")),
            Some(SheetInfo { name, others, .. }) => parts.push(format!("sheet `{name}`, one of {}", others + 1)),
            // In many locales, spreadsheets use semicolons, so a semicolon is not worth mentioning.
            None if delimiter == Delimiter::COMMA.to_byte() || parts.is_empty() && delimiter == b';' => {}
            None => {
                let name = Delimiter::new(delimiter).unwrap_or(Delimiter::COMMA).name();
                parts.push(format!("delimiter {name}"));
            }
        }
        parts.extend(self.header_row.filter(|row| *row > 1).map(|row| format!("header in row {row}")));
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// The name of the sheet that was read. `None` if the file is not a workbook.
    pub fn sheet_name(&self) -> Option<&str> {
        self.sheet.as_ref().map(|sheet| sheet.name.as_str())
    }

    /// The names of the workbook's visible sheets, except the one that was read. Empty if the file is not a workbook.
    pub(crate) fn other_sheets(&self) -> &[String] {
        self.sheet.as_ref().map_or(&[], |sheet| &sheet.visible_others)
    }

    /// Warnings about the encoding or the sheet. They are complete once the file has been read.
    pub fn warnings(&self) -> Vec<Finding> {
        let sheet_warnings = self.sheet.iter().flat_map(|sheet| &sheet.warnings);
        self.encoding_warning().into_iter().chain(sheet_warnings).cloned().collect()
    }

    /// The warning about an uncertain encoding. It is known once the file has been read.
    pub fn encoding_warning(&self) -> Option<&Finding> {
        self.encoding_warning.get()
    }
}

/// The name of an encoding in its usual spelling.
pub(in crate::audience) fn encoding_name(encoding: &'static Encoding) -> String {
    let name = encoding.name();
    if name.starts_with("windows") { format!("W{}", &name[1..]) } else { name.to_owned() }
}
