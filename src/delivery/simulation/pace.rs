//! The pace of both gates together, measured where the first byte goes to the socket: over two processes, restarts, a
//! process that is suspended, and a wall clock that is set back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::sleep;

use super::chance::Chance;
use super::life::{Life, begin_world, elapsed, shift_wall_clock, wall};
use crate::delivery::gate::Gate;
use crate::ledger::AccountPace;

/// The rates that are promised to hold, in operations per second.
const RATES: [f64; 5] = [1.0, 10.0, 50.0, 200.0, 5_000.0];
/// How long a pace is measured.
const MEASURED: Duration = Duration::from_secs(60);
/// How late a timer may be.
const TICK: Duration = Duration::from_millis(3);
/// Worlds per rate.
const WORLDS: u64 = 40;

/// What happens to the processes besides sending.
#[derive(Clone, Copy, Debug, Default)]
struct Trouble {
    processes: usize,
    restarts: bool,
    suspension: Option<Duration>,
    clock_back: Option<Duration>,
}

/// What went out when, by which process.
type Log = Arc<Mutex<Vec<(Duration, usize, usize)>>>;

/// The account and those who send from it.
struct Street {
    rate: f64,
    size: usize,
    in_flight: usize,
    pace: Arc<Mutex<AccountPace>>,
    log: Log,
}

impl Street {
    fn new(rate: f64, chance: &mut Chance) -> Self {
        // Timers tick in milliseconds, and what is lost by a tick is not made up for: at 5,000/s only an envelope of
        // a hundred, which takes twenty of them, uses the pace.
        let least = (rate as u64 / 50).max(1);
        let size = (least + chance.below((rate as u64).min(100) - least + 1)) as usize;
        let in_flight = 1 + chance.below(4) as usize;
        Self { rate, size, in_flight, pace: Arc::default(), log: Log::default() }
    }

    /// Starts a process: each of its envelopes passes the account's gate, then its own.
    fn start(&self, process: usize, life: &Arc<Life>) {
        let gate = Arc::new(Gate::new(Some(self.rate), self.size));
        for _ in 0..self.in_flight {
            let (gate, life) = (Arc::clone(&gate), Arc::clone(life));
            let (pace, log) = (Arc::clone(&self.pace), Arc::clone(&self.log));
            let (rate, size) = (self.rate, self.size);
            tokio::spawn(async move {
                loop {
                    life.step().await;
                    let wait = {
                        let mut pace = pace.lock().unwrap();
                        let reservation = pace.reserve(wall().as_microsecond(), size as u32, Some(rate));
                        *pace = reservation.pace;
                        reservation.wait
                    };
                    sleep(Duration::from_micros(wait as u64)).await;
                    gate.pass(size).await;
                    life.step().await;
                    log.lock().unwrap().push((elapsed(), process, size));
                }
            });
        }
    }

    /// The most by which a window of at least a second exceeds the rate, in operations.
    fn excess(&self) -> f64 {
        let log = self.log.lock().unwrap();
        let mut most = f64::MIN;
        let mut first = 0;
        // A longer window is made of shorter ones: up to three seconds show every burst.
        for last in 0..log.len() {
            while log[last].0 - log[first].0 > Duration::from_secs(3) {
                first += 1;
            }
            let mut within = 0.0;
            for begin in (first..=last).rev() {
                within += log[begin].2 as f64;
                let window = (log[last].0 - log[begin].0).as_secs_f64().max(1.0);
                most = most.max(within - self.rate * window);
            }
        }
        most
    }

    /// The operations per second over the time measured.
    fn mean(&self) -> f64 {
        self.log.lock().unwrap().iter().map(|(_, _, size)| size).sum::<usize>() as f64 / elapsed().as_secs_f64()
    }
}

/// Lets the processes send, with this trouble, and gives back what went out.
async fn send(street: &Street, trouble: Trouble, chance: &mut Chance) {
    let lives: Vec<Arc<Life>> = (0..trouble.processes)
        .map(|process| {
            let suspended = trouble.suspension.filter(|_| process == 0);
            let life = Arc::new(Life::new(None, suspended.map(|time| (1 + chance.below(50), time))));
            street.start(process, &life);
            life
        })
        .collect();
    let until = Duration::from_millis(1 + chance.below(MEASURED.as_millis() as u64 / 2));
    sleep(until).await;
    if trouble.restarts {
        lives[0].kill();
        street.start(trouble.processes, &Arc::new(Life::new(None, None)));
    }
    if let Some(back) = trouble.clock_back {
        shift_wall_clock(-SignedDuration::try_from(back).unwrap());
    }
    sleep(MEASURED - until).await;
    if trouble.suspension.is_some() {
        assert!(lives[0].was_suspended(), "nothing was suspended");
    }
}

/// Holds the promise in many worlds of each rate: in a window of at least a second at most the rate and an envelope per
/// process, besides what a suspended process had in flight; and at least 95 % of the rate, where `full`.
fn holds(trouble: Trouble, full: bool) {
    for (rate, seed) in RATES.into_iter().flat_map(|rate| (0..WORLDS).map(move |seed| (rate, seed))) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            begin_world();
            let mut chance = Chance::new(seed);
            let street = Street::new(rate, &mut chance);
            send(&street, trouble, &mut chance).await;
            let processes = trouble.processes + usize::from(trouble.restarts);
            // What waits between the gates leaves later than the account reckoned with, in each of the processes.
            let held = if trouble.suspension.is_some() { street.in_flight * processes } else { 0 };
            let spare = (street.size * (processes + held)) as f64;
            let (excess, mean) = (street.excess(), street.mean());
            let most = spare + 1.0 + rate * TICK.as_secs_f64();
            assert!(excess <= most, "{excess} more than {rate}/s in a window, {spare} to spare; seed {seed}");
            // The first envelope of each process waits for its gate to fill.
            let least = 0.95 * rate - spare / MEASURED.as_secs_f64();
            // One envelope at a time loses a tick at each.
            let alone = street.in_flight == 1 && trouble.processes == 1 && rate > 200.0;
            assert!(!full || alone || mean >= least, "{mean}/s of {rate}/s; seed {seed}");
        });
    }
}

#[test]
fn one_process_keeps_and_uses_the_pace() {
    holds(Trouble { processes: 1, ..Trouble::default() }, true);
}

#[test]
fn two_processes_share_the_pace_and_use_it() {
    holds(Trouble { processes: 2, ..Trouble::default() }, true);
}

#[test]
fn a_restart_earns_no_burst() {
    holds(Trouble { processes: 1, restarts: true, ..Trouble::default() }, true);
    holds(Trouble { processes: 2, restarts: true, ..Trouble::default() }, true);
}

#[test]
fn a_process_that_was_suspended_catches_up_on_nothing_but_what_it_had_in_flight() {
    for seconds in [1, 20] {
        let suspension = Some(Duration::from_secs(seconds));
        holds(Trouble { processes: 1, suspension, ..Trouble::default() }, false);
        holds(Trouble { processes: 2, suspension, ..Trouble::default() }, false);
    }
}

#[test]
fn a_wall_clock_that_is_set_back_lets_no_more_through() {
    for seconds in [1, 3_600] {
        let clock_back = Some(Duration::from_secs(seconds));
        holds(Trouble { processes: 2, clock_back, ..Trouble::default() }, false);
    }
}

#[test]
fn after_the_wall_clock_was_set_back_sending_goes_on_within_a_quarter_of_an_hour() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        begin_world();
        let street = Street::new(10.0, &mut Chance::new(1));
        street.start(0, &Arc::new(Life::new(None, None)));
        sleep(Duration::from_secs(10)).await;
        shift_wall_clock(-SignedDuration::from_hours(48));
        sleep(Duration::from_secs(1_000)).await;
        let last = street.log.lock().unwrap().last().copied().unwrap();
        assert!(elapsed() - last.0 < Duration::from_secs(20), "the last went out at {:?}", last.0);
    });
}
