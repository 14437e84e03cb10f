//! A word with letters of two alphabets, of which one looks like letters of the other.

use std::ops::Range;

use crate::domain::NamedTemplate;
use crate::finding::{Finding, Rule, RuleText};
use crate::message::{TextProblem, constant_parts, cyrillic_lookalike, latin_lookalike, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "two-scripts",
    RuleText {
        cause: "A word mixes Latin and Cyrillic letters. It looks right, but spam filters might block it, and an SMS \
                can cost more.",
        example: &["message: \"Знижкa 20%\"                       # the last letter is Latin"],
        fix: "type the word again with one keyboard layout",
    },
);

const HELP: &str = "type the word again with one keyboard layout";

/// The words of a text that everybody gets.
pub(super) fn check_mixed_alphabets(text: &NamedTemplate) -> Vec<TextProblem> {
    let words = constant_parts(text).filter_map(|(part, at)| {
        let word = find_mixed_word(part)?;
        Some((part[word.clone()].to_owned(), at.start + word.start..at.start + word.end))
    });
    words.map(|(word, span)| problem_at(text, span, &RULE, describe_word(&word), HELP)).collect()
}

/// The words of cells that stand in messages.
pub(super) fn report_rows(column: &str, example: &str, rows: &str) -> Finding {
    let message = format!("{}, in the column `{column}` of {rows}", describe_word(example));
    Finding::new(&RULE, message).help("type the words again in the list with one keyboard layout")
}

fn describe_word(word: &str) -> String {
    let strangers = |latin: bool| -> Vec<String> {
        let of = word.chars().filter(|c| if latin { c.is_ascii_alphabetic() } else { is_cyrillic(*c) });
        of.map(|c| format!("`{c}`")).collect()
    };
    let (latin, cyrillic) = (strangers(true), strangers(false));
    match latin.len() <= cyrillic.len() {
        true => format!("the Cyrillic word `{word}` contains the Latin {}", format_letters(&latin)),
        false => format!("the Latin word `{word}` contains the Cyrillic {}", format_letters(&cyrillic)),
    }
}

/// Letters with their noun: ``letters `a` and `o` ``.
fn format_letters(letters: &[String]) -> String {
    let noun = if letters.len() == 1 { "letter" } else { "letters" };
    format!("{noun} {}", letters.join(" and "))
}

/// The first word of a text that slipped into another alphabet.
pub(in crate::check) fn find_mixed_word(text: &str) -> Option<Range<usize>> {
    if text.is_ascii() || !text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let mut rest = text;
    loop {
        let start = text.len() - rest.len() + rest.find(char::is_alphabetic)?;
        let word = &text[start..];
        let word = &word[..word.find(|c: char| !c.is_alphabetic()).unwrap_or(word.len())];
        if is_slip(word) {
            return Some(start..start + word.len());
        }
        rest = &text[start + word.len()..];
    }
}

/// Whether the letters of one alphabet were meant as those of the other.
///
/// A foreign word with an ending of one's own, such as `VIPам` or `SMSу`, was written so.
fn is_slip(word: &str) -> bool {
    let letters = |of: fn(char) -> bool| word.chars().filter(move |c| of(*c));
    let (latin, cyrillic) = (letters(|c| c.is_ascii_alphabetic()), letters(is_cyrillic));
    if latin.clone().next().is_none() || cyrillic.clone().next().is_none() {
        return false;
    }
    let stem = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
    let is_ended = stem >= 2 && word[stem..].chars().all(is_cyrillic);
    let meant_as_cyrillic = latin.clone().all(|c| cyrillic_lookalike(c).is_some());
    let meant_as_latin = cyrillic.clone().all(|c| latin_lookalike(c).is_some());
    let foreign = is_ended && (word[..stem].bytes().all(|byte| byte.is_ascii_uppercase()) || !meant_as_cyrillic);
    (meant_as_cyrillic || meant_as_latin) && !foreign
}

fn is_cyrillic(c: char) -> bool {
    ('\u{400}'..='\u{52f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookalike_letters_are_found_and_foreign_words_are_not() {
        for (text, word) in [
            ("Пpивіт, Олено", Some("Пpивіт")),
            ("Знижка на вcе", Some("вcе")),
            ("Big sаle", Some("sаle")),
            ("Оlena", Some("Оlena")),
            ("Привіт, Олено! Shop now", None),
            ("iPhone'ом і SMSкою, VIPам, COVIDу, Viberа, TOPовий, QR-код", None),
            ("plain ascii", None),
            ("самі літери", None),
            ("Straße, naïve", None),
            ("", None),
        ] {
            assert_eq!(find_mixed_word(text).map(|at| &text[at]), word, "{text}");
        }
        assert!(describe_word("Пpивіт").contains("contains the Latin letter `p`"));
        assert!(describe_word("sаle").contains("contains the Cyrillic letter `а`"));
    }
}
