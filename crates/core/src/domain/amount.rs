//! Amounts of money, and counts in English, both formatted with thousands separators.
//!
//! Amounts are exact: all digits are kept, without rounding.

use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The maximum number of digits before the decimal point, and after it.
const MAX_DIGITS: u32 = 18;

/// An amount of money, counted in units of its last decimal place.
///
/// Arithmetic saturates at the largest amount that fits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Amount {
    units: i128,
    scale: u32,
}

/// The error for a text that is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseAmountError;

impl Amount {
    /// The amount multiplied by a count, saturating instead of overflowing.
    #[must_use]
    pub fn saturating_mul(self, count: u64) -> Self {
        Self { units: self.units.saturating_mul(i128::from(count)), ..self }
    }

    /// This amount plus `other`, saturating instead of overflowing.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        let scale = self.scale.max(other.scale);
        Self { units: self.units_at(scale).saturating_add(other.units_at(scale)), scale }
    }

    /// This amount minus `other`, saturating instead of overflowing.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        self.saturating_add(Self { units: other.units.saturating_neg(), ..other })
    }

    /// Removes trailing zeros from the decimals, but keeps at least two decimals.
    #[must_use]
    pub fn trim_decimals(self) -> Self {
        let (mut units, mut scale) = (self.units_at(2), self.scale.max(2));
        while scale > 2 && units % 10 == 0 {
            (units, scale) = (units / 10, scale - 1);
        }
        Self { units, scale }
    }

    /// Whether the amount is below zero.
    pub fn is_negative(self) -> bool {
        self.units < 0
    }

    /// The amount as a JSON number with its original digits: `1234.50`.
    pub fn to_json_digits(self) -> String {
        let (sign, whole, fraction) = self.split_digits();
        if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
    }

    fn units_at(self, scale: u32) -> i128 {
        self.units.saturating_mul(10_i128.pow(scale.saturating_sub(self.scale).min(MAX_DIGITS)))
    }

    /// The sign, the digits before the decimal point, and the digits after the decimal point.
    fn split_digits(self) -> (&'static str, String, String) {
        let sign = if self.is_negative() { "-" } else { "" };
        let places = self.scale as usize;
        let digits = format!("{:0>width$}", self.units.unsigned_abs(), width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        (sign, whole.to_owned(), fraction.to_owned())
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Self::saturating_add)
    }
}

impl FromStr for Amount {
    type Err = ParseAmountError;

    /// Reads a JSON number (`12`, `-0.55`, `1.5e3`) with up to 18 digits on each side of the point.
    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_numeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = |text: &str| is_numeric(text) && text.len() <= MAX_DIGITS as usize;
        if whole.is_empty() || !fits(whole) || !fits(fraction) || number.ends_with('.') {
            return Err(ParseAmountError);
        }
        let units: i128 = format!("{whole}{fraction}").parse().map_err(|_| ParseAmountError)?;
        let exponent: i32 = exponent.parse().map_err(|_| ParseAmountError)?;
        let scale = i32::try_from(fraction.len())
            .map_err(|_| ParseAmountError)?
            .checked_sub(exponent)
            .ok_or(ParseAmountError)?;
        let (units, scale) = match u32::try_from(scale) {
            Ok(scale) => (units, scale),
            Err(_) => (
                10_i128
                    .checked_pow(scale.unsigned_abs())
                    .and_then(|factor| units.checked_mul(factor))
                    .ok_or(ParseAmountError)?,
                0,
            ),
        };
        let largest = 10_i128.pow(MAX_DIGITS + scale.min(MAX_DIGITS));
        if scale > MAX_DIGITS || units >= largest {
            Err(ParseAmountError)
        } else {
            Ok(Self { units: sign * units, scale })
        }
    }
}

impl fmt::Display for Amount {
    /// Writes the amount for people, with thousands separators and at least two decimals: `1 234.50`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, whole, fraction) = self.split_digits();
        write!(f, "{sign}{}.{fraction:0<2}", group_digits(&whole))
    }
}

impl Serialize for Amount {
    /// Writes a JSON number with all its digits.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_json_digits()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Amount {
    /// Reads a JSON number with all its digits.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Box::<RawValue>::deserialize(deserializer)?;
        number.get().parse().map_err(|ParseAmountError| D::Error::custom("the amount is not valid"))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        let scale = self.scale.max(other.scale);
        self.units_at(scale).cmp(&other.units_at(scale))
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Amount {}

/// Formats a number with thousands separators: `1 000 000`.
pub fn format_thousands(number: u64) -> String {
    group_digits(&number.to_string())
}

/// Separates groups of three digits with spaces.
fn group_digits(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 row`, `2 rows`.
pub fn format_count(count: u64, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {noun}{s}", format_thousands(count))
}

/// The singular or the plural form: `is` or `are`.
pub fn choose_plural<'w>(count: u64, singular: &'w str, plural: &'w str) -> &'w str {
    if count == 1 { singular } else { plural }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[test]
    fn amount_keeps_its_digits_and_is_grouped_for_display() {
        let table = [
            ("0", "0", "0.00"),
            ("10.50", "10.50", "10.50"),
            ("-0.5", "-0.5", "-0.50"),
            ("1000000.123456789012345", "1000000.123456789012345", "1 000 000.123456789012345"),
            ("999999999999999999", "999999999999999999", "999 999 999 999 999 999.00"),
            ("1.5e3", "1500", "1 500.00"),
            ("1.5E-3", "0.0015", "0.0015"),
            ("1e+2", "100", "100.00"),
        ];
        for (text, digits, expected) in table {
            assert_eq!(
                (amount(text).to_json_digits().as_str(), amount(text).to_string().as_str()),
                (digits, expected),
                "{text}"
            );
            assert_eq!(serde_json::to_string(&amount(text)).unwrap(), digits);
        }
    }

    #[test]
    fn trimmed_amount_keeps_at_least_two_decimals() {
        for (text, digits) in
            [("0", "0.00"), ("12", "12.00"), ("0.850000", "0.85"), ("-1.2", "-1.20"), ("7.6543210", "7.654321")]
        {
            assert_eq!(
                (amount(text).trim_decimals(), amount(text).trim_decimals().to_json_digits()),
                (amount(text), digits.into())
            );
        }
    }

    #[test]
    fn malformed_or_oversized_text_is_not_an_amount() {
        let long = "1".repeat(19);
        let texts =
            ["", "-", ".5", "5.", "1,5", "1 000", "0x1", "+1", "1e", "1e99", "1e-19", "1e18", "NaN", "--1", "1.-5"];
        for text in texts.into_iter().chain([long.as_str(), "1e-2147483648", "1e2147483647"]) {
            assert_eq!(text.parse::<Amount>(), Err(ParseAmountError), "{text}");
        }
    }

    #[test]
    fn sums_are_exact_and_never_overflow() {
        assert_eq!(amount("0.1").saturating_add(amount("0.2")), amount("0.3"));
        assert_eq!(amount("0.80").saturating_mul(3), amount("2.4"));
        assert_eq!(amount("1.5").saturating_sub(amount("2")).to_string(), "-0.50");
        let max = amount("999999999999999999.999999999999999999").saturating_mul(u64::MAX);
        assert!(max.saturating_add(max) >= max && max > amount("1"));
        assert!(max.saturating_sub(amount("1")).saturating_sub(max.saturating_mul(u64::MAX)) <= amount("0"));
    }

    #[test]
    fn nouns_agree_with_their_counts() {
        assert_eq!(
            [0, 1, 2, 1_000_000].map(|count| format_count(count, "row")),
            ["0 rows", "1 row", "2 rows", "1 000 000 rows"]
        );
        assert_eq!([0, 1, 2].map(|count| choose_plural(count, "is", "are")), ["are", "is", "are"]);
        assert_eq!([0, 999, 1_000_000].map(format_thousands), ["0", "999", "1 000 000"]);
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_amounts_round_trip(text in "[-0-9.eE+]{0,24}") {
            if let Ok(amount) = text.parse::<Amount>() {
                prop_assert_eq!(amount.to_json_digits().parse(), Ok(amount));
            }
        }

        #[test]
        fn amounts_are_ordered_by_value(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000) {
            let cents = |number: i64| amount(&format!("{}e-2", number));
            prop_assert_eq!(cents(a).cmp(&cents(b)), a.cmp(&b));
        }
    }
}
