//! Replacement of characters that make an SMS need more parts: typographic characters with keyboard characters, and
//! Cyrillic letters with Latin ones.
//!
//! Transliteration follows the official Ukrainian table (resolution No. 55 of the Cabinet of Ministers, 2010), extended
//! by four letters of the Russian alphabet. Letters of other scripts are kept.

use std::borrow::Cow;

use any_ascii::any_ascii_char;
use serde::{Deserialize, Serialize};

use super::sms_text::{SmsEncoding, is_gsm, measure_sms};

/// The characters of a text that are replaced before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlainMode {
    /// Typographic characters: quotation marks, dashes, spaces and dots. Letters are kept.
    Quotes,
    /// All characters outside the GSM alphabet; Cyrillic letters follow the official table of 2010.
    Latin,
}

/// Typographic characters and their keyboard replacements.
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

/// The replacement for a typographic character, using characters that a keyboard has.
pub fn keyboard_replacement(character: char) -> Option<&'static str> {
    // Most characters are ASCII, of which the table contains only three.
    if character.is_ascii() && !matches!(character, '`' | '\t' | '\u{b}') {
        return None;
    }
    TYPOGRAPHY.iter().find(|(characters, _)| characters.contains(character)).map(|&(_, replacement)| replacement)
}

impl PlainMode {
    /// Both modes.
    pub const ALL: [PlainMode; 2] = [PlainMode::Quotes, PlainMode::Latin];
    /// The names in campaign files.
    pub const NAMES: [&str; 2] = [PlainMode::Quotes.name(), PlainMode::Latin.name()];

    /// The name in campaign files.
    pub const fn name(self) -> &'static str {
        match self {
            PlainMode::Quotes => "quotes",
            PlainMode::Latin => "latin",
        }
    }

    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plain| plain.name() == name)
    }

    /// The text after replacement; `None` if the text stays the same.
    ///
    /// URLs stay the same. `quotes` never adds parts: an ellipsis stays if the text needs UCS-2 anyway and three dots
    /// would not fit. Outside URLs, `latin` leaves only characters of the GSM alphabet.
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
    let plain = replace_outside_urls(text, |part| replace_typography(part).into_owned());
    (plain != text && measure_sms(&plain).parts <= measure_sms(text).parts).then_some(plain)
}

fn replace_with_latin(text: &str) -> Option<String> {
    if measure_sms(text).encoding == SmsEncoding::Gsm7 {
        return None;
    }
    let latin = replace_outside_urls(text, convert_to_gsm);
    (latin != text).then_some(latin)
}

/// Converts a text to characters of the GSM alphabet. Emoji are removed, each with one of the spaces around it.
fn convert_to_gsm(text: &str) -> String {
    let mut gsm = String::with_capacity(text.len());
    let mut after_emoji = false;
    for c in transliterate(&replace_typography(text)).chars() {
        if is_gsm(c) {
            if !(after_emoji && c == ' ' && gsm.ends_with(' ')) {
                gsm.push(c);
            }
            after_emoji = false;
            continue;
        }
        match any_ascii_char(c) {
            // The name of an emoji, such as `:tada:`.
            name if name.len() > 2 && name.starts_with(':') && name.ends_with(':') => after_emoji = true,
            // The transliteration can output characters outside the GSM alphabet.
            ascii => gsm.push_str(&replace_typography(ascii).replace(|c| !is_gsm(c), "")),
        }
    }
    gsm
}

/// Replaces the parts of a text between URLs. A changed URL would lead to another page or host.
fn replace_outside_urls(text: &str, replace: impl Fn(&str) -> String) -> String {
    let (mut replaced, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = ["https://", "http://"].iter().filter_map(|scheme| rest.find(scheme)).min() {
        let (before, from_url) = rest.split_at(start);
        let end = from_url.find(char::is_whitespace).unwrap_or(from_url.len());
        // Punctuation after a URL belongs to the sentence.
        let url = from_url[..end].trim_end_matches(|c: char| !c.is_alphanumeric() && c != '/');
        replaced += &replace(before);
        replaced += url;
        rest = &from_url[url.len()..];
    }
    replaced + &replace(rest)
}

/// Replaces typographic characters in a text with keyboard characters.
fn replace_typography(text: &str) -> Cow<'_, str> {
    let mut plain = Cow::Borrowed(text);
    if let Some(at) = text.find(|c| keyboard_replacement(c).is_some()) {
        let owned = plain.to_mut();
        owned.truncate(at);
        for c in text[at..].chars() {
            match keyboard_replacement(c) {
                Some(instead) => owned.push_str(instead),
                None => owned.push(c),
            }
        }
    }
    plain
}

/// The letters and their transliteration, except at the beginning of a word.
const LETTERS: [(char, &str); 37] = [
    ('а', "a"),
    ('б', "b"),
    ('в', "v"),
    ('г', "h"),
    ('ґ', "g"),
    ('д', "d"),
    ('е', "e"),
    ('є', "ie"),
    ('ж', "zh"),
    ('з', "z"),
    ('и', "y"),
    ('і', "i"),
    ('ї', "i"),
    ('й', "i"),
    ('к', "k"),
    ('л', "l"),
    ('м', "m"),
    ('н', "n"),
    ('о', "o"),
    ('п', "p"),
    ('р', "r"),
    ('с', "s"),
    ('т', "t"),
    ('у', "u"),
    ('ф', "f"),
    ('х', "kh"),
    ('ц', "ts"),
    ('ч', "ch"),
    ('ш', "sh"),
    ('щ', "shch"),
    ('ь', ""),
    ('ю', "iu"),
    ('я', "ia"),
    ('ё', "e"),
    ('ы', "y"),
    ('э', "e"),
    ('ъ', ""),
];
/// Transliterations at the beginning of a word, if they differ.
const INITIAL_LETTERS: [(char, &str); 5] = [('є', "ye"), ('ї', "yi"), ('й', "y"), ('ю', "yu"), ('я', "ya")];

/// Transliterates a text into Latin letters. Soft and hard signs are omitted, as are apostrophes between Cyrillic
/// letters.
///
/// A capital that becomes several letters is written in capitals within a word of capitals (`ЩАСТЯ`, `SHCHASTIA`),
/// otherwise with an initial capital (`Щастя`, `Shchastia`).
pub fn transliterate(text: &str) -> String {
    let mut latin = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| !is_word_character(c)).unwrap_or(rest.len());
        if end == 0 {
            latin.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            transliterate_word(&rest[..end], &mut latin);
            rest = &rest[end..];
        }
    }
    latin
}

/// Replaces Latin letters with diacritics by plain letters: `oraș` becomes `oras`.
pub fn remove_diacritics(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' if c.is_alphabetic() => plain.push_str(any_ascii_char(c)),
            _ => plain.push(c),
        }
    }
    plain
}

/// Whether a character is a letter, an apostrophe, or a combining mark.
fn is_word_character(c: char) -> bool {
    c.is_alphabetic() || is_apostrophe(c) || matches!(c, '\u{300}'..='\u{36f}')
}

/// Whether a character is the Ukrainian apostrophe in a typed or printed form.
pub fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}' | '\u{2bc}')
}

fn transliterate_word(word: &str, latin: &mut String) {
    let letters: Vec<char> = compose_letters(word);
    let is_all_capitals =
        letters.iter().filter(|c| c.is_uppercase()).count() > 1 && !letters.iter().any(|c| c.is_lowercase());
    let find_cyrillic = |at: Option<usize>| at.and_then(|at| letters.get(at)).and_then(|c| find_letter(*c));
    let mut has_begun = false;
    for (at, &letter) in letters.iter().enumerate() {
        let (previous, current) = (find_cyrillic(at.checked_sub(1)), find_cyrillic(Some(at)));
        match current {
            None if is_apostrophe(letter) && previous.is_some() && find_cyrillic(Some(at + 1)).is_some() => {}
            None => latin.push(letter),
            Some((lower, _)) => {
                let written = match previous {
                    // `Зг` becomes `Zgh`, because `Zh` is `Ж`.
                    Some(('з', _)) if lower == 'г' => "gh",
                    _ if has_begun => find_latin(&LETTERS, lower),
                    _ => INITIAL_LETTERS
                        .iter()
                        .find(|(first, _)| *first == lower)
                        .map_or(find_latin(&LETTERS, lower), |(_, to)| to),
                };
                match (letter.is_uppercase(), is_all_capitals) {
                    (false, _) => latin.push_str(written),
                    (true, true) => latin.push_str(&written.to_ascii_uppercase()),
                    (true, false) => {
                        let (first, rest) = written.split_at(written.len().min(1));
                        latin.push_str(&first.to_ascii_uppercase());
                        latin.push_str(rest);
                    }
                }
            }
        }
        has_begun |= letter.is_alphabetic() && !is_apostrophe(letter);
    }
}

/// The lower-case letter with its transliteration; `None` if the letter is not in the table.
fn find_letter(letter: char) -> Option<(char, &'static str)> {
    let lower = letter.to_lowercase().next()?;
    LETTERS.iter().find(|(from, _)| *from == lower).copied()
}

fn find_latin(table: &[(char, &'static str)], lower: char) -> &'static str {
    table.iter().find(|(from, _)| *from == lower).map_or("", |(_, to)| to)
}

/// The letters of a word, with combining marks composed.
fn compose_letters(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = Vec::with_capacity(word.len());
    for c in word.chars() {
        let composed = match (letters.last(), c) {
            (Some('и'), '\u{306}') => 'й',
            (Some('И'), '\u{306}') => 'Й',
            (Some('і'), '\u{308}') => 'ї',
            (Some('І'), '\u{308}') => 'Ї',
            (Some('е'), '\u{308}') => 'ё',
            (Some('Е'), '\u{308}') => 'Ё',
            _ => {
                letters.push(c);
                continue;
            }
        };
        letters.pop();
        letters.push(composed);
    }
    letters
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_mode_replaces_only_typographic_characters() {
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
            ("Знижка 🎉 сьогодні! ❤️", Some("Znyzhka sohodni! ")),
            ("Так🎉", Some("Tak")),
        ] {
            assert_eq!(PlainMode::Latin.replace_in_text(text).as_deref(), plain, "{text}");
        }
    }

    #[test]
    fn urls_are_never_changed() {
        for (text, latin, quotes) in [
            (
                "Знижка: https://магазин.укр/знижка…",
                Some("Znyzhka: https://магазин.укр/знижка..."),
                Some("Знижка: https://магазин.укр/знижка..."),
            ),
            (
                "«http://a.example/Я?q=–1», так",
                Some("\"http://a.example/Я?q=–1\", tak"),
                Some("\"http://a.example/Я?q=–1\", так"),
            ),
            ("https://shop.example/?q=“я”&p=1 https://укр/", None, None),
        ] {
            assert_eq!(PlainMode::Latin.replace_in_text(text).as_deref(), latin, "{text}");
            assert_eq!(PlainMode::Quotes.replace_in_text(text).as_deref(), quotes, "{text}");
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
    fn quotes_mode_never_replaces_letters() {
        for c in ('\0'..=char::MAX).filter(|c| keyboard_replacement(*c).is_some()) {
            // The modifier letter apostrophe is a letter to Unicode and an apostrophe to readers.
            assert!(c == '\u{2bc}' || !c.is_alphanumeric(), "{c:?}");
            assert!(keyboard_replacement(c).is_some_and(|instead| instead.chars().all(is_gsm)), "{c:?}");
        }
    }

    fn keep_alphanumeric(text: &str) -> String {
        text.chars().filter(|c| c.is_alphanumeric() && *c != '\u{2bc}').collect()
    }

    proptest! {
        #[test]
        fn latin_mode_yields_gsm_text_and_is_idempotent(
            text in any::<String>(), sample in "[А-яієїґ'’ʼ\\- …€]{0,90}",
        ) {
            for text in [text, sample] {
                let latin = PlainMode::Latin.replace_in_text(&text).unwrap_or(text);
                prop_assert_eq!(measure_sms(&latin).encoding, SmsEncoding::Gsm7);
                prop_assert_eq!(PlainMode::Latin.replace_in_text(&latin), None);
            }
        }

        #[test]
        fn quotes_mode_keeps_letters_and_never_adds_parts(
            text in any::<String>(), sample in "[Аaя’“”«»…—\u{a0}•]{0,250}",
        ) {
            for text in [text, sample] {
                let plain = PlainMode::Quotes.replace_in_text(&text).unwrap_or_else(|| text.clone());
                prop_assert_eq!(keep_alphanumeric(&plain), keep_alphanumeric(&text));
                prop_assert!(measure_sms(&plain).parts <= measure_sms(&text).parts);
            }
        }
    }
}

#[cfg(test)]
mod latin_tests {
    use super::*;

    /// The examples of the official resolution.
    const OFFICIAL: &str = "Алушта Alushta, Андрій Andrii, Борщагівка Borshchahivka, Борисенко Borysenko, Вінниця Vinnytsia, \
        Володимир Volodymyr, Гадяч Hadiach, Богдан Bohdan, Згурський Zghurskyi, Ґалаґан Galagan, Ґорґани Gorgany, \
        Донецьк Donetsk, Дмитро Dmytro, Рівне Rivne, Олег Oleh, Есмань Esman, Єнакієве Yenakiieve, Гаєвич Haievych, \
        Короп'є Koropie, Житомир Zhytomyr, Жанна Zhanna, Жежелів Zhezheliv, Закарпаття Zakarpattia, Казимирчук Kazymyrchuk, \
        Медвин Medvyn, Михайленко Mykhailenko, Іванків Ivankiv, Іващенко Ivashchenko, Їжакевич Yizhakevych, \
        Кадиївка Kadyivka, Мар'їне Marine, Йосипівка Yosypivka, Стрий Stryi, Олексій Oleksii, Київ Kyiv, Коваленко Kovalenko, \
        Лебедин Lebedyn, Леонід Leonid, Миколаїв Mykolaiv, Маринич Marynych, Ніжин Nizhyn, Наталія Nataliia, Одеса Odesa, \
        Онищенко Onyshchenko, Полтава Poltava, Петро Petro, Решетилівка Reshetylivka, Рибчинський Rybchynskyi, Суми Sumy, \
        Соломія Solomiia, Тернопіль Ternopil, Троць Trots, Ужгород Uzhhorod, Уляна Uliana, Фастів Fastiv, Філіпчук Filipchuk, \
        Харків Kharkiv, Христина Khrystyna, Біла Bila, Церква Tserkva, Стеценко Stetsenko, Чернівці Chernivtsi, \
        Шевченко Shevchenko, Шостка Shostka, Кишеньки Kyshenky, Щербухи Shcherbukhy, Гоща Hoshcha, Гаращенко Harashchenko, \
        Юрій Yurii, Корюківка Koriukivka, Яготин Yahotyn, Ярошенко Yaroshenko, Костянтин Kostiantyn, Знам'янка Znamianka, \
        Феодосія Feodosiia, Розгон Rozghon";

    #[test]
    fn official_examples_are_transliterated() {
        let pairs: Vec<_> = OFFICIAL.split(", ").collect();
        assert!(pairs.len() > 70);
        for pair in pairs {
            let (cyrillic, latin) = pair.split_once(' ').unwrap();
            assert_eq!(transliterate(cyrillic), latin);
        }
    }

    #[test]
    fn letter_case_and_other_alphabets_are_preserved() {
        for (text, latin) in [
            ("ЩАСТЯ", "SHCHASTIA"),
            ("Щастя й щирість", "Shchastia y shchyrist"),
            ("Я ЇХАВ, а Ю. Щ. — ні", "Ya YIKHAV, a Yu. Shch. — ni"),
            ("ЗГОДА, Згода, згода", "ZGHODA, Zghoda, zghoda"),
            ("Нью-Йорк, пів'яблука, об\u{2019}єкт, м\u{2bc}яч", "Niu-York, piviabluka, obiekt, miach"),
            ("it's Olena's 'дім'", "it's Olena's 'dim'"),
            ("-20% на ВСЕ: https://shop.example/?c=Я1", "-20% na VSE: https://shop.example/?c=Ya1"),
            ("объявление, съёмка, Эхо, мыло", "obiavlenye, semka, Ekho, mylo"),
            ("Zażółć, naïve, Ωμέγα", "Zażółć, naïve, Ωμέγα"),
            ("Стри\u{306}, и\u{306}од, і\u{308}жа", "Stri, yod, yizha"),
            ("", ""),
        ] {
            assert_eq!(transliterate(text), latin, "{text}");
        }
    }
}
