//! The life of one process: it ends, or is suspended, at a counted step of its way to the disk or the gateway.
//!
//! A process that ended does nothing more that anybody could see: each of its steps waits for ever.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

thread_local! {
    /// When this thread's world began; a world lives on one thread.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    /// How far the wall clock was set forward since, in microseconds; less than zero if it was set back.
    static SHIFT: Cell<i64> = const { Cell::new(0) };
}

/// Begins a world: its wall clock and its monotonic clock start together.
pub(super) fn begin_world() {
    BEGAN.set(Some(Instant::now()));
    SHIFT.set(0);
}

/// Sets the wall clock forward or back.
pub(super) fn shift_wall_clock(by: SignedDuration) {
    SHIFT.set(SHIFT.get() + by.as_micros() as i64);
}

/// The time since the world began, by the monotonic clock.
pub(super) fn elapsed() -> Duration {
    BEGAN.get().map_or(Duration::ZERO, |began| began.elapsed())
}

/// The wall clock of the world.
pub(super) fn wall_now() -> Timestamp {
    Timestamp::from_microsecond(1_800_000_000_000_000 + elapsed().as_micros() as i64 + SHIFT.get())
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// What a process has left.
#[derive(Debug)]
struct LifeState {
    /// The steps until it ends; nothing if it lives.
    steps: Option<u64>,
    /// The steps until it is suspended, and for how long.
    suspension: Option<(u64, Duration)>,
    suspended_until: Option<Instant>,
    dead: bool,
}

/// The life of one process.
#[derive(Debug)]
pub(super) struct ProcessLife {
    lot: Mutex<LifeState>,
    end: Notify,
}

impl ProcessLife {
    /// A life that ends after so many steps, if ever, and is suspended once, if ever.
    pub(super) fn new(steps: Option<u64>, suspension: Option<(u64, Duration)>) -> Self {
        Self {
            lot: Mutex::new(LifeState { steps, suspension, suspended_until: None, dead: false }),
            end: Notify::new(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.lot.lock().unwrap().dead
    }

    pub(super) fn was_suspended(&self) -> bool {
        self.lot.lock().unwrap().suspended_until.is_some()
    }

    /// Ends it from the outside.
    pub(super) fn kill(&self) {
        self.lot.lock().unwrap().dead = true;
        self.end.notify_one();
    }

    /// Waits for its end.
    pub(super) async fn wait_end(&self) {
        self.end.notified().await;
    }

    /// One step: the place where a process can end or be suspended.
    pub(super) async fn take_step(&self) {
        loop {
            match self.next_turn() {
                StepTurn::Over => return std::future::pending().await,
                StepTurn::Wait(until) => sleep_until(until).await,
                StepTurn::Go => return,
            }
        }
    }

    /// Waits until it is not suspended; for ever where it ended. No step of it.
    pub(super) async fn wait_awake(&self) {
        loop {
            let until = {
                let lot = self.lot.lock().unwrap();
                (!lot.dead).then_some(lot.suspended_until)
            };
            match until {
                None => return std::future::pending().await,
                Some(Some(until)) if until > Instant::now() => sleep_until(until).await,
                Some(_) => return,
            }
        }
    }

    fn next_turn(&self) -> StepTurn {
        let mut lot = self.lot.lock().unwrap();
        if lot.dead {
            return StepTurn::Over;
        }
        if let Some(until) = lot.suspended_until.filter(|until| *until > Instant::now()) {
            return StepTurn::Wait(until);
        }
        if let Some((steps, time)) = &mut lot.suspension {
            *steps = steps.saturating_sub(1);
            if *steps == 0 {
                let until = Instant::now() + *time;
                lot.suspension = None;
                lot.suspended_until = Some(until);
                return StepTurn::Wait(until);
            }
        }
        if let Some(steps) = &mut lot.steps {
            *steps = steps.saturating_sub(1);
            if *steps == 0 {
                lot.dead = true;
                self.end.notify_one();
                return StepTurn::Over;
            }
        }
        StepTurn::Go
    }
}

enum StepTurn {
    Go,
    Wait(Instant),
    Over,
}
