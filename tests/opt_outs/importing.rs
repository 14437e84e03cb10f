//! `campaign suppress import`: preview, confirmation, and columns from other programs.

use serde_json::json;

use super::{entries, opt_out};
use crate::support::{Folder, Terminal, campaign, phone};

/// A folder with a list of the numbers in these rows, and with row 2 on the suppression list.
fn folder_with_list(rows: std::ops::Range<usize>) -> Folder {
    let sale = campaign().write();
    let lines: String = rows.map(|row| format!("+{}\n", phone(row))).collect();
    sale.write("clients.csv", &format!("phone\n{lines}"));
    opt_out(&sale, 2, &[]);
    sale
}

#[test]
fn import_is_confirmed_by_typing_the_number_of_new_opt_outs() {
    let sale = folder_with_list(2..6);
    let list = std::fs::read_to_string(sale.path("clients.csv")).expect("a list");
    sale.write("clients.csv", &format!("{list}+{}\n", phone(3)));
    let import = || sale.command(&["suppress", "import", "clients.csv"]);
    for typed in ["", "yes", "5", "33"] {
        let terminal = Terminal::start(import());
        terminal.shows("5 rows · 3 new · 1 already on the list · 1 repeated · 0 invalid");
        terminal.shows("Add 3 opt-outs from clients.csv?").shows("opt out of marketing");
        terminal.shows("campaign suppress remove --source 'clients.csv, ");
        terminal.shows("Type 3 to add 3 opt-outs, or press Enter to cancel: ").types(typed);
        terminal.shows("Cancelled. Nothing was changed.");
        terminal.finish().exits(2);
        assert_eq!(entries(&sale).len(), 1);
    }
    let terminal = Terminal::start(import());
    terminal.shows("or press Enter").types("3");
    terminal.shows("3 new · ");
    terminal.finish().exits(0);
    assert_eq!(entries(&sale).len(), 4);
    // A file without new numbers needs no confirmation.
    sale.campaign(&["suppress", "import", "clients.csv"]).exits(0).says("0 new · ");
}

#[test]
fn every_phone_column_of_a_file_is_imported() {
    let sale = campaign().write();
    let rows = [2, 4].map(|row| format!("Olha,+{},+{}\n", phone(row), phone(row + 1))).concat();
    sale.write("clients.csv", &format!("name,phone,mobile\n{rows}Ivan,+{},\n", phone(2)));
    let report = sale.campaign(&["suppress", "import", "clients.csv", "--yes", "--json"]).exits(0).json();
    let counts = ["rows", "added", "already", "repeated"].map(|key| report[key].clone());
    assert_eq!(counts, [json!(3), json!(4), json!(0), json!(1)], "{report}");
    assert!(
        report["warnings"][0]
            .as_str()
            .is_some_and(|warning| warning.contains("`mobile`") && warning.contains("`phone`")),
        "{report}"
    );
    let mut phones: Vec<String> =
        entries(&sale).iter().map(|entry| entry["phone"].as_str().expect("a number").to_owned()).collect();
    phones.sort();
    assert_eq!(phones, [2, 3, 4, 5].map(|row| phone(row).to_string()));
    sale.write("clients.csv", &format!("phone,mobile\n+{},0{}\n", phone(8), phone(9) % 1_000_000_000));
    let refused = sale.campaign(&["suppress", "import", "clients.csv", "--yes"]).exits(2);
    refused.says("clients.csv:2").says("--region UA").says("nothing was imported");
}

#[test]
fn import_without_a_terminal_needs_confirmation() {
    let sale = folder_with_list(2..6);
    let refused = sale.campaign(&["suppress", "import", "clients.csv"]).exits(2);
    let refused = refused.says("importing `clients.csv` (4 rows · 3 new · 1 already on the list)");
    refused.says("nothing was changed").says("help: ").says("`--yes`");
    let refused = sale.campaign(&["suppress", "import", "clients.csv", "--json"]).exits(2).json();
    assert_eq!((&refused["exit"], refused["help"].is_string()), (&json!(2), true), "{refused}");
    assert_eq!(entries(&sale).len(), 1);
    let report = sale.campaign(&["suppress", "import", "clients.csv", "--yes", "--json"]).exits(0).json();
    let counts = ["rows", "added", "already", "repeated"].map(|key| report[key].clone());
    assert_eq!(counts, [json!(4), json!(3), json!(1), json!(0)], "{report}");
    assert_eq!((&report["warnings"], entries(&sale).len()), (&json!([]), 4));
}

#[test]
fn single_number_is_added_without_confirmation() {
    let sale = folder_with_list(2..3);
    sale.campaign(&["suppress", "add", &format!("+{}", phone(9))]).exits(0).says("no more marketing messages");
}

#[test]
fn subscribed_recipients_are_shown_before_confirmation() {
    for (header, words) in [
        ("status", ["subscribed", "unsubscribed"]),
        ("Статус", ["підписаний", "відписаний"]),
        ("Состояние", ["Активен", "Отписан"]),
        ("opt_out", ["no", "yes"]),
        ("Згода", ["так", "ні"]),
        ("do_not_sms", ["0", "1"]),
    ] {
        let sale = campaign().write();
        let lines: String =
            (2..7).map(|row| format!("+{};{}\n", phone(row), words[usize::from(row % 2 == 1)])).collect();
        sale.write("clients.csv", &format!("phone;{header}\n{lines}"));
        let terminal = Terminal::start(sale.command(&["suppress", "import", "clients.csv"]));
        terminal.shows("warning: the column `").shows(header).shows("3 rows as not opted out").shows(words[0]);
        terminal.shows("and 2 as opted out").shows("Type 5 to add").types("");
        terminal.finish().exits(2);
        sale.campaign(&["suppress", "import", "clients.csv"]).exits(2).says("3 rows as not opted out");
        let report = sale.campaign(&["suppress", "import", "clients.csv", "--yes", "--json"]).exits(0).json();
        assert!(
            report["warnings"][0].as_str().is_some_and(|warning| warning.contains("to a separate file")),
            "{report}"
        );
    }
}

#[test]
fn column_marking_recipients_as_opted_out_is_not_reported() {
    let sale = campaign().write();
    let lines: String = (2..5).map(|row| format!("+{},unsubscribed,active life\n", phone(row))).collect();
    sale.write("stop.csv", &format!("phone,status,hobby\n{lines}"));
    let report = sale.campaign(&["suppress", "import", "stop.csv", "--yes", "--json"]).exits(0).json();
    assert_eq!(report["warnings"], json!([]));
}

#[test]
fn opt_out_dates_from_other_programs_are_kept() {
    for header in ["unsubscribed_at", "Date", "Дата відписки", "дата"] {
        let sale = campaign().write();
        let dates = ["2025-03-01T10:00:00+02:00", "2025-03-01 10:00", "01.03.2025", "soon", ""];
        let rows = dates.iter().enumerate();
        let lines: String = rows.map(|(row, date)| format!("+{},{date}\n", phone(row + 2))).collect();
        sale.write("stop.csv", &format!("phone,{header}\n{lines}"));
        let report = sale.campaign(&["suppress", "import", "stop.csv", "--yes", "--json"]).exits(0).json();
        let warnings = report["warnings"].as_array().expect("warnings").iter().filter_map(|warning| warning.as_str());
        let names_undated_row = |warning: &str| {
            warning.contains("1 row") && warning.contains("unreadable or future") && warning.contains(header)
        };
        assert!(warnings.into_iter().any(names_undated_row), "{report}");
        let since: Vec<String> = entries(&sale).iter().map(|entry| entry["at"].as_str().unwrap().to_owned()).collect();
        let expected = ["2025-03-01T08:00:00.000Z", "2025-03-01T10:00:00.000Z", "2025-03-01T00:00:00.000Z"];
        assert_eq!(since[..3], expected, "{header}: the clock of a test is UTC");
        assert!(since[3..].iter().all(|at| at.as_str() > "2026"), "{since:?}");
    }
}

#[test]
fn unknown_campaign_is_reported_with_the_nearest_name() {
    let sale = folder_with_list(3..5);
    sale.run(&[]).exits(0);
    let number = format!("+{}", phone(9));
    let known = sale.campaign(&["suppress", "add", &number, "--campaign", "sale"]).exits(0);
    assert!(!known.stderr.contains("warning"), "{}", known.details());
    for arguments in [
        &["suppress", "add", &number][..],
        &["suppress", "import", "clients.csv", "--yes"],
        &["suppress", "remove", &number, "--yes"],
        &["suppress", "list"],
        &["suppress", "export"],
    ] {
        let report = sale.campaign(&[arguments, &["--campaign", "sael"]].concat()).exits(0);
        report
            .says("warning: the ledger has no run or schedule for a campaign named `sael`")
            .says("did you mean `sale`?");
    }
    let added = sale.campaign(&["suppress", "add", &number, "--campaign", "other", "--json"]).exits(0).json();
    assert!(
        added["warnings"][0].as_str().is_some_and(|warning| warning.contains("campaigns in the ledger: `sale`")),
        "{added}"
    );
}

#[test]
fn first_number_of_a_file_without_a_header_is_imported() {
    for (rows, more, added) in [(2..3, "", 1), (2..4, "", 2), (2..5, ",Olena", 3)] {
        let sale = campaign().write();
        let lines: String = rows.map(|row| format!("+{}{more}\n", phone(row))).collect();
        sale.write("numbers.csv", &lines);
        let report = sale.campaign(&["suppress", "import", "numbers.csv", "--yes", "--json"]).exits(0).json();
        assert_eq!((&report["rows"], &report["added"]), (&json!(added), &json!(added)), "{lines}{report}");
        assert_eq!(entries(&sale)[0]["phone"], phone(2).to_string());
    }
    // A national number in the first line is refused like one in any other line.
    let sale = campaign().write();
    let national = |row: usize| format!("0{}", phone(row) % 1_000_000_000);
    sale.write("numbers.csv", &format!("{}\n+{}\n", national(2), phone(3)));
    let import = ["suppress", "import", "numbers.csv", "--yes"];
    sale.campaign(&import).exits(2).says("numbers.csv:1").says("--region UA").says("nothing was imported");
    assert_eq!(entries(&sale).len(), 0);
    sale.campaign(&[&import[..], &["--region", "UA"]].concat()).exits(0).says("2 rows · 2 new");
    sale.write("empty.csv", "phone\n");
    sale.campaign(&["suppress", "import", "empty.csv", "--yes"]).exits(2).says("no recipients");
}

#[test]
fn column_marking_all_recipients_as_subscribed_is_reported() {
    let sale = campaign().write();
    sale.write("clients.csv", &format!("phone,status\n+{},subscribed\n+{},active\n", phone(2), phone(3)));
    let report = sale.campaign(&["suppress", "import", "clients.csv"]).exits(2);
    report.says("2 rows as not opted out").says("none as opted out; the import opts out all 2 rows");
}

#[test]
fn quiet_import_still_warns_about_subscribed_recipients() {
    let sale = campaign().write();
    sale.write("clients.csv", &format!("phone;status\n+{};subscribed\n+{};unsubscribed\n", phone(2), phone(3)));
    let report = sale.campaign(&["suppress", "import", "clients.csv", "--yes", "-q"]).exits(0);
    assert_eq!(report.stdout, "");
    report.says("warning: the column `status` marks 1 row as not opted out");
}
