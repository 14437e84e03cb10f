//! Who was forgotten, kept beside the ledger: a backup from before still has them, and has to lose them again.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::domain::{Addressee, Phone};
use crate::ledger::NumberKey;
use crate::private::{self, ExistingFile};

/// The file in the state folder: a key, and for each number a hash of it with that key.
const FILE: &str = "forgotten";

/// The numbers that were forgotten from a state folder.
pub(super) struct ForgottenNumbers {
    key: NumberKey,
    known: HashSet<u64>,
}

impl ForgottenNumbers {
    /// Those of a state folder; nothing where none was.
    ///
    /// # Errors
    /// When the file cannot be read, or is not as it was written.
    pub(super) fn read(state: &Path) -> io::Result<Option<Self>> {
        match std::fs::read_to_string(state.join(FILE)) {
            Ok(text) => Self::parse(&text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps that a number was forgotten, on the disk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn add(state: &Path, phone: Phone) -> io::Result<()> {
        private::create_folder(state)?;
        let path = state.join(FILE);
        drop(private::open_file(&path, ExistingFile::Keep)?);
        let mut file = File::options().read(true).write(true).open(&path)?;
        file.lock()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // What a crash cut off is written again behind it.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        if whole == 0 {
            let key: [u8; NumberKey::LENGTH] = rand::random();
            text = key.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
            file.write_all(text.as_bytes())?;
        }
        let kept = Self::parse(&text)?;
        if !kept.contains(phone) {
            file.write_all(format!("{}\n", kept.hash_number(phone)).as_bytes())?;
        }
        file.sync_all()?;
        private::sync_entry(&path)
    }

    /// Whether a number was forgotten.
    pub(super) fn contains(&self, phone: Phone) -> bool {
        self.known.contains(&self.hash_number(phone))
    }

    fn hash_number(&self, phone: Phone) -> u64 {
        Addressee::Forgotten(self.key.hash_number(phone)).to_u64()
    }

    fn parse(text: &str) -> io::Result<Self> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, format!("`{FILE}` is corrupt"));
        let (key, numbers) = text.split_once('\n').ok_or_else(damaged)?;
        let byte = |place: usize| key.get(place..place + 2).and_then(|byte| u8::from_str_radix(byte, 16).ok());
        let bytes: Option<Vec<u8>> = (0..key.len()).step_by(2).map(byte).collect();
        let key = bytes.and_then(|bytes| bytes.try_into().ok()).map(NumberKey::new).ok_or_else(damaged)?;
        let known: Result<HashSet<u64>, _> = numbers.lines().map(str::parse).collect();
        Ok(Self { key, known: known.map_err(|_| damaged())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_numbers_are_hashed_and_foreign_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let phone = |last: u64| Phone::new(380_501_234_560 + last).unwrap();
        assert!(ForgottenNumbers::read(folder.path()).unwrap().is_none());
        for last in [1, 2, 1] {
            ForgottenNumbers::add(folder.path(), phone(last)).unwrap();
        }
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(text.lines().count() == 3 && !text.contains("3805012345"));
        // A crash in the middle of a line loses that line alone.
        std::fs::write(folder.path().join(FILE), format!("{text}12")).unwrap();
        ForgottenNumbers::add(folder.path(), phone(3)).unwrap();
        let known = ForgottenNumbers::read(folder.path()).unwrap().unwrap();
        assert_eq!([1, 2, 3, 4].map(|last| known.contains(phone(last))), [true, true, true, false]);
        for damaged in ["", "ab", "zz\n", "ключ\n", &format!("{text}x\n")] {
            std::fs::write(folder.path().join(FILE), damaged).unwrap();
            assert!(ForgottenNumbers::read(folder.path()).is_err(), "{damaged}");
        }
    }
}
