//! Countries of recipients: the planned rows by the country of their number, those outside the home countries, and the
//! rules about both.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use serde::Serialize;

use crate::check::Survey;
use campaign_core::define_rules;
use campaign_core::domain::{CountrySet, Region, Row, format_count, format_thousands};
use campaign_core::finding::Finding;
use campaign_manifest::Profile;

define_rules! {
    RECIPIENTS:
    warning NEW_COUNTRY = "new-country" {
        cause: "The list has numbers from a new country. No earlier run on this account has reached that country. A \
                wrong list, or numbers with a wrong country code, can be expensive.",
        example: ["gateways.yaml: production: { home: [PL] }       # the list has numbers from UA"],
        fix: "check the numbers; to skip them, set `countries`, for example `countries: [PL]`",
    }
    pub error ABROAD_LIMIT = "abroad-limit" {
        cause: "Too many recipients are abroad. The edition would have more recipients outside the profile's `home` \
                than its `limits.abroad` allows.",
        example: ["gateways.yaml: production: { home: [PL], limits: { abroad: 1 } }"],
        fix: "remove the recipients from the list, or set `countries`; to send to all of them, run with \
              `--up-to-abroad N`",
    }
}

/// The planned rows by the country of their number. Rows with an unknown country form one group.
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
    pub(in crate::check) fn add_row(&mut self, row: Row, country: Option<Region>) {
        self.rows.entry(country).or_default().insert(row.get());
    }

    /// The rows whose recipients are in a country.
    pub fn rows_in(&self, country: Region) -> Option<&RoaringBitmap> {
        self.rows.get(&Some(country))
    }

    /// The number of `rows` in each country that `is_wanted` selects, highest count first.
    pub fn count_rows(&self, rows: &RoaringBitmap, is_wanted: impl Fn(Option<Region>) -> bool) -> Vec<CountryCount> {
        let selected_rows = self.rows.iter().filter(|(country, _)| is_wanted(**country));
        let country_counts = selected_rows.map(|(country, country_rows)| CountryCount {
            country: *country,
            recipients: country_rows.intersection_len(rows),
        });
        let mut counts: Vec<CountryCount> = country_counts.filter(|count| count.recipients > 0).collect();
        counts.sort_by_key(|count| Reverse(count.recipients));
        counts
    }

    /// The number of `rows` in each country outside `home`, highest count first.
    pub fn count_abroad(&self, home: &CountrySet, rows: &RoaringBitmap) -> Vec<CountryCount> {
        self.count_rows(rows, |country| !home.contains(country))
    }
}

/// The sum of the recipients in all countries.
pub fn sum_recipients(counts: &[CountryCount]) -> u64 {
    counts.iter().map(|count| count.recipients).sum()
}

/// The maximum number of countries that a description names.
const MAX_NAMED: usize = 5;

/// Describes the number of recipients in each country: `30 in PL, 5 in DE and 2 in an unknown country`.
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
pub fn describe_abroad(counts: &[CountryCount], home: &CountrySet) -> Option<String> {
    let number = Some(sum_recipients(counts)).filter(|number| *number > 0)?;
    Some(format!("{} outside {home}: {}", format_thousands(number), describe_countries(counts)))
}

/// A warning about recipients in `rows` who are in one of `new_countries`, which no earlier run reached.
pub fn check_new_countries(survey: &Survey, new_countries: &[Region], rows: &RoaringBitmap) -> Option<Finding> {
    let is_new = |country: Option<Region>| country.is_some_and(|country| new_countries.contains(&country));
    let counts = survey.countries.count_rows(rows, is_new);
    let number = Some(sum_recipients(&counts)).filter(|number| *number > 0)?;
    let countries = if counts.len() == 1 { "a country" } else { "countries" };
    let message = format!(
        "{} in {countries} that no earlier run on this account has reached: {}",
        format_count(number, "recipient"),
        describe_countries(&counts)
    );
    Some(Finding::new(&NEW_COUNTRY, message).help("check the numbers; to skip other countries, set `countries`"))
}

/// An error if an edition has more recipients outside `home` than the profile allows.
pub fn check_abroad_limit(profile: &Profile, recipients_abroad: u64) -> Option<Finding> {
    let (home, limit) = profile.home.as_ref().zip(profile.abroad_limit)?;
    if recipients_abroad <= u64::from(limit) {
        return None;
    }
    let message = format!(
        "the edition would have {} outside {home}, but `limits.abroad` in the profile `{}` is {}",
        format_count(recipients_abroad, "recipient"),
        profile.name,
        format_thousands(limit.into())
    );
    let help = format!("check the list; to send to all of them, run with `--up-to-abroad {recipients_abroad}`");
    Some(Finding::new(&ABROAD_LIMIT, message).help(help))
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
