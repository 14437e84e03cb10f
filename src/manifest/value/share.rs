//! Shares in percent: `10%`, `0.5%`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::NotReadable;

/// A part of a whole, in hundredths of a percent; at most the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Share(u16);

impl Share {
    const WHOLE: u16 = 10_000;

    /// The share as a fraction, 0 to 1.
    #[must_use]
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE)
    }

    /// Whether `part` of `whole` is more than this share.
    #[must_use]
    pub fn is_exceeded_by(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(Self::WHOLE) > u128::from(whole) * u128::from(self.0)
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
        u16::try_from(share).ok().filter(|&share| share <= Self::WHOLE).map(Self).ok_or(NotReadable)
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

    proptest! {
        #[test]
        fn a_share_reads_back_as_it_is_shown(share in 0..=Share::WHOLE) {
            prop_assert_eq!(Share(share).to_string().parse(), Ok(Share(share)));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Share>();
        }
    }
}
