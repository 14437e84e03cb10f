//! Regions: the countries and territories whose national numbers are known.
//!
//! Which there are is what the phone library knows; what their numbers look like is asked elsewhere.

use std::fmt;
use std::str::FromStr;

use rlibphonenumber::PHONE_NUMBER_UTIL;
use serde::{Deserialize, Serialize};

use super::Phone;

/// A region that has telephone numbers; written and stored as its ISO 3166 code, such as `UA`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Region(rlibphonenumber::Region);

/// What was written is the code of no region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown region `{typed}`; {}", self.suggest_fix())]
pub struct ParseRegionError {
    typed: String,
    /// The code of the country that was probably meant.
    meant: Option<&'static str>,
}

impl ParseRegionError {
    /// What to write instead.
    #[must_use]
    pub fn suggest_fix(&self) -> String {
        match self.meant {
            Some(code) => format!("did you mean `{code}`?"),
            None => "write the two-letter ISO 3166 code of the country, such as `UA` or `PL`".to_owned(),
        }
    }
}

impl Region {
    /// Ukraine, whose numbers have rules of their own.
    pub(crate) const UKRAINE: Region = Region(rlibphonenumber::Region::UA);

    /// Where a list with national numbers is likely to come from, the likeliest first.
    pub(crate) const LIKELY_REGIONS: [Region; 14] = {
        use rlibphonenumber::Region as R;
        [
            Region(R::UA),
            Region(R::PL),
            Region(R::MD),
            Region(R::RO),
            Region(R::KZ),
            Region(R::GE),
            Region(R::LT),
            Region(R::CZ),
            Region(R::DE),
            Region(R::BG),
            Region(R::TR),
            Region(R::FR),
            Region(R::GB),
            Region(R::US),
        ]
    };

    /// The region as the phone library calls it.
    pub(crate) fn to_library_region(self) -> rlibphonenumber::Region {
        self.0
    }
}

/// The ISO 3166 code of the country or territory that a number is of; nothing where it is of none.
#[must_use]
pub fn find_country(phone: Phone) -> Option<String> {
    let number = PHONE_NUMBER_UTIL.parse(format!("+{phone}"), None).ok()?;
    number.get_region_code().map(|region| region.to_string())
}

impl FromStr for Region {
    type Err = ParseRegionError;

    fn from_str(text: &str) -> Result<Self, ParseRegionError> {
        let typed = text.trim();
        let meant = match typed.to_uppercase().as_str() {
            "UK" | "EN" => Some("GB"),
            "UKR" | "UKRAINE" | "+380" | "380" => Some("UA"),
            _ => None,
        };
        let known = |region: &rlibphonenumber::Region| {
            meant.is_none() && PHONE_NUMBER_UTIL.get_supported_regions().any(|known| known == *region)
        };
        let region = rlibphonenumber::Region::from_code(typed).ok().filter(known);
        region.map(Region).ok_or_else(|| ParseRegionError { typed: typed.to_owned(), meant })
    }
}

impl TryFrom<String> for Region {
    type Error = ParseRegionError;

    fn try_from(text: String) -> Result<Self, ParseRegionError> {
        text.parse()
    }
}

impl From<Region> for String {
    fn from(region: Region) -> Self {
        region.to_string()
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn region_round_trips_as_its_code() {
        for (text, code) in [("UA", "UA"), ("pl", "PL"), (" Gb ", "GB")] {
            let region: Region = text.parse().unwrap();
            assert_eq!(region.to_string(), code);
            let stored = serde_json::to_string(&region).unwrap();
            assert_eq!(stored, format!("\"{code}\""));
            assert_eq!(serde_json::from_str::<Region>(&stored).unwrap(), region);
        }
    }

    #[test]
    fn country_of_a_number_is_found() {
        for (number, country) in [(380_501_234_567, "UA"), (77_012_345_678, "KZ"), (14_165_550_123, "CA")] {
            assert_eq!(Phone::new(number).and_then(find_country).as_deref(), Some(country), "{number}");
        }
        assert_eq!(Phone::new(999_999_999_999).and_then(find_country), None);
    }

    #[test]
    fn unknown_region_is_rejected_with_a_suggestion() {
        for (text, advice) in [
            ("", "two-letter"),
            ("U", "two-letter"),
            ("ZZ", "two-letter"),
            ("001", "two-letter"),
            ("Україна", "two-letter"),
            ("UK", "did you mean `GB`?"),
            ("en", "did you mean `GB`?"),
            ("UKR", "did you mean `UA`?"),
            ("Ukraine", "did you mean `UA`?"),
            ("+380", "did you mean `UA`?"),
        ] {
            let error = text.parse::<Region>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")) && error.contains(advice), "{error}");
            assert!(serde_json::from_str::<Region>(&format!("\"{text}\"")).is_err());
        }
    }
}
