//! Phone numbers in cells: their digits, parsing, and reasons for rejection that a marketer understands.
//!
//! A cell's text is reduced to a plus sign and digits. Then the phone number library decides whether the number exists.
//! Only this file uses that library. For Ukrainian mobile numbers, a shortcut gives the same answer about thirty times
//! faster. Reasons never repeat the number.

use std::borrow::Cow;

use campaign_core::domain::{Phone, Region, is_invisible};
use rlibphonenumber::{
    NumberLengthType, PHONE_NUMBER_UTIL, ParseError, PhoneNumber, PhoneNumberFormat, PhoneNumberType, ValidationError,
};

/// An existing phone number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidNumber {
    /// The digits.
    pub phone: Phone,
    /// Whether the number is certainly not mobile: a landline, or a service such as a toll-free number.
    pub landline: bool,
}

/// Parses the phone number in a cell into international format.
///
/// # Errors
///
/// The errors of [`parse_number`].
pub fn parse_phone_number(text: &str, region: Option<Region>) -> Result<Phone, PhoneProblem> {
    parse_number(text, region).map(|number| number.phone)
}

/// Parses the phone number in a cell into international format, and determines its type.
///
/// A plus sign or `00` begins an international number. Digits alone are a national number of `region` if that is valid;
/// otherwise they are read as if a plus sign preceded them. If the digits begin with the calling code of the region and
/// both readings are valid, the mobile one is chosen. In Ukraine, the old prefix `8` before a national number is
/// accepted.
///
/// # Errors
///
/// The cell is empty, is not a single number, does not contain an existing number, or is ambiguous.
pub fn parse_number(text: &str, region: Option<Region>) -> Result<ValidNumber, PhoneProblem> {
    let number = DialledDigits::parse(text)?;
    match parse_ukrainian_mobile(number, region) {
        Some(phone) => Ok(ValidNumber { phone, landline: false }),
        None => resolve_number(number, region),
    }
}

/// Mobile numbers of a region for made-up recipients, always in the same order. If no region is given, the numbers are
/// Ukrainian.
pub fn example_mobile_numbers(region: Option<Region>) -> impl Iterator<Item = Phone> {
    /// The Ukrainian number that precedes the examples.
    const UKRAINIAN: u64 = 380_500_000_000;
    let library = region.filter(|region| *region != Region::UKRAINE).map(Region::to_library_region);
    let example = library.and_then(|region| {
        PHONE_NUMBER_UTIL.get_example_number_for_type_and_region(region, PhoneNumberType::Mobile).ok()
    });
    let example = example.and_then(|number| number.format_as(PhoneNumberFormat::E164)[1..].parse::<u64>().ok());
    // The last four digits count up from 0001.
    let base = example.map_or(UKRAINIAN, |number| number / 10_000 * 10_000);
    let is_mobile = |phone: &Phone| parse_number(&format!("+{phone}"), None).is_ok_and(|number| !number.landline);
    (1..10_000).filter_map(move |end| Phone::new(base + end)).filter(is_mobile)
}

/// Whether the cell has as many digits as a complete number, valid or not.
pub(super) fn resembles_number(text: &str) -> bool {
    DialledDigits::parse(text).is_ok_and(DialledDigits::is_long)
}

/// Interprets a number with the phone library and, if it has no plus sign, with our own rules.
pub(super) fn resolve_number(number: DialledDigits, region: Option<Region>) -> Result<ValidNumber, PhoneProblem> {
    let digits = number.format_digits();
    if number.plus {
        return parse_international(&digits);
    }
    let national = region.map(|region| parse_in_region(&digits, region));
    if let Some(answer @ (Ok(_) | Err(PhoneProblem::Ambiguous))) = national {
        return answer;
    }
    if region == Some(Region::UKRAINE)
        && let Some(after_eight) = digits.strip_prefix("80").filter(|rest| rest.len() == 9)
        && let Ok(number) = parse_international(&format!("380{after_eight}"))
    {
        return Ok(number);
    }
    match (digits.strip_prefix("00"), national) {
        (Some(after_zeros), None) => parse_international(after_zeros),
        // In countries with another international prefix, the zeros can be part of the number. So the digits after them
        // must be a complete international number.
        (Some(after_zeros), Some(problem)) => match parse_international(after_zeros) {
            Ok(number) if number.phone.to_string() != after_zeros => problem,
            answer => answer,
        },
        (None, None) if digits.starts_with('0') => Err(PhoneProblem::National),
        (None, None) => parse_international(&digits),
        (None, Some(problem)) => parse_international(&digits).or(problem),
    }
}

/// Parses digits as a number of the region, with or without the calling code of the region.
///
/// The library decides by itself whether leading digits are a calling code, so both readings are compared.
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

/// A valid number as the library represents it.
struct LibraryNumber {
    number: PhoneNumber,
    kind: PhoneNumberType,
}

impl LibraryNumber {
    /// Parses digits with the library. Only valid numbers are accepted.
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
            // A number without a known type is invalid.
            PhoneNumberType::Unknown => Err(explain_invalid(&number)),
            kind => Ok(Self { number, kind }),
        }
    }

    fn is_mobile(&self) -> bool {
        matches!(self.kind, PhoneNumberType::Mobile | PhoneNumberType::FixedLineOrMobile)
    }

    fn to_valid_number(&self) -> Result<ValidNumber, PhoneProblem> {
        use PhoneNumberType::{FixedLine, PremiumRate, SharedCost, TollFree, UAN, VoiceMail};
        let formatted = self.number.format_as(PhoneNumberFormat::E164);
        let phone = formatted.trim_start_matches('+').parse().ok().and_then(Phone::new).ok_or(PhoneProblem::TooLong)?;
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

/// The factor that puts Ukraine's country code before the nine digits of a national number: `380 * NATIONAL + number`.
const NATIONAL: u64 = 1_000_000_000;
/// The first two of the nine digits of a mobile number, as bits: `39 50 63 66 67 68 71 72 73 75 77 91..=99`.
///
/// In the library's metadata, the other seven digits of these mobile numbers are arbitrary,
/// `(?:39|50|6[36-8]|7[1-357]|9[1-9])\d{7}`. A test checks that both agree.
const MOBILE: u128 = {
    let prefixes = [39, 50, 63, 66, 67, 68, 71, 72, 73, 75, 77, 91, 92, 93, 94, 95, 96, 97, 98, 99];
    let (mut bits, mut index) = (0, 0);
    while index < prefixes.len() {
        bits |= 1_u128 << prefixes[index];
        index += 1;
    }
    bits
};

/// Parses a Ukrainian mobile number without the library, which would return the same number. `None` for all other
/// numbers.
pub(super) fn parse_ukrainian_mobile(number: DialledDigits, region: Option<Region>) -> Option<Phone> {
    let in_ukraine = region == Some(Region::UKRAINE);
    let is_possible = match (number.len, number.value / NATIONAL) {
        (12, 380) => number.plus || in_ukraine || region.is_none(),
        (14, 380) => !number.plus && (in_ukraine || region.is_none()),
        (9 | 10, 0) | (11, 80) => in_ukraine && !number.plus,
        _ => false,
    };
    let national = number.value % NATIONAL;
    let prefix = national / 10_000_000;
    if is_possible && MOBILE >> prefix & 1 == 1 { Phone::new(380 * NATIONAL + national) } else { None }
}

/// The reason why a cell does not contain a number that can receive messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PhoneProblem {
    /// The cell is empty.
    #[error("no phone number")]
    Empty,
    /// The cell contains several numbers.
    #[error("more than one number in the cell; put each in a column of its own")]
    Several,
    /// A spreadsheet wrote the number in scientific notation.
    #[error(
        "a spreadsheet has shortened the number and its last digits are lost; format the column as text and enter it again"
    )]
    Rounded,
    /// The cell contains words.
    #[error("letters instead of a phone number")]
    Letters,
    /// Words precede the number.
    #[error("text next to the number; put the number in its own column")]
    Words,
    /// The row repeats the headers of the list.
    #[error("the row repeats the header; delete it")]
    Header,
    /// The cell contains characters that phone numbers cannot have.
    #[error("characters that a phone number cannot contain")]
    Symbols,
    /// The cell contains this character, which phone numbers cannot have.
    #[error("{}{}", SIGN, format_character(*.0))]
    Sign(char),
    /// Digits are missing.
    #[error("too short for a phone number")]
    TooShort,
    /// There are too many digits.
    #[error("too long for a phone number")]
    TooLong,
    /// The number is national, but the region is unknown.
    #[error("no country code; write the number with `+`, or set `region`")]
    National,
    /// Numbers of this country have other lengths.
    #[error("wrong number of digits for its country")]
    Length,
    /// No country has this calling code.
    #[error("unknown country code")]
    Country,
    /// The number does not exist in its country.
    #[error("not a valid number in its country")]
    Unassigned,
    /// The digits are one number with a country code, and another one without.
    #[error(
        "ambiguous, because the digits are a valid number both with and without a country code; write it with `+`, or in national format"
    )]
    Ambiguous,
}

/// The beginning of the reason that names a sign.
const SIGN: &str = "a character that a phone number cannot contain: ";

/// Formats a character in backticks, followed by the code point unless the character is visible ASCII. A character that
/// cannot be displayed is formatted as its code point alone.
fn format_character(sign: char) -> String {
    let (escaped, code) = (sign.escape_debug().to_string(), sign.escape_unicode());
    match sign {
        _ if sign.is_ascii_graphic() => format!("`{sign}`"),
        _ if escaped.starts_with('\\') => format!("`{code}`"),
        _ => format!("`{sign}` (`{code}`)"),
    }
}

impl PhoneProblem {
    /// The problem whose reason is this text. `None` if no problem has this reason.
    pub fn from_reason(reason: &str) -> Option<Self> {
        let sign = || reason.starts_with(SIGN).then_some(Self::Symbols);
        Self::ALL.into_iter().find(|problem| problem.to_string() == reason).or_else(sign)
    }

    /// All problems except [`Self::Sign`], whose reason depends on the character.
    pub const ALL: [PhoneProblem; 14] = [
        PhoneProblem::Empty,
        PhoneProblem::Several,
        PhoneProblem::Rounded,
        PhoneProblem::Letters,
        PhoneProblem::Words,
        PhoneProblem::Header,
        PhoneProblem::Symbols,
        PhoneProblem::TooShort,
        PhoneProblem::TooLong,
        PhoneProblem::National,
        PhoneProblem::Length,
        PhoneProblem::Country,
        PhoneProblem::Unassigned,
        PhoneProblem::Ambiguous,
    ];
}

/// The digits of a phone number, as dialled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct DialledDigits {
    /// Whether a plus sign precedes the digits.
    pub(super) plus: bool,
    /// The number of digits, including leading zeros.
    pub(super) len: u32,
    /// The digits as one number.
    pub(super) value: u64,
}

/// The minimum number of digits of a complete number.
const MIN_DIGITS: u32 = 7;

impl DialledDigits {
    /// The maximum number of digits. E.164 allows 15, and a prefix can precede them.
    const MAX_LENGTH: u32 = 18;

    /// Parses the phone number in a cell.
    ///
    /// # Errors
    ///
    /// The cell is empty, contains several numbers, or is not a number.
    pub(super) fn parse(text: &str) -> Result<Self, PhoneProblem> {
        if let Some(number) = Self::parse_plain(text) {
            return Ok(number);
        }
        let text = strip_invisible_characters(text);
        let text = strip_decimals(strip_scheme(text.trim()));
        let whole = expand_scientific_notation(text);
        let text = whole.as_deref().unwrap_or(text);
        let mut number = Self { plus: false, len: 0, value: 0 };
        let mut has_separators = false;
        for character in text.chars() {
            if let Some(digit) = digit_value(character) {
                number.len += 1;
                if number.len <= Self::MAX_LENGTH {
                    number.value = number.value * 10 + digit;
                }
                continue;
            }
            match character {
                '+' | '＋' if number.len == 0 => number.plus = true,
                ',' | ';' | '|' | '/' | '\\' | '+' | '＋' | '\n' | '\r' => has_separators = true,
                _ if is_decoration(character) => {}
                _ => return Err(explain_character(text, character)),
            }
        }
        number.check_digit_count(text, has_separators)
    }

    /// Parses a cell of ASCII digits that may follow a plus sign: a fast path for most cells. `None` for other cells.
    fn parse_plain(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('+').unwrap_or(text).as_bytes();
        let len = u32::try_from(digits.len()).ok().filter(|len| (1..=Self::MAX_LENGTH).contains(len))?;
        let mut value = 0;
        for digit in digits {
            value = value * 10 + u64::from(digit.is_ascii_digit().then(|| digit - b'0')?);
        }
        Some(Self { plus: digits.len() < text.len(), len, value })
    }

    /// The digits with leading zeros.
    pub(super) fn format_digits(self) -> String {
        format!("{:0width$}", self.value, width = self.len as usize)
    }

    /// Whether the number is long enough to be complete with its area code.
    pub(super) fn is_long(self) -> bool {
        self.len > MIN_DIGITS + 1
    }

    fn check_digit_count(self, text: &str, has_separators: bool) -> Result<Self, PhoneProblem> {
        if self.len == 0 {
            return Err(PhoneProblem::Empty);
        }
        if has_separators {
            check_parts(text)?;
        }
        if self.len <= Self::MAX_LENGTH {
            return Ok(self);
        }
        let mut words = text.split_whitespace().map(count_digits);
        let has_several_numbers =
            self.len >= 2 * MIN_DIGITS && words.clone().count() > 1 && words.all(|len| len > MIN_DIGITS);
        Err(if has_several_numbers { PhoneProblem::Several } else { PhoneProblem::TooLong })
    }
}

/// Strips the scheme of `tel:+380501234567`, which web pages and address books write.
fn strip_scheme(text: &str) -> &str {
    const SCHEME: &str = "tel:";
    match text.get(..SCHEME.len()) {
        Some(scheme) if scheme.eq_ignore_ascii_case(SCHEME) => &text[SCHEME.len()..],
        _ => text,
    }
}

/// Strips the decimals of `380501234567.0`, which spreadsheets write if they treat a phone number as a quantity.
fn strip_decimals(text: &str) -> &str {
    let whole = text.trim_end_matches('0');
    match whole.strip_suffix(['.', ',']) {
        Some(digits) if whole.len() < text.len() && digits.len() > MIN_DIGITS as usize => {
            let unsigned = digits.strip_prefix('+').unwrap_or(digits);
            if unsigned.bytes().all(|byte| byte.is_ascii_digit()) { digits } else { text }
        }
        _ => text,
    }
}

/// The value of an ASCII, full-width or Arabic digit.
fn digit_value(character: char) -> Option<u64> {
    let zero = match character {
        '0'..='9' => '0',
        '０'..='９' => '０',
        '٠'..='٩' => '٠',
        '۰'..='۹' => '۰',
        _ => return None,
    };
    Some(u64::from(u32::from(character) - u32::from(zero)))
}

/// Whether a character has no meaning in a phone number, such as a dash or a bracket.
fn is_decoration(character: char) -> bool {
    match character {
        '-' | '(' | ')' | '.' | '\'' | '"' | '=' | '[' | ']' | '~' | '_' | '`' => true,
        // Typographic dashes, minus signs, dots and quotation marks.
        '\u{2010}'..='\u{2015}' | '\u{2043}' | '\u{2212}' | '\u{b7}' | '\u{2022}' => true,
        '\u{2018}'..='\u{201f}' | '\u{2bc}' | '\u{b4}' | '\u{ab}' | '\u{bb}' => true,
        // East Asian keyboards.
        '（' | '）' | '－' | '﹣' | '．' | '～' | '\u{301c}' | '\u{30fc}' => true,
        other => other.is_whitespace(),
    }
}

/// The text without invisible characters, which contact lists and messengers add around numbers.
fn strip_invisible_characters(text: &str) -> Cow<'_, str> {
    match !text.is_ascii() && text.contains(is_invisible) {
        true => text.chars().filter(|character| !is_invisible(*character)).collect::<String>().into(),
        false => text.into(),
    }
}

/// The reason why text with this character is not a phone number.
fn explain_character(text: &str, character: char) -> PhoneProblem {
    if !character.is_alphabetic() {
        PhoneProblem::Sign(character)
    } else if is_scientific(text) {
        PhoneProblem::Rounded
    } else if text.split(char::is_alphabetic).filter(|words| count_digits(words) > MIN_DIGITS).count() > 1 {
        PhoneProblem::Several
    } else if has_words_before_number(text) {
        PhoneProblem::Words
    } else {
        PhoneProblem::Letters
    }
}

/// Whether a text is words followed by one complete number, as in `Olena Koval <+380501234567>`.
fn has_words_before_number(text: &str) -> bool {
    let Some(number) = text.find(|character| digit_value(character).is_some()) else { return false };
    let before = &text[..number];
    let is_separator = |character: char| character.is_whitespace() || matches!(character, '<' | ':');
    let has_words = before.rfind(char::is_alphabetic).is_some_and(|last| before[last..].contains(is_separator));
    has_words && text.split(char::is_alphabetic).any(|part| count_digits(part) > MIN_DIGITS + 1)
}

/// Whether the text is a number in scientific notation, such as `3.80501E+11`.
pub(super) fn is_scientific(text: &str) -> bool {
    PowerOfTen::parse(text).is_some()
}

/// The digits of a number in scientific notation, such as `3.80501234538E+11`. `None` if digits are missing, or if the
/// text is not in this notation.
pub fn expand_scientific_notation(text: &str) -> Option<String> {
    let PowerOfTen { plus, whole, fraction, exponent } = PowerOfTen::parse(text)?;
    let (digits, rest) = fraction.split_at_checked(exponent.parse().ok()?)?;
    rest.bytes().all(|digit| digit == b'0').then(|| format!("{plus}{whole}{digits}"))
}

/// A number in scientific notation: `3.80501E+11`.
struct PowerOfTen<'t> {
    /// The plus sign before the number, if any.
    plus: &'t str,
    whole: &'t str,
    fraction: &'t str,
    exponent: &'t str,
}

impl<'t> PowerOfTen<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let (plus, unsigned) = text.split_at(usize::from(text.starts_with('+')));
        let (mantissa, exponent) = unsigned.split_once(['e', 'E'])?;
        let exponent = exponent.strip_prefix('+').unwrap_or(exponent);
        let parts = mantissa.split_once(['.', ',']);
        let (whole, fraction) = parts.unwrap_or((mantissa, ""));
        let is_valid_notation = is_number(whole) && (parts.is_none() || is_number(fraction)) && is_number(exponent);
        is_valid_notation.then_some(Self { plus, whole, fraction, exponent })
    }
}

/// Rejects separators between two runs of digits, because they could join the numbers of two people. A slash or
/// backslash is accepted unless it separates complete numbers, because some countries write it after the area code.
fn check_parts(text: &str) -> Result<(), PhoneProblem> {
    let digits_per_part =
        |separators: &[char]| -> Vec<u32> { text.split(separators).map(count_digits).filter(|&len| len > 0).collect() };
    let has_several_numbers = |lengths: &[u32]| lengths.iter().filter(|&&len| len >= MIN_DIGITS).count() > 1;
    let all_parts = digits_per_part(&[',', ';', '|', '/', '\\', '+', '＋', '\n', '\r']);
    let without_slashes = digits_per_part(&[',', ';', '|', '+', '＋', '\n', '\r']);
    match (has_several_numbers(&all_parts), without_slashes.len()) {
        (true, _) => Err(PhoneProblem::Several),
        (false, 0 | 1) => Ok(()),
        (false, _) => Err(PhoneProblem::Symbols),
    }
}

fn count_digits(text: &str) -> u32 {
    text.chars().map(|character| u32::from(digit_value(character).is_some())).sum()
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
    fn ukrainian_number_is_read_in_many_formats() {
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
    fn international_and_national_numbers_are_read_in_a_region() {
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
    fn number_after_double_zero_is_not_silently_corrected() {
        assert_eq!(parse_in("+789625276982", ""), Ok(79_625_276_982), "the library drops the Russian prefix 8");
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
    fn digits_with_a_country_code_are_not_prefixed_again() {
        for (text, region, expected) in [
            ("4915123456789", "DE", Ok(4_915_123_456_789)),
            ("491701234567", "DE", Ok(491_701_234_567)),
            ("0176/12345678", "DE", Ok(4_917_612_345_678)),
            ("0151-23456789", "DE", Ok(4_915_123_456_789)),
            ("015123456789", "DE", Ok(4_915_123_456_789)),
            ("15123456789", "DE", Ok(4_915_123_456_789)),
            ("38343412230", "XK", Ok(38_343_412_230)),
            ("3331234567", "IT", Ok(393_331_234_567)),
            // Emden without its leading zero, or Düsseldorf with Germany's country code.
            ("492112345678", "DE", Err(PhoneProblem::Ambiguous)),
            ("0492112345678", "DE", Ok(49_492_112_345_678)),
            ("+492112345678", "DE", Ok(492_112_345_678)),
        ] {
            assert_eq!(parse_in(text, region), expected, "{text:?} in {region}");
        }
    }

    #[test]
    fn regions_have_example_mobile_numbers() {
        for code in ["UA", "PL", "US", "GB", "KZ"] {
            let home: Region = code.parse().unwrap();
            let examples: Vec<Phone> = example_mobile_numbers(Some(home)).take(50).collect();
            assert_eq!(examples.len(), 50, "{code}");
            for phone in examples {
                assert_eq!(parse_phone_number(&format!("+{phone}"), None), Ok(phone), "{code}");
            }
        }
        assert_eq!(example_mobile_numbers(None).next().map(Phone::to_u64), Some(380_500_000_001));
    }

    #[test]
    fn mobile_number_in_any_format_is_never_misread() {
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
                let national_number = known.number.get_national_significant_number();
                for text in
                    [expected.to_string(), format!("+{expected}"), format!("00{expected}"), dialled, national_number]
                {
                    let parsed = parse_phone_number(&text, Some(home));
                    assert!(
                        parsed.is_err() || parsed == Ok(expected),
                        "{text:?} in {region}: {}",
                        parsed.unwrap().to_u64()
                    );
                }
            }
            assert_eq!(parse_phone_number(&example.to_string(), Some(home)), Ok(example), "{region}");
            regions += 1;
        }
        assert!(regions > 200);
    }

    proptest! {
        #[test]
        fn plain_digits_are_read_like_formatted_ones(digits in r"\+?[0-9]{1,20}") {
            // A space has no meaning, but prevents the fast path.
            let formatted = format!(" {digits}");
            prop_assert!(DialledDigits::parse(&digits) == DialledDigits::parse(&formatted));
        }

        #[test]
        fn any_parsed_number_round_trips_with_a_plus(text in any::<String>(), digits in r"[+0-9 ,;/.eE()-]{0,30}") {
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

#[cfg(test)]
mod shortcut_tests {
    use proptest::prelude::*;
    use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberType};

    use super::*;
    use crate::audience::phones::{ValidNumber, resolve_number};

    /// Prefixes of the nine digits of a Ukrainian number.
    const SPELLINGS: [&str; 6] = ["+380", "380", "00380", "0", "80", ""];

    /// Returns 1 if the shortcut applies, otherwise 0. Panics if the library disagrees.
    fn check_agreement(text: &str, region: Option<Region>) -> u32 {
        let number = DialledDigits::parse(text).ok().unwrap();
        let Some(phone) = parse_ukrainian_mobile(number, region) else { return 0 };
        assert_eq!(resolve_number(number, region), Ok(ValidNumber { phone, landline: false }), "{text} in {region:?}");
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

    /// Numbers of many countries and types, in their own region and in others.
    #[test]
    fn shortcut_agrees_with_library_in_many_countries() {
        const COUNTRIES: [&str; 40] = [
            "UA", "PL", "DE", "RO", "MD", "HU", "SK", "CZ", "AT", "CH", "IT", "FR", "ES", "PT", "GB", "IE", "NL", "BE",
            "SE", "NO", "FI", "DK", "EE", "LV", "LT", "BG", "GR", "TR", "GE", "KZ", "RU", "IL", "IN", "CN", "JP", "US",
            "MX", "BR", "AU", "ZA",
        ];
        let chance = std::cell::Cell::new(20_261_123_u64);
        let draw = |limit: u64| {
            chance.set(chance.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
            (chance.get() >> 33) % limit
        };
        let mut shortcuts = 0;
        for number in 0..100_000 {
            let home: Region = COUNTRIES[number % COUNTRIES.len()].parse().unwrap();
            let code = PHONE_NUMBER_UTIL.get_country_code_for_region(home.to_library_region()).unwrap();
            let begin = ["+", "", "00", "0", "8", "80"][draw(6) as usize];
            let code = if begin.len() == 2 || draw(2) == 0 { code.to_string() } else { String::new() };
            // Most of these are Ukrainian mobile prefixes.
            let prefix = [39, 50, 63, 67, 73, 91, 99, 12, 44, 80][draw(10) as usize];
            let text = format!("{begin}{code}{prefix}{:0width$}", draw(1_000_000), width = 5 + draw(4) as usize);
            for region in [None, Some(home), Some(Region::UKRAINE), COUNTRIES[draw(40) as usize].parse().ok()] {
                shortcuts += check_agreement(&text, region);
            }
        }
        assert!(shortcuts > 1_000, "{shortcuts}");
    }

    #[test]
    fn shortcut_covers_every_known_mobile_prefix() {
        let is_mobile = |prefix: u64| {
            [0, 1_111_111, 9_999_999].iter().all(|rest| {
                PHONE_NUMBER_UTIL
                    .parse(format!("+380{prefix:02}{rest:07}"), None)
                    .is_ok_and(|number| number.get_type() == PhoneNumberType::Mobile)
            })
        };
        for prefix in 0..100 {
            assert_eq!(MOBILE >> prefix & 1 == 1, is_mobile(prefix), "{prefix:02}");
        }
    }

    proptest! {
        #[test]
        fn shortcut_agrees_with_library(text in r"(\+|00|)(380|38|8|)[0-9]{7,12}", region in 0_usize..4) {
            check_agreement(&text, [None, "UA".parse().ok(), "RU".parse().ok(), "DE".parse().ok()][region]);
        }
    }
}

#[cfg(test)]
mod digits_tests {
    use super::*;

    #[test]
    fn phone_number_formatting_is_ignored() {
        for text in [
            "0501234567",
            " 050 123 45 67 ",
            "(050) 123-45-67",
            "050.123.45.67",
            "050/123-45-67",
            "'0501234567",
            "=\"0501234567\"",
            "050\u{a0}123\u{202f}45\u{2011}67",
            "\u{202a}0501234567\u{202c}",
            "０５０１２３４５６７",
            "0501234567,",
            "0501234567;",
            "050\u{2009}123\u{2003}45\u{3000}67",
            "050\u{2013}123\u{2014}45\u{2212}67",
            "（050）123－45－67",
            "٠٥٠١٢٣٤٥٦٧",
            "۰۵۰ ۱۲۳ ۴۵ ۶۷",
            "050·123_45_67",
            "«0501234567»",
            "`0501234567",
            "tel:050-123-45-67",
            "TEL: 0501234567",
            "\u{feff}0501234567\u{200b}",
        ] {
            let number = DialledDigits::parse(text).ok().unwrap();
            assert_eq!((number.plus, number.format_digits().as_str()), (false, "0501234567"), "{text:?}");
        }
    }

    #[test]
    fn number_with_invisible_characters_is_read() {
        let codes =
            [0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x180b, 0x180e, 0x180f, 0x200b, 0x200f, 0x202e, 0x2060];
        let others = [0x206a, 0x206f, 0x2800, 0x3164, 0xfe00, 0xfe0d, 0xfe0e, 0xfe0f, 0xfeff, 0xffa0, 0xfff0, 0x1bca0];
        let beyond = [0x1d173, 0xe0001, 0xe0020, 0xe007f, 0xe0100, 0xe01ef];
        for code in codes.into_iter().chain(others).chain(beyond) {
            let sign = char::from_u32(code).unwrap();
            for text in [format!("{sign}+38050{sign}1234567{sign}"), format!("{sign}tel:+380501234567.0{sign}")] {
                let number = DialledDigits::parse(&text).ok().unwrap();
                assert_eq!((number.plus, number.format_digits().as_str()), (true, "380501234567"), "{code:x}");
            }
        }
    }

    #[test]
    fn scientific_notation_with_all_digits_is_a_number() {
        for (text, digits) in [
            ("3.80501234538E+11", Some("380501234538")),
            ("3,80501234538E+11", Some("380501234538")),
            ("+3.80501234538e11", Some("+380501234538")),
            ("3.805012345380E+11", Some("380501234538")),
            ("5.01234538E+08", Some("501234538")),
            ("38050123453.8E+1", Some("380501234538")),
            ("380501234538E+0", Some("380501234538")),
            ("3.8050123453E+11", None),
            ("3.80501E+11", None),
            ("3.805012345385E+11", None),
            ("38050123453E+1", None),
            ("3E+11", None),
            ("3.80501234538E-11", None),
            ("3.80501234538E+99999999999999999999", None),
            ("E+11", None),
        ] {
            assert_eq!(expand_scientific_notation(text).as_deref(), digits, "{text}");
        }
    }

    #[test]
    fn plus_is_recognized_anywhere_before_the_first_digit() {
        for text in [
            "+380501234567",
            "(+38) 050 1234567",
            "＋380501234567",
            "+380501234567.0",
            "+380501234567,00",
            "tel:+380501234567",
            "=\"+380501234567\"",
        ] {
            let number = DialledDigits::parse(text).ok().unwrap();
            assert_eq!((number.plus, number.format_digits().as_str()), (true, "380501234567"), "{text:?}");
        }
    }
}
