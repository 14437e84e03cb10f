//! Simulation of the rate limit: the process's gate, alone and with the account's limit, in many worlds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::{sleep, timeout};

use super::plan::SimulationRandom;
use super::process::{ProcessLife, begin_world, elapsed, shift_wall_clock, wall_now};
use crate::delivery::rate_gate::RateGate;
use campaign_ledger::AccountRateLimit;

/// The rates that must be respected, in operations per second.
const RATES: [f64; 5] = [1.0, 10.0, 50.0, 200.0, 5_000.0];
/// The maximum time that a commit takes.
const COMMIT: Duration = Duration::from_millis(5);

/// The number of worlds, and their length.
#[derive(Clone, Copy)]
struct TestExtent {
    /// Worlds per rate.
    worlds: u64,
    /// The number of operations after which a measurement ends, if it has lasted for at least a minute.
    operations: f64,
}

/// The extent for every test run.
const SHORT_EXTENT: TestExtent = TestExtent { worlds: 4, operations: 30_000.0 };
/// The extent of the long test, which takes minutes.
const LONG_EXTENT: TestExtent = TestExtent { worlds: 24, operations: f64::INFINITY };

impl TestExtent {
    /// The duration of a measurement: as long as the operations take, but at least one minute and at most ten.
    fn measured_time(self, rate: f64) -> Duration {
        Duration::from_secs_f64((self.operations / rate).clamp(60.0, 600.0))
    }
}

/// The processes of a world, and their faults.
#[derive(Clone, Copy, Debug, Default)]
struct RateFaults {
    processes: usize,
    restarts: bool,
    suspension: Option<Duration>,
    /// The number of seconds by which the wall clock is set forward or back.
    clock_set: Option<i64>,
    /// The processes share one run, whose own rate is half of the account's.
    shares_run: bool,
    /// The first process has a slower campaign than the account allows, and ends during the first half of the world.
    slow: bool,
}

/// The time and the number of operations of each sent envelope.
type SendLog = Arc<Mutex<Vec<(Duration, usize)>>>;

/// The account and its senders.
struct LimitedAccount {
    rate: f64,
    size: usize,
    in_flight: usize,
    limit: Arc<Mutex<AccountRateLimit>>,
    /// The rate limit of a shared run. Then the account has twice this rate, and each process has a gate with the run's
    /// rate.
    run_limit: Option<Arc<Mutex<AccountRateLimit>>>,
    log: SendLog,
    seed: u64,
}

/// Reserves a slot for `size` operations in a rate limit. Returns how long to wait for the slot.
fn reserve_slot(limit: &Mutex<AccountRateLimit>, size: usize, rate: f64) -> Duration {
    let mut limit = limit.lock().unwrap();
    let reservation = limit.reserve(wall_now().as_microsecond(), size as u32, Some(rate));
    *limit = reservation.rate_limit;
    reservation.wait.time
}

impl LimitedAccount {
    fn new(rate: f64, chance: &mut SimulationRandom, seed: u64) -> Self {
        // The envelopes of a process wait for each other's commits. So each must be large enough that sending it at the
        // rate takes longer than the commits.
        let min_size = (rate * 2.0 * COMMIT.as_secs_f64()) as u64 + 1;
        let size = (min_size + chance.below((rate as u64).min(100) - min_size + 1)) as usize;
        let in_flight = 1 + chance.below(4) as usize;
        Self { rate, size, in_flight, limit: Arc::default(), run_limit: None, log: SendLog::default(), seed }
    }

    /// Starts a process: each of its envelopes waits for its turn, takes a slot of the account, and is sent.
    fn start_process(&self, process: u64, rate: f64, life: &Arc<ProcessLife>) {
        let gate = Arc::new(RateGate::new(Some(if self.run_limit.is_some() { self.rate } else { rate })));
        let commits = Arc::new(Mutex::new(SimulationRandom::new(self.seed.wrapping_mul(31).wrapping_add(process))));
        for _ in 0..self.in_flight {
            let (gate, life, commits) = (Arc::clone(&gate), Arc::clone(life), Arc::clone(&commits));
            let (limit, log) = (Arc::clone(&self.limit), Arc::clone(&self.log));
            let (run_limit, size) = (self.run_limit.clone(), self.size);
            let (run_rate, account_rate) = (self.rate, if run_limit.is_some() { 2.0 * self.rate } else { self.rate });
            tokio::spawn(async move {
                loop {
                    let turn = gate.wait_for_turn(size).await;
                    if let Some(run_limit) = &run_limit {
                        sleep(reserve_slot(run_limit, size, run_rate)).await;
                    }
                    life.take_step().await;
                    let wait = reserve_slot(&limit, size, account_rate);
                    let commit = commits.lock().unwrap().below(COMMIT.as_micros() as u64);
                    sleep(Duration::from_micros(commit)).await;
                    sleep(wait).await;
                    turn.mark_departed();
                    life.take_step().await;
                    log.lock().unwrap().push((elapsed(), size));
                }
            });
        }
    }

    /// The mean number of operations per second since the world began.
    fn mean_rate(&self) -> f64 {
        self.log.lock().unwrap().iter().map(|(_, size)| size).sum::<usize>() as f64 / elapsed().as_secs_f64()
    }
}

/// The number of operations by which the rate is exceeded in the worst window of at least a second.
pub(super) fn max_excess(log: &[(Duration, usize)], rate: f64) -> f64 {
    // The time of each envelope, and the number of operations before it.
    let (mut before, mut sum) = (Vec::new(), 0.0);
    for (at, size) in log {
        before.push((at.as_secs_f64(), sum));
        sum += *size as f64;
    }
    // `first` is the first envelope less than a second before the current one. `lowest` is the smallest balance
    // (operations minus allowance) before any earlier envelope.
    let (mut excess, mut first, mut lowest) = (f64::MIN, 0, f64::MAX);
    for (last, (at, size)) in log.iter().enumerate() {
        let (at, after) = (at.as_secs_f64(), before[last].1 + *size as f64);
        while at - before[first].0 >= 1.0 {
            lowest = lowest.min(before[first].1 - rate * before[first].0);
            first += 1;
        }
        excess = excess.max(after - before[first].1 - rate).max(after - rate * at - lowest);
    }
    excess
}

/// Lets the processes of an account send for the measured time, with the given faults.
async fn run_processes(
    account: &LimitedAccount,
    faults: RateFaults,
    measured: Duration,
    chance: &mut SimulationRandom,
) {
    let lives: Vec<Arc<ProcessLife>> = (0..faults.processes)
        .map(|process| {
            let suspended = faults.suspension.filter(|_| process == 0);
            let life = Arc::new(ProcessLife::new(None, suspended.map(|time| (1 + chance.below(50), time))));
            let rate = if faults.slow && process == 0 { account.rate / 5.0 } else { account.rate };
            account.start_process(process as u64, rate, &life);
            life
        })
        .collect();
    let until = Duration::from_millis(1 + chance.below(measured.as_millis() as u64 / 2));
    sleep(until).await;
    if faults.restarts || faults.slow {
        lives[0].kill();
    }
    if faults.restarts {
        account.start_process(faults.processes as u64, account.rate, &Arc::new(ProcessLife::new(None, None)));
    }
    if let Some(seconds) = faults.clock_set {
        shift_wall_clock(SignedDuration::from_secs(seconds));
    }
    sleep(measured - until).await;
    if faults.suspension.is_some() {
        assert!(lives[0].was_suspended(), "nothing was suspended");
    }
}

/// Asserts that the rate holds in many worlds of each rate. In a window of at least a second, processes send at most
/// the operations that the rate allows and some further envelopes. These are one for each process, restart and
/// suspension, and one more for each process if a clock is set forward. If `must_use_rate`, at least 95 % of the rate
/// must be used.
fn assert_rate_holds(faults: RateFaults, must_use_rate: bool) {
    assert_rate_holds_in(SHORT_EXTENT, faults, must_use_rate);
}

fn assert_rate_holds_in(extent: TestExtent, faults: RateFaults, must_use_rate: bool) {
    for (rate, seed) in RATES.into_iter().flat_map(|rate| (0..extent.worlds).map(move |seed| (rate, seed))) {
        let measured = extent.measured_time(rate);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            begin_world();
            let mut chance = SimulationRandom::new(seed);
            let run_limit = faults.shares_run.then(Arc::default);
            let account = LimitedAccount { run_limit, ..LimitedAccount::new(rate, &mut chance, seed) };
            run_processes(&account, faults, measured, &mut chance).await;
            let suspended = usize::from(faults.suspension.is_some());
            // Setting a clock forward drops the slots that were booked ahead: one per process.
            let forgotten = if faults.clock_set.is_some_and(|seconds| seconds > 0) { faults.processes } else { 0 };
            let envelopes = faults.processes + usize::from(faults.restarts) + suspended + forgotten;
            // In a shared run, each envelope in flight might be late independently.
            let in_flight = if faults.shares_run { account.in_flight } else { 1 };
            let spare = (account.size * envelopes * in_flight) as f64;
            let excess = max_excess(&account.log.lock().unwrap(), rate);
            let mean = account.mean_rate();
            assert!(excess <= spare + 0.001, "{excess} more than {rate}/s in a window, {spare} to spare; seed {seed}");
            // The last slot of a killed process might be unused.
            let min_mean = 0.95 * rate - account.size as f64 / measured.as_secs_f64();
            assert!(!must_use_rate || mean >= min_mean, "{mean}/s of {rate}/s; seed {seed}");
        });
    }
}

#[test]
fn one_process_uses_the_full_rate_without_exceeding_it() {
    assert_rate_holds(RateFaults { processes: 1, ..RateFaults::default() }, true);
}

#[test]
fn two_processes_share_and_use_the_full_rate() {
    assert_rate_holds(RateFaults { processes: 2, ..RateFaults::default() }, true);
}

#[test]
fn workers_of_one_run_share_and_use_its_full_rate() {
    assert_rate_holds(RateFaults { processes: 3, shares_run: true, ..RateFaults::default() }, true);
    assert_rate_holds(RateFaults { processes: 3, shares_run: true, restarts: true, ..RateFaults::default() }, true);
    assert_rate_holds(
        RateFaults {
            processes: 3,
            shares_run: true,
            suspension: Some(Duration::from_secs(20)),
            ..RateFaults::default()
        },
        false,
    );
}

#[test]
fn slow_campaign_leaves_the_rest_of_the_rate_to_others() {
    assert_rate_holds(RateFaults { processes: 2, slow: true, ..RateFaults::default() }, true);
}

#[test]
fn restart_does_not_allow_a_burst() {
    assert_rate_holds(RateFaults { processes: 1, restarts: true, ..RateFaults::default() }, true);
    assert_rate_holds(RateFaults { processes: 2, restarts: true, ..RateFaults::default() }, true);
}

#[test]
fn suspended_process_catches_up_by_one_envelope_at_most() {
    for seconds in [1, 20] {
        let suspension = Some(Duration::from_secs(seconds));
        assert_rate_holds(RateFaults { processes: 1, suspension, ..RateFaults::default() }, false);
        assert_rate_holds(RateFaults { processes: 2, suspension, ..RateFaults::default() }, false);
    }
}

#[test]
fn clock_change_does_not_affect_the_rate() {
    for seconds in [-1, -3_600, 3_600] {
        let clock_set = Some(seconds);
        assert_rate_holds(RateFaults { processes: 2, clock_set, ..RateFaults::default() }, true);
    }
    assert_rate_holds(
        RateFaults { processes: 1, restarts: true, clock_set: Some(-600), ..RateFaults::default() },
        true,
    );
}

#[test]
#[ignore = "takes minutes: cargo test --lib simulation -- --ignored"]
fn rate_holds_in_many_long_worlds() {
    let suspension = Some(Duration::from_secs(20));
    for (faults, must_use_rate) in [
        (RateFaults { processes: 1, ..RateFaults::default() }, true),
        (RateFaults { processes: 2, ..RateFaults::default() }, true),
        (RateFaults { processes: 3, shares_run: true, restarts: true, ..RateFaults::default() }, true),
        (RateFaults { processes: 3, shares_run: true, suspension, ..RateFaults::default() }, false),
        (RateFaults { processes: 2, slow: true, ..RateFaults::default() }, true),
        (RateFaults { processes: 2, restarts: true, ..RateFaults::default() }, true),
        (RateFaults { processes: 2, suspension, ..RateFaults::default() }, false),
        (RateFaults { processes: 2, clock_set: Some(-3_600), ..RateFaults::default() }, true),
        (RateFaults { processes: 1, restarts: true, clock_set: Some(-600), ..RateFaults::default() }, true),
    ] {
        assert_rate_holds_in(LONG_EXTENT, faults, must_use_rate);
    }
}

/// The rates of the gate alone, in operations per second.
const TURN_RATES: [f64; 6] = [0.1, 1.0, 10.0, 50.0, 200.0, 5_000.0];
/// The maximum time of the commit during an envelope's turn.
const TURN_COMMIT: Duration = Duration::from_millis(15);
/// Worlds per rate.
const TURN_WORLDS: u64 = 4;

/// The duration of a world with this rate: long enough for some 30,000 operations, but at least one minute and at most
/// ten.
fn world_duration(rate: f64) -> Duration {
    Duration::from_secs_f64((30_000.0 / rate).clamp(60.0, 600.0))
}

/// Faults of the envelopes and the gateway.
#[derive(Clone, Copy, Debug, Default)]
struct TurnFaults {
    /// One envelope in ten is sent up to two seconds late.
    late: bool,
    /// Envelopes have one to three times the minimum size.
    mixed: bool,
    /// The gateway asks to slow down now and then.
    slowed: bool,
    /// One turn in twenty is abandoned, before or after it comes.
    abandoned: bool,
}

/// Takes turns until the world ends, and records when each envelope was sent.
async fn take_turns(
    gate: Arc<RateGate>,
    mut size: impl FnMut() -> usize,
    faults: TurnFaults,
    mut chance: SimulationRandom,
    log: Arc<Mutex<Vec<(Duration, usize)>>>,
) {
    loop {
        let size = size();
        if faults.abandoned && chance.once_in(20) {
            let patience = Duration::from_millis(chance.below(3_000));
            drop(timeout(patience, gate.wait_for_turn(size)).await);
        }
        let turn = gate.wait_for_turn(size).await;
        let late = if faults.late && chance.once_in(10) { Duration::from_secs(2) } else { TURN_COMMIT };
        sleep(Duration::from_micros(chance.below(late.as_micros() as u64))).await;
        turn.mark_departed();
        log.lock().unwrap().push((elapsed(), size));
    }
}

/// Plays a world, and asserts that any window of at least a second contains at most the operations that the rate
/// allows, plus one envelope. At least 95 % of the rate must be used, unless a fault reduces the use.
async fn play_turns(rate: f64, seed: u64, faults: TurnFaults) {
    begin_world();
    let (mut chance, duration) = (SimulationRandom::new(seed), world_duration(rate));
    // At this size, sending an envelope at the rate takes longer than a commit.
    let min_size = (rate * 2.0 * TURN_COMMIT.as_secs_f64()) as u64 + 1;
    let fixed_size = min_size + chance.below(min_size);
    let (gate, log) = (Arc::new(RateGate::new(Some(rate))), Arc::default());
    for _ in 0..1 + chance.below(4) {
        let mut sizes = SimulationRandom::new(chance.next_bits());
        let size = move || if faults.mixed { min_size + sizes.below(2 * min_size + 1) } else { fixed_size } as usize;
        tokio::spawn(take_turns(
            Arc::clone(&gate),
            size,
            faults,
            SimulationRandom::new(chance.next_bits()),
            Arc::clone(&log),
        ));
    }
    while elapsed() < duration {
        sleep(Duration::from_millis(1 + chance.below(120_000)).min(duration - elapsed())).await;
        if faults.slowed {
            (0..=chance.below(3)).for_each(|_| gate.slow_down());
        }
    }
    let log = log.lock().unwrap();
    let largest = log.iter().map(|(_, size)| *size).max().expect("something was sent");
    let excess = max_excess(&log, rate);
    let case = format!("at {rate}/s, seed {seed}, {faults:?}");
    assert!(excess <= largest as f64 + 0.001, "{excess} above the rate in a window, {largest} allowed {case}");
    let sent = log.iter().map(|(_, size)| size).sum::<usize>() + largest;
    let required = 0.95 * rate * duration.as_secs_f64();
    assert!(faults.late || faults.slowed || sent as f64 >= required, "{sent} of {required} {case}");
}

#[test]
fn gate_alone_uses_the_full_rate_without_exceeding_it() {
    // Each combination of the four faults.
    for bits in 0..16_u8 {
        let is_set = |bit: u8| bits & (1 << bit) != 0;
        let faults = TurnFaults { late: is_set(0), mixed: is_set(1), slowed: is_set(2), abandoned: is_set(3) };
        for (rate, seed) in TURN_RATES.into_iter().flat_map(|rate| (0..TURN_WORLDS).map(move |seed| (rate, seed))) {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            runtime.block_on(play_turns(rate, seed, faults));
        }
    }
}
