//! A database that goes away, is locked, or comes back as it was before, while workers send a run with whoever began it.

use super::crew::{BATCH, Crew, LONG};
use super::over;
use crate::recovery::{Tally, Witness};
use crate::support::{Chance, Cluster, Pooler, Process, campaign, phone, until};

/// Settings under which what was committed survives whatever becomes of the server.
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
        let mut crew = Crew::begin(&cluster.database(), 400, 2);
        while killed < kills && crew.run.is_running() {
            let enough = crew.witness.arrived() + 1 + chance.below(80) as usize;
            until("the moment to kill", || crew.witness.arrived() >= enough || !crew.run.is_running());
            cluster.kill();
            assert!(cluster.begin());
            killed += 1;
            crew.keep_up();
        }
        let (code, told) = crew.ends(Crew::keep_up);
        assert!(matches!(code, Some(0 | 4)), "{told}");
        crew.workers_end();
        crew.judge(&cluster);
    }
}

#[test]
fn worker_waits_for_a_database_that_is_away() {
    let Some(cluster) = Cluster::start(SAFE) else { return };
    let witness = Witness::start();
    let sale = over(&cluster, campaign().to(20).batches_of(BATCH).through(&witness));
    let mut command = sale.command(&["run", "sale.yaml", "--no-wait", "--shared"]);
    command.env("CAMPAIGN_FAILPOINT", "run.shared_out:1:sleep");
    let mut run = Process::start(command);
    until("it is shared out", || run.stderr().contains("went off"));
    cluster.end();
    run.signal("CONT");
    until("it waits", || run.stderr().contains("waiting for the ledger") || !run.is_running());
    assert!(cluster.begin());
    run.finish().exits(0);
    assert_eq!(witness.tally(&sale, (2..22).map(phone)), Tally::default());
}

#[test]
fn workers_wait_for_a_pooler_that_restarts_repeatedly() {
    let Some(cluster) = Cluster::shared() else { return };
    let Some(mut pooler) = Pooler::start(cluster) else { return };
    let mut crew = Crew::begin(&pooler.address(&cluster.database()), 500, 2);
    for restart in 1..=4 {
        crew.sends(restart * 80);
        pooler.restart();
    }
    let (code, told) = crew.ends(|_| {});
    assert_eq!(code, Some(0), "{told}");
    crew.workers_end();
    assert_eq!(crew.judge(cluster), 0);
}

#[test]
fn locked_tables_are_waited_for_by_all_senders_of_a_run() {
    let Some(cluster) = Cluster::shared() else { return };
    for table in ["envelopes", "blocks"] {
        let mut crew = Crew::begin(&cluster.database(), 300, 2);
        crew.sends(50);
        lock(cluster, &crew, (table, 3));
        let (code, told) = crew.ends(|_| {});
        assert_eq!(code, Some(0), "{table}: {told}");
        crew.workers_end();
        assert_eq!(crew.judge(cluster), 0, "{table}");
    }
}

#[test]
#[ignore = "takes two minutes"]
fn tables_locked_for_a_minute_stop_nobody_silently() {
    let Some(cluster) = Cluster::shared() else { return };
    std::thread::scope(|scope| {
        for table in ["envelopes", "blocks", "runs", "locks"] {
            scope.spawn(move || lock_for_a_minute(cluster, table));
        }
    });
}

fn lock_for_a_minute(cluster: &Cluster, table: &str) {
    let mut crew = Crew::begin(&cluster.database(), 400, 2);
    crew.sends(50);
    lock(cluster, &crew, (table, 60));
    let (code, told) = crew.ends(Crew::keep_up);
    match code {
        Some(0 | 4) => {}
        Some(6) => assert!(told.contains("another process has taken over the run"), "{table}: {told}"),
        Some(74) => assert!(told.contains("another database session holds a lock"), "{table}: {told}"),
        _ => panic!("{table}: {told}"),
    }
    crew.workers_end();
    crew.judge(cluster);
}

/// Has somebody lock a table for so many seconds.
fn lock(cluster: &Cluster, crew: &Crew, (table, seconds): (&str, u32)) {
    let locked = format!("BEGIN; LOCK campaign.{table} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep({seconds}); COMMIT");
    crew.say(cluster, &locked);
}

#[test]
fn lagging_replica_stops_all_workers_until_the_newest_is_back() {
    let Some(cluster) = Cluster::start(SAFE) else { return };
    cluster.replicate();
    let mut crew = Crew::begin(&cluster.database(), 500, 2);
    crew.sends(60);
    cluster.cut_off();
    crew.sends(crew.witness.arrived() + 60);
    cluster.fail_over();
    // What was on its way when the server was killed has arrived, since its way is shorter.
    let sent = crew.witness.arrived();
    let (code, told) = crew.ends(|_| {});
    assert!(code == Some(74) && told.contains("older copy"), "{told}");
    for worker in crew.workers.drain(..) {
        worker.finish_within(LONG).exits(74).says("older copy");
    }
    crew.sale.run(&[]).exits(74).says("older copy");
    Process::start(crew.sale.command(&["worker", "--state-dir", "machine-0"])).finish().exits(74).says("older copy");
    assert_eq!(crew.witness.arrived(), sent, "nothing more left");
    cluster.fail_back();
    let doubts = crew.judge(&cluster);
    assert!(doubts <= 3 * 2 * BATCH, "{doubts} in doubt: more than was open");
}
