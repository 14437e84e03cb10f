//! Accents in Unicode: `é` can be one character, or an `e` and a combining accent.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_an_accent_are_equal() {
        let (composed, separate) = ("Orl\u{e9}ans", "Orle\u{301}ans");
        for text in [composed, separate] {
            assert_eq!((&*compose_accents(text), &*separate_accents(text)), (composed, separate));
        }
        assert_eq!(compose_accents("Ки\u{438}\u{306}в"), "Ки\u{439}в");
    }
}
