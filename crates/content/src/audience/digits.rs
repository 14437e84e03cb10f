//! Digits of a phone number: a cell's text without decoration, reduced to a plus sign and digits.
//!
//! This module explains why a text is not a number. It does not check whether a number exists.

use std::borrow::Cow;

use super::PhoneProblem;
use campaign_core::domain::is_invisible;

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

/// Fewer digits than this cannot be a complete number.
const SHORT: u32 = 7;

impl DialledDigits {
    /// The maximum number of digits. E.164 allows 15, and a prefix can precede them.
    const MAX_LENGTH: u32 = 18;

    /// The number in a cell.
    ///
    /// # Errors
    ///
    /// The cell is empty, contains several numbers, or is not a number.
    pub(super) fn parse(text: &str) -> Result<Self, PhoneProblem> {
        let text = without_invisible(text);
        let text = without_decimals(without_scheme(text.trim()));
        let whole = expand_power_of_ten(text);
        let text = whole.as_deref().unwrap_or(text);
        let mut number = Self { plus: false, len: 0, value: 0 };
        let mut separated = false;
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
                ',' | ';' | '|' | '/' | '\\' | '+' | '＋' | '\n' | '\r' => separated = true,
                _ if is_decoration(character) => {}
                _ => return Err(explain_character(text, character)),
            }
        }
        number.check(text, separated)
    }

    /// The digits with leading zeros.
    pub(super) fn format_digits(self) -> String {
        format!("{:0width$}", self.value, width = self.len as usize)
    }

    /// Whether the number is long enough to be complete with its area code.
    pub(super) fn is_long(self) -> bool {
        self.len > SHORT + 1
    }

    fn check(self, text: &str, separated: bool) -> Result<Self, PhoneProblem> {
        if self.len == 0 {
            return Err(PhoneProblem::Empty);
        }
        if separated {
            check_parts(text)?;
        }
        if self.len <= Self::MAX_LENGTH {
            return Ok(self);
        }
        let mut words = text.split_whitespace().map(count_digits);
        let several = self.len >= 2 * SHORT && words.clone().count() > 1 && words.all(|len| len > SHORT);
        Err(if several { PhoneProblem::Several } else { PhoneProblem::TooLong })
    }
}

/// Web pages and address books write `tel:+380501234567`.
fn without_scheme(text: &str) -> &str {
    const SCHEME: &str = "tel:";
    match text.get(..SCHEME.len()) {
        Some(scheme) if scheme.eq_ignore_ascii_case(SCHEME) => &text[SCHEME.len()..],
        _ => text,
    }
}

/// Spreadsheets write a number as `380501234567.0` if they treat it as a quantity.
fn without_decimals(text: &str) -> &str {
    let whole = text.trim_end_matches('0');
    match whole.strip_suffix(['.', ',']) {
        Some(digits) if whole.len() < text.len() && digits.len() > SHORT as usize => {
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

/// Characters without meaning that people and programs put into numbers.
fn is_decoration(character: char) -> bool {
    match character {
        '-' | '(' | ')' | '.' | '\'' | '"' | '=' | '[' | ']' | '~' | '_' | '`' => true,
        // dashes, minus, dots and quotation marks of typesetting
        '\u{2010}'..='\u{2015}' | '\u{2043}' | '\u{2212}' | '\u{b7}' | '\u{2022}' => true,
        '\u{2018}'..='\u{201f}' | '\u{2bc}' | '\u{b4}' | '\u{ab}' | '\u{bb}' => true,
        // East Asian keyboards
        '（' | '）' | '－' | '﹣' | '．' | '～' | '\u{301c}' | '\u{30fc}' => true,
        other => other.is_whitespace(),
    }
}

/// The text without invisible characters, which contact lists and messengers add around numbers.
fn without_invisible(text: &str) -> Cow<'_, str> {
    match !text.is_ascii() && text.contains(is_invisible) {
        true => text.chars().filter(|character| !is_invisible(*character)).collect::<String>().into(),
        false => text.into(),
    }
}

/// Why text with this character is not a number.
fn explain_character(text: &str, character: char) -> PhoneProblem {
    if !character.is_alphabetic() {
        PhoneProblem::Sign(character)
    } else if is_scientific(text) {
        PhoneProblem::Rounded
    } else if text.split(char::is_alphabetic).filter(|words| count_digits(words) > SHORT).count() > 1 {
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
    let separates = |character: char| character.is_whitespace() || matches!(character, '<' | ':');
    let has_words = before.rfind(char::is_alphabetic).is_some_and(|last| before[last..].contains(separates));
    has_words && text.split(char::is_alphabetic).any(|words| count_digits(words) > SHORT + 1)
}

/// Whether the text is a number in scientific notation, such as `3.80501E+11`.
pub(super) fn is_scientific(text: &str) -> bool {
    PowerOfTen::parse(text).is_some()
}

/// The digits of a number in scientific notation, such as `3.80501234538E+11`. `None` if a digit is missing.
#[must_use]
pub fn expand_power_of_ten(text: &str) -> Option<String> {
    let PowerOfTen { plus, whole, fraction, exponent } = PowerOfTen::parse(text)?;
    let (shown, rest) = fraction.split_at_checked(exponent.parse().ok()?)?;
    rest.bytes().all(|digit| digit == b'0').then(|| format!("{plus}{whole}{shown}"))
}

/// A quantity in scientific notation: `3.80501E+11`.
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
        let is_read = is_number(whole) && (parts.is_none() || is_number(fraction)) && is_number(exponent);
        is_read.then_some(Self { plus, whole, fraction, exponent })
    }
}

/// Rejects separators between two runs of digits, because they could join the numbers of two people. A slash is
/// accepted, because some countries write it after the area code.
fn check_parts(text: &str) -> Result<(), PhoneProblem> {
    let parts =
        |separators: &[char]| -> Vec<u32> { text.split(separators).map(count_digits).filter(|&len| len > 0).collect() };
    let several = |lengths: &[u32]| lengths.iter().filter(|&&len| len >= SHORT).count() > 1;
    let all = parts(&[',', ';', '|', '/', '\\', '+', '＋', '\n', '\r']);
    let hard = parts(&[',', ';', '|', '+', '＋', '\n', '\r']);
    match (several(&all), hard.len()) {
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
    use super::*;

    #[test]
    fn decoration_of_phone_numbers_is_ignored() {
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
    fn power_of_ten_with_all_digits_is_a_number() {
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
            assert_eq!(expand_power_of_ten(text).as_deref(), digits, "{text}");
        }
    }

    #[test]
    fn plus_counts_before_the_first_digit() {
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
