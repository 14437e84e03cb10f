//! The rows of a run that are never sent, by reason.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use roaring::RoaringBitmap;

use super::RowState;
use campaign_core::domain::Row;

/// Rows that are `skipped` or `invalid`. Each reason has one set, so the size hardly depends on the number of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExcludedRows {
    sets: Vec<(RowState, String, RoaringBitmap)>,
    index: HashMap<(RowState, String), usize>,
}

impl ExcludedRows {
    /// Adds a row with its reason.
    pub fn insert(&mut self, row: Row, state: RowState, reason: &str) {
        // Rows with the same reason often follow each other, so the last reason comes first.
        let set = match self.sets.last() {
            Some((last, text, _)) if *last == state && text == reason => self.sets.len() - 1,
            _ => *self.index.entry((state, reason.to_owned())).or_insert_with(|| {
                self.sets.push((state, reason.to_owned(), RoaringBitmap::new()));
                self.sets.len() - 1
            }),
        };
        self.sets[set].2.insert(row.get());
    }

    /// Adds a set of rows with their reason.
    pub(super) fn insert_set(&mut self, state: RowState, reason: String, rows: RoaringBitmap) {
        let known = *self.index.entry((state, reason.clone())).or_insert(self.sets.len());
        match self.sets.get_mut(known) {
            Some((_, _, set)) => *set |= rows,
            None => self.sets.push((state, reason, rows)),
        }
    }

    /// The set of these rows, skipped for one reason.
    pub(super) fn from_skipped(rows: &[Row], reason: &str) -> Self {
        let mut excluded = Self::default();
        rows.iter().for_each(|row| excluded.insert(*row, RowState::Skipped, reason));
        excluded
    }

    /// The sets with their reasons.
    pub fn sets(&self) -> impl Iterator<Item = (RowState, &str, &RoaringBitmap)> {
        self.sets.iter().map(|(state, reason, rows)| (*state, reason.as_str(), rows))
    }

    /// All excluded rows.
    #[must_use]
    pub fn rows(&self) -> RoaringBitmap {
        self.sets.iter().fold(RoaringBitmap::new(), |all, (_, _, rows)| all | rows)
    }

    /// The state and reason of a row, if it is excluded.
    #[must_use]
    pub fn find_reason(&self, row: Row) -> Option<(RowState, &str)> {
        self.sets().find(|(_, _, rows)| rows.contains(row.get())).map(|(state, reason, _)| (state, reason))
    }

    /// The number of rows in this state.
    #[must_use]
    pub fn count_rows(&self, state: RowState) -> u64 {
        self.sets.iter().filter(|(of, ..)| *of == state).map(|(_, _, rows)| rows.len()).sum()
    }

    /// The rows in ascending order, with state and reason.
    pub fn iter_by_row(&self) -> impl Iterator<Item = (Row, RowState, &str)> {
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
    fn excluded_rows_are_listed_in_order_with_their_reasons() {
        let mut left = ExcludedRows::default();
        let rows = [
            (7, RowState::Invalid, "empty"),
            (2, RowState::Skipped, "twice"),
            (3, RowState::Invalid, "empty"),
            (9, RowState::Skipped, "sent"),
        ];
        for (row, state, reason) in rows {
            left.insert(Row::new(row), state, reason);
        }
        let order: Vec<_> = left.iter_by_row().map(|(row, state, reason)| (row.get(), state, reason)).collect();
        assert_eq!(
            order,
            [
                (2, RowState::Skipped, "twice"),
                (3, RowState::Invalid, "empty"),
                (7, RowState::Invalid, "empty"),
                (9, RowState::Skipped, "sent")
            ]
        );
        assert_eq!((left.count_rows(RowState::Invalid), left.count_rows(RowState::Skipped)), (2, 2));
    }
}
