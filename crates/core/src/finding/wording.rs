//! Wording of findings and errors: suggestions, lists of names, shell quoting, escaping of control characters, and
//! masking of phone numbers.
//!
//! Escaping protects terminals and readers: untrusted text cannot control a terminal, add lines or reorder text. Stored
//! and sent data must never be escaped this way.

use std::borrow::Cow;
use std::ffi::OsStr;

use jiff::civil::Date;

/// The maximum number of characters of a masked text.
const MAX_CHARACTERS: usize = 400;
/// The minimum number of digits of a phone number.
const MIN_PHONE_DIGITS: usize = 9;

/// Prefixes of words that mean the opposite.
const NEGATIONS: [&str; 5] = ["not", "non", "no", "un", "не"];

/// Whether one of two words in lower case is the other with a negation, as `undelivered` is `delivered`.
fn are_opposites(one: &str, other: &str) -> bool {
    let is_negated = |word: &str| NEGATIONS.into_iter().any(|negation| word.starts_with(negation));
    let negates = |longer: &str, shorter: &str| {
        let rests = NEGATIONS.into_iter().filter_map(|negation| longer.strip_prefix(negation));
        !is_negated(shorter)
            && rests
                .map(|rest| rest.trim_start_matches([' ', '_', '-']))
                .any(|rest| rest.len() > 2 && strsim::damerau_levenshtein(rest, shorter) <= shorter.chars().count() / 4)
    };
    negates(one, other) || negates(other, one)
}

/// The name that `typed` was probably meant to be, if one is similar enough. Never a name that means the opposite.
pub fn did_you_mean<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = typed.to_lowercase();
    // One edit is allowed for every three letters, and at least one.
    names
        .into_iter()
        .filter(|name| !are_opposites(&lower, &name.to_lowercase()))
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), name))
        .filter(|&(distance, name)| distance <= (name.chars().count().max(typed.chars().count()) / 3).max(1))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// The only name that `typed` can mean: at most two letters differ, and every other similar name differs by at least
/// two more letters.
pub fn only_candidate<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = typed.to_lowercase();
    let similar = names.into_iter().filter(|name| did_you_mean(typed, [*name]).is_some());
    let mut candidates: Vec<(usize, &str)> =
        similar.map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), name)).collect();
    candidates.sort_unstable();
    match candidates.as_slice() {
        [(0..=2, only)] => Some(only),
        [(distance @ 0..=2, only), (next, _), ..] if distance + 2 <= *next => Some(only),
        _ => None,
    }
}

/// Puts names in backticks and joins them with commas and a final `or`.
pub fn join_alternatives<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    join_with(names, "or")
}

/// Puts names in backticks and joins them with commas and a final `and`.
pub fn join_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    join_with(names, "and")
}

fn join_with<'a>(names: impl IntoIterator<Item = &'a str>, word: &str) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

/// Quotes a text for a YAML file.
pub fn quote_for_yaml(text: &str) -> String {
    // A JSON string is also a YAML string.
    serde_json::Value::from(text).to_string()
}

/// Quotes a word for a shell.
pub fn quote_for_shell(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let is_plain = |character: char| character.is_alphanumeric() || "/._-".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Escapes control characters in a text of this program, which might quote other texts; line breaks and tabs are kept.
pub fn escape_controls(text: &str) -> String {
    escape_harmful_characters(text, |c| matches!(c, '\n' | '\t').then_some(c))
}

/// Escapes control characters in foreign text, including line breaks and tabs.
pub fn escape_to_one_line(text: &str) -> String {
    escape_harmful_characters(&text.replace("\r\n", "\n"), |c| match c {
        '\n' | '\r' => Some('⏎'),
        '\t' => Some('⇥'),
        _ => None,
    })
}

/// Escapes characters in JSON that control a terminal or reorder text. The result is equivalent JSON.
pub fn escape_json_controls(json: &str) -> Cow<'_, str> {
    // `serde_json` already escapes the other control characters in strings. Outside strings, the only control
    // characters are line breaks.
    if !json.contains(|c| c != '\n' && is_harmful_character(c)) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_harmful_character(c) {
            text.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
        }
    }
    Cow::Owned(text)
}

fn escape_harmful_characters(text: &str, replace: impl Fn(char) -> Option<char>) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match replace(c) {
            Some(c) => escaped.push(c),
            None if is_harmful_character(c) => escaped.extend(c.escape_unicode()),
            None => escaped.push(c),
        }
    }
    escaped
}

/// Whether a character is a control character, changes the text direction, ends a line, or is invisible.
///
/// The joiners U+200C and U+200D are allowed: Persian words and many emoji need them.
fn is_harmful_character(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The beginning of a text, with each phone number masked as `…` and its last two digits. A phone number has nine
/// digits or more, with or without spaces, hyphens, dots, slashes and brackets between them. Dates are not masked.
pub fn mask_numbers(text: &str) -> String {
    let beginning: String = text.chars().take(MAX_CHARACTERS).collect();
    let cut = if beginning.len() < text.len() { "…" } else { "" };
    let mut masked = String::with_capacity(beginning.len());
    let mut rest = beginning.as_str();
    while let Some(at) = rest.find(|c: char| c.is_numeric()) {
        let (before, from) = rest.split_at(at);
        masked.push_str(before);
        let end = find_number_end(from);
        let (number, after) = from.split_at(end);
        let digits: Vec<char> = number.chars().filter(|c| c.is_numeric()).collect();
        match digits.as_slice() {
            [.., tens, ones] if digits.len() >= MIN_PHONE_DIGITS => masked.extend(['…', *tens, *ones]),
            _ => masked.push_str(number),
        }
        rest = after;
    }
    masked + rest + cut
}

/// The end of the digits or of the date at the beginning of a text. There can be up to two separators between digits.
fn find_number_end(text: &str) -> usize {
    if let Some(date) = find_date_end(text) {
        return date;
    }
    let (mut end, mut separators) = (0, 0);
    for (at, c) in text.char_indices() {
        if c.is_numeric() {
            if separators > 0 && find_date_end(&text[at..]).is_some() {
                return end;
            }
            (end, separators) = (at + c.len_utf8(), 0);
        } else if separators < 2 && (c.is_whitespace() || matches!(c, '-' | '.' | '(' | ')' | '/')) {
            separators += 1;
        } else {
            break;
        }
    }
    end
}

/// The end of a date at the beginning of a text: `2026-12-01`.
fn find_date_end(text: &str) -> Option<usize> {
    const LENGTH: usize = 10;
    let date: Date = text.get(..LENGTH)?.parse().ok()?;
    let is_complete = !text[LENGTH..].starts_with(|c: char| c.is_numeric());
    (is_complete && (1970..2200).contains(&date.year())).then_some(LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_quotes_keep_combining_characters() {
        assert_eq!(quote_for_yaml("Мобільнии\u{306} \"1\"\\\n"), "\"Мобільнии\u{306} \\\"1\\\"\\\\\\n\"");
    }

    #[test]
    fn typos_get_a_suggestion_but_other_words_do_not() {
        let names = ["signature", "message", "lifetime"];
        assert_eq!(did_you_mean("signatur", names), Some("signature"));
        assert_eq!(did_you_mean("Mesage", names), Some("message"));
        assert_eq!(did_you_mean("hook", names), None);
        let states = ["delivered", "read", "undelivered"];
        assert_eq!(did_you_mean("not delivered", states), Some("undelivered"));
        assert_eq!(did_you_mean("not_delivered", ["delivered"]), None);
        assert_eq!(did_you_mean("unread", states), None);
        assert_eq!(did_you_mean("untill", ["until"]), Some("until"));
    }

    #[test]
    fn names_are_joined_as_prose() {
        assert_eq!(join_alternatives(["a"]), "`a`");
        assert_eq!(join_alternatives(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(join_names(["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!((join_alternatives([]), join_names([])), (String::new(), String::new()));
    }

    #[test]
    fn listed_names_keep_their_spelling() {
        assert_eq!(join_names(["Sale or Promo/", "templates/"]), "`Sale or Promo/` and `templates/`");
        assert_eq!(join_alternatives(["bread and butter", "tea"]), "`bread and butter` or `tea`");
    }

    #[test]
    fn words_are_quoted_for_the_shell_only_if_necessary() {
        for (word, typed) in [
            ("/tmp/a-b_c.yaml", "/tmp/a-b_c.yaml"),
            ("осінь.yaml", "осінь.yaml"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME;*", "'$HOME;*'"),
            ("", "''"),
        ] {
            assert_eq!(quote_for_shell(word), typed);
        }
    }

    #[test]
    fn phone_numbers_are_masked_but_dates_are_kept() {
        for (text, expected) in [
            ("`380501234567` stands in 2 rows", "`…67` stands in 2 rows"),
            ("+38 (050) 123-45-67, 050.123.45.67", "+…67, …67"),
            ("٠١٢٣٤٥٦٧٨٩", "…٨٩"),
            ("daily-2026-12-01.csv at 2026-12-01 10:00", "daily-2026-12-01.csv at 2026-12-01 10:00"),
            ("2026-12-01 380501234567", "2026-12-01 …67"),
            ("rows 12, 13 and 14 of 2 001", "rows 12, 13 and 14 of 2 001"),
            ("daily-20261201.csv", "daily-20261201.csv"),
            ("", ""),
        ] {
            assert_eq!(mask_numbers(text), expected);
        }
        assert_eq!(mask_numbers(&"a".repeat(500)), "a".repeat(MAX_CHARACTERS) + "…");
    }
}

#[cfg(test)]
mod escaping_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_and_hidden_characters_are_escaped() {
        let table = [
            ("Олена 👩‍👧 ok", "Олена 👩‍👧 ok", "Олена 👩‍👧 ok"),
            ("x\nINFO fake", "x\nINFO fake", "x⏎INFO fake"),
            ("a\r\nb\rc\td", "a\\u{d}\nb\\u{d}c\td", "a⏎b⏎c⇥d"),
            ("\u{1b}[2J\u{9b}31m", "\\u{1b}[2J\\u{9b}31m", "\\u{1b}[2J\\u{9b}31m"),
            ("pay\u{202e}001", "pay\\u{202e}001", "pay\\u{202e}001"),
            ("a\u{2028}b\u{200b}c\u{feff}", "a\\u{2028}b\\u{200b}c\\u{feff}", "a\\u{2028}b\\u{200b}c\\u{feff}"),
        ];
        for (text, with_lines, line) in table {
            assert_eq!(
                (escape_controls(text).as_str(), escape_to_one_line(text).as_str()),
                (with_lines, line),
                "{text:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn escaping_is_complete_and_idempotent(text in "\\PC*|[\u{0}-\u{2100}]*") {
            let line = escape_to_one_line(&text);
            prop_assert!(!line.chars().any(is_harmful_character), "{:?}", line);
            prop_assert_eq!(escape_controls(&line), line);
        }

        #[test]
        fn escaped_json_keeps_its_meaning(text in "[\u{0}-\u{2100}]*|.*") {
            let json = serde_json::json!({ "error": text });
            let written = format!("{json}\n");
            let escaped = escape_json_controls(&written);
            prop_assert!(!escaped.trim_end().chars().any(is_harmful_character), "{:?}", escaped);
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), json);
        }
    }
}
