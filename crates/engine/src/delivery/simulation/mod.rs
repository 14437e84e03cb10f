//! Simulation of whole worlds from a seed, in virtual time. The real engine, the real answer parsing and the ledger's
//! rules run against a faulty platform and faulty processes.
//!
//! A world begins with faults and ends healthy; then every row must have a true final state. Only the platform knows
//! the truth; [`judge`] compares it with the ledger. A failing seed is printed;
//! `SIMULATION_SEED=N cargo test --lib simulation` replays only that seed.

mod agreement;
mod decisions;
mod judge;
mod ledger;
mod mistakes;
mod plan;
mod platform;
mod process;
mod rates;
mod receipts;
mod shards;
mod workers;
mod world;

use std::collections::BTreeMap;

use judge::{Sighting, WorldReport};
use mistakes::Mistake;
use plan::{StatusOracle, WorldFault, WorldPlan};
use world::play_plan;

/// The situations that a test must cover in addition to every fault.
const REQUIRED_SIGHTINGS: [Sighting; 29] = [
    Sighting::Oracle(StatusOracle::Sees),
    Sighting::Oracle(StatusOracle::KnowsAll),
    Sighting::Oracle(StatusOracle::DeniesAll),
    Sighting::Oracle(StatusOracle::Mute),
    Sighting::Killed,
    Sighting::Suspended,
    Sighting::TakenOver,
    Sighting::Found,
    Sighting::ResentByRule,
    Sighting::SentAgain,
    Sighting::CountedAsSent,
    Sighting::CountedAsNotSent,
    Sighting::Retried,
    Sighting::Unresolved,
    Sighting::StartedOver,
    Sighting::OptedOut,
    Sighting::Skipped,
    Sighting::ReceiptEarly,
    Sighting::ReceiptRepeated,
    Sighting::DoubtProven,
    Sighting::Sharded,
    Sighting::ShardTakenOver,
    Sighting::WorkerKilled,
    Sighting::SuspendedPastItsLease,
    Sighting::HaltedForAll,
    Sighting::ClockSet,
    Sighting::FellBack,
    Sighting::FailedOnEveryChannel,
    Sighting::RetrySkipped,
];

/// Plays one world on its own virtual clock.
fn play_world(plan: WorldPlan, mistake: Option<Mistake>) -> WorldReport {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(play_plan(plan, mistake))
}

/// Plays the worlds of `seeds` on two threads. Returns how often each situation occurred, and panics at the first seed
/// that breaks a promise.
fn play_worlds(seeds: std::ops::Range<u64>) -> BTreeMap<Sighting, u64> {
    if let Ok(seed) = std::env::var("SIMULATION_SEED") {
        let seed = seed.parse().expect("SIMULATION_SEED is a number");
        let report = play_world(WorldPlan::from_seed(seed), None);
        assert!(report.broken.is_empty(), "seed {seed}: {:#?}\n{:#?}", report.broken, WorldPlan::from_seed(seed));
        return BTreeMap::new();
    }
    let play_half = |remainder: u64| {
        let seeds = seeds.clone().filter(move |seed| seed % 2 == remainder);
        move || {
            let mut sightings = BTreeMap::new();
            for seed in seeds {
                let report = play_world(WorldPlan::from_seed(seed), None);
                assert!(report.broken.is_empty(), "SIMULATION_SEED={seed} repeats it: {:#?}", report.broken);
                report
                    .sightings
                    .into_iter()
                    .for_each(|(sighting, times)| *sightings.entry(sighting).or_default() += times);
            }
            sightings
        }
    };
    let (mut sightings, others) = std::thread::scope(|scope| {
        let odd_half = scope.spawn(play_half(1));
        (play_half(0)(), odd_half.join().expect("the other half"))
    });
    others.into_iter().for_each(|(sighting, times)| *sightings.entry(sighting).or_default() += times);
    sightings
}

#[test]
fn no_message_is_sent_twice_or_lost_despite_any_failure() {
    let sightings = play_worlds(0..10_000);
    let required = WorldFault::ALL.map(Sighting::Fault).into_iter().chain(REQUIRED_SIGHTINGS);
    for sighting in required.filter(|_| !sightings.is_empty()) {
        let times = sightings.get(&sighting).copied().unwrap_or(0);
        assert!(times >= 50, "{sighting:?} occurred only {times} times, which proves nothing");
    }
}

#[test]
fn same_seed_replays_the_same_world() {
    for seed in 0..100 {
        let (first, second) =
            (play_world(WorldPlan::from_seed(seed), None), play_world(WorldPlan::from_seed(seed), None));
        assert_eq!((first.sightings, first.ended), (second.sightings, second.ended), "seed {seed}");
    }
}

#[test]
#[ignore = "takes minutes: cargo test --lib simulation -- --ignored"]
fn no_message_is_sent_twice_or_lost_in_100_000_worlds() {
    play_worlds(10_000..110_000);
}
