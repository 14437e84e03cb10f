//! Time zones of recipients: from a column of the list, and from the country of their number.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::tz::TimeZone;
use roaring::RoaringBitmap;

use campaign_core::calendar::{InvertedZone, zone_of_country};
use campaign_core::domain::{Phone, Row, find_country};

/// Divides a number down to its first digits, which show its country.
const PREFIX_DIVISOR: u64 = 10_000_000;

/// The planned rows by the time zone of their number's country. Countries with several zones are skipped.
#[derive(Clone, Debug, Default)]
pub struct LocalZones {
    rows: BTreeMap<&'static str, RoaringBitmap>,
    /// The zones by prefix of the number.
    known: HashMap<u64, Option<&'static str>>,
}

impl LocalZones {
    /// Adds a row with its number.
    pub(super) fn add_row(&mut self, row: Row, phone: Phone) {
        let mut prefix = phone.to_u64();
        while prefix >= PREFIX_DIVISOR {
            prefix /= 10;
        }
        let zone = || find_country(phone).and_then(|country| zone_of_country(&country));
        if let Some(zone) = *self.known.entry(prefix).or_insert_with(zone) {
            self.rows.entry(zone).or_default().insert(row.get());
        }
    }

    /// How many of these rows are in each zone, most first.
    #[must_use]
    pub fn count_by_zone(&self, rows: &RoaringBitmap) -> Vec<(&'static str, u64)> {
        let mut zones: Vec<_> =
            self.rows.iter().map(|(zone, of_zone)| (*zone, of_zone.intersection_len(rows))).collect();
        zones.retain(|(_, rows)| *rows > 0);
        zones.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
        zones
    }
}

/// How many example cells are kept.
const MAX_EXAMPLES: usize = 3;

/// The time zones of recipients: rows by zone, and rows with suspicious zones.
#[derive(Clone, Debug, Default)]
pub struct RecipientZones {
    /// The number of planned rows by clock. Empty if all of them use the campaign's clock.
    pub clocks: BTreeMap<RowClocks, u64>,
    /// The rows without a valid zone.
    pub unknown: RoaringBitmap,
    /// Examples of their cells.
    pub examples: BTreeSet<String>,
    /// The rows of each zone whose name has an inverted sign, such as `Etc/GMT-2` for UTC+2.
    pub inverted: BTreeMap<InvertedZone, RoaringBitmap>,
    /// The zones of known cells.
    known: BTreeMap<String, KnownZone>,
}

/// The clocks of a row besides the campaign's, as far as a window depends on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowClocks {
    /// The zone of its number's country, if the country has one zone.
    pub country: Option<&'static str>,
    /// The zone in its cell.
    pub cell: Option<String>,
}

/// The zone in a cell.
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

    /// Adds the cell of a row.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_give_the_zones_of_their_countries() {
        let mut zones = LocalZones::default();
        for (row, number) in [(2, 380_501_234_567), (3, 48_501_234_567), (4, 380_671_234_567), (5, 12_025_550_123)] {
            zones.add_row(Row::new(row), Phone::new(number).unwrap());
        }
        let of = |rows: std::ops::Range<u32>| zones.count_by_zone(&rows.collect());
        assert_eq!(of(2..9), [("Europe/Kyiv", 2), ("Europe/Warsaw", 1)], "the United States have several zones");
        assert_eq!(of(3..4), [("Europe/Warsaw", 1)]);
    }
}
