//! Looks at an `.xls` before the library reads it, which trusts what such a file says of itself: its chains of sectors have an
//! end ([MS-CFB]), and its sheets find room in memory ([MS-XLS]).

use super::Refusal;

/// From here on a number is no sector.
const NO_SECTOR: u32 = 0xffff_fffa;
/// Streams below this size are kept in small sectors, of 64 bytes.
const SMALL_STREAM: usize = 4096;
const SMALL_SECTOR: usize = 64;
/// What the cells of a workbook may take: the library keeps a rectangle for each sheet, and another one for its formulas.
const MOST_CELLS: u64 = 20 << 20;
/// The last column of an `.xls`.
const LAST_COLUMN: u16 = 255;

/// What is wrong with an `.xls`.
pub(super) enum Flaw {
    Damaged,
    TooLarge,
}

impl Flaw {
    /// The refusal; `too_large` is what is told of a workbook that does not fit.
    pub(super) fn refusal(self, too_large: impl FnOnce() -> Refusal) -> Refusal {
        match self {
            Self::Damaged => Refusal::Damaged("its parts lead in circles, or out of it".to_owned()),
            Self::TooLarge => too_large(),
        }
    }
}

/// Tells what is wrong with it; what is no such file at all the library tells.
pub(super) fn look(bytes: &[u8]) -> Result<(), Flaw> {
    let size = match u16_at(bytes, 30) {
        Some(9) => 512,
        Some(12) => 4096,
        _ => return Ok(()),
    };
    let fat = fat(bytes, size).ok_or(Flaw::Damaged)?;
    let large = |start: u32, length: usize| chain(bytes.get(size..)?, size, &fat, start, length);
    let whole = bytes.len();
    let header = |at: usize| u32_at(bytes, at).ok_or(Flaw::Damaged);
    let directory = large(header(48)?, whole).ok_or(Flaw::Damaged)?;
    let entries: Vec<&[u8]> = directory.chunks_exact(128).collect();
    let start_of = |entry: &[u8]| u32_at(entry, 116).unwrap_or(NO_SECTOR);
    let root = entries.first().ok_or(Flaw::Damaged)?;
    let small_fat = match header(64)? {
        0 => Vec::new(),
        _ => numbers(&large(header(60)?, whole).ok_or(Flaw::Damaged)?),
    };
    if !have_ends(&fat) || !have_ends(&small_fat) {
        return Err(Flaw::Damaged);
    }
    let Some(entry) = entries.iter().find(|entry| matches!(name(entry).as_str(), "workbook" | "book")) else {
        return Ok(());
    };
    let length = u32_at(entry, 120).unwrap_or(0) as usize;
    let stream = if length < SMALL_STREAM {
        let small = large(start_of(root), whole).ok_or(Flaw::Damaged)?;
        chain(&small, SMALL_SECTOR, &small_fat, start_of(entry), length)
    } else {
        large(start_of(entry), length)
    };
    room_for(&stream.ok_or(Flaw::Damaged)?)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect()
}

/// The lower-case name of an entry of the directory.
fn name(entry: &[u8]) -> String {
    let units = entry[..64].chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    char::decode_utf16(units.take_while(|unit| *unit != 0)).filter_map(Result::ok).collect::<String>().to_lowercase()
}

/// Which sector follows each.
fn fat(bytes: &[u8], size: usize) -> Option<Vec<u32>> {
    let sector = |id: u32| bytes.get((id as usize + 1).checked_mul(size)?..).map(|rest| &rest[..size.min(rest.len())]);
    let mut of_fat = numbers(bytes.get(76..512)?);
    let mut next = u32_at(bytes, 68)?;
    for _ in 0..=bytes.len() / size {
        if next >= NO_SECTOR {
            let sectors = of_fat.into_iter().filter(|id| *id < NO_SECTOR).take(bytes.len() / size + 1);
            return sectors.map(|id| sector(id).map(numbers)).collect::<Option<Vec<_>>>().map(|parts| parts.concat());
        }
        of_fat.extend(numbers(sector(next)?));
        next = of_fat.pop()?;
    }
    None
}

/// The bytes of a chain of sectors; nothing where it leads in circles or out of the file.
fn chain(sectors: &[u8], size: usize, fat: &[u32], start: u32, length: usize) -> Option<Vec<u8>> {
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
fn have_ends(fat: &[u32]) -> bool {
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

/// The rectangle that the cells of a sheet take.
#[derive(Default)]
struct Area(Option<[u64; 4]>);

impl Area {
    fn add(&mut self, row: u16, column: u16) {
        let (row, column) = (u64::from(row), u64::from(column));
        let [top, left, bottom, right] = self.0.unwrap_or([row, column, row, column]);
        self.0 = Some([top.min(row), left.min(column), bottom.max(row), right.max(column)]);
    }

    fn cells(&self) -> u64 {
        self.0.map_or(0, |[top, left, bottom, right]| (bottom - top + 1) * (right - left + 1))
    }
}

/// Whether the cells of all sheets find room.
fn room_for(stream: &[u8]) -> Result<(), Flaw> {
    let (mut rest, mut taken) = (stream, 0);
    let (mut cells, mut formulas) = (Area::default(), Area::default());
    while let (Some(kind), Some(length)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let Some(data) = rest.get(4..4 + usize::from(length)) else { return Ok(()) };
        rest = &rest[4 + usize::from(length)..];
        let place = u16_at(data, 0).zip(u16_at(data, 2));
        match (kind, place) {
            // Another sheet begins.
            (0x0809, _) => {
                taken += cells.cells() + formulas.cells();
                (cells, formulas) = (Area::default(), Area::default());
            }
            (0x0203 | 0x0204 | 0x00d6 | 0x0205 | 0x027e | 0x00fd | 0x00bd | 0x0006 | 0x0207, Some((row, column))) => {
                // One record may have several cells.
                let last = match kind {
                    0x00bd => u16_at(data, data.len().saturating_sub(2)).unwrap_or(column).max(column),
                    _ => column,
                };
                if kind != 0x0207 {
                    if last > LAST_COLUMN {
                        return Err(Flaw::Damaged);
                    }
                    cells.add(row, column);
                    cells.add(row, last);
                }
                if kind == 0x0006 {
                    formulas.add(row, column);
                }
            }
            (0x0200, _) => told_room(data)?,
            _ => {}
        }
    }
    taken += cells.cells() + formulas.cells();
    if taken > MOST_CELLS { Err(Flaw::TooLarge) } else { Ok(()) }
}

/// Refuses a sheet that says it is larger than one can be, since room is made for what it says.
fn told_room(data: &[u8]) -> Result<(), Flaw> {
    let told = match data.len() {
        10 => [u16_at(data, 2).map(u32::from), u16_at(data, 6).map(u32::from)],
        14 | 16 => [u32_at(data, 4), u16_at(data, 10).map(u32::from)],
        _ => return Ok(()),
    };
    match told {
        [Some(rows), Some(columns)] if u64::from(rows) * u64::from(columns) > MOST_CELLS => Err(Flaw::Damaged),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_that_leads_in_circles_is_seen() {
        assert!(have_ends(&[1, 2, 0xffff_fffe, 0xffff_ffff]) && have_ends(&[]) && have_ends(&[7]));
        assert!(!have_ends(&[0]) && !have_ends(&[1, 2, 1]) && !have_ends(&[0xffff_fffe, 2, 3, 1]));
    }

    fn record(kind: u16, data: &[u16]) -> Vec<u8> {
        let length = u16::try_from(2 * data.len()).unwrap();
        [kind, length].iter().chain(data).flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn a_sheet_that_would_fill_the_memory_is_refused_before_it_is_read() {
        let cell = |row: u16, column: u16| record(0x0203, &[row, column, 0, 0, 0, 0, 0]);
        let sheet = |cells: &[Vec<u8>]| [record(0x0809, &[0x0600, 0x10, 0, 0]), cells.concat()].concat();
        assert!(room_for(&sheet(&[cell(0, 0), cell(65_535, 255)])).is_ok());
        let twice = [sheet(&[cell(0, 0), cell(65_535, 255)]), sheet(&[cell(0, 0), cell(65_535, 255)])].concat();
        assert!(matches!(room_for(&twice), Err(Flaw::TooLarge)));
        assert!(matches!(room_for(&sheet(&[cell(0, 256)])), Err(Flaw::Damaged)));
        assert!(matches!(room_for(&record(0x0200, &[0, 0, 0, 0xffff, 0, 0xff, 0])), Err(Flaw::Damaged)));
        assert!(room_for(&record(0x0200, &[0, 0, 1, 0, 0, 3, 0])).is_ok());
    }
}
