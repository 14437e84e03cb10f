//! How long to wait for a gateway that cannot be reached. Pure.

use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use rustc_hash::FxHasher;

use crate::ledger::Owner;

/// The shortest and the longest upper bound of a wait.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// The wait before attempt `attempt` (from 1): a random share of a bound that doubles from 1 to 60 s.
///
/// `random` is between 0 and 1. The full range is used, so that many processes do not come back together.
pub(super) fn wait(attempt: u32, random: f64) -> Duration {
    let doubled = SHORTEST.saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
    doubled.min(LONGEST).mul_f64(random.clamp(0.0, 1.0))
}

/// The share of the bound that a process waits before an attempt, 0 to 1.
///
/// It comes of the owner token, which is drawn anew at each start: no two processes wait alike, and a start can be
/// repeated to the instant.
pub(super) fn share(owner: Owner, attempt: u32) -> f64 {
    let mut hasher = FxHasher::default();
    (owner.0, attempt).hash(&mut hasher);
    // The upper bits of this hash are the mixed ones; 53 of them fill a float.
    (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_use_the_whole_range() {
        let bounds: Vec<u64> = (1..=9).map(|attempt| wait(attempt, 1.0).as_secs()).collect();
        assert_eq!(bounds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(wait(u32::MAX, 1.0), LONGEST);
        assert_eq!(wait(5, 0.0), Duration::ZERO);
        assert_eq!(wait(5, 0.5), Duration::from_secs(8));
    }

    #[test]
    fn processes_and_attempts_wait_differently_and_over_the_whole_range() {
        let shares: Vec<f64> = (0..100).flat_map(|owner| (1..=10).map(move |n| share(Owner(owner), n))).collect();
        for tenth in 0..10 {
            let bounds = f64::from(tenth) / 10.0..f64::from(tenth + 1) / 10.0;
            let within = shares.iter().filter(|share| bounds.contains(share)).count();
            assert!((50..200).contains(&within), "{within} of 1000 in {bounds:?}");
        }
    }
}
