//! Stacked charts over time: one layer per kind, over intervals of equal length.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _, Unit, Zoned, ZonedRound};
use serde::Serialize;

use super::Length;

/// The height of a chart, in pixels.
pub(super) const HEIGHT: u32 = 200;

/// The data of a stacked chart.
#[derive(Clone, Debug)]
pub struct StackInput<'c> {
    /// The start of the first point.
    pub from: Timestamp,
    /// The end of the last point.
    pub to: Timestamp,
    /// The total number of points.
    pub points: usize,
    /// The kinds, from bottom to top.
    pub kinds: Vec<LayerInput>,
    /// The maximum value per point, drawn as a line unless it is far above the data.
    pub allowed: Option<u64>,
    /// The time zone of the labels.
    pub zone: &'c TimeZone,
}

/// The data of a layer.
#[derive(Clone, Debug)]
pub struct LayerInput {
    /// What the layer counts, such as a channel, for the legend and the table.
    pub label: String,
    /// The class in the stylesheet.
    pub class: String,
    /// The counts of the points that are not empty.
    pub counts: Vec<(usize, u64)>,
}

/// A chart of layers.
#[derive(Clone, Debug, Serialize)]
pub struct StackChart {
    /// The layers, from bottom to top.
    pub series: Vec<Series>,
    /// The number of points.
    width: usize,
    height: u32,
    rows: Vec<HeightMark>,
    columns: Vec<Tick>,
    /// The line of the allowed value, if any.
    allowed: Vec<HeightMark>,
}

/// A height with a label.
#[derive(Clone, Debug, Serialize)]
struct HeightMark {
    /// The distance from the upper edge, in pixels.
    y: u32,
    label: String,
}

/// A layer.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// What the layer counts, such as a channel, for the legend and the table.
    pub label: String,
    /// The class in the stylesheet.
    pub class: String,
    /// Whether the layer shows messages on a fallback channel.
    pub fallback: bool,
    /// The exact sum of all points.
    pub sum: u64,
    /// The outline of the area.
    pub path: String,
}

/// Draws a stacked area chart; `format_number` formats the numbers along the axis.
pub fn draw_stack(input: StackInput<'_>, format_number: impl Fn(u64) -> String) -> StackChart {
    let points = input.points.max(1);
    let mut bottoms = vec![0_u64; points];
    let mut layers = Vec::with_capacity(input.kinds.len());
    for LayerInput { label, class, counts } in input.kinds {
        let mut above = bottoms.clone();
        for (point, count) in &counts {
            if let Some(top) = above.get_mut(*point) {
                *top = top.saturating_add(*count);
            }
        }
        let sum = counts.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        layers.push((label, class, sum, bottoms));
        bottoms = above;
    }
    let max_total = bottoms.iter().copied().max().unwrap_or_default();
    // A line far above all values would flatten the chart, so only the text mentions it.
    let visible_limit = input.allowed.filter(|allowed| *allowed > 0 && *allowed / 4 <= max_total);
    let (top, rows) = number_axis(max_total.max(visible_limit.unwrap_or_default()), &format_number);
    let y = |value: u64| HEIGHT - height_of(value, top);
    // The top of a layer is the bottom of the next layer.
    let tops: Vec<Vec<u64>> = layers.iter().skip(1).map(|(.., bottoms)| bottoms.clone()).chain([bottoms]).collect();
    let series = layers.into_iter().zip(tops).map(|((label, class, sum, bottoms), above)| {
        let path = draw_outline(&bottoms, &above, y);
        let fallback = class.ends_with("fallback");
        Series { label, class, fallback, sum, path }
    });
    let series: Vec<Series> = series.collect();
    let to_mark = |tick: Tick| HeightMark { y: HEIGHT - tick.at.0 * HEIGHT / 1_000, label: tick.label };
    let rows: Vec<HeightMark> = rows.into_iter().map(to_mark).collect();
    // A number that the axis already shows at the same height is not repeated.
    let is_labelled = |mark_y: u32| rows.iter().any(|row| row.y == mark_y);
    let limit_mark = |allowed: u64| {
        let limit_y = y(allowed);
        HeightMark { y: limit_y, label: if is_labelled(limit_y) { String::new() } else { format_number(allowed) } }
    };
    StackChart {
        series,
        width: points,
        height: HEIGHT,
        columns: time_ticks(input.from, input.to, input.zone),
        allowed: visible_limit.map(limit_mark).into_iter().collect(),
        rows,
    }
}

fn height_of(value: u64, top: u64) -> u32 {
    let height = (u128::from(value.min(top)) * u128::from(HEIGHT)).div_ceil(u128::from(top.max(1)));
    u32::try_from(height).unwrap_or(HEIGHT)
}

/// Draws the outline of a layer as an SVG path, with one closed subpath for each stretch of points that are not empty.
fn draw_outline(bottoms: &[u64], tops: &[u64], y: impl Fn(u64) -> u32) -> String {
    let (mut path, mut point) = (String::new(), 0);
    let is_filled = |point: usize| bottoms.get(point) != tops.get(point);
    while point < tops.len() {
        if !is_filled(point) {
            point += 1;
            continue;
        }
        let first = point;
        while point < tops.len() && is_filled(point) {
            point += 1;
        }
        // Writing into a string cannot fail.
        let _ = write!(path, "M{first} {}", y(bottoms[first]));
        let stretch = |values: &[u64]| values[first..point].to_vec();
        for (at, value) in (first + 1..).zip(stretch(tops)) {
            let _ = write!(path, "V{}H{at}", y(value));
        }
        for (at, value) in (first..point).zip(stretch(bottoms)).rev() {
            let _ = write!(path, "V{}H{at}", y(value));
        }
        path.push('Z');
    }
    path
}

/// A labelled position on an axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Tick {
    /// The distance from the start.
    pub(super) at: Length,
    /// The edge of the chart at which the label must be aligned: `begins`, `ends` or none.
    edge: &'static str,
    pub(super) label: String,
}

impl Tick {
    fn new(at: Length, label: String) -> Self {
        let edge = match at.0 {
            0..50 => "begins",
            951.. => "ends",
            _ => "",
        };
        Self { at, edge, label }
    }
}

/// The maximum number of steps on a number axis.
const MAX_STEPS: u64 = 4;

/// Returns the top of an axis for values up to `max`, and ticks at round numbers.
pub(super) fn number_axis(max: u64, format_number: impl Fn(u64) -> String) -> (u64, Vec<Tick>) {
    let step = round_step(max.max(1).div_ceil(MAX_STEPS));
    let top = max.max(1).div_ceil(step).saturating_mul(step);
    let steps = top / step;
    let tick = |number: u64| Tick::new(Length::from_share(number, steps), format_number(number.saturating_mul(step)));
    (top, (0..=steps).map(tick).collect())
}

/// The smallest of 1, 2, 5, 10, 20, 50 … that is at least `min`.
fn round_step(min: u64) -> u64 {
    let mut ten = 1_u64;
    loop {
        for digit in [1, 2, 5] {
            let step = ten.saturating_mul(digit);
            if step >= min {
                return step;
            }
        }
        ten = ten.saturating_mul(10);
    }
}

/// Steps between ticks: the approximate length in seconds, and the exact step on the clock as a count of a unit.
const STEPS: [(i64, i64, Unit); 17] = [
    (1, 1, Unit::Second),
    (5, 5, Unit::Second),
    (15, 15, Unit::Second),
    (60, 1, Unit::Minute),
    (300, 5, Unit::Minute),
    (600, 10, Unit::Minute),
    (1_800, 30, Unit::Minute),
    (3_600, 1, Unit::Hour),
    (7_200, 2, Unit::Hour),
    (14_400, 4, Unit::Hour),
    (21_600, 6, Unit::Hour),
    (43_200, 12, Unit::Hour),
    (86_400, 1, Unit::Day),
    (172_800, 2, Unit::Day),
    (604_800, 7, Unit::Day),
    (2_592_000, 30, Unit::Day),
    (31_536_000, 365, Unit::Day),
];
/// The maximum number of ticks whose labels do not overlap on a small screen.
const MAX_TICKS: i64 = 5;
/// A safety limit for the number of ticks, in case a clock change makes the steps shorter than expected.
const TICK_SAFETY_LIMIT: usize = 12;

/// The ticks at round local times between two moments.
pub(super) fn time_ticks(from: Timestamp, to: Timestamp, zone: &TimeZone) -> Vec<Tick> {
    let seconds = to.as_second().saturating_sub(from.as_second()).max(1);
    let fitting = STEPS.into_iter().find(|(step, ..)| seconds / step < MAX_TICKS);
    let Some((_, count, unit)) = fitting else { return Vec::new() };
    let whole_days = unit == Unit::Day;
    let format = if whole_days {
        "%d.%m"
    } else if matches!(unit, Unit::Second) {
        "%H:%M:%S"
    } else {
        "%H:%M"
    };
    let (mut ticks, mut next) = (Vec::new(), round_down_to_step(from.to_zoned(zone.clone()), count, unit));
    while let Some(mark) = next.filter(|mark| mark.timestamp() <= to && ticks.len() < TICK_SAFETY_LIMIT) {
        let after = mark.timestamp().as_second() - from.as_second();
        if after >= 0 {
            let at = Length::from_share(u64::try_from(after).unwrap_or_default(), u64::try_from(seconds).unwrap_or(1));
            ticks.push(Tick::new(at, mark.strftime(format).to_string()));
        }
        next = mark.checked_add(step_span(count, unit)).ok().filter(|later| later.timestamp() > mark.timestamp());
    }
    ticks
}

/// Rounds a time down to a multiple of the step; for days, to midnight.
fn round_down_to_step(at: Zoned, count: i64, unit: Unit) -> Option<Zoned> {
    if unit == Unit::Day {
        return at.start_of_day().ok();
    }
    at.round(ZonedRound::new().smallest(unit).increment(count).mode(jiff::RoundMode::Floor)).ok()
}

fn step_span(count: i64, unit: Unit) -> Span {
    match unit {
        Unit::Second => count.seconds(),
        Unit::Minute => count.minutes(),
        Unit::Hour => count.hours(),
        _ => count.days(),
    }
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
    fn layer_is_stacked_on_the_layer_below_and_can_have_gaps() {
        let chart = draw(&[vec![(0, 5), (1, 10)], vec![(1, 10)]], 4, None);
        assert_eq!(chart.series[0].path, "M0 200V150H1V100H2V200H1V200H0Z");
        assert_eq!(chart.series[1].path, "M1 100V0H2V100H1Z");
    }

    #[test]
    fn limit_line_is_hidden_if_far_above_the_data() {
        assert_eq!(draw(&[vec![(0, 80)]], 4, Some(100)).allowed.len(), 1);
        assert!(draw(&[vec![(0, 8)]], 4, Some(100)).allowed.is_empty());
    }
}

#[cfg(test)]
mod axis_tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn axis_covers_the_maximum_with_two_to_six_ticks(max in prop_oneof![0..20_000_u64, any::<u64>()]) {
            let (top, ticks) = number_axis(max, |number| number.to_string());
            prop_assert!(top >= max && (2..=6).contains(&ticks.len()), "{top} {ticks:?}");
            prop_assert!(ticks.windows(2).all(|pair| pair[0].at < pair[1].at));
            prop_assert_eq!((ticks[0].at, ticks[ticks.len() - 1].at), (Length(0), Length(1_000)));
        }

        #[test]
        fn time_axis_has_few_ticks_in_order(
            from in 0..4_000_000_000_i64, seconds in prop_oneof![0..1_000_i64, 0..100_000_000_i64],
        ) {
            let [from, to] = [from, from + seconds].map(|second| Timestamp::from_second(second).unwrap());
            let ticks = time_ticks(from, to, &TimeZone::get("Europe/Kyiv").unwrap());
            prop_assert!(ticks.len() <= 8, "{ticks:?}");
            prop_assert!(ticks.iter().all(|tick| tick.at <= Length(1_000)));
            prop_assert!(ticks.windows(2).all(|pair| pair[0].at <= pair[1].at));
        }
    }

    #[test]
    fn ticks_follow_the_time_zone_across_clock_changes() {
        let kyiv = TimeZone::get("Europe/Kyiv").unwrap();
        let ticks = |from: &str, to: &str| -> Vec<String> {
            time_ticks(from.parse().unwrap(), to.parse().unwrap(), &kyiv).into_iter().map(|tick| tick.label).collect()
        };
        assert_eq!(
            ticks("2026-11-21T07:00:00Z", "2026-11-21T07:20:00Z"),
            ["09:00", "09:05", "09:10", "09:15", "09:20"]
        );
        assert_eq!(ticks("2026-10-24T20:30:00Z", "2026-10-27T10:00:00Z"), ["25.10", "26.10", "27.10"]);
    }
}
