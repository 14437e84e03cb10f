//! Workers that sleep past their lease: others take over what they had, and when they wake they send nothing more of it.

use std::time::{Duration, Instant};

use super::crew::{Crew, LONG};
use super::let_leases_end_of_workers;
use crate::support::{Clock, Cluster, Process, telling, until, until_within};

/// How soon what a machine had that is not heard of any more goes on elsewhere.
const ELSEWHERE: Duration = Duration::from_secs(40);

#[test]
fn worker_asleep_at_any_step_of_a_message_sends_nothing_more() {
    for point in ["share.drawn:1", "intent.kept:2", "envelope.leaves:2", "answer.came:2", "outcome.kept:2"] {
        sleep_at(point);
    }
}

#[test]
#[ignore = "a machine that sleeps in its turn to write is thrown out after ten seconds"]
fn worker_asleep_while_waiting_to_write_sends_nothing_more() {
    for point in ["commit.before:6", "commit.after:6", "commit.heard:6", "commit.before:9", "commit.after:9"] {
        sleep_at(point);
    }
}

/// A worker's machine sleeps there, with everything of it, until others are through.
fn sleep_at(point: &str) {
    let _case = telling(format!("case: it sleeps at {point}"));
    let Some(cluster) = Cluster::shared() else { return };
    let clock = Clock::new();
    let sleeps = format!("{}; export CAMPAIGN_FAILPOINT={point}:sleep", clock.movable());
    let mut crew = Crew::begin_after(&cluster.database(), (250, 50), &[sleeps]);
    until("it sleeps", || crew.workers[0].stderr().contains("went off") && is_suspended(&crew.workers[0]));
    clock.move_on(40);
    let_leases_end_of_workers(cluster, &crew.sale);
    let (code, told) = crew.ends(|_| {});
    assert!(matches!(code, Some(0 | 4)), "{told}");
    let sent = crew.witness.arrived();
    crew.workers[0].signal("CONT");
    until("it knows that it lost it", || crew.workers[0].stdout().contains("stopped: "));
    crew.workers_end();
    assert_eq!(crew.witness.arrived(), sent, "nothing more left");
    crew.judge(cluster);
}

fn is_suspended(process: &Process) -> bool {
    process.told_by_the_system("stat").rsplit(") ").next().is_some_and(|state| state.starts_with('T'))
}

#[test]
fn workers_continue_while_the_starter_sleeps_and_repeat_nothing() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut crew = Crew::begin(&cluster.database(), 300, 2);
    crew.sends(60);
    crew.run.signal("STOP");
    super::let_leases_end(cluster, &crew.sale);
    // Those of the workers too, until they say that they are there.
    for worker in &crew.workers {
        until("nothing is left", || worker.stdout().contains("; "));
    }
    crew.run.signal("CONT");
    let (code, told) = crew.ends(|_| {});
    assert!(matches!(code, Some(0 | 4 | 6)), "{told}");
    crew.workers_end();
    crew.judge(cluster);
}

#[test]
#[ignore = "leases last half a minute"]
fn shard_of_a_sleeping_worker_continues_within_forty_seconds() {
    let Some(cluster) = Cluster::shared() else { return };
    let sleeps = "export CAMPAIGN_FAILPOINT=share.drawn:1:sleep".to_owned();
    let mut crew = Crew::begin_after(&cluster.database(), (400, 50), &[sleeps]);
    until("it sleeps", || crew.workers[0].stderr().contains("went off") && is_suspended(&crew.workers[0]));
    assert!(!in_hand(cluster, &crew, 0).is_empty());
    until_within(ELSEWHERE, "it goes on elsewhere", || in_hand(cluster, &crew, 0).is_empty());
    let (code, told) = crew.ends(|_| {});
    assert_eq!(code, Some(0), "{told}");
    crew.workers[0].signal("CONT");
    until("it knows that it lost it", || crew.workers[0].stdout().contains("stopped: "));
    crew.workers_end();
    assert_eq!(crew.judge(cluster), 0);
}

#[test]
#[ignore = "takes six minutes"]
fn ten_sleeps_past_a_lease_lose_and_repeat_nothing() {
    const RATE: usize = 20;
    let Some(cluster) = Cluster::shared() else { return };
    let mut crew = Crew::begin_after(&cluster.database(), (400 * RATE, RATE), &vec!["true".to_owned(); 3]);
    crew.sends(50);
    for sleep in 0..10 {
        let machine = sleep % crew.workers.len();
        // It left the run for half a minute when it woke.
        suspend_with_something(cluster, &mut crew, machine);
        let known = crew.workers[machine].stdout().matches("stopped: ").count();
        until_within(ELSEWHERE, "it goes on elsewhere", || in_hand(cluster, &crew, machine).is_empty());
        assert!(crew.run.is_running(), "it is through before: {}", crew.run.stderr());
        crew.workers[machine].signal("CONT");
        until("it knows that it lost it", || crew.workers[machine].stdout().matches("stopped: ").count() > known);
    }
    let (code, told) = crew.ends(|_| {});
    assert!(matches!(code, Some(0 | 4)), "{told}");
    crew.workers_end();
    crew.judge(cluster);
}

/// Suspends a worker at a moment at which it has something of the run.
fn suspend_with_something(cluster: &Cluster, crew: &mut Crew, machine: usize) {
    let since = Instant::now();
    while since.elapsed() < LONG {
        if !in_hand(cluster, crew, machine).is_empty() {
            crew.workers[machine].signal("STOP");
            // What it had asked the database for before is done by now.
            std::thread::sleep(Duration::from_millis(200));
            if !in_hand(cluster, crew, machine).is_empty() {
                return;
            }
            crew.workers[machine].signal("CONT");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the worker draws nothing any more: {}", crew.workers[machine].stdout());
}

/// The shares that a worker has, by their first rows.
fn in_hand(cluster: &Cluster, crew: &Crew, machine: usize) -> String {
    let by = format!("%, process {}", crew.workers[machine].id());
    crew.say(
        cluster,
        &format!("SELECT first_row FROM campaign.blocks WHERE epoch IS NOT NULL AND drawn_by LIKE '{by}'"),
    )
}
