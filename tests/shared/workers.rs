//! Workers of several machines: what becomes of what one of them had, once nothing is heard of it any more.

use super::{database, elsewhere, let_leases_end_of_workers, over, start_elsewhere};
use crate::recovery::{Tally, Witness};
use crate::support::{Answer, Cluster, Gateway, Process, Results, campaign, phone, until};

#[test]
fn shard_of_another_machine_continues_after_its_lease() {
    let Some(cluster) = Cluster::shared() else { return };
    let witness = Witness::start();
    let sale = over(cluster, campaign().to(200).batches_of(5).delivery("rate: 30/s").through(&witness));
    let mut dies = sale.command(&["worker", "--state-dir", "elsewhere"]);
    dies.env("CAMPAIGN_FAILPOINT", "answer.came:3");
    let worker = Process::start(dies);
    until("the worker looks for runs", || worker.stdout().contains("sends shards of runs"));
    let run = sale.start(&["--shared"]);
    until("the worker is gone", || worker.stderr().contains("went off"));
    drop(worker.kill());
    let_leases_end_of_workers(cluster, &sale);
    let told = run.finish();
    assert!(matches!(told.code(), Some(0 | 4)), "{}", told.told());
    assert!(told.told().contains("1 request"), "{}", told.told());
    assert_eq!(witness.tally(&sale, (2..202).map(phone)), Tally::default());
}

#[test]
fn worker_that_slept_past_its_lease_sends_nothing_more() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::Held, Answer::Held]);
    let sale = over(cluster, campaign().to(200).batches_of(5).one_at_a_time().delivery("rate: 30/s").through(&gateway));
    let mut worker = start_elsewhere(&sale, &["worker"]);
    until("the worker looks for runs", || worker.stdout().contains("sends shards of runs"));
    let run = sale.start(&["--shared"]);
    // Of the starter and of the worker one each is on its way.
    until("both have something on its way", || gateway.requests().len() == 3);
    worker.signal("STOP");
    let_leases_end_of_workers(cluster, &sale);
    gateway.release();
    let told = run.finish();
    assert!(matches!(told.code(), Some(0 | 4)), "{}", told.told());
    let sent = gateway.phones().len();
    worker.signal("CONT");
    until("the worker knows that it lost it", || worker.stdout().contains("stopped: "));
    worker.signal("TERM");
    worker.finish().exits(0);
    let mut phones = gateway.phones();
    assert_eq!(phones.len(), sent, "its next envelope is refused before it leaves");
    phones.sort_unstable();
    assert_eq!(phones, (2..202).map(phone).collect::<Vec<_>>());
    let results = elsewhere(&sale, &["results", "sale", "--out", "-"]).exits(0);
    assert_eq!(Results::parse(&results.stdout).states(), ["accepted"; 200], "its late answer is evidence");
}

#[test]
fn worker_with_metrics_ends_if_its_ledger_is_outdated() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let sale = over(cluster, campaign().to(200).batches_of(5).delivery("rate: 30/s").through(&gateway));
    let worker = start_elsewhere(&sale, &["worker", "--metrics", "127.0.0.1:0"]);
    until("the worker looks for runs", || worker.stdout().contains("sends shards of runs"));
    let run = sale.start(&["--shared"]);
    until("the worker takes shares", || worker.stdout().contains("joined the run"));
    // With the turn: no transaction of theirs that began before ends after it.
    let behind = "BEGIN; SELECT pg_advisory_xact_lock(7161125211933861742);
        UPDATE campaign.meta SET generation = generation - 1000; COMMIT";
    cluster.say(database(&sale), behind);
    run.finish().exits(74).says("older copy");
    worker.finish().exits(74).says("older copy");
}

#[test]
fn new_worker_with_an_outdated_ledger_sends_nothing() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let sale = over(cluster, campaign().to(60).batches_of(5).delivery("rate: 10/s").through(&gateway));
    sale.run(&["--limit", "10"]).exits(0);
    let worker = start_elsewhere(&sale, &["worker"]);
    until("the worker looks for runs", || worker.stdout().contains("sends shards of runs"));
    cluster.say(database(&sale), "UPDATE campaign.meta SET generation = generation - 1000");
    // A machine that knows nothing of it goes on.
    let _other = Process::start(sale.command(&["run", "sale.yaml", "--shared", "--no-wait", "--state-dir", "third"]));
    worker.finish().exits(74).says("older copy");
}
