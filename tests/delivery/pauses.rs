//! Stopping on purpose and going on.

use serde_json::json;

use crate::support::{Gateway, SandboxProcess, campaign, phone, until};

#[test]
fn a_limit_pauses_and_the_next_run_sends_the_rest() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(30).through(&gateway).write();
    let summary = sale.run(&["--limit", "7", "--json"]).exits(5).json();
    assert_eq!(summary["counts"], json!({ "accepted": 7, "planned": 23 }));
    assert_eq!(sale.results().counts()["planned"], 23);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), (2..32).map(phone).collect::<Vec<_>>());
    assert_eq!(sale.results().column("run"), ["sale@1"; 30]);
}

#[test]
fn chosen_rows_are_sent_alone_and_by_the_numbers_of_a_spreadsheet() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(30).through(&gateway).write();
    sale.run(&["--rows", "2,10-12,31"]).exits(5);
    assert_eq!(gateway.phones(), [2, 10, 11, 12, 31].map(phone));
    sale.run(&["--rows", "10-13"]).exits(5);
    assert_eq!(gateway.phones().last(), Some(&phone(13)));
    sale.run(&[]).exits(0);
    let mut sent = gateway.phones();
    sent.sort_unstable();
    assert_eq!(sent, (2..32).map(phone).collect::<Vec<_>>());
}

#[test]
fn the_header_is_no_row_to_send_to() {
    let gateway = Gateway::accepting();
    campaign().through(&gateway).write().run(&["--rows", "1-2"]).exits(2).says("header");
    assert!(gateway.requests().is_empty());
}

#[test]
fn stop_ends_a_run_of_another_process_after_what_is_in_flight() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().to(2000).through(&sandbox).delivery("rate: 50/s").batches_of(10).write();
    let run = sale.start(&["--json"]);
    until("some messages were sent", || sandbox.messages().len() > 10);
    sale.campaign(&["status", "sale"]).exits(6).says("sending");
    sale.campaign(&["stop", "sale@1"]).exits(0);
    let summary = run.finish().exits(5).json();
    assert_eq!(summary["stopped"], "asked to stop");
    assert!(summary["counts"]["in_doubt"].is_null() && summary["counts"]["sending"].is_null(), "{summary}");
    let accepted = summary["counts"]["accepted"].as_u64().expect("a count");
    assert_eq!(sandbox.messages().len() as u64, accepted);
    sale.campaign(&["stop", "sale@1"]).exits(6);
    sale.run(&["--limit", "5"]).exits(5);
    assert!(sandbox.messages().values().all(|&times| times == 1) && sandbox.messages().len() as u64 == accepted + 5);
}

#[test]
fn a_run_that_was_paused_may_go_on_at_another_pace() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "3"]).exits(5);
    campaign()
        .to(10)
        .through(&gateway)
        .delivery("rate: 40/s")
        .batches_of(2)
        .top("results: elsewhere.csv")
        .rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 10);
    assert!(sale.path("elsewhere.csv").exists());
}
