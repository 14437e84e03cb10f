//! Lists as programs save them: workbooks, other encodings, compressed files, and standard input.

use std::fs;

use rust_xlsxwriter::{ExcelDateTime, Format, Formula, Workbook};

use crate::support::{Folder, Gateway, campaign, phone};

/// A typical marketing workbook: numbers stored as numbers, a date, a percentage, an error, a hidden row, and a second
/// sheet.
fn write_workbook(folder: &Folder, name: &str) {
    let mut book = Workbook::new();
    let sheet = book.add_worksheet().set_name("Клієнти").expect("a name");
    for (column, header) in ["Телефон ", "Ім'я", "Сума", "Дата", "Знижка"].into_iter().enumerate()
    {
        sheet.write(0, u16::try_from(column).expect("few"), header).expect("a cell");
    }
    let (money, date) = (Format::new().set_num_format("#,##0.00 \"₴\""), Format::new().set_num_format("dd.mm.yyyy"));
    let (share, padded) = (Format::new().set_num_format("0%"), Format::new().set_num_format("0000000000"));
    sheet.write(1, 0, 380_501_234_567_u64).expect("a cell");
    sheet.write(1, 1, "Олена").expect("a cell");
    sheet.write_with_format(1, 2, 1234.5, &money).expect("a cell");
    let day = ExcelDateTime::from_ymd(2026, 12, 1).expect("a date");
    sheet.write_with_format(1, 3, &day, &date).expect("a cell");
    sheet.write_with_format(1, 4, 0.15, &share).expect("a cell");
    // Row 3 is blank.
    sheet.write_with_format(3, 0, 671_234_567, &padded).expect("a cell");
    sheet.write(3, 1, "Іван").expect("a cell");
    sheet.write(4, 0, "+38 (093) 123-45-67").expect("a cell");
    sheet.write(4, 1, Formula::new("=1/0").set_result("#DIV/0!")).expect("a cell");
    sheet.set_row_hidden(4).expect("a row");
    let other = book.add_worksheet().set_name("Архів").expect("a name");
    other.write(0, 0, "phone").expect("a cell");
    other.write(1, 0, "+380631234567").expect("a cell");
    book.save(folder.path(name)).expect("a workbook");
}

const TEXT: &str = "  - sms: { signature: OlenaCo, message: \"{{ name }}: {{ sum }}, {{ date }}, {{ share }}\" }";
const COLUMNS: &str = "columns: { phone: Телефон, name: \"Ім'я\", sum: Сума, date: Дата, share: Знижка }";

fn sale_from_workbook(gateway: &Gateway) -> Folder {
    let draft = campaign().channels(TEXT).recipients(COLUMNS).recipients("region: UA").through(gateway);
    let sale = draft.write();
    write_workbook(&sale, "list.xlsx");
    sale.replace("sale.yaml", "sale.csv", "list.xlsx");
    sale
}

#[test]
fn cells_are_sent_as_displayed_and_oddities_are_reported() {
    let gateway = Gateway::accepting();
    let sale = sale_from_workbook(&gateway);
    let checked = sale.campaign(&["check", "sale.yaml"]).exits(0);
    checked
        .says("sheet `Клієнти`, one of 2")
        .says("1 row is hidden in the sheet `Клієнти` but still included as a recipient: 5")
        .says("1 cell in the sheet `Клієнти` has an error such as `#DIV/0!` instead of a value: row 5");
    sale.run(&[]).exits(0).says("list: sheet `Клієнти`, one of 2");
    assert_eq!(gateway.phones(), [380_501_234_567, 380_671_234_567, 380_931_234_567]);
    let first = &gateway.sends()[0].operations()[0]["sms_message"];
    assert_eq!(first, "Олена: 1,234.50 ₴, 01.12.2026, 15%");
    assert_eq!(sale.results().column("row"), ["2", "4", "5"]);
    // The frozen list of a run does not depend on the workbook.
    fs::remove_file(sale.path("list.xlsx")).expect("a file");
    write_workbook(&sale, "list.xlsx");
    sale.run(&[]).exits(0).says("no recipients are left");
    assert_eq!(gateway.phones().len(), 3);
}

#[test]
fn named_sheet_is_used_and_an_unknown_name_is_reported() {
    let gateway = Gateway::accepting();
    let sale = sale_from_workbook(&gateway);
    sale.replace("sale.yaml", COLUMNS, "sheet: Архив");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("sale.yaml:").says("did you mean `Архів`?");
    sale.replace("sale.yaml", "sheet: Архив", "sheet: \" архів\"");
    sale.replace("sale.yaml", "{{ name }}: {{ sum }}, {{ date }}, {{ share }}", "Hello");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [380_631_234_567]);
}

#[test]
fn list_with_encoding_and_delimiter_can_be_resumed() {
    let gateway = Gateway::accepting();
    let list: String = (2..9).map(|row| format!("{}^Олена {row}\n", phone(row))).collect();
    let draft = campaign().recipients("encoding: windows-1251").recipients("delimiter: \"^\"").through(&gateway);
    let sale = draft.write();
    let bytes = encoding_rs::WINDOWS_1251.encode(&format!("phone^name\n{list}")).0.into_owned();
    fs::write(sale.path("sale.csv"), bytes).expect("a list");
    sale.run(&["--limit", "3"]).exits(0).says("encoding Windows-1251");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), (2..9).map(phone).collect::<Vec<_>>());
    let texts =
        gateway.sends().into_iter().flat_map(|send| send.operations()).map(|sms| sms["sms_message"].to_string());
    assert!(texts.collect::<Vec<_>>().contains(&"\"Hello, Олена 8\"".to_owned()));
    assert_eq!(sale.results().column("name")[6], "Олена 8");
    let checked = sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json();
    let is_reported =
        checked["findings"].as_array().expect("findings").iter().any(|finding| finding["rule"] == "list-form");
    assert!(is_reported, "{checked}");
}

#[test]
fn where_matches_short_cyrillic_cells_in_an_old_encoding() {
    let gateway = Gateway::accepting();
    for key in ["duplicates: skip", "region: UA"] {
        let sale = campaign().recipients("where: unsubscribed != \"так\"").recipients(key).through(&gateway).write();
        let list = format!("phone,name,unsubscribed\n{},Olena,\n{},Taras,так\n", phone(2), phone(3));
        fs::write(sale.path("sale.csv"), encoding_rs::WINDOWS_1251.encode(&list).0).expect("a list");
        let checked = sale.campaign(&["check", "sale.yaml"]).exits(0);
        let has_warning =
            checked.details().contains("is probably encoded in Windows-1251: one of its cells says `так`");
        assert_eq!(has_warning, !key.starts_with("region"), "{}", checked.details());
        let shown = sale.campaign(&["preview", "sale.yaml", "--rows", "3"]).exits(0);
        shown.says("skipped: filtered");
    }
}

#[test]
fn opt_outs_can_be_imported_from_any_list_format() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    let list = format!("Ім'я;Телефон\nОлена;{}\n", phone(3));
    fs::write(sale.path("stop.csv"), encoding_rs::WINDOWS_1251.encode(&list).0).expect("a list");
    sale.campaign(&["suppress", "import", "stop.csv", "--yes"]).exits(0);
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    sheet.write(0, 0, "Телефон").expect("a cell");
    sheet.write(1, 0, phone(4)).expect("a cell");
    book.save(sale.path("stop.xlsx")).expect("a workbook");
    sale.campaign(&["suppress", "import", "stop.xlsx", "--yes"]).exits(0);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [phone(2)]);
}

#[test]
fn init_writes_a_campaign_for_a_workbook() {
    let folder = Folder::new(false);
    write_workbook(&folder, "list.xlsx");
    folder.campaign(&["init", "clients", "--from", "list.xlsx"]).exits(0);
    folder.campaign(&["check", "clients.yaml"]).exits(0).says("3  rows in list.xlsx");
}
