//! Phone numbers, their countries, and the countries that messages may reach.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use rlibphonenumber::PHONE_NUMBER_UTIL;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// An international number: its digits without a plus sign (E.164, at most 15, the first not 0).
///
/// `Display` writes all digits, for the wire and the results. `Debug` and [`Phone::format_masked`] show only the last
/// two, so that logs do not identify recipients.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Phone(u64);

impl Phone {
    /// The number with these digits. `None` if there are fewer than 5 digits or more than 15.
    pub fn new(digits: u64) -> Option<Self> {
        (10_000..1_000_000_000_000_000).contains(&digits).then_some(Self(digits))
    }

    /// The digits as a number.
    pub fn to_u64(self) -> u64 {
        self.0
    }

    /// The number with all but its last two digits masked.
    pub fn format_masked(self) -> String {
        format!("…{:02}", self.0 % 100)
    }
}

impl Phone {
    /// The first four and the last two digits, for texts in which a person must recognize the number.
    pub fn format_hint(self) -> String {
        let digits = self.to_string();
        format!("{}…{:02}", &digits[..4], self.0 % 100)
    }

    /// Replaces each occurrence of the number in a text with `replacement`, even if it is written without the country
    /// code or with separators.
    pub fn hide_in_text<'t>(self, text: &'t str, replacement: &str) -> Cow<'t, str> {
        /// The minimum number of digits that identify a number within its country.
        const NATIONAL_DIGITS: usize = 9;
        let digits = self.to_string();
        let national = digits.len().checked_sub(NATIONAL_DIGITS).map(|code_length| &digits[code_length..]);
        let find_end = |at: usize| {
            let mut spellings = [Some(digits.as_str()), national].into_iter().flatten();
            spellings.find_map(|digits| find_number_end(digits, &text.as_bytes()[at..])).map(|length| at + length)
        };
        let (mut hidden, mut copied_end, mut at) = (String::new(), 0, 0);
        while at < text.len() {
            match find_end(at) {
                Some(end) => {
                    hidden.push_str(&text[copied_end..at]);
                    hidden.push_str(replacement);
                    (copied_end, at) = (end, end);
                }
                None => at += 1,
            }
        }
        if copied_end == 0 { Cow::Borrowed(text) } else { Cow::Owned(hidden + &text[copied_end..]) }
    }
}

/// The position after these digits, if the text begins with them. Separators between digits are skipped.
fn find_number_end(digits: &str, text: &[u8]) -> Option<usize> {
    let mut end = 0;
    for digit in digits.bytes() {
        while end > 0 && matches!(text.get(end)?, b' ' | b'-' | b'.' | b'(' | b')') {
            end += 1;
        }
        if *text.get(end)? != digit {
            return None;
        }
        end += 1;
    }
    Some(end)
}

impl fmt::Display for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format_masked())
    }
}

/// A region with phone numbers; written and stored as its ISO 3166 code, such as `UA`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Region(rlibphonenumber::Region);

/// The error for a text that is not the code of a region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown region `{input}`; {}", self.suggest_fix())]
pub struct ParseRegionError {
    input: String,
    /// The code of the country that was probably meant.
    suggestion: Option<&'static str>,
}

impl ParseRegionError {
    /// Suggests what to write instead of the invalid region.
    pub fn suggest_fix(&self) -> String {
        match self.suggestion {
            Some(code) => format!("did you mean `{code}`?"),
            None => "write the two-letter ISO 3166 code of the country, such as `UA` or `PL`".to_owned(),
        }
    }
}

impl Region {
    /// Ukraine, whose numbers have special rules.
    pub const UKRAINE: Region = Region(rlibphonenumber::Region::UA);

    /// Likely regions of a list with national numbers, the most likely first.
    pub const LIKELY_REGIONS: [Region; 14] = {
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

    /// The corresponding region of the phone library.
    pub fn to_library_region(self) -> rlibphonenumber::Region {
        self.0
    }
}

/// The country or territory that assigned a number. `None` if the country is unknown, or if the number belongs to no
/// country.
///
/// Ukrainian numbers are recognized without the library, with the same result. In a development build, loading the
/// library takes about as much CPU time as everything else in a small run.
pub fn find_country(phone: Phone) -> Option<Region> {
    /// Ukraine's calling code, which no other country shares.
    const UKRAINIAN: &str = "+380";
    let number = format!("+{phone}");
    if number.starts_with(UKRAINIAN) {
        return Some(Region::UKRAINE);
    }
    let number = PHONE_NUMBER_UTIL.parse(number, None).ok()?;
    number.get_region_code().filter(|region| *region != rlibphonenumber::Region::World).map(Region)
}

impl FromStr for Region {
    type Err = ParseRegionError;

    fn from_str(text: &str) -> Result<Self, ParseRegionError> {
        let input = text.trim();
        let suggestion = match input.to_uppercase().as_str() {
            "UK" | "EN" => Some("GB"),
            "UKR" | "UKRAINE" | "+380" | "380" => Some("UA"),
            _ => None,
        };
        // The first comparison avoids loading the library for Ukraine.
        let is_supported = |region: &rlibphonenumber::Region| {
            *region == Region::UKRAINE.0 || PHONE_NUMBER_UTIL.get_supported_regions().any(|known| known == *region)
        };
        let is_known = |region: &rlibphonenumber::Region| suggestion.is_none() && is_supported(region);
        let region = rlibphonenumber::Region::from_code(input).ok().filter(is_known);
        region.map(Region).ok_or_else(|| ParseRegionError { input: input.to_owned(), suggestion })
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

/// The text that replaces a forgotten number in lists.
pub const FORGOTTEN: &str = "forgotten";

/// The addressee of a message: a number, or the hash of a number that was forgotten.
///
/// Stored as one whole number: a hash is larger than any phone number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub enum Addressee {
    /// A number that was not forgotten.
    Number(Phone),
    /// A number that was forgotten.
    Forgotten(ForgottenNumber),
}

/// The keyed hash that replaces a forgotten number: 61 bits, which identify the number if it appears again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ForgottenNumber(u64);

impl ForgottenNumber {
    /// The smallest value. All values also fit into a signed 64-bit integer.
    pub const MIN: u64 = 1 << 61;

    /// The value that replaces a phone number whose hash begins with these bytes.
    pub fn from_hash(hash: [u8; 8]) -> Self {
        Self(u64::from_be_bytes(hash) % Self::MIN + Self::MIN)
    }
}

impl Addressee {
    /// The number, unless it was forgotten.
    pub fn phone(self) -> Option<Phone> {
        match self {
            Addressee::Number(phone) => Some(phone),
            Addressee::Forgotten(_) => None,
        }
    }

    /// The phone number as an integer, or the hash if the number was forgotten.
    pub fn to_u64(self) -> u64 {
        match self {
            Addressee::Number(phone) => phone.to_u64(),
            Addressee::Forgotten(ForgottenNumber(hash)) => hash,
        }
    }
}

impl From<Phone> for Addressee {
    fn from(phone: Phone) -> Self {
        Addressee::Number(phone)
    }
}

impl From<Addressee> for u64 {
    fn from(addressee: Addressee) -> Self {
        addressee.to_u64()
    }
}

impl TryFrom<u64> for Addressee {
    type Error = &'static str;

    fn try_from(value: u64) -> Result<Self, Self::Error> {
        match value {
            ForgottenNumber::MIN.. => Ok(Addressee::Forgotten(ForgottenNumber(value))),
            number => Phone::new(number).map(Addressee::Number).ok_or("the number is too short or too long"),
        }
    }
}

/// The limit for prefixes of numbers: at most eight digits, which determine the country.
const PREFIX_LIMIT: u64 = 100_000_000;

/// Looks up the countries of many numbers, and remembers the country of each prefix.
#[derive(Clone, Debug, Default)]
pub struct CountryFinder {
    known: FxHashMap<u64, Option<Region>>,
}

impl CountryFinder {
    /// Like [`find_country`], but remembers the countries of phone number prefixes.
    pub fn find_country(&mut self, phone: Phone) -> Option<Region> {
        let mut prefix = phone.to_u64();
        while prefix >= PREFIX_LIMIT {
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
    pub fn new(countries: impl IntoIterator<Item = Region>) -> Self {
        let mut countries: Vec<Region> = countries.into_iter().collect();
        countries.sort_unstable();
        countries.dedup();
        Self(countries)
    }

    /// Whether the set contains a country. An unknown country is in no set.
    pub fn contains(&self, country: Option<Region>) -> bool {
        country.is_some_and(|country| self.0.contains(&country))
    }

    /// The countries that are in both sets.
    pub fn intersect_with(&self, other: &Self) -> Self {
        Self(self.0.iter().copied().filter(|country| other.0.contains(country)).collect())
    }

    /// The countries, in the order of their codes.
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

/// The intersection of sets. A missing set allows every country.
pub fn intersect_countries<'s>(sets: impl IntoIterator<Item = Option<&'s CountrySet>>) -> Option<CountrySet> {
    sets.into_iter().flatten().fold(None, |allowed: Option<CountrySet>, set| {
        Some(allowed.map_or_else(|| set.clone(), |allowed| allowed.intersect_with(set)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phone_number_is_masked_in_any_format() {
        let phone = Phone::new(380_501_234_567).unwrap();
        let table = [
            ("no such number: 380501234567", "no such number: 3805…67"),
            ("+380 (50) 123-45-67 is wrong", "+3805…67 is wrong"),
            ("0501234567 і 380501234567", "03805…67 і 3805…67"),
            ("380501234568", "380501234568"),
            ("row 7 of 67, Київ…", "row 7 of 67, Київ…"),
            ("", ""),
        ];
        for (text, hidden) in table {
            assert_eq!(phone.hide_in_text(text, &phone.format_hint()), hidden);
        }
        let short = Phone::new(12_345).unwrap();
        assert_eq!(short.hide_in_text("12345", &short.format_hint()), "1234…45");
    }
}

#[cfg(test)]
mod region_tests {
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
            let actual = Phone::new(number).and_then(find_country).map(|actual| actual.to_string());
            assert_eq!(actual.as_deref(), Some(country), "{number}");
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

#[cfg(test)]
mod addressee_tests {
    use super::*;

    #[test]
    fn addressee_round_trips_as_an_integer() {
        let number = Addressee::from(Phone::new(380_501_234_567).unwrap());
        let forgotten = [[0; 8], [255; 8]].map(|hash| Addressee::Forgotten(ForgottenNumber::from_hash(hash)));
        for addressee in [number, forgotten[0], forgotten[1]] {
            assert_eq!(Addressee::try_from(addressee.to_u64()), Ok(addressee));
            assert!(i64::try_from(addressee.to_u64()).is_ok());
        }
        assert_eq!((number.phone().map(Phone::to_u64), forgotten[1].phone()), (Some(380_501_234_567), None));
        assert!(Addressee::try_from(7).is_err() && Addressee::try_from(10_u64.pow(16)).is_err());
    }
}

#[cfg(test)]
mod country_tests {
    use super::*;

    fn country_set(codes: &[&str]) -> CountrySet {
        CountrySet::new(codes.iter().map(|code| code.parse().unwrap()))
    }

    #[test]
    fn prefix_determines_the_country_of_a_valid_number() {
        let (mut finder, mut valid, mut random) = (CountryFinder::default(), 0, 7_u64);
        // The calling codes that several countries share, and two others.
        for code in ["1", "7", "39", "44", "47", "61", "212", "262", "290", "358", "590", "599", "48", "380"] {
            for _ in 0..2_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let national = 1_000_000 + (random >> 20) % 9_999_000_000;
                let Some(phone) = format!("{code}{national}").parse().ok().and_then(Phone::new) else { continue };
                let country = find_country(phone);
                // Lists contain only numbers that the library accepts.
                if country.is_some() && is_valid(phone) {
                    valid += 1;
                    assert_eq!(finder.find_country(phone), country, "+{phone}");
                }
            }
        }
        assert!(valid > 2_000, "only {valid} valid numbers");
    }

    #[test]
    fn shortcut_finds_the_same_country_as_the_library() {
        let util = &rlibphonenumber::PHONE_NUMBER_UTIL;
        assert!(util.get_supported_regions().any(|region| region == Region::UKRAINE.0));
        for length in 5..=15_u32 {
            // The cases include numbers that begin with the national prefix 0, and numbers that do not exist.
            for first in 0..10 {
                let digits = 380 * 10_u64.pow(length - 3) + first * 10_u64.pow(length - 4) + 7;
                let number = util.parse(format!("+{digits}"), None).unwrap();
                let library_answer = number.get_region_code().map(Region);
                assert_eq!(Phone::new(digits).and_then(find_country), library_answer, "+{digits}");
            }
        }
    }

    fn is_valid(phone: Phone) -> bool {
        let util = &rlibphonenumber::PHONE_NUMBER_UTIL;
        util.parse(format!("+{phone}"), None).is_ok_and(|number| number.is_valid())
    }

    #[test]
    fn country_sets_intersect_and_exclude_unknown_countries() {
        let (two_countries, ukraine_only) = (country_set(&["UA", "PL", "UA"]), country_set(&["UA"]));
        assert_eq!(
            (two_countries.to_string().as_str(), serde_json::to_string(&two_countries).unwrap().as_str()),
            ("PL, UA", r#"["PL","UA"]"#)
        );
        let ukraine = Phone::new(380_501_234_567).and_then(find_country);
        assert!(
            two_countries.contains(ukraine) && !country_set(&["PL"]).contains(ukraine) && !two_countries.contains(None)
        );
        // International freephone numbers belong to no country.
        assert_eq!(Phone::new(80_012_345_678).and_then(find_country), None);
        assert_eq!(intersect_countries([Some(&two_countries), None, Some(&ukraine_only)]), Some(ukraine_only));
        assert_eq!(intersect_countries([None, None]), None);
        assert_eq!(
            intersect_countries([Some(&two_countries), Some(&country_set(&["DE"]))]),
            Some(CountrySet::default())
        );
    }
}
