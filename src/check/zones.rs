//! The cells of a column of time zones: those that name no zone, and zones whose names mislead.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use roaring::RoaringBitmap;

use crate::calendar::InvertedZone;
use crate::domain::Row;

/// How many cells are kept as examples.
const MAX_EXAMPLES: usize = 3;

/// The zones of recipients: how many rows go by each, and rows whose zone is worth a look.
#[derive(Clone, Debug, Default)]
pub struct RecipientZones {
    /// How many rows to be sent to go by which clocks. Empty if all of them go by the campaign's.
    pub clocks: BTreeMap<RowClocks, u64>,
    /// The rows that name no zone.
    pub unknown: RoaringBitmap,
    /// What some of them have instead.
    pub examples: BTreeSet<String>,
    /// The rows of each zone whose name has the inverted sign.
    pub inverted: BTreeMap<InvertedZone, RoaringBitmap>,
    /// The zones of known cells.
    known: BTreeMap<String, KnownZone>,
}

/// The clocks of a row besides the campaign's, as far as a window asks for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowClocks {
    /// The zone of its number's country, if the country has one zone.
    pub country: Option<&'static str>,
    /// The zone in its cell.
    pub cell: Option<String>,
}

/// A zone that a cell names.
#[derive(Clone, Debug)]
struct KnownZone {
    /// The name in the database.
    name: String,
    /// The same, if the sign of its name is inverted.
    inverted: Option<InvertedZone>,
}

impl RecipientZones {
    /// Counts a row by its clocks.
    pub(super) fn count_row(&mut self, country: Option<&'static str>, cell: Option<&str>) {
        let cell = cell.and_then(|cell| self.known.get(cell)).map(|zone| zone.name.clone());
        *self.clocks.entry(RowClocks { country, cell }).or_default() += 1;
    }

    /// Takes in the cell of a row.
    pub(super) fn add_cell(&mut self, row: Row, cell: &str) {
        if !self.known.contains_key(cell) {
            let Ok(zone) = TimeZone::get(cell) else {
                self.unknown.insert(row.get());
                if self.examples.len() < MAX_EXAMPLES {
                    self.examples.insert(cell.to_owned());
                }
                return;
            };
            let name = zone.iana_name().unwrap_or(cell).to_owned();
            self.known.insert(cell.to_owned(), KnownZone { name, inverted: InvertedZone::from_name(cell) });
        }
        if let Some(KnownZone { inverted: Some(zone), .. }) = self.known.get(cell) {
            self.inverted.entry(zone.clone()).or_default().insert(row.get());
        }
    }
}
