//! Which numbers were met before.

use roaring::RoaringTreemap;

use crate::domain::Phone;

/// The numbers met so far, some three bytes each for a list of millions.
#[derive(Default)]
pub struct SeenNumbers(RoaringTreemap);

impl SeenNumbers {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Remembers a number and tells whether it is new.
    pub fn insert(&mut self, phone: Phone) -> bool {
        self.0.insert(phone.to_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audience::parse_phone_number;

    #[test]
    fn number_in_two_spellings_is_seen_twice() {
        let region = "UA".parse().ok();
        let mut seen = SeenNumbers::new();
        let news = ["+380 50 123 45 67", "0501234567", "0501234568", "380501234567.0"]
            .map(|text| seen.insert(parse_phone_number(text, region).unwrap()));
        assert_eq!(news, [true, false, true, false]);
    }
}
