//! The process's own gate: the campaign's rate, by a monotonic clock.
//!
//! It is passed after the intent is on the disk and before the first byte goes to the socket. The
//! account's gate is in the ledger; both have to be open.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

/// The gate is never slowed to less than this share of its rate.
const SLOWEST: f64 = 1.0 / 64.0;

/// A gate that lets operations through at a rate, spread out evenly.
pub(super) struct Gate {
    /// Operations per second; `None` is always open.
    rate: Option<f64>,
    largest: usize,
    pace: Mutex<Pace>,
}

/// The limiter in force and the share of the rate that it was made for.
struct Pace {
    share: f64,
    since: Instant,
    limiter: Option<Arc<(Limiter, Monotonic)>>,
}

type Limiter = RateLimiter<NotKeyed, InMemoryState, Monotonic, NoOpMiddleware<Duration>>;

/// Tokio's clock, which tests can hold still.
#[derive(Clone, Debug)]
struct Monotonic(Instant);

impl Clock for Monotonic {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Gate {
    /// A gate for `rate` operations per second (`None`: always open), for envelopes of at most `largest` operations.
    pub(super) fn new(rate: Option<f64>, largest: usize) -> Self {
        let limiter = limiter(rate, largest);
        Self { rate, largest, pace: Mutex::new(Pace { share: 1.0, since: Instant::now(), limiter }) }
    }

    /// Waits until `count` operations may leave.
    pub(super) async fn pass(&self, count: usize) {
        let Some(count) = u32::try_from(count).ok().and_then(NonZeroU32::new) else { return };
        while let Some(limiter) = self.limiter() {
            let (limiter, clock) = &*limiter;
            match limiter.check_n(count) {
                Ok(Err(not_yet)) => tokio::time::sleep(not_yet.wait_time_from(clock.now())).await,
                Ok(Ok(())) | Err(_) => return,
            }
        }
    }

    /// Halves the pace; a tenth of the rate comes back each minute.
    pub(super) fn slow(&self) {
        self.change(|share| (share / 2.0).max(SLOWEST));
    }

    /// The limiter for the share of the rate that holds now.
    fn limiter(&self) -> Option<Arc<(Limiter, Monotonic)>> {
        self.change(|share| share)
    }

    /// Changes the share; a limiter is made anew when its share is a tenth off, and starts empty.
    fn change(&self, change: impl FnOnce(f64) -> f64) -> Option<Arc<(Limiter, Monotonic)>> {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let recovered = (pace.share + pace.since.elapsed().as_secs_f64() / 600.0).min(1.0);
        let share = change(recovered);
        if share < recovered || share - pace.share >= 0.1 || (share >= 1.0 && pace.share < 1.0) {
            let limiter = limiter(self.rate.map(|rate| rate * share), self.largest);
            *pace = Pace { share, since: Instant::now(), limiter };
        }
        pace.limiter.clone()
    }
}

/// A limiter that has no room yet: neither a start nor a change of pace earns a burst.
fn limiter(rate: Option<f64>, largest: usize) -> Option<Arc<(Limiter, Monotonic)>> {
    let quota = Quota::with_period(Duration::from_secs_f64(1.0 / rate?))?;
    let burst = u32::try_from(largest).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
    let clock = Monotonic(Instant::now());
    let limiter = RateLimiter::direct_with_clock(quota.allow_burst(burst), clock.clone());
    let _ = limiter.check_n(burst);
    Some(Arc::new((limiter, clock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_gate_never_lets_more_through_than_the_rate_and_one_envelope() {
        for (rate, largest) in [(1.0, 1), (10.0, 10), (50.0, 20), (200.0, 50), (5_000.0, 100)] {
            let gate = Gate::new(Some(rate), largest);
            let start = Instant::now();
            let mut passed = Vec::new();
            while start.elapsed() < Duration::from_secs(20) {
                gate.pass(largest).await;
                passed.push(start.elapsed());
            }
            for (index, &from) in passed.iter().enumerate() {
                let within = passed[index..].iter().take_while(|&&at| at < from + Duration::from_secs(1)).count();
                let operations = (within * largest) as f64;
                assert!(operations <= rate + largest as f64, "{operations} in one second at {rate}/s");
            }
            let mean = (passed.len() * largest) as f64 / 20.0;
            assert!(mean >= 0.95 * rate, "{mean}/s of {rate}/s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slowed_gate_lets_half_through_and_recovers_a_tenth_a_minute() {
        let gate = Gate::new(Some(100.0), 10);
        let seconds_for = async |operations: usize| {
            let start = Instant::now();
            for _ in 0..operations / 10 {
                gate.pass(10).await;
            }
            start.elapsed().as_secs_f64()
        };
        gate.slow();
        let slowed = seconds_for(1_000).await;
        assert!((19.0..22.0).contains(&slowed), "half of 100/s: {slowed} s");
        tokio::time::sleep(Duration::from_secs(600)).await;
        let recovered = seconds_for(1_000).await;
        assert!((9.0..11.0).contains(&recovered), "100/s again: {recovered} s");
    }

    #[tokio::test(start_paused = true)]
    async fn the_gate_starts_empty() {
        let gate = Gate::new(Some(10.0), 10);
        let start = Instant::now();
        gate.pass(10).await;
        assert!(start.elapsed() >= Duration::from_secs(1));
    }
}
