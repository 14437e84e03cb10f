//! Pausing, stopping and resuming a run.

use serde_json::json;

use crate::support::{Gateway, SandboxProcess, campaign, change_ledger, in_files, phone, until};

#[test]
fn run_pauses_at_a_limit_and_later_sends_the_rest() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(30).through(&gateway).write();
    let summary = sale.run(&["--limit", "7", "--json"]).exits(0).json();
    assert_eq!(summary["counts"], json!({ "accepted": 7, "planned": 23 }));
    assert_eq!(sale.results().counts()["planned"], 23);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), (2..32).map(phone).collect::<Vec<_>>());
    assert_eq!(sale.results().column("run"), ["sale@1"; 30]);
}

#[test]
fn only_selected_spreadsheet_rows_are_sent() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(30).through(&gateway).write();
    sale.run(&["--rows", "2,10-12,31"]).exits(0);
    assert_eq!(gateway.phones(), [2, 10, 11, 12, 31].map(phone));
    sale.run(&["--rows", "10-13"]).exits(0);
    assert_eq!(gateway.phones().last(), Some(&phone(13)));
    sale.run(&[]).exits(0);
    let mut sent = gateway.phones();
    sent.sort_unstable();
    assert_eq!(sent, (2..32).map(phone).collect::<Vec<_>>());
}

#[test]
fn unfinished_run_keeps_its_edition_on_a_later_day() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale =
        campaign().to(10).top("edition: \"{{ today }}\"").top("timezone: Pacific/Pago_Pago").through(&gateway).write();
    sale.run(&["--limit", "5"]).exits(0);
    let frozen = sale.path("state/runs/sale@1/frozen.json");
    let yesterday = std::fs::read_to_string(&frozen).expect("the copy").replace("\"today\": \"20", "\"today\": \"19");
    std::fs::write(&frozen, yesterday).expect("the copy");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
    let paused = campaign().to(10).top("edition: a").through(&gateway).write();
    paused.run(&["--limit", "5"]).exits(0);
    paused.replace("sale.yaml", "edition: a", "edition: b");
    paused.run(&[]).exits(2).says("edition");
}

#[test]
fn run_with_a_changed_frozen_list_needs_accept_changes() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "5"]).exits(0);
    let frozen = sale.path("state/runs/sale@1/recipients.csv");
    let list = std::fs::read_to_string(&frozen).expect("the copy");
    std::fs::write(&frozen, list.replace("Person 8", "Nobody")).expect("the copy");
    sale.run(&[]).exits(74).says("missing or damaged").says("--accept-changes");
    let results = std::fs::read(sale.results_file()).expect("results");
    for command in [&["results", "sale"][..], &["results", "sale", "--out", "-"], &["show", "sale", "--row", "3"]] {
        sale.campaign(command).exits(74).says("not the list that the run started with");
    }
    assert_eq!(std::fs::read(sale.results_file()).expect("results"), results);
    sale.run(&["--accept-changes"]).exits(0);
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn nonexistent_rows_are_refused_and_sent_rows_not_resent() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--rows", "5-99"]).exits(2).says("row 99");
    assert!(gateway.requests().is_empty());
    sale.run(&["--rows", "5-6"]).exits(0);
    let again = sale.run(&["--rows", "5-6", "--json"]).exits(0).json();
    assert_eq!((&again["sent"], &again["stopped"]), (&json!(0), &json!("limit")));
    sale.run(&["--rows", "90"]).exits(2);
    assert_eq!(gateway.phones(), [5, 6].map(phone));
}

#[test]
fn partial_results_do_not_replace_the_full_results() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "4"]).exits(0);
    let shown = sale.campaign(&["results", "sale", "--state", "accepted"]).exits(0);
    assert_eq!(shown.stdout.lines().count(), 5);
    assert_eq!(sale.results().rows.len(), 10);
}

#[test]
fn header_cannot_be_selected_as_a_row() {
    let gateway = Gateway::accepting();
    campaign().through(&gateway).write().run(&["--rows", "1-2"]).exits(2).says("header");
    assert!(gateway.requests().is_empty());
}

#[test]
fn stop_ends_another_process_after_its_requests_in_flight() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().to(2000).through(&sandbox).delivery("rate: 50/s").batches_of(10).write();
    let run = sale.start(&["--json"]);
    until("some messages were sent", || sandbox.messages().len() > 10);
    sale.campaign(&["status", "sale"]).exits(6).says("sending");
    sale.campaign(&["stop", "sale@1"]).exits(0);
    let summary = run.finish().exits(5).json();
    assert_eq!((&summary["stopped"], &summary["why"]), (&json!("stop"), &json!("asked to stop")));
    assert!(summary["counts"]["in_doubt"].is_null() && summary["counts"]["sending"].is_null(), "{summary}");
    let accepted = summary["counts"]["accepted"].as_u64().expect("a count");
    assert_eq!(sandbox.messages().len() as u64, accepted);
    sale.campaign(&["stop", "sale@1"]).exits(0).says("is not being sent, so there is nothing to stop");
    sale.run(&["--limit", "5"]).exits(0);
    assert!(sandbox.messages().values().all(|&times| times == 1) && sandbox.messages().len() as u64 == accepted + 5);
}

#[test]
fn paused_run_can_resume_at_another_rate() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "3"]).exits(0).says("sale@1 sent the requested messages");
    sale.run(&["--rows", "2"]).exits(0).says("sale@1 sent no messages").says("all requested rows were processed");
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

#[test]
fn wait_after_the_clock_was_set_back_is_short_and_explained() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(30).delivery("rate: 100/s").through(&gateway).profile("rate: 100/s").write();
    sale.run(&["--limit", "7"]).exits(0);
    // The record is an hour ahead of the clock, and the rate is used up for the next 3 seconds.
    let ahead = "UPDATE accounts SET written_at = written_at + 3600000000, next_free = written_at + 3603000000";
    change_ledger(&sale, ahead);
    sale.run(&[]).exits(0).says("waiting 3.0 s: the clock was set back");
    assert_eq!(gateway.phones().len(), 30);
}
