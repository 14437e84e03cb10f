//! The row selectors that `results`, `show` and `find` share.

use serde_json::{Value, json};

use crate::support::{Answer, Folder, Gateway, Results, accepted, campaign, phone, rejected};

/// Creates a run with eight recipients. The gateway rejects rows 3 and 6 (no route) and row 4 (invalid number).
fn run_with_errors() -> (Gateway, Folder) {
    let gateway = Gateway::always(Answer::items(|operation| match operation["phone"].as_u64() {
        Some(number) if [phone(3), phone(6)].contains(&number) => rejected(operation, "No route"),
        Some(number) if number == phone(4) => rejected(operation, "Please enter valid receiver phone number"),
        _ => accepted(operation),
    }));
    let sale = campaign().to(8).recipients("region: UA").through(&gateway).write();
    sale.run(&["--keep-going"]).exits(3);
    (gateway, sale)
}

/// Returns the rows that `results` and `show` select.
fn selected_rows(sale: &Folder, selectors: &[&str]) -> (Vec<u64>, Vec<u64>) {
    let row = |row: &Value| row["row"].as_u64().expect("a row");
    let results = sale.campaign(&[&["results", "sale", "--json", "--out", "-"], selectors].concat()).exits(0).json();
    let shown = sale.campaign(&[&["show", "sale", "--json"], selectors].concat()).exits(0).json();
    let messages = shown["messages"].as_array().map_or_else(|| vec![row(&shown)], |all| all.iter().map(row).collect());
    (results["rows"].as_array().expect("rows").iter().map(row).collect(), messages)
}

#[test]
fn selectors_select_the_same_rows_in_results_and_show() {
    let (_gateway, sale) = run_with_errors();
    let national = format!("0{}", &phone(4).to_string()[3..]);
    let cases: [(&[&str], &[u64]); 9] = [
        (&["--rows", "2-4"], &[2, 3, 4]),
        (&["--row", "7"], &[7]),
        (&["--state", "rejected"], &[3, 4, 6]),
        (&["--error", "no ROUTE"], &[3, 6]),
        (&["--error", "no route", "--error", "receiver"], &[3, 4, 6]),
        (&["--error", "no route", "--rows", "4-9"], &[6]),
        (&["--to", &national], &[4]),
        (&["--channel", "sms", "--rows", "2,3"], &[2, 3]),
        (&["--channel", "viber,rcs"], &[]),
    ];
    for (selectors, rows) in cases {
        assert_eq!(selected_rows(&sale, selectors), (rows.to_vec(), rows.to_vec()), "{selectors:?}");
    }
}

#[test]
fn show_prints_the_history_of_each_selected_message() {
    let (_gateway, sale) = run_with_errors();
    let shown = sale.campaign(&["show", "sale", "--error", "no route"]).exits(0);
    let shown = shown.says("row 3 to").says("row 6 to").says("sale@1: 2 messages");
    assert!(!shown.stdout.contains("row 4"), "{}", shown.details());
    let message = sale.campaign(&["show", "sale", "--row", "3", "--json"]).exits(0).json();
    assert_eq!((&message["row"], &message["state"], &message["exit"]), (&json!(3), &json!("rejected"), &json!(0)));
    let none = sale.campaign(&["show", "sale", "--state", "failed"]).exits(0);
    none.says("no messages match this selection");
    sale.campaign(&["show", "sale", "--rows", "2-99"]).exits(2).says("row 99");
}

#[test]
fn selected_results_are_printed_and_overwrite_no_file() {
    let (_gateway, sale) = run_with_errors();
    let before = std::fs::read(sale.results_file()).expect("the results");
    for selectors in [&["--rows", "2-3"][..], &["--to", &phone(3).to_string()], &["--channel", "sms"]] {
        let printed = sale.campaign(&[&["results", "sale"], selectors].concat()).exits(0);
        assert!(!Results::parse(&printed.stdout).rows.is_empty(), "{}", printed.details());
    }
    assert_eq!(std::fs::read(sale.results_file()).expect("the results"), before);
    sale.campaign(&["results", "sale", "--rows", "2-99"]).exits(2).says("row 99");
}

#[test]
fn selectors_narrow_the_messages_found_for_a_number() {
    let (_gateway, sale) = run_with_errors();
    sale.run(&["--again", "8", "--keep-going"]).exits(3);
    let number = format!("+{}", phone(3));
    let count_found = |selectors: &[&str]| {
        let output = sale.campaign(&[&["find", "--json"], selectors].concat()).exits(0).json();
        output["runs"].as_array().expect("runs").len()
    };
    assert_eq!(count_found(&[&number]), 2);
    assert_eq!(count_found(&["--to", &number]), 2);
    assert_eq!(count_found(&[&number, "--state", "rejected", "--error", "no route"]), 2);
    assert_eq!(count_found(&[&number, "--state", "accepted"]), 0);
    assert_eq!(count_found(&[&number, "--channel", "sms", "--rows", "3"]), 2);
    assert_eq!(count_found(&[&number, "--rows", "4"]), 0);
    sale.campaign(&["find", &number, "--state", "accepted"]).exits(0).says("no messages match this selection");
}

#[test]
fn mutually_exclusive_selectors_are_refused() {
    let (_gateway, sale) = run_with_errors();
    let number = format!("+{}", phone(3));
    for command in [&["results", "sale"][..], &["show", "sale"], &["find", &number]] {
        for selector in [&["--channel", "sms"][..], &["--error", "x"]] {
            let refused = sale.campaign(&[command, selector, &["--state", "planned"]].concat()).exits(2);
            refused.says("cannot be used with").says(selector[0]);
        }
    }
    sale.campaign(&["results", "sale", "--people", "--rows", "2"]).exits(2).says("cannot be used with");
    sale.campaign(&["find", &number, "--to", &number]).exits(2).says("cannot be used with");
    sale.campaign(&["show", "sale"]).exits(2).says("--rows").says("--channel");
    sale.campaign(&["find"]).exits(2).says("--to");
}
