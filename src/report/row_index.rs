//! Which rows of a run are in which state: sets, small however many rows there are.
//!
//! Rows looked up by `delivered` include those that were read, as in all figures for people.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use crate::delivery::Snapshot;
use crate::domain::Row;
use crate::ledger::{Ledger, LedgerError, RowState, Run};

/// The rows of a run by state, as they were at one time.
#[derive(Clone, Debug, Default)]
pub struct RowIndex {
    sets: BTreeMap<RowState, RoaringBitmap>,
}

impl RowIndex {
    /// Reads it from all envelopes of a run; `owned` tells whether a process is sending it.
    ///
    /// # Errors
    /// When the ledger cannot be read, or the run was purged.
    pub async fn load(ledger: &dyn Ledger, run: &Run, owned: bool) -> Result<Self, LedgerError> {
        let snapshot = Snapshot::load(ledger, run, owned).await?;
        let mut sets: BTreeMap<RowState, RoaringBitmap> = BTreeMap::new();
        let (first, last) = (Row::FIRST.get(), run.last_row().get());
        let mut known = RoaringBitmap::new();
        for row in first..=last {
            if let Some(state) = snapshot.states.recorded_state(Row::new(row)) {
                sets.entry(state).or_default().insert(row);
                known.insert(row);
            }
        }
        for (state, _, rows) in snapshot.left_out.sets() {
            *sets.entry(state).or_default() |= rows - &known;
        }
        let left_out = snapshot.left_out.rows();
        let mut rest = RoaringBitmap::new();
        rest.insert_range(first..=last);
        rest -= known;
        rest -= left_out;
        if let Some(waits) = rest.min() {
            *sets.entry(snapshot.row_state(Row::new(waits))).or_default() |= rest;
        }
        // A blank line of the list is no row of anybody, and counts nowhere.
        sets.retain(|state, _| snapshot.counts.get(*state) > 0);
        Ok(Self { sets })
    }

    /// So many rows in a state at most, or in any, from this one on; one more tells that there are more.
    #[must_use]
    pub fn rows_from(&self, state: Option<RowState>, from: Row, most: usize) -> Vec<Row> {
        let within = |set: &RoaringBitmap| set.range(from.get()..).take(most).collect::<Vec<u32>>();
        let mut rows: Vec<u32> = self.matching_sets(state).flat_map(within).collect();
        rows.sort_unstable();
        rows.truncate(most);
        rows.into_iter().map(Row::new).collect()
    }

    /// The first of so many rows in a state, or in any, that end before this one; nothing where there are none.
    #[must_use]
    pub fn find_page_start(&self, state: Option<RowState>, before: Row, most: usize) -> Option<Row> {
        let within = |set: &RoaringBitmap| set.range(..before.get()).rev().take(most).collect::<Vec<u32>>();
        let mut rows: Vec<u32> = self.matching_sets(state).flat_map(within).collect();
        rows.sort_unstable_by(|one, other| other.cmp(one));
        rows.truncate(most);
        rows.last().copied().map(Row::new)
    }

    /// How many rows in a state, or in any, are before this one, and how many there are in all.
    #[must_use]
    pub fn count_before(&self, state: Option<RowState>, from: Row) -> (u64, u64) {
        let sets = self.matching_sets(state);
        sets.fold((0, 0), |(before, all), set| (before + set.range_cardinality(..from.get()), all + set.len()))
    }

    /// How many rows are in a state.
    #[must_use]
    pub fn count(&self, state: RowState) -> u64 {
        self.matching_sets(Some(state)).map(RoaringBitmap::len).sum()
    }

    /// The sets of the rows that are looked up by a state, or of all rows.
    fn matching_sets(&self, state: Option<RowState>) -> impl Iterator<Item = &RoaringBitmap> {
        let wanted = move |of: RowState| state.is_none_or(|state| state.includes_state(of));
        self.sets.iter().filter(move |(of, _)| wanted(**of)).map(|(_, set)| set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_index() -> RowIndex {
        let set = |rows: &[u32]| rows.iter().copied().collect::<RoaringBitmap>();
        RowIndex { sets: [(RowState::Accepted, set(&[2, 3, 6, 7])), (RowState::Rejected, set(&[4, 5, 8]))].into() }
    }

    fn page(state: Option<RowState>, from: u32, most: usize) -> Vec<u32> {
        sample_index().rows_from(state, Row::new(from), most).into_iter().map(Row::get).collect()
    }

    #[test]
    fn pages_start_at_any_row_and_go_back() {
        assert_eq!(page(None, 2, 4), [2, 3, 4, 5]);
        assert_eq!(page(None, 6, 9), [6, 7, 8]);
        assert_eq!(page(Some(RowState::Rejected), 5, 9), [5, 8]);
        assert_eq!(page(Some(RowState::InDoubt), 2, 9), [0; 0]);
        let before = |state, before, most| sample_index().find_page_start(state, Row::new(before), most).map(Row::get);
        assert_eq!(before(None, 8, 3), Some(5));
        assert_eq!(before(Some(RowState::Accepted), 7, 2), Some(3));
        assert_eq!(before(Some(RowState::Accepted), 2, 2), None);
        let place = |state, from| sample_index().count_before(state, Row::new(from));
        let set = |rows: &[u32]| rows.iter().copied().collect::<RoaringBitmap>();
        let index = RowIndex { sets: [(RowState::Delivered, set(&[2, 5])), (RowState::Read, set(&[3, 6]))].into() };
        let delivered = index.rows_from(Some(RowState::Delivered), Row::new(3), 9);
        assert_eq!(delivered.into_iter().map(Row::get).collect::<Vec<_>>(), [3, 5, 6], "read rows are delivered too");
        assert_eq!((index.count(RowState::Delivered), index.count(RowState::Read)), (4, 2));
        assert_eq!(
            (place(None, 6), place(Some(RowState::Rejected), 6), place(Some(RowState::InDoubt), 6)),
            ((4, 7), (2, 3), (0, 0))
        );
    }
}
