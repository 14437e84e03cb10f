//! Database failures during a shared run with workers: kills, restarts, locks, failover to a lagging replica.

use super::shared_run::{BATCH, DATABASE_TIMEOUT, SharedRun};
use super::write_in_database;
use crate::recovery::{Tally, Witness};
use crate::support::{Chance, Cluster, Pooler, Process, campaign, phone, until};

/// Settings that keep committed data after any crash of the server.
const SAFE: &[&str] = &["fsync=on", "full_page_writes=on", "max_connections=60"];

#[test]
fn database_killed_under_workers_loses_and_repeats_nothing() {
    kill_the_database(5);
}

#[test]
#[ignore = "takes some minutes"]
fn fifty_database_kills_under_workers_lose_and_repeat_nothing() {
    kill_the_database(50);
}

fn kill_the_database(kills: usize) {
    let Some(cluster) = Cluster::start(SAFE) else { return };
    let (mut chance, mut killed) = (Chance::seeded(), 0);
    while killed < kills {
        let mut shared = SharedRun::start(&cluster.create_database(), 400, 2);
        while killed < kills && shared.run.is_running() {
            let target = shared.witness.arrivals() + 1 + chance.below(80) as usize;
            until("the moment to kill", || shared.witness.arrivals() >= target || !shared.run.is_running());
            cluster.kill();
            assert!(cluster.start_server());
            killed += 1;
            shared.restart_ended_workers();
        }
        let (code, output) = shared.wait_for_end(SharedRun::restart_ended_workers);
        assert!(matches!(code, Some(0 | 4)), "{output}");
        shared.stop_workers();
        shared.check_outcome(&cluster);
    }
}

#[test]
fn shared_run_waits_for_an_unavailable_database() {
    let Some(cluster) = Cluster::start(SAFE) else { return };
    let witness = Witness::start();
    let sale = write_in_database(&cluster, campaign().to(20).batches_of(BATCH).through(&witness));
    let mut command = sale.command(&["run", "sale.yaml", "--no-wait", "--shared"]);
    command.env("CAMPAIGN_FAILPOINT", "run.shared_out:1:sleep");
    let mut run = Process::start(command);
    until("the shards are created", || run.stderr().contains("went off"));
    cluster.stop_server();
    run.signal("CONT");
    until("the run waits for the database", || run.stderr().contains("waiting for the ledger") || !run.is_running());
    assert!(cluster.start_server());
    run.finish().exits(0);
    assert_eq!(witness.tally(&sale, (2..22).map(phone)), Tally::default());
}

#[test]
fn workers_wait_for_a_pooler_that_restarts_repeatedly() {
    let Some(cluster) = Cluster::shared() else { return };
    let Some(mut pooler) = Pooler::start(cluster) else { return };
    let mut shared = SharedRun::start(&pooler.address(&cluster.create_database()), 500, 2);
    for restart in 1..=4 {
        shared.wait_for_messages(restart * 80);
        pooler.restart();
    }
    let (code, output) = shared.wait_for_end(|_| {});
    assert_eq!(code, Some(0), "{output}");
    shared.stop_workers();
    assert_eq!(shared.check_outcome(cluster), 0);
}

#[test]
fn all_senders_of_a_run_wait_for_locked_tables() {
    let Some(cluster) = Cluster::shared() else { return };
    for table in ["envelopes", "blocks"] {
        let mut shared = SharedRun::start(&cluster.create_database(), 300, 2);
        shared.wait_for_messages(50);
        lock_table(cluster, &shared, table, 3);
        let (code, output) = shared.wait_for_end(|_| {});
        assert_eq!(code, Some(0), "{table}: {output}");
        shared.stop_workers();
        assert_eq!(shared.check_outcome(cluster), 0, "{table}");
    }
}

#[test]
#[ignore = "takes two minutes"]
fn no_sender_stops_silently_if_a_table_is_locked_for_a_minute() {
    let Some(cluster) = Cluster::shared() else { return };
    std::thread::scope(|scope| {
        for table in ["envelopes", "blocks", "runs", "locks"] {
            scope.spawn(move || lock_for_a_minute(cluster, table));
        }
    });
}

fn lock_for_a_minute(cluster: &Cluster, table: &str) {
    let mut shared = SharedRun::start(&cluster.create_database(), 400, 2);
    shared.wait_for_messages(50);
    lock_table(cluster, &shared, table, 60);
    let (code, output) = shared.wait_for_end(SharedRun::restart_ended_workers);
    match code {
        Some(0 | 4) => {}
        Some(6) => assert!(output.contains("another process has taken over the run"), "{table}: {output}"),
        Some(74) => assert!(output.contains("another database session holds a lock"), "{table}: {output}"),
        _ => panic!("{table}: {output}"),
    }
    shared.stop_workers();
    shared.check_outcome(cluster);
}

/// Locks a table in another session for this number of seconds, and waits until the lock is released.
fn lock_table(cluster: &Cluster, shared: &SharedRun, table: &str, seconds: u32) {
    let statements =
        format!("BEGIN; LOCK campaign.{table} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep({seconds}); COMMIT");
    shared.query_ledger(cluster, &statements);
}

#[test]
fn lagging_replica_stops_all_workers_until_the_primary_returns() {
    let Some(cluster) = Cluster::start(SAFE) else { return };
    cluster.start_replica();
    let mut shared = SharedRun::start(&cluster.create_database(), 500, 2);
    shared.wait_for_messages(60);
    cluster.stop_replica();
    shared.wait_for_messages(shared.witness.arrivals() + 60);
    cluster.fail_over();
    // Requests that were on their way when the server was killed have arrived by now.
    let sent = shared.witness.arrivals();
    let (code, output) = shared.wait_for_end(|_| {});
    assert!(code == Some(74) && output.contains("older copy"), "{output}");
    for worker in shared.workers.drain(..) {
        worker.finish_within(DATABASE_TIMEOUT).exits(74).says("older copy");
    }
    shared.sale.run(&[]).exits(74).says("older copy");
    Process::start(shared.sale.command(&["worker", "--state-dir", "machine-0"])).finish().exits(74).says("older copy");
    assert_eq!(shared.witness.arrivals(), sent, "nothing more is sent");
    cluster.fail_back();
    let doubts = shared.check_outcome(&cluster);
    assert!(doubts <= 3 * 2 * BATCH, "{doubts} rows in doubt: more than were sent");
}
