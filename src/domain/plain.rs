//! Characters that make an SMS cost more parts, replaced by what the GSM alphabet has.

use std::borrow::Cow;

use any_ascii::any_ascii_char;
use serde::{Deserialize, Serialize};

use super::latin::transliterate;
use super::text::{Encoding, is_gsm, sms_text};

/// What is replaced in a text before it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plain {
    /// What typesetting writes and keyboards do not: quotation marks, dashes, blanks, dots. No letter is.
    Quotes,
    /// Everything that the GSM alphabet lacks, Cyrillic by the official table of 2010.
    Latin,
}

/// What typesetting writes, and what a keyboard has in its place.
const SET: [(&str, &str); 8] = [
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
pub fn instead(character: char) -> Option<&'static str> {
    if character.is_ascii() && !matches!(character, '`' | '\t' | '\u{b}') {
        return None;
    }
    SET.iter().find(|(characters, _)| characters.contains(character)).map(|&(_, instead)| instead)
}

impl Plain {
    /// Both.
    pub const ALL: [Plain; 2] = [Plain::Quotes, Plain::Latin];
    /// Their names in campaign files.
    pub const NAMES: [&str; 2] = [Plain::Quotes.name(), Plain::Latin.name()];

    /// Its name in campaign files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Plain::Quotes => "quotes",
            Plain::Latin => "latin",
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
    pub fn replaced(self, text: &str) -> Option<String> {
        match self {
            Plain::Quotes => quotes(text),
            Plain::Latin => latin(text),
        }
    }
}

fn quotes(text: &str) -> Option<String> {
    if !text.chars().any(|c| instead(c).is_some()) {
        return None;
    }
    let plain = typed(text);
    (sms_text(&plain).parts <= sms_text(text).parts).then(|| plain.into_owned())
}

fn latin(text: &str) -> Option<String> {
    if sms_text(text).encoding == Encoding::Gsm7 {
        return None;
    }
    let mut latin = String::with_capacity(text.len());
    for c in transliterate(&typed(text)).chars() {
        if is_gsm(c) {
            latin.push(c);
        } else {
            // Its own output has signs that the GSM alphabet lacks.
            latin.push_str(&typed(any_ascii_char(c)).replace(|c| !is_gsm(c), ""));
        }
    }
    Some(latin)
}

/// The text with what a keyboard has in the place of what typesetting writes.
fn typed(text: &str) -> Cow<'_, str> {
    let mut typed = Cow::Borrowed(text);
    if let Some(at) = text.find(|c| instead(c).is_some()) {
        let owned = typed.to_mut();
        owned.truncate(at);
        for c in text[at..].chars() {
            match instead(c) {
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
    fn quotes_replaces_what_typesetting_writes_and_nothing_else() {
        for (text, plain) in [
            ("It\u{2019}s \u{201c}on\u{201d} \u{2014} now\u{2026}", Some("It's \"on\" - now...")),
            ("«Оленка»\u{a0}— 20%", Some("\"Оленка\" - 20%")),
            ("\u{2022} one\u{202f}two\tthree`s", Some("- one two three's")),
            ("zero\u{200b}width\u{feff}", Some("zerowidth")),
            ("Привіт, Ганно! 100 ₴ 😀", None),
            ("Hello", None),
            ("", None),
        ] {
            assert_eq!(Plain::Quotes.replaced(text).as_deref(), plain, "{text}");
        }
    }

    #[test]
    fn an_ellipsis_stays_where_three_dots_cost_another_part() {
        let text = format!("{}…", "я".repeat(69));
        assert_eq!(Plain::Quotes.replaced(&text), None);
        assert_eq!(Plain::Quotes.replaced("я…").as_deref(), Some("я..."));
    }

    #[test]
    fn latin_leaves_nothing_that_needs_sixteen_bits() {
        for (text, plain) in [
            ("Ганно, знижка — до п\u{2019}ятниці…", Some("Hanno, znyzhka - do piatnytsi...")),
            ("ЩАСТЯ! Щастя", Some("SHCHASTIA! Shchastia")),
            ("Zażółć gęślą jaźń", Some("Zazolc gesla jazn")),
            ("Café für 5 €", None),
            ("Café für Оля", Some("Café für Olia")),
            ("№ 5", Some("No 5")),
        ] {
            assert_eq!(Plain::Latin.replaced(text).as_deref(), plain, "{text}");
        }
    }

    #[test]
    fn every_character_in_latin_is_of_the_gsm_alphabet() {
        for c in ('\0'..=char::MAX).filter(|c| !is_gsm(*c)) {
            let latin = Plain::Latin.replaced(&c.to_string()).unwrap();
            assert!(latin.chars().all(is_gsm), "{c:?} is {latin:?}");
        }
    }

    #[test]
    fn quotes_replaces_no_letter() {
        for c in ('\0'..=char::MAX).filter(|c| instead(*c).is_some()) {
            // The modifier letter apostrophe is a letter to Unicode, and an apostrophe to whoever reads it.
            assert!(c == '\u{2bc}' || !c.is_alphanumeric(), "{c:?}");
            assert!(instead(c).is_some_and(|instead| instead.chars().all(is_gsm)), "{c:?}");
        }
    }

    fn letters(text: &str) -> String {
        text.chars().filter(|c| c.is_alphanumeric() && *c != '\u{2bc}').collect()
    }

    proptest! {
        #[test]
        fn latin_is_always_of_the_gsm_alphabet_and_stays(text in any::<String>(), list in "[А-яієїґ'’ʼ\\- …€]{0,90}") {
            for text in [text, list] {
                let latin = Plain::Latin.replaced(&text).unwrap_or(text);
                prop_assert_eq!(sms_text(&latin).encoding, Encoding::Gsm7);
                prop_assert_eq!(Plain::Latin.replaced(&latin), None);
            }
        }

        #[test]
        fn quotes_changes_no_letter_and_costs_no_part(text in any::<String>(), list in "[Аaя’“”«»…—\u{a0}•]{0,250}") {
            for text in [text, list] {
                let plain = Plain::Quotes.replaced(&text).unwrap_or_else(|| text.clone());
                prop_assert_eq!(letters(&plain), letters(&text));
                prop_assert!(sms_text(&plain).parts <= sms_text(&text).parts);
            }
        }
    }
}
