//! A reader that hashes a list while it is read, and can copy it to a second file.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

/// A reader that hashes its input, and optionally copies it.
///
/// If the copy fails, reading also fails; [`Tee::copy_failure`] returns the cause.
pub struct Tee<R, W> {
    input: R,
    copy: Option<W>,
    copy_failure: Option<io::Error>,
    hash: Sha256,
}

impl<R: Read, W: Write> Tee<R, W> {
    /// A reader of `input` that also writes everything to `copy`.
    pub fn new(input: R, copy: Option<W>) -> Self {
        Self { input, copy, copy_failure: None, hash: Sha256::new() }
    }

    /// The error of the copy, if it ended the reading.
    pub fn copy_failure(&mut self) -> Option<io::Error> {
        self.copy_failure.take()
    }

    /// Reads to the end and flushes the copy. Returns the SHA-256 of everything, in hexadecimal.
    ///
    /// # Errors
    /// If reading or copying fails.
    pub fn finish(&mut self) -> io::Result<String> {
        io::copy(self, &mut io::sink())?;
        self.write_copy(W::flush)?;
        let hash = std::mem::take(&mut self.hash).finalize();
        Ok(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Runs an operation on the copy, if there is one, and keeps its error.
    fn write_copy(&mut self, copy: impl FnOnce(&mut W) -> io::Result<()>) -> io::Result<()> {
        let Some(Err(error)) = self.copy.as_mut().map(copy) else { return Ok(()) };
        let read_error = io::Error::new(error.kind(), "the copy cannot be written");
        self.copy_failure = Some(error);
        Err(read_error)
    }
}

impl<R: Read, W: Write> Read for Tee<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        let read = &buffer[..count];
        self.write_copy(|copy| copy.write_all(read))?;
        self.hash.update(read);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_and_hash_cover_the_whole_file() {
        let mut copy = Vec::new();
        let mut tee = Tee::new(&b"abc"[..], Some(&mut copy));
        let mut first = [0];
        tee.read_exact(&mut first).unwrap();
        let hash = tee.finish().unwrap();
        assert_eq!(copy, b"abc");
        assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn copy_failure_is_not_reported_as_a_read_failure() {
        let mut full = [0; 2];
        let mut tee = Tee::new(&b"abc"[..], Some(&mut full[..]));
        assert!(tee.read_to_end(&mut Vec::new()).is_err());
        assert_eq!(tee.copy_failure().map(|error| error.kind()), Some(io::ErrorKind::WriteZero));
        let folder = tempfile::tempdir().unwrap();
        let mut tee = Tee::new(std::fs::File::open(folder.path()).unwrap(), Some(Vec::new()));
        assert!(tee.finish().is_err());
        assert!(tee.copy_failure().is_none(), "a folder cannot be read, and its copy is fine");
    }
}
