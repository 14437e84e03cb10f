//! Geometry of bar and column charts: numbers become lengths, and a template draws them.
//!
//! The caller supplies all texts. Charts have no colours: shapes have classes, which the stylesheet colours for light
//! mode, dark mode and print. Only lengths are rounded, never numbers that people read. A length is in thousandths of
//! the whole, so a chart fits any screen without a script.

mod stack;

pub use stack::{LayerInput, Series, StackChart, StackInput, draw_stack};

use std::collections::BTreeMap;

use jiff::ToSpan as _;
use jiff::civil::{Date, Weekday};
use serde::{Serialize, Serializer};
use stack::{HEIGHT, number_axis};

/// A length in thousandths of a chart, which a page writes as `37.5%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(u32);

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}.{}%", self.0 / 10, self.0 % 10))
    }
}

impl Length {
    /// Returns the length of `part` within `total`, rounded to a thousandth; a share above zero is at least one
    /// thousandth.
    fn from_share(part: u64, total: u64) -> Self {
        if part == 0 || total == 0 {
            return Self(0);
        }
        let share = (u128::from(part.min(total)) * 1_000 + u128::from(total) / 2) / u128::from(total);
        Self(u32::try_from(share).unwrap_or(1_000).max(1))
    }

    /// Returns the start and the length of a range given as fractions from 0 to 1; the length is at least one
    /// thousandth.
    pub fn from_range(low: f64, high: f64) -> (Self, Self) {
        let thousandths = |share: f64| (share.clamp(0.0, 1.0) * 1_000.0).round() as u32;
        let from = thousandths(low).min(999);
        (Self(from), Self(thousandths(high).saturating_sub(from).max(1)))
    }
}

/// A bar of a bar chart.
#[derive(Clone, Debug, Serialize)]
pub struct Bar {
    /// What the bar counts, such as a state, a skip reason or a day.
    pub label: String,
    /// Whether the label is text that does not come from this program.
    pub foreign: bool,
    /// An additional note.
    pub note: Option<String>,
    /// The exact number.
    pub value: u64,
    /// The class in the stylesheet.
    pub class: &'static str,
    /// The length of the bar.
    pub length: Length,
    /// The nesting depth.
    pub depth: u8,
    /// The link to the counted rows, on a served page.
    pub path: Option<String>,
}

/// A piece of a step in a cascade, as it is drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BarSegment {
    /// The label, without the number.
    pub label: String,
    /// The exact number.
    pub value: u64,
    /// The class in the stylesheet.
    pub class: &'static str,
    /// The start of the segment.
    pub from: Length,
    /// The length of the segment.
    pub length: Length,
}

impl Bar {
    /// Creates a bar of zero length for a value; [`scale_bars`] sets the length.
    pub fn new(label: impl Into<String>, value: u64, class: &'static str) -> Self {
        Self {
            label: label.into(),
            foreign: false,
            note: None,
            value,
            class,
            length: Length::default(),
            depth: 0,
            path: None,
        }
    }

    /// Sets how deeply the bar is nested below other bars.
    #[must_use]
    pub fn with_depth(self, depth: u8) -> Self {
        Self { depth, ..self }
    }

    /// Sets the note that is shown with the bar.
    #[must_use]
    pub fn with_note(self, note: Option<String>) -> Self {
        Self { note, ..self }
    }

    /// Sets the link to the rows that the bar counts.
    #[must_use]
    pub fn with_path(self, path: Option<String>) -> Self {
        Self { path, ..self }
    }

    /// Marks the label as text that does not come from this program.
    #[must_use]
    pub fn with_foreign_label(self) -> Self {
        Self { foreign: true, ..self }
    }
}

/// Scales bars so that the full chart length stands for `max_value`, or for the largest value if `max_value` is `None`.
pub fn scale_bars(bars: Vec<Bar>, max_value: Option<u64>) -> Vec<Bar> {
    let max_value = max_value.or(bars.iter().map(|bar| bar.value).max()).unwrap_or_default();
    bars.into_iter().map(|bar| Bar { length: Length::from_share(bar.value, max_value), ..bar }).collect()
}

/// A step of a cascade: the messages that reached one channel of a fallback chain.
#[derive(Clone, Debug)]
pub struct CascadeStep {
    /// The name of the step's channel, in the language of the page.
    pub label: String,
    /// The pieces that ended at this step: label, class and number.
    pub ended: Vec<(String, &'static str, u64)>,
    /// The piece that fell back to the next channel, with its label.
    pub fell_back: (String, u64),
}

/// A step of a cascade, as it is drawn.
#[derive(Clone, Debug, Serialize)]
pub struct Cascade {
    /// The name of the step's channel, in the language of the page.
    pub label: String,
    /// The exact number that reached the step.
    pub reached: u64,
    /// The pieces that ended at this step, then the piece that fell back; together they make `reached`.
    pub segments: Vec<BarSegment>,
}

/// The class of the piece that fell back.
const FALLBACK_CLASS: &str = "fell";

/// Draws the steps of a cascade. The first step is as long as the chart.
pub fn draw_cascade(steps: Vec<CascadeStep>) -> Vec<Cascade> {
    let total = steps.first().map_or(0, count_reached);
    let mut step_start = 0_u64;
    let mut cascades = Vec::with_capacity(steps.len());
    for step in steps {
        let reached = count_reached(&step);
        let CascadeStep { label: step_label, ended, fell_back: (fallback_label, fell_back) } = step;
        let pieces = ended.into_iter().chain([(fallback_label, FALLBACK_CLASS, fell_back)]);
        let (mut at, mut segments) = (step_start, Vec::new());
        for (label, class, value) in pieces.filter(|(.., value)| *value > 0) {
            // A segment is at least one thousandth long, even at the end of the chart.
            let from = Length::from_share(at, total).0.min(999);
            at = at.saturating_add(value);
            let length = Length::from_share(at, total).0.saturating_sub(from).max(1);
            segments.push(BarSegment { label, value, class, from: Length(from), length: Length(length) });
        }
        cascades.push(Cascade { label: step_label, reached, segments });
        step_start = step_start.saturating_add(reached.saturating_sub(fell_back));
    }
    cascades
}

fn count_reached(step: &CascadeStep) -> u64 {
    step.ended.iter().fold(step.fell_back.1, |sum, (.., value)| sum.saturating_add(*value))
}

/// A calendar of occurrences, by week.
#[derive(Clone, Debug, Serialize)]
pub struct CalendarView {
    /// The days of the week as numbers; Monday is 1.
    pub days: [String; 7],
    /// The weeks, each from Monday to Sunday; `None` for days outside the range.
    pub weeks: Vec<Vec<Option<CalendarDay>>>,
}

/// A day of a calendar. Templates turn `weekday` and `month` into names.
#[derive(Clone, Debug, Serialize)]
pub struct CalendarDay {
    /// The day of the month.
    pub day: i8,
    /// The day of the week as a number; Monday is 1.
    pub weekday: String,
    /// The number of the month.
    pub month: String,
    /// The date in ISO format.
    pub date: String,
    /// Whether the month is shown: on the first day of the calendar, and on the first of a month.
    pub named: bool,
    /// The occurrences of the day, in order.
    pub due: Vec<String>,
}

/// Builds a calendar of `days` days that starts at `from`; `due` maps each day to the occurrences on that day.
pub fn build_calendar(from: Date, days: u16, due: &BTreeMap<Date, Vec<String>>) -> CalendarView {
    let blank_days = usize::try_from(from.weekday().since(Weekday::Monday)).unwrap_or_default();
    let mut cells: Vec<Option<CalendarDay>> = (0..blank_days).map(|_| None).collect();
    for offset in 0..i64::from(days) {
        let Ok(date) = from.checked_add(offset.days()) else { break };
        cells.push(Some(CalendarDay {
            day: date.day(),
            weekday: date.weekday().to_monday_one_offset().to_string(),
            month: date.month().to_string(),
            date: date.to_string(),
            named: offset == 0 || date.day() == 1,
            due: due.get(&date).cloned().unwrap_or_default(),
        }));
    }
    cells.resize_with(cells.len().next_multiple_of(7), || None);
    let days = [1, 2, 3, 4, 5, 6, 7].map(|day: u8| day.to_string());
    CalendarView { days, weeks: cells.chunks(7).map(<[_]>::to_vec).collect() }
}

/// The data of a column chart.
#[derive(Clone, Debug)]
pub struct ColumnInput {
    /// The kinds of values from bottom to top, each with its label and its class in the stylesheet.
    pub series: Vec<(String, String)>,
    /// The label of each column, and its values in the order of the kinds.
    pub columns: Vec<(String, Vec<u64>)>,
}

/// A chart of stacked columns, as it is drawn.
#[derive(Clone, Debug, Serialize)]
pub struct ColumnChart {
    height: u32,
    /// The width of a column.
    width: Length,
    series: Vec<ColumnSeries>,
    columns: Vec<ColumnView>,
    rows: Vec<AxisMark>,
}

#[derive(Clone, Debug, Serialize)]
struct ColumnSeries {
    label: String,
    class: String,
    /// The exact sum of all columns.
    sum: u64,
}

#[derive(Clone, Debug, Serialize)]
struct ColumnView {
    label: String,
    /// The left edge.
    at: Length,
    middle: Length,
    /// Whether the label is hidden on narrow screens.
    minor: bool,
    pieces: Vec<ColumnPiece>,
}

#[derive(Clone, Debug, Serialize)]
struct ColumnPiece {
    class: String,
    /// The upper edge, in pixels.
    y: u32,
    /// The height, in pixels.
    height: u32,
}

#[derive(Clone, Debug, Serialize)]
struct AxisMark {
    y: u32,
    label: String,
}

/// The share of its slot that a column fills, in thousandths.
const FILLED: u32 = 680;

/// Draws a column chart; `format_number` formats the numbers along the axis.
pub fn draw_columns(input: ColumnInput, format_number: impl Fn(u64) -> String) -> ColumnChart {
    let ColumnInput { series, columns } = input;
    let total = |values: &[u64]| values.iter().fold(0_u64, |sum, value| sum.saturating_add(*value));
    let max_total = columns.iter().map(|(_, values)| total(values)).max().unwrap_or_default();
    let (top, marks) = number_axis(max_total, format_number);
    let pixels = |value: u64| u32::try_from(u128::from(value) * u128::from(HEIGHT) / u128::from(top)).unwrap_or(HEIGHT);
    let count = u32::try_from(columns.len().max(1)).unwrap_or(1);
    let slot_width = 1_000 / count;
    let sum_of_kind = |kind: usize| columns.iter().fold(0_u64, |sum, (_, values)| sum.saturating_add(values[kind]));
    let sums = (0..series.len()).map(sum_of_kind);
    let sums: Vec<u64> = sums.collect();
    let column = |(number, (label, values)): (u32, (String, Vec<u64>))| {
        let from = number * 1_000 / count;
        let (mut offset, mut pieces) = (0_u64, Vec::new());
        for (value, (_, class)) in values.iter().zip(&series).filter(|(value, _)| **value > 0) {
            let above = offset.saturating_add(*value);
            let height = pixels(above).saturating_sub(pixels(offset)).max(1);
            pieces.push(ColumnPiece {
                class: class.clone(),
                y: HEIGHT.saturating_sub(pixels(offset) + height),
                height,
            });
            offset = above;
        }
        let at = Length(from + slot_width * (1_000 - FILLED) / 2_000);
        // Narrow screens show every third label, counted from the last column.
        let minor = (count - 1 - number) % 3 != 0;
        ColumnView { label, at, middle: Length(from + slot_width / 2), minor, pieces }
    };
    ColumnChart {
        height: HEIGHT,
        width: Length(slot_width * FILLED / 1_000),
        columns: (0..).zip(columns).map(column).collect(),
        series: series
            .iter()
            .zip(sums)
            .map(|((label, class), sum)| ColumnSeries { label: label.clone(), class: class.clone(), sum })
            .collect(),
        rows: marks
            .into_iter()
            .map(|mark| AxisMark { y: HEIGHT - mark.at.0 * HEIGHT / 1_000, label: mark.label })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn length_is_zero_only_for_an_empty_share(part in any::<u64>(), whole in any::<u64>()) {
            let Length(share) = Length::from_share(part, whole);
            prop_assert!(share <= 1_000);
            prop_assert_eq!(share == 0, part == 0 || whole == 0);
        }
    }
}

#[cfg(test)]
mod bar_tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn longest_bar_fills_the_chart(values in proptest::collection::vec(any::<u64>(), 1..20)) {
            let bars = scale_bars(values.iter().map(|value| Bar::new("x", *value, "c")).collect(), None);
            let longest = bars.iter().map(|bar| bar.length).max().unwrap();
            prop_assert_eq!(longest, if values.iter().all(|value| *value == 0) { Length(0) } else { Length(1_000) });
            for bar in &bars {
                prop_assert!(bars.iter().all(|other| bar.value < other.value || bar.length >= other.length));
            }
        }
    }
}

#[cfg(test)]
mod cascade_tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn step_segments_add_up_and_fit_the_chart(
            ended in proptest::collection::vec((0..2_000_000_u64, 0..90_u64), 1..5),
        ) {
            let mut remaining: u64 = ended.iter().map(|(good, bad)| good + bad).sum();
            let steps = ended.iter().map(|(good, bad)| {
                remaining -= good + bad;
                let ended = vec![("a".to_owned(), "good", *good), ("b".to_owned(), "bad", *bad)];
                CascadeStep { label: "<s>".to_owned(), ended, fell_back: ("on".to_owned(), remaining) }
            });
            let cascades = draw_cascade(steps.collect());
            for pair in cascades.windows(2) {
                let fell_back = pair[0].segments.iter().find(|piece| piece.class == FALLBACK_CLASS).map_or(0, |piece| piece.value);
                prop_assert_eq!(fell_back, pair[1].reached);
            }
            for step in &cascades {
                prop_assert_eq!(step.segments.iter().map(|piece| piece.value).sum::<u64>(), step.reached);
                prop_assert!(step.segments.iter().all(|piece| piece.from.0 + piece.length.0 <= 1_000 && piece.length.0 > 0));
            }
        }
    }
}

#[cfg(test)]
mod calendar_tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_day_appears_once_under_its_weekday(from in 0..20_000_i64, days in 1..80_u16) {
            let from = Date::constant(2000, 1, 1) + from.days();
            let due = BTreeMap::from([(from, vec!["<b>".to_owned()])]);
            let view = build_calendar(from, days, &due);
            prop_assert!(view.weeks.iter().all(|week| week.len() == 7));
            let mut shown_count = 0;
            for (weekday, day) in view.weeks.iter().flat_map(|week| week.iter().enumerate()) {
                let Some(day) = day else { continue };
                let date: Date = day.date.parse().unwrap();
                prop_assert_eq!(date, from + i64::from(shown_count).days());
                prop_assert_eq!(i8::try_from(weekday).unwrap() + 1, date.weekday().to_monday_one_offset());
                prop_assert_eq!(day.due.len(), usize::from(shown_count == 0));
                shown_count += 1;
            }
            prop_assert_eq!(shown_count, days);
        }
    }
}

#[cfg(test)]
mod columns_tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn columns_fit_the_chart_and_their_sums_are_exact(
            values in proptest::collection::vec(proptest::collection::vec(0..2_000_000_u64, 3), 1..40),
        ) {
            let series = ["a", "b", "c"].map(|kind| (kind.to_owned(), format!("c-{kind}")));
            let columns = values.iter().map(|values| ("day".to_owned(), values.clone())).collect();
            let chart = draw_columns(ColumnInput { series: series.to_vec(), columns }, |number| number.to_string());
            for (kind, series) in chart.series.iter().enumerate() {
                prop_assert_eq!(series.sum, values.iter().map(|values| values[kind]).sum::<u64>());
            }
            for column in &chart.columns {
                prop_assert!(column.at.0 + chart.width.0 <= 1_000);
                prop_assert!(column.pieces.iter().all(|piece| piece.y + piece.height <= HEIGHT + 3));
            }
        }
    }
}
