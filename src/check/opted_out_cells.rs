//! Columns of the list that record opt-outs, and the planned rows whose cells do.

use std::collections::BTreeSet;

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use super::column::Column;
use crate::audience::Fields;
use crate::domain::{OptOutColumn, OptOutState, Row, is_date};

/// The most values of other rows that are kept.
const OTHERS: usize = 6;
/// The most values of opted-out rows that are kept; words for opt-outs are few.
const OPT_OUTS: usize = 64;
/// The most values whose state is remembered.
const REMEMBERED: usize = 1_024;

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
    pub values: Values,
    /// Whether one of these values is a date, so that later lists have others.
    pub has_dates: bool,
    /// The values of all other rows.
    pub others: Values,
    index: usize,
    kind: OptOutColumn,
    states: FxHashMap<Box<str>, Option<OptOutState>>,
}

/// Different values of a column, as they stand in the list.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// Some of them.
    pub some: BTreeSet<String>,
    /// Whether there are more.
    pub more: bool,
}

impl Values {
    /// The value, if there is only one.
    #[must_use]
    pub fn only(&self) -> Option<&str> {
        self.some.first().filter(|_| self.some.len() == 1 && !self.more).map(String::as_str)
    }

    fn add(&mut self, value: &str, at_most: usize) {
        if self.some.contains(value) || self.more {
            return;
        }
        if self.some.len() == at_most {
            self.more = true;
        } else {
            self.some.insert(value.to_owned());
        }
    }
}

impl OptedOutCells {
    /// The columns that record opt-outs, without rows yet.
    pub(super) fn of_columns(columns: &[Column]) -> Vec<Self> {
        let cells = |Column { index, header, name, .. }: &Column| {
            Some(Self {
                header: header.clone(),
                name: name.clone(),
                rows: RoaringBitmap::new(),
                values: Values::default(),
                has_dates: false,
                others: Values::default(),
                index: *index,
                kind: OptOutColumn::of(header)?,
                states: FxHashMap::default(),
            })
        };
        columns.iter().filter_map(cells).collect()
    }

    /// Takes in the cell of a row that is to be sent to.
    pub(super) fn add(&mut self, row: Row, fields: Fields<'_>) {
        let value = fields.get(self.index);
        let state = self.states.get(value).copied().unwrap_or_else(|| {
            let state = self.kind.state(value);
            if self.states.len() < REMEMBERED {
                self.states.insert(value.into(), state);
            }
            state
        });
        if state == Some(OptOutState::OptedOut) {
            self.rows.insert(row.get());
            self.values.add(value, OPT_OUTS);
            self.has_dates = self.has_dates || is_date(value);
        } else {
            self.others.add(value, OTHERS);
        }
    }
}
