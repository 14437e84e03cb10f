//! Damaged texts and cells, reported under the rule for each kind of damage.

use super::{control_character, html_entity, lost_letters, misread_encoding};
use crate::check::broken_text::{Damage, damage};
use crate::domain::Text;
use crate::finding::Finding;
use crate::message::{TextProblem, said};

/// The first occurrence of each kind of damage in a text.
pub(super) fn judge(text: &Text) -> Vec<TextProblem> {
    let mut seen = Vec::new();
    let found = said(text).filter_map(|(part, at)| {
        let (damage, word) = damage(part)?;
        if seen.contains(&damage) {
            return None;
        }
        seen.push(damage);
        Some((damage, at.start + word.start..at.start + word.end))
    });
    let problem = |(damage, span)| match damage {
        Damage::LostLetters => Some(lost_letters::in_text(text, span)),
        Damage::ControlCharacter => Some(control_character::in_text(text, span)),
        Damage::MisreadEncoding => Some(misread_encoding::in_text(text, span)),
        Damage::HtmlEntity => html_entity::in_text(text),
    };
    found.filter_map(problem).collect()
}

/// Damage in the cells of a column.
pub(super) fn in_rows(damage: Damage, column: &str, example: &str, rows: &str) -> Finding {
    match damage {
        Damage::LostLetters => lost_letters::in_rows(column, example, rows),
        Damage::ControlCharacter => control_character::in_rows(column, example, rows),
        Damage::MisreadEncoding => misread_encoding::in_rows(column, example, rows),
        Damage::HtmlEntity => html_entity::in_rows(column, example, rows),
    }
}
