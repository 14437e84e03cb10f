//! Decompression of lists, recognized by their first bytes: gzip with several members, zstd with several frames.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use zstd::zstd_safe::get_error_name;

use super::zstd_frame::{self, ZstdError};
use super::{MAX_UNPACKED, finding_error};
use crate::audience::form_trouble as trouble;
use crate::finding::Finding;

/// The first bytes of a gzip member.
const GZIP: &[u8] = b"\x1f\x8b";

/// How a file is packed.
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
        zstd_frame::is_zstd(head).then_some(Self::Zstd)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// What is packed. `head` holds the first bytes of the input. Damage and a file without an end are findings.
    pub(super) fn unpack(self, input: Box<dyn Read + Send>, head: &[u8], file: &Path) -> io::Result<UnpackedReader> {
        let input = BufReader::with_capacity(1 << 16, input);
        let input: Box<dyn Read + Send> = match self {
            Self::Gzip => Box::new(GzipMembers(Some(GzDecoder::new(input)))),
            Self::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(input)?;
                decoder.window_log_max(zstd_frame::LARGEST_WINDOW_LOG)?;
                Box::new(decoder)
            }
        };
        let window = zstd_frame::read_window(head);
        Ok(UnpackedReader { input, file: file.to_owned(), packing: self, window, left: MAX_UNPACKED })
    }
}

/// The members of a gzip file, one after the other. Zeros behind the last one are padding, as for `gzip` itself.
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

/// The error of bytes that belong to no member.
const OTHER_BYTES: ErrorKind = ErrorKind::InvalidData;

/// Reads zeros to the end of the input.
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

/// What comes out of a packed file.
pub(super) struct UnpackedReader {
    input: Box<dyn Read + Send>,
    file: PathBuf,
    packing: Compression,
    /// The window that the first frame of zstd needs.
    window: Option<u64>,
    left: u64,
}

impl Read for UnpackedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.input.read(buffer) {
            // The disk fails, and not the file.
            Err(error) if error.raw_os_error().is_some() || error.kind() == ErrorKind::Interrupted => {
                return Err(error);
            }
            Err(error) => return Err(finding_error(self.describe_error(&error))),
            Ok(count) => count,
        };
        self.left =
            self.left.checked_sub(count as u64).ok_or_else(|| finding_error(trouble::unpacks_too_much(&self.file)))?;
        Ok(count)
    }
}

impl UnpackedReader {
    fn describe_error(&self, error: &io::Error) -> Finding {
        let name = self.packing.name();
        if error.kind() == ErrorKind::UnexpectedEof {
            return trouble::incomplete_pack(&self.file, name);
        }
        let reason = match self.packing {
            Compression::Gzip => (error.kind() == OTHER_BYTES).then_some(ZstdError::NoFrame),
            Compression::Zstd => ZstdError::from_error_name(&error.to_string(), get_error_name),
        };
        match reason {
            Some(ZstdError::Window) => trouble::large_window(&self.file, self.window),
            Some(ZstdError::Dictionary) => trouble::needs_dictionary(&self.file),
            Some(ZstdError::Memory) => trouble::no_memory_to_unpack(&self.file, name),
            Some(ZstdError::NoFrame) => trouble::other_bytes_in_pack(&self.file, name),
            None => trouble::damaged_pack(&self.file, name),
        }
    }
}
