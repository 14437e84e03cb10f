//! The shapes of messages: which variant and which branches of conditions a row gets. Pure.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use crate::domain::Row;

/// The most shapes that are told apart.
const MAX_SHAPES: usize = 256;

/// What makes messages differ besides the cells that they show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MessageShape {
    /// The variant, counted from 0; 0 without variants.
    arm: usize,
    /// The branches that are taken, a bit for each.
    branches: u64,
}

/// The rows to be sent to, by the shape of their messages.
#[derive(Clone, Debug, Default)]
pub struct MessageShapes(BTreeMap<MessageShape, RoaringBitmap>);

impl MessageShapes {
    /// Takes in a row.
    pub(super) fn add_row(&mut self, row: Row, arm: usize, branches: u64) {
        let shape = MessageShape { arm, branches };
        if self.0.len() < MAX_SHAPES || self.0.contains_key(&shape) {
            self.0.entry(shape).or_default().insert(row.get());
        }
    }

    /// The variant of a row, counted from 0.
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
        // What is shown of each variant: branches that were taken, and branches that were not.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn shapes_are_bounded() {
        let many: Vec<(u32, usize, u64)> = (2..1_000).map(|row| (row, 0, row.into())).collect();
        let shapes = shapes(&many);
        assert_eq!(shapes.0.len(), MAX_SHAPES);
        assert_eq!((shapes.find_arm(Row::new(2)), shapes.find_arm(Row::new(999))), (Some(0), None));
    }
}
