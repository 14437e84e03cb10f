//! Column charts: one stacked column per day or other period.

use serde::Serialize;

use super::stack::number_axis;
use super::{Length, stack::HEIGHT};

/// The data of a column chart.
#[derive(Clone, Debug)]
pub struct ColumnInput {
    /// The kinds from below, each with its label and its class in the stylesheet.
    pub series: Vec<(String, String)>,
    /// The label of each column, and its values in the order of the kinds.
    pub columns: Vec<(String, Vec<u64>)>,
}

/// A column chart.
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
    /// Its left edge, and its middle.
    at: Length,
    middle: Length,
    /// Whether the label is left out on narrow screens.
    minor: bool,
    pieces: Vec<ColumnPiece>,
}

#[derive(Clone, Debug, Serialize)]
struct ColumnPiece {
    class: String,
    /// The upper edge and the height, in pixels.
    y: u32,
    height: u32,
}

#[derive(Clone, Debug, Serialize)]
struct AxisMark {
    y: u32,
    label: String,
}

/// The share of its place that a column fills, in thousandths.
const FILLED: u32 = 680;

/// Draws columns; `write` formats the numbers along the axis.
#[must_use]
pub fn draw_columns(input: ColumnInput, write: impl Fn(u64) -> String) -> ColumnChart {
    let ColumnInput { series, columns } = input;
    let total = |values: &[u64]| values.iter().fold(0_u64, |sum, value| sum.saturating_add(*value));
    let most = columns.iter().map(|(_, values)| total(values)).max().unwrap_or_default();
    let (top, marks) = number_axis(most, write);
    let pixels = |value: u64| u32::try_from(u128::from(value) * u128::from(HEIGHT) / u128::from(top)).unwrap_or(HEIGHT);
    let count = u32::try_from(columns.len().max(1)).unwrap_or(1);
    let place = 1_000 / count;
    let sums = (0..series.len()).map(|kind| columns.iter().fold(0_u64, |sum, (_, of)| sum.saturating_add(of[kind])));
    let sums: Vec<u64> = sums.collect();
    let column = |(number, (label, values)): (u32, (String, Vec<u64>))| {
        let from = number * 1_000 / count;
        let (mut below, mut pieces) = (0_u64, Vec::new());
        for (value, (_, class)) in values.iter().zip(&series).filter(|(value, _)| **value > 0) {
            let above = below.saturating_add(*value);
            let height = pixels(above).saturating_sub(pixels(below)).max(1);
            pieces.push(ColumnPiece { class: class.clone(), y: HEIGHT.saturating_sub(pixels(below) + height), height });
            below = above;
        }
        let at = Length(from + place * (1_000 - FILLED) / 2_000);
        ColumnView { label, at, middle: Length(from + place / 2), minor: (count - 1 - number) % 3 != 0, pieces }
    };
    ColumnChart {
        height: HEIGHT,
        width: Length(place * FILLED / 1_000),
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
