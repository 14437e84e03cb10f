//! Warnings about lists with a column that records opt-outs.

use std::fmt::Write as _;

use serde_json::Value;

use crate::support::{Draft, Folder, Terminal, campaign, live, phone};

/// A list of recipients with these cells under this header.
fn client_list(header: &str, cells: &[&str]) -> String {
    let mut list = format!("phone,name,{header}\n");
    for (row, cell) in cells.iter().enumerate() {
        writeln!(list, "{},Person {row},{cell}", phone(row + 2)).expect("a string");
    }
    list
}

/// A campaign to these recipients.
fn client_draft(header: &str, cells: &[&str]) -> Draft {
    campaign().with_list(&client_list(header, cells))
}

/// The warnings about recipients who opted out, each as message and help.
fn find_warnings(sale: &Folder) -> Vec<(String, String)> {
    let findings = sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["findings"].clone();
    let findings = findings.as_array().expect("a list").iter().filter(|finding| finding["rule"] == "opted-out-rows");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    findings.map(|finding| (text(&finding["message"]), text(&finding["help"]))).collect()
}

#[test]
fn opt_out_column_is_reported_with_a_condition_to_add() {
    for (header, cells, rows, condition) in [
        ("status", ["paid", "unsubscribed", "active", "unsubscribed"], "2 rows", "status != \"unsubscribed\""),
        (
            "status",
            ["paid", "Unsubscribed", "active", "opted out"],
            "2 rows",
            "not (status in [\"Unsubscribed\", \"opted out\"])",
        ),
        ("opt_out", ["no", "yes", "", "no"], "row 3", "opt_out != \"yes\""),
        ("consent", ["yes", "no", "yes", "yes"], "row 3", "consent != \"no\""),
        ("do_not_sms", ["0", "1", "0", "0"], "row 3", "do_not_sms != \"1\""),
        ("unsubscribed_at", ["", "2026-05-01", "", ""], "row 3", "unsubscribed_at == \"\""),
        ("unsubscribed_at", ["", "2026-05-01", "", "01.06.2026"], "2 rows", "unsubscribed_at == \"\""),
        ("opt_out", ["", "2026-05-01", "", "yes"], "2 rows", "opt_out == \"\""),
        ("opt_out", ["no", "2026-05-01", "", "yes"], "2 rows", "opt_out in [\"\", \"no\"]"),
        ("статус", ["оплачено", "відписаний", "", ""], "row 3", "recipient[\"статус\"] != \"відписаний\""),
        ("згода", ["так", "ні", "так", "так"], "row 3", "recipient[\"згода\"] != \"ні\""),
        ("не турбувати", ["ні", "так", "ні", ""], "row 3", "recipient[\"не турбувати\"] != \"так\""),
        ("отписан", ["нет", "да", "нет", ""], "row 3", "recipient[\"отписан\"] != \"да\""),
        ("не турбувати", ["", "так ", " так", ""], "2 rows", "recipient[\"не турбувати\"] != \"так\""),
    ] {
        let sale = client_draft(header, &cells).write();
        let found = find_warnings(&sale);
        let [(message, help)] = found.as_slice() else { panic!("{header}: {found:?}") };
        assert!(message.contains(&format!("`{header}`")) && message.contains(rows), "{message}");
        assert!(help.contains(&format!("`where: {condition}`")), "{help}");
        client_draft(header, &cells).recipients(&format!("where: {condition}")).rewrite(&sale);
        assert_eq!(find_warnings(&sale), [], "{header}");
        let counts = sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["counts"].clone();
        let opted_out = if rows == "2 rows" { 2 } else { 1 };
        assert_eq!((&counts["planned"], &counts["skipped"]), (&(4 - opted_out).into(), &opted_out.into()), "{header}");
    }
}

#[test]
fn advice_for_opt_out_dates_selects_rows_with_an_empty_cell() {
    let dates: Vec<String> = (1..10).map(|day| format!("2026-05-0{day}")).collect();
    let cells: Vec<&str> = [""].into_iter().chain(dates.iter().map(String::as_str)).collect();
    let found = find_warnings(&client_draft("unsubscribed_at", &cells).write());
    assert!(found[0].0.contains("9 rows") && found[0].1.contains("`where: unsubscribed_at == \"\"`"), "{found:?}");
}

#[test]
fn planned_opt_outs_are_reported_even_if_where_uses_the_column() {
    let cells = ["paid", "unsubscribed", "active", "opted out"];
    for (present, help) in [
        ("status != \"unsubscribed\"", "add `and status != \"opted out\"` to `where`"),
        (
            "status == \"opted out\" or status == \"paid\"",
            "enclose the `where` expression in parentheses, and add `and status != \"opted out\"` after it",
        ),
    ] {
        let sale = client_draft("status", &cells).recipients(&format!("where: '{present}'")).write();
        let found = find_warnings(&sale);
        let [(message, advice)] = found.as_slice() else { panic!("{present}: {found:?}") };
        assert!(message.contains("row 5") && advice.starts_with(help), "{message}: {advice}");
        let remedy = format!("where: '({present}) and status != \"opted out\"'");
        client_draft("status", &cells).recipients(&remedy).rewrite(&sale);
        assert_eq!(find_warnings(&sale), [], "{present}");
    }
}

#[test]
fn suggested_condition_covers_all_opt_out_words() {
    let words = ["unsubscribed", "opted out", "opt out", "dnd", "dnc", "blacklist", "suppressed", "blacklisted"];
    let cells: Vec<&str> = ["paid"].into_iter().chain(words).collect();
    let sale = client_draft("status", &cells).write();
    let help = find_warnings(&sale)[0].1.clone();
    assert!(words.iter().all(|word| help.contains(&format!("\"{word}\""))), "{help}");
}

#[test]
fn other_columns_cause_no_opt_out_warning() {
    for (header, cells) in [
        ("status", ["active", "paid", "", "new"]),
        ("consent", ["yes", "yes", "YES", "true"]),
        ("stop_name", ["yes", "Central", "1", ""]),
        ("opt_out", ["no", "", "0", "false"]),
        ("email_opt_out", ["yes", "yes", "no", ""]),
        ("order status", ["unsubscribed", "", "", ""]),
    ] {
        assert_eq!(find_warnings(&client_draft(header, &cells).write()), [], "{header}");
    }
}

#[test]
fn warning_counts_only_rows_that_are_planned() {
    let cells = ["no", "yes", "yes", "yes"];
    let sale = client_draft("opt_out", &cells).recipients("suppress: [stop.csv]");
    let sale = sale.write();
    sale.write("stop.csv", &format!("phone\n{}\n", phone(3)));
    assert!(find_warnings(&sale)[0].0.contains("2 rows"), "{:?}", find_warnings(&sale));
    sale.write("stop.csv", &format!("phone\n{}\n{}\n{}\n", phone(3), phone(4), phone(5)));
    assert_eq!(find_warnings(&sale), []);
    let other = client_draft("opt_out", &cells).recipients("where: name != \"Person 1\"").write();
    let found = find_warnings(&other);
    assert!(found[0].0.contains("2 rows") && found[0].1.contains("`and opt_out != \"yes\"`"), "{found:?}");
    let service = client_draft("opt_out", &cells).top("purpose: service").write();
    assert_eq!(find_warnings(&service), [], "service messages are sent despite an opt-out");
}

#[test]
fn opted_out_rows_are_reported_before_the_first_message() {
    let sale = live();
    sale.write("sale.csv", &client_list("status", &["", "unsubscribed", ""]));
    let warning = "the column `status` marks recipients as opted out (`unsubscribed`), but the campaign would still send to them: row 3";
    sale.campaign(&["plan", "sale.yaml"]).exits(0).says(&format!("warning[opted-out-rows]: {warning}"));
    sale.campaign(&["preview", "sale.yaml"]).exits(0).says(warning);
    let terminal = Terminal::start_on(200, sale.command(&["run", "sale.yaml", "--offline"]));
    terminal.shows(&format!("warning: {warning}")).shows("Type 3 to send").types("no");
    terminal.finish().exits(2);
    sale.campaign(&["explain", "opted-out-rows"]).exits(0).says("suppression list");
}
