//! File formats that are recognized by their first bytes: gzip and zstd are decompressed, others are rejected.
//!
//! gzip files can have several members, and zstd files several frames (RFC 8878, section 3.1.1).

use std::io;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use zstd::zstd_safe::get_error_name;

use super::{MAX_UNPACKED, finding_error};
use crate::audience::list_findings;
use campaign_core::finding::Finding;

/// A file format that is not a list: its name and the advice for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForeignFormat(&'static str, ForeignAdvice);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForeignAdvice {
    /// Another program can save the file as a list.
    SaveAs,
    /// The list can be inside the file.
    Unpack,
    /// The user needs a CSV file or a workbook instead.
    Other,
}

/// The first bytes of binary files.
const MAGIC: [(&[u8], ForeignFormat); 17] = [
    (b"%PDF", ForeignFormat("a PDF document", ForeignAdvice::Other)),
    (b"{\\rtf", ForeignFormat("a text document (RTF)", ForeignAdvice::SaveAs)),
    (b"7z\xbc\xaf", ForeignFormat("an archive (7z)", ForeignAdvice::Unpack)),
    (b"Rar!", ForeignFormat("an archive (RAR)", ForeignAdvice::Unpack)),
    (b"BZh", ForeignFormat("a compressed file (bzip2)", ForeignAdvice::Unpack)),
    (b"\xfd7zXZ", ForeignFormat("a compressed file (xz)", ForeignAdvice::Unpack)),
    (b"\x04\x22\x4d\x18", ForeignFormat("a compressed file (lz4)", ForeignAdvice::Unpack)),
    (b"LZIP\x01", ForeignFormat("a compressed file (lzip)", ForeignAdvice::Unpack)),
    (b"\x1f\x9d", ForeignFormat("a compressed file (compress)", ForeignAdvice::Unpack)),
    (b"\x1f\x8b", ForeignFormat("a file that was compressed twice", ForeignAdvice::Unpack)),
    (b"\x28\xb5\x2f\xfd", ForeignFormat("a file that was compressed twice", ForeignAdvice::Unpack)),
    (b"SQLite format 3\0", ForeignFormat("a database (SQLite)", ForeignAdvice::SaveAs)),
    (b"PAR1", ForeignFormat("a database table (Parquet)", ForeignAdvice::SaveAs)),
    (b"\x89PNG", ForeignFormat("an image", ForeignAdvice::Other)),
    (b"\xff\xd8\xff", ForeignFormat("an image", ForeignAdvice::Other)),
    (b"GIF8", ForeignFormat("an image", ForeignAdvice::Other)),
    (b"\x7fELF", ForeignFormat("a program", ForeignAdvice::Other)),
];

/// Tags at the beginning of web pages without a doctype (WHATWG, "MIME Sniffing", section 7.1).
const TAGS: [&str; 18] = [
    "html", "head", "script", "iframe", "h1", "div", "font", "table", "a", "style", "title", "b", "body", "br", "p",
    "meta", "center", "form",
];

/// Whether the text starts like a web page. A tag ends with a space or `>`, so a column `<phone>` is not mistaken for
/// `<p`.
fn is_web_page(head: &[u8]) -> bool {
    let Some(rest) = head.strip_prefix(b"<") else { return false };
    if rest.starts_with(b"!--") || rest.get(..13).is_some_and(|rest| rest.eq_ignore_ascii_case(b"!doctype html")) {
        return true;
    }
    TAGS.iter().any(|tag| {
        let (name, end) = (rest.get(..tag.len()), rest.get(tag.len()));
        name.is_some_and(|name| name.eq_ignore_ascii_case(tag.as_bytes()))
            && end.is_some_and(|end| *end == b'>' || end.is_ascii_whitespace())
    })
}

impl ForeignFormat {
    pub(super) fn detect(head: &[u8]) -> Option<Self> {
        let by_magic = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, foreign)| foreign);
        by_magic.or_else(|| Self::detect_archive(head)).or_else(|| Self::detect_text(head))
    }

    /// Detects a tar archive. Its magic number is at byte 257, after the name and the metadata of its first file.
    fn detect_archive(head: &[u8]) -> Option<Self> {
        let is_tar = head.get(257..262) == Some(b"ustar") && head.get(..257).is_some_and(|name| name.contains(&0));
        is_tar.then_some(Self("an archive (tar)", ForeignAdvice::Unpack))
    }

    /// Detects text that is not a table, although its file name often suggests a table.
    fn detect_text(head: &[u8]) -> Option<Self> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        let begins_with =
            |tag: &str| head.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag.as_bytes()));
        if is_web_page(head) {
            return Some(Self(
                "a web page (HTML); many programs export HTML with a workbook file extension",
                ForeignAdvice::SaveAs,
            ));
        }
        if begins_with("<?xml") || begins_with("<Workbook") {
            return Some(Self("an XML file", ForeignAdvice::SaveAs));
        }
        let is_json = match head.split_first() {
            Some((b'{', rest)) => rest.trim_ascii_start().starts_with(b"\""),
            Some((b'[', rest)) => {
                rest.trim_ascii_start().starts_with(b"{") || rest.trim_ascii_start().starts_with(b"[")
            }
            _ => false,
        };
        is_json.then_some(Self("a JSON file", ForeignAdvice::SaveAs))
    }

    pub(super) fn name(self) -> &'static str {
        self.0
    }

    /// The steps that turn the file into a list. `None` if the file should be opened in the program that created it
    /// and saved as a list.
    pub(super) fn advice(self) -> Option<&'static str> {
        match self.1 {
            ForeignAdvice::SaveAs => None,
            ForeignAdvice::Unpack => Some("unpack the file, and use the list inside"),
            ForeignAdvice::Other => Some("use a CSV file or a workbook"),
        }
    }
}

/// The first bytes of a gzip member.
const GZIP: &[u8] = b"\x1f\x8b";

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    pub(super) fn detect(head: &[u8]) -> Option<Self> {
        if head.starts_with(GZIP) {
            return Some(Self::Gzip);
        }
        is_zstd(head).then_some(Self::Zstd)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// A reader of the uncompressed content. `head` contains the first bytes of the input. If the file is damaged or
    /// truncated, reading fails with a finding.
    pub(super) fn unpack(self, input: Box<dyn Read + Send>, head: &[u8], file: &Path) -> io::Result<UnpackedReader> {
        let input = BufReader::with_capacity(1 << 16, input);
        let input: Box<dyn Read + Send> = match self {
            Self::Gzip => Box::new(GzipMembers(Some(GzDecoder::new(input)))),
            Self::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(input)?;
                decoder.window_log_max(LARGEST_WINDOW_LOG)?;
                Box::new(decoder)
            }
        };
        let window = read_window_size(head);
        Ok(UnpackedReader { input, file: file.to_owned(), compression: self, window, remaining: MAX_UNPACKED })
    }
}

/// The members of a gzip file. As in `gzip`, zeros after the last member are padding.
struct GzipMembers<R: BufRead>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(mut input) = self.0.take().map(GzDecoder::into_inner) else { break };
            match input.fill_buf()?.first() {
                None => break,
                Some(0) => skip_padding(&mut input)?,
                Some(first) if *first == GZIP[0] => self.0 = Some(GzDecoder::new(input)),
                Some(_) => return Err(OTHER_BYTES.into()),
            }
        }
        Ok(0)
    }
}

/// The kind of the error for bytes outside the members.
const OTHER_BYTES: ErrorKind = ErrorKind::InvalidData;

/// Skips zeros up to the end of the input.
fn skip_padding(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let rest = input.fill_buf()?;
        match rest.len() {
            0 => return Ok(()),
            _ if rest.iter().any(|byte| *byte != 0) => return Err(OTHER_BYTES.into()),
            length => input.consume(length),
        }
    }
}

/// The uncompressed content of a file.
pub(super) struct UnpackedReader {
    input: Box<dyn Read + Send>,
    file: PathBuf,
    compression: Compression,
    /// The window size of the first zstd frame in bytes, if known.
    window: Option<u64>,
    /// The number of bytes that can still be read before the content is too large.
    remaining: u64,
}

impl Read for UnpackedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.input.read(buffer) {
            // A system error or an interrupted read does not mean that the compressed data is damaged.
            Err(error) if error.raw_os_error().is_some() || error.kind() == ErrorKind::Interrupted => {
                return Err(error);
            }
            Err(error) => return Err(finding_error(self.describe_error(&error))),
            Ok(count) => count,
        };
        self.remaining = self
            .remaining
            .checked_sub(count as u64)
            .ok_or_else(|| finding_error(list_findings::unpacked_file_too_large(&self.file)))?;
        Ok(count)
    }
}

impl UnpackedReader {
    fn describe_error(&self, error: &io::Error) -> Finding {
        let name = self.compression.name();
        if error.kind() == ErrorKind::UnexpectedEof {
            return list_findings::incomplete_compressed_file(&self.file, name);
        }
        let reason = match self.compression {
            Compression::Gzip => (error.kind() == OTHER_BYTES).then_some(ZstdError::NoFrame),
            Compression::Zstd => ZstdError::from_error_name(&error.to_string(), get_error_name),
        };
        match reason {
            Some(ZstdError::Window) => list_findings::large_window(&self.file, self.window),
            Some(ZstdError::Dictionary) => list_findings::dictionary_needed(&self.file),
            Some(ZstdError::Memory) => list_findings::not_enough_memory_to_unpack(&self.file, name),
            Some(ZstdError::NoFrame) => list_findings::extra_data_in_compressed_file(&self.file, name),
            None => list_findings::damaged_compressed_file(&self.file, name),
        }
    }
}

/// The largest window of zstd that decompression allows, as a power of two: 128 MiB, zstd's own default.
pub(super) const LARGEST_WINDOW_LOG: u32 = 27;

/// The first bytes of a zstd frame.
const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The last three of the first four bytes of a skippable frame. The first byte is 0x50 to 0x5f.
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// Whether a file begins with a zstd frame. Parallel and seekable compressors put a skippable frame first.
pub(super) fn is_zstd(head: &[u8]) -> bool {
    let is_skippable = head.first().is_some_and(|first| first & 0xf0 == 0x50) && head.get(1..4) == Some(&SKIPPABLE[..]);
    head.starts_with(&FRAME) || is_skippable
}

/// The window size, in bytes, that is needed to decompress the zstd frame at the beginning of a file. `None` if `head`
/// has no complete frame header.
pub(super) fn read_window_size(head: &[u8]) -> Option<u64> {
    let rest = head.strip_prefix(&FRAME)?;
    let (descriptor, rest) = rest.split_first()?;
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let window = *rest.first()?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // In a single-segment frame, the window is the content size, which follows the dictionary ID.
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let (length, offset) = [(1, 0), (2, 256), (4, 0), (8, 0)][usize::from(descriptor >> 6)];
    let size = rest.get(dictionary..dictionary + length)?;
    let size = size.iter().rev().fold(0_u64, |size, byte| size << 8 | u64::from(*byte));
    size.checked_add(offset)
}

/// The reason why a compressed file is rejected although it might be intact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZstdError {
    /// The window is larger than [`LARGEST_WINDOW_LOG`] allows.
    Window,
    /// The file was compressed with a dictionary.
    Dictionary,
    /// There is not enough memory.
    Memory,
    /// Another frame was expected, but other bytes follow. This includes bytes after the members of a gzip file.
    NoFrame,
}

impl ZstdError {
    /// The reason for a zstd error. The library returns the name of the error code instead of the code itself;
    /// `get_name` looks up the name of a code.
    pub(super) fn from_error_name(error: &str, get_name: impl Fn(usize) -> &'static str) -> Option<Self> {
        // The `ZSTD_ErrorCode` values in zstd_errors.h are stable. zstd returns them as negative numbers.
        let codes = [(10, Self::NoFrame), (16, Self::Window), (32, Self::Dictionary), (64, Self::Memory)];
        codes.into_iter().find(|(code, _)| error == get_name(0_usize.wrapping_sub(*code))).map(|(_, reason)| reason)
    }
}

#[cfg(test)]
mod foreign_tests {
    use super::*;

    #[test]
    fn foreign_formats_are_recognized() {
        let mut tar = [0; 512];
        tar[..8].copy_from_slice(b"list.csv");
        tar[257..262].copy_from_slice(b"ustar");
        for (head, name) in [
            (&b"%PDF-1.7"[..], "a PDF document"),
            (b"\xef\xbb\xbf <!DOCTYPE html><html>", "a web page"),
            (b"<TABLE border=1>", "a web page"),
            (b"\n<!-- saved from url=(0014)about:internet -->", "a web page"),
            (b"<head>\n<title>Sign in</title>", "a web page"),
            (b"<p\n>Sign in", "a web page"),
            (b"<?xml version=\"1.0\"?><?mso-application", "an XML file"),
            (b"[ {\"phone\": 1}]", "a JSON file"),
            (b"{\n \"phone\": 1}", "a JSON file"),
            (b"7z\xbc\xaf\x27\x1c", "an archive (7z)"),
            (&tar, "an archive (tar)"),
        ] {
            assert!(ForeignFormat::detect(head).is_some_and(|foreign| foreign.name().starts_with(name)), "{name}");
        }
        for text in ["", "p", "phone", "<phone>,name", "<a", "[phone],name", "{phone}", "телефон", "Rar,phone"] {
            assert_eq!(ForeignFormat::detect(text.as_bytes()), None, "{text:?}");
        }
    }
}

#[cfg(test)]
mod zstd_frame_tests {
    use super::*;

    #[test]
    fn window_size_is_read_from_the_frame_header() {
        let frame = |rest: &[u8]| [&FRAME[..], rest].concat();
        for (head, expected) in [
            (frame(&[0x00, 21 << 3]), Some(2 << 30)),
            (frame(&[0x04, 17 << 3 | 4]), Some(192 << 20)),
            (frame(&[0xa0, 0, 0, 0, 0x10]), Some(256 << 20)),
            (frame(&[0x61, 9, 0, 1]), Some(512)),
            (frame(&[0x20, 7]), Some(7)),
            (frame(&[0xe0, 1, 0, 0]), None),
            (frame(&[]), None),
            (b"phone".to_vec(), None),
        ] {
            assert_eq!(read_window_size(&head), expected, "{head:x?}");
        }
    }
}
