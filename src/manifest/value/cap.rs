//! Caps: `2/7d`.

use std::time::Duration;

use super::{ParseValueError, Seconds};
use crate::domain::FrequencyCap;

/// The most messages that a cap may name.
const MAX_MESSAGES: u32 = 10_000;

/// A cap as it is written: messages, a slash, a time of a second to 400 days.
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
        // A number alone would be seconds, which nobody means.
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
    fn caps_are_messages_per_period() {
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
        fn no_text_panics(text: String) {
            let _ = parse_cap(&text);
        }
    }
}
