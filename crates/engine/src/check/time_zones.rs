//! Time zones of recipients: from a column of the list, and from the country or area code of their number.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use campaign_core::calendar::{InvertedZone, zone_of_area_code, zone_of_country};
use campaign_core::domain::{Phone, Region, Row};

/// The time zone of a number of a country: that of the country if it has only one, or of the area code after +1.
/// `None` if the number does not show it.
#[must_use]
pub fn zone_of_number(phone: Phone, country: Option<Region>) -> Option<&'static str> {
    zone_of_country(&country?.to_string()).or_else(|| zone_of_area_code(area_code(phone)?))
}

/// The area code of a number that begins with +1.
fn area_code(phone: Phone) -> Option<u16> {
    let digits = phone.to_u64();
    (digits / 10_000_000_000 == 1).then_some((digits / 10_000_000 % 1_000) as u16)
}

/// The planned rows by the time zone of their number, if the number shows it.
#[derive(Clone, Debug, Default)]
pub struct LocalZones {
    rows: BTreeMap<&'static str, RoaringBitmap>,
    /// The zones of countries and area codes.
    known: FxHashMap<(Option<Region>, Option<u16>), Option<&'static str>>,
}

impl LocalZones {
    /// Adds a row with its number and country. Returns the zone.
    pub(super) fn add_row(&mut self, row: Row, phone: Phone, country: Option<Region>) -> Option<&'static str> {
        let known = self.known.entry((country, area_code(phone)));
        let zone = *known.or_insert_with(|| zone_of_number(phone, country));
        if let Some(zone) = zone {
            self.rows.entry(zone).or_default().insert(row.get());
        }
        zone
    }

    /// All rows whose number shows the zone.
    #[must_use]
    pub fn rows_with_zone(&self) -> RoaringBitmap {
        self.rows.values().fold(RoaringBitmap::new(), |all, rows| all | rows)
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
    /// The zone of its number, if the number shows it.
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
    use campaign_core::domain::find_country;

    #[test]
    fn numbers_give_the_zones_of_their_countries_or_area_codes() {
        let mut zones = LocalZones::default();
        let numbers =
            [380_501_234_567, 48_501_234_567, 380_671_234_567, 12_025_550_123, 34_612_345_678, 18_765_550_123];
        for (row, number) in (2..).zip(numbers) {
            let phone = Phone::new(number).unwrap();
            zones.add_row(Row::new(row), phone, find_country(phone));
        }
        let of = |rows: std::ops::Range<u32>| zones.count_by_zone(&rows.collect());
        let (kyiv, jamaica) = (("Europe/Kyiv", 2), ("America/Jamaica", 1));
        assert_eq!(of(2..9), [kyiv, jamaica, ("America/New_York", 1), ("Europe/Warsaw", 1)], "Spain has several zones");
        assert_eq!(of(3..4), [("Europe/Warsaw", 1)]);
        assert_eq!(zones.rows_with_zone(), [2, 3, 4, 5, 7].into_iter().collect());
    }
}
