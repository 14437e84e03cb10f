//! The ZIP archive of a workbook: its parts by name, and a look at its directory before the library reads that whole.

use std::collections::HashMap;
use std::io::{Read, Seek};
use std::path::Path;

use zip::ZipArchive;
use zip::read::ZipFile;

use super::WorkbookError;
use super::events::{SizeFindings, XmlEvents};
use crate::audience::form_trouble as trouble;

/// The most parts of a workbook.
const MAX_PARTS: u64 = 1 << 15;
/// The most bytes of their directory.
const MAX_DIRECTORY: u64 = 8 << 20;
/// How an entry of the directory begins.
const ENTRY: [u8; 4] = *b"PK\x01\x02";
/// Its length without its name, its extra fields and its comment.
const ENTRY_LENGTH: usize = 46;

/// The parts of a workbook.
pub(super) struct WorkbookArchive<'f, S> {
    pub(super) file: &'f Path,
    zip: ZipArchive<S>,
    /// Their numbers by name, in lower case: Windows programs do not tell cases apart.
    names: HashMap<String, usize>,
}

impl<'f, S: Read + Seek> WorkbookArchive<'f, S> {
    pub(super) fn open(mut input: S, file: &'f Path) -> Result<Self, WorkbookError> {
        input.rewind()?;
        if !is_directory_small(&mut input)? {
            return Err(trouble::large_workbook(file, "it has too many parts").into());
        }
        input.rewind()?;
        let zip = ZipArchive::new(input)?;
        let names =
            zip.file_names().enumerate().filter_map(|(number, name)| Some((normalize_name(&name.ok()?), number)));
        let names = names.collect();
        Ok(Self { file, zip, names })
    }

    /// The names of all parts, in lower case.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    pub(super) fn has_part(&self, part: &str) -> bool {
        self.names.contains_key(&normalize_name(part))
    }

    /// The part of that name, packed or not.
    pub(super) fn open_part(&mut self, part: &str) -> Result<Option<ZipFile<'_, S>>, WorkbookError> {
        let Some(number) = self.names.get(&normalize_name(part)) else { return Ok(None) };
        Ok(Some(self.zip.by_index(*number)?))
    }

    /// The XML events of the part of that name.
    pub(super) fn read_events(&mut self, part: &str) -> Result<Option<XmlEvents<ZipFile<'_, S>>>, WorkbookError> {
        let excess = SizeFindings {
            piece: trouble::large_workbook(
                self.file,
                &format!("`{part}` contains a text value, tag or comment that is larger than 1 MiB"),
            ),
            part: trouble::large_workbook(
                self.file,
                &format!("`{part}` contains more than 4 GiB of data when uncompressed"),
            ),
        };
        Ok(self.open_part(part)?.map(|entry| XmlEvents::new(entry, excess)))
    }
}

fn normalize_name(name: &str) -> String {
    name.replace('\\', "/").to_ascii_lowercase()
}

/// Whether the directory finds room in memory. What the archive says of its own directory may be a lie, so that its entries
/// are counted wherever they stand.
fn is_directory_small(input: &mut impl Read) -> Result<bool, WorkbookError> {
    let mut block = vec![0; 1 << 18];
    let (mut held, mut parts, mut bytes) = (0, 0_u64, 0_u64);
    loop {
        let count = input.read(&mut block[held..])?;
        let ready = held + count;
        let mut at = 0;
        // An entry that the block does not hold whole is found again in the next one.
        while ready - at >= ENTRY_LENGTH {
            let Some(found) = find_entry(&block[at..ready - ENTRY_LENGTH + ENTRY.len()]) else {
                at = ready - ENTRY_LENGTH + 1;
                break;
            };
            let entry = &block[at + found..];
            let length = |at: usize| u64::from(u16::from_le_bytes([entry[at], entry[at + 1]]));
            parts += 1;
            bytes += ENTRY_LENGTH as u64 + length(28) + length(30) + length(32);
            at += found + ENTRY.len();
        }
        if parts > MAX_PARTS || bytes > MAX_DIRECTORY {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
        block.copy_within(at..ready, 0);
        held = ready - at;
    }
}

/// Where an entry of the directory begins.
fn find_entry(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|&byte| byte == ENTRY[0]) {
        if bytes[from + at..].starts_with(&ENTRY) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn entries(count: usize, name: u16) -> Vec<u8> {
        let mut entry = [ENTRY.to_vec(), vec![0; ENTRY_LENGTH - 4]].concat();
        entry[28..30].copy_from_slice(&name.to_le_bytes());
        entry.resize(ENTRY_LENGTH + usize::from(name), b'P');
        entry.repeat(count)
    }

    #[test]
    fn directory_is_measured_before_it_is_read() {
        let is_small = |bytes: Vec<u8>| is_directory_small(&mut io::Cursor::new(bytes)).is_ok_and(|small| small);
        assert!(is_small(Vec::new()) && is_small(vec![b'P'; 1 << 20]));
        let most = usize::try_from(MAX_PARTS).unwrap();
        assert!(is_small(entries(most, 10)));
        assert!(!is_small(entries(most + 1, 10)));
        assert!(is_small(entries(120, u16::MAX)));
        assert!(!is_small(entries(140, u16::MAX)));
    }

    #[test]
    fn entry_is_counted_once_wherever_a_block_ends() {
        for shift in 0..100 {
            let bytes = [vec![b'x'; (1 << 18) - shift], entries(2, 0)].concat();
            let mut split = io::Cursor::new(bytes.clone());
            assert!(is_directory_small(&mut split).is_ok_and(|small| small));
            assert_eq!(find_entry(&bytes), Some((1 << 18) - shift));
        }
        let most = usize::try_from(MAX_PARTS).unwrap();
        let counted = |count| is_directory_small(&mut io::Cursor::new(entries(count, 3))).is_ok_and(|small| small);
        assert!(counted(most) && !counted(most + 1));
    }
}
