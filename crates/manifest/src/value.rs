//! Values of campaign and gateway files: rates, durations, percentages and frequency caps.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use campaign_core::domain::FrequencyCap;

/// The error for a value that cannot be parsed. Its remedy follows from the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseValueError;

/// The maximum number of operations in a rate, per unit.
const MAX_OPERATIONS: u32 = 1_000_000;

/// A number of operations per unit of time.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
pub enum Rate {
    /// Operations per second; more than 0 and finite.
    PerSecond(f64),
    /// Without limit; only for loopback addresses.
    Unlimited,
}

impl Rate {
    /// Operations per second; `None` if there is no limit.
    pub fn per_second(self) -> Option<f64> {
        match self {
            Rate::PerSecond(rate) => Some(rate),
            Rate::Unlimited => None,
        }
    }

    /// The lower of two rates.
    #[must_use]
    pub(crate) fn min_rate(self, other: Self) -> Self {
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
    /// Writes the rate per second, minute or hour: the first of these units in which it is a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rate::PerSecond(rate) = *self else { return f.write_str("unlimited") };
        let units = [("s", 1.0), ("min", 60.0), ("h", 3_600.0)];
        let is_whole = |&(_, seconds): &(&str, f64)| (rate * seconds).round() / seconds == rate;
        let (unit, seconds) = units.into_iter().find(is_whole).unwrap_or(("s", 1.0));
        let number = if unit == "s" { rate } else { (rate * seconds).round() };
        write!(f, "{number}/{unit}")
    }
}

/// The suffixes of durations, with their lengths in seconds.
const UNITS: [(char, u32); 4] = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];

/// A duration in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(pub(crate) u32);

impl From<Seconds> for SignedDuration {
    fn from(seconds: Seconds) -> Self {
        Self::from_secs(seconds.0.into())
    }
}

impl From<Seconds> for Duration {
    fn from(seconds: Seconds) -> Self {
        Self::from_secs(seconds.0.into())
    }
}

impl FromStr for Seconds {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, ParseValueError> {
        let unit = UNITS.into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
        let (digits, seconds) = unit.unwrap_or((text, 1));
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ParseValueError);
        }
        let number: u32 = digits.parse().map_err(|_| ParseValueError)?;
        number.checked_mul(seconds).map(Self).ok_or(ParseValueError)
    }
}

impl fmt::Display for Seconds {
    /// Writes the duration in the largest unit in which it is a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |&(_, seconds): &(char, u32)| self.0 > 0 && self.0.is_multiple_of(seconds);
        let (unit, seconds) = UNITS.into_iter().rev().find(fits).unwrap_or(('s', 1));
        write!(f, "{}{unit}", self.0 / seconds)
    }
}

/// A percentage in hundredths of a percent; at most 100 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Percentage(u16);

impl Percentage {
    /// 0 %.
    pub const NONE: Percentage = Percentage(0);
    /// 100 %.
    pub const WHOLE: Percentage = Percentage(10_000);

    /// Whether a number drawn uniformly from all `u64` values falls within this percentage.
    pub fn includes_draw(self, draw: u64) -> bool {
        // The upper bits of the product scale the draw to hundredths of a percent.
        (u128::from(draw) * u128::from(Self::WHOLE.0)) >> 64 < u128::from(self.0)
    }

    /// The hundredths of a percent, 0 to 10,000.
    pub(crate) fn hundredths(self) -> u16 {
        self.0
    }

    /// The percentage as a fraction, 0 to 1.
    pub fn to_fraction(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE.0)
    }

    /// Whether `part` of `total` is more than this percentage.
    pub fn is_exceeded_by(self, part: u64, total: u64) -> bool {
        u128::from(part) * u128::from(Self::WHOLE.0) > u128::from(total) * u128::from(self.0)
    }
}

impl FromStr for Percentage {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, ParseValueError> {
        let number = text.strip_suffix('%').ok_or(ParseValueError)?.trim_end();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || fraction.len() > 2 {
            return Err(ParseValueError);
        }
        let hundredths: u32 = format!("{fraction:0<2}").parse().map_err(|_| ParseValueError)?;
        let percent: u32 = whole.parse().map_err(|_| ParseValueError)?;
        let share = percent.checked_mul(100).and_then(|share| share.checked_add(hundredths)).ok_or(ParseValueError)?;
        u16::try_from(share).ok().filter(|&share| share <= Self::WHOLE.0).map(Self).ok_or(ParseValueError)
    }
}

impl fmt::Display for Percentage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 100.0)
    }
}

/// The maximum number of messages in a cap.
const MAX_MESSAGES: u32 = 10_000;

/// Parses a cap: a number of messages, a slash, and a period from one second to 400 days.
pub(crate) fn parse_cap(text: &str) -> Result<FrequencyCap, ParseValueError> {
    let (digits, period) = text.split_once('/').ok_or(ParseValueError)?;
    let digits = digits.trim();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseValueError);
    }
    let messages =
        digits.parse().ok().filter(|messages| (1..=MAX_MESSAGES).contains(messages)).ok_or(ParseValueError)?;
    let period = period.trim();
    let Seconds(seconds) = match period {
        "d" | "day" => Seconds(86_400),
        // A number alone would mean seconds, which is never intended.
        _ if period.bytes().all(|byte| byte.is_ascii_digit()) => return Err(ParseValueError),
        _ => period.parse()?,
    };
    let period = Duration::from_secs(seconds.into());
    if period.is_zero() || period > FrequencyCap::MAX_PERIOD {
        Err(ParseValueError)
    } else {
        Ok(FrequencyCap { messages, period })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_can_be_per_second_minute_or_hour_or_unlimited() {
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
        fn parsing_never_panics(text: String) {
            let _ = text.parse::<Rate>();
        }
    }
}

#[cfg(test)]
mod seconds_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_in_their_units() {
        let cases = [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7_200), ("2d", 172_800), ("0", 0)];
        for (text, seconds) in cases {
            assert_eq!(text.parse(), Ok(Seconds(seconds)), "{text}");
        }
    }

    #[test]
    fn other_text_is_not_a_duration() {
        for text in ["", "s", "1.5h", "-1", "+1", "10 m", "1w", "1h30m", "99999d", "4294967296", "١s"] {
            assert_eq!(text.parse::<Seconds>(), Err(ParseValueError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn duration_round_trips_as_text(seconds: u32) {
            prop_assert_eq!(Seconds(seconds).to_string().parse(), Ok(Seconds(seconds)));
        }

        #[test]
        fn parsing_never_panics(text: String) {
            let _ = text.parse::<Seconds>();
        }
    }
}

#[cfg(test)]
mod percentage_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentages_from_0_to_100_are_accepted() {
        for (text, share) in [("10%", 1_000), ("0%", 0), ("100%", 10_000), ("0.5%", 50), ("12.25 %", 1_225)] {
            assert_eq!(text.parse(), Ok(Percentage(share)), "{text}");
        }
        for text in ["", "%", "10", "0.1", "101%", "-1%", "1.234%", ".5%", "1.%", "99999999999%"] {
            assert_eq!(text.parse::<Percentage>(), Err(ParseValueError), "{text}");
        }
    }

    #[test]
    fn reaching_a_percentage_exactly_does_not_exceed_it() {
        let tenth: Percentage = "10%".parse().unwrap();
        assert!(!tenth.is_exceeded_by(1, 10));
        assert!(tenth.is_exceeded_by(2, 10));
        assert!(!tenth.is_exceeded_by(0, 0));
    }

    #[test]
    fn percentage_includes_a_matching_share_of_draws() {
        for (text, included) in [("0%", 0), ("0.01%", 1), ("25%", 2_500), ("100%", 10_000)] {
            let share: Percentage = text.parse().unwrap();
            let draws = (0..10_000_u64).map(|draw| (draw * (u64::MAX / 10_000)).saturating_add(1_000_000));
            assert_eq!(draws.filter(|draw| share.includes_draw(*draw)).count(), included, "{text}");
        }
        assert!(Percentage::WHOLE.includes_draw(u64::MAX));
    }

    proptest! {
        #[test]
        fn percentage_round_trips_as_text(share in 0..=Percentage::WHOLE.0) {
            prop_assert_eq!(Percentage(share).to_string().parse(), Ok(Percentage(share)));
        }

        #[test]
        fn parsing_never_panics(text: String) {
            let _ = text.parse::<Percentage>();
        }
    }
}

#[cfg(test)]
mod cap_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn caps_are_parsed_as_messages_per_period() {
        for (text, shown) in
            [("2/7d", "2/7d"), ("1 / 24h", "1/1d"), ("3/90m", "3/90m"), ("10000/400d", "10000/400d"), ("1/day", "1/1d")]
        {
            assert_eq!(parse_cap(text).map(|cap| cap.to_string()), Ok(shown.to_owned()), "{text}");
        }
        for text in
            ["", "2", "0/7d", "-1/7d", "2/0d", "2/7", "2/401d", "10001/1d", "/7d", "2/", "2/7w", "two/7d", "2/7d/1d"]
        {
            assert_eq!(parse_cap(text), Err(ParseValueError), "{text}");
        }
    }

    proptest! {
        #[test]
        fn cap_round_trips_as_text(messages in 1..=MAX_MESSAGES, seconds in 1_u64..=400 * 86_400) {
            let written = FrequencyCap { messages, period: Duration::from_secs(seconds) };
            prop_assert_eq!(parse_cap(&written.to_string()), Ok(written));
        }

        #[test]
        fn parsing_never_panics(text: String) {
            let _ = parse_cap(&text);
        }
    }
}
