//! A process that is gone: what it had goes on elsewhere, and only what it had begun is in doubt.

use super::{ended, everybody_once, in_small_shares, nobody_twice, sent, worker, worker_with};
use crate::support::{Gateway, until};

#[test]
fn shard_of_a_killed_worker_continues_elsewhere_with_doubt() {
    // Where it dies, whether its messages had left by then, and how many answers it had.
    for (point, left) in [("intent.kept:2", false), ("answer.came:2", true), ("share.drawn:1", true)] {
        let gateway = Gateway::accepting();
        let sale = in_small_shares(150).through(&gateway).write();
        let worker = worker_with(&sale, &[("CAMPAIGN_FAILPOINT", point)]);
        let run = sale.start(&["--shared"]);
        until("the worker is gone", || worker.stderr().contains("went off"));
        drop(worker.kill());
        let begun = !point.starts_with("share");
        let told = run.finish().exits(if begun { 4 } else { 0 });
        assert_eq!(told.told().contains("was interrupted and left"), begun, "{}", told.told());
        let results = sale.results();
        let states = results.states();
        let doubtful = states.iter().filter(|state| **state == "in_doubt").count();
        let missing = 150 - gateway.phones().len();
        assert_eq!((doubtful > 0, missing > 0), (begun, begun && !left), "{point}: {doubtful}, {missing}");
        assert_eq!(states.iter().filter(|state| **state == "accepted").count(), 150 - doubtful, "{point}");
        if missing == 0 {
            everybody_once(&gateway, 150);
        }
    }
}

#[test]
fn workers_send_the_rest_after_the_starter_is_killed() {
    let gateway = Gateway::accepting();
    let sale = in_small_shares(200).through(&gateway).write();
    let worker = worker(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker sends it", || worker.stdout().contains("sale@1: joined the run"));
    until("something went out", || gateway.phones().len() > 40);
    drop(run.kill());
    let status = sale.campaign(&["status", "sale", "--json"]).json();
    assert_eq!(status["state"], "sending", "{status}");
    until("nothing is left", || worker.stdout().contains("no shards are left"));
    let started = sale.run(&[]);
    assert!(matches!(started.code(), Some(0 | 4)), "{}", started.told());
    let results = sale.results();
    let states = results.states();
    assert!(states.iter().all(|state| ["accepted", "in_doubt"].contains(state)), "{states:?}");
    nobody_twice(&gateway);
    assert!(sent(&ended(worker)) > 0);
}

#[test]
fn stopped_worker_returns_its_shard() {
    let gateway = Gateway::accepting();
    let sale = in_small_shares(200).through(&gateway).write();
    let worker = worker(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker sends it", || worker.stdout().contains("sale@1: joined the run"));
    until("something went out", || gateway.phones().len() > 70);
    let told = ended(worker);
    assert!(told.contains("stopped: interrupted"), "{told}");
    run.finish().exits(0);
    everybody_once(&gateway, 200);
}

#[test]
fn while_workers_have_shares_of_a_run_no_other_takes_its_place() {
    let gateway = Gateway::accepting();
    let sale = in_small_shares(200).through(&gateway).write();
    let worker = worker(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker sends it", || worker.stdout().contains("sale@1: joined the run"));
    until("something went out", || gateway.phones().len() > 40);
    drop(run.kill());
    sale.replace("sale.yaml", "Hello", "Good day");
    sale.run(&["--accept-changes"]).exits(6).says("another process");
    until("nothing is left", || worker.stdout().contains("no shards are left"));
    drop(ended(worker));
}

#[test]
fn resumed_run_is_sent_together_with_its_workers() {
    let gateway = Gateway::accepting();
    let sale = in_small_shares(240).through(&gateway).write();
    let worker = worker(&sale);
    let run = sale.start(&["--shared"]);
    until("the worker sends it", || worker.stdout().contains("sale@1: joined the run"));
    until("something went out", || gateway.phones().len() > 40);
    drop(run.kill());
    let again = sale.run(&[]);
    assert!(matches!(again.code(), Some(0 | 4)), "{}", again.told());
    nobody_twice(&gateway);
    let results = sale.results();
    let states = results.states();
    assert!(states.iter().all(|state| ["accepted", "in_doubt"].contains(state)), "{states:?}");
    drop(ended(worker));
}
