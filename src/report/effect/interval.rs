//! How sure a share of people is: Wilson's interval of one, Newcombe's of the difference of two.

/// The quantile of the normal distribution for 95 %, both tails.
const Z: f64 = 1.959_963_984_540_054;

/// People, and how many of them did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proportion {
    /// How many people there are.
    pub total: u64,
    /// How many of them did it; at most all.
    pub successes: u64,
}

/// Where a share, or a difference of two, is with 95 % certainty; of a share 0 to 1, of a difference -1 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Proportion {
    /// The share, 0 to 1; 0 of nobody.
    #[must_use]
    pub fn share(self) -> f64 {
        if self.total == 0 { 0.0 } else { self.successes as f64 / self.total as f64 }
    }

    /// The score interval of E. B. Wilson (1927), which holds for few people and for shares near 0 and 1 too.
    #[must_use]
    pub fn wilson_interval(self) -> Interval {
        if self.total == 0 {
            return Interval { low: 0.0, high: 1.0 };
        }
        let (n, p) = (self.total as f64, self.share());
        let scale = 1.0 + Z * Z / n;
        let middle = (p + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        // Rounding alone may put an end on the wrong side of the share, where that is 0 or 1.
        Interval { low: (middle - half).max(0.0).min(p), high: (middle + half).min(1.0).max(p) }
    }

    /// How much larger this share is than the other, by R. G. Newcombe (1998, method 10) from both intervals of Wilson.
    #[must_use]
    pub fn difference_interval(self, other: Self) -> Interval {
        let (own, its) = (self.wilson_interval(), other.wilson_interval());
        let (p, q) = (self.share(), other.share());
        let low = (p - q) - ((p - own.low).powi(2) + (its.high - q).powi(2)).sqrt();
        let high = (p - q) + ((own.high - p).powi(2) + (q - its.low).powi(2)).sqrt();
        Interval { low: low.max(-1.0), high: high.min(1.0) }
    }
}

impl Interval {
    /// Whether it holds no difference, so that none can be told.
    #[must_use]
    pub fn contains_zero(self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_close(found: f64, known: f64) -> bool {
        (found - known).abs() < 0.000_05
    }

    #[test]
    fn intervals_match_published_examples() {
        // Newcombe 1998, Statistics in Medicine 17, pp. 857 and 873: table II and the intervals of Wilson for the same counts.
        for (did, people, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let Interval { low: l, high: h } = Proportion { total: people, successes: did }.wilson_interval();
            assert!(is_close(l, low) && is_close(h, high), "{did} of {people}: {l} to {h}");
        }
        for (one, other, low, high) in
            [((56, 70), (48, 80), 0.0524, 0.3339), ((9, 10), (3, 10), 0.1705, 0.8090), ((10, 10), (0, 10), 0.6075, 1.0)]
        {
            let [one, other] = [one, other].map(|(did, people)| Proportion { total: people, successes: did });
            let Interval { low: l, high: h } = one.difference_interval(other);
            assert!(is_close(l, low) && is_close(h, high), "{one:?} above {other:?}: {l} to {h}");
        }
    }

    proptest! {
        #[test]
        fn interval_contains_its_share_and_narrows_with_size(people in 1_u64..5_000, part in 0.0_f64..=1.0) {
            let did = (people as f64 * part) as u64;
            let few = Proportion { total: people, successes: did };
            let many = Proportion { total: people * 10, successes: did * 10 };
            let (wide, narrow) = (few.wilson_interval(), many.wilson_interval());
            prop_assert!(0.0 <= wide.low && wide.low <= few.share() && few.share() <= wide.high && wide.high <= 1.0);
            prop_assert!(narrow.high - narrow.low < wide.high - wide.low);
            prop_assert!(few.difference_interval(few).contains_zero());
        }
    }
}
