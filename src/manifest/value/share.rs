//! Shares in percent: `10%`, `0.5%`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ParseValueError;

/// A part of a whole, in hundredths of a percent; at most the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Percentage(u16);

impl Percentage {
    /// All of it.
    pub const WHOLE: Percentage = Percentage(10_000);

    /// Whether it holds what was drawn evenly from all numbers: as many of them as the share says.
    #[must_use]
    pub fn includes_draw(self, draw: u64) -> bool {
        // The upper bits of a product spread the draw over the hundredths of a percent.
        (u128::from(draw) * u128::from(Self::WHOLE.0)) >> 64 < u128::from(self.0)
    }

    /// How many hundredths of a percent it is, 0 to 10,000.
    #[must_use]
    pub fn hundredths(self) -> u16 {
        self.0
    }

    /// The share as a fraction, 0 to 1.
    #[must_use]
    pub fn to_fraction(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE.0)
    }

    /// Whether `part` of `whole` is more than this share.
    #[must_use]
    pub fn is_exceeded_by(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(Self::WHOLE.0) > u128::from(whole) * u128::from(self.0)
    }
}

impl FromStr for Percentage {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, ParseValueError> {
        let number = text.strip_suffix('%').ok_or(ParseValueError)?.trim_end();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > 2 {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentages_are_read_up_to_100() {
        for (text, share) in [("10%", 1_000), ("0%", 0), ("100%", 10_000), ("0.5%", 50), ("12.25 %", 1_225)] {
            assert_eq!(text.parse(), Ok(Percentage(share)), "{text}");
        }
        for text in ["", "%", "10", "0.1", "101%", "-1%", "1.234%", ".5%", "1.%", "99999999999%"] {
            assert_eq!(text.parse::<Percentage>(), Err(ParseValueError), "{text}");
        }
    }

    #[test]
    fn exact_percentage_is_not_exceeded() {
        let tenth: Percentage = "10%".parse().unwrap();
        assert!(!tenth.is_exceeded_by(1, 10));
        assert!(tenth.is_exceeded_by(2, 10));
        assert!(!tenth.is_exceeded_by(0, 0));
    }

    #[test]
    fn percentage_includes_matching_part_of_draws() {
        for (text, taken) in [("0%", 0), ("0.01%", 1), ("25%", 2_500), ("100%", 10_000)] {
            let share: Percentage = text.parse().unwrap();
            let draws = (0..10_000_u64).map(|draw| (draw * (u64::MAX / 10_000)).saturating_add(1_000_000));
            assert_eq!(draws.filter(|draw| share.includes_draw(*draw)).count(), taken, "{text}");
        }
        assert!(Percentage::WHOLE.includes_draw(u64::MAX));
    }

    proptest! {
        #[test]
        fn percentage_round_trips_as_text(share in 0..=Percentage::WHOLE.0) {
            prop_assert_eq!(Percentage(share).to_string().parse(), Ok(Percentage(share)));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Percentage>();
        }
    }
}
