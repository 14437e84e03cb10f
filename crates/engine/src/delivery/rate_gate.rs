//! Rate limit of a process: the campaign's rate, measured by a monotonic clock, one envelope at a time.
//!
//! An envelope holds its turn from before its intent is recorded until the gateway client gets the request. So a process
//! never holds more than one unused slot of the account's rate. An envelope that waits here has no intent yet, so a
//! crash does not leave it in doubt. After the start, unused time is saved for at most one envelope.
//!
//! The limiter is governor's GCRA with one-microsecond cells: an envelope costs time, so slowing down raises this cost
//! and leaves the limiter unchanged. But the limiter counts from the time at which an envelope paid: if the envelope is
//! sent late, the next one would be sent too soon. Therefore the remaining credit is capped when an envelope is sent.

use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::MutexGuard;
use tokio::time::{Instant, sleep};

use campaign_ledger::{halve_share, recover_share};

/// The maximum catch-up in microseconds: timers tick in milliseconds, and a commit takes a few.
const MAX_CATCH_UP: u32 = 20_000;
/// The share of the rate that the gate aims for. In every window of at least a second, the catch-up fits into the rest,
/// because `TARGET_SHARE * (1 s + MAX_CATCH_UP)` is less than a second.
const TARGET_SHARE: f64 = 0.98;
/// The maximum payment in microseconds. A longer wait is paid in parts, so that each part uses the current rate.
const MAX_PAYMENT: u32 = 60_000_000;

/// A gate that spreads envelopes evenly at a rate.
pub(super) struct RateGate {
    /// Operations per second. `None` means no limit.
    rate: Option<f64>,
    /// The credit for envelopes. Its lock is the turn.
    credit: tokio::sync::Mutex<RateCredit>,
    slowed: Mutex<Slowdown>,
}

/// The unused time of the gate, as credit for envelopes.
struct RateCredit {
    limiter: RateLimiter<NotKeyed, InMemoryState, RuntimeClock, NoOpMiddleware<Duration>>,
    /// Microseconds already taken from the limiter for an envelope that has not left.
    paid: u64,
}

/// The clock of the runtime, which tests can pause. It measures the time since an instant.
struct RuntimeClock(Instant);

/// The share of the rate to which the gate last slowed down, and when.
#[derive(Clone, Copy)]
struct Slowdown {
    share: f64,
    since: Instant,
}

/// The turn of an envelope, with its price. If it is dropped early, the next envelope inherits the payment.
pub(super) struct GateTurn<'a>(Option<(MutexGuard<'a, RateCredit>, u64)>);

impl RateGate {
    /// A gate for `rate` operations per second. `None` means no limit.
    pub(super) fn new(rate: Option<f64>) -> Self {
        let slowed = Slowdown { share: 1.0, since: Instant::now() };
        Self { rate, credit: tokio::sync::Mutex::new(RateCredit::with_credit(0)), slowed: Mutex::new(slowed) }
    }

    /// Waits for the turn of an envelope of `count` operations. Later envelopes wait until this envelope has left.
    pub(super) async fn wait_for_turn(&self, count: usize) -> GateTurn<'_> {
        let Some(rate) = self.rate else { return GateTurn(None) };
        let mut credit = self.credit.lock().await;
        loop {
            let price = (count as f64 * 1e6 / (TARGET_SHARE * rate * self.current_share())).ceil() as u64;
            let Some(wait) = credit.charge_part(price) else { return GateTurn(Some((credit, price))) };
            sleep(wait).await;
        }
    }

    /// Halves the rate. A tenth of the rate is restored each minute.
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
    /// Ends the turn: the gateway client now gets the envelope.
    pub(super) fn mark_departed(self) {
        if let Some((mut credit, price)) = self.0 {
            credit.use_up(price);
        }
    }
}

impl RateCredit {
    /// A credit of `micros` microseconds, which can grow to more than an hour.
    fn with_credit(micros: u32) -> Self {
        let quota = Quota::with_period(Duration::from_micros(1))
            .expect("a period that is not zero")
            .allow_burst(NonZeroU32::MAX);
        // A limiter starts full.
        let limiter = RateLimiter::direct_with_clock(quota, RuntimeClock(Instant::now()));
        let charge = NonZeroU32::new(u32::MAX - micros).map(|used| limiter.check_n(used));
        debug_assert!(matches!(charge, Some(Ok(Ok(())))), "a full limiter grants its whole burst");
        Self { limiter, paid: 0 }
    }

    /// Pays the available amount, up to the price. Returns the time until the next payment is possible, at most a
    /// minute. `None` if the price is paid.
    fn charge_part(&mut self, price: u64) -> Option<Duration> {
        while let Some(part) = to_cells(price.saturating_sub(self.paid)) {
            match self.limiter.check_n(part).expect("the limiter has room for a minute") {
                Ok(()) => self.paid += u64::from(part.get()),
                Err(later) => return Some(later.wait_time_from(self.limiter.clock().now())),
            }
        }
        None
    }

    /// Uses the credit for an envelope that has left. The remaining credit is limited to the maximum catch-up.
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

/// Converts microseconds to limiter cells, at most a minute's worth. `None` for zero.
fn to_cells(micros: u64) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(micros).unwrap_or(MAX_PAYMENT).min(MAX_PAYMENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds that it takes to send `count` operations in envelopes of `size`.
    async fn measure_seconds(gate: &RateGate, count: usize, size: usize) -> f64 {
        let start = Instant::now();
        for _ in 0..count / size {
            gate.wait_for_turn(size).await.mark_departed();
        }
        start.elapsed().as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn slowed_gate_halves_its_rate_and_recovers_gradually() {
        let gate = RateGate::new(Some(100.0));
        gate.slow_down();
        let slowed = measure_seconds(&gate, 1_000, 10).await;
        assert!((19.0..22.0).contains(&slowed), "half of 100/s: {slowed} s");
        tokio::time::sleep(Duration::from_secs(600)).await;
        let again = measure_seconds(&gate, 1_000, 10).await;
        assert!((10.0..10.5).contains(&again), "100/s again: {again} s");
    }

    #[tokio::test(start_paused = true)]
    async fn gate_starts_empty_and_saves_credit_for_one_envelope() {
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
        let turn = gate.wait_for_turn(1).await;
        let hour = Duration::from_secs(3_600);
        assert!(
            tokio::time::timeout(hour, gate.wait_for_turn(1)).await.is_err(),
            "an envelope has the turn and has not left"
        );
        turn.mark_departed();
        let start = Instant::now();
        gate.wait_for_turn(1).await.mark_departed();
        assert!(
            start.elapsed() >= Duration::from_millis(80),
            "the rate counts from the departure of the previous envelope"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn abandoned_turn_does_not_reduce_the_rate() {
        let gate = RateGate::new(Some(10.0));
        drop(gate.wait_for_turn(10).await);
        assert!(measure_seconds(&gate, 10, 10).await < 0.001);
    }

    #[tokio::test(start_paused = true)]
    async fn next_envelope_inherits_the_credit_of_an_abandoned_turn() {
        let gate = RateGate::new(Some(1.0 / 60.0));
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert!(tokio::time::timeout(minutes(60), gate.wait_for_turn(100)).await.is_err(), "it takes 102 minutes");
        assert!(tokio::time::timeout(minutes(43), gate.wait_for_turn(100)).await.is_ok(), "an hour of them had passed");
    }

    #[tokio::test(start_paused = true)]
    async fn rate_recovers_while_an_envelope_waits() {
        let gate = RateGate::new(Some(1.0 / 60.0));
        (0..6).for_each(|_| gate.slow_down());
        let seconds = measure_seconds(&gate, 10, 10).await;
        // If the rate stayed at its initial 64th, this would take eleven hours.
        assert!((600.0..700.0).contains(&seconds), "{seconds} s: the whole rate was back after ten minutes");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_down_applies_to_a_waiting_turn() {
        let gate = RateGate::new(Some(1.0));
        let start = Instant::now();
        let (turn, ()) = tokio::join!(gate.wait_for_turn(50), async {
            sleep(Duration::from_secs(1)).await;
            (0..6).for_each(|_| gate.slow_down());
        });
        turn.mark_departed();
        let seconds = start.elapsed().as_secs_f64();
        assert!((100.0..200.0).contains(&seconds), "{seconds} s instead of 51");
    }
}
