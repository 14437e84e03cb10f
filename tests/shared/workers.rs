//! Takeover of a worker's shards by other machines after its lease expires.

use super::{expire_worker_leases, ledger_address, run_elsewhere, start_elsewhere, write_in_database};
use crate::recovery::{Tally, Witness};
use crate::support::{Answer, Cluster, Gateway, Process, Results, campaign, phone, until};

#[test]
fn shard_of_a_killed_worker_continues_after_its_lease_expires() {
    let Some(cluster) = Cluster::shared() else { return };
    let witness = Witness::start();
    let sale = write_in_database(cluster, campaign().to(200).batches_of(5).delivery("rate: 30/s").through(&witness));
    let mut command = sale.command(&["worker", "--state-dir", "elsewhere"]);
    command.env("CAMPAIGN_FAILPOINT", "answer.came:3");
    let worker = Process::start(command);
    until("the worker looks for runs", || worker.stdout().contains("ready to send shards of runs"));
    let run = sale.start(&["--shared"]);
    until("the worker is killed", || worker.stderr().contains("went off"));
    drop(worker.kill());
    expire_worker_leases(cluster, &sale);
    let finished = run.finish();
    assert!(matches!(finished.code(), Some(0 | 4)), "{}", finished.details());
    assert!(finished.details().contains("1 request"), "{}", finished.details());
    assert_eq!(witness.tally(&sale, (2..202).map(phone)), Tally::default());
}

#[test]
fn worker_that_slept_past_its_lease_sends_nothing_more() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::Held, Answer::Held]);
    let sale = write_in_database(
        cluster,
        campaign().to(200).batches_of(5).one_at_a_time().delivery("rate: 30/s").through(&gateway),
    );
    let mut worker = start_elsewhere(&sale, &["worker"]);
    until("the worker looks for runs", || worker.stdout().contains("ready to send shards of runs"));
    let run = sale.start(&["--shared"]);
    // One request of the starter and one of the worker are on their way.
    until("both have a request on its way", || gateway.requests().len() == 3);
    worker.signal("STOP");
    expire_worker_leases(cluster, &sale);
    gateway.release();
    let finished = run.finish();
    assert!(matches!(finished.code(), Some(0 | 4)), "{}", finished.details());
    let sent = gateway.phones().len();
    worker.signal("CONT");
    until("the worker notices that it lost its shard", || worker.stdout().contains("stopped: "));
    worker.signal("TERM");
    worker.finish().exits(0);
    let mut phones = gateway.phones();
    assert_eq!(phones.len(), sent, "the next envelope is not sent");
    phones.sort_unstable();
    assert_eq!(phones, (2..202).map(phone).collect::<Vec<_>>());
    let results = run_elsewhere(&sale, &["results", "sale", "--out", "-"]).exits(0);
    assert_eq!(Results::parse(&results.stdout).states(), ["accepted"; 200], "the late answer counts");
}

#[test]
fn worker_with_metrics_ends_if_its_ledger_is_outdated() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let sale = write_in_database(cluster, campaign().to(200).batches_of(5).delivery("rate: 30/s").through(&gateway));
    let worker = start_elsewhere(&sale, &["worker", "--metrics", "127.0.0.1:0"]);
    until("the worker looks for runs", || worker.stdout().contains("ready to send shards of runs"));
    let run = sale.start(&["--shared"]);
    until("the worker joins the run", || worker.stdout().contains("joined the run"));
    // Holds the write lock, so that no earlier transaction of the processes commits afterwards.
    let rollback = "BEGIN; SELECT pg_advisory_xact_lock(7161125211933861742);
        UPDATE campaign.meta SET generation = generation - 1000; COMMIT";
    cluster.run_sql(ledger_address(&sale), rollback);
    run.finish().exits(74).says("older copy");
    worker.finish().exits(74).says("older copy");
}

#[test]
fn new_worker_with_an_outdated_ledger_sends_nothing() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let sale = write_in_database(cluster, campaign().to(60).batches_of(5).delivery("rate: 10/s").through(&gateway));
    sale.run(&["--limit", "10"]).exits(0);
    let worker = start_elsewhere(&sale, &["worker"]);
    until("the worker looks for runs", || worker.stdout().contains("ready to send shards of runs"));
    cluster.run_sql(ledger_address(&sale), "UPDATE campaign.meta SET generation = generation - 1000");
    // A machine without a high-water mark continues the run.
    let _other = Process::start(sale.command(&["run", "sale.yaml", "--shared", "--no-wait", "--state-dir", "third"]));
    worker.finish().exits(74).says("older copy");
}
