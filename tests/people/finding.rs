//! `campaign find`: every message to a person in all runs.

use serde_json::{Value, json};

use super::{find, number};
use crate::support::{Answer, Gateway, campaign, in_files, phone, rejected};

/// The run, row and state of each match.
fn matches(report: &Value) -> Vec<(String, u64, String)> {
    let runs = report["runs"].as_array().expect("runs").iter();
    let rows = runs.flat_map(|run| run["rows"].as_array().expect("rows").iter().map(move |row| (run, row)));
    let found = rows.map(|(run, row)| {
        assert_eq!(run["run"], row["run"]);
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        (text(&run["run"]), row["row"].as_u64().expect("a row"), text(&row["state"]))
    });
    found.collect()
}

#[test]
fn message_to_a_recipient_is_found_in_every_kind_of_run() {
    let gateway = Gateway::answering([Answer::items(|operation| match operation["phone"] == phone(3) {
        true => rejected(operation, "No route"),
        false => crate::support::accepted(operation),
    })]);
    let list = format!("phone,name\n{},Olena\n{},Petro\n{},Olena again\n", number(2), number(3), number(2));
    let sale = campaign().with_list(&list).through(&gateway).write();
    sale.run(&["--gateway", "sandbox"]).exits(0);
    sale.run(&[]);
    sale.campaign(&["gateway", "lookup", &number(2), "--gateway", "local"]).exits(0);
    let report = find(&sale, 2).exits(0).json();
    let (skipped, accepted) = (|run: &str| (run.to_owned(), 4, "skipped".to_owned()), "accepted".to_owned());
    let mut runs = matches(&report);
    runs.sort();
    assert_eq!(
        runs,
        [
            ("gateway.lookup@1".to_owned(), 2, accepted.clone()),
            ("sale@1".to_owned(), 2, accepted.clone()),
            skipped("sale@1"),
            ("sale@2".to_owned(), 2, accepted),
            skipped("sale@2"),
        ]
    );
    let live: Vec<&Value> = report["runs"].as_array().unwrap().iter().map(|run| &run["live"]).collect();
    assert_eq!(live, [&json!(false), &json!(true), &json!(true)]);
    let real = &report["runs"][1]["rows"][0];
    assert_eq!((&real["name"], &real["operation"]), (&json!("Olena"), &json!("sms")));
    assert!(["submitted_at", "updated_at"].iter().all(|time| !real[time].as_str().unwrap().is_empty()), "{real}");
    assert_eq!(report["runs"][1]["rows"][1]["reason"], "duplicate number");
    assert!(!report.to_string().contains(&phone(3).to_string()) && !report.to_string().contains("Petro"), "{report}");
    sale.campaign(&["find", &number(2)]).exits(0).says("5 rows in 3 runs").says("rehearsal").says("show");
}

#[test]
fn unknown_recipient_is_reported_with_their_opt_out() {
    let sale = campaign().to(2).write();
    sale.campaign(&["find", &number(9)]).exits(0).says("not in any run");
    sale.campaign(&["suppress", "add", &number(9), "--reason", "asked by phone"]).exits(0);
    let report = find(&sale, 9).exits(0).json();
    assert_eq!((&report["runs"], &report["suppressed"][0]["reason"]), (&json!([]), &json!("asked by phone")));
    sale.campaign(&["find", &number(9)]).exits(0).says("on the suppression list").says("asked by phone");
    let national = format!("0{}", &number(9)[4..]);
    sale.campaign(&["find", &national]).exits(2).says("--region UA");
    sale.campaign(&["find", &national, "--region", "UA"]).exits(0).says("asked by phone");
}

#[test]
fn unreadable_run_is_named_and_the_answer_is_incomplete() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().to(2).through(&gateway).write();
    sale.run(&[]).exits(0);
    std::fs::remove_file(sale.path("state/runs/sale@1/recipients.csv")).expect("the copy");
    let report = find(&sale, 2).exits(74).json();
    assert_eq!(report["unread"][0]["run"], "sale@1");
    sale.campaign(&["find", &number(2)]).exits(74).says("cannot search sale@1");
}
