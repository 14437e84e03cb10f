//! Workers suspended past their lease: others take over their shards, and they send nothing after they wake up.

use std::time::{Duration, Instant};

use super::expire_worker_leases;
use super::shared_run::{DATABASE_TIMEOUT, SharedRun};
use crate::support::{Clock, Cluster, Process, note_on_failure, until, until_within};

/// The time limit for the takeover of a silent machine's shards.
const TAKEOVER_LIMIT: Duration = Duration::from_secs(40);

#[test]
fn worker_asleep_at_any_step_of_a_message_sends_nothing_more() {
    for point in ["share.drawn:1", "intent.kept:2", "envelope.leaves:2", "answer.came:2", "outcome.kept:2"] {
        check_sleep_at(point);
    }
}

#[test]
#[ignore = "a machine that sleeps with the write lock is disconnected after ten seconds"]
fn worker_asleep_while_waiting_to_write_sends_nothing_more() {
    for point in ["commit.before:6", "commit.after:6", "commit.heard:6", "commit.before:9", "commit.after:9"] {
        check_sleep_at(point);
    }
}

/// Suspends the only worker at a failpoint until the starter has finished the run. Asserts that the worker then sends
/// nothing more.
fn check_sleep_at(point: &str) {
    let _case = note_on_failure(format!("case: suspended at {point}"));
    let Some(cluster) = Cluster::shared() else { return };
    let clock = Clock::new();
    let before_worker = format!("{}; export CAMPAIGN_FAILPOINT={point}:sleep", clock.adjustable());
    let mut shared = SharedRun::start_after(&cluster.create_database(), 250, 50, &[before_worker]);
    until("the worker is suspended", || {
        shared.workers[0].stderr().contains("went off") && is_suspended(&shared.workers[0])
    });
    clock.advance(40);
    expire_worker_leases(cluster, &shared.sale);
    let (code, output) = shared.wait_for_end(|_| {});
    assert!(matches!(code, Some(0 | 4)), "{output}");
    let sent = shared.witness.arrivals();
    shared.workers[0].signal("CONT");
    until("the worker notices that it lost its shard", || shared.workers[0].stdout().contains("stopped: "));
    shared.stop_workers();
    assert_eq!(shared.witness.arrivals(), sent, "nothing more is sent");
    shared.check_outcome(cluster);
}

fn is_suspended(process: &Process) -> bool {
    process.read_proc_file("stat").rsplit(") ").next().is_some_and(|state| state.starts_with('T'))
}

#[test]
fn workers_continue_while_the_starter_sleeps_and_repeat_nothing() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut shared = SharedRun::start(&cluster.create_database(), 300, 2);
    shared.wait_for_messages(60);
    shared.run.signal("STOP");
    super::expire_leases(cluster, &shared.sale);
    // The leases of the workers expire as well, but the workers renew them.
    for worker in &shared.workers {
        until("the worker is done", || worker.stdout().contains("; "));
    }
    shared.run.signal("CONT");
    let (code, output) = shared.wait_for_end(|_| {});
    assert!(matches!(code, Some(0 | 4 | 6)), "{output}");
    shared.stop_workers();
    shared.check_outcome(cluster);
}

#[test]
#[ignore = "leases last half a minute"]
fn shard_of_a_sleeping_worker_continues_within_forty_seconds() {
    let Some(cluster) = Cluster::shared() else { return };
    let before_worker = "export CAMPAIGN_FAILPOINT=share.drawn:1:sleep".to_owned();
    let mut shared = SharedRun::start_after(&cluster.create_database(), 400, 50, &[before_worker]);
    until("the worker is suspended", || {
        shared.workers[0].stderr().contains("went off") && is_suspended(&shared.workers[0])
    });
    assert!(!list_shards(cluster, &shared, 0).is_empty());
    until_within(TAKEOVER_LIMIT, "others take over the shards", || list_shards(cluster, &shared, 0).is_empty());
    let (code, output) = shared.wait_for_end(|_| {});
    assert_eq!(code, Some(0), "{output}");
    shared.workers[0].signal("CONT");
    until("the worker notices that it lost its shard", || shared.workers[0].stdout().contains("stopped: "));
    shared.stop_workers();
    assert_eq!(shared.check_outcome(cluster), 0);
}

#[test]
#[ignore = "takes six minutes"]
fn ten_sleeps_past_a_lease_lose_and_repeat_nothing() {
    const RATE: usize = 20;
    let Some(cluster) = Cluster::shared() else { return };
    let mut shared = SharedRun::start_after(&cluster.create_database(), 400 * RATE, RATE, &vec!["true".to_owned(); 3]);
    shared.wait_for_messages(50);
    for sleep in 0..10 {
        let machine = sleep % shared.workers.len();
        // A worker that wakes up leaves the run for half a minute.
        suspend_with_shard(cluster, &mut shared, machine);
        let earlier_stops = shared.workers[machine].stdout().matches("stopped: ").count();
        until_within(TAKEOVER_LIMIT, "others take over the shards", || {
            list_shards(cluster, &shared, machine).is_empty()
        });
        assert!(shared.run.is_running(), "the run ended too early: {}", shared.run.stderr());
        shared.workers[machine].signal("CONT");
        until("the worker notices that it lost its shard", || {
            shared.workers[machine].stdout().matches("stopped: ").count() > earlier_stops
        });
    }
    let (code, output) = shared.wait_for_end(|_| {});
    assert!(matches!(code, Some(0 | 4)), "{output}");
    shared.stop_workers();
    shared.check_outcome(cluster);
}

/// Suspends a worker while it has a shard.
fn suspend_with_shard(cluster: &Cluster, shared: &mut SharedRun, machine: usize) {
    let since = Instant::now();
    while since.elapsed() < DATABASE_TIMEOUT {
        if !list_shards(cluster, shared, machine).is_empty() {
            shared.workers[machine].signal("STOP");
            // Gives its pending database requests time to finish.
            std::thread::sleep(Duration::from_millis(200));
            if !list_shards(cluster, shared, machine).is_empty() {
                return;
            }
            shared.workers[machine].signal("CONT");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the worker takes no more shards: {}", shared.workers[machine].stdout());
}

/// The first rows of a worker's shards.
fn list_shards(cluster: &Cluster, shared: &SharedRun, machine: usize) -> String {
    let worker = format!("%, process {}", shared.workers[machine].id());
    shared.query_ledger(
        cluster,
        &format!("SELECT first_row FROM campaign.blocks WHERE epoch IS NOT NULL AND drawn_by LIKE '{worker}'"),
    )
}
