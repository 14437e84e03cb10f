//! Waiting for a condition, with a timeout.

use std::time::{Duration, Instant};

/// The default timeout: far longer than any step takes, so that only a hanging process reaches it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `happened` returns true; fails after the default timeout.
pub(crate) fn until(what: &str, happened: impl FnMut() -> bool) {
    until_within(PATIENCE, what, happened);
}

/// The same with a custom timeout.
pub(crate) fn until_within(patience: Duration, what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !happened() {
        assert!(Instant::now() < deadline, "timed out after {} s: {what}", patience.as_secs());
        std::thread::sleep(Duration::from_millis(1));
    }
}
