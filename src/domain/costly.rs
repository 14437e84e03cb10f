//! The few characters that make an SMS cost more parts.

use super::plain::instead;
use super::text::{Encoding, gsm_septets, sms_text};

/// What a few characters of an SMS cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostlyCharacters {
    /// Which, in the order of their codes.
    pub characters: Vec<char>,
    /// The parts that the text has.
    pub parts: usize,
    /// The parts that it would have with other characters in their places.
    pub without: usize,
}

/// The most different characters that are told to make a text longer; with more, it is of another alphabet.
const FEW: usize = 3;

/// The characters without which a text would have fewer parts: a few of no GSM alphabet, or those that count twice in it.
///
/// Nothing of a text that is of another alphabet altogether, or that fits its parts all the same.
#[must_use]
pub fn costly_characters(text: &str) -> Option<CostlyCharacters> {
    let size = sms_text(text);
    if size.parts < 2 {
        return None;
    }
    let plain = |c: char| match size.encoding {
        Encoding::Ucs2 => gsm_septets(c) > 0,
        Encoding::Gsm7 => gsm_septets(c) < 2,
    };
    let mut characters: Vec<char> = Vec::new();
    for c in text.chars().filter(|c| !plain(*c)) {
        if characters.contains(&c) {
            continue;
        }
        // One letter may be a slip, such as a Cyrillic `с`; two are a name in another alphabet.
        let letters = c.is_alphabetic() && characters.iter().any(|other| other.is_alphabetic());
        if letters || characters.len() == FEW {
            return None;
        }
        characters.push(c);
    }
    let mut other = String::with_capacity(text.len());
    for c in text.chars() {
        match (plain(c), instead(c)) {
            (true, _) => other.push(c),
            (false, Some(instead)) => other.push_str(instead),
            (false, None) => other.push('x'),
        }
    }
    let without = sms_text(&other).parts;
    characters.sort_unstable();
    (without < size.parts).then_some(CostlyCharacters { characters, parts: size.parts, without })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_make_a_text_longer_are_told_and_those_of_another_alphabet_are_not() {
        let (latin, long) = ("a".repeat(100), "a".repeat(159));
        for (text, costly) in [
            (format!("{latin}’"), vec!['’']),
            (format!("{latin}’—’"), vec!['—', '’']),
            (format!("{latin}’—…"), vec!['—', '’', '…']),
            (format!("{latin}’—…«"), vec![]),
            ("Привіт, світе!".repeat(9), vec![]),
            (format!("{latin}, Ганна"), vec![]),
            (format!("{latin}, с"), vec!['с']),
            ("it’s short".to_owned(), vec![]),
            (format!("{long}€"), vec!['€']),
            (format!("{latin}€"), vec![]),
            (latin, vec![]),
        ] {
            let told = costly_characters(&text);
            assert_eq!(told.map(|costly| costly.characters).unwrap_or_default(), costly, "{text}");
        }
    }

    #[test]
    fn the_parts_without_them_are_those_of_the_text_with_what_is_written_instead() {
        let parts = |text: &str| costly_characters(text).map(|costly| (costly.parts, costly.without));
        assert_eq!(parts(&format!("{}’", "a".repeat(159))), Some((3, 1)));
        // Three dots in the place of one sign.
        assert_eq!(parts(&format!("{}…", "a".repeat(157))), Some((3, 1)));
        assert_eq!(parts(&format!("{}…", "a".repeat(158))), Some((3, 2)));
    }
}
