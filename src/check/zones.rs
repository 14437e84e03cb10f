//! The cells of a column of time zones, as far as they name none.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use roaring::RoaringBitmap;

use crate::domain::Row;

/// How many cells are kept as examples.
const SHOWN: usize = 3;

/// Rows that name no zone.
#[derive(Clone, Debug, Default)]
pub struct Zones {
    /// Which they are.
    pub unknown: RoaringBitmap,
    /// What some of them have instead.
    pub examples: BTreeSet<String>,
    known: BTreeSet<String>,
}

impl Zones {
    /// Takes in the cell of a row.
    pub(super) fn add(&mut self, row: Row, cell: &str) {
        if self.known.contains(cell) {
            return;
        }
        if TimeZone::get(cell).is_ok() {
            self.known.insert(cell.to_owned());
            return;
        }
        self.unknown.insert(row.get());
        if self.examples.len() < SHOWN {
            self.examples.insert(cell.to_owned());
        }
    }
}
