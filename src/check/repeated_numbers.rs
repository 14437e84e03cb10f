//! Rows that are skipped as duplicates although their messages differ from the one that is sent.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use roaring::RoaringBitmap;

use crate::domain::{Phone, Row};
use crate::message::FilledMessage;

/// How many messages are remembered at most, so that memory use does not grow with the list.
const MAX_REMEMBERED: usize = 200_000;

/// The hash of a message's text.
pub(super) fn hash_message(message: FilledMessage<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.texts().for_each(|(_, text)| text.hash(&mut hasher));
    hasher.finish()
}

/// The messages of the first row of each number, and the later rows with different messages.
#[derive(Default)]
pub(super) struct RepeatedNumbers {
    hashes: HashMap<u64, u64>,
    /// The rows whose message differs from that of their number's first row.
    pub(super) differing: RoaringBitmap,
}

impl RepeatedNumbers {
    /// Adds the message of a number.
    pub(super) fn add_sent(&mut self, phone: Phone, hash: u64) {
        if self.hashes.len() < MAX_REMEMBERED {
            self.hashes.insert(phone.to_u64(), hash);
        }
    }

    /// Adds a later, skipped row of a number.
    pub(super) fn add_skipped(&mut self, row: Row, phone: Phone, hash: u64) {
        if self.hashes.get(&phone.to_u64()).is_some_and(|said| *said != hash) {
            self.differing.insert(row.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audience::parse_phone_number;

    #[test]
    fn row_differs_if_its_number_gets_another_message() {
        let [one, two] = ["+380501234567", "+380501234568"].map(|number| parse_phone_number(number, None).unwrap());
        let mut repeated = RepeatedNumbers::default();
        repeated.add_sent(one, 7);
        repeated.add_skipped(Row::new(3), one, 7);
        repeated.add_skipped(Row::new(4), one, 8);
        repeated.add_skipped(Row::new(5), two, 8);
        assert_eq!(repeated.differing.iter().collect::<Vec<_>>(), [4]);
    }
}
