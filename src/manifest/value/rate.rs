//! Rates: `10/s`, `600/min`, `36000/h`, `unlimited`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ParseValueError;

/// The most operations that a rate may name, per whatever unit.
const MAX_OPERATIONS: u32 = 1_000_000;

/// How many operations may leave in a time.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum Rate {
    /// Operations per second; more than 0 and finite.
    PerSecond(f64),
    /// As fast as it goes; only towards loopback.
    Unlimited,
}

impl Rate {
    /// Operations per second; nothing when there is no bound.
    #[must_use]
    pub fn per_second(self) -> Option<f64> {
        match self {
            Rate::PerSecond(rate) => Some(rate),
            Rate::Unlimited => None,
        }
    }

    /// The lower of two rates.
    #[must_use]
    pub fn min_rate(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
}

impl FromStr for Rate {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, ParseValueError> {
        if text == "unlimited" {
            return Ok(Rate::Unlimited);
        }
        let (digits, unit) = text.split_once('/').ok_or(ParseValueError)?;
        let seconds = match unit.trim() {
            "s" | "sec" | "second" => 1.0,
            "m" | "min" | "minute" => 60.0,
            "h" | "hour" => 3_600.0,
            _ => return Err(ParseValueError),
        };
        let digits = digits.trim();
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ParseValueError);
        }
        match digits.parse::<u32>() {
            Ok(operations @ 1..=MAX_OPERATIONS) => Ok(Rate::PerSecond(f64::from(operations) / seconds)),
            _ => Err(ParseValueError),
        }
    }
}

impl fmt::Display for Rate {
    /// Writes the first of seconds, minutes and hours in which the rate is a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rate::PerSecond(rate) = *self else { return f.write_str("unlimited") };
        let units = [("s", 1.0), ("min", 60.0), ("h", 3_600.0)];
        let whole = |&(_, seconds): &(&str, f64)| (rate * seconds).round() / seconds == rate;
        let (unit, seconds) = units.into_iter().find(whole).unwrap_or(("s", 1.0));
        let shown = if unit == "s" { rate } else { (rate * seconds).round() };
        write!(f, "{shown}/{unit}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_are_read_per_second_minute_and_hour() {
        let cases = [("10/s", 10.0), ("600/min", 10.0), ("600 / m", 10.0), ("36000/h", 10.0), ("1/min", 1.0 / 60.0)];
        for (text, rate) in cases {
            assert_eq!(text.parse(), Ok(Rate::PerSecond(rate)), "{text}");
        }
        assert_eq!("unlimited".parse(), Ok(Rate::Unlimited));
    }

    #[test]
    fn other_text_is_not_a_rate() {
        for text in ["", "10", "0/s", "-1/s", "1.5/s", "10/day", "/s", "10/", "1000001/s", "Unlimited", "1e3/s"] {
            assert_eq!(text.parse::<Rate>(), Err(ParseValueError), "{text}");
        }
    }

    #[test]
    fn unlimited_is_above_every_rate() {
        let ten = Rate::PerSecond(10.0);
        assert_eq!(ten.min_rate(Rate::Unlimited), ten);
        assert_eq!(Rate::Unlimited.min_rate(ten), ten);
        assert_eq!(ten.min_rate(Rate::PerSecond(5.0)), Rate::PerSecond(5.0));
    }

    proptest! {
        #[test]
        fn rate_round_trips_as_text(operations in 1..=MAX_OPERATIONS, unit in 0..3_usize) {
            let rate: Rate = format!("{operations}/{}", ["s", "min", "h"][unit]).parse().unwrap();
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Rate>();
        }
    }
}
