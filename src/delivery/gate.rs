//! The process's own gate: the campaign's rate, by a monotonic clock, one envelope at a time.
//!
//! An envelope has its turn from before its intent until its first byte goes to the socket. So a process never holds
//! more than one slot of the account's pace that it has not used, and an envelope that waits here has no intent yet: a
//! crash leaves no doubt about it. Nothing is saved up but the room for one envelope, and that only after the start.
//!
//! The limiter is governor's GCRA, and its cell is a microsecond: an envelope has a price in time, so a slow-down
//! changes prices and never the limiter. But a limiter counts from when it was asked, and what follows an envelope that
//! left late would leave too soon after it; therefore what it holds is cut down whenever an envelope leaves.

use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::MutexGuard;
use tokio::time::{Instant, sleep};

use crate::ledger::{halve_share, recover_share};

/// The lateness in microseconds that the next envelopes make up for: timers tick in milliseconds, a commit takes some.
const MAX_CATCH_UP: u32 = 20_000;
/// The share of the rate that is aimed at. In every window of at least a second what is made up for fits into the
/// rest, because `AIM * (1 s + CATCH_UP)` is less than a second.
const TARGET_SHARE: f64 = 0.98;
/// The most microseconds that are paid at once, so that a long turn looks at the share of the rate each minute.
const MINUTE: u32 = 60_000_000;

/// A gate that lets envelopes through at a rate, spread out evenly.
pub(super) struct RateGate {
    /// Operations per second; `None` is always open.
    rate: Option<f64>,
    /// What envelopes pay from. Whoever holds it has the turn.
    credit: tokio::sync::Mutex<RateCredit>,
    slowed: Mutex<Slowdown>,
}

/// The time that has passed and was not used.
struct RateCredit {
    limiter: RateLimiter<NotKeyed, InMemoryState, RuntimeClock, NoOpMiddleware<Duration>>,
    /// Microseconds that were taken from the limiter for an envelope that has not left.
    paid: u64,
}

/// The clock of the runtime, which tests pause, read from an instant on.
struct RuntimeClock(Instant);

/// The share of the rate that was left when the gateway last asked to slow down.
#[derive(Clone, Copy)]
struct Slowdown {
    share: f64,
    since: Instant,
}

/// The turn of one envelope, and its price. Dropped before it leaves, it leaves what was paid to the next.
pub(super) struct GateTurn<'a>(Option<(MutexGuard<'a, RateCredit>, u64)>);

impl RateGate {
    /// A gate for `rate` operations per second; `None` is always open.
    pub(super) fn new(rate: Option<f64>) -> Self {
        let slowed = Slowdown { share: 1.0, since: Instant::now() };
        Self { rate, credit: tokio::sync::Mutex::new(RateCredit::with_credit(0)), slowed: Mutex::new(slowed) }
    }

    /// Waits for the turn of an envelope of `count` operations; those behind it wait until it has left.
    pub(super) async fn wait_turn(&self, count: usize) -> GateTurn<'_> {
        let Some(rate) = self.rate else { return GateTurn(None) };
        let mut purse = self.credit.lock().await;
        loop {
            let price = (count as f64 * 1e6 / (TARGET_SHARE * rate * self.current_share())).ceil() as u64;
            let Some(wait) = purse.pay_part(price) else { return GateTurn(Some((purse, price))) };
            sleep(wait).await;
        }
    }

    /// Halves the pace; a tenth of the rate comes back each minute.
    pub(super) fn slow_down(&self) {
        let share = halve_share(self.current_share());
        *self.slowed.lock().unwrap_or_else(PoisonError::into_inner) = Slowdown { share, since: Instant::now() };
    }

    fn current_share(&self) -> f64 {
        let Slowdown { share, since } = *self.slowed.lock().unwrap_or_else(PoisonError::into_inner);
        recover_share(share, since.elapsed())
    }
}

impl GateTurn<'_> {
    /// The first byte goes out now.
    pub(super) fn mark_left(self) {
        if let Some((mut purse, price)) = self.0 {
            purse.use_up(price);
        }
    }
}

impl RateCredit {
    /// A purse with so many microseconds in it, and room for more than an hour.
    fn with_credit(micros: u32) -> Self {
        let quota = Quota::with_period(Duration::from_micros(1)).expect("not nothing").allow_burst(NonZeroU32::MAX);
        // A limiter begins full.
        let limiter = RateLimiter::direct_with_clock(quota, RuntimeClock(Instant::now()));
        let taken = NonZeroU32::new(u32::MAX - micros).map(|used| limiter.check_n(used));
        debug_assert!(matches!(taken, Some(Ok(Ok(())))), "a full limiter gives all that it has");
        Self { limiter, paid: 0 }
    }

    /// Pays what there is, up to the price; gives the time until the next payment, at most a minute.
    fn pay_part(&mut self, price: u64) -> Option<Duration> {
        while let Some(part) = to_cells(price.saturating_sub(self.paid)) {
            match self.limiter.check_n(part).expect("the limiter has room for a minute") {
                Ok(()) => self.paid += u64::from(part.get()),
                Err(later) => return Some(later.wait_time_from(self.limiter.clock().now())),
            }
        }
        None
    }

    /// An envelope of this price left. Of what is in the purse, no more stays than may be made up for.
    fn use_up(&mut self, price: u64) {
        self.paid = self.paid.saturating_sub(price);
        let more = to_cells(u64::from(MAX_CATCH_UP).saturating_sub(self.paid));
        if more.is_none_or(|more| self.limiter.check_n(more) == Ok(Ok(()))) {
            *self = Self::with_credit(MAX_CATCH_UP);
        }
    }
}

impl Clock for RuntimeClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Microseconds as cells of the limiter, at most a minute of them; `None` is nothing.
fn to_cells(micros: u64) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(micros).unwrap_or(MINUTE).min(MINUTE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `count` operations in envelopes of `size`, and gives the seconds that it took.
    async fn measure_seconds(gate: &RateGate, count: usize, size: usize) -> f64 {
        let start = Instant::now();
        for _ in 0..count / size {
            gate.wait_turn(size).await.mark_left();
        }
        start.elapsed().as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn slowed_gate_halves_and_recovers_a_tenth_a_minute() {
        let gate = RateGate::new(Some(100.0));
        gate.slow_down();
        let slowed = measure_seconds(&gate, 1_000, 10).await;
        assert!((19.0..22.0).contains(&slowed), "half of 100/s: {slowed} s");
        tokio::time::sleep(Duration::from_secs(600)).await;
        let again = measure_seconds(&gate, 1_000, 10).await;
        assert!((10.0..10.5).contains(&again), "100/s again: {again} s");
    }

    #[tokio::test(start_paused = true)]
    async fn gate_starts_empty_and_saves_room_for_one_envelope() {
        let gate = RateGate::new(Some(10.0));
        let first = measure_seconds(&gate, 10, 10).await;
        assert!((1.0..1.1).contains(&first), "{first} s");
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(measure_seconds(&gate, 10, 10).await < 0.001);
        let next = measure_seconds(&gate, 10, 10).await;
        assert!((1.0..1.1).contains(&next), "{next} s");
    }

    #[tokio::test(start_paused = true)]
    async fn envelope_waits_until_the_previous_one_has_left() {
        let gate = RateGate::new(Some(10.0));
        let turn = gate.wait_turn(1).await;
        let hour = Duration::from_secs(3_600);
        assert!(tokio::time::timeout(hour, gate.wait_turn(1)).await.is_err(), "one has the turn and has not left");
        turn.mark_left();
        let start = Instant::now();
        gate.wait_turn(1).await.mark_left();
        assert!(start.elapsed() >= Duration::from_millis(80), "the rate counts from when the one before it left");
    }

    #[tokio::test(start_paused = true)]
    async fn abandoned_turn_takes_nothing_from_the_rate() {
        let gate = RateGate::new(Some(10.0));
        drop(gate.wait_turn(10).await);
        assert!(measure_seconds(&gate, 10, 10).await < 0.001);
    }

    #[tokio::test(start_paused = true)]
    async fn abandoned_turn_keeps_what_was_paid() {
        let gate = RateGate::new(Some(1.0 / 60.0));
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert!(tokio::time::timeout(minutes(60), gate.wait_turn(100)).await.is_err(), "it takes 102 minutes");
        assert!(tokio::time::timeout(minutes(43), gate.wait_turn(100)).await.is_ok(), "an hour of them had passed");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_turn_lasts_no_longer_than_the_slow_down() {
        let gate = RateGate::new(Some(1.0 / 60.0));
        (0..6).for_each(|_| gate.slow_down());
        let seconds = measure_seconds(&gate, 10, 10).await;
        // At the share with which it begins, a 64th, it would be eleven hours.
        assert!((600.0..700.0).contains(&seconds), "{seconds} s: the whole rate was back after ten minutes");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_down_applies_to_a_waiting_turn() {
        let gate = RateGate::new(Some(1.0));
        let start = Instant::now();
        let (turn, ()) = tokio::join!(gate.wait_turn(50), async {
            sleep(Duration::from_secs(1)).await;
            (0..6).for_each(|_| gate.slow_down());
        });
        turn.mark_left();
        let seconds = start.elapsed().as_secs_f64();
        assert!((100.0..200.0).contains(&seconds), "{seconds} s for what would have taken 51");
    }
}
