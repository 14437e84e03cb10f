//! The process's own gate: the campaign's rate, by a monotonic clock, one envelope at a time.
//!
//! An envelope has its turn from before its intent until its first byte goes to the socket. So a process never holds
//! more than one slot of the account's pace that it has not used, and an envelope that waits here has no intent yet: a
//! crash leaves no doubt about it. Nothing is saved up but the room for one envelope, and that only after the start.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::MutexGuard;
use tokio::time::{Instant, sleep_until};

use crate::ledger::{halved, recovered};

/// The lateness that the next envelopes make up for: timers tick in milliseconds, and a commit takes some.
const CATCH_UP: Duration = Duration::from_millis(20);
/// The share of the rate that is aimed at. In every window of at least a second what is made up for fits into the
/// rest, because `AIM * (1 s + CATCH_UP)` is less than a second.
const AIM: f64 = 0.98;

/// A gate that lets envelopes through at a rate, spread out evenly.
pub(super) struct Gate {
    /// Operations per second; `None` is always open.
    rate: Option<f64>,
    /// Up to when the rate is used. Whoever holds it has the turn.
    used: tokio::sync::Mutex<Instant>,
    slowed: Mutex<Slowed>,
}

/// The share of the rate that was left when the gateway last asked to slow down.
#[derive(Clone, Copy)]
struct Slowed {
    share: f64,
    since: Instant,
}

/// The turn of one envelope. Dropped before it leaves, it takes nothing from the rate.
pub(super) struct Turn<'a>(Option<(MutexGuard<'a, Instant>, Duration)>);

impl Gate {
    /// A gate for `rate` operations per second; `None` is always open.
    pub(super) fn new(rate: Option<f64>) -> Self {
        let now = Instant::now();
        Self { rate, used: tokio::sync::Mutex::new(now), slowed: Mutex::new(Slowed { share: 1.0, since: now }) }
    }

    /// Waits for the turn of an envelope of `count` operations; those behind it wait until it has left.
    pub(super) async fn turn(&self, count: usize) -> Turn<'_> {
        let Some(rate) = self.rate else { return Turn(None) };
        let used = self.used.lock().await;
        loop {
            let room = Duration::from_secs_f64(count as f64 / (AIM * rate * self.share()));
            let open = *used + room;
            if open <= Instant::now() {
                return Turn(Some((used, room)));
            }
            sleep_until(open).await;
        }
    }

    /// Halves the pace; a tenth of the rate comes back each minute.
    pub(super) fn slow(&self) {
        let share = halved(self.share());
        *self.slowed.lock().unwrap_or_else(PoisonError::into_inner) = Slowed { share, since: Instant::now() };
    }

    fn share(&self) -> f64 {
        let Slowed { share, since } = *self.slowed.lock().unwrap_or_else(PoisonError::into_inner);
        recovered(share, since.elapsed())
    }
}

impl Turn<'_> {
    /// The first byte goes out now.
    pub(super) fn leaves(self) {
        if let Some((mut used, room)) = self.0 {
            let now = Instant::now();
            *used = (*used + room).max(now.checked_sub(CATCH_UP).unwrap_or(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `count` operations in envelopes of `size`, and gives the seconds that it took.
    async fn seconds_for(gate: &Gate, count: usize, size: usize) -> f64 {
        let start = Instant::now();
        for _ in 0..count / size {
            gate.turn(size).await.leaves();
        }
        start.elapsed().as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn a_slowed_gate_lets_half_through_and_recovers_a_tenth_a_minute() {
        let gate = Gate::new(Some(100.0));
        gate.slow();
        let slowed = seconds_for(&gate, 1_000, 10).await;
        assert!((19.0..22.0).contains(&slowed), "half of 100/s: {slowed} s");
        tokio::time::sleep(Duration::from_secs(600)).await;
        let again = seconds_for(&gate, 1_000, 10).await;
        assert!((10.0..10.5).contains(&again), "100/s again: {again} s");
    }

    #[tokio::test(start_paused = true)]
    async fn the_gate_starts_empty_and_a_rest_saves_up_room_for_one_envelope() {
        let gate = Gate::new(Some(10.0));
        let first = seconds_for(&gate, 10, 10).await;
        assert!((1.0..1.1).contains(&first), "{first} s");
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(seconds_for(&gate, 10, 10).await < 0.001);
        let next = seconds_for(&gate, 10, 10).await;
        assert!((1.0..1.1).contains(&next), "{next} s");
    }

    #[tokio::test(start_paused = true)]
    async fn an_envelope_waits_until_the_one_before_it_has_left() {
        let gate = Gate::new(Some(10.0));
        let turn = gate.turn(1).await;
        let hour = Duration::from_secs(3_600);
        assert!(tokio::time::timeout(hour, gate.turn(1)).await.is_err(), "one has the turn and has not left");
        turn.leaves();
        let start = Instant::now();
        gate.turn(1).await.leaves();
        assert!(start.elapsed() >= Duration::from_millis(80), "the rate counts from when the one before it left");
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_is_given_up_takes_nothing_from_the_rate() {
        let gate = Gate::new(Some(10.0));
        drop(gate.turn(10).await);
        assert!(seconds_for(&gate, 10, 10).await < 0.001);
    }
}
