//! The frozen list of a run while it is read: at its end it is known to be what the run began with, or not.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::ResultsError;
use crate::check::Tee;
use crate::regular_file;

/// How much of the list is read at once.
const BUFFER: usize = 1 << 16;

/// A list of recipients that is hashed while it is read.
pub(super) struct FrozenList<'a> {
    path: &'a Path,
    tee: Tee<BufReader<File>, File>,
}

impl<'a> FrozenList<'a> {
    /// Opens the list at `path`.
    pub(super) fn open(path: &'a Path) -> Result<Self, ResultsError> {
        let file = regular_file::open(path).map_err(unreadable)?;
        Ok(Self { path, tee: Tee::new(BufReader::with_capacity(BUFFER, file), None) })
    }

    /// Reads what is left of it, and makes sure that it is the list with this SHA-256 in hexadecimal.
    pub(super) fn finish(mut self, sha256: &str) -> Result<(), ResultsError> {
        let (_, read) = self.tee.finish().map_err(unreadable)?;
        if read == sha256 { Ok(()) } else { Err(ResultsError::Changed(self.path.to_owned())) }
    }
}

impl Read for FrozenList<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tee.read(buffer)
    }
}

fn unreadable(error: io::Error) -> ResultsError {
    ResultsError::Recipients(error.to_string())
}
