//! Rules about the countries of recipients.

use roaring::RoaringBitmap;

use crate::check::{Survey, describe_countries, sum_recipients};
use campaign_core::domain::{Region, format_count, format_thousands};
use campaign_core::finding::{Finding, Rule, RuleText};
use campaign_manifest::Profile;

pub(super) static NEW_COUNTRY: Rule = Rule::warning(
    "new-country",
    RuleText {
        cause: "The list has numbers from a new country. No earlier run on this account has reached that country. A wrong list, or numbers with a wrong country code, can be expensive.",
        example: &["gateways.yaml: production: { home: [PL] }       # the list has numbers from UA"],
        fix: "check the numbers; to skip them, set `countries`, for example `countries: [PL]`",
    },
);

/// A warning about recipients among these rows in countries outside `home` that no earlier run reached.
#[must_use]
pub fn check_new_countries(survey: &Survey, new: &[Region], rows: &RoaringBitmap) -> Option<Finding> {
    let is_new = |country: Option<Region>| country.is_some_and(|country| new.contains(&country));
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

/// The rule about too many recipients abroad.
pub static ABROAD_LIMIT: Rule = Rule::error(
    "abroad-limit",
    RuleText {
        cause: "Too many recipients are abroad. The edition would have more recipients outside the profile's `home` \
                than its `limits.abroad` allows.",
        example: &["gateways.yaml: production: { home: [PL], limits: { abroad: 1 } }"],
        fix: "remove the recipients from the list, or set `countries`; to send to all of them, run with `--up-to-abroad N`",
    },
);

/// An error if an edition has more recipients outside `home` than the profile allows.
#[must_use]
pub fn check_abroad_limit(profile: &Profile, number: u64) -> Option<Finding> {
    let (home, limit) = profile.home.as_ref().zip(profile.abroad_limit)?;
    if number <= u64::from(limit) {
        return None;
    }
    let message = format!(
        "the edition would have {} outside {home}, but `limits.abroad` in the profile `{}` is {}",
        format_count(number, "recipient"),
        profile.name,
        format_thousands(limit.into())
    );
    let help = format!("check the list; to send to all of them, run with `--up-to-abroad {number}`");
    Some(Finding::new(&ABROAD_LIMIT, message).help(help))
}
