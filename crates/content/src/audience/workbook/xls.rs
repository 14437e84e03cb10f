//! Sheets of `.xls` workbooks.
//!
//! The library loads an `.xls` file whole and trusts the sizes that the file declares. So this module first checks that
//! the file's sector chains end ([MS-CFB]) and that its sheets fit into memory ([MS-XLS]). A record of a few bytes can
//! need much more memory. A cell that refers to a shared string gets a copy of the string, and a sheet becomes a
//! rectangle up to its last cell. The check walks the records in the same way as the library.

#[cfg(test)]
mod tests;

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use calamine::{Data, DataRef, Reader, SheetType, SheetVisible, Xls, XlsError};

use super::cell_format::{NumberFormat, format_cell};
use super::{SheetRows, WorkbookError, choose_sheet};
use crate::audience::decoding::{SheetInfo, SpooledFile};
use crate::audience::list_findings;

/// The maximum size of a file, which is read whole.
const MAX_BYTES: u64 = 64 << 20;
/// The maximum memory for the library in bytes.
const MAX_MEMORY: u64 = 224 << 20;

pub(super) fn read_xls<S: Read + Seek>(
    input: &mut S,
    file: &Path,
    sheet: Option<&str>,
) -> Result<(SpooledFile, SheetInfo), WorkbookError> {
    if input.seek(SeekFrom::End(0))? > MAX_BYTES {
        return Err(list_findings::large_workbook(file, "the .xls file is larger than 64 MiB").into());
    }
    input.rewind()?;
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let locked = check_compound_file(&bytes, MAX_MEMORY).map_err(|flaw| {
        flaw.into_error(|| list_findings::large_workbook(file, "its sheets need too much memory").into())
    })?;
    drop(bytes);
    input.rewind()?;
    match Xls::new(&mut *input) {
        Ok(book) => read_sheet(book, file, sheet),
        // A password-protected Excel file looks like an .xls file.
        Err(XlsError::Password) => Err(list_findings::locked_workbook(file).into()),
        Err(_) if locked => Err(list_findings::locked_workbook(file).into()),
        Err(error) => Err(WorkbookError::Damaged(error.to_string())),
    }
}

fn read_sheet<S: Read + Seek>(
    mut book: Xls<S>,
    file: &Path,
    sheet: Option<&str>,
) -> Result<(SpooledFile, SheetInfo), WorkbookError> {
    let sheets = book.sheets_metadata().iter().filter(|sheet| sheet.typ == SheetType::WorkSheet);
    let sheets: Vec<(String, bool)> =
        sheets.map(|sheet| (sheet.name.clone(), sheet.visible == SheetVisible::Visible)).collect();
    let chosen = choose_sheet(file, &sheets, sheet)?;
    let name = sheets[chosen].0.clone();
    let range = book.worksheet_range(&name).map_err(|error| WorkbookError::Damaged(error.to_string()))?;
    let (top, left) = range.start().unwrap_or_default();
    let format = NumberFormat::general();
    let mut rows = SheetRows::new(file)?;
    for (row, column, value) in range.used_cells() {
        let row = u32::try_from(row).unwrap_or(u32::MAX).saturating_add(top);
        let column = u32::try_from(column).unwrap_or(u32::MAX).saturating_add(left);
        match value {
            Data::Error(error) => rows.put_error_cell(row, column, &error.to_string())?,
            value => rows.put_cell(row, column, &format_cell(&borrow_data(value), &format))?,
        }
    }
    rows.finish_sheet(&sheets, chosen, &[])
}

fn borrow_data(value: &Data) -> DataRef<'_> {
    match value {
        Data::Int(number) => DataRef::Int(*number),
        Data::Float(number) => DataRef::Float(*number),
        Data::String(text) => DataRef::SharedString(text),
        Data::Bool(yes) => DataRef::Bool(*yes),
        Data::DateTime(time) => DataRef::DateTime(*time),
        Data::DateTimeIso(text) => DataRef::DateTimeIso(text.clone()),
        Data::DurationIso(text) => DataRef::DurationIso(text.clone()),
        Data::Error(error) => DataRef::Error(error.clone()),
        Data::Empty => DataRef::Empty,
    }
}

/// Sector numbers from here on are not sectors.
const NO_SECTOR: u32 = 0xffff_fffa;
/// Streams below this size are kept in small sectors.
const SMALL_STREAM: usize = 4096;
/// The size of a small sector in bytes.
const SMALL_SECTOR: usize = 64;
/// The maximum number of entries in the directory.
const MAX_ENTRIES: usize = 1 << 14;

/// A problem with an `.xls` file.
pub(super) enum XlsFlaw {
    Damaged,
    TooLarge,
}

impl XlsFlaw {
    /// The error for this flaw. `too_large` creates the error for a workbook that does not fit into memory.
    pub(super) fn into_error(self, too_large: impl FnOnce() -> WorkbookError) -> WorkbookError {
        match self {
            Self::Damaged => WorkbookError::Damaged("its internal structure is damaged".to_owned()),
            Self::TooLarge => too_large(),
        }
    }
}

/// Checks a compound file, and returns whether it is a workbook locked by Excel. Files that are not compound files are
/// left to the library. `limit` is the maximum memory in bytes.
pub(super) fn check_compound_file(bytes: &[u8], limit: u64) -> Result<bool, XlsFlaw> {
    // Offsets in the header and in directory entries are from [MS-CFB], sections 2.2 and 2.6.1.
    let size = match u16_at(bytes, 30) {
        Some(9) => 512,
        Some(12) => 4096,
        _ => return Ok(false),
    };
    let fat = read_fat(bytes, size).ok_or(XlsFlaw::Damaged)?;
    let read_large_chain = |start: u32, length: usize| read_chain(bytes.get(size..)?, size, &fat, start, length);
    let file_length = bytes.len();
    let header_field = |at: usize| u32_at(bytes, at).ok_or(XlsFlaw::Damaged);
    let directory = read_large_chain(header_field(48)?, file_length).ok_or(XlsFlaw::Damaged)?;
    let entries: Vec<&[u8]> = directory.chunks_exact(128).collect();
    let start_of = |entry: &[u8]| u32_at(entry, 116).unwrap_or(NO_SECTOR);
    let root = entries.first().ok_or(XlsFlaw::Damaged)?;
    let small_fat = match header_field(64)? {
        0 => Vec::new(),
        _ => read_numbers(&read_large_chain(header_field(60)?, file_length).ok_or(XlsFlaw::Damaged)?),
    };
    if !are_chains_finite(&fat) || !are_chains_finite(&small_fat) {
        return Err(XlsFlaw::Damaged);
    }
    if entries.len() > MAX_ENTRIES {
        return Err(XlsFlaw::TooLarge);
    }
    // The library keeps both the file and the stream in memory.
    let limit = limit.checked_sub(2 * bytes.len() as u64).ok_or(XlsFlaw::TooLarge)?;
    // The library chooses the first entry with that name by its own rules, so every entry that it could choose is
    // checked.
    for entry in entries.iter().filter(|entry| is_workbook_entry(entry)) {
        let low = u64::from(u32_at(entry, 120).unwrap_or(0));
        let high = if size == 512 { 0 } else { u64::from(u32_at(entry, 124).unwrap_or(0)) };
        let length = usize::try_from(high << 32 | low).unwrap_or(usize::MAX);
        let stream = if length < SMALL_STREAM {
            let small = read_large_chain(start_of(root), file_length).ok_or(XlsFlaw::Damaged)?;
            read_chain(&small, SMALL_SECTOR, &small_fat, start_of(entry), length)
        } else {
            read_large_chain(start_of(entry), length)
        };
        check_memory(&stream.ok_or(XlsFlaw::Damaged)?, limit)?;
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

/// Whether a directory entry's name contains `book`, as `Workbook` and `Book` do, in any encoding.
fn is_workbook_entry(entry: &[u8]) -> bool {
    latin_letters(entry).windows(4).any(|four| four == b"book")
}

/// The Latin letters in the name of a directory entry, in lower case.
fn latin_letters(entry: &[u8]) -> Vec<u8> {
    entry[..64].iter().filter(|byte| byte.is_ascii_alphabetic()).map(u8::to_ascii_lowercase).collect()
}

/// Reads the file allocation table: for each sector, the next sector of its chain.
fn read_fat(bytes: &[u8], size: usize) -> Option<Vec<u32>> {
    let sector = |id: u32| bytes.get((id as usize + 1).checked_mul(size)?..).map(|rest| &rest[..size.min(rest.len())]);
    // The header lists the first sectors of the table, and a chain of further sectors lists the others.
    let mut fat_sectors = read_numbers(bytes.get(76..512)?);
    let mut next = u32_at(bytes, 68)?;
    for _ in 0..=bytes.len() / size {
        if next >= NO_SECTOR {
            fat_sectors.retain(|id| *id < NO_SECTOR);
            // A sector that is listed several times would be stored each time, so the number of sectors is limited.
            if fat_sectors.len() > bytes.len() / size + 1 {
                return None;
            }
            let sectors = fat_sectors.into_iter();
            return sectors
                .map(|id| sector(id).map(read_numbers))
                .collect::<Option<Vec<_>>>()
                .map(|parts| parts.concat());
        }
        fat_sectors.extend(read_numbers(sector(next)?));
        next = fat_sectors.pop()?;
    }
    None
}

/// The bytes of a chain of sectors. `None` if the chain is circular or points outside the file.
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

/// Whether no chain is circular.
fn are_chains_finite(fat: &[u32]) -> bool {
    // For each sector, the start of the walk that visited it plus 1, or 0 if it was not visited.
    let mut visited_from = vec![0_usize; fat.len()];
    for start in 0..fat.len() {
        let mut at = start;
        loop {
            if visited_from[at] != 0 {
                if visited_from[at] == start + 1 {
                    return false;
                }
                break;
            }
            visited_from[at] = start + 1;
            match fat.get(fat[at] as usize) {
                Some(_) => at = fat[at] as usize,
                None => break,
            }
        }
    }
    true
}

/// The memory of a cell in the rectangle of a sheet.
const CELL: u64 = 32;
/// The memory of a cell in the list from which the rectangle is built.
const LISTED_CELL: u64 = 80;
/// The size of the smallest allocation.
const MIN_ALLOCATION: u64 = 16;
/// The memory of a sheet's entry or a defined name, without the name itself.
const NAME_ENTRY: u64 = 1 << 10;
/// The memory of a merged range.
const MERGED_RANGE: u64 = 32;
/// The last column of an `.xls`.
const LAST_COLUMN: u16 = 255;
/// The maximum number of cells that a sheet can declare: the number of cells in the largest `.xls` sheet.
const MAX_DECLARED_CELLS: u64 = 1 << 24;
/// The maximum number of sheets.
const MAX_SHEETS: usize = 4096;
/// The maximum number of records that continue another record.
const MAX_CONTINUED: usize = 1 << 14;
/// The code page of UTF-16 text.
const UTF_16: u16 = 1200;

/// The kinds of records in a stream ([MS-XLS], section 2.3.1).
mod record_kind {
    pub(super) const EOF: u16 = 0x000a;
    pub(super) const BOF: u16 = 0x0809;
    pub(super) const CODE_PAGE: u16 = 0x0042;
    pub(super) const SHEET: u16 = 0x0085;
    pub(super) const DEFINED_NAME: u16 = 0x0018;
    pub(super) const SHARED_STRINGS: u16 = 0x00fc;
    pub(super) const CONTINUE: u16 = 0x003c;
    pub(super) const DIMENSIONS: u16 = 0x0200;
    pub(super) const MERGED_CELLS: u16 = 0x00e5;
    pub(super) const FORMULA_TEXT: u16 = 0x0207;
    pub(super) const NUMBER: u16 = 0x0203;
    pub(super) const LABEL: u16 = 0x0204;
    pub(super) const RICH_LABEL: u16 = 0x00d6;
    pub(super) const BOOL_OR_ERROR: u16 = 0x0205;
    pub(super) const RK_NUMBER: u16 = 0x027e;
    pub(super) const SHARED_LABEL: u16 = 0x00fd;
    pub(super) const RK_NUMBERS: u16 = 0x00bd;
    pub(super) const FORMULA: u16 = 0x0006;
}

/// Rejects a stream if the library would need more than `limit` bytes of memory to read the stream.
pub(super) fn check_memory(stream: &[u8], limit: u64) -> Result<(), XlsFlaw> {
    let mut estimate = MemoryEstimate { remaining: limit, ..MemoryEstimate::default() };
    estimate.code_page = UTF_16;
    let sheets = estimate.read_globals(stream)?;
    if sheets.len() > MAX_SHEETS {
        return Err(XlsFlaw::TooLarge);
    }
    // Overlapping sheets would be read several times, so the total is limited.
    let mut steps = 2 * stream.len();
    let mut largest = 0;
    for start in sheets {
        let records = stream.get(start as usize..).ok_or(XlsFlaw::Damaged)?;
        let (size, memory) = estimate.read_sheet(records)?;
        steps = steps.checked_sub(size).ok_or(XlsFlaw::Damaged)?;
        largest = largest.max(memory);
    }
    // The chosen sheet is copied, so memory for the largest sheet is reserved again.
    estimate.reserve(largest)
}

/// The remaining memory, and the data that cells refer to.
#[derive(Default)]
struct MemoryEstimate {
    /// The memory that can still be reserved, in bytes.
    remaining: u64,
    code_page: u16,
    /// The bytes of each shared text.
    texts: Vec<u32>,
    /// The bytes of the longest name that a formula can refer to.
    longest_name: u64,
}

impl MemoryEstimate {
    fn reserve(&mut self, bytes: u64) -> Result<(), XlsFlaw> {
        self.remaining = self.remaining.checked_sub(bytes).ok_or(XlsFlaw::TooLarge)?;
        Ok(())
    }

    /// Reads the records before the sheets. Returns the offsets at which the sheets begin.
    fn read_globals(&mut self, stream: &[u8]) -> Result<Vec<u32>, XlsFlaw> {
        let mut sheets = Vec::new();
        let mut records = BiffRecords(stream);
        while let Some(record) = records.next_record()? {
            let data = record.data;
            match record.kind {
                record_kind::EOF => break,
                record_kind::CODE_PAGE => self.code_page = u16_at(data, 0).unwrap_or(UTF_16),
                record_kind::SHEET => {
                    sheets.extend(u32_at(data, 0));
                    // A character of one byte can become three bytes of UTF-8.
                    let name_size = 3 * data.len() as u64;
                    self.longest_name = self.longest_name.max(name_size);
                    self.reserve(4 * name_size + NAME_ENTRY)?;
                }
                record_kind::DEFINED_NAME => {
                    let name_size = 3 * u64::from(data.get(3).copied().unwrap_or(0));
                    self.longest_name = self.longest_name.max(name_size);
                    self.reserve(NAME_ENTRY + 2 * name_size)?;
                }
                record_kind::SHARED_STRINGS => self.read_shared_strings(record)?,
                _ => {}
            }
        }
        Ok(sheets)
    }

    /// Reads the size of each shared string, and reserves memory for the strings.
    fn read_shared_strings(&mut self, record: BiffRecord<'_>) -> Result<(), XlsFlaw> {
        let Some(data) = record.data.get(8..) else { return Ok(()) };
        let mut parts = RecordParts { data, continuations: record.continuations.into_iter() };
        self.texts.clear();
        while !parts.data.is_empty() || parts.next_part() {
            if parts.data.is_empty() {
                self.add_text(0)?;
                continue;
            }
            let Some(bytes) = self.shared_string_size(&mut parts) else { return Ok(()) };
            self.add_text(bytes)?;
        }
        Ok(())
    }

    fn add_text(&mut self, bytes: u64) -> Result<(), XlsFlaw> {
        self.reserve(2 * size_of::<String>() as u64 + MIN_ALLOCATION + 2 * bytes)?;
        self.texts.push(u32::try_from(bytes).unwrap_or(u32::MAX));
        Ok(())
    }

    /// The size of the next shared string in UTF-8. `None` if the record is damaged; the library stops at such a
    /// record, too.
    fn shared_string_size(&self, parts: &mut RecordParts<'_>) -> Option<u64> {
        let (count, flags) = (usize::from(u16_at(parts.data, 0)?), *parts.data.get(2)?);
        let mut offset = 3;
        // The position of an optional field of the header.
        let mut take_field = |is_present: bool, width: usize| {
            let at = offset;
            offset += if is_present { width } else { 0 };
            is_present.then_some(at)
        };
        let (has_formatting_runs, has_extra_data, is_wide) = (flags & 8 != 0, flags & 4 != 0, flags & 1 != 0);
        let (runs, extra) = (take_field(has_formatting_runs, 2), take_field(has_extra_data, 4));
        let runs = runs.map_or(Some(0), |at| u16_at(parts.data, at))?;
        let extra = extra.map_or(Some(0), |at| u32_at(parts.data, at))?;
        parts.data = parts.data.get(offset..)?;
        let (mut remaining, mut wide, mut bytes) = (count, is_wide, 0);
        while remaining > 0 {
            let length = remaining.min(if wide { parts.data.len() / 2 } else { parts.data.len() });
            let (text, rest) = parts.data.split_at(if wide { 2 * length } else { length });
            bytes += self.utf8_size(text, wide);
            (remaining, parts.data) = (remaining - length, rest);
            if remaining > 0 {
                if !parts.next_part() {
                    return None;
                }
                wide = parts.data.first()? & 1 != 0;
                parts.data = &parts.data[1..];
            }
        }
        parts.skip_bytes(4 * usize::from(runs))?;
        parts.skip_bytes(usize::try_from(extra).ok()?)?;
        // The library reserves at least one byte for each character.
        Some(bytes.max(count as u64))
    }

    /// The size of a text in UTF-8, in bytes.
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

    /// Reads the records of a sheet. Returns the size of the records, and the memory that the library needs for the
    /// cells.
    fn read_sheet(&mut self, stream: &[u8]) -> Result<(usize, u64), XlsFlaw> {
        let (mut cells, mut formulas) = (CellArea::default(), CellArea::default());
        let (mut listed, mut text_size, mut has_begun, mut depth) = (0, 0, false, 0_usize);
        let mut records = BiffRecords(stream);
        while let Some(record) = records.next_record()? {
            let (kind, data) = (record.kind, record.data);
            match kind {
                // Embedded objects such as charts are skipped.
                record_kind::BOF if has_begun => depth += 1,
                record_kind::BOF => has_begun = true,
                record_kind::EOF if depth > 0 => depth -= 1,
                record_kind::EOF => break,
                _ if depth > 0 => {}
                record_kind::DIMENSIONS => check_declared_size(data)?,
                record_kind::MERGED_CELLS => self.reserve(MERGED_RANGE * u64::from(u16_at(data, 0).unwrap_or(0)))?,
                _ => {
                    let (new_cells, text) = self.count_cells(kind, data, &mut cells, &mut formulas)?;
                    listed += LISTED_CELL * new_cells;
                    text_size += text;
                    // The list of cells exists only while the sheet is read, so no memory stays reserved for it.
                    if listed + text_size + CELL * (cells.count_cells() + formulas.count_cells()) > self.remaining {
                        return Err(XlsFlaw::TooLarge);
                    }
                }
            }
        }
        let text_size = text_size + CELL * cells.count_cells();
        self.reserve(text_size + CELL * formulas.count_cells())?;
        Ok((stream.len() - records.0.len(), text_size))
    }

    /// Adds the cells in a record to `cells` and `formulas`, and reserves memory for a formula. Returns the number of
    /// cells, and the memory that their text needs.
    fn count_cells(
        &mut self,
        kind: u16,
        data: &[u8],
        cells: &mut CellArea,
        formulas: &mut CellArea,
    ) -> Result<(u64, u64), XlsFlaw> {
        let text_memory =
            |length: Option<u16>| MIN_ALLOCATION + u64::from(length.unwrap_or(0)).max(3 * data.len() as u64);
        if kind == record_kind::FORMULA_TEXT {
            // The text result of the preceding formula.
            return Ok((1, text_memory(u16_at(data, 0))));
        }
        if !matches!(
            kind,
            record_kind::NUMBER
                | record_kind::LABEL
                | record_kind::RICH_LABEL
                | record_kind::BOOL_OR_ERROR
                | record_kind::RK_NUMBER
                | record_kind::SHARED_LABEL
                | record_kind::RK_NUMBERS
                | record_kind::FORMULA
        ) {
            return Ok((0, 0));
        }
        let Some((row, column)) = u16_at(data, 0).zip(u16_at(data, 2)) else { return Ok((0, 0)) };
        // One record can contain several cells.
        let last = match kind {
            record_kind::RK_NUMBERS => u16_at(data, data.len().saturating_sub(2)).unwrap_or(column).max(column),
            _ => column,
        };
        if last > LAST_COLUMN {
            return Err(XlsFlaw::Damaged);
        }
        cells.include(row, column);
        cells.include(row, last);
        let text = match kind {
            record_kind::LABEL | record_kind::RICH_LABEL => text_memory(u16_at(data, 6)),
            record_kind::SHARED_LABEL => {
                let text = self.texts.get(u32_at(data, 6).unwrap_or(0) as usize);
                MIN_ALLOCATION + text.map_or(3 * u64::from(u16::MAX), |bytes| u64::from(*bytes))
            }
            record_kind::FORMULA => {
                formulas.include(row, column);
                self.reserve(self.formula_size(data.get(20..).unwrap_or_default()))?;
                0
            }
            _ => 0,
        };
        Ok((u64::from(last - column) + 1, text))
    }

    /// Estimates the maximum size of a formula as text, in bytes.
    fn formula_size(&self, tokens: &[u8]) -> u64 {
        /// The length of the longest number.
        const NUMBER: u64 = 330;
        let count = |matches: fn(u8) -> bool| tokens.iter().filter(|&&byte| matches(byte)).count() as u64;
        // The tokens PtgRef3d, PtgArea3d and PtgName of any class.
        let names = count(|byte| matches!(byte & 0x1f, 0x1a | 0x1b | 0x03) && byte >= 0x20);
        // The token PtgNum.
        let numbers = count(|byte| byte == 0x1f);
        4 * tokens.len() as u64 + NUMBER * numbers + self.longest_name * names + MIN_ALLOCATION
    }
}

/// A record with its continuation records.
struct BiffRecord<'s> {
    kind: u16,
    data: &'s [u8],
    continuations: Vec<&'s [u8]>,
}

/// The complete records of a stream.
struct BiffRecords<'s>(&'s [u8]);

impl<'s> BiffRecords<'s> {
    fn next_record(&mut self) -> Result<Option<BiffRecord<'s>>, XlsFlaw> {
        let Some((kind, data)) = self.next_part() else { return Ok(None) };
        let mut continuations = Vec::new();
        while self.0.len() > 4 && u16_at(self.0, 0) == Some(record_kind::CONTINUE) {
            let Some((_, data)) = self.next_part() else { return Ok(None) };
            continuations.push(data);
            if continuations.len() > MAX_CONTINUED {
                return Err(XlsFlaw::TooLarge);
            }
        }
        Ok(Some(BiffRecord { kind, data, continuations }))
    }

    fn next_part(&mut self) -> Option<(u16, &'s [u8])> {
        let (kind, length) = (u16_at(self.0, 0)?, usize::from(u16_at(self.0, 2)?));
        let data = self.0.get(4..4 + length)?;
        self.0 = &self.0[4 + length..];
        Some((kind, data))
    }
}

/// The rest of a record and its continuation records.
struct RecordParts<'s> {
    data: &'s [u8],
    continuations: std::vec::IntoIter<&'s [u8]>,
}

impl RecordParts<'_> {
    fn next_part(&mut self) -> bool {
        let next = self.continuations.next();
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

/// The rectangle that contains the cells of a sheet.
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

/// Rejects a sheet that declares an impossible size, because the library allocates memory for the declared size.
fn check_declared_size(data: &[u8]) -> Result<(), XlsFlaw> {
    let declared = match data.len() {
        10 => [u16_at(data, 2).map(u32::from), u16_at(data, 6).map(u32::from)],
        14 | 16 => [u32_at(data, 4), u16_at(data, 10).map(u32::from)],
        _ => return Ok(()),
    };
    match declared {
        [Some(rows), Some(columns)] if u64::from(rows) * u64::from(columns) > MAX_DECLARED_CELLS => {
            Err(XlsFlaw::Damaged)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod compound_tests {
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
    fn every_workbook_entry_the_library_reads_is_recognized() {
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
