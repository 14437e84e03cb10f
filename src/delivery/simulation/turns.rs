//! The process's own gate alone, where the account's pace cannot hide what it does wrong: envelopes that leave late,
//! slow-downs, turns that are given up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::chance::SimulationRandom;
use super::life::{begin_world, elapsed};
use super::pace::max_excess;
use crate::delivery::gate::RateGate;

/// Operations per second.
const RATES: [f64; 6] = [0.1, 1.0, 10.0, 50.0, 200.0, 5_000.0];
/// The most that the commit takes for which an envelope has its turn.
const COMMIT: Duration = Duration::from_millis(15);
/// Worlds per rate.
const WORLDS: u64 = 4;

/// How long a world of this rate lasts: for some 30,000 operations, but a minute at least and ten at most.
fn world_duration(rate: f64) -> Duration {
    Duration::from_secs_f64((30_000.0 / rate).clamp(60.0, 600.0))
}

/// What happens besides sending.
#[derive(Clone, Copy, Debug, Default)]
struct TurnTrouble {
    /// An envelope in ten leaves up to two seconds late.
    late: bool,
    /// Envelopes are of one to three times the least size.
    mixed: bool,
    /// The gateway asks to slow down now and then.
    slowed: bool,
    /// A turn in twenty is given up, before it comes or after.
    given_up: bool,
}

/// Takes turns until the world ends, and notes when which envelope left.
async fn take_turns(
    gate: Arc<RateGate>,
    mut size: impl FnMut() -> usize,
    trouble: TurnTrouble,
    mut chance: SimulationRandom,
    log: Arc<Mutex<Vec<(Duration, usize)>>>,
) {
    loop {
        let size = size();
        if trouble.given_up && chance.once_in(20) {
            let patience = Duration::from_millis(chance.below(3_000));
            drop(timeout(patience, gate.wait_turn(size)).await);
        }
        let turn = gate.wait_turn(size).await;
        let late = if trouble.late && chance.once_in(10) { Duration::from_secs(2) } else { COMMIT };
        sleep(Duration::from_micros(chance.below(late.as_micros() as u64))).await;
        turn.mark_left();
        log.lock().unwrap().push((elapsed(), size));
    }
}

/// Plays a world: in any window of a second or more no more leaves than the rate and one envelope; and at least 95 % of
/// the rate are used, unless there is a reason for less.
async fn play_turns(rate: f64, seed: u64, trouble: TurnTrouble) {
    begin_world();
    let (mut chance, lasts) = (SimulationRandom::new(seed), world_duration(rate));
    // The share of the pace of an envelope is longer than a commit.
    let least = (rate * 2.0 * COMMIT.as_secs_f64()) as u64 + 1;
    let even = least + chance.below(least);
    let (gate, log) = (Arc::new(RateGate::new(Some(rate))), Arc::default());
    for _ in 0..1 + chance.below(4) {
        let mut sizes = SimulationRandom::new(chance.next_bits());
        let size = move || if trouble.mixed { least + sizes.below(2 * least + 1) } else { even } as usize;
        tokio::spawn(take_turns(
            Arc::clone(&gate),
            size,
            trouble,
            SimulationRandom::new(chance.next_bits()),
            Arc::clone(&log),
        ));
    }
    while elapsed() < lasts {
        sleep(Duration::from_millis(1 + chance.below(120_000)).min(lasts - elapsed())).await;
        if trouble.slowed {
            (0..=chance.below(3)).for_each(|_| gate.slow_down());
        }
    }
    let log = log.lock().unwrap();
    let largest = log.iter().map(|(_, size)| *size).max().expect("something left");
    let excess = max_excess(&log, rate);
    let told = format!("at {rate}/s, seed {seed}, {trouble:?}");
    assert!(excess <= largest as f64 + 0.001, "{excess} above the rate in a window, {largest} allowed {told}");
    let sent = log.iter().map(|(_, size)| size).sum::<usize>() + largest;
    let least = 0.95 * rate * lasts.as_secs_f64();
    assert!(trouble.late || trouble.slowed || sent as f64 >= least, "{sent} of {least} {told}");
}

#[test]
fn gate_alone_keeps_and_uses_the_rate() {
    for kind in 0..16_u8 {
        let has = |bit: u8| kind & (1 << bit) != 0;
        let trouble = TurnTrouble { late: has(0), mixed: has(1), slowed: has(2), given_up: has(3) };
        for (rate, seed) in RATES.into_iter().flat_map(|rate| (0..WORLDS).map(move |seed| (rate, seed))) {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            runtime.block_on(play_turns(rate, seed, trouble));
        }
    }
}
