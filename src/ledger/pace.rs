//! The account's pace: one gate that every campaign and process on the ledger passes. Pure.
//!
//! Times are microseconds of the wall clock, because they are shared and survive a restart.

use std::time::Duration;

/// Microseconds in a second.
const SECOND: i64 = 1_000_000;
/// A stored time further in the future than this is a clock that went back, not a queue.
const LONGEST_QUEUE: i64 = 900 * SECOND;
/// The pace is never slowed to less than this share of the allowance.
const SLOWEST: f64 = 1.0 / 64.0;

/// What the ledger keeps of an account's pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccountPace {
    /// The first instant at which the next operation may leave.
    pub next_free: i64,
    /// The share of the allowance that is used, 0 to 1, as of `slowed_at`.
    pub share: f64,
    /// When the share was last changed.
    pub slowed_at: i64,
    /// Nothing leaves before this instant, whatever the rate.
    pub not_before: i64,
}

impl Default for AccountPace {
    fn default() -> Self {
        Self { next_free: 0, share: 1.0, slowed_at: 0, not_before: 0 }
    }
}

/// Room that was taken from an account's pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reservation {
    /// The pace after it.
    pub pace: AccountPace,
    /// Microseconds until the operations may leave.
    pub wait: i64,
}

impl AccountPace {
    /// Takes room for `count` operations at `rate` per second (`None`: unlimited) at the instant `now`.
    #[must_use]
    pub fn reserve(self, now: i64, count: u32, rate: Option<f64>) -> Reservation {
        let spacing = rate.map(|rate| spacing(count, rate * self.share_at(now)));
        let mut pace = self.clamped(now, spacing.unwrap_or(0));
        let leave = pace.next_free.max(pace.not_before).max(now);
        pace.next_free = spacing.map_or(pace.next_free, |spacing| leave + spacing);
        Reservation { pace, wait: leave - now }
    }

    /// The pace after the gateway asked to slow down, and maybe to wait `wait` microseconds.
    #[must_use]
    pub fn slowed(self, now: i64, wait: Option<i64>) -> Self {
        let pace = self.clamped(now, 0);
        Self {
            share: halved(pace.share_at(now)),
            slowed_at: now,
            not_before: pace.not_before.max(now + wait.unwrap_or(SECOND)),
            ..pace
        }
    }

    /// The share of the allowance at `now`.
    fn share_at(self, now: i64) -> f64 {
        let since = u64::try_from(now - self.slowed_at).unwrap_or(0);
        recovered(self.share, Duration::from_micros(since))
    }

    /// Undoes what a clock that went back left behind; a slow rate has a longer queue of its own.
    fn clamped(self, now: i64, spacing: i64) -> Self {
        Self {
            next_free: self.next_free.min(now + LONGEST_QUEUE + 2 * spacing),
            slowed_at: self.slowed_at.min(now),
            not_before: self.not_before.min(now + LONGEST_QUEUE),
            ..self
        }
    }
}

/// The share of a rate that is left after the gateway asked to slow down.
#[must_use]
pub fn halved(share: f64) -> f64 {
    (share / 2.0).max(SLOWEST)
}

/// What a share of a rate has become after a time: a tenth of the rate comes back each minute.
#[must_use]
pub fn recovered(share: f64, after: Duration) -> f64 {
    (share + after.as_secs_f64() / 600.0).min(1.0)
}

fn spacing(count: u32, rate: f64) -> i64 {
    (f64::from(count) * SECOND as f64 / rate).ceil() as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_window_of_a_second_holds_more_than_the_rate_and_one_envelope(
            rate in 1.0_f64..5_000.0,
            steps in prop::collection::vec((0_i64..2_000_000, 1_u32..100), 1..200),
        ) {
            let largest = steps.iter().map(|&(_, count)| count).max().unwrap_or(0);
            let mut pace = AccountPace::default();
            let mut now = 1_000_000_000;
            let mut left: Vec<(i64, u32)> = Vec::new();
            for (pause, count) in steps {
                now += pause;
                let count = count.min(rate.max(1.0) as u32);
                let reservation = pace.reserve(now, count, Some(rate));
                pace = reservation.pace;
                left.push((now + reservation.wait, count));
            }
            for &(start, _) in &left {
                let within: u32 = left.iter().filter(|(at, _)| (start..start + SECOND).contains(at)).map(|&(_, n)| n).sum();
                prop_assert!(f64::from(within) <= rate + f64::from(largest) + 1.0, "{within} at {rate}/s");
            }
        }
    }

    #[test]
    fn a_clock_that_went_back_does_not_stop_a_run_for_hours() {
        let pace = AccountPace { next_free: 10_000 * SECOND, ..AccountPace::default() };
        assert_eq!(pace.reserve(0, 1, Some(10.0)).wait, LONGEST_QUEUE + SECOND / 5);
    }

    #[test]
    fn slowing_halves_the_pace_and_a_tenth_comes_back_each_minute() {
        let now = 1_000 * SECOND;
        let slowed = AccountPace::default().slowed(now, Some(5 * SECOND));
        assert_eq!(slowed.reserve(now, 1, Some(10.0)).wait, 5 * SECOND);
        let later = now + 60 * SECOND;
        let spacing = |pace: AccountPace| pace.reserve(later, 6, Some(10.0)).pace.next_free - later;
        assert_eq!(spacing(slowed), SECOND);
        assert_eq!(spacing(AccountPace::default()), 600_000);
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let reservation = AccountPace::default().reserve(7, 1_000_000, None);
        assert_eq!(reservation.wait, 0);
        assert_eq!(reservation.pace.reserve(7, 1, None).wait, 0);
    }
}
