//! Columns of the list that record opt-outs, and the planned rows whose cells do.

use std::collections::BTreeSet;

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use super::column::ListColumn;
use crate::audience::RecordFields;
use crate::domain::{OptOutColumn, OptOutState, Row, is_date};

/// The most values of other rows that are kept.
const MAX_OTHER_VALUES: usize = 6;
/// The most values of opted-out rows that are kept; words for opt-outs are few.
const MAX_OPT_OUT_VALUES: usize = 64;
/// The most values whose state is remembered.
const MAX_CACHED_STATES: usize = 1_024;

/// A column that records opt-outs, with the rows to be sent to whose cells do.
#[derive(Clone, Debug)]
pub struct OptedOutCells {
    /// The header of the column.
    pub header: String,
    /// Its name in texts.
    pub name: String,
    /// The rows.
    pub rows: RoaringBitmap,
    /// The values of these rows.
    pub values: DistinctValues,
    /// Whether one of these values is a date, so that later lists have others.
    pub has_dates: bool,
    /// The values of all other rows.
    pub others: DistinctValues,
    index: usize,
    kind: OptOutColumn,
    states: FxHashMap<Box<str>, Option<OptOutState>>,
}

/// Different values of a column, as they stand in the list.
#[derive(Clone, Debug, Default)]
pub struct DistinctValues {
    /// Some of them.
    pub values: BTreeSet<String>,
    /// Whether there are more.
    pub has_more: bool,
}

impl DistinctValues {
    /// The value, if there is only one.
    #[must_use]
    pub fn single_value(&self) -> Option<&str> {
        self.values.first().filter(|_| self.values.len() == 1 && !self.has_more).map(String::as_str)
    }

    fn add_value(&mut self, value: &str, at_most: usize) {
        if self.values.contains(value) || self.has_more {
            return;
        }
        if self.values.len() == at_most {
            self.has_more = true;
        } else {
            self.values.insert(value.to_owned());
        }
    }
}

impl OptedOutCells {
    /// The columns that record opt-outs, without rows yet.
    pub(super) fn from_columns(columns: &[ListColumn]) -> Vec<Self> {
        let cells = |ListColumn { index, header, name, .. }: &ListColumn| {
            Some(Self {
                header: header.clone(),
                name: name.clone(),
                rows: RoaringBitmap::new(),
                values: DistinctValues::default(),
                has_dates: false,
                others: DistinctValues::default(),
                index: *index,
                kind: OptOutColumn::from_header(header)?,
                states: FxHashMap::default(),
            })
        };
        columns.iter().filter_map(cells).collect()
    }

    /// Takes in the cell of a row that is to be sent to.
    pub(super) fn add_row(&mut self, row: Row, fields: RecordFields<'_>) {
        let value = fields.get(self.index);
        let state = self.states.get(value).copied().unwrap_or_else(|| {
            let state = self.kind.read_state(value);
            if self.states.len() < MAX_CACHED_STATES {
                self.states.insert(value.into(), state);
            }
            state
        });
        if state == Some(OptOutState::OptedOut) {
            self.rows.insert(row.get());
            self.values.add_value(value, MAX_OPT_OUT_VALUES);
            self.has_dates = self.has_dates || is_date(value);
        } else {
            self.others.add_value(value, MAX_OTHER_VALUES);
        }
    }
}
