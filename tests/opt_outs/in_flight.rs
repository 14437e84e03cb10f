//! Opt-outs during a run and before a retry.

use serde_json::json;

use super::opt_out;
use crate::support::{Answer, Gateway, campaign, phone, rejected, until};

#[test]
fn opt_out_while_sending_stops_messages_not_yet_sent() {
    let gateway = Gateway::answering([Answer::Held]);
    let sale = campaign().to(30).through(&gateway).one_at_a_time().write();
    let run = sale.start(&["--json"]);
    until("the gateway has the first message", || gateway.sends().len() == 1);
    // The message to row 2 has been sent; the one to row 20 is rendered and waits.
    opt_out(&sale, 2, &[]);
    opt_out(&sale, 20, &[]);
    opt_out(&sale, 25, &["--campaign", "sale"]);
    opt_out(&sale, 28, &["--campaign", "another"]);
    gateway.release();
    let summary = run.finish().exits(0).json();
    let expected: Vec<u64> = (2..32).filter(|row| ![20, 25].contains(row)).map(phone).collect();
    let mut sent = gateway.phones();
    sent.sort_unstable();
    assert_eq!(sent, expected);
    assert_eq!(summary["counts"], json!({ "accepted": 28, "skipped": 2 }));
    let results = sale.results();
    for row in [20, 25] {
        let skipped = &results.rows[row - 2];
        assert_eq!(
            (skipped["state"].as_str(), skipped["reason"].as_str(), skipped["id"].as_str()),
            ("skipped", "opted out", "")
        );
    }
    let status = sale.campaign(&["status", "sale", "--json"]).exits(0).json();
    assert_eq!(status["counts"], summary["counts"]);
    sale.campaign(&["show", "sale", "--row", "20"]).exits(0).says("opted out");
    // The run is complete: the remaining recipients have opted out.
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), expected.len());
}

#[test]
fn service_messages_are_still_sent_after_an_opt_out() {
    let gateway = Gateway::answering([Answer::Held]);
    let sale = campaign().to(10).top("purpose: service").through(&gateway).one_at_a_time().write();
    opt_out(&sale, 3, &[]);
    let run = sale.start(&[]);
    until("the gateway has the first message", || gateway.sends().len() == 1);
    opt_out(&sale, 7, &[]);
    gateway.release();
    run.finish().exits(0);
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn rejected_message_is_not_retried_after_an_opt_out() {
    let no_route = || Answer::items(|operation| rejected(operation, "No route"));
    let gateway = Gateway::answering([no_route(), no_route()]);
    let sale = campaign().to(6).through(&gateway).one_at_a_time().batches_of(1).write();
    sale.run(&[]).exits(3);
    assert_eq!(sale.results().counts(), [("accepted".to_owned(), 4), ("rejected".to_owned(), 2)].into());
    opt_out(&sale, 2, &[]);
    let before = gateway.phones().len();
    sale.campaign(&["retry", "sale"]).exits(3).says("skipped: 1 opted out");
    assert_eq!(gateway.phones()[before..], [phone(3)], "row 2 is opted out");
    let results = sale.results();
    assert_eq!(results.rows[0]["state"], "rejected", "a sent row keeps its state");
    assert_eq!(results.counts(), [("accepted".to_owned(), 5), ("rejected".to_owned(), 1)].into());
    let status = sale.campaign(&["status", "sale", "--json"]).exits(3).json();
    assert_eq!(status["counts"], json!({ "accepted": 5, "rejected": 1 }));
}

#[test]
fn unfinished_run_skips_recipients_who_have_since_opted_out() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "5"]).exits(0);
    opt_out(&sale, 9, &[]);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), (2..12).filter(|row| *row != 9).map(phone).collect::<Vec<_>>());
    assert_eq!(sale.results().rows[7]["reason"], "opted out");
    assert_eq!(sale.results().column("run"), ["sale@1"; 10]);
}

#[test]
fn summary_counts_recipients_who_opted_out_during_the_run() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    opt_out(&sale, 4, &[]);
    let first_start = sale.run(&["--limit", "5", "--json"]).exits(0).json();
    assert_eq!((&first_start["counts"]["skipped"], &first_start["opted_out"]), (&json!(1), &json!(0)));
    opt_out(&sale, 9, &[]);
    sale.run(&[]).exits(0).says("1 recipient opted out during the run and was skipped");
    let last_start = sale.run(&["--json"]).exits(0).json();
    assert_eq!(last_start["opted_out"], 0);
}
