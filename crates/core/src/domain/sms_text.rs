//! Encoding and billed parts of SMS texts (GSM 03.38), and the characters that make a text need more parts.
//!
//! The count in this module is known before sending. The gateway charges by its own count: `parts` in a send result
//! (contract 2.2). An empty text has no parts.

use super::transliteration::keyboard_replacement;

/// The maximum number of septets in a single-part GSM-7 text.
const GSM_SINGLE: usize = 160;
/// The maximum number of septets in one part of a longer GSM-7 text; the rest is the header that joins the parts.
const GSM_PART: usize = 153;
/// The maximum number of UTF-16 units in a single-part UCS-2 text.
const UCS_SINGLE: usize = 70;
/// The maximum number of UTF-16 units in one part of a longer UCS-2 text.
const UCS_PART: usize = 67;

/// The alphabet of an SMS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmsEncoding {
    /// The basic GSM alphabet and its extension, seven bits a character.
    Gsm7,
    /// All other characters, including Cyrillic, sixteen bits a unit.
    Ucs2,
}

/// The size of an SMS text: encoding, length and parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmsSize {
    /// The required alphabet.
    pub encoding: SmsEncoding,
    /// Septets in GSM-7, UTF-16 units in UCS-2.
    pub units: usize,
    /// Billed parts; 0 for the empty text, which is never sent.
    pub parts: usize,
}

impl SmsSize {
    /// The number of units that fit into the parts.
    pub fn capacity(&self) -> usize {
        match (self.encoding, self.parts) {
            (SmsEncoding::Gsm7, ..=1) => GSM_SINGLE,
            (SmsEncoding::Gsm7, parts) => GSM_PART * parts,
            (SmsEncoding::Ucs2, ..=1) => UCS_SINGLE,
            (SmsEncoding::Ucs2, parts) => UCS_PART * parts,
        }
    }
}

/// The encoding, the length and the billed parts of `text`.
pub fn measure_sms(text: &str) -> SmsSize {
    let characters = if text.is_ascii() { text.len() } else { text.chars().count() };
    match count_gsm_units(text) {
        Some(units) if units == characters => {
            SmsSize { encoding: SmsEncoding::Gsm7, units, parts: count_even_parts(units, GSM_SINGLE, GSM_PART) }
        }
        Some(units) => {
            let parts =
                count_parts(units, GSM_SINGLE, GSM_PART, || text.chars().map(|c| usize::from(count_septets(c))));
            SmsSize { encoding: SmsEncoding::Gsm7, units, parts }
        }
        None => {
            // A character of two UTF-16 units has four bytes in UTF-8, and the first of them is 0xf0 or more.
            let pairs = text.bytes().filter(|&byte| byte >= 0xf0).count();
            let units = characters + pairs;
            let parts = match pairs {
                0 => count_even_parts(units, UCS_SINGLE, UCS_PART),
                _ => count_parts(units, UCS_SINGLE, UCS_PART, || text.chars().map(char::len_utf16)),
            };
            SmsSize { encoding: SmsEncoding::Ucs2, units, parts }
        }
    }
}

/// Splits a text into parts in order; no character is split between two parts.
///
/// Joining the parts gives the original text. [`measure_sms`] counts the same number of parts.
pub fn split_sms(text: &str) -> Vec<&str> {
    let SmsSize { encoding, units, parts: count } = measure_sms(text);
    let (capacity, width): (usize, fn(char) -> usize) = match encoding {
        SmsEncoding::Gsm7 if units <= GSM_SINGLE => (GSM_SINGLE, |c| count_septets(c).into()),
        SmsEncoding::Gsm7 => (GSM_PART, |c| count_septets(c).into()),
        SmsEncoding::Ucs2 if units <= UCS_SINGLE => (UCS_SINGLE, char::len_utf16),
        SmsEncoding::Ucs2 => (UCS_PART, char::len_utf16),
    };
    let (mut parts, mut begin, mut used) = (Vec::with_capacity(count), 0, 0);
    for (at, c) in text.char_indices() {
        if used + width(c) > capacity {
            parts.push(&text[begin..at]);
            (begin, used) = (at, 0);
        }
        used += width(c);
    }
    parts.extend((begin < text.len()).then(|| &text[begin..]));
    parts
}

/// The number of septets in the whole text; `None` if a character is not in the GSM alphabet.
fn count_gsm_units(text: &str) -> Option<usize> {
    if text.is_ascii() {
        return count_ascii_units(text.as_bytes());
    }
    text.chars().try_fold(0, |units, c| match count_septets(c) {
        0 => None,
        septets => Some(units + usize::from(septets)),
    })
}

/// [`count_gsm_units`] for ASCII bytes, the common case of the hot path, with comparisons that the compiler can
/// vectorize. `None` if a character is not in the GSM alphabet.
fn count_ascii_units(text: &[u8]) -> Option<usize> {
    let mut units = text.len();
    // In a chunk of this size, the count of doubled characters fits into a byte.
    for chunk in text.chunks(128) {
        let (mut doubled, mut foreign) = (0_u8, 0_u8);
        for &byte in chunk {
            let is_extension = matches!(byte, b'^' | b'{' | b'}' | b'\\' | b'[' | b'~' | b']' | b'|' | 0x0c);
            let is_control = byte < b' ' && byte != b'\n' && byte != b'\r' && byte != 0x0c;
            doubled += u8::from(is_extension);
            foreign |= u8::from(is_control) | u8::from(byte == b'`') | u8::from(byte == 0x7f);
        }
        if foreign > 0 {
            return None;
        }
        units += usize::from(doubled);
    }
    Some(units)
}

/// The number of parts that a text of `units` units needs if no character takes two units.
fn count_even_parts(units: usize, single_capacity: usize, part_capacity: usize) -> usize {
    if units <= single_capacity { usize::from(units > 0) } else { units.div_ceil(part_capacity) }
}

/// The number of parts that a text of `units` units needs. `widths` yields the number of units of each character; no
/// character is split.
fn count_parts<W: Iterator<Item = usize>>(
    units: usize,
    single_capacity: usize,
    part_capacity: usize,
    widths: impl FnOnce() -> W,
) -> usize {
    if units <= single_capacity {
        return usize::from(units > 0);
    }
    let add_character = |(full, used): (usize, usize), width: usize| {
        if used + width > part_capacity { (full + 1, width) } else { (full, used + width) }
    };
    let (full, last) = widths().fold((0, 0), add_character);
    full + usize::from(last > 0)
}

/// Whether the character is in the basic alphabet or the extension.
pub(super) fn is_gsm(c: char) -> bool {
    count_septets(c) > 0
}

/// The number of septets of a character: 1 in the basic alphabet, 2 in the extension, 0 outside the GSM alphabet.
pub(super) fn count_septets(c: char) -> u8 {
    match c {
        '\0'..='\x7f' => ASCII_SEPTETS[c as usize],
        '€' => 2,
        '£' | '¥' | 'è' | 'é' | 'ù' | 'ì' | 'ò' | 'Ç' | 'Ø' | 'ø' | 'Å' | 'å' | 'Æ' | 'æ' | 'ß' | 'É' | '¤' | '¡'
        | 'Ä' | 'Ö' | 'Ñ' | 'Ü' | '§' | '¿' | 'ä' | 'ö' | 'ñ' | 'ü' | 'à' => 1,
        'Δ' | 'Φ' | 'Γ' | 'Λ' | 'Ω' | 'Π' | 'Ψ' | 'Σ' | 'Θ' | 'Ξ' => 1,
        _ => 0,
    }
}

/// [`count_septets`] of the ASCII characters.
const ASCII_SEPTETS: [u8; 128] = {
    let mut septets = [0; 128];
    let mut byte = 0;
    while byte < 128 {
        septets[byte] = match byte as u8 {
            b'`' | 0x7f => 0,
            b'^' | b'{' | b'}' | b'\\' | b'[' | b'~' | b']' | b'|' | 0x0c => 2,
            b'\n' | b'\r' | b' '..=b'~' => 1,
            _ => 0,
        };
        byte += 1;
    }
    septets
};

/// Characters that make an SMS need more parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostlyCharacters {
    /// The characters, ordered by code.
    pub characters: Vec<char>,
    /// The number of parts of the text.
    pub parts: usize,
    /// The number of parts if other characters replaced these.
    pub without: usize,
}

/// The maximum number of different costly characters. A text with more is considered to be in another alphabet.
const MAX_CHARACTERS: usize = 3;

/// The characters that make a text need more parts: a few outside the GSM alphabet, or characters that count twice.
///
/// `None` for a text in another alphabet, or if such characters do not increase the number of parts.
pub fn find_costly_characters(text: &str) -> Option<CostlyCharacters> {
    let is_gsm_text = count_gsm_units(text).is_some();
    let is_cheap = |c: char| if is_gsm_text { count_septets(c) < 2 } else { count_septets(c) > 0 };
    let mut characters: Vec<char> = Vec::new();
    for c in text.chars().filter(|c| !is_cheap(*c)) {
        if characters.contains(&c) {
            continue;
        }
        // One letter can be a mistake, such as a Cyrillic `с`; two are probably a name in another alphabet.
        let is_second_letter = c.is_alphabetic() && characters.iter().any(|other| other.is_alphabetic());
        if is_second_letter || characters.len() == MAX_CHARACTERS {
            return None;
        }
        characters.push(c);
    }
    // Most texts in another alphabet are never measured: the loop above returns at their second letter.
    let parts = measure_sms(text).parts;
    if parts < 2 {
        return None;
    }
    let mut replaced = String::with_capacity(text.len());
    for c in text.chars() {
        match (is_cheap(c), keyboard_replacement(c)) {
            (true, _) => replaced.push(c),
            (false, Some(instead)) => replaced.push_str(instead),
            (false, None) => replaced.push('x'),
        }
    }
    let without = measure_sms(&replaced).parts;
    characters.sort_unstable();
    (without < parts).then_some(CostlyCharacters { characters, parts, without })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The alphabets in the order of the standard's tables.
    const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡\
                         ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
    const EXTENSION: &str = "\u{c}^{}\\[~]|€";

    /// Measures a text by filling its parts one character at a time, without shortcuts.
    fn measure_naively(text: &str) -> SmsSize {
        let is_gsm_text = text.chars().all(|c| BASIC.contains(c) || EXTENSION.contains(c));
        let width = |c: char| match is_gsm_text {
            true => 1 + usize::from(EXTENSION.contains(c)),
            false => c.len_utf16(),
        };
        let (encoding, alone, part) =
            if is_gsm_text { (SmsEncoding::Gsm7, 160, 153) } else { (SmsEncoding::Ucs2, 70, 67) };
        let units = text.chars().map(width).sum();
        let mut parts: Vec<Vec<char>> = Vec::new();
        for c in text.chars() {
            let capacity = if units <= alone { alone } else { part };
            match parts.last_mut() {
                Some(last) if last.iter().copied().map(width).sum::<usize>() + width(c) <= capacity => last.push(c),
                _ => parts.push(vec![c]),
            }
        }
        SmsSize { encoding, units, parts: parts.len() }
    }

    #[test]
    fn gsm_alphabet_matches_the_standard() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let expected = if BASIC.contains(c) { 1 } else { 2 * u8::from(EXTENSION.contains(c)) };
            assert_eq!(count_septets(c), expected, "{c:?}");
        }
        assert_eq!(BASIC.chars().count(), 127);
    }

    #[test]
    fn parts_are_counted_at_every_boundary() {
        let table: [(String, SmsEncoding, usize, usize); 13] = [
            (String::new(), SmsEncoding::Gsm7, 0, 0),
            ("a".repeat(160), SmsEncoding::Gsm7, 160, 1),
            ("a".repeat(161), SmsEncoding::Gsm7, 161, 2),
            ("a".repeat(306), SmsEncoding::Gsm7, 306, 2),
            ("a".repeat(307), SmsEncoding::Gsm7, 307, 3),
            ("€".repeat(80), SmsEncoding::Gsm7, 160, 1),
            // A euro sign counts as two units and cannot straddle two parts. 153 is odd, so a part holds only 76 of
            // them.
            ("€".repeat(152), SmsEncoding::Gsm7, 304, 2),
            ("€".repeat(153), SmsEncoding::Gsm7, 306, 3),
            ("я".repeat(70), SmsEncoding::Ucs2, 70, 1),
            ("я".repeat(71), SmsEncoding::Ucs2, 71, 2),
            ("я".repeat(135), SmsEncoding::Ucs2, 135, 3),
            // 67 is odd too: a part holds 33 surrogate pairs.
            ("😀".repeat(66), SmsEncoding::Ucs2, 132, 2),
            ("😀".repeat(67), SmsEncoding::Ucs2, 134, 3),
        ];
        for (text, encoding, units, parts) in table {
            assert_eq!(measure_sms(&text), SmsSize { encoding, units, parts }, "{text}");
        }
    }

    #[test]
    fn one_non_gsm_character_makes_the_text_ucs2() {
        for text in ["naïve", "Привіт", "tab\there", "back`tick", "ç"] {
            assert_eq!(measure_sms(text).encoding, SmsEncoding::Ucs2, "{text}");
        }
    }

    proptest! {
        #[test]
        fn parts_agree_with_a_naive_split(text in "[a-z€\\[\\]àΩя😀\\n ]{0,400}") {
            prop_assert_eq!(measure_sms(&text), measure_naively(&text));
        }

        #[test]
        fn parts_of_gsm_texts_agree_with_a_naive_split(text in "[a-z€^à\\n ]{100,700}") {
            prop_assert_eq!(measure_sms(&text), measure_naively(&text));
        }

        #[test]
        fn any_text_can_be_measured(text in any::<String>()) {
            prop_assert_eq!(measure_sms(&text), measure_naively(&text));
        }

        #[test]
        fn split_parts_join_to_the_text_and_match_the_count(
            text in "[a-z€\\[àя😀\n ]{0,400}", latin in "[a-z€^à ]{100,700}",
        ) {
            for text in [text, latin] {
                let parts = split_sms(&text);
                prop_assert_eq!(parts.concat(), text.as_str());
                prop_assert_eq!(parts.len(), measure_sms(&text).parts);
                let capacity = if parts.len() > 1 { GSM_PART } else { GSM_SINGLE };
                prop_assert!(parts.iter().all(|part| measure_sms(part).units <= capacity));
            }
        }
    }
}

#[cfg(test)]
mod costly_tests {
    use super::*;

    #[test]
    fn costly_characters_are_found_if_few() {
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
            let actual = find_costly_characters(&text);
            assert_eq!(actual.map(|costly| costly.characters).unwrap_or_default(), costly, "{text}");
        }
    }

    #[test]
    fn part_count_without_costly_characters_is_correct() {
        let parts = |text: &str| find_costly_characters(text).map(|costly| (costly.parts, costly.without));
        assert_eq!(parts(&format!("{}’", "a".repeat(159))), Some((3, 1)));
        // The replacement is three dots instead of one character.
        assert_eq!(parts(&format!("{}…", "a".repeat(157))), Some((3, 1)));
        assert_eq!(parts(&format!("{}…", "a".repeat(158))), Some((3, 2)));
    }
}
