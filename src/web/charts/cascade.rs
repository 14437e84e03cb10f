//! A cascade: what reached each step, what ended there, and what fell on to the next, which begins where it fell.

use serde::Serialize;

use super::Length;
use super::bars::BarSegment;

/// A step as it is told.
#[derive(Clone, Debug)]
pub struct CascadeStep {
    /// What it is called.
    pub label: String,
    /// What ended there, piece by piece: words, class and how much.
    pub ended: Vec<(String, &'static str, u64)>,
    /// What fell on, with its words.
    pub fell: (String, u64),
}

/// A step as it is drawn.
#[derive(Clone, Debug, Serialize)]
pub struct Cascade {
    /// What it is called.
    pub label: String,
    /// How much reached it, exactly.
    pub reached: u64,
    /// What ended there, then what fell on; together what reached it.
    pub segments: Vec<BarSegment>,
}

/// The class of what fell on.
const FELL_CLASS: &str = "fell";

/// Draws steps, the first of which is as long as the chart.
#[must_use]
pub fn draw_cascade(steps: Vec<CascadeStep>) -> Vec<Cascade> {
    let whole = steps.first().map_or(0, count_reached);
    let mut begins = 0_u64;
    let mut drawn = Vec::with_capacity(steps.len());
    for step in steps {
        let (reached, fell) = (count_reached(&step), step.fell.1);
        let pieces = step.ended.into_iter().chain([(step.fell.0, FELL_CLASS, step.fell.1)]);
        let (mut at, mut segments) = (begins, Vec::new());
        for (label, class, value) in pieces.filter(|(.., value)| *value > 0) {
            let from = Length::from_share(at, whole).0.min(999);
            at = at.saturating_add(value);
            let length = Length::from_share(at, whole).0.saturating_sub(from).max(1);
            segments.push(BarSegment { label, value, class, from: Length(from), length: Length(length) });
        }
        drawn.push(Cascade { label: step.label, reached, segments });
        begins = begins.saturating_add(reached.saturating_sub(fell));
    }
    drawn
}

fn count_reached(step: &CascadeStep) -> u64 {
    step.ended.iter().fold(step.fell.1, |sum, (.., value)| sum.saturating_add(*value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn step_segments_add_up_and_fit_the_chart(
            ended in proptest::collection::vec((0..2_000_000_u64, 0..90_u64), 1..5),
        ) {
            let mut left: u64 = ended.iter().map(|(a, b)| a + b).sum();
            let steps = ended.iter().map(|(a, b)| {
                left -= a + b;
                let ended = vec![("a".to_owned(), "good", *a), ("b".to_owned(), "bad", *b)];
                CascadeStep { label: "<s>".to_owned(), ended, fell: ("on".to_owned(), left) }
            });
            let drawn = draw_cascade(steps.collect());
            for pair in drawn.windows(2) {
                let fell = pair[0].segments.iter().find(|piece| piece.class == FELL_CLASS).map_or(0, |piece| piece.value);
                prop_assert_eq!(fell, pair[1].reached);
            }
            for step in &drawn {
                prop_assert_eq!(step.segments.iter().map(|piece| piece.value).sum::<u64>(), step.reached);
                prop_assert!(step.segments.iter().all(|piece| piece.from.0 + piece.length.0 <= 1_000 && piece.length.0 > 0));
            }
        }
    }
}
