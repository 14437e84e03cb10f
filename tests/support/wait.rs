//! Waiting for a condition, with an end.

use std::time::{Duration, Instant};

/// Far longer than anything here takes, so that it ends only what hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `happened`; fails when that takes too long.
pub(crate) fn until(what: &str, happened: impl FnMut() -> bool) {
    until_within(PATIENCE, what, happened);
}

/// The same, for what takes longer.
pub(crate) fn until_within(patience: Duration, what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !happened() {
        assert!(Instant::now() < deadline, "waited {} s in vain: {what}", patience.as_secs());
        std::thread::sleep(Duration::from_millis(1));
    }
}
