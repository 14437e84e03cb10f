//! Findings about what is odd of rows; each rule is a file of its own.

use super::rows::first_of;
use super::{
    cell_in_link, cell_is_text, damaged_text, database_value, empty_greeting, insecure_link, leading_apostrophe,
    loop_over_text, placeholder_value, two_scripts,
};
use crate::check::{OddRows, Oddity, Survey};
use crate::finding::Finding;

/// What is odd in cells and messages, told once for a column with how many rows and the first.
#[must_use]
pub fn odd_rows(survey: &Survey) -> Vec<Finding> {
    let of = |index: usize| survey.columns.iter().find(|column| column.index == index);
    let header = |index| of(index).map_or("", |column| column.header.as_str());
    let finding = |(&(column, oddity), OddRows { example, rows }): (&(usize, Oddity), &OddRows)| {
        let (header, told) = (header(column), first_of(rows));
        match oddity {
            Oddity::Nothing(_) => Some(placeholder_value::in_rows(header, example, &told)),
            Oddity::Damaged(damage) => Some(damaged_text::in_rows(damage, header, example, &told)),
            Oddity::OfDatabase(value) => {
                let name = of(column).map_or("", |column| column.name.as_str());
                Some(database_value::in_rows(value, name, example, &told))
            }
            Oddity::BreaksLink => {
                let name = of(column).map_or("", |column| column.name.as_str());
                Some(cell_in_link::in_rows(name, example, &told))
            }
            Oddity::Slip => Some(two_scripts::in_rows(header, example, &told)),
            Oddity::Apostrophe => Some(leading_apostrophe::in_rows(header, example, &told)),
            Oddity::InsecureLink => Some(insecure_link::in_rows(header, &told)),
            Oddity::Hole => empty_greeting::in_rows(rows),
            Oddity::TakenForTrue => {
                let name = of(column).map_or("", |column| column.name.as_str());
                Some(cell_is_text::taken_for_true(name, example, &told))
            }
            Oddity::LoopedList => {
                let name = of(column).map_or("", |column| column.name.as_str());
                Some(loop_over_text::in_rows(name, example, &told))
            }
            Oddity::Nearly(index) => {
                let (_, asked) = survey.unpassed.iter().find(|(unpassed, _)| *unpassed == index)?;
                Some(cell_is_text::nearly(&asked.name, &asked.text, example, &told))
            }
        }
    };
    survey.odd.iter().filter_map(finding).collect()
}
