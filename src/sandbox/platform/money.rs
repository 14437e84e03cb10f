//! Amounts of money, exact.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use std::str::FromStr;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// An amount in millionths of the account's currency, at most a milliard either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(i64);

/// The text is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAmount;

impl Money {
    /// Nothing.
    pub const ZERO: Money = Money(0);
    /// The largest amount that can be written in a scenario.
    pub const MOST: Money = Money(999_999_999_999_999);

    /// So many millionths.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The amount in millionths.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }
}

impl FromStr for Money {
    type Err = NoAmount;

    /// Reads `12`, `0.55` or `100.123456`: no sign, up to six digits behind the point.
    fn from_str(text: &str) -> Result<Self, NoAmount> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > 6 {
            return Err(NoAmount);
        }
        let whole: i64 = whole.parse().map_err(|_| NoAmount)?;
        let fraction: i64 = format!("{fraction:0<6}").parse().map_err(|_| NoAmount)?;
        let micros = whole.checked_mul(1_000_000).and_then(|micros| micros.checked_add(fraction)).ok_or(NoAmount)?;
        Some(Self(micros)).filter(|amount| *amount <= Self::MOST).ok_or(NoAmount)
    }
}

impl fmt::Display for Money {
    /// Writes at least two digits behind the point, and more where they are not zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, fraction) = (self.0.unsigned_abs() / 1_000_000, self.0.unsigned_abs() % 1_000_000);
        let fraction = format!("{fraction:06}");
        let kept = fraction.trim_end_matches('0').len().max(2);
        write!(f, "{sign}{whole}.{}", &fraction[..kept])
    }
}

impl Serialize for Money {
    /// Writes a JSON number with its digits, never in the notation with an exponent.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Money {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u32> for Money {
    type Output = Self;

    fn mul(self, times: u32) -> Self {
        Self(self.0.saturating_mul(i64::from(times)))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Money {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_written() {
        for (text, micros) in
            [("0", 0), ("12", 12_000_000), ("0.55", 550_000), ("999999999.999999", 999_999_999_999_999)]
        {
            assert_eq!(text.parse(), Ok(Money(micros)), "{text}");
        }
        for text in ["", ".5", "5.", "-1", "+1", "1,5", "1e3", "0.1234567", "1000000000", "99999999999999999999"] {
            assert_eq!(text.parse::<Money>(), Err(NoAmount), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_amount_is_exact_as_text_and_as_json(micros in 0..=Money::MOST.0) {
            let amount = Money(micros);
            prop_assert_eq!(amount.to_string().parse(), Ok(amount));
            let json = serde_json::to_string(&amount).unwrap();
            let (whole, fraction) = json.split_once('.').unwrap();
            prop_assert_eq!(format!("{whole}.{fraction:0<6}").parse(), Ok(amount));
        }
    }
}
