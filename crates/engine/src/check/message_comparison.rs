//! Comparison of messages within a list: their shapes, for choosing samples, and duplicates whose messages differ.
//! Pure.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use roaring::RoaringBitmap;
use rustc_hash::{FxHashMap, FxHasher};

use campaign_content::message::FilledMessage;
use campaign_core::domain::{Phone, Row};

/// The maximum number of shapes.
const MAX_SHAPES: usize = 256;

/// The structure of a message, apart from its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MessageShape {
    /// The variant, counted from 0; 0 without variants.
    arm: usize,
    /// The branches that are taken, one bit each.
    branches: u64,
}

/// The planned rows by the shape of their messages.
#[derive(Clone, Debug, Default)]
pub struct MessageShapes(BTreeMap<MessageShape, RoaringBitmap>);

impl MessageShapes {
    /// Adds a row.
    pub(super) fn add_row(&mut self, row: Row, arm: usize, branches: u64) {
        let shape = MessageShape { arm, branches };
        if self.0.len() < MAX_SHAPES || self.0.contains_key(&shape) {
            self.0.entry(shape).or_default().insert(row.get());
        }
    }

    /// The index of a row's variant. `None` if the shape of the row's message was not recorded.
    #[must_use]
    pub fn find_arm(&self, row: Row) -> Option<usize> {
        self.0.iter().find(|(_, rows)| rows.contains(row.get())).map(|(shape, _)| shape.arm)
    }

    /// A few of these rows whose messages show every variant and both outcomes of every condition, in the order of the list.
    ///
    /// If they cannot show all of that, they show as much as `most` rows can.
    #[must_use]
    pub fn pick_samples(&self, rows: &RoaringBitmap, most: usize) -> Vec<Row> {
        let firsts = self.0.iter().filter_map(|(shape, shaped)| Some((*shape, (shaped & rows).min()?)));
        let mut left: Vec<(MessageShape, u32)> = firsts.collect();
        let mut any: BTreeMap<usize, u64> = BTreeMap::new();
        for (MessageShape { arm, branches }, _) in &left {
            *any.entry(*arm).or_default() |= branches;
        }
        // The branches shown of each variant: taken, and not taken.
        let mut shown: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        let mut samples = Vec::new();
        while samples.len() < most {
            let news = |MessageShape { arm, branches }: &MessageShape| {
                let all = any.get(arm).copied().unwrap_or_default();
                match shown.get(arm) {
                    None => 1 + all.count_ones(),
                    Some((taken, passed)) => {
                        (branches & !taken).count_ones() + (all & !branches & !passed).count_ones()
                    }
                }
            };
            let best = left.iter().enumerate().max_by_key(|(_, (shape, row))| (news(shape), std::cmp::Reverse(*row)));
            let Some((at, (shape, row))) = best.filter(|(_, (shape, _))| news(shape) > 0) else { break };
            let (all, MessageShape { arm, branches }) = (any.get(&shape.arm).copied().unwrap_or_default(), *shape);
            let (taken, passed) = shown.entry(arm).or_default();
            (*taken, *passed) = (*taken | branches, *passed | all & !branches);
            samples.push(Row::new(*row));
            left.remove(at);
        }
        samples.sort_unstable();
        samples
    }
}

/// The maximum number of remembered messages, so that memory use does not grow with the list.
const MAX_REMEMBERED: usize = 200_000;

/// The hash of a message's text.
pub(super) fn hash_message(message: FilledMessage<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    message.texts().for_each(|(_, text)| text.hash(&mut hasher));
    hasher.finish()
}

/// The messages of the first row of each number, and the later rows with different messages.
#[derive(Default)]
pub(super) struct RepeatedNumbers {
    hashes: FxHashMap<u64, u64>,
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
        if self.hashes.get(&phone.to_u64()).is_some_and(|earlier| *earlier != hash) {
            self.differing.insert(row.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_content::audience::parse_phone_number;

    fn shapes(rows: &[(u32, usize, u64)]) -> MessageShapes {
        let mut shapes = MessageShapes::default();
        rows.iter().for_each(|(row, arm, branches)| shapes.add_row(Row::new(*row), *arm, *branches));
        shapes
    }

    fn samples(shapes: &MessageShapes, rows: &[u32], most: usize) -> Vec<u32> {
        shapes.pick_samples(&rows.iter().copied().collect(), most).into_iter().map(Row::get).collect()
    }

    #[test]
    fn samples_show_each_variant_and_each_outcome_of_a_condition() {
        let plain = shapes(&[(2, 0, 0), (3, 0, 0), (4, 0, 0)]);
        assert_eq!(samples(&plain, &[2, 3, 4], 5), [2]);
        assert_eq!(samples(&plain, &[4], 5), [4], "only rows that are sent to");
        let variants = shapes(&[(2, 1, 0), (3, 0, 0), (4, 1, 0)]);
        assert_eq!(samples(&variants, &[2, 3, 4], 5), [2, 3]);
        let branches = shapes(&[(2, 0, 0b00), (3, 0, 0b00), (4, 0, 0b01), (5, 0, 0b10), (6, 0, 0b11)]);
        assert_eq!(samples(&branches, &[2, 3, 4, 5, 6], 5), [2, 6], "two rows show both outcomes of both conditions");
        assert_eq!(samples(&branches, &[2, 3, 4, 5], 5), [2, 4, 5]);
        assert_eq!(samples(&branches, &[2, 3, 4, 5], 2), [2, 4]);
        assert_eq!(samples(&branches, &[], 5), [0; 0]);
    }

    #[test]
    fn number_of_message_shapes_is_bounded() {
        let many: Vec<(u32, usize, u64)> = (2..1_000).map(|row| (row, 0, row.into())).collect();
        let shapes = shapes(&many);
        assert_eq!(shapes.0.len(), MAX_SHAPES);
        assert_eq!((shapes.find_arm(Row::new(2)), shapes.find_arm(Row::new(999))), (Some(0), None));
    }

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
