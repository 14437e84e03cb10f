//! The rows of a run that are never sent, by reason.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use roaring::RoaringBitmap;

use super::State;
use crate::domain::Row;

/// Rows that are `skipped` or `invalid`, as one set per reason: small, however many rows there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeftOut {
    sets: Vec<(State, String, RoaringBitmap)>,
    index: HashMap<(State, String), usize>,
}

impl LeftOut {
    /// Adds a row with its reason.
    pub fn insert(&mut self, row: Row, state: State, reason: &str) {
        // The last reason is looked at first: rows of one kind often come together.
        let set = match self.sets.last() {
            Some((last, text, _)) if *last == state && text == reason => self.sets.len() - 1,
            _ => *self.index.entry((state, reason.to_owned())).or_insert_with(|| {
                self.sets.push((state, reason.to_owned(), RoaringBitmap::new()));
                self.sets.len() - 1
            }),
        };
        self.sets[set].2.insert(row.get());
    }

    /// Adds a whole set with its reason.
    pub(super) fn insert_set(&mut self, state: State, reason: String, rows: RoaringBitmap) {
        let known = *self.index.entry((state, reason.clone())).or_insert(self.sets.len());
        match self.sets.get_mut(known) {
            Some((_, _, set)) => *set |= rows,
            None => self.sets.push((state, reason, rows)),
        }
    }

    /// Rows that are skipped for this reason.
    pub(super) fn skipped(rows: &[Row], reason: &str) -> Self {
        let mut left_out = Self::default();
        rows.iter().for_each(|row| left_out.insert(*row, State::Skipped, reason));
        left_out
    }

    /// The sets with their reasons.
    pub fn sets(&self) -> impl Iterator<Item = (State, &str, &RoaringBitmap)> {
        self.sets.iter().map(|(state, reason, rows)| (*state, reason.as_str(), rows))
    }

    /// All rows that are left out.
    #[must_use]
    pub fn rows(&self) -> RoaringBitmap {
        self.sets.iter().fold(RoaringBitmap::new(), |all, (_, _, rows)| all | rows)
    }

    /// The state and the reason of a row that is left out.
    #[must_use]
    pub fn of(&self, row: Row) -> Option<(State, &str)> {
        self.sets().find(|(_, _, rows)| rows.contains(row.get())).map(|(state, reason, _)| (state, reason))
    }

    /// How many rows have this state.
    #[must_use]
    pub fn count(&self, state: State) -> u64 {
        self.sets.iter().filter(|(of, ..)| *of == state).map(|(_, _, rows)| rows.len()).sum()
    }

    /// The rows in ascending order, each with its state and reason.
    pub fn in_order(&self) -> impl Iterator<Item = (Row, State, &str)> {
        let mut iterators: Vec<_> = self.sets.iter().map(|(_, _, rows)| rows.iter()).collect();
        let mut heads: BinaryHeap<Reverse<(u32, usize)>> = iterators
            .iter_mut()
            .enumerate()
            .filter_map(|(set, rows)| rows.next().map(|row| Reverse((row, set))))
            .collect();
        std::iter::from_fn(move || {
            let Reverse((row, set)) = heads.pop()?;
            heads.extend(iterators[set].next().map(|next| Reverse((next, set))));
            let (state, reason, _) = &self.sets[set];
            Some((Row::new(row), *state, reason.as_str()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_in_order_with_the_reason_they_went_in_with() {
        let mut left = LeftOut::default();
        let rows = [
            (7, State::Invalid, "empty"),
            (2, State::Skipped, "twice"),
            (3, State::Invalid, "empty"),
            (9, State::Skipped, "sent"),
        ];
        for (row, state, reason) in rows {
            left.insert(Row::new(row), state, reason);
        }
        let order: Vec<_> = left.in_order().map(|(row, state, reason)| (row.get(), state, reason)).collect();
        assert_eq!(
            order,
            [
                (2, State::Skipped, "twice"),
                (3, State::Invalid, "empty"),
                (7, State::Invalid, "empty"),
                (9, State::Skipped, "sent")
            ]
        );
        assert_eq!((left.count(State::Invalid), left.count(State::Skipped)), (2, 2));
    }
}
