//! Failpoints: places at which a test ends or suspends the process.
//!
//! The program that people run has no action, so that [`pass`] does nothing. The tests start a program of their own,
//! which sets one (`tests/failpoints.rs`). An action ends or suspends the process, or does nothing; it must not decide
//! anything else.

use std::sync::OnceLock;

/// What the process does at each failpoint, if a test decided it.
static ACTION: OnceLock<fn(&str)> = OnceLock::new();

/// Sets what the process does at each failpoint. Only the first call has an effect.
pub fn set_action(action: fn(&str)) {
    let _ = ACTION.set(action);
}

/// The process passes the place with this name.
#[inline]
pub fn pass(name: &str) {
    if let Some(action) = ACTION.get() {
        action(name);
    }
}
