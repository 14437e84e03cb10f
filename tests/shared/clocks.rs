//! Workers with wrong clocks: leases and rates follow the clock of the database.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::shared_run::{RATE, SharedRun};
use crate::support::{Chance, Clock, Cluster, until};

#[test]
fn worker_clocks_an_hour_off_do_not_affect_leases_or_rate() {
    const ROWS: usize = 700;
    let Some(cluster) = Cluster::shared() else { return };
    let (clock, mut chance) = (Clock::new(), Chance::seeded());
    let hour = SignedDuration::from_hours(1);
    let clocks = [clock.set_to(Timestamp::now() + hour), clock.set_to(Timestamp::now() - hour), "true".to_owned()];
    let mut shared = SharedRun::start_after(&cluster.create_database(), ROWS, RATE, &clocks);
    let arrivals = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&arrivals);
    shared.witness.observe(move |phones| {
        let now = Instant::now();
        recorded.lock().expect("the arrivals").extend(phones.iter().map(|_| now));
    });
    shared.wait_for_messages(60);
    for _ in 0..4 {
        let target = shared.witness.arrivals() + 1 + chance.below(100) as usize;
        until("the moment to kill", || shared.witness.arrivals() >= target || !shared.run.is_running());
        shared.replace_worker(chance.below(3) as usize);
    }
    let (code, output) = shared.wait_for_end(|_| {});
    assert!(matches!(code, Some(0 | 4)), "{output}");
    shared.stop_workers();
    shared.check_outcome(cluster);
    check_rate(&arrivals.lock().expect("the arrivals"));
}

/// Asserts that no second has more than twice the rate: one second's worth can be saved up.
fn check_rate(arrivals: &[Instant]) {
    for (index, first) in arrivals.iter().enumerate() {
        let within = arrivals[index..]
            .iter()
            .take_while(|arrival| arrival.duration_since(*first) < Duration::from_secs(1))
            .count();
        assert!(within <= 2 * RATE, "{within} messages in a second");
    }
}
