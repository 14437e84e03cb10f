//! Parts billed, as far as the gateway told. Pure.

use super::{RowState, StateCounts};

/// Parts that were billed, and of how many messages the gateway told them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BilledParts {
    /// The parts.
    pub billed: u64,
    /// The messages.
    pub messages: u64,
}

impl BilledParts {
    /// Adds the parts of a message, where they were told.
    pub fn add(&mut self, parts: Option<u32>) {
        if let Some(parts) = parts {
            self.billed += u64::from(parts);
            self.messages += 1;
        }
    }

    /// These and others.
    #[must_use]
    pub fn plus(self, others: Self) -> Self {
        Self { billed: self.billed + others.billed, messages: self.messages + others.messages }
    }

    /// Whether more may have been billed for rows that stand like this: some went out, or may have, and their parts are
    /// not known.
    #[must_use]
    pub fn is_lower_bound(self, counts: &StateCounts) -> bool {
        let out: u64 =
            RowState::ALL.into_iter().filter(|state| state.is_guarded()).map(|state| counts.get(state)).sum();
        self.messages < out
    }
}
