//! Clocks of workers that are wrong by an hour: who may send, and how fast, goes by the clock of the database.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::crew::{Crew, RATE};
use crate::support::{Chance, Clock, Cluster, until};

#[test]
fn clocks_of_workers_an_hour_apart_change_no_ownership_or_rate() {
    const ROWS: usize = 700;
    let Some(cluster) = Cluster::shared() else { return };
    let (clock, mut chance) = (Clock::new(), Chance::seeded());
    let hour = SignedDuration::from_hours(1);
    let clocks = [clock.set_to(Timestamp::now() + hour), clock.set_to(Timestamp::now() - hour), "true".to_owned()];
    let mut crew = Crew::begin_after(&cluster.database(), (ROWS, RATE), &clocks);
    let arrivals = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&arrivals);
    crew.witness.show(move |phones| {
        let now = Instant::now();
        seen.lock().expect("the arrivals").extend(phones.iter().map(|_| now));
    });
    crew.sends(60);
    for _ in 0..4 {
        let enough = crew.witness.arrived() + 1 + chance.below(100) as usize;
        until("the moment to kill", || crew.witness.arrived() >= enough || !crew.run.is_running());
        crew.replace(chance.below(3) as usize);
    }
    let (code, told) = crew.ends(|_| {});
    assert!(matches!(code, Some(0 | 4)), "{told}");
    crew.workers_end();
    crew.judge(cluster);
    keeps_the_pace(&arrivals.lock().expect("the arrivals"));
}

/// In no second there are more than two seconds' worth: one may have been saved.
fn keeps_the_pace(arrivals: &[Instant]) {
    for (at, first) in arrivals.iter().enumerate() {
        let within = arrivals[at..].iter().take_while(|at| at.duration_since(*first) < Duration::from_secs(1)).count();
        assert!(within <= 2 * RATE, "{within} messages in a second");
    }
}
