//! Reconciliation of rows in doubt at the end of a run, by `reconcile`, and by the next run.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    ANSWER_LOST, Memory, SECOND_ENVELOPE, answer_was_lost, assert_one_message_each, result_cell, sale_in_doubt,
    start_sandbox, states, ten_recipients,
};
use crate::support::{Answer, Gateway, Process, campaign, note_on_failure, phone, rejected};

#[test]
fn lost_answer_is_recovered_at_the_end_of_the_run() {
    let sandbox = start_sandbox(ANSWER_LOST);
    let sale = ten_recipients(&sandbox).write();
    let summary = sale.run(&["--json"]).exits(0).json();
    assert!(answer_was_lost(&sandbox));
    assert_eq!(summary["counts"], json!({ "accepted": 10 }));
    let results = sale.results();
    assert!(results.column("msg_id").iter().all(|msg_id| !msg_id.is_empty()), "{results:?}");
    assert!(result_cell(&sale, 4, "reason").contains("confirmed by the gateway"));
    assert_one_message_each(&sandbox);
    sale.run(&[]).exits(0);
    assert_one_message_each(&sandbox);
}

#[test]
fn queued_message_in_doubt_is_marked_failed_if_rejected() {
    let scenario =
        "faults: [{ when: { envelope: 2 }, answer: dropped }, { when: { suffix: \"4\" }, item_error: No route }]\n";
    let sandbox = start_sandbox(scenario);
    let chain = "  - viber: { signature: OlenaCo, message: Hi }\n  - sms: { signature: OlenaCo, message: Hi }";
    let sale = ten_recipients(&sandbox).asynchronous().channels(chain).write();
    let summary = sale.run(&["--json"]).json();
    let expected = json!({ "accepted": 3, "failed": 1, "queued": 6 });
    assert_eq!(summary["counts"], expected, "the second request of four is in doubt at first: {summary}");
    assert_eq!(result_cell(&sale, 4, "state"), "failed");
    assert_eq!(result_cell(&sale, 4, "gateway_status"), "REJECTED");
    // The recipient does not have the message, so it can be sent again at once.
    sale.campaign(&["retry", "sale@1", "--state", "failed", "--yes"]).exits(3);
    assert_eq!(sandbox.messages()[&phone(4)], 2);
}

#[test]
fn gateway_with_delayed_statuses_is_queried_again() {
    let sandbox = start_sandbox(&format!("{ANSWER_LOST}status: {{ lag: 4s }}\n"));
    let sale = ten_recipients(&sandbox).write();
    Process::start(sale.command(&["run", "sale.yaml"])).finish().exits(0);
    assert!(answer_was_lost(&sandbox));
    let queries = sandbox.journal().into_iter().filter(|line| line["type"] == "status");
    let first = queries.filter(|line| line["index"] == 2).collect::<Vec<_>>();
    assert_eq!(first.len(), 2, "asked after 1 s and again after 5 s");
    let states = states(&sale);
    assert!(states.len() == 10 && states.chars().all(|state| "aD".contains(state)), "{states}");
    assert_one_message_each(&sandbox);
}

#[test]
fn run_reconciles_one_second_after_sending_and_ends() {
    let memory = Memory::default();
    let times = Arc::new(Mutex::new(Vec::new()));
    let (recorder, responder) = (Arc::clone(&times), memory.clone());
    let gateway = memory.gateway(memory.accept_without_proof()).with_statuses(move |query| {
        recorder.lock().expect("the times").push(Instant::now());
        responder.answer_query(query)
    });
    let sale = ten_recipients(&gateway).write();
    let began = Instant::now();
    Process::start(sale.command(&["run", "sale.yaml"])).finish().exits(0).says("asking the gateway about 4 rows");
    let times = times.lock().expect("the times");
    assert_eq!(times.len(), 6, "one accepted message as a probe, and the four in doubt, once each");
    assert!(times[0] - began >= Duration::from_secs(1));
    assert_eq!(states(&sale), "a".repeat(10));
}

#[test]
fn inconclusive_statuses_prove_nothing_and_are_reported() {
    for blind in ["denies", "affirms"] {
        let _case = note_on_failure(format!("case: {blind}"));
        let sandbox = start_sandbox(&format!("{ANSWER_LOST}status: {{ blind: {blind} }}\n"));
        let sale = ten_recipients(&sandbox).write();
        sale.run(&[]).exits(4).says("are inconclusive");
        assert!(answer_was_lost(&sandbox));
        assert_eq!(states(&sale), "addddaaaaa");
        let report = sale.campaign(&["reconcile", "sale", "--json"]).exits(4).json();
        assert_eq!((&report["blind"], &report["found"], &report["asked"]), (&json!(true), &json!(0), &json!(4)));
        sale.run(&[]).exits(4);
        assert_eq!(sale.campaign(&["status", "sale"]).code(), Some(4));
        assert_one_message_each(&sandbox);
    }
}

#[test]
fn late_gateway_proof_is_found_by_reconcile() {
    let memory = Memory::default();
    let gateway = memory.gateway(memory.accept_without_proof());
    memory.set_hidden(true);
    let sale = ten_recipients(&gateway).write();
    sale.run(&[]).exits(4);
    sale.campaign(&["reconcile", "sale"]).exits(4).says("nothing was sent again");
    memory.set_hidden(false);
    let report = sale.campaign(&["reconcile", "sale@1", "--json"]).exits(0).json();
    assert_eq!((&report["found"], &report["blind"]), (&json!(4), &json!(false)));
    assert_eq!(report["counts"], json!({ "accepted": 10 }));
    assert_eq!(states(&sale), "a".repeat(10), "the results are updated");
    sale.campaign(&["reconcile", "sale"]).exits(0).says("no rows are in doubt");
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn late_gateway_proof_is_found_by_the_next_run() {
    let memory = Memory::default();
    let gateway = memory.gateway(memory.accept_without_proof());
    memory.set_hidden(true);
    let sale = ten_recipients(&gateway).write();
    sale.run(&["--limit", "7"]).exits(4);
    assert_eq!(states(&sale), "addddaappp");
    sale.run(&["--limit", "1"]).exits(4);
    memory.set_hidden(false);
    sale.run(&["--limit", "1"]).exits(0);
    assert_eq!(states(&sale), "aaaaaaaaap", "an unfinished run reconciles at its start");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn repeated_campaign_reconciles_its_finished_run() {
    let memory = Memory::default();
    let gateway = memory.gateway(memory.accept_without_proof());
    memory.set_hidden(true);
    let sale = ten_recipients(&gateway).write();
    sale.run(&[]).exits(4);
    memory.set_hidden(false);
    sale.run(&[]).exits(0);
    sale.campaign(&["status", "sale@1"]).exits(0);
    assert_eq!(states(&sale), "a".repeat(10));
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn message_never_executed_stays_in_doubt_and_is_not_resent() {
    let memory = Memory::default();
    let gateway = memory.gateway(Answer::CloseUnread);
    let sale = ten_recipients(&gateway).write();
    sale.run(&[]).exits(4);
    for _ in 0..4 {
        let report = sale.campaign(&["reconcile", "sale", "--json"]).exits(4).json();
        assert_eq!((&report["found"], &report["not_found"], &report["blind"]), (&json!(0), &json!(0), &json!(false)));
        sale.run(&[]).exits(4);
    }
    assert_eq!(states(&sale), "addddaaaaa");
    let sent = gateway.phones();
    assert!(sent.len() == 6 && SECOND_ENVELOPE.iter().all(|row| !sent.contains(&phone(*row))), "{sent:?}");
}

#[test]
fn message_that_the_gateway_rejects_later_is_marked_failed() {
    let memory = Memory::default();
    let responder = memory.clone();
    let gateway = memory.gateway(memory.accept_without_proof()).with_statuses(move |query| {
        let mut report = responder.answer_query(query);
        if report["success"] == true {
            report["data"]["status"] = json!("REJECTED");
        }
        report
    });
    let sale = ten_recipients(&gateway).write();
    sale.run(&[]).exits(3).says("next: campaign results sale@1 --state failed --out -");
    sale.campaign(&["status", "sale"]).exits(3).says("campaign results sale@1 --state failed --out -");
    assert_eq!(states(&sale), "affffaaaaa");
    assert_eq!(result_cell(&sale, 3, "gateway_status"), "REJECTED");
}

#[test]
fn campaign_can_count_messages_in_doubt_as_sent() {
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let sale = ten_recipients(&gateway).delivery("on_in_doubt: assume_sent").write();
    sale.run(&[]).exits(0);
    assert_eq!(states(&sale), "assssaaaaa");
    assert!(
        result_cell(&sale, 3, "reason").contains("`on_in_doubt: assume_sent`"),
        "{}",
        result_cell(&sale, 3, "reason")
    );
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn gateway_is_queried_before_messages_in_doubt_count_as_sent() {
    let sandbox = start_sandbox(ANSWER_LOST);
    let sale = ten_recipients(&sandbox).delivery("on_in_doubt: assume_sent").write();
    sale.run(&[]).exits(0);
    assert!(answer_was_lost(&sandbox));
    assert_eq!(states(&sale), "a".repeat(10));
}

#[test]
fn failed_query_changes_nothing() {
    let (gateway, sale) = sale_in_doubt();
    drop(gateway);
    let report = sale.campaign(&["reconcile", "sale", "--json"]).exits(4).json();
    assert_eq!((&report["found"], &report["counts"]["in_doubt"]), (&json!(0), &json!(4)));
    assert_eq!(
        (&report["unclear"], &report["blind"]),
        (&json!(4), &json!(false)),
        "no answer does not mean a blind gateway"
    );
    let rehearsal = campaign().write();
    rehearsal.run(&[]).exits(0);
    rehearsal.campaign(&["reconcile", "sale"]).exits(0).says("no rows are in doubt");
}

#[test]
fn reconcile_of_a_run_with_nothing_in_doubt_exits_0() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    sale.run(&["--limit", "1"]).exits(0);
    sale.campaign(&["status", "sale"]).exits(5);
    sale.campaign(&["reconcile", "sale"]).exits(0).says("no rows are in doubt").says("next: campaign run");
    assert_eq!(sale.campaign(&["reconcile", "sale", "--json"]).exits(0).json()["exit"], 0);
    let rejecting = Gateway::always(Answer::items(|operation| rejected(operation, "No route")));
    let refused = campaign().to(3).through(&rejecting).write();
    refused.run(&["--keep-going"]).exits(3);
    refused.campaign(&["reconcile", "sale"]).exits(0).says("no rows are in doubt");
}
