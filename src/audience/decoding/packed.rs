//! Files that are packed, known by their first bytes.

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::{MOST_UNPACKED, refusal};
use crate::audience::form_trouble as trouble;

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"\x1f\x8b") {
            return Some(Self::Gzip);
        }
        head.starts_with(b"\x28\xb5\x2f\xfd").then_some(Self::Zstd)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// What is packed; damage and a file without end are told as findings.
    pub(super) fn unpack(self, input: Box<dyn Read + Send>, file: &Path) -> io::Result<Unpacked> {
        let input = BufReader::with_capacity(1 << 16, input);
        let input: Box<dyn Read + Send> = match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(input)),
            Self::Zstd => Box::new(zstd::Decoder::with_buffer(input)?),
        };
        Ok(Unpacked { input, file: file.to_owned(), packing: self, left: MOST_UNPACKED })
    }
}

/// What comes out of a packed file.
pub(super) struct Unpacked {
    input: Box<dyn Read + Send>,
    file: PathBuf,
    packing: Packing,
    left: u64,
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer);
        let count = read.map_err(|_| refusal(trouble::damaged_pack(&self.file, self.packing.name())))?;
        self.left =
            self.left.checked_sub(count as u64).ok_or_else(|| refusal(trouble::unpacks_too_much(&self.file)))?;
        Ok(count)
    }
}
