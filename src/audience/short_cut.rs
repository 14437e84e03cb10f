//! Ukrainian mobile numbers, without asking the phone library: its answer, some thirty times faster.

use super::digits::DialledDigits;
use crate::domain::{Phone, Region};

/// Ukraine's country code and a national number of nine digits are `380 * NATIONAL + number`.
const NATIONAL: u64 = 1_000_000_000;
/// The first two of the nine digits of a mobile number, as bits: `39 50 63 66 67 68 71 72 73 75 77 91..=99`.
///
/// In the library's metadata these are the mobile numbers whose other seven digits are free,
/// `(?:39|50|6[36-8]|7[1-357]|9[1-9])\d{7}`; a test holds both together.
const MOBILE: u128 = {
    let prefixes = [39, 50, 63, 66, 67, 68, 71, 72, 73, 75, 77, 91, 92, 93, 94, 95, 96, 97, 98, 99];
    let (mut bits, mut index) = (0, 0);
    while index < prefixes.len() {
        bits |= 1_u128 << prefixes[index];
        index += 1;
    }
    bits
};

/// The answer of the library for a Ukrainian mobile number; nothing for any other.
pub(super) fn parse_ukrainian_mobile(number: DialledDigits, region: Option<Region>) -> Option<Phone> {
    let home = region == Some(Region::UKRAINE);
    let possible = match (number.len, number.value / NATIONAL) {
        (12, 380) => number.plus || home || region.is_none(),
        (14, 380) => !number.plus && (home || region.is_none()),
        (9 | 10, 0) | (11, 80) => home && !number.plus,
        _ => false,
    };
    let national = number.value % NATIONAL;
    let prefix = national / 10_000_000;
    if possible && MOBILE >> prefix & 1 == 1 { Phone::new(380 * NATIONAL + national) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberType};

    use super::*;
    use crate::audience::phones::{ValidNumber, look_up};

    /// What stands before the nine digits of a Ukrainian number when it is dialled.
    const SPELLINGS: [&str; 6] = ["+380", "380", "00380", "0", "80", ""];

    /// Whether there is a short cut, 0 or 1; it has to lead where the long way does.
    fn check_agreement(text: &str, region: Option<Region>) -> u32 {
        let number = DialledDigits::parse(text).ok().unwrap();
        let Some(phone) = parse_ukrainian_mobile(number, region) else { return 0 };
        assert_eq!(look_up(number, region), Ok(ValidNumber { phone, landline: false }), "{text} in {region:?}");
        1
    }

    #[test]
    fn shortcut_agrees_with_library_for_every_prefix() {
        let regions = [None, "UA".parse().ok(), "PL".parse().ok(), "DE".parse().ok()];
        for prefix in 0..10_000_u64 {
            for rest in [0, 99_999, 12_345 + prefix] {
                for spelling in SPELLINGS {
                    for region in regions {
                        check_agreement(&format!("{spelling}{prefix:04}{rest:05}"), region);
                    }
                }
            }
        }
    }

    /// The numbers of so many countries, of whatever kind, under regions in which they are and are not national.
    #[test]
    fn shortcut_agrees_with_library_in_many_countries() {
        const COUNTRIES: [&str; 40] = [
            "UA", "PL", "DE", "RO", "MD", "HU", "SK", "CZ", "AT", "CH", "IT", "FR", "ES", "PT", "GB", "IE", "NL", "BE",
            "SE", "NO", "FI", "DK", "EE", "LV", "LT", "BG", "GR", "TR", "GE", "KZ", "RU", "IL", "IN", "CN", "JP", "US",
            "MX", "BR", "AU", "ZA",
        ];
        let chance = std::cell::Cell::new(20_261_123_u64);
        let below = |limit: u64| {
            chance.set(chance.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
            (chance.get() >> 33) % limit
        };
        let mut short = 0;
        for number in 0..100_000 {
            let home: Region = COUNTRIES[number % COUNTRIES.len()].parse().unwrap();
            let code = PHONE_NUMBER_UTIL.get_country_code_for_region(home.to_library_region()).unwrap();
            let begin = ["+", "", "00", "0", "8", "80"][below(6) as usize];
            let code = if begin.len() == 2 || below(2) == 0 { code.to_string() } else { String::new() };
            // Most begin as a Ukrainian mobile number does.
            let prefix = [39, 50, 63, 67, 73, 91, 99, 12, 44, 80][below(10) as usize];
            let text = format!("{begin}{code}{prefix}{:0width$}", below(1_000_000), width = 5 + below(4) as usize);
            for region in [None, Some(home), Some(Region::UKRAINE), COUNTRIES[below(40) as usize].parse().ok()] {
                short += check_agreement(&text, region);
            }
        }
        assert!(short > 1_000, "{short}");
    }

    #[test]
    fn shortcut_covers_every_known_mobile_prefix() {
        let mobile = |prefix: u64| {
            [0, 1_111_111, 9_999_999].iter().all(|rest| {
                PHONE_NUMBER_UTIL
                    .parse(format!("+380{prefix:02}{rest:07}"), None)
                    .is_ok_and(|number| number.get_type() == PhoneNumberType::Mobile)
            })
        };
        for prefix in 0..100 {
            assert_eq!(MOBILE >> prefix & 1 == 1, mobile(prefix), "{prefix:02}");
        }
    }

    proptest! {
        #[test]
        fn shortcut_agrees_with_library(text in r"(\+|00|)(380|38|8|)[0-9]{7,12}", region in 0_usize..4) {
            check_agreement(&text, [None, "UA".parse().ok(), "RU".parse().ok(), "DE".parse().ok()][region]);
        }
    }
}
