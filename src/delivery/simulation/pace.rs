//! The pace of both gates together, measured where the first byte goes to the socket: over two processes, restarts, a
//! process that is suspended, and a wall clock that is set back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::sleep;

use super::chance::SimulationRandom;
use super::life::{ProcessLife, begin_world, elapsed, shift_wall_clock, wall_now};
use crate::delivery::gate::RateGate;
use crate::ledger::AccountRateLimit;

/// The rates that are promised to hold, in operations per second.
const RATES: [f64; 5] = [1.0, 10.0, 50.0, 200.0, 5_000.0];
/// The longest that a commit takes.
const COMMIT: Duration = Duration::from_millis(5);

/// How many worlds a promise is held in, and how long each.
#[derive(Clone, Copy)]
struct PaceExtent {
    /// Worlds per rate.
    worlds: u64,
    /// The most operations that a world is measured for, beyond a minute.
    operations: f64,
}

/// What every run of the tests has time for.
const SHORT_EXTENT: PaceExtent = PaceExtent { worlds: 4, operations: 30_000.0 };
/// What proves more, in minutes.
const LONG_EXTENT: PaceExtent = PaceExtent { worlds: 24, operations: f64::INFINITY };

impl PaceExtent {
    /// How long a rate is measured: ten minutes, or less if that is enough.
    fn measured_time(self, rate: f64) -> Duration {
        Duration::from_secs_f64((self.operations / rate).clamp(60.0, 600.0))
    }
}

/// What happens to the processes besides sending.
#[derive(Clone, Copy, Debug, Default)]
struct PaceTrouble {
    processes: usize,
    restarts: bool,
    suspension: Option<Duration>,
    /// By how many seconds the wall clock is set, forward or back.
    clock_set: Option<i64>,
    /// The processes send one run together, whose own rate is half of the account's.
    together: bool,
    /// The first process has a slower campaign than the account allows, and ends it half way.
    slow: bool,
}

/// What went out when, by which process.
type SendLog = Arc<Mutex<Vec<(Duration, usize)>>>;

/// The account and those who send from it.
struct PacedAccount {
    rate: f64,
    size: usize,
    in_flight: usize,
    pace: Arc<Mutex<AccountRateLimit>>,
    /// That of the run, where several send it together: then no process has a gate.
    own: Option<Arc<Mutex<AccountRateLimit>>>,
    log: SendLog,
    seed: u64,
}

/// Takes room from a pace; gives how long to wait for it.
fn reserve_room(pace: &Mutex<AccountRateLimit>, size: usize, rate: f64) -> Duration {
    let mut pace = pace.lock().unwrap();
    let reservation = pace.reserve(wall_now().as_microsecond(), size as u32, Some(rate));
    *pace = reservation.rate_limit;
    reservation.wait.time
}

impl PacedAccount {
    fn new(rate: f64, chance: &mut SimulationRandom, seed: u64) -> Self {
        // The envelopes of a process wait for one another's commits, and their share of the pace has to be longer.
        let least = (rate * 2.0 * COMMIT.as_secs_f64()) as u64 + 1;
        let size = (least + chance.below((rate as u64).min(100) - least + 1)) as usize;
        let in_flight = 1 + chance.below(4) as usize;
        Self { rate, size, in_flight, pace: Arc::default(), own: None, log: SendLog::default(), seed }
    }

    /// Starts a process: each of its envelopes has its turn, takes a slot of the account, and leaves.
    fn start_process(&self, process: u64, rate: f64, life: &Arc<ProcessLife>) {
        let gate = Arc::new(RateGate::new(Some(if self.own.is_some() { self.rate } else { rate })));
        let commits = Arc::new(Mutex::new(SimulationRandom::new(self.seed.wrapping_mul(31).wrapping_add(process))));
        for _ in 0..self.in_flight {
            let (gate, life, commits) = (Arc::clone(&gate), Arc::clone(life), Arc::clone(&commits));
            let (pace, log) = (Arc::clone(&self.pace), Arc::clone(&self.log));
            let (own, size) = (self.own.clone(), self.size);
            let (own_rate, rate) = (self.rate, if own.is_some() { 2.0 * self.rate } else { self.rate });
            tokio::spawn(async move {
                loop {
                    let turn = gate.wait_turn(size).await;
                    if let Some(own) = &own {
                        sleep(reserve_room(own, size, own_rate)).await;
                    }
                    life.take_step().await;
                    let wait = reserve_room(&pace, size, rate);
                    let commit = commits.lock().unwrap().below(COMMIT.as_micros() as u64);
                    sleep(Duration::from_micros(commit)).await;
                    sleep(wait).await;
                    turn.mark_left();
                    life.take_step().await;
                    log.lock().unwrap().push((elapsed(), size));
                }
            });
        }
    }

    /// The operations per second over the time measured.
    fn mean_rate(&self) -> f64 {
        self.log.lock().unwrap().iter().map(|(_, size)| size).sum::<usize>() as f64 / elapsed().as_secs_f64()
    }
}

/// The most by which a window of at least a second exceeds the rate, in operations.
pub(super) fn max_excess(log: &[(Duration, usize)], rate: f64) -> f64 {
    // How far the operations before each envelope are ahead of the rate, and after all.
    let (mut before, mut sum) = (Vec::new(), 0.0);
    for (at, size) in log {
        before.push((at.as_secs_f64(), sum));
        sum += *size as f64;
    }
    let (mut most, mut first, mut least) = (f64::MIN, 0, f64::MAX);
    for (last, (at, size)) in log.iter().enumerate() {
        let (at, after) = (at.as_secs_f64(), before[last].1 + *size as f64);
        while at - before[first].0 >= 1.0 {
            least = least.min(before[first].1 - rate * before[first].0);
            first += 1;
        }
        most = most.max(after - before[first].1 - rate).max(after - rate * at - least);
    }
    most
}

/// Lets the processes send, with this trouble.
async fn run_processes(street: &PacedAccount, trouble: PaceTrouble, measured: Duration, chance: &mut SimulationRandom) {
    let lives: Vec<Arc<ProcessLife>> = (0..trouble.processes)
        .map(|process| {
            let suspended = trouble.suspension.filter(|_| process == 0);
            let life = Arc::new(ProcessLife::new(None, suspended.map(|time| (1 + chance.below(50), time))));
            let rate = if trouble.slow && process == 0 { street.rate / 5.0 } else { street.rate };
            street.start_process(process as u64, rate, &life);
            life
        })
        .collect();
    let until = Duration::from_millis(1 + chance.below(measured.as_millis() as u64 / 2));
    sleep(until).await;
    if trouble.restarts || trouble.slow {
        lives[0].kill();
    }
    if trouble.restarts {
        street.start_process(trouble.processes as u64, street.rate, &Arc::new(ProcessLife::new(None, None)));
    }
    if let Some(seconds) = trouble.clock_set {
        shift_wall_clock(SignedDuration::from_secs(seconds));
    }
    sleep(measured - until).await;
    if trouble.suspension.is_some() {
        assert!(lives[0].was_suspended(), "nothing was suspended");
    }
}

/// Holds the promise in many worlds of each rate: in a window of at least a second at most the rate and an envelope per
/// process, and one more of a process that was suspended; and at least 95 % of the rate, where `full`.
fn assert_rate_holds(trouble: PaceTrouble, full: bool) {
    assert_rate_holds_in(SHORT_EXTENT, trouble, full);
}

fn assert_rate_holds_in(extent: PaceExtent, trouble: PaceTrouble, full: bool) {
    for (rate, seed) in RATES.into_iter().flat_map(|rate| (0..extent.worlds).map(move |seed| (rate, seed))) {
        let measured = extent.measured_time(rate);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            begin_world();
            let mut chance = SimulationRandom::new(seed);
            let own = trouble.together.then(Arc::default);
            let street = PacedAccount { own, ..PacedAccount::new(rate, &mut chance, seed) };
            run_processes(&street, trouble, measured, &mut chance).await;
            let suspended = usize::from(trouble.suspension.is_some());
            // A clock that is set forward forgets what is booked ahead: a slot of each process.
            let forgotten = if trouble.clock_set.is_some_and(|seconds| seconds > 0) { trouble.processes } else { 0 };
            let envelopes = trouble.processes + usize::from(trouble.restarts) + suspended + forgotten;
            // Without a gate each envelope that flies may be late by itself.
            let flying = if trouble.together { street.in_flight } else { 1 };
            let spare = (street.size * envelopes * flying) as f64;
            let excess = max_excess(&street.log.lock().unwrap(), rate);
            let mean = street.mean_rate();
            assert!(excess <= spare + 0.001, "{excess} more than {rate}/s in a window, {spare} to spare; seed {seed}");
            // What the last slot of a process that was killed had room for was not used.
            let least = 0.95 * rate - street.size as f64 / measured.as_secs_f64();
            assert!(!full || mean >= least, "{mean}/s of {rate}/s; seed {seed}");
        });
    }
}

#[test]
fn one_process_keeps_and_uses_the_rate() {
    assert_rate_holds(PaceTrouble { processes: 1, ..PaceTrouble::default() }, true);
}

#[test]
fn two_processes_share_and_use_the_rate() {
    assert_rate_holds(PaceTrouble { processes: 2, ..PaceTrouble::default() }, true);
}

#[test]
fn workers_of_one_run_share_and_use_its_rate() {
    assert_rate_holds(PaceTrouble { processes: 3, together: true, ..PaceTrouble::default() }, true);
    assert_rate_holds(PaceTrouble { processes: 3, together: true, restarts: true, ..PaceTrouble::default() }, true);
    assert_rate_holds(
        PaceTrouble {
            processes: 3,
            together: true,
            suspension: Some(Duration::from_secs(20)),
            ..PaceTrouble::default()
        },
        false,
    );
}

#[test]
fn slow_campaign_leaves_the_rest_of_the_rate_to_others() {
    assert_rate_holds(PaceTrouble { processes: 2, slow: true, ..PaceTrouble::default() }, true);
}

#[test]
fn restart_allows_no_burst() {
    assert_rate_holds(PaceTrouble { processes: 1, restarts: true, ..PaceTrouble::default() }, true);
    assert_rate_holds(PaceTrouble { processes: 2, restarts: true, ..PaceTrouble::default() }, true);
}

#[test]
fn suspended_process_catches_up_on_one_envelope_only() {
    for seconds in [1, 20] {
        let suspension = Some(Duration::from_secs(seconds));
        assert_rate_holds(PaceTrouble { processes: 1, suspension, ..PaceTrouble::default() }, false);
        assert_rate_holds(PaceTrouble { processes: 2, suspension, ..PaceTrouble::default() }, false);
    }
}

#[test]
fn clock_change_does_not_affect_the_rate() {
    for seconds in [-1, -3_600, 3_600] {
        let clock_set = Some(seconds);
        assert_rate_holds(PaceTrouble { processes: 2, clock_set, ..PaceTrouble::default() }, true);
    }
    assert_rate_holds(
        PaceTrouble { processes: 1, restarts: true, clock_set: Some(-600), ..PaceTrouble::default() },
        true,
    );
}

#[test]
#[ignore = "takes minutes: cargo test --lib simulation -- --ignored"]
fn rate_holds_in_many_long_worlds() {
    let suspension = Some(Duration::from_secs(20));
    for (trouble, full) in [
        (PaceTrouble { processes: 1, ..PaceTrouble::default() }, true),
        (PaceTrouble { processes: 2, ..PaceTrouble::default() }, true),
        (PaceTrouble { processes: 3, together: true, restarts: true, ..PaceTrouble::default() }, true),
        (PaceTrouble { processes: 3, together: true, suspension, ..PaceTrouble::default() }, false),
        (PaceTrouble { processes: 2, slow: true, ..PaceTrouble::default() }, true),
        (PaceTrouble { processes: 2, restarts: true, ..PaceTrouble::default() }, true),
        (PaceTrouble { processes: 2, suspension, ..PaceTrouble::default() }, false),
        (PaceTrouble { processes: 2, clock_set: Some(-3_600), ..PaceTrouble::default() }, true),
        (PaceTrouble { processes: 1, restarts: true, clock_set: Some(-600), ..PaceTrouble::default() }, true),
    ] {
        assert_rate_holds_in(LONG_EXTENT, trouble, full);
    }
}
