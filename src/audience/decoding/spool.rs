//! A file without a name that only this process sees: what can be read but once, or is dear to read, is kept there.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

/// Bytes that can be read from their beginning as often as somebody wants.
#[derive(Clone, Debug)]
pub struct SpooledFile(Arc<File>);

impl SpooledFile {
    /// Keeps all that an input gives.
    ///
    /// # Errors
    /// When it cannot be read, or there is no room for it.
    pub fn copy_from(mut input: impl Read) -> io::Result<Self> {
        let mut file = tempfile::tempfile()?;
        io::copy(&mut input, &mut file)?;
        Ok(Self(Arc::new(file)))
    }

    /// Keeps what was written.
    pub(in crate::audience) fn from_file(written: File) -> Self {
        Self(Arc::new(written))
    }

    /// A reader of all of it.
    #[must_use]
    pub fn reader(&self) -> SpoolReader {
        SpoolReader { file: Arc::clone(&self.0), at: 0 }
    }
}

/// Reads a [`Spool`] from its beginning, whoever else reads it.
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
