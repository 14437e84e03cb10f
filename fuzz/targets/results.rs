//! Fuzz target for results files: every cell of the list survives each format, and no cell becomes a formula.

use std::io::{self, Cursor};
use std::path::Path;
use std::sync::LazyLock;

use jiff::civil::date;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use campaign_content::audience::{clean_cell, decode_table, read_columns};
use campaign_core::domain::OperationKind;
use campaign_engine::report::{ListSource, Listing, ResultsFormat, RowSelection, write_results};
use campaign_ledger::{ExcludedRows, ListReader};
use campaign_manifest::{Campaign, CampaignDay, load_campaign};

/// The separator between the cells of a row.
const CELL: char = '\u{1f}';
/// The separator between rows.
const ROW: char = '\u{1e}';
/// The maximum number of rows. More rows take longer and find nothing new.
const MAX_ROWS: usize = 16;

static CAMPAIGN: LazyLock<Campaign> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sale.yaml");
    let text = "recipients: { file: list.csv }\nchannels:\n  - sms: { signature: Shop, message: Hello }\n";
    std::fs::write(&path, text).expect("a file");
    std::fs::write(folder.path().join("list.csv"), "phone\n380501234567\n").expect("a file");
    let loaded = load_campaign(&path, CampaignDay::Is(date(2026, 12, 1)));
    loaded.value.unwrap_or_else(|| panic!("a campaign: {:?}", loaded.findings))
});

/// Checks the results of a list. The bytes are rows of two cells, `name` and `note`.
pub(super) fn check(data: &[u8]) {
    let Ok(input) = std::str::from_utf8(data) else { return };
    let cells = |row: &str| {
        let (name, note) = row.split_once(CELL).unwrap_or((row, ""));
        [name.to_owned(), note.to_owned()]
    };
    let rows: Vec<[String; 2]> = input.split(ROW).take(MAX_ROWS).map(cells).collect();
    let mut list = csv::Writer::from_writer(Vec::new());
    list.write_record(["phone", "name", "note"]).expect("memory");
    for (index, [name, note]) in rows.iter().enumerate() {
        list.write_record([&format!("3805012345{index:02}"), name, note]).expect("memory");
    }
    let list = list.into_inner().expect("memory");
    let formats = [ResultsFormat::Csv, ResultsFormat::Excel, ResultsFormat::Workbook, ResultsFormat::Json];
    for format in formats {
        // A list that is rejected has no results.
        let Some(results) = write_dry_run_results(&list, format) else { return };
        match format {
            ResultsFormat::Json => check_json(&results, &rows),
            ResultsFormat::Csv => check_csv(&results, b',', &rows, escape_cell),
            ResultsFormat::Workbook => check_csv(&results, b',', &rows, str::to_owned),
            ResultsFormat::Excel => check_own_reader(&results, &rows),
        }
        if format == ResultsFormat::Csv {
            check_own_reader(&results, &rows);
        }
    }
}

/// The results of a dry run with this list; `None` if the list is rejected.
fn write_dry_run_results(list: &[u8], format: ResultsFormat) -> Option<Vec<u8>> {
    let sha256: String = Sha256::digest(list).iter().map(|byte| format!("{byte:02x}")).collect();
    let open = || -> io::Result<ListReader> { Ok(Box::new(Cursor::new(list.to_vec()))) };
    let listing = Listing {
        recipients: ListSource::Outside { path: Path::new("list.csv"), open: &open },
        recipients_sha256: &sha256,
        brief: &CAMPAIGN.brief,
        run: None,
        kind: OperationKind::Sms,
        left_out: &ExcludedRows::default(),
        selection: RowSelection::default(),
        only: None,
        records: None,
        earlier: None,
    };
    let mut results = Vec::new();
    super::wait_for(write_results(&mut results, format, vec![listing])).ok()?;
    Some(results)
}

/// The cell as it must be written: with an apostrophe if a spreadsheet could run it.
fn escape_cell(cell: &str) -> String {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let is_formula = match cell.chars().next() {
        Some('=' | '@' | '\t' | '\r') => true,
        Some('+' | '-') => !is_number(&cell[1..]),
        _ => false,
    };
    if is_formula { format!("'{cell}") } else { cell.to_owned() }
}

fn check_csv(results: &[u8], delimiter: u8, rows: &[[String; 2]], expected: impl Fn(&str) -> String) {
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(results);
    let headers = reader.headers().expect("a header").clone();
    let find = |name: &str| headers.iter().position(|header| header == name).expect("a column");
    let (name, note) = (find("name"), find("note"));
    let records: Vec<csv::StringRecord> = reader.records().map(|record| record.expect("a record")).collect();
    assert_eq!(records.len(), rows.len(), "rows were lost");
    for (record, row) in records.iter().zip(rows) {
        assert_eq!([&record[name], &record[note]], [expected(&row[0]), expected(&row[1])], "a cell was changed");
    }
}

fn check_json(results: &[u8], rows: &[[String; 2]]) {
    let json = [b"[", results, b"]"].concat();
    let objects: Vec<Value> = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(objects.len(), rows.len(), "rows were lost");
    for (object, [name, note]) in objects.iter().zip(rows) {
        assert_eq!((object["name"].as_str(), object["note"].as_str()), (Some(&**name), Some(&**note)));
    }
}

/// Checks that campaign reads the cells that it wrote.
fn check_own_reader(results: &[u8], rows: &[[String; 2]]) {
    let file = Path::new("results.csv");
    let text = decode_table(Cursor::new(results.to_vec()), file, None).expect("our own file");
    let mut read = Vec::new();
    let found = read_columns(text, file, ["name", "note"], |_, cells| read.push(cells.map(str::to_owned)));
    assert_eq!(found.expect("our own file"), [true, true]);
    assert_eq!(read.len(), rows.len(), "rows were lost");
    for (read, row) in read.iter().zip(rows) {
        for (read, cell) in read.iter().zip(row) {
            let is_same = [cell.clone(), escape_cell(cell)].iter().any(|cell| clean_cell(cell) == *read);
            assert!(is_same, "{cell:?} was read as {read:?}");
        }
    }
}
