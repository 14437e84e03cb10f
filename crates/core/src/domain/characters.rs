//! Differences between texts that readers cannot see: composed or separate accents, and invisible Unicode characters.
//!
//! An `é` can be one character, or an `e` and a combining accent. Texts copied from messengers, contact lists or
//! assistants can contain invisible characters.

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization as _, is_nfc, is_nfd};

/// Composes letters and accents (NFC), so that two spellings of the same text are equal. For comparisons only: messages
/// are sent as they are written.
pub fn compose_accents(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc(text) { text.into() } else { text.nfc().collect::<String>().into() }
}

/// Separates letters and accents (NFD).
pub fn separate_accents(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfd(text) { text.into() } else { text.nfd().collect::<String>().into() }
}

/// Lists the other spellings of a text: with composed accents, and with separate accents.
pub fn list_other_spellings(text: &str) -> impl Iterator<Item = String> {
    let spellings = [compose_accents(text), separate_accents(text)];
    spellings.into_iter().filter(move |spelling| spelling != text).map(Cow::into_owned)
}

/// Whether a character is invisible and does not separate words: Unicode's `Default_Ignorable_Code_Point`, and the
/// empty Braille pattern.
pub fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composed_and_decomposed_accents_convert_both_ways() {
        let (composed, separate) = ("Orl\u{e9}ans", "Orle\u{301}ans");
        for text in [composed, separate] {
            assert_eq!((&*compose_accents(text), &*separate_accents(text)), (composed, separate));
        }
        assert!(list_other_spellings(composed).eq([separate]) && list_other_spellings("Kyiv").next().is_none());
        assert_eq!(compose_accents("Ки\u{438}\u{306}в"), "Ки\u{439}в");
    }
}

#[cfg(test)]
mod invisible_tests {
    use super::*;

    #[test]
    fn spaces_and_letters_are_not_invisible() {
        for invisible in ['\u{ad}', '\u{200b}', '\u{2060}', '\u{feff}', '\u{2800}', '\u{3164}', '\u{e0041}'] {
            assert!(is_invisible(invisible), "{invisible:?}");
        }
        for visible in ['a', 'ї', ' ', '\u{a0}', '\u{2003}', '\n', '\0', '\u{301}', '😀'] {
            assert!(!is_invisible(visible), "{visible:?}");
        }
    }
}
