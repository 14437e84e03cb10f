//! The few characters that make an SMS cost more parts.

use super::plain::keyboard_replacement;
use super::text::{SmsEncoding, count_septets, measure_sms};

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
const MAX_CHARACTERS: usize = 3;

/// The characters without which a text would have fewer parts: a few of no GSM alphabet, or those that count twice in it.
///
/// Nothing of a text that is of another alphabet altogether, or that fits its parts all the same.
#[must_use]
pub fn find_costly_characters(text: &str) -> Option<CostlyCharacters> {
    let size = measure_sms(text);
    if size.parts < 2 {
        return None;
    }
    let plain = |c: char| match size.encoding {
        SmsEncoding::Ucs2 => count_septets(c) > 0,
        SmsEncoding::Gsm7 => count_septets(c) < 2,
    };
    let mut characters: Vec<char> = Vec::new();
    for c in text.chars().filter(|c| !plain(*c)) {
        if characters.contains(&c) {
            continue;
        }
        // One letter may be a slip, such as a Cyrillic `с`; two are a name in another alphabet.
        let letters = c.is_alphabetic() && characters.iter().any(|other| other.is_alphabetic());
        if letters || characters.len() == MAX_CHARACTERS {
            return None;
        }
        characters.push(c);
    }
    let mut other = String::with_capacity(text.len());
    for c in text.chars() {
        match (plain(c), keyboard_replacement(c)) {
            (true, _) => other.push(c),
            (false, Some(instead)) => other.push_str(instead),
            (false, None) => other.push('x'),
        }
    }
    let without = measure_sms(&other).parts;
    characters.sort_unstable();
    (without < size.parts).then_some(CostlyCharacters { characters, parts: size.parts, without })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_costly_characters_are_found_but_no_other_alphabet() {
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
            let told = find_costly_characters(&text);
            assert_eq!(told.map(|costly| costly.characters).unwrap_or_default(), costly, "{text}");
        }
    }

    #[test]
    fn parts_without_costly_characters_match_replaced_text() {
        let parts = |text: &str| find_costly_characters(text).map(|costly| (costly.parts, costly.without));
        assert_eq!(parts(&format!("{}’", "a".repeat(159))), Some((3, 1)));
        // Three dots in the place of one sign.
        assert_eq!(parts(&format!("{}…", "a".repeat(157))), Some((3, 1)));
        assert_eq!(parts(&format!("{}…", "a".repeat(158))), Some((3, 2)));
    }
}
