//! Text decoding from any encoding to UTF-8, with blank lines in place of the rows above a header.
//!
//! UTF-8 passes unchanged. The encoding is detected from the text after the ASCII characters at the beginning. All
//! encodings without a byte order mark or zero bytes encode ASCII in the same way.
//!
//! Short texts look plausible in several encodings: the bytes of `так` in Windows-1251 are `òàê` in Windows-1254.
//! The country of the recipients and the campaign's own texts decide between such encodings.

use std::collections::BTreeMap;
use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{
    DecoderResult, Encoding, IBM866, ISO_8859_5, KOI8_R, KOI8_U, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1251,
    X_MAC_CYRILLIC,
};

use super::{DecodingSource, DetectedFormat, encoding_name, finding_error};
use crate::audience::list_findings;
use crate::audience::phones::parse_phone_number;
use crate::audience::raw_records::read_declared_delimiter;
use campaign_core::domain::{Region, find_country};
use campaign_core::finding::Finding;

/// The size of the sample for detecting the encoding, in bytes.
const SAMPLE: usize = 1 << 16;
/// The size of a block to read and decode, in bytes.
const BLOCK: usize = 1 << 16;
/// Text counts as UTF-8 if it has at least this many valid characters for each invalid one.
const VALID_PER_INVALID: usize = 3;
/// Encodings with Cyrillic letters.
const CYRILLIC_ENCODINGS: [&Encoding; 6] = [WINDOWS_1251, KOI8_U, KOI8_R, ISO_8859_5, IBM866, X_MAC_CYRILLIC];
/// Countries whose main alphabet is Cyrillic.
const CYRILLIC_COUNTRIES: [&str; 9] = ["BG", "BY", "KG", "KZ", "MK", "MN", "RU", "TJ", "UA"];
/// The minimum number of digits in a cell that can be an international phone number.
const MIN_DIGITS: usize = 10;
/// The maximum number of phone numbers that are parsed to find their country.
const MAX_NUMBERS: usize = 200;
/// The maximum length of an example, in characters.
const MAX_EXAMPLE: usize = 40;

/// A reader that decodes text to UTF-8.
pub(super) struct TextDecoder<R> {
    input: R,
    file: PathBuf,
    hints: EncodingHints,
    /// The first bytes of the file.
    head: Vec<u8>,
    /// Whether a campaign describes this file.
    has_campaign: bool,
    format: Arc<DetectedFormat>,
    stage: DecodingStage,
    /// The next output, from `at` on.
    ready: Vec<u8>,
    at: usize,
    /// The number of decoded line endings.
    lines: u64,
}

/// The known facts about the encoding.
enum DecodingStage {
    /// Only ASCII so far.
    Ascii,
    /// The text is UTF-8. Its reader reports invalid characters.
    Utf8,
    /// The text has another encoding.
    Other(Box<DecoderState>),
}

struct DecoderState {
    decoder: encoding_rs::Decoder,
    block: Box<[u8]>,
    ended: bool,
}

impl DecodingStage {
    fn with_encoding(encoding: &'static Encoding) -> Self {
        let block = vec![0; BLOCK].into_boxed_slice();
        Self::Other(Box::new(DecoderState { decoder: encoding.new_decoder_with_bom_removal(), block, ended: false }))
    }
}

impl<R: Read> TextDecoder<R> {
    /// Creates a decoder of text that begins with `head`. A byte order mark or a declared encoding replaces detection.
    ///
    /// # Errors
    ///
    /// The text is in UTF-32, or is certainly not in the declared encoding.
    pub(super) fn new(
        input: R,
        head: &[u8],
        source: DecodingSource<'_>,
        detected: Arc<DetectedFormat>,
    ) -> Result<Self, Box<Finding>> {
        let DecodingSource { file, hints, has_campaign, .. } = source;
        let declared = source.format.encoding;
        if head.starts_with(b"\xff\xfe\0\0") || head.starts_with(b"\0\0\xfe\xff") {
            return Err(list_findings::utf32_encoding(file).into());
        }
        let from_bom = Encoding::for_bom(head).map(|(encoding, _)| encoding);
        let encoding = match (declared, from_bom) {
            (Some(declared), Some(actual)) if declared != actual && !(is_utf16(declared) && is_utf16(actual)) => {
                return Err(
                    list_findings::wrong_encoding(file, &encoding_name(declared), &encoding_name(actual)).into()
                );
            }
            (_, Some(encoding)) => Some(encoding),
            (Some(declared), None) if declared != UTF_8 && declared.is_single_byte() && is_clearly_utf8(head) => {
                return Err(list_findings::wrong_encoding(file, &encoding_name(declared), &encoding_name(UTF_8)).into());
            }
            (Some(declared), None) => Some(declared),
            (None, None) => detect_utf16_without_bom(head),
        };
        let stage = match encoding {
            None => DecodingStage::Ascii,
            Some(encoding) if encoding == UTF_8 => DecodingStage::Utf8,
            Some(encoding) => {
                let _ = detected.encoding.set(encoding);
                DecodingStage::with_encoding(encoding)
            }
        };
        let (file, head) = (file.to_owned(), head.to_vec());
        Ok(Self { input, file, hints, head, has_campaign, format: detected, stage, ready: Vec::new(), at: 0, lines: 0 })
    }

    /// Detects the encoding from a sample that starts at the first non-ASCII character. `before` is the text before it.
    fn detect_encoding(&self, before: &[u8], text: &[u8], ended: bool) -> io::Result<DecodingStage> {
        if is_mostly_utf8(text, ended) {
            return Ok(DecodingStage::Utf8);
        }
        let sample = EncodingSample { head: &self.head, before, text, ended };
        let Some(EncodingGuess { encoding, doubtful_cell }) = sample.guess_encoding(self.hints) else {
            return Err(finding_error(list_findings::unknown_encoding(&self.file, self.has_campaign)));
        };
        let warning = |cell: String| {
            list_findings::uncertain_encoding(&self.file, &encoding_name(encoding), &cell, self.has_campaign)
        };
        let _ = self.format.encoding.set(encoding);
        let _ = doubtful_cell.map(warning).map(|warning| self.format.encoding_warning.set(warning));
        Ok(DecodingStage::with_encoding(encoding))
    }

    /// Reads until the sample is large enough. Returns the sample, and whether the text ended with it.
    fn read_sample(&mut self, mut sample: Vec<u8>) -> io::Result<(Vec<u8>, bool)> {
        let missing = SAMPLE.saturating_sub(sample.len());
        let count = self.input.by_ref().take(missing as u64).read_to_end(&mut sample)?;
        Ok((sample, count < missing))
    }

    /// Decodes bytes and appends the text to the output that is ready to be read.
    fn decode_bytes(&mut self, bytes: &[u8], last: bool) -> io::Result<()> {
        let DecodingStage::Other(decoding) = &mut self.stage else { return Ok(()) };
        (self.at, decoding.ended) = (0, last);
        self.ready.resize(decoding.decoder.max_utf8_buffer_length_without_replacement(bytes.len()).unwrap_or(0), 0);
        let (result, _, written) = decoding.decoder.decode_to_utf8_without_replacement(bytes, &mut self.ready, last);
        self.ready.truncate(written);
        self.lines += self.ready.iter().filter(|&&byte| byte == b'\n').count() as u64;
        match result {
            DecoderResult::Malformed(..) => {
                let encoding = encoding_name(decoding.decoder.encoding());
                Err(finding_error(list_findings::invalid_in_encoding(
                    &self.file,
                    self.lines + 1,
                    &encoding,
                    self.has_campaign,
                )))
            }
            DecoderResult::InputEmpty | DecoderResult::OutputFull => Ok(()),
        }
    }
}

impl<R: Read> Read for TextDecoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let ready = &self.ready[self.at..];
            if !ready.is_empty() {
                let count = ready.len().min(buffer.len());
                buffer[..count].copy_from_slice(&ready[..count]);
                self.at += count;
                return Ok(count);
            }
            match &mut self.stage {
                DecodingStage::Utf8 => return self.input.read(buffer),
                DecodingStage::Ascii => {
                    let count = self.input.read(buffer)?;
                    let ascii = Encoding::ascii_valid_up_to(&buffer[..count]);
                    if ascii == count {
                        return Ok(count);
                    }
                    let (sample, ended) = self.read_sample(buffer[ascii..count].to_vec())?;
                    self.stage = self.detect_encoding(&buffer[..ascii], &sample, ended)?;
                    match self.stage {
                        DecodingStage::Other(_) => self.decode_bytes(&sample, false)?,
                        _ => (self.ready, self.at) = (sample, 0),
                    }
                    if ascii > 0 {
                        return Ok(ascii);
                    }
                }
                DecodingStage::Other(decoding) if decoding.ended => return Ok(0),
                DecodingStage::Other(decoding) => {
                    let mut block = std::mem::take(&mut decoding.block);
                    let count = self.input.read(&mut block)?;
                    self.decode_bytes(&block[..count], count == 0)?;
                    if let DecodingStage::Other(decoding) = &mut self.stage {
                        decoding.block = block;
                    }
                }
            }
        }
    }
}

fn is_utf16(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

/// Detects UTF-16 by zero bytes. The code units of delimiters and digits contain a zero byte, always in the same
/// position.
fn detect_utf16_without_bom(head: &[u8]) -> Option<&'static Encoding> {
    let (mut zero_first, mut zero_second) = (0, 0);
    let code_units = head.chunks_exact(2);
    let count = code_units.len();
    for unit in code_units {
        zero_first += usize::from(unit[0] == 0);
        zero_second += usize::from(unit[1] == 0);
    }
    // At least a fifth of the code units must contain a zero byte.
    match (zero_first, zero_second) {
        (0, zeros) if zeros > 0 && zeros * 5 >= count => Some(UTF_16LE),
        (zeros, 0) if zeros > 0 && zeros * 5 >= count => Some(UTF_16BE),
        _ => None,
    }
}

/// Whether text is almost certainly UTF-8: it has several non-ASCII characters, and all of them are valid.
fn is_clearly_utf8(head: &[u8]) -> bool {
    let (valid, invalid) = count_utf8_characters(head, false);
    invalid == 0 && valid >= VALID_PER_INVALID
}

/// Whether text is UTF-8, possibly with some invalid characters.
fn is_mostly_utf8(sample: &[u8], ended: bool) -> bool {
    let (valid, invalid) = count_utf8_characters(sample, ended);
    valid >= invalid * VALID_PER_INVALID
}

/// Counts the valid and the invalid non-ASCII characters of UTF-8 text. An incomplete last character is not counted as
/// invalid, unless the text ends there.
fn count_utf8_characters(text: &[u8], ended: bool) -> (usize, usize) {
    let (mut valid, mut invalid, mut end) = (0, 0, 0);
    for chunk in text.utf8_chunks() {
        valid += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
        end += chunk.valid().len() + chunk.invalid().len();
        let is_cut_off = !ended
            && end == text.len()
            && str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
        invalid += usize::from(!chunk.invalid().is_empty() && !is_cut_off);
    }
    (valid, invalid)
}

/// The size of a block above the header, in bytes.
const HEADER_BLOCK: usize = 1 << 12;
/// The byte order mark of UTF-8.
const BOM: &[u8] = "\u{feff}".as_bytes();
/// Characters after which a quote opens a cell.
const BEFORE_CELLS: [u8; 4] = *b",;\t|";

/// Replaces the rows above a header with blank lines.
pub(in crate::audience) struct RowBlanker<R> {
    input: R,
    file: PathBuf,
    /// The row of the header, from 1.
    header: u32,
    /// The number of rows that are still above the header.
    rows_above: u32,
    /// The next output, from `at` on.
    ready: Vec<u8>,
    at: usize,
    has_begun: bool,
    place: RowPosition,
}

/// The position of the last byte within its row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowPosition {
    /// A quote would open a cell here.
    Beginning,
    Cell,
    Quoted,
    /// After a quote that closes the cell, unless the quote is doubled.
    AfterQuote,
    /// After a carriage return. A line feed that follows belongs to the same line end.
    AfterReturn,
}

impl<R: Read> RowBlanker<R> {
    /// Creates a reader for a table whose header is in row `header`.
    pub(in crate::audience) fn new(input: R, header: u32, file: &Path) -> Self {
        let (rows_above, place) = (header.saturating_sub(1), RowPosition::Beginning);
        Self { input, file: file.to_owned(), header, rows_above, ready: Vec::new(), at: 0, has_begun: false, place }
    }

    /// Reads a block into the output, and blanks the rows above the header.
    fn read_block(&mut self) -> io::Result<()> {
        let mut block = Vec::with_capacity(HEADER_BLOCK);
        self.input.by_ref().take(HEADER_BLOCK as u64).read_to_end(&mut block)?;
        if block.is_empty() {
            return Err(finding_error(list_findings::no_header_row(&self.file, self.header)));
        }
        (self.at, self.ready) = (0, Vec::new());
        let start = if std::mem::replace(&mut self.has_begun, true) { 0 } else { delimiter_line_length(&block) };
        self.ready.extend_from_slice(&block[..start]);
        let mut rest = block[start..].strip_prefix(BOM).unwrap_or(&block[start..]).iter();
        while self.rows_above > 0 {
            let Some(&byte) = rest.next() else { return Ok(()) };
            self.blank_byte(byte);
        }
        self.ready.extend_from_slice(rest.as_slice());
        Ok(())
    }

    /// Blanks a byte above the header. Only line endings are output.
    fn blank_byte(&mut self, byte: u8) {
        self.place = match (self.place, byte) {
            (RowPosition::Quoted, b'"') => RowPosition::AfterQuote,
            (RowPosition::Quoted, _)
            | (RowPosition::Beginning | RowPosition::AfterReturn | RowPosition::AfterQuote, b'"') => {
                RowPosition::Quoted
            }
            (RowPosition::AfterReturn, b'\n') => {
                self.ready.push(byte);
                RowPosition::Beginning
            }
            (_, b'\n' | b'\r') => {
                self.ready.push(byte);
                self.rows_above -= 1;
                if byte == b'\r' { RowPosition::AfterReturn } else { RowPosition::Beginning }
            }
            (_, byte) if BEFORE_CELLS.contains(&byte) => RowPosition::Beginning,
            _ => RowPosition::Cell,
        };
    }
}

/// The length of the line that declares the delimiter, including a byte order mark. 0 if there is no such line.
fn delimiter_line_length(head: &[u8]) -> usize {
    let text = head.strip_prefix(BOM).unwrap_or(head);
    read_declared_delimiter(text)
        .filter(|declared| declared.is_line)
        .map_or(0, |declared| head.len() - text.len() + declared.length)
}

impl<R: Read> Read for RowBlanker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.ready.len() {
            if self.rows_above == 0 {
                return self.input.read(buffer);
            }
            self.read_block()?;
        }
        let ready = &self.ready[self.at..];
        let count = ready.len().min(buffer.len());
        buffer[..count].copy_from_slice(&ready[..count]);
        self.at += count;
        Ok(count)
    }
}

/// Evidence for the encoding of a list, apart from its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct EncodingHints {
    /// The declared region of the national numbers.
    pub region: Option<Region>,
    /// The country that other settings suggest, such as the language or the time zone.
    pub country: Option<Region>,
    /// Whether the campaign itself contains Cyrillic letters.
    pub is_cyrillic: bool,
}

impl From<Option<Region>> for EncodingHints {
    fn from(region: Option<Region>) -> Self {
        Self { region, ..Self::default() }
    }
}

/// A part of a file that has characters outside ASCII.
#[derive(Clone, Copy)]
struct EncodingSample<'b> {
    /// The first bytes of the file.
    head: &'b [u8],
    /// ASCII text immediately before `text`.
    before: &'b [u8],
    /// The text from the first character outside ASCII on.
    text: &'b [u8],
    /// Whether the file ends with `text`.
    ended: bool,
}

/// The probable encoding of a file.
struct EncodingGuess {
    encoding: &'static Encoding,
    /// A decoded cell, if another encoding is almost as probable.
    doubtful_cell: Option<String>,
}

impl EncodingSample<'_> {
    /// Guesses the encoding. `None` if no encoding decodes the text.
    fn guess_encoding(self, hints: EncodingHints) -> Option<EncodingGuess> {
        let EncodingSample { text, ended, .. } = self;
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(text, ended);
        let guess_for = |country: Option<Region>| {
            let domain = country.map(|country| country.to_string().to_lowercase());
            detector.guess(domain.as_deref().map(str::as_bytes), Utf8Detection::Deny)
        };
        let text_country = hints.is_cyrillic.then_some(Region::UKRAINE);
        let number_country = self.find_number_country();
        let country = hints.region.or(text_country).or(hints.country).or(number_country);
        let encoding = guess_for(country);
        // A byte decodes to at most three bytes of UTF-8.
        let mut output = vec![0; 3 * text.len() + 16];
        let (result, ..) =
            encoding.new_decoder_without_bom_handling().decode_to_utf8_without_replacement(text, &mut output, ended);
        if matches!(result, DecoderResult::Malformed(..)) {
            return None;
        }
        let is_cyrillic = hints.is_cyrillic || [country, number_country].into_iter().flatten().any(uses_cyrillic);
        let is_implausible = is_cyrillic && !CYRILLIC_ENCODINGS.contains(&encoding);
        let depends_on_country = hints.region.is_none() && guess_for(None) != encoding;
        let doubtful_cell = (is_implausible || depends_on_country).then(|| self.decode_first_cell(encoding));
        Some(EncodingGuess { encoding, doubtful_cell })
    }

    /// The most frequent country of the international phone numbers in the file.
    fn find_number_country(self) -> Option<Region> {
        let cells = [self.head, self.text].into_iter().flat_map(|text| text.split(ends_cell));
        let cells = cells.filter(|cell| cell.iter().filter(|byte| byte.is_ascii_digit()).count() >= MIN_DIGITS);
        let numbers =
            cells.take(MAX_NUMBERS).filter_map(|cell| parse_phone_number(str::from_utf8(cell).ok()?, None).ok());
        let mut countries = BTreeMap::<String, (usize, Region)>::new();
        for country in numbers.filter_map(find_country) {
            countries.entry(country.to_string()).or_insert((0, country)).0 += 1;
        }
        countries.into_values().max_by_key(|(count, _)| *count).map(|(_, country)| country)
    }

    /// Decodes the first cell with a character outside ASCII, without control characters and shortened to
    /// [`MAX_EXAMPLE`].
    fn decode_first_cell(self, encoding: &'static Encoding) -> String {
        let start = self.before.iter().rposition(ends_cell).map_or(0, |end| end + 1);
        let end = self.text.iter().position(ends_cell).unwrap_or(self.text.len());
        let cell = [&self.before[start..], &self.text[..end]].concat();
        let (cell, _) = encoding.decode_without_bom_handling(&cell);
        cell.trim().chars().filter(|character| !character.is_control()).take(MAX_EXAMPLE).collect()
    }
}

fn uses_cyrillic(country: Region) -> bool {
    CYRILLIC_COUNTRIES.contains(&country.to_string().as_str())
}

fn ends_cell(byte: &u8) -> bool {
    matches!(byte, b',' | b';' | b'\t' | b'|' | b'"' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audience::decoding::extract_finding;

    fn blank_rows_above(text: &str, header: u32) -> Result<String, String> {
        let mut read = String::new();
        let mut rows = RowBlanker::new(text.as_bytes(), header, Path::new("list.csv"));
        match rows.read_to_string(&mut read) {
            Ok(_) => Ok(read),
            Err(error) => Err(extract_finding(&error).unwrap().message.clone()),
        }
    }

    #[test]
    fn rows_above_the_header_are_blanked_but_still_counted() {
        for (text, header, expected) in [
            ("phone,name\n1,A\n", 1, "phone,name\n1,A\n"),
            ("Clients\nphone,name\n1,A\n", 2, "\nphone,name\n1,A\n"),
            ("Clients\r\n\r\nphone\r\n1\r\n", 3, "\r\n\r\nphone\r\n1\r\n"),
            ("Clients\r\rphone\r1\r", 3, "\r\rphone\r1\r"),
            ("\"Clients\nof \"\"spring\"\", all\",\nphone\n", 2, "\nphone\n"),
            ("Pizza 5\"\nphone\n", 2, "\nphone\n"),
            ("x,\"a\nb\";\"c\r\nd\"\nphone\n", 2, "\nphone\n"),
            ("\u{feff}\"Clients\nof spring\"\nphone\n", 2, "\nphone\n"),
            ("sep=;\r\nClients\nphone\n", 2, "sep=;\r\n\nphone\n"),
            ("\u{feff}sep=;\nClients\nphone\n", 2, "\u{feff}sep=;\n\nphone\n"),
            ("Clients\n", 2, "\n"),
        ] {
            assert_eq!(blank_rows_above(text, header).as_deref(), Ok(expected), "{text:?}");
        }
        let long = format!("{}\nphone\n1\n", "x".repeat(3 * HEADER_BLOCK));
        assert_eq!(blank_rows_above(&long, 2).as_deref(), Ok("\nphone\n1\n"));
        assert!(blank_rows_above("a\nb\n", 4).unwrap_err().contains("ends before row 4"));
    }
}
