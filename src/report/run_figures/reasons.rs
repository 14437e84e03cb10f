//! How often which words were said, a bounded number of words apart. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ledger::RowState;

/// How many words are counted apart: whoever says something else each time fills no memory.
const MAX_REASONS: usize = 400;
/// The longest words that are kept, in characters.
const MAX_REASON_CHARS: usize = 200;

/// Rows by their state and what was said of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonCounts {
    told: BTreeMap<(RowState, String), u64>,
    /// Rows of which something was said that is not counted apart.
    others: u64,
}

/// What was said of so many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonCount<'r> {
    /// Their state.
    pub state: RowState,
    /// The words; empty where nobody said any.
    pub text: &'r str,
    /// How many rows.
    pub rows: u64,
}

impl ReasonCounts {
    /// Adds rows in a state of which this was said.
    pub(super) fn add_rows(&mut self, state: RowState, words: &str, rows: u64) {
        if rows == 0 {
            return;
        }
        let words: String = words.trim().chars().take(MAX_REASON_CHARS).collect();
        let full = self.told.len() >= MAX_REASONS;
        match self.told.get_mut(&(state, words.clone())) {
            Some(known) => *known += rows,
            None if full => self.others += rows,
            None => drop(self.told.insert((state, words), rows)),
        }
    }

    /// What was said, the most often said first; those that were said as often in the order of the states and the alphabet.
    #[must_use]
    pub fn most_frequent(&self) -> Vec<ReasonCount<'_>> {
        let told = self.told.iter();
        let mut most: Vec<ReasonCount<'_>> =
            told.map(|((state, words), rows)| ReasonCount { state: *state, text: words, rows: *rows }).collect();
        most.sort_by_key(|reason| std::cmp::Reverse(reason.rows));
        most
    }

    /// Rows of which something was said that is not counted apart.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.others
    }

    /// All rows.
    #[must_use]
    pub fn count_rows(&self) -> u64 {
        self.others + self.told.values().sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_counted_for_any_reason(said in proptest::collection::vec((".{0,300}", 0..9_u64), 0..40)) {
            let mut reasons = ReasonCounts::default();
            said.iter().for_each(|(words, rows)| reasons.add_rows(RowState::Failed, words, *rows));
            prop_assert_eq!(reasons.count_rows(), said.iter().map(|(_, rows)| rows).sum::<u64>());
            prop_assert!(reasons.most_frequent().windows(2).all(|pair| pair[0].rows >= pair[1].rows));
        }
    }

    #[test]
    fn reasons_beyond_the_limit_count_as_others() {
        let mut reasons = ReasonCounts::default();
        (0..10_000).for_each(|number| reasons.add_rows(RowState::Rejected, &format!("no {number}"), 1));
        assert_eq!(
            (reasons.most_frequent().len(), reasons.others(), reasons.count_rows()),
            (MAX_REASONS, 10_000 - MAX_REASONS as u64, 10_000)
        );
        reasons.add_rows(RowState::Rejected, "no 7", 5);
        assert_eq!(reasons.most_frequent()[0], ReasonCount { state: RowState::Rejected, text: "no 7", rows: 6 });
    }
}
