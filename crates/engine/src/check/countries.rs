//! Countries of recipients: the planned rows by the country of their number, and those outside the home countries.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use serde::Serialize;

use campaign_core::domain::{CountrySet, Region, Row, format_thousands};

/// The planned rows by the country of their number. Unknown countries are together.
#[derive(Clone, Debug, Default)]
pub struct RecipientCountries {
    rows: BTreeMap<Option<Region>, RoaringBitmap>,
}

/// The number of recipients in a country.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CountryCount {
    /// The country. `None` if it is unknown.
    pub country: Option<Region>,
    /// The number of recipients.
    pub recipients: u64,
}

impl RecipientCountries {
    /// Adds a row.
    pub(super) fn add_row(&mut self, row: Row, country: Option<Region>) {
        self.rows.entry(country).or_default().insert(row.get());
    }

    /// The rows of a country.
    #[must_use]
    pub fn rows_of(&self, country: Region) -> Option<&RoaringBitmap> {
        self.rows.get(&Some(country))
    }

    /// How many of these rows are in each country that `is_wanted` selects, highest count first.
    #[must_use]
    pub fn count_rows(&self, rows: &RoaringBitmap, is_wanted: impl Fn(Option<Region>) -> bool) -> Vec<CountryCount> {
        let wanted = self.rows.iter().filter(|(country, _)| is_wanted(**country));
        let counted = wanted.map(|(country, of_country)| CountryCount {
            country: *country,
            recipients: of_country.intersection_len(rows),
        });
        let mut counts: Vec<CountryCount> = counted.filter(|count| count.recipients > 0).collect();
        counts.sort_by_key(|count| Reverse(count.recipients));
        counts
    }

    /// How many of these rows are in each country outside `home`, highest count first.
    #[must_use]
    pub fn count_abroad(&self, home: &CountrySet, rows: &RoaringBitmap) -> Vec<CountryCount> {
        self.count_rows(rows, |country| !home.contains(country))
    }
}

/// The sum over all countries.
#[must_use]
pub fn sum_recipients(counts: &[CountryCount]) -> u64 {
    counts.iter().map(|count| count.recipients).sum()
}

/// How many countries a text names.
const MAX_NAMED: usize = 5;

/// Describes the numbers of recipients: `30 in PL, 5 in DE and 2 in an unknown country`.
#[must_use]
pub fn describe_countries(counts: &[CountryCount]) -> String {
    let (named, others) = counts.split_at(counts.len().min(MAX_NAMED));
    let describe = |count: &CountryCount| {
        let country = count.country.map_or_else(|| "an unknown country".to_owned(), |country| country.to_string());
        format!("{} in {country}", format_thousands(count.recipients))
    };
    let mut parts: Vec<String> = named.iter().map(describe).collect();
    if !others.is_empty() {
        let countries = if others.len() == 1 { "another country" } else { "other countries" };
        parts.push(format!("{} in {countries}", format_thousands(sum_recipients(others))));
    }
    match parts.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => parts.concat(),
    }
}

/// Describes the recipients outside the home countries: `37 outside UA: 30 in PL and 7 in DE`. `None` if there are
/// none.
#[must_use]
pub fn describe_abroad(counts: &[CountryCount], home: &CountrySet) -> Option<String> {
    let number = Some(sum_recipients(counts)).filter(|number| *number > 0)?;
    Some(format!("{} outside {home}: {}", format_thousands(number), describe_countries(counts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipients_abroad_are_reported_by_country() {
        let mut countries = RecipientCountries::default();
        let region = |code: &str| Some(code.parse().unwrap());
        let all = ["UA", "UA", "PL", "PL", "PL", "DE", "", "FR", "IT", "ES", "RO"];
        for (row, code) in (2..).zip(all) {
            countries.add_row(Row::new(row), if code.is_empty() { None } else { region(code) });
        }
        let home = CountrySet::new(["UA".parse().unwrap()]);
        let text = |rows: std::ops::Range<u32>| describe_abroad(&countries.count_abroad(&home, &rows.collect()), &home);
        assert_eq!(text(2..4), None);
        assert_eq!(text(2..8).as_deref(), Some("4 outside UA: 3 in PL and 1 in DE"));
        assert_eq!(text(3..9).as_deref(), Some("5 outside UA: 3 in PL, 1 in an unknown country and 1 in DE"));
        let many = text(2..13).expect("some are abroad");
        assert!(many.starts_with("9 outside UA: 3 in PL, ") && many.ends_with(" and 2 in other countries"), "{many}");
    }
}
