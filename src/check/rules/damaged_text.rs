//! Damaged texts and cells, reported under the rule for each kind of damage.

use super::{control_character, html_entity, lost_letters, misread_encoding};
use crate::check::broken_text::{TextDamage, find_damage};
use crate::domain::NamedTemplate;
use crate::finding::Finding;
use crate::message::{TextProblem, constant_parts};

/// The first occurrence of each kind of damage in a text.
pub(super) fn check_damaged_text(text: &NamedTemplate) -> Vec<TextProblem> {
    let mut seen = Vec::new();
    let found = constant_parts(text).filter_map(|(part, at)| {
        let (damage, word) = find_damage(part)?;
        if seen.contains(&damage) {
            return None;
        }
        seen.push(damage);
        Some((damage, at.start + word.start..at.start + word.end))
    });
    let problem = |(damage, span)| match damage {
        TextDamage::LostLetters => Some(lost_letters::report_text(text, span)),
        TextDamage::ControlCharacter => Some(control_character::report_text(text, span)),
        TextDamage::MisreadEncoding => Some(misread_encoding::report_text(text, span)),
        TextDamage::HtmlEntity => html_entity::check_text(text),
    };
    found.filter_map(problem).collect()
}

/// Damage in the cells of a column.
pub(super) fn report_rows(damage: TextDamage, column: &str, example: &str, rows: &str) -> Finding {
    match damage {
        TextDamage::LostLetters => lost_letters::report_rows(column, example, rows),
        TextDamage::ControlCharacter => control_character::report_rows(column, example, rows),
        TextDamage::MisreadEncoding => misread_encoding::report_rows(column, example, rows),
        TextDamage::HtmlEntity => html_entity::report_rows(column, example, rows),
    }
}
