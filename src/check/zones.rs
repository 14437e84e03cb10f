//! The cells of a column of time zones: those that name no zone, and zones whose names mislead.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use roaring::RoaringBitmap;

use crate::calendar::InvertedZone;
use crate::domain::Row;

/// How many cells are kept as examples.
const SHOWN: usize = 3;

/// Rows whose zone is worth a look.
#[derive(Clone, Debug, Default)]
pub struct Zones {
    /// The rows that name no zone.
    pub unknown: RoaringBitmap,
    /// What some of them have instead.
    pub examples: BTreeSet<String>,
    /// The rows of each zone whose name has the inverted sign.
    pub inverted: BTreeMap<InvertedZone, RoaringBitmap>,
    /// The zones of known cells, if their sign is inverted.
    known: BTreeMap<String, Option<InvertedZone>>,
}

impl Zones {
    /// Takes in the cell of a row.
    pub(super) fn add(&mut self, row: Row, cell: &str) {
        if !self.known.contains_key(cell) {
            if TimeZone::get(cell).is_err() {
                self.unknown.insert(row.get());
                if self.examples.len() < SHOWN {
                    self.examples.insert(cell.to_owned());
                }
                return;
            }
            self.known.insert(cell.to_owned(), InvertedZone::of(cell));
        }
        if let Some(Some(zone)) = self.known.get(cell) {
            self.inverted.entry(zone.clone()).or_default().insert(row.get());
        }
    }
}
