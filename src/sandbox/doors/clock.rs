//! The sandbox's clock: real time made faster, which can be put forward.
//!
//! Messages live by it. What a client waits for, an answer or a port, is real time and none of
//! its business. It reads no clock itself: real time is an argument.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// A clock that began at a real time and never goes backwards.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualClock {
    /// What it showed at `real`.
    shown: Timestamp,
    real: Instant,
    /// Its seconds in one real second; at least one.
    speed: u32,
}

impl VirtualClock {
    /// A clock that shows `shown` now, at `real`, and from then on runs `speed` times as fast.
    pub(super) fn start(shown: Timestamp, real: Instant, speed: u32) -> Self {
        Self { shown, real, speed: speed.max(1) }
    }

    /// What it shows at a real time; the end of all times, once that is reached.
    pub(super) fn time_at(&self, real: Instant) -> Timestamp {
        let passed = real.saturating_duration_since(self.real).saturating_mul(self.speed);
        let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        self.shown.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Makes it show at least `shown` at a real time.
    pub(super) fn advance_to(&mut self, shown: Timestamp, real: Instant) {
        self.shown = self.time_at(real).max(shown);
        self.real = self.real.max(real);
    }

    /// How much real time passes from `real` until it shows `due`.
    pub(super) fn real_time_until(&self, due: Timestamp, real: Instant) -> Duration {
        let left = self.time_at(real).duration_until(due);
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
    fn clock_runs_at_its_speed_and_can_be_advanced() {
        let began = Instant::now();
        let mut clock = VirtualClock::start(seconds(100), began, 60);
        assert_eq!(clock.time_at(began), seconds(100));
        assert_eq!(clock.time_at(began + SECOND), seconds(160));
        assert_eq!(clock.real_time_until(seconds(220), began + SECOND), SECOND);
        assert_eq!(clock.real_time_until(seconds(100), began + SECOND), Duration::ZERO);
        clock.advance_to(seconds(1_000), began + SECOND);
        assert_eq!(clock.time_at(began + SECOND), seconds(1_000));
        assert_eq!(clock.time_at(began + 2 * SECOND), seconds(1_060));
    }

    proptest! {
        #[test]
        fn clock_never_goes_backwards_or_overflows(
            speed: u32, steps in prop::collection::vec((any::<u32>(), any::<Option<i32>>()), 1..20),
        ) {
            let mut real = Instant::now();
            let mut clock = VirtualClock::start(seconds(0), real, speed);
            let mut shown = clock.time_at(real);
            for (passed, put) in steps {
                real += Duration::from_millis(passed.into());
                if let Some(put) = put {
                    clock.advance_to(seconds(put.into()), real);
                }
                let now = clock.time_at(real);
                prop_assert!(now >= shown, "{shown} became {now}");
                prop_assert_eq!(clock.real_time_until(now, real), Duration::ZERO);
                shown = now;
            }
        }

        #[test]
        fn time_is_reached_after_predicted_wait(speed in 1..100_000_u32, due in 0..1_000_000_i64) {
            let began = Instant::now();
            let clock = VirtualClock::start(seconds(0), began, speed);
            // A nanosecond of real time more makes up for the fraction that a division loses.
            let then = began + clock.real_time_until(seconds(due), began) + Duration::from_nanos(1);
            prop_assert!(clock.time_at(then) >= seconds(due));
        }
    }
}
