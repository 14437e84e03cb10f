//! A cell becomes a phone number, or a reason that a marketer understands.
//!
//! Whether a number exists is the phone library's answer, and this is the only file that asks it; `short_cut` knows a part of
//! its answers by heart.
//! Reasons never repeat the number.

use rlibphonenumber::{
    NumberLengthType, PHONE_NUMBER_UTIL, ParseError, PhoneNumber, PhoneNumberFormat, PhoneNumberType, ValidationError,
};

use super::digits::DialledDigits;
use super::problem::PhoneProblem;
use super::short_cut::parse_ukrainian_mobile;
use crate::domain::{Phone, Region};

/// A number that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidNumber {
    /// Its digits.
    pub phone: Phone,
    /// Whether it is surely no mobile phone's: a landline, or a service such as a free call.
    pub landline: bool,
}

/// The number that a cell holds, in international form.
///
/// # Errors
///
/// Those of [`parse_number`].
pub fn parse_phone_number(text: &str, region: Option<Region>) -> Result<Phone, PhoneProblem> {
    parse_number(text, region).map(|number| number.phone)
}

/// The number that a cell holds, in international form, and what kind it is of.
///
/// A plus sign or `00` begins an international number. Digits alone are a national number of
/// `region` if that is valid, else they are read as if a plus sign stood before them. Where they
/// begin with the code of the region itself and both readings are valid, the one that is mobile
/// is taken. In Ukraine the old `8` before a national number is understood.
///
/// # Errors
///
/// The cell is empty, is not one number, its number does not exist, or it may be either of two.
pub fn parse_number(text: &str, region: Option<Region>) -> Result<ValidNumber, PhoneProblem> {
    let number = DialledDigits::parse(text)?;
    match parse_ukrainian_mobile(number, region) {
        Some(phone) => Ok(ValidNumber { phone, landline: false }),
        None => look_up(number, region),
    }
}

/// Whether the cell holds digits like those of a whole number, valid or not.
pub(super) fn resembles_number(text: &str) -> bool {
    DialledDigits::parse(text).is_ok_and(DialledDigits::is_long)
}

/// The library's answer, and what no library knows about digits without a plus sign.
pub(super) fn look_up(number: DialledDigits, region: Option<Region>) -> Result<ValidNumber, PhoneProblem> {
    let digits = number.format_digits();
    if number.plus {
        return parse_international(&digits);
    }
    let national = region.map(|region| parse_in_region(&digits, region));
    if let Some(answer @ (Ok(_) | Err(PhoneProblem::Ambiguous))) = national {
        return answer;
    }
    if region == Some(Region::UKRAINE)
        && let Some(behind_eight) = digits.strip_prefix("80").filter(|rest| rest.len() == 9)
        && let Ok(number) = parse_international(&format!("380{behind_eight}"))
    {
        return Ok(number);
    }
    match (digits.strip_prefix("00"), national) {
        (Some(behind_zeros), None) => parse_international(behind_zeros),
        // Where another prefix is dialled, the zeros may be a part of the number: nothing else of it is left out then.
        (Some(behind_zeros), Some(problem)) => match parse_international(behind_zeros) {
            Ok(number) if number.phone.to_string() != behind_zeros => problem,
            answer => answer,
        },
        (None, None) if digits.starts_with('0') => Err(PhoneProblem::National),
        (None, None) => parse_international(&digits),
        (None, Some(problem)) => parse_international(&digits).or(problem),
    }
}

/// What digits mean in their region, where they may begin with its own calling code.
///
/// The library reads that code as the beginning of a national number wherever such a one may be so long.
fn parse_in_region(digits: &str, region: Region) -> Result<ValidNumber, PhoneProblem> {
    let national = LibraryNumber::parse(digits, Some(region))?;
    let code = PHONE_NUMBER_UTIL.get_country_code_for_region(region.to_library_region());
    if !code.is_some_and(|code| digits.starts_with(&code.to_string())) {
        return national.to_valid_number();
    }
    let Ok(coded) = LibraryNumber::parse(&format!("+{digits}"), None) else { return national.to_valid_number() };
    match (national.to_valid_number()?, coded.to_valid_number()?) {
        (home, abroad) if home == abroad => Ok(home),
        (home, _) if national.is_mobile() && !coded.is_mobile() => Ok(home),
        (_, abroad) if coded.is_mobile() && !national.is_mobile() => Ok(abroad),
        _ => Err(PhoneProblem::Ambiguous),
    }
}

fn parse_international(digits: &str) -> Result<ValidNumber, PhoneProblem> {
    LibraryNumber::parse(&format!("+{digits}"), None)?.to_valid_number()
}

/// A valid number of the library.
struct LibraryNumber {
    number: PhoneNumber,
    kind: PhoneNumberType,
}

impl LibraryNumber {
    /// The valid number that the library finds in digits.
    fn parse(digits: &str, region: Option<Region>) -> Result<Self, PhoneProblem> {
        let number =
            PHONE_NUMBER_UTIL.parse(digits, region.map(Region::to_library_region)).map_err(|error| match error {
                ParseError::InvalidCountryCode => PhoneProblem::Country,
                ParseError::TooLongNsn => PhoneProblem::TooLong,
                ParseError::NotANumber(_) | ParseError::TooShortAfterIdd | ParseError::TooShortNsn => {
                    PhoneProblem::TooShort
                }
            })?;
        match number.get_type() {
            // A number is valid if it is of a type.
            PhoneNumberType::Unknown => Err(explain_invalid(&number)),
            kind => Ok(Self { number, kind }),
        }
    }

    fn is_mobile(&self) -> bool {
        matches!(self.kind, PhoneNumberType::Mobile | PhoneNumberType::FixedLineOrMobile)
    }

    fn to_valid_number(&self) -> Result<ValidNumber, PhoneProblem> {
        use PhoneNumberType::{FixedLine, PremiumRate, SharedCost, TollFree, UAN, VoiceMail};
        let written = self.number.format_as(PhoneNumberFormat::E164);
        let phone = written.trim_start_matches('+').parse().ok().and_then(Phone::new).ok_or(PhoneProblem::TooLong)?;
        let landline = matches!(self.kind, FixedLine | TollFree | PremiumRate | SharedCost | UAN | VoiceMail);
        Ok(ValidNumber { phone, landline })
    }
}

fn explain_invalid(number: &PhoneNumber) -> PhoneProblem {
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

    fn parse_in(text: &str, region: &str) -> Result<u64, PhoneProblem> {
        parse_phone_number(text, region.parse().ok()).map(Phone::to_u64)
    }

    const KYIV: u64 = 380_501_234_567;

    #[test]
    fn ukrainian_number_is_read_in_many_spellings() {
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
            "3.80501234567E+11",
            "3,80501234567e11",
        ] {
            assert_eq!(parse_in(text, "UA"), Ok(KYIV), "{text:?} in UA");
            assert_eq!(parse_in(text, ""), Ok(KYIV), "{text:?} without a region");
        }
        for text in ["0501234567", "501234567", "80501234567", "8 (050) 123-45-67", "050 123 45 67"] {
            assert_eq!(parse_in(text, "UA"), Ok(KYIV), "{text:?} in UA");
            assert!(parse_in(text, "").is_err(), "{text:?} without a region");
        }
    }

    #[test]
    fn foreign_digits_are_understood_with_a_region() {
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
            assert_eq!(parse_in(text, region), Ok(expected), "{text:?} in {region}");
        }
    }

    #[test]
    fn double_zero_is_no_prefix_where_not_dialled() {
        assert_eq!(parse_in("+789625276982", ""), Ok(79_625_276_982), "the library leaves the 8 of Russia out");
        assert!(parse_in("00789625276982", "JP").is_err());
    }

    #[test]
    fn invalid_number_has_a_reason() {
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
            ("0501234567 або 0671234567", "UA", Several),
            ("+380501234567 и +380671234567", "", Several),
            ("+49 30 123456, 12", "", Symbols),
            ("3.80501E+11", "UA", Rounded),
            ("3,80501E+11", "UA", Rounded),
            ("0501234567 доб. 12", "UA", Letters),
            ("нема", "UA", Letters),
            ("Olena Koval <+380501234567>", "UA", Words),
            ("Koval, Olena: 0501234567", "UA", Words),
            ("тел. 050 123 45 67", "UA", Words),
            ("flat 12, Kyiv 01001", "UA", Letters),
            ("tel:", "UA", Empty),
            ("O501234567", "UA", Letters),
            ("*123#", "UA", Sign('*')),
            ("0501234567\u{20e3}", "UA", Sign('\u{20e3}')),
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
            assert_eq!(parse_in(text, region), Err(problem), "{text:?} in {region:?}");
        }
    }

    #[test]
    fn invalid_character_is_named() {
        for (text, named) in [
            ("050*1234567", "`*`"),
            ("0501234567☎", "`☎` (`\\u{260e}`)"),
            ("0\u{20e3}501234567", "`\\u{20e3}`"),
            ("\u{1}0501234567", "`\\u{1}`"),
        ] {
            let problem = parse_in(text, "UA").unwrap_err();
            assert_eq!(
                problem.to_string(),
                format!("a character that a phone number cannot contain: {named}"),
                "{text:?}"
            );
            assert_eq!(PhoneProblem::from_reason(&problem.to_string()), Some(PhoneProblem::Symbols));
        }
        assert_eq!(PhoneProblem::from_reason(&PhoneProblem::Rounded.to_string()), Some(PhoneProblem::Rounded));
        assert_eq!(PhoneProblem::from_reason("the text is empty"), None);
    }

    #[test]
    fn reason_never_repeats_the_number() {
        for text in ["0501234567, 0671234567", "3.80501E+11", "12345", "+380001234567", "0501234567 доб. 12"] {
            let reason = parse_in(text, "UA").unwrap_err().to_string();
            assert!(!reason.chars().any(|character| character.is_ascii_digit()), "{reason}");
        }
    }

    #[test]
    fn digits_with_own_country_code_stay_the_same_number() {
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
            assert_eq!(parse_in(text, region), expected, "{text:?} in {region}");
        }
    }

    #[test]
    fn mobile_number_is_read_or_rejected_in_any_form() {
        let mut regions = 0;
        for region in PHONE_NUMBER_UTIL.get_supported_regions() {
            let example = PHONE_NUMBER_UTIL.get_example_number_for_type_and_region(region, PhoneNumberType::Mobile);
            let Ok(example) = example else { continue };
            let home: Region = region.to_string().parse().unwrap();
            let example: Phone =
                example.format_as(PhoneNumberFormat::E164)[1..].parse().ok().and_then(Phone::new).unwrap();
            for end in (0..10_000).step_by(1_111) {
                let known = LibraryNumber::parse(&format!("+{}", example.to_u64() / 10_000 * 10_000 + end), None);
                let Some(known) = known.ok().filter(LibraryNumber::is_mobile) else { continue };
                let expected = known.to_valid_number().unwrap().phone;
                let dialled = known.number.format_as(PhoneNumberFormat::National).into_owned();
                let bare = known.number.get_national_significant_number();
                for text in [expected.to_string(), format!("+{expected}"), format!("00{expected}"), dialled, bare] {
                    let got = parse_phone_number(&text, Some(home));
                    assert!(got.is_err() || got == Ok(expected), "{text:?} in {region}: {}", got.unwrap().to_u64());
                }
            }
            assert_eq!(parse_phone_number(&example.to_string(), Some(home)), Ok(example), "{region}");
            regions += 1;
        }
        assert!(regions > 200);
    }

    proptest! {
        #[test]
        fn any_text_is_a_number_or_has_a_problem(text in any::<String>(), digits in r"[+0-9 ,;/.eE()-]{0,30}") {
            for text in [text, digits] {
                for region in [None, "UA".parse().ok(), "US".parse().ok()] {
                    if let Ok(phone) = parse_phone_number(&text, region) {
                        prop_assert_eq!(parse_phone_number(&format!("+{phone}"), None), Ok(phone));
                    }
                }
            }
        }
    }
}
