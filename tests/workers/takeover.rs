//! Takeover of shards from a killed or stopped process: only started requests are in doubt.

use super::{
    check_no_duplicates, check_one_message_each, sent_count, small_shard_campaign, start_worker, start_worker_with,
    stop_worker,
};
use crate::support::{Gateway, until};

#[test]
fn killed_worker_leaves_only_started_requests_in_doubt() {
    // The failpoint, and whether the messages of that envelope have been sent.
    for (point, was_sent) in [("intent.kept:2", false), ("answer.came:2", true), ("share.drawn:1", true)] {
        let gateway = Gateway::accepting();
        let sale = small_shard_campaign(150).through(&gateway).write();
        let worker = start_worker_with(&sale, &[("CAMPAIGN_FAILPOINT", point)]);
        let run = sale.start(&["--shared"]);
        until("the worker is killed", || worker.stderr().contains("went off"));
        drop(worker.kill());
        let has_started_request = !point.starts_with("share");
        let finished = run.finish().exits(if has_started_request { 4 } else { 0 });
        assert_eq!(
            finished.details().contains("process that was sending this run ended unexpectedly"),
            has_started_request,
            "{}",
            finished.details()
        );
        let results = sale.results();
        let states = results.states();
        let doubtful = states.iter().filter(|state| **state == "in_doubt").count();
        let missing = 150 - gateway.phones().len();
        assert_eq!(
            (doubtful > 0, missing > 0),
            (has_started_request, has_started_request && !was_sent),
            "{point}: {doubtful}, {missing}"
        );
        assert_eq!(states.iter().filter(|state| **state == "accepted").count(), 150 - doubtful, "{point}");
        if missing == 0 {
            check_one_message_each(&gateway, 150);
        }
    }
}

#[test]
fn worker_sends_the_rest_after_the_starter_is_killed() {
    let gateway = Gateway::accepting();
    let sale = small_shard_campaign(200).through(&gateway).write();
    let worker = start_worker(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker joins the run", || worker.stdout().contains("sale@1: joined the run"));
    until("some messages are sent", || gateway.phones().len() > 40);
    drop(run.kill());
    let status = sale.campaign(&["status", "sale", "--json"]).json();
    assert_eq!(status["state"], "sending", "{status}");
    until("no shards are left", || worker.stdout().contains("no shards are left"));
    let resumed = sale.run(&[]);
    assert!(matches!(resumed.code(), Some(0 | 4)), "{}", resumed.details());
    let results = sale.results();
    let states = results.states();
    assert!(states.iter().all(|state| ["accepted", "in_doubt"].contains(state)), "{states:?}");
    check_no_duplicates(&gateway);
    assert!(sent_count(&stop_worker(worker)) > 0);
}

#[test]
fn stopped_worker_returns_its_shard() {
    let gateway = Gateway::accepting();
    let sale = small_shard_campaign(200).through(&gateway).write();
    let worker = start_worker(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker joins the run", || worker.stdout().contains("sale@1: joined the run"));
    until("some messages are sent", || gateway.phones().len() > 70);
    let output = stop_worker(worker);
    assert!(output.contains("stopped: interrupted"), "{output}");
    run.finish().exits(0);
    check_one_message_each(&gateway, 200);
}

#[test]
fn run_cannot_be_replaced_while_workers_hold_its_shards() {
    let gateway = Gateway::accepting();
    let sale = small_shard_campaign(200).through(&gateway).write();
    let worker = start_worker(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker joins the run", || worker.stdout().contains("sale@1: joined the run"));
    until("some messages are sent", || gateway.phones().len() > 40);
    drop(run.kill());
    sale.replace("sale.yaml", "Hello", "Good day");
    sale.run(&["--accept-changes"]).exits(6).says("another process");
    until("no shards are left", || worker.stdout().contains("no shards are left"));
    drop(stop_worker(worker));
}

#[test]
fn run_resumed_beside_active_workers_repeats_nothing() {
    let gateway = Gateway::accepting();
    let sale = small_shard_campaign(240).through(&gateway).write();
    let worker = start_worker(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker joins the run", || worker.stdout().contains("sale@1: joined the run"));
    until("some messages are sent", || gateway.phones().len() > 40);
    drop(run.kill());
    let again = sale.run(&[]);
    assert!(matches!(again.code(), Some(0 | 4)), "{}", again.details());
    check_no_duplicates(&gateway);
    let results = sale.results();
    let states = results.states();
    assert!(states.iter().all(|state| ["accepted", "in_doubt"].contains(state)), "{states:?}");
    drop(stop_worker(worker));
}
