//! Purchase tables, opt-out lists, lookup tables and results in every file format of a list.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rust_xlsxwriter::Workbook;
use serde_json::json;

use crate::support::{Folder, Gateway, campaign, in_files, note_on_failure, phone};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).expect("memory");
    packed.finish().expect("memory")
}

fn utf_16(text: &str) -> Vec<u8> {
    format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A workbook with these cells as texts.
fn workbook(text: &str) -> Vec<u8> {
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    for (row, line) in (0..).zip(text.lines()) {
        for (column, cell) in (0..).zip(line.split(';')) {
            sheet.write(row, column, cell).expect("a cell");
        }
    }
    book.save_to_buffer().expect("memory")
}

/// A semicolon-separated table in every format that programs write.
fn file_formats(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let windows = encoding_rs::WINDOWS_1251.encode(text).0.into_owned();
    vec![
        ("utf-8.csv", text.as_bytes().to_vec()),
        ("windows-1251.csv.gz", gzip(&windows)),
        ("windows-1251.csv", windows),
        ("unicode.txt", utf_16(&text.replace(';', "\t"))),
        ("list.csv.zst", zstd::encode_all(text.as_bytes(), 0).expect("memory")),
        ("book.xlsx.gz", gzip(&workbook(text))),
        ("book.xlsx", workbook(text)),
    ]
}

fn write_bytes(folder: &Folder, name: &str, bytes: &[u8]) {
    fs::write(folder.path(name), bytes).expect("a file");
}

#[test]
fn purchases_are_read_in_every_file_format() {
    let gateway = Gateway::accepting();
    let sale = campaign().top("timezone: Europe/Kyiv").through(&gateway).write();
    sale.run(&[]).exits(0);
    let at = Timestamp::now() + SignedDuration::from_hours(1);
    let purchases = format!("Дата;Телефон;Сума\n{at:.0};{};12,50\n{at:.0};Олена;1\n", phone(2));
    for (name, bytes) in file_formats(&purchases) {
        let _case = note_on_failure(format!("case: {name}"));
        write_bytes(&sale, name, &bytes);
        let command = ["outcome", "sale", "--file", name, "--at", "Дата", "--amount", "Сума"];
        let report = sale.campaign(&[&command[..], &["--json"]].concat()).exits(0).json();
        assert_eq!((&report["sent"][0]["bought"], &report["sent"][0]["amount"]), (&json!(1), &json!(12.5)), "{report}");
        assert_eq!(report["unusable"].as_array().map(Vec::len), Some(1), "{report}");
    }
}

#[test]
fn unreadable_purchase_file_is_refused_with_a_reason() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    let book = workbook("Date;Phone\n2026-12-01;+380501000002\n");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/corpus/malformed");
    let hidden = fs::read(corpus.join("all-sheets-hidden.ods")).expect("a file");
    for (name, bytes, words) in [
        ("half.xlsx", book[..book.len() / 2].to_vec(), &["is a workbook that cannot be read", "save it again"][..]),
        ("page.pdf", b"%PDF-1.7\n".to_vec(), &["is not a list: it is a PDF document"]),
        ("half.csv.gz", gzip(b"Date,Phone\n")[..15].to_vec(), &["is an incomplete"]),
        ("hidden.ods", hidden, &["no visible sheet", "make the sheet visible"]),
    ] {
        let _case = note_on_failure(format!("case: {name}"));
        write_bytes(&sale, name, &bytes);
        let refused = sale.campaign(&["outcome", "sale", "--file", name, "--at", "Date"]).exits(2);
        words.iter().fold(refused, |refused, words| {
            assert!(!refused.stderr.contains("under `recipients`"), "{}", refused.stderr);
            refused.says(words)
        });
    }
}

#[test]
fn opt_outs_and_small_tables_are_read_in_every_file_format() {
    let opt_outs = format!("Телефон;Ім'я\n{};Олена\n", phone(3));
    let stores = "City;address\nКиїв;Хрещатик\n";
    for ((name, opted_out), (_, stores)) in file_formats(&opt_outs).into_iter().zip(file_formats(stores)) {
        let _case = note_on_failure(format!("case: {name}"));
        let gateway = Gateway::accepting();
        let sms = "  - sms: { signature: OlenaCo, message: \"{{ stores['Київ'].address }}\" }";
        let data = format!("data: {{ stores: {{ file: data-{name}, key: City }} }}");
        let files = format!("suppress: [stop-{name}]");
        let sale = campaign().channels(sms).top(&data).recipients(&files).through(&gateway).write();
        write_bytes(&sale, &format!("data-{name}"), &stores);
        write_bytes(&sale, &format!("stop-{name}"), &opted_out);
        sale.run(&[]).exits(0);
        assert_eq!(gateway.phones(), [phone(2), phone(4)]);
        assert_eq!(gateway.sends()[0].operations()[0]["sms_message"], "Хрещатик");
        let report = sale.campaign(&["suppress", "import", &format!("stop-{name}"), "--yes", "--json"]).exits(0).json();
        assert_eq!(report["added"], json!(1), "{report}");
    }
}

#[test]
fn results_are_recognized_in_every_file_format() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    let results = fs::read_to_string(sale.path("results/sale.csv")).expect("results").replace(',', ";");
    let forms = file_formats(&results);
    for (name, bytes) in &forms {
        let _case = note_on_failure(format!("case: {name}"));
        write_bytes(&sale, "again.csv", bytes);
        sale.campaign(&["results", "sale", "--out", "again.csv"]).exits(0);
        let again = fs::read_to_string(sale.path("again.csv")).expect("results");
        assert!(again.starts_with("row,id,to,state"), "{again}");
    }
    fs::remove_dir_all(sale.path("state")).expect("a state folder");
    for (name, bytes) in &forms {
        let _case = note_on_failure(format!("case: {name}"));
        write_bytes(&sale, "results/sale.csv", bytes);
        sale.run(&[]).exits(74).says("results/sale.csv");
    }
    assert_eq!(gateway.phones().len(), 3);
}

#[test]
fn file_that_only_looks_empty_is_not_replaced_by_results() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    let mut book = Workbook::new();
    book.add_worksheet();
    book.add_worksheet().write(0, 0, "my work").expect("a cell");
    for (name, bytes) in [("mine.xlsx", book.save_to_buffer().expect("memory")), ("mine.csv", gzip(b""))] {
        write_bytes(&sale, name, &bytes);
        sale.campaign(&["results", "sale", "--out", name]).exits(2).says("is not a results file");
        assert_eq!(fs::read(sale.path(name)).expect("a file"), bytes);
    }
}
