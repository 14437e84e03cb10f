//! Characters that make an SMS cost more parts, replaced by what the GSM alphabet has.

use std::borrow::Cow;

use any_ascii::any_ascii_char;
use serde::{Deserialize, Serialize};

use super::latin::transliterate;
use super::text::{SmsEncoding, is_gsm, measure_sms};

/// What is replaced in a text before it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlainMode {
    /// What typesetting writes and keyboards do not: quotation marks, dashes, blanks, dots. No letter is.
    Quotes,
    /// Everything that the GSM alphabet lacks, Cyrillic by the official table of 2010.
    Latin,
}

/// What typesetting writes, and what a keyboard has in its place.
const TYPOGRAPHY: [(&str, &str); 8] = [
    ("\u{2018}\u{2019}\u{201a}\u{201b}\u{2bc}\u{2032}\u{2035}\u{2039}\u{203a}`\u{b4}", "'"),
    ("\u{201c}\u{201d}\u{201e}\u{201f}\u{2033}\u{2036}\u{ab}\u{bb}", "\""),
    ("\u{2010}\u{2011}\u{2012}\u{2013}\u{2014}\u{2015}\u{2043}\u{2212}", "-"),
    ("\u{2022}\u{2023}\u{25cf}\u{25e6}\u{25aa}\u{b7}\u{2219}", "-"),
    ("\u{2026}", "..."),
    (
        "\t\u{a0}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}\u{202f}\u{205f}\u{3000}",
        " ",
    ),
    ("\u{b}\u{85}\u{2028}\u{2029}", "\n"),
    ("\u{ad}\u{200b}\u{2060}\u{feff}", ""),
];

/// What a keyboard has in the place of a character of typesetting.
#[must_use]
pub fn keyboard_replacement(character: char) -> Option<&'static str> {
    if character.is_ascii() && !matches!(character, '`' | '\t' | '\u{b}') {
        return None;
    }
    TYPOGRAPHY.iter().find(|(characters, _)| characters.contains(character)).map(|&(_, instead)| instead)
}

impl PlainMode {
    /// Both.
    pub const ALL: [PlainMode; 2] = [PlainMode::Quotes, PlainMode::Latin];
    /// Their names in campaign files.
    pub const NAMES: [&str; 2] = [PlainMode::Quotes.name(), PlainMode::Latin.name()];

    /// Its name in campaign files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PlainMode::Quotes => "quotes",
            PlainMode::Latin => "latin",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plain| plain.name() == name)
    }

    /// The text as it leaves; nothing where nothing is replaced.
    ///
    /// `quotes` never makes more parts: an ellipsis stays where the text needs sixteen bits all the same and three dots
    /// would not fit. `latin` leaves only characters of the GSM alphabet.
    #[must_use]
    pub fn replace_in_text(self, text: &str) -> Option<String> {
        match self {
            PlainMode::Quotes => replace_quotes(text),
            PlainMode::Latin => replace_with_latin(text),
        }
    }
}

fn replace_quotes(text: &str) -> Option<String> {
    if !text.chars().any(|c| keyboard_replacement(c).is_some()) {
        return None;
    }
    let plain = replace_typography(text);
    (measure_sms(&plain).parts <= measure_sms(text).parts).then(|| plain.into_owned())
}

fn replace_with_latin(text: &str) -> Option<String> {
    if measure_sms(text).encoding == SmsEncoding::Gsm7 {
        return None;
    }
    let mut latin = String::with_capacity(text.len());
    for c in transliterate(&replace_typography(text)).chars() {
        if is_gsm(c) {
            latin.push(c);
        } else {
            // Its own output has signs that the GSM alphabet lacks.
            latin.push_str(&replace_typography(any_ascii_char(c)).replace(|c| !is_gsm(c), ""));
        }
    }
    Some(latin)
}

/// The text with what a keyboard has in the place of what typesetting writes.
fn replace_typography(text: &str) -> Cow<'_, str> {
    let mut typed = Cow::Borrowed(text);
    if let Some(at) = text.find(|c| keyboard_replacement(c).is_some()) {
        let owned = typed.to_mut();
        owned.truncate(at);
        for c in text[at..].chars() {
            match keyboard_replacement(c) {
                Some(instead) => owned.push_str(instead),
                None => owned.push(c),
            }
        }
    }
    typed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_mode_replaces_only_typography() {
        for (text, plain) in [
            ("It\u{2019}s \u{201c}on\u{201d} \u{2014} now\u{2026}", Some("It's \"on\" - now...")),
            ("«Оленка»\u{a0}— 20%", Some("\"Оленка\" - 20%")),
            ("\u{2022} one\u{202f}two\tthree`s", Some("- one two three's")),
            ("zero\u{200b}width\u{feff}", Some("zerowidth")),
            ("Привіт, Ганно! 100 ₴ 😀", None),
            ("Hello", None),
            ("", None),
        ] {
            assert_eq!(PlainMode::Quotes.replace_in_text(text).as_deref(), plain, "{text}");
        }
    }

    #[test]
    fn ellipsis_stays_if_three_dots_cost_another_part() {
        let text = format!("{}…", "я".repeat(69));
        assert_eq!(PlainMode::Quotes.replace_in_text(&text), None);
        assert_eq!(PlainMode::Quotes.replace_in_text("я…").as_deref(), Some("я..."));
    }

    #[test]
    fn latin_mode_leaves_only_gsm_characters() {
        for (text, plain) in [
            ("Ганно, знижка — до п\u{2019}ятниці…", Some("Hanno, znyzhka - do piatnytsi...")),
            ("ЩАСТЯ! Щастя", Some("SHCHASTIA! Shchastia")),
            ("Zażółć gęślą jaźń", Some("Zazolc gesla jazn")),
            ("Café für 5 €", None),
            ("Café für Оля", Some("Café für Olia")),
            ("№ 5", Some("No 5")),
        ] {
            assert_eq!(PlainMode::Latin.replace_in_text(text).as_deref(), plain, "{text}");
        }
    }

    #[test]
    fn transliterations_are_in_the_gsm_alphabet() {
        for c in ('\0'..=char::MAX).filter(|c| !is_gsm(*c)) {
            let latin = PlainMode::Latin.replace_in_text(&c.to_string()).unwrap();
            assert!(latin.chars().all(is_gsm), "{c:?} is {latin:?}");
        }
    }

    #[test]
    fn quotes_mode_replaces_no_letter() {
        for c in ('\0'..=char::MAX).filter(|c| keyboard_replacement(*c).is_some()) {
            // The modifier letter apostrophe is a letter to Unicode, and an apostrophe to whoever reads it.
            assert!(c == '\u{2bc}' || !c.is_alphanumeric(), "{c:?}");
            assert!(keyboard_replacement(c).is_some_and(|instead| instead.chars().all(is_gsm)), "{c:?}");
        }
    }

    fn letters(text: &str) -> String {
        text.chars().filter(|c| c.is_alphanumeric() && *c != '\u{2bc}').collect()
    }

    proptest! {
        #[test]
        fn latin_mode_is_gsm_and_idempotent(text in any::<String>(), list in "[А-яієїґ'’ʼ\\- …€]{0,90}") {
            for text in [text, list] {
                let latin = PlainMode::Latin.replace_in_text(&text).unwrap_or(text);
                prop_assert_eq!(measure_sms(&latin).encoding, SmsEncoding::Gsm7);
                prop_assert_eq!(PlainMode::Latin.replace_in_text(&latin), None);
            }
        }

        #[test]
        fn quotes_mode_changes_no_letter_and_adds_no_part(text in any::<String>(), list in "[Аaя’“”«»…—\u{a0}•]{0,250}") {
            for text in [text, list] {
                let plain = PlainMode::Quotes.replace_in_text(&text).unwrap_or_else(|| text.clone());
                prop_assert_eq!(letters(&plain), letters(&text));
                prop_assert!(measure_sms(&plain).parts <= measure_sms(&text).parts);
            }
        }
    }
}
