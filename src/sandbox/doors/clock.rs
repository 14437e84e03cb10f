//! The sandbox's clock: real time made faster, which can be put forward.
//!
//! Messages live by it. What a client waits for, an answer or a port, is real time and none of
//! its business. It reads no clock itself: real time is an argument.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// A clock that began at a real time and never goes backwards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// What it showed at `real`.
    shown: Timestamp,
    real: Instant,
    /// Its seconds in one real second; at least one.
    speed: u32,
}

impl Clock {
    /// A clock that shows `shown` now, at `real`, and from then on runs `speed` times as fast.
    pub(super) fn start(shown: Timestamp, real: Instant, speed: u32) -> Self {
        Self { shown, real, speed: speed.max(1) }
    }

    /// What it shows at a real time; the end of all times, once that is reached.
    pub(super) fn at(&self, real: Instant) -> Timestamp {
        let passed = real.saturating_duration_since(self.real).saturating_mul(self.speed);
        let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        self.shown.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Makes it show at least `shown` at a real time.
    pub(super) fn put_forward(&mut self, shown: Timestamp, real: Instant) {
        self.shown = self.at(real).max(shown);
        self.real = self.real.max(real);
    }

    /// How much real time passes from `real` until it shows `due`.
    pub(super) fn until(&self, due: Timestamp, real: Instant) -> Duration {
        let left = self.at(real).duration_until(due);
        Duration::try_from(left).unwrap_or_default() / self.speed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn seconds(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn it_runs_as_fast_as_it_was_told_and_can_be_put_forward() {
        let began = Instant::now();
        let mut clock = Clock::start(seconds(100), began, 60);
        assert_eq!(clock.at(began), seconds(100));
        assert_eq!(clock.at(began + SECOND), seconds(160));
        assert_eq!(clock.until(seconds(220), began + SECOND), SECOND);
        assert_eq!(clock.until(seconds(100), began + SECOND), Duration::ZERO);
        clock.put_forward(seconds(1_000), began + SECOND);
        assert_eq!(clock.at(began + SECOND), seconds(1_000));
        assert_eq!(clock.at(began + 2 * SECOND), seconds(1_060));
    }

    proptest! {
        #[test]
        fn it_never_goes_backwards_and_never_overflows(
            speed: u32, steps in prop::collection::vec((any::<u32>(), any::<Option<i32>>()), 1..20),
        ) {
            let mut real = Instant::now();
            let mut clock = Clock::start(seconds(0), real, speed);
            let mut shown = clock.at(real);
            for (passed, put) in steps {
                real += Duration::from_millis(passed.into());
                if let Some(put) = put {
                    clock.put_forward(seconds(put.into()), real);
                }
                let now = clock.at(real);
                prop_assert!(now >= shown, "{shown} became {now}");
                prop_assert_eq!(clock.until(now, real), Duration::ZERO);
                shown = now;
            }
        }

        #[test]
        fn after_the_time_that_it_foretells_a_moment_is_reached(speed in 1..100_000_u32, due in 0..1_000_000_i64) {
            let began = Instant::now();
            let clock = Clock::start(seconds(0), began, speed);
            // A nanosecond of real time more makes up for the fraction that a division loses.
            let then = began + clock.until(seconds(due), began) + Duration::from_nanos(1);
            prop_assert!(clock.at(then) >= seconds(due));
        }
    }
}
