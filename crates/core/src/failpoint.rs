//! Failpoints: locations at which a test ends or suspends the process.
//!
//! In the released program, [`pass`] does nothing. The tests start a separate binary that sets an action
//! (`tests/failpoints.rs`). An action must only end or suspend the process, or do nothing.

use std::sync::OnceLock;

/// The action at each failpoint, if a test set one.
static ACTION: OnceLock<fn(&str)> = OnceLock::new();

/// Sets the action at each failpoint. Only the first call has an effect.
pub fn set_action(action: fn(&str)) {
    let _ = ACTION.set(action);
}

/// Runs the action, if one is set, at the failpoint with this name.
#[inline]
pub fn pass(name: &str) {
    if let Some(action) = ACTION.get() {
        action(name);
    }
}
