//! Shares in percent: `10%`, `0.5%`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::NotReadable;

/// A part of a whole, in hundredths of a percent; at most the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Share(u16);

impl Share {
    /// All of it.
    pub const WHOLE: Share = Share(10_000);

    /// Whether it holds what was drawn evenly from all numbers: as many of them as the share says.
    #[must_use]
    pub fn takes(self, draw: u64) -> bool {
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
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE.0)
    }

    /// Whether `part` of `whole` is more than this share.
    #[must_use]
    pub fn is_exceeded_by(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(Self::WHOLE.0) > u128::from(whole) * u128::from(self.0)
    }
}

impl FromStr for Share {
    type Err = NotReadable;

    fn from_str(text: &str) -> Result<Self, NotReadable> {
        let number = text.strip_suffix('%').ok_or(NotReadable)?.trim_end();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > 2 {
            return Err(NotReadable);
        }
        let hundredths: u32 = format!("{fraction:0<2}").parse().map_err(|_| NotReadable)?;
        let percent: u32 = whole.parse().map_err(|_| NotReadable)?;
        let share = percent.checked_mul(100).and_then(|share| share.checked_add(hundredths)).ok_or(NotReadable)?;
        u16::try_from(share).ok().filter(|&share| share <= Self::WHOLE.0).map(Self).ok_or(NotReadable)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_are_read_in_percent_up_to_the_whole() {
        for (text, share) in [("10%", 1_000), ("0%", 0), ("100%", 10_000), ("0.5%", 50), ("12.25 %", 1_225)] {
            assert_eq!(text.parse(), Ok(Share(share)), "{text}");
        }
        for text in ["", "%", "10", "0.1", "101%", "-1%", "1.234%", ".5%", "1.%", "99999999999%"] {
            assert_eq!(text.parse::<Share>(), Err(NotReadable), "{text}");
        }
    }

    #[test]
    fn exactly_the_share_is_not_more_than_it() {
        let tenth: Share = "10%".parse().unwrap();
        assert!(!tenth.is_exceeded_by(1, 10));
        assert!(tenth.is_exceeded_by(2, 10));
        assert!(!tenth.is_exceeded_by(0, 0));
    }

    #[test]
    fn a_share_takes_as_many_draws_as_it_says() {
        for (text, taken) in [("0%", 0), ("0.01%", 1), ("25%", 2_500), ("100%", 10_000)] {
            let share: Share = text.parse().unwrap();
            let draws = (0..10_000_u64).map(|draw| (draw * (u64::MAX / 10_000)).saturating_add(1_000_000));
            assert_eq!(draws.filter(|draw| share.takes(*draw)).count(), taken, "{text}");
        }
        assert!(Share::WHOLE.takes(u64::MAX));
    }

    proptest! {
        #[test]
        fn a_share_reads_back_as_it_is_shown(share in 0..=Share::WHOLE.0) {
            prop_assert_eq!(Share(share).to_string().parse(), Ok(Share(share)));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Share>();
        }
    }
}
