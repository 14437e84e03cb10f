//! The frozen list of a run while it is read: at its end it is known to be what the run began with, or not.

use std::io::{self, BufReader, Read, Sink};
use std::path::{Path, PathBuf};

use super::ResultsError;
use crate::check::Tee;
use crate::ledger::{Copies, ListReader};

/// How much of the list is read at once.
const BUFFER_BYTES: usize = 1 << 16;

/// Where a list of recipients is.
#[derive(Clone, Copy)]
pub enum ListSource<'a> {
    /// Where the user has it.
    Outside {
        /// As it is called.
        path: &'a Path,
        /// What opens it as text in UTF-8.
        open: &'a (dyn Fn() -> io::Result<ListReader> + Sync),
    },
    /// Among the copies of a run.
    Copies(&'a Copies),
}

impl<'a> ListSource<'a> {
    /// The place, as people find it.
    pub(super) fn path(self) -> &'a Path {
        match self {
            Self::Outside { path: place, .. } => place,
            Self::Copies(copies) => copies.place().as_ref(),
        }
    }

    fn open(self) -> io::Result<ListReader> {
        match self {
            Self::Outside { open, .. } => open(),
            Self::Copies(copies) => copies.open_list(),
        }
    }
}

/// A list of recipients that is hashed while it is read.
pub(super) struct FrozenList {
    /// As people find it.
    path: PathBuf,
    tee: Tee<BufReader<ListReader>, Sink>,
}

impl FrozenList {
    /// Opens the list.
    pub(super) fn open(source: ListSource<'_>) -> Result<Self, ResultsError> {
        let list = source.open().map_err(list_read_error)?;
        Ok(Self { path: source.path().to_owned(), tee: Tee::new(BufReader::with_capacity(BUFFER_BYTES, list), None) })
    }

    /// Reads what is left of it, and makes sure that it is the list with this SHA-256 in hexadecimal.
    pub(super) fn verify_hash(mut self, sha256: &str) -> Result<(), ResultsError> {
        let read = self.tee.finish().map_err(list_read_error)?;
        if read == sha256 { Ok(()) } else { Err(ResultsError::ListChanged(self.path)) }
    }
}

impl Read for FrozenList {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tee.read(buffer)
    }
}

fn list_read_error(error: io::Error) -> ResultsError {
    ResultsError::Recipients(error.to_string())
}
