//! Memory limits for Excel 97 workbooks (XLS).

use super::{assert_read, assert_refused};
use crate::support::phone;

const SECTOR: usize = 512;
const END: u32 = 0xffff_fffe;

fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("a short record");
    [&kind.to_le_bytes()[..], &length.to_le_bytes(), data].concat()
}

fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn start_record() -> Vec<u8> {
    record(0x0809, &words(&[0x0600, 0x10, 0, 0]))
}

/// A cell with a reference to a shared string.
fn string_cell(row: u16, column: u16, text: u32) -> Vec<u8> {
    record(0x00fd, &[words(&[row, column, 0]), text.to_le_bytes().to_vec()].concat())
}

/// A workbook with these shared strings, and one sheet with these records.
fn workbook(texts: &[&str], cells: &[u8]) -> Vec<u8> {
    let text =
        |text: &&str| [&u16::try_from(text.len()).expect("short").to_le_bytes()[..], &[0], text.as_bytes()].concat();
    let texts = record(0x00fc, &[vec![0; 8], texts.iter().flat_map(text).collect()].concat());
    let end = record(0x000a, &[]);
    let sheet = |start: u32| record(0x0085, &[&start.to_le_bytes()[..], &[0, 0, 1, 0, b's']].concat());
    let start = start_record().len() + texts.len() + sheet(0).len() + end.len();
    let start = u32::try_from(start).expect("short");
    compound_file(&[start_record(), texts, sheet(start), end.clone(), start_record(), cells.to_vec(), end].concat())
}

/// A compound file ([MS-CFB]) with one stream, `Workbook`.
fn compound_file(stream: &[u8]) -> Vec<u8> {
    let mut stream = stream.to_vec();
    stream.resize(stream.len().max(4096).next_multiple_of(SECTOR), 0);
    let (data, number) = (stream.len() / SECTOR, |count: usize| u32::try_from(count).expect("few"));
    let tables = (data + 1).div_ceil(127);
    let chain =
        |from: usize, count: usize| (1..=count).map(move |at| if at == count { END } else { number(from + at) });
    let fat: Vec<u32> = chain(0, data).chain([END]).chain((0..tables).map(|_| 0xffff_fffd)).collect();
    let mut fat: Vec<u8> = fat.iter().flat_map(|id| id.to_le_bytes()).collect();
    fat.resize(tables * SECTOR, 0xff);
    let entry = |name: &str, kind: u8, start: u32, length: u32| {
        let mut entry: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        entry.resize(128, 0);
        entry[64] = u8::try_from(2 * name.len() + 2).expect("short");
        entry[66] = kind;
        entry[116..120].copy_from_slice(&start.to_le_bytes());
        entry[120..124].copy_from_slice(&length.to_le_bytes());
        entry
    };
    let mut directory = [entry("Root Entry", 5, END, 0), entry("Workbook", 2, 0, number(stream.len()))].concat();
    directory.resize(SECTOR, 0);
    let mut header = vec![0; 76];
    header[..8].copy_from_slice(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1");
    header[26..34].copy_from_slice(&words(&[3, 0xfffe, 9, 6]));
    header[44..48].copy_from_slice(&number(tables).to_le_bytes());
    header[48..52].copy_from_slice(&number(data).to_le_bytes());
    header[60..64].copy_from_slice(&END.to_le_bytes());
    header[68..72].copy_from_slice(&END.to_le_bytes());
    header.extend((0..tables).flat_map(|at| number(data + 1 + at).to_le_bytes()));
    header.resize(SECTOR, 0xff);
    [header, stream, directory, fat].concat()
}

#[test]
fn harmless_workbook_is_read() {
    let number = phone(2).to_string();
    let cells = [string_cell(0, 0, 0), string_cell(0, 1, 1), string_cell(1, 0, 2), string_cell(1, 1, 3)].concat();
    assert_read("list.xls", &workbook(&["phone", "name", &number, "Ann"], &cells), &["sheet `s`"]);
}

#[test]
fn workbook_that_exhausts_memory_is_refused() {
    let long = "x".repeat(8000);
    let cells: Vec<u8> = (0..60_000).flat_map(|row| string_cell(row, 0, 0)).collect();
    assert_refused("list.xls", &workbook(&[&long], &cells), &["its sheets need too much memory", "as CSV"]);
    let label = |row: u16| record(0x0204, &[words(&[row, 0, 0, u16::MAX]), vec![0]].concat());
    let labels: Vec<u8> = (0..60_000).flat_map(label).collect();
    assert_refused("list.xls", &workbook(&[], &labels), &["its sheets need too much memory"]);
    let corners = [string_cell(0, 0, 0), string_cell(u16::MAX, 255, 0)].concat();
    assert_refused("list.xls", &workbook(&["x"], &corners), &["its sheets need too much memory"]);
}
