//! Rows that are skipped since an earlier row has their number, and whose messages would say something else.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use roaring::RoaringBitmap;

use crate::domain::{Phone, Row};
use crate::message::FilledMessage;

/// The most numbers whose messages are remembered, so that the memory does not grow with the list.
const REMEMBERED: usize = 200_000;

/// What a message says, as a hash.
pub(super) fn hash_of(message: FilledMessage<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.texts().for_each(|(_, text)| text.hash(&mut hasher));
    hasher.finish()
}

/// What the first rows of numbers say, and the later rows that say something else.
#[derive(Default)]
pub(super) struct RepeatedNumbers {
    said: HashMap<u64, u64>,
    /// The rows whose message differs from that of their number's first row.
    pub(super) differing: RoaringBitmap,
}

impl RepeatedNumbers {
    /// Takes in what the number gets.
    pub(super) fn sent(&mut self, phone: Phone, hash: u64) {
        if self.said.len() < REMEMBERED {
            self.said.insert(phone.get(), hash);
        }
    }

    /// Takes in a later row of the number, which is skipped.
    pub(super) fn skipped(&mut self, row: Row, phone: Phone, hash: u64) {
        if self.said.get(&phone.get()).is_some_and(|said| *said != hash) {
            self.differing.insert(row.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audience::parse;

    #[test]
    fn row_differs_if_its_number_gets_another_message() {
        let [one, two] = ["+380501234567", "+380501234568"].map(|number| parse(number, None).unwrap());
        let mut repeated = RepeatedNumbers::default();
        repeated.sent(one, 7);
        repeated.skipped(Row::new(3), one, 7);
        repeated.skipped(Row::new(4), one, 8);
        repeated.skipped(Row::new(5), two, 8);
        assert_eq!(repeated.differing.iter().collect::<Vec<_>>(), [4]);
    }
}
