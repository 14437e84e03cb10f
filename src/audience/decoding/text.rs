//! Text in any encoding becomes UTF-8.
//!
//! UTF-8 passes as it is, and costs a look for the first character that is not ASCII. What stands from there on tells the
//! encoding: up to there all the encodings are the same that are not known by a mark or by their zeros.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::written::encoding_name;
use super::{DecodingSource, DetectedFormat, finding_error};
use crate::audience::form_trouble as trouble;
use crate::domain::Region;
use crate::finding::Finding;

/// How much text the encoding is judged by, in bytes.
const SAMPLE: usize = 1 << 16;
/// How much is read and decoded at a time, in bytes.
const BLOCK: usize = 1 << 16;
/// UTF-8 with some damage is told from another encoding by so many sound characters for each that is not.
const SOUND_FOR_DAMAGED: usize = 3;

/// A text on its way to UTF-8.
pub(super) struct TextDecoder<R> {
    input: R,
    file: PathBuf,
    region: Option<Region>,
    /// Whether a campaign describes it.
    has_keys: bool,
    format: Arc<DetectedFormat>,
    stage: DecodingStage,
    /// What goes out next, from `at` on.
    ready: Vec<u8>,
    at: usize,
    /// Line ends that went out of a decoder.
    lines: u64,
}

/// What is known of the encoding.
enum DecodingStage {
    /// Only characters were met that are the same everywhere.
    Ascii,
    /// It is UTF-8, or whoever reads it tells where it is not.
    Utf8,
    /// It is another one.
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
    /// Text that begins with `head`, in the encoding that was told, if one was.
    pub(super) fn new(
        input: R,
        head: &[u8],
        source: DecodingSource<'_>,
        written: Arc<DetectedFormat>,
    ) -> Result<Self, Box<Finding>> {
        let DecodingSource { file, region, has_keys, .. } = source;
        let told = source.form.encoding;
        if head.starts_with(b"\xff\xfe\0\0") || head.starts_with(b"\0\0\xfe\xff") {
            return Err(trouble::utf32_encoding(file).into());
        }
        let marked = Encoding::for_bom(head).map(|(encoding, _)| encoding);
        let encoding = match (told, marked) {
            (Some(told), Some(marked)) if told != marked && !(is_utf16(told) && is_utf16(marked)) => {
                return Err(trouble::wrong_encoding(file, &encoding_name(told), &encoding_name(marked)).into());
            }
            (_, Some(marked)) => Some(marked),
            (Some(told), None) if told != UTF_8 && told.is_single_byte() && is_surely_utf8(head) => {
                return Err(trouble::wrong_encoding(file, &encoding_name(told), &encoding_name(UTF_8)).into());
            }
            (Some(told), None) => Some(told),
            (None, None) => detect_utf16_without_bom(head),
        };
        let stage = match encoding {
            None => DecodingStage::Ascii,
            Some(encoding) if encoding == UTF_8 => DecodingStage::Utf8,
            Some(encoding) => {
                let _ = written.encoding.set(encoding);
                DecodingStage::with_encoding(encoding)
            }
        };
        let file = file.to_owned();
        Ok(Self { input, file, region, has_keys, format: written, stage, ready: Vec::new(), at: 0, lines: 0 })
    }

    /// Knows the encoding by what was read from the first character on that is not ASCII.
    fn detect_encoding(&mut self, sample: &[u8], ended: bool) -> io::Result<DecodingStage> {
        if is_rather_utf8(sample, ended) {
            return Ok(DecodingStage::Utf8);
        }
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(sample, ended);
        let home = self.region.map(|region| region.to_string().to_lowercase());
        let encoding = detector.guess(home.as_deref().map(str::as_bytes), Utf8Detection::Deny);
        let sound = encoding.new_decoder_without_bom_handling().decode_to_utf8_without_replacement(
            sample,
            &mut vec![0; 3 * sample.len() + 16],
            ended,
        );
        if matches!(sound.0, DecoderResult::Malformed(..)) {
            return Err(finding_error(trouble::unknown_encoding(&self.file, self.has_keys)));
        }
        let _ = self.format.encoding.set(encoding);
        Ok(DecodingStage::with_encoding(encoding))
    }

    /// Reads on until there is enough to judge; tells whether the text ends there.
    fn read_sample(&mut self, mut sample: Vec<u8>) -> io::Result<(Vec<u8>, bool)> {
        let wanted = SAMPLE.saturating_sub(sample.len());
        let read = self.input.by_ref().take(wanted as u64).read_to_end(&mut sample)?;
        Ok((sample, read < wanted))
    }

    /// Decodes some bytes behind what is ready.
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
                Err(finding_error(trouble::invalid_in_encoding(&self.file, self.lines + 1, &encoding, self.has_keys)))
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
                    self.stage = self.detect_encoding(&sample, ended)?;
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

/// UTF-16 by its zeros: half of what stands between cells and all digits have one, always on the same side.
fn detect_utf16_without_bom(head: &[u8]) -> Option<&'static Encoding> {
    let (mut first, mut second) = (0, 0);
    let pairs = head.chunks_exact(2);
    let all = pairs.len();
    for pair in pairs {
        first += usize::from(pair[0] == 0);
        second += usize::from(pair[1] == 0);
    }
    match (first, second) {
        (0, zeros) if zeros > 0 && zeros * 5 >= all => Some(UTF_16LE),
        (zeros, 0) if zeros > 0 && zeros * 5 >= all => Some(UTF_16BE),
        _ => None,
    }
}

/// Whether text has characters that are UTF-8 and hardly anything else.
fn is_surely_utf8(head: &[u8]) -> bool {
    let (sound, damaged) = count_utf8_characters(head, false);
    damaged == 0 && sound >= SOUND_FOR_DAMAGED
}

/// Whether text is UTF-8, or UTF-8 with some damage.
fn is_rather_utf8(sample: &[u8], ended: bool) -> bool {
    let (sound, damaged) = count_utf8_characters(sample, ended);
    sound >= damaged * SOUND_FOR_DAMAGED
}

/// How many characters of text are UTF-8 and not ASCII, and how many are broken; the last one may be cut unless text ends.
fn count_utf8_characters(text: &[u8], ended: bool) -> (usize, usize) {
    let (mut sound, mut damaged, mut behind) = (0, 0, 0);
    for chunk in text.utf8_chunks() {
        sound += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
        behind += chunk.valid().len() + chunk.invalid().len();
        let cut =
            !ended && behind == text.len() && str::from_utf8(chunk.invalid()).is_err_and(|e| e.error_len().is_none());
        damaged += usize::from(!chunk.invalid().is_empty() && !cut);
    }
    (sound, damaged)
}
