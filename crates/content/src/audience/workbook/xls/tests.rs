//! Tests of the memory check of `.xls` workbooks, with hostile streams of a few MB at most.

use super::*;

const LIMIT: u64 = 192 << 20;

fn encode_record(kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap();
    [kind.to_le_bytes().as_slice(), &length.to_le_bytes(), data].concat()
}

fn encode_words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn number_record(row: u16, column: u16) -> Vec<u8> {
    encode_record(0x0203, &encode_words(&[row, column, 0, 0, 0, 0, 0]))
}

fn begin_record() -> Vec<u8> {
    encode_record(0x0809, &encode_words(&[0x0600, 0x10, 0, 0]))
}

fn end_record() -> Vec<u8> {
    encode_record(0x000a, &[])
}

/// A stream with these global records and these sheets.
fn build_stream(globals: &[u8], sheets: &[Vec<u8>]) -> Vec<u8> {
    let entry = |start: u32| encode_record(0x0085, &[&start.to_le_bytes()[..], &[0, 0, 1, 0, b's']].concat());
    let entries: usize = sheets.iter().map(|_| entry(0).len()).sum();
    let mut start = begin_record().len() + globals.len() + entries + end_record().len();
    let (mut list, mut bodies) = (Vec::new(), Vec::new());
    for sheet in sheets {
        list.extend(entry(u32::try_from(start).unwrap()));
        let body = [begin_record(), sheet.clone(), end_record()].concat();
        start += body.len();
        bodies.extend(body);
    }
    [begin_record(), globals.to_vec(), list, end_record(), bodies].concat()
}

/// A record with shared texts of these lengths, in characters.
fn shared_text_record(lengths: &[u16], wide: bool) -> Vec<u8> {
    let text = |&length: &u16| {
        let flag = [u8::from(wide)];
        [&length.to_le_bytes()[..], &flag, &vec![0x41; usize::from(length) * (1 + usize::from(wide))]].concat()
    };
    let all: Vec<u8> = [vec![0; 8], lengths.iter().flat_map(text).collect()].concat();
    encode_record(0x00fc, &all)
}

fn shared_text_cell(row: u16, text: u32) -> Vec<u8> {
    encode_record(0x00fd, &[encode_words(&[row, 0, 0]), text.to_le_bytes().to_vec()].concat())
}

fn is_too_large(stream: &[u8]) -> bool {
    assert!(stream.len() < 4 << 20, "{}", stream.len());
    matches!(check_memory(stream, LIMIT), Err(XlsFlaw::TooLarge))
}

fn fits_into_memory(stream: &[u8]) -> bool {
    check_memory(stream, LIMIT).is_ok()
}

#[test]
fn ordinary_sheets_pass_the_memory_check() {
    let rows: Vec<u8> = (0..60_000).flat_map(|row| [number_record(row, 0), number_record(row, 9)].concat()).collect();
    assert!(
        check_memory(&build_stream(&shared_text_record(&[10, 20], true), &[rows, number_record(0, 0)]), LIMIT).is_ok()
    );
    assert!(fits_into_memory(&[]) && fits_into_memory(&build_stream(&[], &[])));
}

#[test]
fn sheet_with_distant_cells_is_too_large() {
    let corners = [number_record(0, 0), number_record(u16::MAX, 255)].concat();
    assert!(is_too_large(&build_stream(&[], &[corners])));
    let records = [number_record(0, 0), number_record(u16::MAX, 10)].concat();
    assert!(fits_into_memory(&build_stream(&[], std::slice::from_ref(&records))));
    assert!(is_too_large(&build_stream(&[], &vec![records; 20])));
    assert!(matches!(check_memory(&build_stream(&[], &[number_record(0, 256)]), LIMIT), Err(XlsFlaw::Damaged)));
}

#[test]
fn long_shared_text_is_too_large() {
    let cells = |count: u16, text: u32| (0..count).flat_map(|row| shared_text_cell(row, text)).collect::<Vec<_>>();
    let shared_texts = shared_text_record(&[1, 8000], false);
    assert!(fits_into_memory(&build_stream(&shared_texts, &[cells(u16::MAX, 0)])));
    assert!(is_too_large(&build_stream(&shared_texts, &[cells(u16::MAX, 1)])));
    // A reference to a missing text counts as a reference to the longest possible text.
    assert!(is_too_large(&build_stream(&shared_texts, &[cells(u16::MAX, 7)])));
}

#[test]
fn continued_text_is_measured_across_records() {
    let head = [vec![0; 8], 9000_u16.to_le_bytes().to_vec(), vec![0], vec![b'a'; 8000]].concat();
    let rest = [vec![1], b"\x18\x04".repeat(1000), 5_u16.to_le_bytes().to_vec(), vec![0], b"abcde".to_vec()].concat();
    let stream = [encode_record(0x00fc, &head), encode_record(0x003c, &rest)].concat();
    let mut estimate = MemoryEstimate { remaining: LIMIT, code_page: UTF_16, ..MemoryEstimate::default() };
    estimate.read_shared_strings(BiffRecords(&stream).next_record().unwrap_or(None).unwrap()).unwrap_or(());
    assert_eq!(estimate.texts, [8000 + 2 * 1000, 5]);
}

#[test]
fn label_is_measured_by_its_declared_length() {
    let label = |row: u16| encode_record(0x0204, &[encode_words(&[row, 0, 0, u16::MAX]), vec![0]].concat());
    let labels: Vec<u8> = (0..20_000).flat_map(label).collect();
    assert!(is_too_large(&build_stream(&[], &[labels])));
}

#[test]
fn formula_with_long_text_is_too_large() {
    let tokens = [0x3a, 0, 0, 0, 0, 0, 0].repeat(1100);
    let formula = |row: u16| encode_record(0x0006, &[encode_words(&[row, 0]), vec![0; 16], tokens.clone()].concat());
    let formulas: Vec<u8> = (0..500).flat_map(formula).collect();
    let long_name = encode_record(0x0018, &[0, 0, 0, 255]);
    assert!(fits_into_memory(&build_stream(&[], std::slice::from_ref(&formulas))));
    assert!(is_too_large(&build_stream(&long_name, &[formulas])));
}

#[test]
fn sheets_that_share_records_are_rejected() {
    let body = build_stream(&[], &[number_record(0, 0).repeat(10_000)]);
    let start = u32_at(&body, begin_record().len() + 4).unwrap();
    let entry = encode_record(0x0085, &[&start.to_le_bytes()[..], &[0, 0, 1, 0, b's']].concat());
    // All entries point to the same sheet, which follows the new entries.
    let moved = start + u32::try_from(entry.len() * 3000).unwrap();
    let entry = encode_record(0x0085, &[&moved.to_le_bytes()[..], &[0, 0, 1, 0, b's']].concat());
    let hostile = [begin_record(), entry.repeat(3001), body[begin_record().len() + entry.len()..].to_vec()].concat();
    assert!(check_memory(&hostile, LIMIT).is_err());
    assert!(is_too_large(&[begin_record(), entry.repeat(MAX_SHEETS + 1), end_record()].concat()));
}

#[test]
fn endlessly_continued_records_are_rejected() {
    let endless = [encode_record(0x00fc, &[0; 8]), encode_record(0x003c, &[]).repeat(100_000), vec![0; 8]].concat();
    assert!(is_too_large(&[begin_record(), endless, end_record()].concat()));
}

#[test]
fn cells_of_an_embedded_chart_do_not_count() {
    let chart = [begin_record(), number_record(0, 0), number_record(u16::MAX, 255), end_record()].concat();
    let sheet = [number_record(0, 0), chart, number_record(5, 5)].concat();
    assert!(fits_into_memory(&build_stream(&[], &[sheet])));
}

#[test]
fn sheet_with_impossible_size_is_damaged() {
    let dimensions = encode_record(0x0200, &encode_words(&[0, 0, 0, 0xffff, 0, 0xff, 0]));
    assert!(matches!(check_memory(&build_stream(&[], &[dimensions]), LIMIT), Err(XlsFlaw::Damaged)));
    assert!(fits_into_memory(&build_stream(&[], &[encode_record(0x0200, &encode_words(&[0, 0, 1, 0, 0, 3, 0]))])));
}
