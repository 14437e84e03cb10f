//! A cell becomes a phone number, or a reason that a marketer understands.
//!
//! Whether a number exists is the phone library's answer, and this is the only file that asks it.
//! Reasons never repeat the number.

use rlibphonenumber::{
    NumberLengthType, PHONE_NUMBER_UTIL, ParseError, PhoneNumber, PhoneNumberFormat, PhoneNumberType, ValidationError,
};

use super::digits::Digits;
use super::problem::PhoneProblem;
use crate::domain::{Phone, Region};

/// The number that a cell holds, in international form.
///
/// A plus sign or `00` begins an international number. Digits alone are a national number of
/// `region` if that is valid, else they are read as if a plus sign stood before them. Where they
/// begin with the code of the region itself and both readings are valid, the one that is mobile
/// is taken. In Ukraine the old `8` before a national number is understood.
///
/// # Errors
///
/// The cell is empty, is not one number, its number does not exist, or it may be either of two.
pub fn parse(text: &str, region: Option<Region>) -> Result<Phone, PhoneProblem> {
    let number = Digits::read(text)?;
    ukrainian_mobile(number, region).map_or_else(|| look_up(number, region), Ok)
}

/// Whether the cell holds digits like those of a whole number, valid or not.
pub(super) fn resembles_number(text: &str) -> bool {
    Digits::read(text).is_ok_and(Digits::is_long)
}

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

/// The answer of [`look_up`] for a Ukrainian mobile number, some thirty times faster.
fn ukrainian_mobile(number: Digits, region: Option<Region>) -> Option<Phone> {
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

/// The library's answer, and what no library knows about digits without a plus sign.
fn look_up(number: Digits, region: Option<Region>) -> Result<Phone, PhoneProblem> {
    let digits = number.digits();
    if number.plus {
        return international(&digits);
    }
    let national = region.map(|region| at_home(&digits, region));
    if let Some(answer @ (Ok(_) | Err(PhoneProblem::Ambiguous))) = national {
        return answer;
    }
    if region == Some(Region::UKRAINE)
        && let Some(behind_eight) = digits.strip_prefix("80").filter(|rest| rest.len() == 9)
        && let Ok(phone) = international(&format!("380{behind_eight}"))
    {
        return Ok(phone);
    }
    match (digits.strip_prefix("00"), national) {
        (Some(behind_zeros), None) => international(behind_zeros),
        // Where another prefix is dialled, the zeros may be a part of the number: nothing else of it is left out then.
        (Some(behind_zeros), Some(problem)) => match international(behind_zeros) {
            Ok(phone) if phone.to_string() != behind_zeros => problem,
            answer => answer,
        },
        (None, None) if digits.starts_with('0') => Err(PhoneProblem::National),
        (None, None) => international(&digits),
        (None, Some(problem)) => international(&digits).or(problem),
    }
}

/// What digits mean in their region, where they may begin with its own calling code.
///
/// The library reads that code as the beginning of a national number wherever such a one may be so long.
fn at_home(digits: &str, region: Region) -> Result<Phone, PhoneProblem> {
    let national = library(digits, Some(region))?;
    let code = PHONE_NUMBER_UTIL.get_country_code_for_region(region.of_library());
    if !code.is_some_and(|code| digits.starts_with(&code.to_string())) {
        return phone(&national);
    }
    let Ok(coded) = library(&format!("+{digits}"), None) else { return phone(&national) };
    match (phone(&national)?, phone(&coded)?) {
        (home, abroad) if home == abroad => Ok(home),
        (home, _) if is_mobile(&national) && !is_mobile(&coded) => Ok(home),
        (_, abroad) if is_mobile(&coded) && !is_mobile(&national) => Ok(abroad),
        _ => Err(PhoneProblem::Ambiguous),
    }
}

fn is_mobile(number: &PhoneNumber) -> bool {
    matches!(number.get_type(), PhoneNumberType::Mobile | PhoneNumberType::FixedLineOrMobile)
}

fn international(digits: &str) -> Result<Phone, PhoneProblem> {
    library(&format!("+{digits}"), None).and_then(|number| phone(&number))
}

/// The valid number that the library finds in digits.
fn library(number: &str, region: Option<Region>) -> Result<PhoneNumber, PhoneProblem> {
    let parsed = PHONE_NUMBER_UTIL.parse(number, region.map(Region::of_library)).map_err(|error| match error {
        ParseError::InvalidCountryCode => PhoneProblem::Country,
        ParseError::TooLongNsn => PhoneProblem::TooLong,
        ParseError::NotANumber(_) | ParseError::TooShortAfterIdd | ParseError::TooShortNsn => PhoneProblem::TooShort,
    })?;
    if parsed.is_valid() { Ok(parsed) } else { Err(improbable(&parsed)) }
}

fn phone(number: &PhoneNumber) -> Result<Phone, PhoneProblem> {
    let written = number.format_as(PhoneNumberFormat::E164);
    written.trim_start_matches('+').parse().ok().and_then(Phone::new).ok_or(PhoneProblem::TooLong)
}

fn improbable(number: &PhoneNumber) -> PhoneProblem {
    match number.is_possible_with_reason() {
        Ok(NumberLengthType::IsPossibleLocalOnly) | Err(ValidationError::TooShort) => PhoneProblem::TooShort,
        Ok(NumberLengthType::IsPossible) => PhoneProblem::Unassigned,
        Err(ValidationError::TooLong) => PhoneProblem::TooLong,
        Err(ValidationError::InvalidLength) => PhoneProblem::Length,
        Err(ValidationError::InvalidCountryCode) => PhoneProblem::Country,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str, region: &str) -> Result<u64, PhoneProblem> {
        parse(text, region.parse().ok()).map(Phone::get)
    }

    const KYIV: u64 = 380_501_234_567;

    #[test]
    fn one_ukrainian_number_has_many_spellings() {
        for text in [
            "+380501234567",
            "380501234567",
            "00380501234567",
            "+38 (050) 123-45-67",
            "38 050 123 45 67",
            "380501234567.0",
            "'+380501234567",
            "３８０５０１２３４５６７",
            "+380\u{a0}50\u{a0}1234567",
            "+380 050 123 45 67",
        ] {
            assert_eq!(read(text, "UA"), Ok(KYIV), "{text:?} in UA");
            assert_eq!(read(text, ""), Ok(KYIV), "{text:?} without a region");
        }
        for text in ["0501234567", "501234567", "80501234567", "8 (050) 123-45-67", "050 123 45 67"] {
            assert_eq!(read(text, "UA"), Ok(KYIV), "{text:?} in UA");
            assert!(read(text, "").is_err(), "{text:?} without a region");
        }
    }

    #[test]
    fn digits_of_another_country_are_understood_under_a_region() {
        for (text, region, expected) in [
            ("48501234567", "UA", 48_501_234_567),
            ("0048501234567", "UA", 48_501_234_567),
            ("380501234567", "PL", KYIV),
            ("00380501234567", "US", KYIV),
            ("0079625276982", "JP", 79_625_276_982),
            ("501234567", "PL", 48_501_234_567),
            ("0441234567", "UA", 380_441_234_567),
            ("80441234567", "UA", 380_441_234_567),
            ("89161234567", "RU", 79_161_234_567),
            ("0612345678", "IT", 390_612_345_678),
            ("+390612345678", "UA", 390_612_345_678),
            ("2025550123", "US", 12_025_550_123),
        ] {
            assert_eq!(read(text, region), Ok(expected), "{text:?} in {region}");
        }
    }

    #[test]
    fn two_zeros_of_a_country_that_dials_others_abroad_make_no_number_of_another() {
        assert_eq!(read("+789625276982", ""), Ok(79_625_276_982), "the library leaves the 8 of Russia out");
        assert!(read("00789625276982", "JP").is_err());
    }

    #[test]
    fn what_is_no_number_has_its_reason() {
        use PhoneProblem::*;
        for (text, region, problem) in [
            ("", "UA", Empty),
            ("  -  ", "UA", Empty),
            ("+", "UA", Empty),
            ("0501234567, 0671234567", "UA", Several),
            ("0501234567 / 0671234567", "UA", Several),
            ("0501234567; +380671234567", "UA", Several),
            ("0501234567\n0671234567", "UA", Several),
            ("0501234567 0671234567", "UA", Several),
            ("+380501234567+380671234567", "UA", Several),
            ("+49 30 123456, 12", "", Symbols),
            ("3.80501E+11", "UA", Rounded),
            ("3,80501E+11", "UA", Rounded),
            ("3.80501234567e11", "", Rounded),
            ("0501234567 доб. 12", "UA", Letters),
            ("нема", "UA", Letters),
            ("O501234567", "UA", Letters),
            ("*123#", "UA", Symbols),
            ("12345", "UA", TooShort),
            ("050123456789", "UA", TooLong),
            ("+3805012345678901", "", TooLong),
            ("3805012345678901234567", "", TooLong),
            ("38050123456", "", TooShort),
            ("+47123456", "", Length),
            ("0501234567", "", National),
            ("+999501234567", "", Country),
            ("+380001234567", "UA", Unassigned),
        ] {
            assert_eq!(read(text, region), Err(problem), "{text:?} in {region:?}");
        }
    }

    #[test]
    fn a_reason_never_repeats_the_number() {
        for text in ["0501234567, 0671234567", "3.80501E+11", "12345", "+380001234567", "0501234567 доб. 12"] {
            let reason = read(text, "UA").unwrap_err().to_string();
            assert!(!reason.chars().any(|character| character.is_ascii_digit()), "{reason}");
        }
    }

    #[test]
    fn digits_with_the_code_of_their_own_region_are_never_another_persons_number() {
        for (text, region, expected) in [
            ("4915123456789", "DE", Ok(4_915_123_456_789)),
            ("491701234567", "DE", Ok(491_701_234_567)),
            ("0176/12345678", "DE", Ok(4_917_612_345_678)),
            ("0151-23456789", "DE", Ok(4_915_123_456_789)),
            ("015123456789", "DE", Ok(4_915_123_456_789)),
            ("15123456789", "DE", Ok(4_915_123_456_789)),
            ("38343412230", "XK", Ok(38_343_412_230)),
            ("3331234567", "IT", Ok(393_331_234_567)),
            // Emden without its zero, or Dusseldorf with the code of Germany.
            ("492112345678", "DE", Err(PhoneProblem::Ambiguous)),
            ("0492112345678", "DE", Ok(49_492_112_345_678)),
            ("+492112345678", "DE", Ok(492_112_345_678)),
        ] {
            assert_eq!(read(text, region), expected, "{text:?} in {region}");
        }
    }

    #[test]
    fn a_mobile_number_of_any_region_is_itself_or_refused_however_it_is_written() {
        let mut regions = 0;
        for region in PHONE_NUMBER_UTIL.get_supported_regions() {
            let example = PHONE_NUMBER_UTIL.get_example_number_for_type_and_region(region, PhoneNumberType::Mobile);
            let Ok(example) = example else { continue };
            let home: Region = region.to_string().parse().unwrap();
            let example = phone(&example).unwrap();
            for end in (0..10_000).step_by(1_111) {
                let number = library(&format!("+{}", example.get() / 10_000 * 10_000 + end), None);
                let Some(number) = number.ok().filter(is_mobile) else { continue };
                let expected = phone(&number).unwrap();
                let dialled = number.format_as(PhoneNumberFormat::National).into_owned();
                let bare = number.get_national_significant_number();
                for text in [expected.to_string(), format!("+{expected}"), format!("00{expected}"), dialled, bare] {
                    let got = parse(&text, Some(home));
                    assert!(got.is_err() || got == Ok(expected), "{text:?} in {region}: {}", got.unwrap().get());
                }
            }
            assert_eq!(parse(&example.to_string(), Some(home)), Ok(example), "{region}");
            regions += 1;
        }
        assert!(regions > 200);
    }

    /// What stands before the nine digits of a Ukrainian number when it is dialled.
    const SPELLINGS: [&str; 6] = ["+380", "380", "00380", "0", "80", ""];

    fn agrees(text: &str, region: Option<Region>) {
        let number = Digits::read(text).ok().unwrap();
        if let Some(phone) = ukrainian_mobile(number, region) {
            assert_eq!(look_up(number, region).map(Phone::get), Ok(phone.get()), "{text} in {region:?}");
        }
    }

    #[test]
    fn the_short_cut_agrees_with_the_library_for_every_prefix() {
        let regions = [None, "UA".parse().ok(), "PL".parse().ok(), "DE".parse().ok()];
        for prefix in 0..10_000_u64 {
            for rest in [0, 99_999, 12_345 + prefix] {
                for spelling in SPELLINGS {
                    for region in regions {
                        agrees(&format!("{spelling}{prefix:04}{rest:05}"), region);
                    }
                }
            }
        }
    }

    #[test]
    fn the_short_cut_serves_every_mobile_prefix_that_the_library_knows() {
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
        fn the_short_cut_agrees_with_the_library(text in r"(\+|00|)(380|38|8|)[0-9]{7,12}", region in 0_usize..4) {
            agrees(&text, [None, "UA".parse().ok(), "RU".parse().ok(), "DE".parse().ok()][region]);
        }

        #[test]
        fn any_text_is_a_number_or_has_a_reason(text in any::<String>(), digits in r"[+0-9 ,;/.eE()-]{0,30}") {
            for text in [text, digits] {
                for region in [None, "UA".parse().ok(), "US".parse().ok()] {
                    if let Ok(phone) = parse(&text, region) {
                        prop_assert_eq!(parse(&format!("+{phone}"), None), Ok(phone));
                    }
                }
            }
        }
    }
}
