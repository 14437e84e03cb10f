//! Countries of phone numbers: lookup of many numbers, and the countries that messages may reach.

use std::fmt;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{Phone, Region, find_country};

/// Divides a number down to its first eight digits, which decide its country.
const PREFIX_DIVISOR: u64 = 100_000_000;

/// Looks up the countries of many numbers. It remembers the country of each prefix.
#[derive(Clone, Debug, Default)]
pub struct CountryFinder {
    known: FxHashMap<u64, Option<Region>>,
}

impl CountryFinder {
    /// The country of a number, as [`find_country`] returns it.
    pub fn find_country(&mut self, phone: Phone) -> Option<Region> {
        let mut prefix = phone.to_u64();
        while prefix >= PREFIX_DIVISOR {
            prefix /= 10;
        }
        *self.known.entry(prefix).or_insert_with(|| find_country(phone))
    }
}

/// The countries that messages may reach; written and stored as a list of ISO 3166 codes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CountrySet(Vec<Region>);

impl CountrySet {
    /// The set of these countries.
    #[must_use]
    pub fn new(countries: impl IntoIterator<Item = Region>) -> Self {
        let mut countries: Vec<Region> = countries.into_iter().collect();
        countries.sort_unstable();
        countries.dedup();
        Self(countries)
    }

    /// Whether the set contains a country. An unknown country is in no set.
    #[must_use]
    pub fn contains(&self, country: Option<Region>) -> bool {
        country.is_some_and(|country| self.0.contains(&country))
    }

    /// The countries that are in both sets.
    #[must_use]
    pub fn intersect_with(&self, other: &Self) -> Self {
        Self(self.0.iter().copied().filter(|country| other.0.contains(country)).collect())
    }

    /// The countries, in the order of their codes.
    #[must_use]
    pub fn countries(&self) -> &[Region] {
        &self.0
    }
}

impl fmt::Display for CountrySet {
    /// Formats the codes as a list: `PL, UA`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codes: Vec<String> = self.0.iter().map(Region::to_string).collect();
        f.write_str(&codes.join(", "))
    }
}

/// The intersection of sets, where a missing set allows every country.
#[must_use]
pub fn intersect_countries<'s>(sets: impl IntoIterator<Item = Option<&'s CountrySet>>) -> Option<CountrySet> {
    sets.into_iter().flatten().fold(None, |allowed: Option<CountrySet>, set| {
        Some(allowed.map_or_else(|| set.clone(), |allowed| allowed.intersect_with(set)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn country_set(codes: &[&str]) -> CountrySet {
        CountrySet::new(codes.iter().map(|code| code.parse().unwrap()))
    }

    #[test]
    fn prefix_decides_the_country_of_a_valid_number() {
        let (mut finder, mut valid, mut random) = (CountryFinder::default(), 0, 7_u64);
        // The calling codes that several countries share, and two others.
        for code in ["1", "7", "39", "44", "47", "61", "212", "262", "290", "358", "590", "599", "48", "380"] {
            for _ in 0..2_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let national = 1_000_000 + (random >> 20) % 9_999_000_000;
                let Some(phone) = format!("{code}{national}").parse().ok().and_then(Phone::new) else { continue };
                let country = find_country(phone);
                // Only numbers that the library accepts are in lists.
                if country.is_some() && is_valid(phone) {
                    valid += 1;
                    assert_eq!(finder.find_country(phone), country, "+{phone}");
                }
            }
        }
        assert!(valid > 2_000, "only {valid} valid numbers");
    }

    fn is_valid(phone: Phone) -> bool {
        let util = &rlibphonenumber::PHONE_NUMBER_UTIL;
        util.parse(format!("+{phone}"), None).is_ok_and(|number| number.is_valid())
    }

    #[test]
    fn unknown_country_is_in_no_set() {
        let (both, one) = (country_set(&["UA", "PL", "UA"]), country_set(&["UA"]));
        assert_eq!(
            (both.to_string().as_str(), serde_json::to_string(&both).unwrap().as_str()),
            ("PL, UA", r#"["PL","UA"]"#)
        );
        let ukraine = Phone::new(380_501_234_567).and_then(find_country);
        assert!(both.contains(ukraine) && !country_set(&["PL"]).contains(ukraine) && !both.contains(None));
        // International freephone numbers belong to no country.
        assert_eq!(Phone::new(80_012_345_678).and_then(find_country), None);
        assert_eq!(intersect_countries([Some(&both), None, Some(&one)]), Some(one));
        assert_eq!(intersect_countries([None, None]), None);
        assert_eq!(intersect_countries([Some(&both), Some(&country_set(&["DE"]))]), Some(CountrySet::default()));
    }
}
