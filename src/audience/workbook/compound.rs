//! Looks at an `.xls` before the library reads it, which trusts what such a file says of itself: its chains of sectors have an
//! end ([MS-CFB]), and its sheets find room in memory (`biff.rs`).

use super::WorkbookError;
use super::biff::check_memory;

/// From here on a number is no sector.
const NO_SECTOR: u32 = 0xffff_fffa;
/// Streams below this size are kept in small sectors, of 64 bytes.
const SMALL_STREAM: usize = 4096;
const SMALL_SECTOR: usize = 64;
/// The most entries of the directory.
const MAX_ENTRIES: usize = 1 << 14;

/// What is wrong with an `.xls`.
pub(super) enum XlsFlaw {
    Damaged,
    TooLarge,
}

impl XlsFlaw {
    /// The refusal; `too_large` is what is told of a workbook that does not fit.
    pub(super) fn into_error(self, too_large: impl FnOnce() -> WorkbookError) -> WorkbookError {
        match self {
            Self::Damaged => WorkbookError::Damaged("its internal structure is damaged".to_owned()),
            Self::TooLarge => too_large(),
        }
    }
}

/// Tells what is wrong with it, and whether it is a workbook that Excel locked; what is no such file at all the library
/// tells. It may take so many bytes of memory.
pub(super) fn check_compound(bytes: &[u8], most: u64) -> Result<bool, XlsFlaw> {
    let size = match u16_at(bytes, 30) {
        Some(9) => 512,
        Some(12) => 4096,
        _ => return Ok(false),
    };
    let fat = read_fat(bytes, size).ok_or(XlsFlaw::Damaged)?;
    let large = |start: u32, length: usize| read_chain(bytes.get(size..)?, size, &fat, start, length);
    let whole = bytes.len();
    let header = |at: usize| u32_at(bytes, at).ok_or(XlsFlaw::Damaged);
    let directory = large(header(48)?, whole).ok_or(XlsFlaw::Damaged)?;
    let entries: Vec<&[u8]> = directory.chunks_exact(128).collect();
    let start_of = |entry: &[u8]| u32_at(entry, 116).unwrap_or(NO_SECTOR);
    let root = entries.first().ok_or(XlsFlaw::Damaged)?;
    let small_fat = match header(64)? {
        0 => Vec::new(),
        _ => read_numbers(&large(header(60)?, whole).ok_or(XlsFlaw::Damaged)?),
    };
    if !are_chains_finite(&fat) || !are_chains_finite(&small_fat) {
        return Err(XlsFlaw::Damaged);
    }
    if entries.len() > MAX_ENTRIES {
        return Err(XlsFlaw::TooLarge);
    }
    // The library keeps the file and the stream.
    let most = most.checked_sub(2 * bytes.len() as u64).ok_or(XlsFlaw::TooLarge)?;
    // The library takes the first entry of that name, by rules of its own: what it could take is looked at.
    for entry in entries.iter().filter(|entry| is_workbook_entry(entry)) {
        let low = u64::from(u32_at(entry, 120).unwrap_or(0));
        let high = if size == 512 { 0 } else { u64::from(u32_at(entry, 124).unwrap_or(0)) };
        let length = usize::try_from(high << 32 | low).unwrap_or(usize::MAX);
        let stream = if length < SMALL_STREAM {
            let small = large(start_of(root), whole).ok_or(XlsFlaw::Damaged)?;
            read_chain(&small, SMALL_SECTOR, &small_fat, start_of(entry), length)
        } else {
            large(start_of(entry), length)
        };
        check_memory(&stream.ok_or(XlsFlaw::Damaged)?, most)?;
    }
    Ok(entries.iter().any(|entry| latin_letters(entry) == b"encryptedpackage"))
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

fn read_numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect()
}

/// Whether the name of an entry of the directory reads `Workbook` or `Book` in any encoding.
fn is_workbook_entry(entry: &[u8]) -> bool {
    latin_letters(entry).windows(4).any(|four| four == b"book")
}

/// The Latin letters of the name of an entry, in lower case.
fn latin_letters(entry: &[u8]) -> Vec<u8> {
    entry[..64].iter().filter(|byte| byte.is_ascii_alphabetic()).map(u8::to_ascii_lowercase).collect()
}

/// Which sector follows each.
fn read_fat(bytes: &[u8], size: usize) -> Option<Vec<u32>> {
    let sector = |id: u32| bytes.get((id as usize + 1).checked_mul(size)?..).map(|rest| &rest[..size.min(rest.len())]);
    let mut of_fat = read_numbers(bytes.get(76..512)?);
    let mut next = u32_at(bytes, 68)?;
    for _ in 0..=bytes.len() / size {
        if next >= NO_SECTOR {
            of_fat.retain(|id| *id < NO_SECTOR);
            // A sector that is named again and again would be kept as often.
            if of_fat.len() > bytes.len() / size + 1 {
                return None;
            }
            let sectors = of_fat.into_iter();
            return sectors
                .map(|id| sector(id).map(read_numbers))
                .collect::<Option<Vec<_>>>()
                .map(|parts| parts.concat());
        }
        of_fat.extend(read_numbers(sector(next)?));
        next = of_fat.pop()?;
    }
    None
}

/// The bytes of a chain of sectors; nothing where it leads in circles or out of the file.
fn read_chain(sectors: &[u8], size: usize, fat: &[u32], start: u32, length: usize) -> Option<Vec<u8>> {
    let (mut bytes, mut next) = (Vec::new(), start);
    for _ in 0..=fat.len() {
        if next >= NO_SECTOR || bytes.len() >= length {
            bytes.truncate(length);
            return Some(bytes);
        }
        let rest = sectors.get((next as usize).checked_mul(size)?..)?;
        bytes.extend_from_slice(&rest[..size.min(rest.len())]);
        next = *fat.get(next as usize)?;
    }
    None
}

/// Whether no chain leads in circles.
fn are_chains_finite(fat: &[u32]) -> bool {
    let mut seen = vec![0_usize; fat.len()];
    for start in 0..fat.len() {
        let mut at = start;
        loop {
            if seen[at] != 0 {
                if seen[at] == start + 1 {
                    return false;
                }
                break;
            }
            seen[at] = start + 1;
            match fat.get(fat[at] as usize) {
                Some(_) => at = fat[at] as usize,
                None => break,
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circular_chain_is_detected() {
        assert!(
            are_chains_finite(&[1, 2, 0xffff_fffe, 0xffff_ffff]) && are_chains_finite(&[]) && are_chains_finite(&[7])
        );
        assert!(
            !are_chains_finite(&[0]) && !are_chains_finite(&[1, 2, 1]) && !are_chains_finite(&[0xffff_fffe, 2, 3, 1])
        );
    }

    #[test]
    fn entry_that_the_library_reads_is_checked() {
        let entry = |name: &[u8]| [name, &vec![0; 128 - name.len()]].concat();
        let utf16 = |name: &str| entry(&name.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
        for name in ["Workbook", "BOOK", "\u{feff}WorkBook", "Book\0left"] {
            assert!(is_workbook_entry(&utf16(name)), "{name:?}");
        }
        assert!(is_workbook_entry(&entry(b"\xef\xbb\xbfWorkbook")));
        assert!(is_workbook_entry(&entry(b"\xfe\xff\0W\0o\0r\0k\0b\0o\0o\0k")));
        assert!(!is_workbook_entry(&utf16("SummaryInformation")) && !is_workbook_entry(&entry(b"")));
    }

    #[test]
    fn repeated_sectors_are_rejected() {
        let file = |named: usize| {
            let mut file = vec![0xff_u8; 512 * 4];
            for at in 0..named {
                file[76 + 4 * at..80 + 4 * at].copy_from_slice(&[0; 4]);
            }
            file[68..72].copy_from_slice(&0xffff_fffe_u32.to_le_bytes());
            file
        };
        assert_eq!(read_fat(&file(4), 512).map(|fat| fat.len()), Some(4 * 128));
        assert_eq!(read_fat(&file(100), 512), None);
    }
}
