//! Durations in whole seconds: `90`, `90s`, `10m`, `2h`, `2d`.

use std::fmt;
use std::str::FromStr;

use super::ParseValueError;

const UNITS: [(char, u32); 4] = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];

/// A duration in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seconds(pub(crate) u32);

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
    /// Writes the largest unit that needs no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |&(_, seconds): &(char, u32)| self.0 > 0 && self.0.is_multiple_of(seconds);
        let (unit, seconds) = UNITS.into_iter().rev().find(fits).unwrap_or(('s', 1));
        write!(f, "{}{unit}", self.0 / seconds)
    }
}

#[cfg(test)]
mod tests {
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
        fn no_text_panics(text: String) {
            let _ = text.parse::<Seconds>();
        }
    }
}
