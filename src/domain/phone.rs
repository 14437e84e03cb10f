//! A phone number that can be sent to.

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
    pub fn get(self) -> u64 {
        self.0
    }

    /// The number with all but its last two digits hidden.
    #[must_use]
    pub fn masked(self) -> String {
        format!("…{:02}", self.0 % 100)
    }
}

impl fmt::Display for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Phone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}
