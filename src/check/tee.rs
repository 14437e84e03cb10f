//! Reading and copying at once: what is looked at is what is frozen.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

/// A reader that hashes what passes through it, and copies it where somebody wants a copy.
pub struct Tee<R, W> {
    input: R,
    copy: Option<W>,
    hash: Sha256,
}

impl<R: Read, W: Write> Tee<R, W> {
    /// Reads from `input`, and writes everything to `copy` as well.
    pub fn new(input: R, copy: Option<W>) -> Self {
        Self { input, copy, hash: Sha256::new() }
    }

    /// Reads to the end; gives back the copy and the SHA-256 of everything, in hexadecimal.
    ///
    /// # Errors
    /// When reading or copying fails.
    pub fn finish(mut self) -> io::Result<(Option<W>, String)> {
        io::copy(&mut self, &mut io::sink())?;
        let hash = self.hash.finalize();
        Ok((self.copy, hash.iter().map(|byte| format!("{byte:02x}")).collect()))
    }
}

impl<R: Read, W: Write> Read for Tee<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        let read = &buffer[..count];
        if let Some(copy) = &mut self.copy {
            copy.write_all(read)?;
        }
        self.hash.update(read);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_and_the_hash_are_of_the_whole_file_however_far_it_was_read() {
        let mut tee = Tee::new(&b"abc"[..], Some(Vec::new()));
        let mut first = [0];
        tee.read_exact(&mut first).unwrap();
        let (copy, hash) = tee.finish().unwrap();
        assert_eq!(copy.unwrap(), b"abc");
        assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
