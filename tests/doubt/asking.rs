//! What becomes of rows in doubt by asking the gateway: at the end of a run, by `reconcile`, by the next run.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    ANSWER_LOST, Memory, SECOND, answer_was_lost, everybody_once, in_doubt, result, sandbox_playing, states, ten_people,
};
use crate::support::{Answer, Gateway, Process, campaign, phone, rejected, telling};

#[test]
fn lost_answer_is_found_at_the_end_of_the_run() {
    let sandbox = sandbox_playing(ANSWER_LOST);
    let sale = ten_people(&sandbox).write();
    let summary = sale.run(&["--json"]).exits(0).json();
    assert!(answer_was_lost(&sandbox));
    assert_eq!(summary["counts"], json!({ "accepted": 10 }));
    let results = sale.results();
    assert!(results.column("msg_id").iter().all(|msg_id| !msg_id.is_empty()), "{results:?}");
    assert!(result(&sale, 4, "reason").contains("confirmed by the gateway"));
    everybody_once(&sandbox);
    sale.run(&[]).exits(0);
    everybody_once(&sandbox);
}

#[test]
fn gateway_that_knows_a_message_later_is_asked_again() {
    let sandbox = sandbox_playing(&format!("{ANSWER_LOST}status: {{ lag: 4s }}\n"));
    let sale = ten_people(&sandbox).write();
    Process::start(sale.command(&["run", "sale.yaml"])).finish().exits(0);
    assert!(answer_was_lost(&sandbox));
    let questions = sandbox.journal().into_iter().filter(|line| line["type"] == "status");
    let first = questions.filter(|line| line["index"] == 2).collect::<Vec<_>>();
    assert_eq!(first.len(), 2, "asked after 1 s in vain, and once more after 5 s");
    let states = states(&sale);
    assert!(states.len() == 10 && states.chars().all(|state| "aD".contains(state)), "{states}");
    everybody_once(&sandbox);
}

#[test]
fn run_asks_one_second_after_its_end_and_ends() {
    let memory = Memory::default();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (times, tells) = (Arc::clone(&asked), memory.clone());
    let gateway = memory.gateway(memory.takes_in_silence()).with_statuses(move |question| {
        times.lock().expect("the times").push(Instant::now());
        tells.tells(question)
    });
    let sale = ten_people(&gateway).write();
    let began = Instant::now();
    Process::start(sale.command(&["run", "sale.yaml"])).finish().exits(0).says("asking the gateway about 4 rows");
    let asked = asked.lock().expect("the times");
    assert_eq!(asked.len(), 6, "the probe, a message that was surely taken, and the four: once");
    assert!(asked[0] - began >= Duration::from_secs(1));
    assert_eq!(states(&sale), "a".repeat(10));
}

#[test]
fn blind_gateway_proves_nothing_and_is_reported() {
    for blind in ["denies", "affirms"] {
        let _case = telling(format!("case: {blind}"));
        let sandbox = sandbox_playing(&format!("{ANSWER_LOST}status: {{ blind: {blind} }}\n"));
        let sale = ten_people(&sandbox).write();
        sale.run(&[]).exits(4).says("prove nothing");
        assert!(answer_was_lost(&sandbox));
        assert_eq!(states(&sale), "addddaaaaa");
        let told = sale.campaign(&["reconcile", "sale", "--json"]).exits(4).json();
        assert_eq!((&told["blind"], &told["found"], &told["asked"]), (&json!(true), &json!(0), &json!(4)));
        sale.run(&[]).exits(4);
        assert_eq!(sale.campaign(&["status", "sale"]).code(), Some(4));
        everybody_once(&sandbox);
    }
}

#[test]
fn late_gateway_answer_is_found_by_reconcile() {
    let memory = Memory::default();
    let gateway = memory.gateway(memory.takes_in_silence());
    memory.hide(true);
    let sale = ten_people(&gateway).write();
    sale.run(&[]).exits(4);
    sale.campaign(&["reconcile", "sale"]).exits(4).says("nothing was sent again");
    memory.hide(false);
    let told = sale.campaign(&["reconcile", "sale@1", "--json"]).exits(0).json();
    assert_eq!((&told["found"], &told["blind"]), (&json!(4), &json!(false)));
    assert_eq!(told["counts"], json!({ "accepted": 10 }));
    assert_eq!(states(&sale), "a".repeat(10), "the results are written anew");
    sale.campaign(&["reconcile", "sale"]).exits(0).says("no rows are in doubt");
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn late_gateway_answer_is_found_by_the_next_run() {
    let memory = Memory::default();
    let gateway = memory.gateway(memory.takes_in_silence());
    memory.hide(true);
    let sale = ten_people(&gateway).write();
    sale.run(&["--limit", "7"]).exits(4);
    assert_eq!(states(&sale), "addddaappp");
    sale.run(&["--limit", "1"]).exits(4);
    memory.hide(false);
    sale.run(&["--limit", "1"]).exits(0);
    assert_eq!(states(&sale), "aaaaaaaaap", "an unfinished run asks at its start");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn repeated_campaign_asks_about_its_finished_run() {
    let memory = Memory::default();
    let gateway = memory.gateway(memory.takes_in_silence());
    memory.hide(true);
    let sale = ten_people(&gateway).write();
    sale.run(&[]).exits(4);
    memory.hide(false);
    sale.run(&[]).exits(0);
    sale.campaign(&["status", "sale@1"]).exits(0);
    assert_eq!(states(&sale), "a".repeat(10));
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn message_never_executed_stays_in_doubt_and_is_not_resent() {
    let memory = Memory::default();
    let gateway = memory.gateway(Answer::CloseUnread);
    let sale = ten_people(&gateway).write();
    sale.run(&[]).exits(4);
    for _ in 0..4 {
        let told = sale.campaign(&["reconcile", "sale", "--json"]).exits(4).json();
        assert_eq!((&told["found"], &told["not_found"], &told["blind"]), (&json!(0), &json!(0), &json!(false)));
        sale.run(&[]).exits(4);
    }
    assert_eq!(states(&sale), "addddaaaaa");
    let sent = gateway.phones();
    assert!(sent.len() == 6 && SECOND.iter().all(|row| !sent.contains(&phone(*row))), "{sent:?}");
}

#[test]
fn message_rejected_by_the_gateway_later_is_failed() {
    let memory = Memory::default();
    let takes = memory.clone();
    let gateway = memory.gateway(memory.takes_in_silence()).with_statuses(move |question| {
        let mut told = takes.tells(question);
        if told["success"] == true {
            told["data"]["status"] = json!("REJECTED");
        }
        told
    });
    let sale = ten_people(&gateway).write();
    sale.run(&[]).exits(3).says("next: campaign results sale@1 --state failed --out -");
    sale.campaign(&["status", "sale"]).exits(3).says("campaign results sale@1 --state failed --out -");
    assert_eq!(states(&sale), "affffaaaaa");
    assert_eq!(result(&sale, 3, "gateway_status"), "REJECTED");
}

#[test]
fn campaign_can_count_doubt_as_sent() {
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let sale = ten_people(&gateway).delivery("on_in_doubt: assume_sent").write();
    sale.run(&[]).exits(0);
    assert_eq!(states(&sale), "assssaaaaa");
    assert!(result(&sale, 3, "reason").contains("`on_in_doubt: assume_sent`"), "{}", result(&sale, 3, "reason"));
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn gateway_is_asked_before_doubt_counts_as_sent() {
    let sandbox = sandbox_playing(ANSWER_LOST);
    let sale = ten_people(&sandbox).delivery("on_in_doubt: assume_sent").write();
    sale.run(&[]).exits(0);
    assert!(answer_was_lost(&sandbox));
    assert_eq!(states(&sale), "a".repeat(10));
}

#[test]
fn failed_query_changes_nothing() {
    let (gateway, sale) = in_doubt();
    drop(gateway);
    let told = sale.campaign(&["reconcile", "sale", "--json"]).exits(4).json();
    assert_eq!((&told["found"], &told["counts"]["in_doubt"]), (&json!(0), &json!(4)));
    assert_eq!((&told["unclear"], &told["blind"]), (&json!(4), &json!(false)), "silence is not blindness");
    let rehearsal = campaign().write();
    rehearsal.run(&[]).exits(0);
    rehearsal.campaign(&["reconcile", "sale"]).exits(0).says("no rows are in doubt");
}

#[test]
fn reconcile_of_a_run_without_doubt_exits_with_0() {
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
