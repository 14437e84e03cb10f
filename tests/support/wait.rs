//! Waiting for a condition, with a timeout.

use std::time::{Duration, Instant};

/// The default timeout: far longer than any step takes, so that only a hanging process reaches it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `condition` returns true; fails after the default timeout. `expected` describes the condition in the
/// failure message.
pub(crate) fn until(expected: &str, condition: impl FnMut() -> bool) {
    until_within(PATIENCE, expected, condition);
}

/// Waits like [`until`], with a custom timeout.
pub(crate) fn until_within(timeout: Duration, expected: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + timeout;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out after {} s: {expected}", timeout.as_secs());
        std::thread::sleep(Duration::from_millis(1));
    }
}
