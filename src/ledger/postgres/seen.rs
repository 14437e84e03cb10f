//! How far this process saw the ledger come, on a machine that may never have written to it.
//!
//! Several tasks may look at once, and one that looked earlier may come to tell later: each is held to what was known before it
//! looked.

use std::sync::{Mutex, PoisonError};

use super::pen::ensure_not_behind;
use crate::ledger::LedgerError;
use crate::ledger::mark::HighWaterMark;

/// How far the ledger was seen to have come.
pub(super) struct FurthestMark(Mutex<HighWaterMark>);

impl FurthestMark {
    pub(super) fn new(mark: HighWaterMark) -> Self {
        Self(Mutex::new(mark))
    }

    /// As far as is known now: to be taken before the ledger is looked at.
    pub(super) fn current_mark(&self) -> HighWaterMark {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what a look showed.
    ///
    /// # Errors
    /// When the ledger is behind what was known before that look.
    pub(super) fn advance_to(&self, place: &str, before: HighWaterMark, now: HighWaterMark) -> Result<(), LedgerError> {
        ensure_not_behind((place, now), before)?;
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another look may have shown more meanwhile.
        if seen.id != now.id || seen.generation < now.generation {
            *seen = now;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(generation: i64) -> HighWaterMark {
        HighWaterMark { id: 7, generation }
    }

    #[test]
    fn late_report_of_an_early_read_is_no_older_copy() {
        let seen = FurthestMark::new(mark(4));
        let (early, late) = (seen.current_mark(), seen.current_mark());
        seen.advance_to("here", late, mark(6)).unwrap();
        seen.advance_to("here", early, mark(5)).unwrap();
        assert_eq!(seen.current_mark(), mark(6));
        let behind = seen.advance_to("here", seen.current_mark(), mark(5));
        assert!(matches!(behind, Err(LedgerError::Outdated { .. })), "{behind:?}");
        let other = seen.advance_to("here", seen.current_mark(), HighWaterMark { id: 8, generation: 9 });
        assert!(matches!(other, Err(LedgerError::Outdated { .. })), "{other:?}");
    }
}
