//! The process's own gate: the campaign's rate, by a monotonic clock.
//!
//! It is passed after the intent is on the disk and before the first byte goes to the socket. The
//! account's gate is in the ledger; both have to be open.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

/// A gate that lets operations through at a rate, spread out evenly.
pub(super) struct Gate(Option<(Limiter, Monotonic)>);

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
        let quota = rate.and_then(|rate| Quota::with_period(Duration::from_secs_f64(1.0 / rate)));
        Self(quota.map(|quota| {
            let burst = u32::try_from(largest).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
            let clock = Monotonic(Instant::now());
            let limiter = RateLimiter::direct_with_clock(quota.allow_burst(burst), clock.clone());
            // It starts empty: a restart must not earn a burst.
            let _ = limiter.check_n(burst);
            (limiter, clock)
        }))
    }

    /// Waits until `count` operations may leave.
    pub(super) async fn pass(&self, count: usize) {
        let Some((limiter, clock)) = &self.0 else { return };
        let Some(count) = u32::try_from(count).ok().and_then(NonZeroU32::new) else { return };
        while let Ok(Err(not_yet)) = limiter.check_n(count) {
            tokio::time::sleep(not_yet.wait_time_from(clock.now())).await;
        }
    }
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
    async fn the_gate_starts_empty() {
        let gate = Gate::new(Some(10.0), 10);
        let start = Instant::now();
        gate.pass(10).await;
        assert!(start.elapsed() >= Duration::from_secs(1));
    }
}
