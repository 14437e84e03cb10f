//! Why sending ended before the last row.

use std::fmt;

pub use crate::ledger::StopKind;

impl StopKind {
    /// The weight of a stop beside others: of several the gravest is the reason that is told.
    #[must_use]
    pub fn gravity(self) -> u8 {
        match self {
            StopKind::Ledger | StopKind::ResultsUnwritten => 5,
            StopKind::Interrupted(_) => 4,
            StopKind::LeaseLost => 3,
            StopKind::KeyRefused => 2,
            StopKind::StopRequested
            | StopKind::Breaker
            | StopKind::Unreachable
            | StopKind::OffContract
            | StopKind::Credit
            | StopKind::Budget
            | StopKind::Window
            | StopKind::Halted
            | StopKind::Inconsistent
            | StopKind::Internal => 1,
            StopKind::Limit | StopKind::DeadlineReached => 0,
        }
    }
}

/// A stop with its reason in plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Its kind.
    pub kind: StopKind,
    /// The reason.
    pub reason: String,
}

impl Stop {
    /// A stop of that kind.
    pub fn new(kind: StopKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// What the outside asks of a run that is going on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interrupt {
    /// Nothing.
    #[default]
    None,
    /// A first signal of this number: begin nothing new, wait for what is in flight.
    Graceful(u8),
    /// A second signal of this number: leave at once; what is in flight stays in doubt.
    Immediate(u8),
}
