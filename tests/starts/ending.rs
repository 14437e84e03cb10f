//! Stopping for good.

use serde_json::json;

use crate::support::{Answer, Gateway, Results, SandboxProcess, campaign, phone, rejected, until};

#[test]
fn what_is_planned_of_a_run_that_is_stopped_for_good_is_skipped_and_the_run_ends() {
    let gateway = Gateway::answering([Answer::Accept, Answer::items(|operation| rejected(operation, "No route"))]);
    let sale = campaign().to(10).batches_of(2).one_at_a_time().through(&gateway).write();
    sale.run(&["--limit", "3"]).exits(3);
    let told = sale.campaign(&["stop", "sale", "--for-good", "--json"]).exits(3).json();
    assert_eq!((&told["rows"], &told["counts"]), (&json!(7), &json!({ "accepted": 1, "rejected": 2, "skipped": 7 })));
    let results = sale.results();
    assert_eq!(results.rows.iter().filter(|row| row["reason"] == "cancelled" && row["state"] == "skipped").count(), 7);
    sale.campaign(&["status", "sale"]).exits(3).says("stopped for good").says("7 skipped");
    sale.campaign(&["show", "sale", "--row", "9"]).exits(0).says("skipped");
    sale.campaign(&["retry", "sale@1"]).exits(2).says("stopped for good");
    sale.campaign(&["stop", "sale@1", "--for-good"]).exits(2).says("come to its end");
    let shown = Results::parse(&sale.campaign(&["results", "sale", "--out", "-"]).exits(0).stdout);
    assert_eq!(shown.counts()["skipped"], 7);
    // Another start is a new run, to whoever has no message.
    sale.run(&[]).exits(0).says("sale@2").says("1 skipped");
    assert_eq!(gateway.phones()[3..], (3..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn rejections_of_the_last_rows_are_the_end_of_a_run_and_no_stop() {
    let refuse = || Answer::items(|operation| rejected(operation, "Error in Alpha-name"));
    let gateway = Gateway::answering([refuse(), refuse(), refuse(), refuse(), Answer::Accept]);
    let sale = campaign().to(4).through(&gateway).write();
    let told = sale.run(&["--json"]).exits(3).json();
    assert_eq!((&told["stopped"], &told["counts"]), (&json!(null), &json!({ "rejected": 4 })));
    sale.campaign(&["status", "sale", "--json"]).exits(3).says("finished");
    sale.campaign(&["retry", "sale", "--no-wait"]).exits(0).says("4 accepted");
}

#[test]
fn a_run_that_is_being_sent_ends_for_good_after_what_is_in_flight() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().to(2_000).through(&sandbox).delivery("rate: 50/s").batches_of(10).write();
    let run = sale.start(&[]);
    until("some messages were sent", || sandbox.messages().len() > 10);
    sale.campaign(&["run", "sale.yaml"])
        .exits(6)
        .says("since 20")
        .says("campaign status sale")
        .says("campaign stop sale");
    sale.campaign(&["stop", "sale@1", "--for-good"]).exits(0).says("stopped for good").says("is being sent: waiting");
    run.finish().exits(5);
    assert_eq!(sale.results().counts()["accepted"], sandbox.messages().len() as u64);
    assert_eq!(sale.results().counts().get("planned"), None);
}
