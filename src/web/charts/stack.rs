//! Layers over time: how much of each kind fell into each point, one on the other. Every point is as wide as it is long.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::axis::{self, Tick};

/// How high a chart is, in pixels.
const HEIGHT: u32 = 200;

/// What a chart of layers is made of.
#[derive(Clone, Debug)]
pub struct StackInput<'c> {
    /// The first moment.
    pub from: Timestamp,
    /// The moment at which the last point ends.
    pub to: Timestamp,
    /// How many points there are in all.
    pub points: usize,
    /// The kinds, from below.
    pub kinds: Vec<LayerInput>,
    /// How much would be the most in a point; a line shows it, where it is within what the chart reaches to.
    pub allowed: Option<u64>,
    /// On whose clock times are told.
    pub zone: &'c TimeZone,
}

/// What becomes a layer.
#[derive(Clone, Debug)]
pub struct LayerInput {
    /// What it is of.
    pub label: String,
    /// The class of the stylesheet.
    pub class: String,
    /// How much is in each point that has any.
    pub counts: Vec<(usize, u64)>,
}

/// A chart of layers.
#[derive(Clone, Debug, Serialize)]
pub struct StackChart {
    /// The layers, from below.
    pub series: Vec<Series>,
    /// How many points there are.
    width: usize,
    height: u32,
    rows: Vec<HeightMark>,
    columns: Vec<Tick>,
    /// Where the line of what is allowed is, if there is one.
    allowed: Vec<HeightMark>,
}

/// A height with what stands there.
#[derive(Clone, Debug, Serialize)]
struct HeightMark {
    /// How far below the upper edge, in pixels.
    y: u32,
    label: String,
}

/// A layer.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// What it is of.
    pub label: String,
    /// The class of the stylesheet.
    pub class: String,
    /// Whether it is of what came after a first choice.
    pub fallback: bool,
    /// All that is in it, exactly.
    pub sum: u64,
    /// Its outline.
    pub path: String,
}

/// Puts layers on each other; numbers along the axis are written by `write`.
#[must_use]
pub fn draw_stack(input: StackInput<'_>, write: impl Fn(u64) -> String) -> StackChart {
    let points = input.points.max(1);
    let mut below = vec![0_u64; points];
    let mut layers = Vec::with_capacity(input.kinds.len());
    for LayerInput { label, class, counts } in input.kinds {
        let mut above = below.clone();
        for (point, count) in &counts {
            if let Some(top) = above.get_mut(*point) {
                *top = top.saturating_add(*count);
            }
        }
        let sum = counts.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        layers.push((label, class, sum, below));
        below = above;
    }
    let most = below.iter().copied().max().unwrap_or_default();
    // A line far above all there is would press it flat, and is told in words alone.
    let shown = input.allowed.filter(|allowed| *allowed > 0 && *allowed / 4 <= most);
    let (top, rows) = axis::number_axis(most.max(shown.unwrap_or_default()), &write);
    let y = |value: u64| HEIGHT - height_of(value, top);
    let tops: Vec<Vec<u64>> = layers.iter().skip(1).map(|(.., below)| below.clone()).chain([below]).collect();
    let series = layers.into_iter().zip(tops).map(|((label, class, sum, below), above)| {
        let path = draw_outline(&below, &above, y);
        let fallback = class.ends_with("fallback");
        Series { label, class, fallback, sum, path }
    });
    let series: Vec<Series> = series.collect();
    let height = |tick: Tick| HeightMark { y: HEIGHT - tick.at.0 * HEIGHT / 1_000, label: tick.label };
    let rows: Vec<HeightMark> = rows.into_iter().map(height).collect();
    // A number that the axis has at the same height is not said twice.
    let is_said = |at: u32| rows.iter().any(|row| row.y == at);
    let line = |allowed: u64| {
        let at = y(allowed);
        HeightMark { y: at, label: if is_said(at) { String::new() } else { write(allowed) } }
    };
    StackChart {
        series,
        width: points,
        height: HEIGHT,
        columns: axis::time_axis(input.from, input.to, input.zone),
        allowed: shown.map(line).into_iter().collect(),
        rows,
    }
}

fn height_of(value: u64, top: u64) -> u32 {
    let height = (u128::from(value.min(top)) * u128::from(HEIGHT)).div_ceil(u128::from(top.max(1)));
    u32::try_from(height).unwrap_or(HEIGHT)
}

/// The outline of a layer: a piece for each stretch of points that have something.
fn draw_outline(below: &[u64], above: &[u64], y: impl Fn(u64) -> u32) -> String {
    let (mut path, mut point) = (String::new(), 0);
    let thick = |point: usize| below.get(point) != above.get(point);
    while point < above.len() {
        if !thick(point) {
            point += 1;
            continue;
        }
        let first = point;
        while point < above.len() && thick(point) {
            point += 1;
        }
        // Writing into a string cannot fail.
        let _ = write!(path, "M{first} {}", y(below[first]));
        let stretch = |values: &[u64]| values[first..point].to_vec();
        for (at, value) in (first + 1..).zip(stretch(above)) {
            let _ = write!(path, "V{}H{at}", y(value));
        }
        for (at, value) in (first..point).zip(stretch(below)).rev() {
            let _ = write!(path, "V{}H{at}", y(value));
        }
        path.push('Z');
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn draw(kinds: &[Vec<(usize, u64)>], points: usize, allowed: Option<u64>) -> StackChart {
        let kinds = kinds
            .iter()
            .map(|counts| LayerInput { label: "<x>".into(), class: "c".into(), counts: counts.clone() })
            .collect();
        let [from, to] = [0, 600].map(|second| Timestamp::from_second(second).unwrap());
        let input = StackInput { from, to, points, kinds, allowed, zone: &TimeZone::UTC };
        draw_stack(input, |number| number.to_string())
    }

    proptest! {
        #[test]
        fn layers_fit_the_chart_and_sums_are_exact(
            kinds in proptest::collection::vec(proptest::collection::vec((0..40_usize, prop_oneof![0..9_u64, any::<u64>()]), 0..30), 0..5),
            allowed in proptest::option::of(any::<u64>()),
        ) {
            let chart = draw(&kinds, 40, allowed);
            prop_assert!(chart.allowed.iter().chain(&chart.rows).all(|height| height.y <= HEIGHT));
            for (series, counts) in chart.series.iter().zip(&kinds) {
                let sum = counts.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
                prop_assert_eq!(series.sum, sum);
                let numbers = series.path.split(|c: char| !c.is_ascii_digit()).filter(|text| !text.is_empty());
                for number in numbers {
                    prop_assert!(number.parse::<u32>().unwrap() <= HEIGHT, "{}", series.path);
                }
                let known = |c: char| c.is_ascii_digit() || "MVHZ ".contains(c);
                prop_assert!(series.path.chars().all(known), "{}", series.path);
            }
        }
    }

    #[test]
    fn layer_stacks_on_the_one_below_and_has_gaps() {
        let chart = draw(&[vec![(0, 5), (1, 10)], vec![(1, 10)]], 4, None);
        assert_eq!(chart.series[0].path, "M0 200V150H1V100H2V200H1V200H0Z");
        assert_eq!(chart.series[1].path, "M1 100V0H2V100H1Z");
    }

    #[test]
    fn allowed_line_is_hidden_if_far_above_the_data() {
        assert_eq!(draw(&[vec![(0, 80)]], 4, Some(100)).allowed.len(), 1);
        assert!(draw(&[vec![(0, 8)]], 4, Some(100)).allowed.is_empty());
    }
}
