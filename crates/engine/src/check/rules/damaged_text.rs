//! Rules about damaged texts and cells, one for each kind of damage.

use std::ops::Range;

use super::markup;
use crate::check::text_damage::{TextDamage, find_damage, find_misread_word};
use campaign_content::message::{TextProblem, constant_parts, problem_at};
use campaign_core::domain::NamedTemplate;
use campaign_core::finding::{Finding, Rule, RuleText};

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
        TextDamage::LostLetters => Some(report_lost_letters_in_text(text, span)),
        TextDamage::ControlCharacter => Some(report_control_character_in_text(text, span)),
        TextDamage::MisreadEncoding => Some(report_misread_encoding_in_text(text, span)),
        TextDamage::HtmlEntity => markup::check_html_entities(text),
    };
    found.filter_map(problem).collect()
}

/// A finding about damage in the cells of a column.
pub(super) fn report_damaged_text(damage: TextDamage, column: &str, example: &str, rows: &str) -> Finding {
    match damage {
        TextDamage::LostLetters => report_lost_letters(column, example, rows),
        TextDamage::ControlCharacter => report_control_character(column, example, rows),
        TextDamage::MisreadEncoding => report_misread_encoding(column, example, rows),
        TextDamage::HtmlEntity => markup::report_html_entity(column, example, rows),
    }
}

pub(super) static CONTROL_CHARACTER: Rule = Rule::warning(
    "control-character",
    RuleText {
        cause: "A message or cell contains a control character. Phones show a box or nothing in its place, and the \
                SMS gets longer.",
        example: &["message: \"Sale\\x96today\""],
        fix: "remove the character, or export the list again as UTF-8; the character is often a dash or a quote from \
            another encoding",
    },
);

/// A control character in the constant part of a text.
pub(super) fn report_control_character_in_text(text: &NamedTemplate, span: Range<usize>) -> TextProblem {
    let message = format!("this word contains a control character{}", format_code_point(&text.source[span.clone()]));
    problem_at(text, span, &CONTROL_CHARACTER, message, "type the word again")
}

/// A finding about control characters in the cells of a column.
pub(super) fn report_control_character(column: &str, example: &str, rows: &str) -> Finding {
    let message = format!("the column `{column}` contains a control character in {rows}{}", format_code_point(example));
    Finding::new(&CONTROL_CHARACTER, message)
        .help("export the list again as UTF-8, or remove the character from the list")
}

/// The code point of the first control character, which cannot be displayed.
fn format_code_point(word: &str) -> String {
    let found = word.chars().find(|c| c.is_control());
    found.map(|c| format!(": U+{:04X}", u32::from(c))).unwrap_or_default()
}

pub(super) static LOST_LETTERS: Rule = Rule::warning(
    "lost-letters",
    RuleText {
        cause: "Letters were replaced with `?` or U+FFFD. A program saved the text in an encoding that does not \
                support them.",
        example: &["message: \"????? ???????!\""],
        fix: "export the list again from its source as UTF-8, or type the text again; the original characters are \
              lost",
    },
);

/// Lost letters in the constant part of a text.
pub(super) fn report_lost_letters_in_text(text: &NamedTemplate, span: Range<usize>) -> TextProblem {
    let message = format!("the original characters of `{}` are lost", &text.source[span.clone()]);
    problem_at(text, span, &LOST_LETTERS, message, "type the word again, and save the file as UTF-8")
}

/// A finding about lost letters in the cells of a column.
pub(super) fn report_lost_letters(column: &str, example: &str, rows: &str) -> Finding {
    let message = format!("the original characters in the column `{column}` are lost in {rows}: `{example}`");
    Finding::new(&LOST_LETTERS, message)
        .help("export the list again from its source as UTF-8; the characters cannot be restored from this file")
}

pub(super) static MISREAD_ENCODING: Rule = Rule::warning(
    "misread-encoding",
    RuleText {
        cause: "UTF-8 text was read with the wrong encoding. Non-ASCII letters became two or three other characters: \
                `cafÃ©` instead of `café`.",
        example: &["message: \"See you at the cafÃ©\""],
        fix: "export the list again from its source as UTF-8, or type the text again",
    },
);

/// Text that was read in the wrong encoding, in the constant part of a text.
pub(super) fn report_misread_encoding_in_text(text: &NamedTemplate, span: Range<usize>) -> TextProblem {
    let word = &text.source[span.clone()];
    let help = match find_misread_word(word) {
        Some((_, said)) => format!("write `{said}`, and save the file as UTF-8"),
        None => "type the word again, and save the file as UTF-8".to_owned(),
    };
    let message = format!("`{word}` is UTF-8 text that was read in another encoding");
    problem_at(text, span, &MISREAD_ENCODING, message, &help)
}

/// A finding about cells of a column that were read in the wrong encoding.
pub(super) fn report_misread_encoding(column: &str, example: &str, rows: &str) -> Finding {
    let said = find_misread_word(example).map(|(_, said)| format!(", which should be `{said}`")).unwrap_or_default();
    let message = format!(
        "in {rows}, the column `{column}` contains UTF-8 text that was read in another encoding: `{example}`{said}"
    );
    Finding::new(&MISREAD_ENCODING, message).help("export the list again from its source as UTF-8")
}
