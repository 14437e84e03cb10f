//! Hostile streams of `.xls` workbooks, each of at most some MB.

use super::*;

const MOST: u64 = 192 << 20;

fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap();
    [kind.to_le_bytes().as_slice(), &length.to_le_bytes(), data].concat()
}

fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn number(row: u16, column: u16) -> Vec<u8> {
    record(0x0203, &words(&[row, column, 0, 0, 0, 0, 0]))
}

fn begin() -> Vec<u8> {
    record(0x0809, &words(&[0x0600, 0x10, 0, 0]))
}

fn end() -> Vec<u8> {
    record(0x000a, &[])
}

/// A stream with these records for all sheets, and sheets with these.
fn stream(globals: &[u8], sheets: &[Vec<u8>]) -> Vec<u8> {
    let entry = |start: u32| record(0x0085, &[&start.to_le_bytes()[..], &[0, 0, 1, 0, b's']].concat());
    let entries: usize = sheets.iter().map(|_| entry(0).len()).sum();
    let mut start = begin().len() + globals.len() + entries + end().len();
    let (mut list, mut bodies) = (Vec::new(), Vec::new());
    for sheet in sheets {
        list.extend(entry(u32::try_from(start).unwrap()));
        let body = [begin(), sheet.clone(), end()].concat();
        start += body.len();
        bodies.extend(body);
    }
    [begin(), globals.to_vec(), list, end(), bodies].concat()
}

/// Shared texts of that many characters each.
fn texts(lengths: &[u16], wide: bool) -> Vec<u8> {
    let text = |&length: &u16| {
        let flag = [u8::from(wide)];
        [&length.to_le_bytes()[..], &flag, &vec![0x41; usize::from(length) * (1 + usize::from(wide))]].concat()
    };
    let all: Vec<u8> = [vec![0; 8], lengths.iter().flat_map(text).collect()].concat();
    record(0x00fc, &all)
}

fn shared(row: u16, text: u32) -> Vec<u8> {
    record(0x00fd, &[words(&[row, 0, 0]), text.to_le_bytes().to_vec()].concat())
}

fn is_too_large(stream: &[u8]) -> bool {
    assert!(stream.len() < 4 << 20, "{}", stream.len());
    matches!(room_for(stream, MOST), Err(Flaw::TooLarge))
}

fn has_room(stream: &[u8]) -> bool {
    room_for(stream, MOST).is_ok()
}

#[test]
fn ordinary_sheets_have_room() {
    let rows: Vec<u8> = (0..60_000).flat_map(|row| [number(row, 0), number(row, 9)].concat()).collect();
    assert!(room_for(&stream(&texts(&[10, 20], true), &[rows, number(0, 0)]), MOST).is_ok());
    assert!(has_room(&[]) && has_room(&stream(&[], &[])));
}

#[test]
fn cells_that_lie_far_apart_are_too_large() {
    let corners = [number(0, 0), number(u16::MAX, 255)].concat();
    assert!(is_too_large(&stream(&[], &[corners])));
    let some = [number(0, 0), number(u16::MAX, 10)].concat();
    assert!(has_room(&stream(&[], std::slice::from_ref(&some))));
    assert!(is_too_large(&stream(&[], &vec![some; 20])));
    assert!(matches!(room_for(&stream(&[], &[number(0, 256)]), MOST), Err(Flaw::Damaged)));
}

#[test]
fn long_text_that_many_cells_share_is_too_large() {
    let cells = |count: u16, text: u32| (0..count).flat_map(|row| shared(row, text)).collect::<Vec<_>>();
    let shared_texts = texts(&[1, 8000], false);
    assert!(has_room(&stream(&shared_texts, &[cells(u16::MAX, 0)])));
    assert!(is_too_large(&stream(&shared_texts, &[cells(u16::MAX, 1)])));
    // A text that is not there counts as the longest.
    assert!(is_too_large(&stream(&shared_texts, &[cells(u16::MAX, 7)])));
}

#[test]
fn text_that_continues_in_other_records_is_measured_whole() {
    let head = [vec![0; 8], 9000_u16.to_le_bytes().to_vec(), vec![0], vec![b'a'; 8000]].concat();
    let rest = [vec![1], b"\x18\x04".repeat(1000), 5_u16.to_le_bytes().to_vec(), vec![0], b"abcde".to_vec()].concat();
    let stream = [record(0x00fc, &head), record(0x003c, &rest)].concat();
    let mut room = Room { left: MOST, code_page: UTF_16, ..Room::default() };
    room.shared_texts(Records(&stream).next().unwrap_or(None).unwrap()).unwrap_or(());
    assert_eq!(room.texts, [8000 + 2 * 1000, 5]);
}

#[test]
fn label_that_says_it_is_long_counts_as_what_it_says() {
    let label = |row: u16| record(0x0204, &[words(&[row, 0, 0, u16::MAX]), vec![0]].concat());
    let labels: Vec<u8> = (0..20_000).flat_map(label).collect();
    assert!(is_too_large(&stream(&[], &[labels])));
}

#[test]
fn formula_that_becomes_a_long_text_is_too_large() {
    let tokens = [0x3a, 0, 0, 0, 0, 0, 0].repeat(1100);
    let formula = |row: u16| record(0x0006, &[words(&[row, 0]), vec![0; 16], tokens.clone()].concat());
    let formulas: Vec<u8> = (0..500).flat_map(formula).collect();
    let long_name = record(0x0018, &[0, 0, 0, 255]);
    assert!(has_room(&stream(&[], std::slice::from_ref(&formulas))));
    assert!(is_too_large(&stream(&long_name, &[formulas])));
}

#[test]
fn sheets_that_share_their_records_are_refused() {
    let body = stream(&[], &[number(0, 0).repeat(10_000)]);
    let start = u32_at(&body, begin().len() + 4).unwrap();
    let entry = record(0x0085, &[&start.to_le_bytes()[..], &[0, 0, 1, 0, b's']].concat());
    // All entries point to the same sheet, behind the new entries.
    let moved = start + u32::try_from(entry.len() * 3000).unwrap();
    let entry = record(0x0085, &[&moved.to_le_bytes()[..], &[0, 0, 1, 0, b's']].concat());
    let hostile = [begin(), entry.repeat(3001), body[begin().len() + entry.len()..].to_vec()].concat();
    assert!(room_for(&hostile, MOST).is_err());
    assert!(is_too_large(&[begin(), entry.repeat(MOST_SHEETS + 1), end()].concat()));
}

#[test]
fn records_that_continue_without_end_are_refused() {
    let endless = [record(0x00fc, &[0; 8]), record(0x003c, &[]).repeat(100_000), vec![0; 8]].concat();
    assert!(is_too_large(&[begin(), endless, end()].concat()));
}

#[test]
fn cells_of_a_diagram_within_a_sheet_do_not_count() {
    let diagram = [begin(), number(0, 0), number(u16::MAX, 255), end()].concat();
    let sheet = [number(0, 0), diagram, number(5, 5)].concat();
    assert!(has_room(&stream(&[], &[sheet])));
}

#[test]
fn sheet_that_says_it_is_larger_than_one_can_be_is_damaged() {
    let said = record(0x0200, &words(&[0, 0, 0, 0xffff, 0, 0xff, 0]));
    assert!(matches!(room_for(&stream(&[], &[said]), MOST), Err(Flaw::Damaged)));
    assert!(has_room(&stream(&[], &[record(0x0200, &words(&[0, 0, 1, 0, 0, 3, 0]))])));
}
