//! How long to wait for a gateway that cannot be reached. Pure.

use std::time::Duration;

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
}
