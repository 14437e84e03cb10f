//! How often which words were said, a bounded number of words apart. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ledger::State;

/// How many words are counted apart: whoever says something else each time fills no memory.
const MOST: usize = 400;
/// The longest words that are kept, in characters.
const LONGEST: usize = 200;

/// Rows by their state and what was said of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasons {
    told: BTreeMap<(State, String), u64>,
    /// Rows of which something was said that is not counted apart.
    others: u64,
}

/// What was said of so many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason<'r> {
    /// Their state.
    pub state: State,
    /// The words; empty where nobody said any.
    pub words: &'r str,
    /// How many rows.
    pub rows: u64,
}

impl Reasons {
    /// Adds rows in a state of which this was said.
    pub(super) fn add(&mut self, state: State, words: &str, rows: u64) {
        if rows == 0 {
            return;
        }
        let words: String = words.trim().chars().take(LONGEST).collect();
        let full = self.told.len() >= MOST;
        match self.told.get_mut(&(state, words.clone())) {
            Some(known) => *known += rows,
            None if full => self.others += rows,
            None => drop(self.told.insert((state, words), rows)),
        }
    }

    /// What was said, the most often said first; those that were said as often in the order of the states and the alphabet.
    #[must_use]
    pub fn most(&self) -> Vec<Reason<'_>> {
        let told = self.told.iter();
        let mut most: Vec<Reason<'_>> =
            told.map(|((state, words), rows)| Reason { state: *state, words, rows: *rows }).collect();
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
    pub fn rows(&self) -> u64 {
        self.others + self.told.values().sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_row_is_counted_whatever_is_said_of_it(said in proptest::collection::vec((".{0,300}", 0..9_u64), 0..40)) {
            let mut reasons = Reasons::default();
            said.iter().for_each(|(words, rows)| reasons.add(State::Failed, words, *rows));
            prop_assert_eq!(reasons.rows(), said.iter().map(|(_, rows)| rows).sum::<u64>());
            prop_assert!(reasons.most().windows(2).all(|pair| pair[0].rows >= pair[1].rows));
        }
    }

    #[test]
    fn whoever_says_something_else_each_time_is_counted_with_the_others() {
        let mut reasons = Reasons::default();
        (0..10_000).for_each(|number| reasons.add(State::Rejected, &format!("no {number}"), 1));
        assert_eq!((reasons.most().len(), reasons.others(), reasons.rows()), (MOST, 10_000 - MOST as u64, 10_000));
        reasons.add(State::Rejected, "no 7", 5);
        assert_eq!(reasons.most()[0], Reason { state: State::Rejected, words: "no 7", rows: 6 });
    }
}
