//! How far this process saw the ledger come, on a machine that may never have written to it.
//!
//! Several tasks may look at once, and one that looked earlier may come to tell later: each is held to what was known before it
//! looked.

use std::sync::{Mutex, PoisonError};

use super::pen::not_behind;
use crate::ledger::LedgerError;
use crate::ledger::mark::Mark;

/// How far the ledger was seen to have come.
pub(super) struct Seen(Mutex<Mark>);

impl Seen {
    pub(super) fn new(mark: Mark) -> Self {
        Self(Mutex::new(mark))
    }

    /// As far as is known now: to be taken before the ledger is looked at.
    pub(super) fn before(&self) -> Mark {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what a look showed.
    ///
    /// # Errors
    /// When the ledger is behind what was known before that look.
    pub(super) fn take_in(&self, place: &str, before: Mark, now: Mark) -> Result<(), LedgerError> {
        not_behind((place, now), before)?;
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

    fn mark(generation: i64) -> Mark {
        Mark { id: 7, generation }
    }

    #[test]
    fn who_looked_first_and_tells_last_is_not_taken_for_an_older_copy() {
        let seen = Seen::new(mark(4));
        let (early, late) = (seen.before(), seen.before());
        seen.take_in("here", late, mark(6)).unwrap();
        seen.take_in("here", early, mark(5)).unwrap();
        assert_eq!(seen.before(), mark(6));
        let behind = seen.take_in("here", seen.before(), mark(5));
        assert!(matches!(behind, Err(LedgerError::NotNewest { .. })), "{behind:?}");
        let other = seen.take_in("here", seen.before(), Mark { id: 8, generation: 9 });
        assert!(matches!(other, Err(LedgerError::NotNewest { .. })), "{other:?}");
    }
}
