//! Findings about what is odd of rows; each rule is a file of its own.

use super::rows::describe_first;
use super::{
    cell_in_link, cell_is_text, damaged_text, database_value, empty_greeting, insecure_link, leading_apostrophe,
    loop_over_text, placeholder_value, two_scripts,
};
use crate::check::{AnomalyRows, RowAnomaly, Survey};
use crate::finding::Finding;

/// What is odd in cells and messages, told once for a column with how many rows and the first.
#[must_use]
pub fn check_row_anomalies(survey: &Survey) -> Vec<Finding> {
    let of = |index: usize| survey.columns.iter().find(|column| column.index == index);
    let header = |index| of(index).map_or("", |column| column.header.as_str());
    let finding = |(&(column, oddity), AnomalyRows { example, rows }): (&(usize, RowAnomaly), &AnomalyRows)| {
        let (header, told) = (header(column), describe_first(rows));
        match oddity {
            RowAnomaly::EmptyMarker(_) => Some(placeholder_value::report_rows(header, example, &told)),
            RowAnomaly::Damaged(damage) => Some(damaged_text::report_rows(damage, header, example, &told)),
            RowAnomaly::DatabaseFormat(value) => {
                let name = of(column).map_or("", |column| column.name.as_str());
                Some(database_value::report_rows(value, name, example, &told))
            }
            RowAnomaly::BreaksLink => {
                let name = of(column).map_or("", |column| column.name.as_str());
                Some(cell_in_link::report_rows(name, example, &told))
            }
            RowAnomaly::MixedAlphabets => Some(two_scripts::report_rows(header, example, &told)),
            RowAnomaly::Apostrophe => Some(leading_apostrophe::report_rows(header, example, &told)),
            RowAnomaly::InsecureLink => Some(insecure_link::report_rows(header, &told)),
            RowAnomaly::EmptyGreeting => empty_greeting::report_rows(rows),
            RowAnomaly::TakenForTrue => {
                let name = of(column).map_or("", |column| column.name.as_str());
                Some(cell_is_text::report_taken_for_true(name, example, &told))
            }
            RowAnomaly::LoopedList => {
                let name = of(column).map_or("", |column| column.name.as_str());
                Some(loop_over_text::report_rows(name, example, &told))
            }
            RowAnomaly::NearMatch(index) => {
                let (_, asked) = survey.unmatched_comparisons.iter().find(|(unpassed, _)| *unpassed == index)?;
                Some(cell_is_text::report_near_match(&asked.name, &asked.text, example, &told))
            }
        }
    };
    survey.anomalies.iter().filter_map(finding).collect()
}
