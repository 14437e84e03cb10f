//! Lists behind a cover sheet or below titles, and several phone columns.

use rust_xlsxwriter::Workbook;

use crate::support::{Draft, Folder, Gateway, campaign, phone};

/// Writes a workbook with a cover sheet, and a sheet with titles above the header row.
fn write_workbook(folder: &Folder, name: &str) {
    let mut book = Workbook::new();
    let cover = book.add_worksheet().set_name("Cover").expect("a name");
    for (row, cells) in (0..).zip([["Report", ""], ["Made by", "Olena"], ["Phone", "+380501234567"]]) {
        cover.write_row(row, 0, cells).expect("cells");
    }
    let list = book.add_worksheet().set_name("Spring clients").expect("a name");
    list.write(0, 0, "Clients of spring").expect("a cell");
    list.write(1, 1, "all of them").expect("a cell");
    for (row, cells) in (3..).zip([["Телефон", "name"], ["0501000002", "Ann"], ["0501000003", "Bo"]]) {
        list.write_row(row, 0, cells).expect("cells");
    }
    book.save(folder.path(name)).expect("a workbook");
}

#[test]
fn init_suggests_the_sheet_and_header_row_of_a_list() {
    let folder = Folder::new(false);
    write_workbook(&folder, "book.xlsx");
    let found = "the sheet `Spring clients` seems to contain the list, with its header in row 4";
    let init = ["init", "spring", "--from", "book.xlsx"];
    let refused = folder.campaign(&init).exits(2).says(found);
    refused.says("add `--sheet 'Spring clients' --header-row 4`");
    assert!(!folder.path("spring.yaml").exists());
    let sheet = [&init[..], &["--sheet", "Spring clients"]].concat();
    folder.campaign(&sheet).exits(2).says("row 4 looks like the list header: add `--header-row 4`");
    folder.campaign(&[&sheet[..], &["--header-row", "4"]].concat()).exits(0).says("phone numbers in `Телефон`");
    folder.campaign(&["check", "spring.yaml"]).exits(0).says("sheet `Spring clients`, one of 2, header in row 4");
    folder.campaign(&["run", "spring.yaml"]).exits(0);
    let rows = folder.campaign(&["results", "spring", "--out", "-"]).exits(0).stdout;
    assert!(rows.lines().nth(1).is_some_and(|row| row.starts_with("5,")), "{rows}");
    folder.campaign(&["init", "other", "--header-row", "4"]).exits(2).says("--from");
}

#[test]
fn check_suggests_the_sheet_and_header_row_of_a_list() {
    let gateway = Gateway::accepting();
    let columns = "columns: { phone: Телефон }";
    let sale = campaign().recipients(columns).recipients("region: UA").through(&gateway).write();
    write_workbook(&sale, "book.xlsx");
    sale.replace("sale.yaml", "file: sale.csv", "file: book.xlsx");
    let refused =
        sale.campaign(&["check", "sale.yaml"]).exits(2).says("the sheet `Spring clients` seems to contain the list");
    refused.says("write `sheet: \"Spring clients\"` and `header_row: 4` under `recipients`");
    sale.run(&[]).exits(2).says("`header_row: 4`");
    sale.replace("sale.yaml", "file: book.xlsx", "file: book.xlsx\n  sheet: Spring clients");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("row 4 looks like the list header: write `header_row: 4`");
    sale.replace("sale.yaml", "file: book.xlsx", "file: book.xlsx\n  header_row: 4");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [380_501_000_002, 380_501_000_003]);
    assert_eq!(sale.results().column("row"), ["5", "6"]);
}

#[test]
fn row_numbers_with_a_header_row_are_kept_on_resume() {
    let gateway = Gateway::accepting();
    let list = format!("Clients,of spring\n\"two\nlines\";x\nphone;name\n{};Ann\n{};Bo\n", phone(4), phone(5));
    let sale = campaign().with_list(&list).recipients("header_row: 3").through(&gateway).write();
    sale.run(&["--limit", "1"]).exits(0);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [phone(4), phone(5)]);
    assert_eq!(sale.results().column("row"), ["4", "5"]);
    sale.replace("sale.yaml", "header_row: 3", "header_row: 9");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("ends before row 9, which should contain the header");
    sale.replace("sale.yaml", "header_row: 9", "header_row: 0");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("sale.yaml:").says("a whole number from 1 to 1000");
}

const MOBILE: &str = "+380671234567";
const HOME: &str = "+380441234567";

/// A list with a mobile and a second number for each person.
fn list_with_two_numbers() -> Draft {
    let list = format!(
        "name,home,mobile\nAnn,{HOME},{MOBILE}\nBo,+380501000003,\nCy,+380501000004,12\nDan,{HOME},\nEve,,\n\
         Fay,{MOBILE},nothing\nGus,+380501000008,{HOME}\n"
    );
    campaign().with_list(&list).recipients("max_invalid: 90%")
}

#[test]
fn first_valid_number_among_several_columns_is_used() {
    let gateway = Gateway::accepting();
    let sale = list_with_two_numbers().recipients("columns: { phone: [mobile, Home] }").through(&gateway).write();
    sale.campaign(&["suppress", "add", "+380501000003"]).exits(0);
    let _ = sale.run(&["--limit", "1"]);
    sale.run(&[]).exits(3);
    let sent = [380_671_234_567, 380_501_000_004, 380_441_234_567, 380_501_000_008];
    assert_eq!(gateway.phones(), sent);
    let results = sale.results();
    let states = ["accepted", "skipped", "accepted", "accepted", "invalid", "skipped", "accepted"];
    assert_eq!(results.states(), states);
    let reasons = results.column("reason");
    assert_eq!((reasons[1], reasons[4], reasons[5]), ("opted out", "no phone number", "duplicate number"));
    assert_eq!(results.column("to")[3], "380441234567");
    // The guard knows which numbers have a message, regardless of their column.
    sale.replace("sale.yaml", "[mobile, Home]", "[home, mobile]");
    let _ = sale.run(&["--accept-changes"]);
    assert_eq!(gateway.phones(), sent);
}

#[test]
fn missing_or_repeated_phone_column_is_refused() {
    let gateway = Gateway::accepting();
    for (columns, words) in [
        ("[mobile, work]", "the list has no column `work`"),
        ("[mobile, mobile]", "lists `mobile` twice"),
        ("[]", "one header, or a list of 1 to 10 headers"),
        ("[mobile, {}]", "one header, or a list of 1 to 10 headers"),
    ] {
        let sale = list_with_two_numbers().recipients(&format!("columns: {{ phone: {columns} }}"));
        sale.through(&gateway).write().campaign(&["check", "sale.yaml"]).exits(2).says(words);
    }
    let other = list_with_two_numbers().recipients("columns: { phone: mobile, name: [name, home] }");
    other
        .through(&gateway)
        .write()
        .campaign(&["check", "sale.yaml"])
        .exits(2)
        .says("`name` must be a single text value");
    assert!(gateway.requests().is_empty());
}

#[test]
fn check_suggests_the_header_row_below_a_title() {
    let gateway = Gateway::accepting();
    let list = format!("Clients of spring,\nphone,name\n{},Ann\n{},Bo\n", phone(3), phone(4));
    let sale = campaign().with_list(&list).recipients("columns: { phone: Clients of spring }").through(&gateway);
    let sale = sale.channels("  - sms:\n      signature: OlenaCo\n      message: Hello").write();
    let check =
        sale.campaign(&["check", "sale.yaml"]).exits(0).says("the phone numbers are under the header `phone` in row 2");
    check.says("write `header_row: 2` under `recipients`, or delete the rows above the header");
    sale.replace("sale.yaml", "message: Hello", "message: Hello {{ name }}");
    let check = sale.campaign(&["check", "sale.yaml"]).exits(2).says("error[recipients-no-header]");
    check.says("write `header_row: 2` under `recipients`");
    sale.replace("sale.yaml", "columns: { phone: Clients of spring }", "header_row: 2");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [phone(3), phone(4)]);
}

#[test]
fn whitespace_around_cells_is_ignored_in_texts_and_conditions() {
    let gateway = Gateway::accepting();
    let list = format!("phone,name,plan\n{}, Ann , gold\n{},Bo,\u{a0}silver \n", phone(2), phone(3));
    let sale = campaign().with_list(&list).recipients("where: plan == \"gold\"").through(&gateway);
    let sale = sale.channels("  - sms:\n      signature: OlenaCo\n      message: Hello, {{ name }}!").write();
    sale.campaign(&["preview", "sale.yaml"]).exits(0).says("Hello, Ann!");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [phone(2)]);
    assert_eq!(sale.results().column("name"), [" Ann ", "Bo"]);
}
