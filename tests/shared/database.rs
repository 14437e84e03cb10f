//! Database restarts, kills, restores and failovers during a run: nothing is sent twice.

use super::{ledger_address, run_elsewhere, write_in_database};
use crate::recovery::{Tally, Witness};
use crate::support::{Answer, Chance, Cluster, Draft, Folder, Gateway, Process, campaign, phone, until};

/// Settings that keep committed data after any crash of the server.
const SAFE: &[&str] = &["fsync=on", "full_page_writes=on", "max_connections=40"];

fn draft_campaign(rows: usize, witness: &Witness) -> Draft {
    campaign().to(rows).batches_of(5).delivery("rate: 200/s").through(witness).profile("rate: 200/s")
}

/// Asserts that every row agrees with the messages that arrived.
fn check_outcome(witness: &Witness, sale: &Folder, rows: usize) {
    assert_eq!(witness.tally(sale, (2..rows + 2).map(phone)), Tally::default());
}

#[test]
fn run_waits_for_a_restarted_database_and_continues() {
    let Some(cluster) = Cluster::start(SAFE) else { return };
    let witness = Witness::start();
    let sale = write_in_database(&cluster, draft_campaign(400, &witness));
    let run = sale.start(&["-v"]);
    for restart in 1..=2 {
        until("some messages are sent", || witness.arrivals() >= restart * 60);
        cluster.stop_server();
        assert!(cluster.start_server());
    }
    run.finish().exits(0);
    check_outcome(&witness, &sale, 400);
    assert!(witness.doubts(&sale).is_empty());
}

#[test]
fn database_killed_repeatedly_loses_and_repeats_nothing() {
    kill_the_database(6);
}

#[test]
#[ignore = "takes some minutes"]
fn fifty_database_kills_lose_and_repeat_nothing() {
    kill_the_database(50);
}

fn kill_the_database(kills: usize) {
    const ROWS: usize = 400;
    let Some(cluster) = Cluster::start(SAFE) else { return };
    let (mut chance, mut killed) = (Chance::seeded(), 0);
    while killed < kills {
        let witness = Witness::start();
        let sale = write_in_database(&cluster, draft_campaign(ROWS, &witness));
        let mut run = sale.start(&[]);
        while killed < kills && run.is_running() {
            let target = witness.arrivals() + 1 + chance.below(150) as usize;
            until("the moment to kill", || witness.arrivals() >= target || !run.is_running());
            cluster.kill();
            assert!(cluster.start_server());
            killed += 1;
        }
        let ended = run.finish();
        assert!(matches!(ended.code(), Some(0 | 4)), "{}", ended.details());
        check_outcome(&witness, &sale, ROWS);
    }
}

#[test]
fn restored_older_database_sends_nothing_until_confirmed() {
    let Some(cluster) = Cluster::start(SAFE) else { return };
    let gateway = Gateway::accepting();
    let sale = write_in_database(&cluster, campaign().to(30).through(&gateway));
    sale.run(&["--limit", "5"]).exits(0);
    cluster.stop_server();
    cluster.copy_data("before");
    assert!(cluster.start_server());
    sale.run(&["--limit", "5"]).exits(0);
    cluster.stop_server();
    cluster.restore_data("before");
    assert!(cluster.start_server());
    sale.run(&[]).exits(74).says("older copy").says("--new-ledger");
    sale.campaign(&["status", "sale"]).exits(74);
    assert_eq!(gateway.phones().len(), 10);
    // Later writes do not bring the ledger up to the high-water mark.
    run_elsewhere(&sale, &["suppress", "add", "+380501999999"]).exits(0);
    sale.run(&[]).exits(74);
    sale.run(&["--new-ledger"]).says("you accepted this ledger as the current one");
    assert_eq!(gateway.phones().len(), 35, "the operator accepts duplicates of messages that the ledger does not know");
}

#[test]
fn replica_without_the_last_commits_sends_nothing() {
    let Some(cluster) = Cluster::start(SAFE) else { return };
    let gateway = Gateway::accepting();
    let sale = write_in_database(&cluster, campaign().to(30).through(&gateway));
    sale.run(&["--limit", "5"]).exits(0);
    assert!(!sale.campaign(&["check", "sale.yaml"]).details().contains("unconfirmed-replica"));
    cluster.start_replica();
    sale.campaign(&["check", "sale.yaml"]).says("unconfirmed-replica").says("synchronous_standby_names");
    cluster.stop_replica();
    sale.run(&["--limit", "5"]).exits(0);
    cluster.fail_over();
    sale.run(&[]).exits(74).says("older copy");
    assert_eq!(gateway.phones().len(), 10);
}

#[test]
fn machine_unaware_of_lost_commits_needs_confirmation_to_send() {
    let Some(cluster) = Cluster::start(SAFE) else { return };
    let gateway = Gateway::accepting();
    let sale = write_in_database(&cluster, campaign().to(30).through(&gateway));
    sale.run(&["--limit", "5"]).exits(0);
    cluster.start_replica();
    cluster.stop_replica();
    run_elsewhere(&sale, &["run", "sale.yaml", "--limit", "5"]).exits(0);
    cluster.fail_over();
    sale.run(&[]).exits(74).says("its server was replaced").says("--new-ledger");
    run_elsewhere(&sale, &["status", "sale"]).exits(74);
    sale.campaign(&["run", "sale.yaml", "--state-dir", "a-new-machine"]).exits(74).says("its server was replaced");
    assert_eq!(gateway.phones().len(), 10);
    sale.run(&["--new-ledger"]).says("you accepted this ledger as the current one");
    sale.campaign(&["run", "sale.yaml", "--state-dir", "a-new-machine"]).exits(0);
}

#[test]
fn replica_with_every_commit_continues_the_run() {
    let Some(cluster) = Cluster::start(SAFE) else { return };
    let gateway = Gateway::accepting();
    let sale = write_in_database(&cluster, campaign().to(30).through(&gateway));
    sale.run(&["--limit", "5"]).exits(0);
    cluster.start_replica();
    cluster.run_sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
    cluster.run_sql("postgres", "SELECT pg_reload_conf()");
    until("each commit is confirmed", || {
        cluster.run_sql("postgres", "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
    });
    assert!(!sale.campaign(&["check", "sale.yaml"]).details().contains("unconfirmed-replica"));
    sale.run(&["--limit", "5"]).exits(0);
    cluster.fail_over();
    // No replica is left that could confirm a commit.
    cluster.run_sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = ''");
    cluster.run_sql("postgres", "SELECT pg_reload_conf()");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), (2..32).map(phone).collect::<Vec<_>>());
}

#[test]
fn run_stops_if_its_database_is_replaced_by_an_older_one() {
    let Some(cluster) = Cluster::start(SAFE) else { return };
    let gateway = Gateway::answering([Answer::Accept, Answer::Accept, Answer::Held]);
    let sale = write_in_database(&cluster, campaign().to(60).batches_of(5).one_at_a_time().through(&gateway));
    let run = sale.start(&[]);
    until("the first envelope is answered", || gateway.requests().len() >= 2);
    until("the third envelope is on its way", || gateway.requests().len() == 3);
    let open = "SELECT count(*) FROM campaign.envelopes WHERE settled_at IS NULL";
    until("the other answers are recorded", || cluster.run_sql(ledger_address(&sale), open) == "1");
    // Imitates a failover to a replica that lacks the last commits.
    let rollback =
        "UPDATE campaign.meta SET generation = generation - 3; DELETE FROM campaign.envelopes WHERE envelope > 1";
    cluster.run_sql(ledger_address(&sale), rollback);
    gateway.release();
    run.finish().exits(74).says("older copy");
    assert_eq!(gateway.requests().len(), 3);
    sale.run(&[]).exits(74).says("older copy");
    assert_eq!(gateway.requests().len(), 3);
}

#[test]
fn run_waits_for_a_locked_table() {
    let Some(cluster) = Cluster::shared() else { return };
    let gateway = Gateway::accepting();
    let sale = write_in_database(cluster, campaign().to(10).through(&gateway));
    sale.run(&["--limit", "2"]).exits(0);
    let lock = "BEGIN; LOCK campaign.envelopes IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(3); COMMIT";
    std::thread::scope(|scope| {
        let locked = scope.spawn(|| cluster.run_sql(ledger_address(&sale), lock));
        let granted_locks = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation = \
                     'campaign.envelopes'::regclass AND granted";
        until("the table is locked", || cluster.run_sql(ledger_address(&sale), granted_locks) == "1");
        sale.run(&[]).exits(0);
        locked.join().expect("the lock");
    });
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn unreachable_server_is_reported_with_its_address() {
    let Some(cluster) = Cluster::start(SAFE) else { return };
    let gateway = Gateway::accepting();
    let sale = write_in_database(&cluster, campaign().to(3).through(&gateway));
    cluster.stop_server();
    let address = format!("/{}", ledger_address(&sale).rsplit('/').next().expect("a name"));
    let advice = "check that the database server is running";
    sale.run(&[]).exits(74).says(&address).says(advice);
    let status = Process::start(sale.command(&["status"])).finish().exits(74).says(&address).says(advice);
    assert!(!status.details().contains("make room"), "{}", status.details());
    assert_eq!(gateway.requests().len(), 0);
    assert!(cluster.start_server());
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 3);
}
