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

use crate::domain::{Delimiter, ListForm, Region};
use crate::finding::{Finding, rules};

use super::form_trouble as trouble;
use super::trouble::unreadable;
use super::workbook;
use foreign::Foreign;
use packed::Packing;
pub(super) use refusal::{refusal, refused};
pub(super) use rows_below::RowsBelow;
pub use spool::{Spool, SpoolReader};
use text::Text;
pub use written::{Sheet, Written};

/// The most bytes that come out of a packed file or a workbook.
pub(super) const MOST_UNPACKED: u64 = 4 << 30;
/// How much of a file is looked at to know what it is.
const HEAD: usize = 1 << 12;
/// What stands behind `sep=` and the delimiter in the one line that is not the file's, and therefore no line.
///
/// With it what comes out says its delimiter by itself, also where it was frozen.
pub(super) const TOLD_DELIMITER_END: &str = "\u{feff}";

/// A list as text in UTF-8.
pub struct Decoded {
    input: Box<dyn Read + Send>,
    written: Arc<Written>,
    /// What a workbook became.
    spool: Option<SheetText>,
}

/// A sheet as text, which can be read again.
#[derive(Clone)]
struct SheetText {
    spool: Spool,
    /// The header row and the file name, if there are rows above the header.
    header: Option<(u32, PathBuf)>,
}

impl SheetText {
    fn reader(&self) -> Box<dyn Read + Send> {
        let reader = self.spool.reader();
        match &self.header {
            Some((row, file)) => Box::new(RowsBelow::new(reader, *row, file)),
            None => Box::new(reader),
        }
    }
}

impl Decoded {
    /// Text that is UTF-8 already.
    #[must_use]
    pub fn as_it_is(input: Box<dyn Read + Send>) -> Self {
        Self { input, written: Arc::default(), spool: None }
    }

    /// How the file is written, as far as it was read.
    #[must_use]
    pub fn written(&self) -> &Arc<Written> {
        &self.written
    }

    /// The same from its beginning, of a file that is too dear to be read twice.
    #[must_use]
    pub fn again(&self) -> Option<Self> {
        let spool = self.spool.clone()?;
        Some(Self { input: spool.reader(), written: Arc::clone(&self.written), spool: Some(spool) })
    }
}

impl Read for Decoded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer)
    }
}

/// Shows how the file is written alone: what it holds is personal.
impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoded").field("written", &self.written).finish_non_exhaustive()
    }
}

/// A file with its name and its description.
#[derive(Clone, Copy)]
struct Source<'f> {
    /// Its name in findings.
    file: &'f Path,
    form: &'f ListForm,
    region: Option<Region>,
    /// Whether a campaign describes its form, so that findings can suggest keys of the campaign.
    has_keys: bool,
    packed: Option<&'static str>,
}

impl Source<'_> {
    /// The header row and the file, if there are rows above the header.
    fn header(&self) -> Option<(u32, PathBuf)> {
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
    form: &ListForm,
    region: Option<Region>,
) -> Result<Decoded, Box<Finding>> {
    begin(input, Source { file, form, region, has_keys: true, packed: None })
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
) -> Result<Decoded, Box<Finding>> {
    begin(input, Source { file, form: &ListForm::default(), region, has_keys: false, packed: None })
}

fn begin<S: Read + Seek + Send + 'static>(mut input: S, source: Source<'_>) -> Result<Decoded, Box<Finding>> {
    let file = source.file;
    let unreadable = |error: io::Error| Box::new(unreadable(file, &error));
    let head = head_of(&mut input).map_err(unreadable)?;
    input.rewind().map_err(unreadable)?;
    let Some(packing) = Packing::of(&head) else {
        return unpacked(input, head, source);
    };
    let source = Source { packed: Some(packing.name()), ..source };
    let mut packed = packing.unpack(Box::new(input), &head, file).map_err(unreadable)?;
    let head = head_of(&mut packed).map_err(unreadable)?;
    let rest = io::Cursor::new(head.clone()).chain(packed);
    if !workbook::is_workbook(&head) {
        return text(Box::new(rest), &head, source);
    }
    let unpacked = Spool::copy_of(rest).map_err(unreadable)?;
    self::unpacked(unpacked.reader(), head, source)
}

fn unpacked<S: Read + Seek + Send + 'static>(
    input: S,
    head: Vec<u8>,
    source: Source<'_>,
) -> Result<Decoded, Box<Finding>> {
    if !workbook::is_workbook(&head) {
        return text(Box::new(input), &head, source);
    }
    let Source { file, form, packed, .. } = source;
    let (spool, sheet) = workbook::read(input, file, form.sheet.as_deref()).map_err(|mut finding| {
        if !source.has_keys && finding.rule == &rules::RECIPIENTS_SHEET {
            finding.help = Some("make the sheet visible and save the workbook, or save the sheet as CSV".to_owned());
        }
        finding
    })?;
    let told = [("encoding", form.encoding.is_some()), ("delimiter", form.delimiter.is_some())];
    if let Some((key, _)) = told.into_iter().find(|(_, is_told)| *is_told) {
        return Err(trouble::form_of_text(file, key).into());
    }
    let written = Written { packed, sheet: Some(sheet), header_row: form.header_row, ..Written::default() };
    let spool = SheetText { spool, header: source.header() };
    Ok(Decoded { input: spool.reader(), written: Arc::new(written), spool: Some(spool) })
}

fn text(input: Box<dyn Read + Send>, head: &[u8], source: Source<'_>) -> Result<Decoded, Box<Finding>> {
    let Source { file, form, packed, .. } = source;
    if let Some(foreign) = Foreign::of(head) {
        return Err(trouble::foreign(file, foreign.name(), foreign.help()).into());
    }
    if let Some(sheet) = &form.sheet {
        return Err(trouble::sheet_of_text(file, sheet).into());
    }
    let written = Arc::new(Written { packed, header_row: form.header_row, ..Written::default() });
    let text = Text::new(input, head, source, Arc::clone(&written))?;
    let text: Box<dyn Read + Send> = match source.header() {
        Some((row, file)) => Box::new(RowsBelow::new(text, row, &file)),
        None => Box::new(text),
    };
    let input: Box<dyn Read + Send> = match form.delimiter {
        None => text,
        Some(delimiter) => Box::new(io::Cursor::new(told_before(delimiter)).chain(text)),
    };
    Ok(Decoded { input, written, spool: None })
}

/// What is put before a list whose delimiter was told.
pub(super) fn told_before(delimiter: Delimiter) -> Vec<u8> {
    [b"sep=", &[delimiter.byte()][..], TOLD_DELIMITER_END.as_bytes()].concat()
}

/// The first bytes of a file.
fn head_of(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    input.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests;
