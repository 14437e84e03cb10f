//! Results as an Excel workbook, read back with another library.

use calamine::{Data, Reader as _, Xlsx, open_workbook};

use crate::support::{Answer, Folder, Gateway, Process, campaign, in_files, phone, rejected};

/// The columns of a list with numbers, numeric codes and dates.
const COLUMNS: &str = "phone,name,points,code,joined";

fn campaign_with_types(gateway: &Gateway) -> Folder {
    let rows = [("Olena", "120", "007", "2026-10-01"), ("=1+1", "", "380671112233", "soon")];
    let rows = rows.iter().zip(2..);
    let rows =
        rows.map(|((name, points, code, joined), row)| format!("{},{name},{points},{code},{joined}\n", phone(row)));
    let list = format!("{COLUMNS}\n{}", rows.collect::<String>());
    campaign().with_list(&list).top("results: results/sale.xlsx").through(gateway).write()
}

/// The rows of a workbook, including the header.
fn read_sheet(folder: &Folder, file: &str) -> Vec<Vec<Data>> {
    let mut book: Xlsx<_> = open_workbook(folder.path(file)).expect("a workbook");
    let range = book.worksheet_range_at(0).expect("a sheet").expect("a readable sheet");
    range.rows().map(<[Data]>::to_vec).collect()
}

/// The cell of a row under this header.
fn cell<'s>(sheet: &'s [Vec<Data>], row: usize, header: &str) -> &'s Data {
    let column = sheet[0].iter().position(|cell| cell == &Data::String(header.into())).expect("the column");
    &sheet[row][column]
}

#[test]
fn results_workbook_keeps_column_types() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_types(&gateway);
    sale.run(&[]).exits(0).says("results/sale.xlsx");
    let book = read_sheet(&sale, "results/sale.xlsx");
    assert_eq!(book.len(), 3);
    assert_eq!(cell(&book, 1, "row"), &Data::Float(2.0));
    assert_eq!(cell(&book, 1, "to"), &Data::String(phone(2).to_string()));
    assert!(matches!(cell(&book, 1, "id"), Data::Float(id) if *id > 0.0), "{:?}", cell(&book, 1, "id"));
    assert!(matches!(cell(&book, 1, "submitted_at"), Data::DateTime(time) if time.is_datetime()));
    assert_eq!(cell(&book, 1, "points"), &Data::Float(120.0));
    assert_eq!(cell(&book, 1, "code"), &Data::String("007".into()));
    assert!(matches!(cell(&book, 1, "joined"), Data::DateTime(day) if day.as_f64() == 46_296.0));
    // A formula is kept as text, without an escape.
    assert_eq!(cell(&book, 2, "name"), &Data::String("=1+1".into()));
    assert_eq!(cell(&book, 2, "points"), &Data::Empty);
    assert_eq!(cell(&book, 2, "code"), &Data::String("380671112233".into()));
    assert_eq!(cell(&book, 2, "joined"), &Data::String("soon".into()));
}

/// The cells of the sheet `Summary` as text.
fn read_summary(folder: &Folder, file: &str) -> Vec<Vec<String>> {
    let mut book: Xlsx<_> = open_workbook(folder.path(file)).expect("a workbook");
    let range = book.worksheet_range("Summary").expect("a summary");
    range.rows().map(|row| row.iter().map(ToString::to_string).collect()).collect()
}

/// The value of a line in the summary.
fn summary_value(summary: &[Vec<String>], name: &str) -> String {
    let line = summary.iter().find(|line| line[0] == name).unwrap_or_else(|| panic!("no `{name}` in {summary:?}"));
    line[1].clone()
}

#[test]
fn results_for_excel_are_a_workbook_with_a_summary() {
    let gateway = Gateway::answering([Answer::items(|operation| rejected(operation, "=No route"))]);
    let list = format!("phone,name\n{},=1+1\n{},Bo\n12,Nobody\n", phone(2), phone(3));
    let sale = campaign().with_list(&list).recipients("max_invalid: 100%").through(&gateway).write();
    sale.run(&["--keep-going"]).exits(3);
    sale.campaign(&["results", "sale", "--excel"]).exits(0).says("results/sale.excel.xlsx");
    let book = read_sheet(&sale, "results/sale.excel.xlsx");
    assert_eq!((book.len(), cell(&book, 1, "name")), (4, &Data::String("=1+1".into())));
    assert_eq!(cell(&book, 1, "to"), &Data::String(phone(2).to_string()));
    let summary = read_summary(&sale, "results/sale.excel.xlsx");
    for (name, shown) in
        [("Run", "sale@1"), ("Recipients", "3"), ("Delivered", "0"), ("rejected", "1"), ("invalid", "1")]
    {
        assert_eq!(summary_value(&summary, name), shown, "{summary:?}");
    }
    let has_line = |words: [&str; 3]| summary.iter().any(|line| line == &words.map(str::to_owned));
    assert!(has_line(["rejected", "1", "=No route"]), "{summary:?}");
    assert!(has_line(["invalid", "1", "too short for a phone number"]), "{summary:?}");
    sale.campaign(&["results", "sale", "--people", "--excel"]).exits(0).says("results/sale.people.excel.xlsx");
    assert_eq!(summary_value(&read_summary(&sale, "results/sale.people.excel.xlsx"), "rejected"), "1");
    // The workbook can be used as a list.
    sale.replace("sale.yaml", "file: sale.csv", "file: results/sale.excel.xlsx");
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("sheet `Results`, one of 3");
}

#[test]
fn file_extension_determines_the_results_format() {
    let gateway = Gateway::accepting();
    let sale = campaign().recipients("region: UA").through(&gateway).write();
    sale.run(&[]).exits(0);
    for options in [&["--excel", "--out", "a.xlsx"][..], &["--out", "a.xlsx"], &["--excel", "--out", "A.XLSX"]] {
        sale.campaign(&[&["results", "sale"], options].concat()).exits(0);
        assert_eq!(read_sheet(&sale, options[options.len() - 1]).len(), 4);
    }
    let export_header = |options: &[&str], file: &str| {
        sale.campaign(&[&["results", "sale"], options].concat()).exits(0);
        std::fs::read_to_string(sale.path(file)).expect("results").lines().next().expect("a header").to_owned()
    };
    assert!(export_header(&["--excel", "--out", "a.csv"], "a.csv").starts_with("\u{feff}row;id;to;"));
    assert!(export_header(&["--out", "a.csv"], "a.csv").starts_with("row,id,to,"));
}

#[test]
fn excel_results_for_a_workbook_list_use_a_regional_separator() {
    for (region, header) in [("UA", "\u{feff}row;id;"), ("GB", "\u{feff}row,id,")] {
        let gateway = Gateway::accepting();
        let sale = campaign().recipients(&format!("region: {region}")).through(&gateway).write();
        let mut book = rust_xlsxwriter::Workbook::new();
        let list = book.add_worksheet();
        for (row, cells) in (0..).zip([["phone", "name"], ["+380501000002", "Ann"]]) {
            list.write_row(row, 0, cells).expect("cells");
        }
        book.save(sale.path("list.xlsx")).expect("a workbook");
        sale.replace("sale.yaml", "sale.csv", "list.xlsx");
        sale.run(&[]).exits(0);
        sale.campaign(&["results", "sale", "--excel", "--out", "a.csv"]).exits(0);
        let written = std::fs::read_to_string(sale.path("a.csv")).expect("results");
        assert!(written.starts_with(header), "{region}: {written}");
    }
}

#[test]
fn workbook_export_replaces_only_results_files() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_types(&gateway);
    sale.run(&[]).exits(0);
    sale.campaign(&["results", "sale", "--out", "again.xlsx", "--state", "accepted"]).exits(0);
    assert_eq!(read_sheet(&sale, "again.xlsx").len(), 3);
    sale.campaign(&["results", "sale", "--out", "again.xlsx", "--state", "rejected"]).exits(0);
    assert_eq!(read_sheet(&sale, "again.xlsx").len(), 1, "only the header");
    sale.write("mine.xlsx", "my work\n");
    sale.campaign(&["results", "sale", "--out", "mine.xlsx"]).exits(2).says("is not a results file");
    sale.campaign(&["results", "sale", "--out", "old.xls"]).exits(2).says("use `.xlsx` or `.csv`");
    assert_eq!(
        std::fs::read_dir(sale.path("."))
            .expect("a folder")
            .filter(|entry| { entry.as_ref().expect("an entry").file_name().to_string_lossy().ends_with(".tmp") })
            .count(),
        0
    );
}

#[cfg(unix)]
#[test]
fn full_disk_leaves_no_partial_workbook_behind() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3_000).through(&gateway).write();
    sale.run(&[]).exits(0);
    let out = ["results", "sale", "--out", "books/sale.xlsx"];
    let output = Process::start(sale.command_after("ulimit -f 1500", &out)).finish().exits(74);
    assert!(output.stderr.contains("books/sale.xlsx") && !output.stderr.contains("panicked"), "{}", output.details());
    let files: Vec<_> = std::fs::read_dir(sale.path("books")).expect("a folder").collect();
    assert!(files.is_empty(), "{files:?}");
}

#[test]
fn forgotten_recipient_is_removed_from_a_workbook() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_types(&gateway);
    sale.run(&[]).exits(0);
    sale.campaign(&["forget", &format!("+{}", phone(2)), "--yes"]).exits(0);
    let book = read_sheet(&sale, "results/sale.xlsx");
    assert_eq!((cell(&book, 1, "to"), cell(&book, 1, "name")), (&Data::Empty, &Data::Empty));
    assert_eq!(cell(&book, 2, "to"), &Data::String(phone(3).to_string()));
}

#[test]
fn results_workbook_reveals_messages_missing_from_the_ledger() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign_with_types(&gateway);
    sale.run(&[]).exits(0);
    std::fs::remove_dir_all(sale.path("state")).expect("a state folder");
    sale.run(&[]).exits(74).says("results/sale.xlsx");
    assert_eq!(gateway.phones().len(), 2);
}
