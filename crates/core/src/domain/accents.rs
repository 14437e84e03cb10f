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

/// Lists the other spellings of a text: with composed accents, and with separate accents.
pub fn list_other_spellings(text: &str) -> impl Iterator<Item = String> {
    let spellings = [compose_accents(text), separate_accents(text)];
    spellings.into_iter().filter(move |spelling| spelling != text).map(Cow::into_owned)
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
        assert!(list_other_spellings(composed).eq([separate]) && list_other_spellings("Kyiv").next().is_none());
        assert_eq!(compose_accents("Ки\u{438}\u{306}в"), "Ки\u{439}в");
    }
}
