//! How many operations an account may send in a time, by governor's GCRA. It knows no clock: time is an argument.
//!
//! It shares nothing with the client's pace, so that it can judge it.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use jiff::Timestamp;

use crate::sandbox::scenario;

/// What an account may still send.
pub(crate) struct OperationLimiter {
    limiter: RateLimiter<NotKeyed, InMemoryState, FakeRelativeClock, NoOpMiddleware<Nanos>>,
    /// Up to when its clock was put forward.
    now: Option<Timestamp>,
    /// How long an account rests until it may send a whole burst.
    refill: Duration,
}

impl OperationLimiter {
    /// A limit of which nothing is used.
    pub(crate) fn new(limit: scenario::OperationLimit) -> Self {
        let each = Duration::from_secs_f64(1.0 / limit.rate);
        let quota = Quota::with_period(each).expect("a million a second is the highest rate").allow_burst(limit.burst);
        let refill = quota.burst_size_replenished_in();
        Self { limiter: RateLimiter::direct_with_clock(quota, FakeRelativeClock::default()), now: None, refill }
    }

    /// Takes so many operations from what may be sent at `at`.
    ///
    /// # Errors
    /// With the time after which they may be sent, when they may not yet; nothing is taken then. What is larger than a
    /// burst may never be sent, and is told the time that a burst needs.
    pub(crate) fn take_operations(&mut self, operations: usize, at: Timestamp) -> Result<(), Duration> {
        let since = self.now.map_or(Duration::ZERO, |now| at.duration_since(now).try_into().unwrap_or_default());
        self.limiter.clock().advance(since);
        self.now = self.now.max(Some(at));
        let Some(operations) = NonZeroU32::new(u32::try_from(operations).unwrap_or(u32::MAX)) else { return Ok(()) };
        match self.limiter.check_n(operations) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(later)) => Err(later.wait_time_from(governor::clock::Clock::now(self.limiter.clock()))),
            Err(_) => Err(self.refill),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limiter(rate: f64, burst: u32) -> OperationLimiter {
        OperationLimiter::new(scenario::OperationLimit { rate, burst: NonZeroU32::new(burst).expect("a burst") })
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).expect("a time")
    }

    #[test]
    fn limiter_allows_a_burst_and_then_the_rate() {
        let mut limit = limiter(50.0, 50);
        assert_eq!(limit.take_operations(50, at(0)), Ok(()));
        assert_eq!(limit.take_operations(10, at(0)), Err(Duration::from_millis(200)));
        assert_eq!(limit.take_operations(10, at(200)), Ok(()));
        assert_eq!(limit.take_operations(50, at(60_000)), Ok(()), "a rest saves up a burst");
        assert_eq!(limit.take_operations(1, at(60_000)), Err(Duration::from_millis(20)), "and no more");
    }

    #[test]
    fn request_above_burst_is_never_allowed() {
        let mut limit = limiter(50.0, 50);
        assert_eq!(limit.take_operations(51, at(0)), Err(Duration::from_secs(1)));
        assert_eq!(limit.take_operations(50, at(0)), Ok(()));
        assert_eq!(limit.take_operations(0, at(0)), Ok(()));
    }

    proptest! {
        #[test]
        fn no_window_exceeds_burst_plus_rate(
            rate in 1_u32..1_000, burst in 1_u32..200, steps in prop::collection::vec((0_i64..500, 1_usize..50), 1..200),
        ) {
            let mut limit = limiter(rate.into(), burst);
            let (mut now, mut taken) = (at(0), Vec::new());
            for (pause, count) in steps {
                now += Duration::from_millis(pause as u64);
                if let Err(wait) = limit.take_operations(count, now) {
                    if count as u32 > burst {
                        continue;
                    }
                    // The periods of the limiter are whole nanoseconds.
                    now += wait + Duration::from_nanos(1);
                    prop_assert_eq!(limit.take_operations(count, now), Ok(()));
                }
                taken.push((now, count));
            }
            for (first, &(since, _)) in taken.iter().enumerate() {
                let mut sum = 0;
                for &(until, count) in &taken[first..] {
                    sum += count;
                    let most = f64::from(burst) + f64::from(rate) * until.duration_since(since).as_secs_f64();
                    prop_assert!(sum as f64 <= most + 0.001, "{sum} of {most}");
                }
            }
        }
    }
}
