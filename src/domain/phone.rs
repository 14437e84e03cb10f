//! A phone number that can be sent to.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// An international number: its digits without a plus sign (E.164, at most 15, the first not 0).
///
/// `Display` writes all digits and is meant for the wire and the results. `Debug` and
/// [`Phone::masked`] show only the last two: what is logged identifies nobody.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Phone(u64);

impl Phone {
    /// The number with these digits, unless it has more than 15 or fewer than 5.
    #[must_use]
    pub fn new(digits: u64) -> Option<Self> {
        (10_000..1_000_000_000_000_000).contains(&digits).then_some(Self(digits))
    }

    /// The digits as one number.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        self.0
    }

    /// The number with all but its last two digits hidden.
    #[must_use]
    pub fn format_masked(self) -> String {
        format!("…{:02}", self.0 % 100)
    }
}

impl Phone {
    /// The first four digits and the last two, for a text in which a person has to recognise the number.
    #[must_use]
    pub fn format_hint(self) -> String {
        let digits = self.to_string();
        format!("{}…{:02}", &digits[..4], self.0 % 100)
    }

    /// The text with `place` where the number stood: with or without its country's code, its digits set apart or not.
    #[must_use]
    pub fn hide_in_text<'t>(self, text: &'t str, place: &str) -> Cow<'t, str> {
        /// The least digits by which a number is still known in its own country.
        const NATIONAL: usize = 9;
        let digits = self.to_string();
        let national = digits.len().checked_sub(NATIONAL).map(|code| &digits[code..]);
        let found = |at: usize| {
            let mut spellings = [Some(digits.as_str()), national].into_iter().flatten();
            spellings.find_map(|digits| find_number_end(digits, &text.as_bytes()[at..])).map(|length| at + length)
        };
        let (mut hidden, mut kept, mut at) = (String::new(), 0, 0);
        while at < text.len() {
            match found(at) {
                Some(end) => {
                    hidden.push_str(&text[kept..at]);
                    hidden.push_str(place);
                    (kept, at) = (end, end);
                }
                None => at += 1,
            }
        }
        if kept == 0 { Cow::Borrowed(text) } else { Cow::Owned(hidden + &text[kept..]) }
    }
}

/// Where these digits end in a text that begins with them, with what people set between digits.
fn find_number_end(digits: &str, text: &[u8]) -> Option<usize> {
    let mut end = 0;
    for digit in digits.bytes() {
        while end > 0 && matches!(text.get(end)?, b' ' | b'-' | b'.' | b'(' | b')') {
            end += 1;
        }
        if *text.get(end)? != digit {
            return None;
        }
        end += 1;
    }
    Some(end)
}

impl fmt::Display for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format_masked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_hidden_in_any_spelling() {
        let phone = Phone::new(380_501_234_567).unwrap();
        let table = [
            ("no such number: 380501234567", "no such number: 3805…67"),
            ("+380 (50) 123-45-67 is wrong", "+3805…67 is wrong"),
            ("0501234567 і 380501234567", "03805…67 і 3805…67"),
            ("380501234568", "380501234568"),
            ("row 7 of 67, Київ…", "row 7 of 67, Київ…"),
            ("", ""),
        ];
        for (text, hidden) in table {
            assert_eq!(phone.hide_in_text(text, &phone.format_hint()), hidden);
        }
        let short = Phone::new(12_345).unwrap();
        assert_eq!(short.hide_in_text("12345", &short.format_hint()), "1234…45");
    }
}
