//! What the library would keep of the records of an `.xls` workbook ([MS-XLS]), counted before it reads them.
//!
//! The library reads all sheets at once. A record of few bytes may become many: a cell that refers to a shared text gets a
//! copy of it, and a sheet becomes a rectangle up to its last cell. The walk below follows the records as the library does.

use super::compound::{XlsFlaw, u16_at, u32_at};

/// What a cell takes in a rectangle, and in the list that this is made of.
const CELL: u64 = 32;
const LISTED: u64 = 80;
/// The smallest piece of memory.
const PIECE: u64 = 16;
/// A formula, a defined name or a merged range besides its text.
const NAMED: u64 = 1 << 10;
const MERGED: u64 = 32;
/// The last column of an `.xls`.
const LAST_COLUMN: u16 = 255;
/// The most cells of which a sheet may say that it has them: as many as find place in one.
const MAX_DECLARED_CELLS: u64 = 1 << 24;
/// The most sheets, and the most records that continue one.
const MAX_SHEETS: usize = 4096;
const MAX_CONTINUED: usize = 1 << 14;
/// The code page of text that is UTF-16.
const UTF_16: u16 = 1200;

/// Refuses a stream of which the library would keep more than so many bytes.
pub(super) fn check_memory(stream: &[u8], most: u64) -> Result<(), XlsFlaw> {
    let mut room = MemoryEstimate { left: most, ..MemoryEstimate::default() };
    room.code_page = UTF_16;
    let sheets = room.read_globals(stream)?;
    if sheets.len() > MAX_SHEETS {
        return Err(XlsFlaw::TooLarge);
    }
    // Sheets that lie in one another would be read again for each.
    let mut steps = 2 * stream.len();
    let mut largest = 0;
    for start in sheets {
        let records = stream.get(start as usize..).ok_or(XlsFlaw::Damaged)?;
        let (walked, kept) = room.read_sheet(records)?;
        steps = steps.checked_sub(walked).ok_or(XlsFlaw::Damaged)?;
        largest = largest.max(kept);
    }
    // The sheet that is wanted is copied.
    room.reserve(largest)
}

/// What is left, and what the cells refer to.
#[derive(Default)]
struct MemoryEstimate {
    left: u64,
    code_page: u16,
    /// The bytes of each shared text.
    texts: Vec<u32>,
    /// The bytes of the longest name that a formula may refer to.
    longest_name: u64,
}

impl MemoryEstimate {
    fn reserve(&mut self, bytes: u64) -> Result<(), XlsFlaw> {
        self.left = self.left.checked_sub(bytes).ok_or(XlsFlaw::TooLarge)?;
        Ok(())
    }

    /// Reads the records before those of the sheets; tells where the sheets begin.
    fn read_globals(&mut self, stream: &[u8]) -> Result<Vec<u32>, XlsFlaw> {
        let mut sheets = Vec::new();
        let mut records = BiffRecords(stream);
        while let Some(record) = records.next_record()? {
            let data = record.data;
            match record.kind {
                0x000a => break,
                0x0042 => self.code_page = u16_at(data, 0).unwrap_or(UTF_16),
                0x0085 => {
                    sheets.extend(u32_at(data, 0));
                    let name = 3 * data.len() as u64;
                    self.longest_name = self.longest_name.max(name);
                    self.reserve(4 * name + NAMED)?;
                }
                0x0018 => {
                    let name = 3 * u64::from(data.get(3).copied().unwrap_or(0));
                    self.longest_name = self.longest_name.max(name);
                    self.reserve(NAMED + 2 * name)?;
                }
                0x00fc => self.read_shared_texts(record)?,
                _ => {}
            }
        }
        Ok(sheets)
    }

    /// Reads the length of each shared text.
    fn read_shared_texts(&mut self, record: BiffRecord<'_>) -> Result<(), XlsFlaw> {
        let Some(data) = record.data.get(8..) else { return Ok(()) };
        let mut parts = RecordParts { data, more: record.more.into_iter() };
        self.texts.clear();
        while !parts.data.is_empty() || parts.next_part() {
            if parts.data.is_empty() {
                self.add_text(0)?;
                continue;
            }
            let Some(bytes) = self.shared_text_size(&mut parts) else { return Ok(()) };
            self.add_text(bytes)?;
        }
        Ok(())
    }

    fn add_text(&mut self, bytes: u64) -> Result<(), XlsFlaw> {
        self.reserve(2 * size_of::<String>() as u64 + PIECE + 2 * bytes)?;
        self.texts.push(u32::try_from(bytes).unwrap_or(u32::MAX));
        Ok(())
    }

    /// The bytes of the next shared text as UTF-8; nothing where the record is damaged, at which the library ends too.
    fn shared_text_size(&self, parts: &mut RecordParts<'_>) -> Option<u64> {
        let (count, flags) = (usize::from(u16_at(parts.data, 0)?), *parts.data.get(2)?);
        let mut behind = 3;
        let mut number = |is_there: bool, width: usize| {
            let at = behind;
            behind += if is_there { width } else { 0 };
            is_there.then_some(at)
        };
        let (runs, extra) = (number(flags & 8 != 0, 2), number(flags & 4 != 0, 4));
        let runs = runs.map_or(Some(0), |at| u16_at(parts.data, at))?;
        let extra = extra.map_or(Some(0), |at| u32_at(parts.data, at))?;
        parts.data = parts.data.get(behind..)?;
        let (mut left, mut wide, mut bytes) = (count, flags & 1 != 0, 0);
        while left > 0 {
            let taken = left.min(if wide { parts.data.len() / 2 } else { parts.data.len() });
            let (text, rest) = parts.data.split_at(if wide { 2 * taken } else { taken });
            bytes += self.utf8_size(text, wide);
            (left, parts.data) = (left - taken, rest);
            if left > 0 {
                if !parts.next_part() {
                    return None;
                }
                wide = parts.data.first()? & 1 != 0;
                parts.data = &parts.data[1..];
            }
        }
        parts.skip_bytes(4 * usize::from(runs))?;
        parts.skip_bytes(usize::try_from(extra).ok()?)?;
        // Room is made for as many bytes as there are characters.
        Some(bytes.max(count as u64))
    }

    /// The bytes of text as UTF-8.
    fn utf8_size(&self, text: &[u8], wide: bool) -> u64 {
        if self.code_page != UTF_16 {
            return 3 * text.len() as u64;
        }
        if !wide {
            return text.iter().map(|&byte| 1 + u64::from(byte >= 0x80)).sum();
        }
        let unit = |pair: &[u8]| match u16::from_le_bytes([pair[0], pair[1]]) {
            0..0x80 => 1,
            0x80..0x800 => 2,
            _ => 3,
        };
        text.chunks_exact(2).map(unit).sum()
    }

    /// Reads the records of a sheet; tells how many bytes they are, and what the library keeps of its cells.
    fn read_sheet(&mut self, stream: &[u8]) -> Result<(usize, u64), XlsFlaw> {
        let (mut cells, mut formulas) = (CellArea::default(), CellArea::default());
        let (mut listed, mut kept, mut begun, mut depth) = (0, 0, false, 0_usize);
        let mut records = BiffRecords(stream);
        while let Some(record) = records.next_record()? {
            let (kind, data) = (record.kind, record.data);
            match kind {
                // What lies within the sheet, such as a diagram, is passed over.
                0x0809 if begun => depth += 1,
                0x0809 => begun = true,
                0x000a if depth > 0 => depth -= 1,
                0x000a => break,
                _ if depth > 0 => {}
                0x0200 => check_declared_size(data)?,
                0x00e5 => self.reserve(MERGED * u64::from(u16_at(data, 0).unwrap_or(0)))?,
                _ => {
                    let (new, text) = self.count_cells(kind, data, &mut cells, &mut formulas)?;
                    listed += LISTED * new;
                    kept += text;
                    // The list lives only as long as the sheet is read.
                    if listed + kept + CELL * (cells.count_cells() + formulas.count_cells()) > self.left {
                        return Err(XlsFlaw::TooLarge);
                    }
                }
            }
        }
        let kept = kept + CELL * cells.count_cells();
        self.reserve(kept + CELL * formulas.count_cells())?;
        Ok((stream.len() - records.0.len(), kept))
    }

    /// How many cells a record has, and the bytes of their texts.
    fn count_cells(
        &mut self,
        kind: u16,
        data: &[u8],
        cells: &mut CellArea,
        formulas: &mut CellArea,
    ) -> Result<(u64, u64), XlsFlaw> {
        let room = |said: Option<u16>| PIECE + u64::from(said.unwrap_or(0)).max(3 * data.len() as u64);
        if kind == 0x0207 {
            // The text of the formula before it.
            return Ok((1, room(u16_at(data, 0))));
        }
        if !matches!(kind, 0x0203 | 0x0204 | 0x00d6 | 0x0205 | 0x027e | 0x00fd | 0x00bd | 0x0006) {
            return Ok((0, 0));
        }
        let Some((row, column)) = u16_at(data, 0).zip(u16_at(data, 2)) else { return Ok((0, 0)) };
        // One record may have several cells.
        let last = match kind {
            0x00bd => u16_at(data, data.len().saturating_sub(2)).unwrap_or(column).max(column),
            _ => column,
        };
        if last > LAST_COLUMN {
            return Err(XlsFlaw::Damaged);
        }
        cells.include(row, column);
        cells.include(row, last);
        let text = match kind {
            0x0204 | 0x00d6 => room(u16_at(data, 6)),
            0x00fd => {
                let text = self.texts.get(u32_at(data, 6).unwrap_or(0) as usize);
                PIECE + text.map_or(3 * u64::from(u16::MAX), |bytes| u64::from(*bytes))
            }
            0x0006 => {
                formulas.include(row, column);
                self.reserve(self.formula_size(data.get(20..).unwrap_or_default()))?;
                0
            }
            _ => 0,
        };
        Ok((u64::from(last - column) + 1, text))
    }

    /// The most that a formula takes as text.
    fn formula_size(&self, tokens: &[u8]) -> u64 {
        /// The longest number as text.
        const NUMBER: u64 = 330;
        let count = |wanted: fn(u8) -> bool| tokens.iter().filter(|&&byte| wanted(byte)).count() as u64;
        let names = count(|byte| matches!(byte & 0x1f, 0x1a | 0x1b | 0x03) && byte >= 0x20);
        4 * tokens.len() as u64 + NUMBER * count(|byte| byte == 0x1f) + self.longest_name * names + PIECE
    }
}

/// One record, and those that continue it.
struct BiffRecord<'s> {
    kind: u16,
    data: &'s [u8],
    more: Vec<&'s [u8]>,
}

/// The records of a stream, as far as they are whole.
struct BiffRecords<'s>(&'s [u8]);

impl<'s> BiffRecords<'s> {
    fn next_record(&mut self) -> Result<Option<BiffRecord<'s>>, XlsFlaw> {
        let Some((kind, data)) = self.next_part() else { return Ok(None) };
        let mut more = Vec::new();
        while self.0.len() > 4 && u16_at(self.0, 0) == Some(0x003c) {
            let Some((_, data)) = self.next_part() else { return Ok(None) };
            more.push(data);
            if more.len() > MAX_CONTINUED {
                return Err(XlsFlaw::TooLarge);
            }
        }
        Ok(Some(BiffRecord { kind, data, more }))
    }

    fn next_part(&mut self) -> Option<(u16, &'s [u8])> {
        let (kind, length) = (u16_at(self.0, 0)?, usize::from(u16_at(self.0, 2)?));
        let data = self.0.get(4..4 + length)?;
        self.0 = &self.0[4 + length..];
        Some((kind, data))
    }
}

/// What is left of a record, and of those that continue it.
struct RecordParts<'s> {
    data: &'s [u8],
    more: std::vec::IntoIter<&'s [u8]>,
}

impl RecordParts<'_> {
    fn next_part(&mut self) -> bool {
        let next = self.more.next();
        self.data = next.unwrap_or(self.data);
        next.is_some()
    }

    fn skip_bytes(&mut self, mut count: usize) -> Option<()> {
        while count > 0 {
            if self.data.is_empty() && !self.next_part() {
                return None;
            }
            let step = count.min(self.data.len());
            (self.data, count) = (&self.data[step..], count - step);
        }
        Some(())
    }
}

/// The rectangle that the cells of a sheet take.
#[derive(Default)]
struct CellArea(Option<[u64; 4]>);

impl CellArea {
    fn include(&mut self, row: u16, column: u16) {
        let (row, column) = (u64::from(row), u64::from(column));
        let [top, left, bottom, right] = self.0.unwrap_or([row, column, row, column]);
        self.0 = Some([top.min(row), left.min(column), bottom.max(row), right.max(column)]);
    }

    fn count_cells(&self) -> u64 {
        self.0.map_or(0, |[top, left, bottom, right]| (bottom - top + 1) * (right - left + 1))
    }
}

/// Refuses a sheet that says it is larger than one can be, since room is made for what it says.
fn check_declared_size(data: &[u8]) -> Result<(), XlsFlaw> {
    let said = match data.len() {
        10 => [u16_at(data, 2).map(u32::from), u16_at(data, 6).map(u32::from)],
        14 | 16 => [u32_at(data, 4), u16_at(data, 10).map(u32::from)],
        _ => return Ok(()),
    };
    match said {
        [Some(rows), Some(columns)] if u64::from(rows) * u64::from(columns) > MAX_DECLARED_CELLS => {
            Err(XlsFlaw::Damaged)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
