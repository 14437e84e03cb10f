//! Which numbers were met before.

use roaring::RoaringTreemap;

use crate::domain::Phone;

/// The numbers met so far, some three bytes each for a list of millions.
#[derive(Default)]
pub struct Seen(RoaringTreemap);

impl Seen {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Remembers a number and tells whether it is new.
    pub fn insert(&mut self, phone: Phone) -> bool {
        self.0.insert(phone.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audience::parse;

    #[test]
    fn one_person_written_in_two_ways_is_seen_twice() {
        let region = "UA".parse().ok();
        let mut seen = Seen::new();
        let news = ["+380 50 123 45 67", "0501234567", "0501234568", "380501234567.0"]
            .map(|text| seen.insert(parse(text, region).unwrap()));
        assert_eq!(news, [true, false, true, false]);
    }
}
