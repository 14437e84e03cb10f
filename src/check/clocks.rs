//! The time zones in which recipients live, as their numbers tell.

use std::collections::{BTreeMap, HashMap};

use roaring::RoaringBitmap;

use crate::calendar::zone_of_country;
use crate::domain::{Phone, Row, find_country};

/// The first digits of a number, which tell its country.
const PREFIX_DIVISOR: u64 = 10_000_000;

/// The rows to be sent to, by the zone of their number's country. Countries with several zones are left out.
#[derive(Clone, Debug, Default)]
pub struct LocalZones {
    rows: BTreeMap<&'static str, RoaringBitmap>,
    /// The zones of numbers that begin alike.
    known: HashMap<u64, Option<&'static str>>,
}

impl LocalZones {
    /// Takes in a row with its number.
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

    /// How many of these rows live in each zone, most first.
    #[must_use]
    pub fn count_by_zone(&self, rows: &RoaringBitmap) -> Vec<(&'static str, u64)> {
        let mut zones: Vec<_> =
            self.rows.iter().map(|(zone, of_zone)| (*zone, of_zone.intersection_len(rows))).collect();
        zones.retain(|(_, rows)| *rows > 0);
        zones.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
        zones
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
