//! How many of something fell into which time, at most some hundred points however long a run takes. Pure.
//!
//! The points are of one length: the shortest of a ladder at which there are few enough of them. Each length divides the next, so
//! the points of a shorter one become those of a longer one, and the order in which things are told makes no difference.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The lengths of a point, in seconds: from one to a hundred years.
const POINT_SECONDS: [i64; 13] =
    [1, 5, 15, 60, 300, 900, 3_600, 10_800, 43_200, 86_400, 604_800, 31_449_600, 3_144_960_000];
/// Points from the first to the last, at most.
pub(super) const MAX_POINTS: i64 = 240;

/// Counts by time and by kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline<K: Ord> {
    /// Which of the lengths the points have.
    length: u8,
    /// By the number of the point since the beginning of 1970.
    points: BTreeMap<i64, BTreeMap<K, u64>>,
}

/// One point of a timeline.
#[derive(Clone, Copy, Debug)]
pub struct TimelinePoint<'t, K> {
    /// When it begins.
    pub from: Timestamp,
    /// What fell into it, by kind; only kinds that did.
    pub counts: &'t BTreeMap<K, u64>,
}

impl<K: Ord> Default for Timeline<K> {
    fn default() -> Self {
        Self { length: 0, points: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Timeline<K> {
    /// Adds so many of a kind at a moment.
    pub(super) fn add_count(&mut self, at: Timestamp, kind: K, count: u64) {
        let point = at.as_second().div_euclid(self.point_seconds());
        *self.points.entry(point).or_default().entry(kind).or_default() += count;
        while self.count_points() > MAX_POINTS && usize::from(self.length) + 1 < POINT_SECONDS.len() {
            self.merge_points();
        }
    }

    /// How long a point is, in seconds.
    #[must_use]
    pub fn point_seconds(&self) -> i64 {
        POINT_SECONDS.get(usize::from(self.length)).copied().unwrap_or(POINT_SECONDS[POINT_SECONDS.len() - 1])
    }

    /// Points from the first to the last, those among them into which nothing fell.
    #[must_use]
    pub fn count_points(&self) -> i64 {
        let (first, last) = (self.points.keys().next(), self.points.keys().next_back());
        first.zip(last).map_or(0, |(first, last)| last - first + 1)
    }

    fn merge_points(&mut self) {
        let before = self.point_seconds();
        self.length += 1;
        let fold = self.point_seconds() / before;
        let mut points: BTreeMap<i64, BTreeMap<K, u64>> = BTreeMap::new();
        for (point, counts) in std::mem::take(&mut self.points) {
            let into = points.entry(point.div_euclid(fold)).or_default();
            counts.into_iter().for_each(|(kind, count)| *into.entry(kind).or_default() += count);
        }
        self.points = points;
    }

    /// The points into which something fell, the first first; each with its place from 0 among all of the span.
    pub fn points(&self) -> impl Iterator<Item = (i64, TimelinePoint<'_, K>)> {
        let first = self.points.keys().next().copied().unwrap_or_default();
        self.points
            .iter()
            .map(move |(number, counts)| (number - first, TimelinePoint { from: self.point_start(*number), counts }))
    }

    /// When the first point begins and the last one ends; nothing where nothing was told.
    #[must_use]
    pub fn bounds(&self) -> Option<(Timestamp, Timestamp)> {
        let (first, last) = (self.points.keys().next()?, self.points.keys().next_back()?);
        Some((self.point_start(*first), self.point_start(last + 1)))
    }

    fn point_start(&self, point: i64) -> Timestamp {
        let end = if point < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Timestamp::from_second(point.saturating_mul(self.point_seconds())).unwrap_or(end)
    }

    /// The same with other kinds; what has none there is left out.
    pub(super) fn map_kinds<L: Ord>(&self, name: impl Fn(&K) -> Option<L>) -> Timeline<L> {
        let counts = |counts: &BTreeMap<K, u64>| {
            counts.iter().filter_map(|(kind, count)| Some((name(kind)?, *count))).collect::<BTreeMap<L, u64>>()
        };
        Timeline { length: self.length, points: self.points.iter().map(|(at, of)| (*at, counts(of))).collect() }
    }

    /// The kinds that occur, in their order, each with its sum.
    #[must_use]
    pub fn sum_by_kind(&self) -> Vec<(K, u64)> {
        let mut kinds: BTreeMap<&K, u64> = BTreeMap::new();
        for counts in self.points.values() {
            counts.iter().for_each(|(kind, count)| *kinds.entry(kind).or_default() += count);
        }
        kinds.into_iter().map(|(kind, count)| (kind.clone(), count)).collect()
    }

    /// How many of all kinds fell into each of the last points up to now, the oldest first.
    #[must_use]
    pub fn latest_counts(&self, points: usize) -> Vec<u64> {
        let Some(last) = self.points.keys().next_back().copied() else { return Vec::new() };
        let wanted = i64::try_from(points).unwrap_or(MAX_POINTS).min(self.count_points());
        let sum = |point| self.points.get(&point).map_or(0, |counts: &BTreeMap<K, u64>| counts.values().sum());
        (last + 1 - wanted..=last).map(sum).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample_timeline(moments: &[(i64, bool, u64)]) -> Timeline<bool> {
        let mut timeline = Timeline::default();
        for (second, kind, count) in moments {
            timeline.add_count(Timestamp::from_second(*second).unwrap(), *kind, *count);
        }
        timeline
    }

    fn moments() -> impl Strategy<Value = Vec<(i64, bool, u64)>> {
        let second = prop_oneof![
            0..300_i64,
            1_700_000_000..1_700_400_000_i64,
            Timestamp::MIN.as_second()..Timestamp::MAX.as_second()
        ];
        proptest::collection::vec((second, any::<bool>(), 0..1_000_u64), 1..60)
    }

    proptest! {
        #[test]
        fn events_fall_into_a_bounded_number_of_points(moments in moments()) {
            let timeline = sample_timeline(&moments);
            prop_assert!((1..=MAX_POINTS).contains(&timeline.count_points()), "{}", timeline.count_points());
            let sum: u64 = timeline.points().flat_map(|(_, point)| point.counts.values()).sum();
            prop_assert_eq!(sum, moments.iter().map(|(_, _, count)| count).sum::<u64>());
            let (first, last) = timeline.bounds().expect("there are points");
            for (second, ..) in &moments {
                let at = Timestamp::from_second(*second).unwrap();
                prop_assert!(first <= at && (at < last || last == Timestamp::MAX));
            }
            let all = timeline.latest_counts(usize::try_from(MAX_POINTS).unwrap());
            prop_assert_eq!(all.into_iter().sum::<u64>(), sum);
        }

        #[test]
        fn order_of_events_makes_no_difference(moments in moments(), chance in any::<u64>()) {
            let mut other = moments.clone();
            let middle = usize::try_from(chance % other.len() as u64).unwrap();
            other.rotate_left(middle);
            other.reverse();
            prop_assert_eq!(sample_timeline(&moments), sample_timeline(&other));
        }
    }

    #[test]
    fn each_length_divides_the_next() {
        assert!(POINT_SECONDS.windows(2).all(|pair| pair[1] > pair[0] && pair[1] % pair[0] == 0));
    }
}
