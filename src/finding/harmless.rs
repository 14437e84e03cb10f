//! Words of others as they are shown: they command no terminal, make no line of their own, and reorder nothing.
//!
//! What would do so is shown as its escape. It must not be used on what is stored or sent.

use std::borrow::Cow;

/// A text of ours with its own lines, that may quote others.
#[must_use]
pub fn escape_controls(text: &str) -> String {
    escape_harmful(text, |c| matches!(c, '\n' | '\t').then_some(c))
}

/// Words of others within a line: their breaks and tabs are shown, and not obeyed.
#[must_use]
pub fn escape_to_one_line(text: &str) -> String {
    escape_harmful(&text.replace("\r\n", "\n"), |c| match c {
        '\n' | '\r' => Some('⏎'),
        '\t' => Some('⇥'),
        _ => None,
    })
}

/// JSON with the same meaning, in which no text commands a terminal or reorders what is shown.
#[must_use]
pub fn escape_json_controls(json: &str) -> Cow<'_, str> {
    // The library escapes other control characters itself, and between the texts there are only line breaks.
    if !json.contains(|c| c != '\n' && is_harmful(c)) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_harmful(c) {
            text.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
        }
    }
    Cow::Owned(text)
}

fn escape_harmful(text: &str, own: impl Fn(char) -> Option<char>) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match own(c) {
            Some(c) => shown.push(c),
            None if is_harmful(c) => shown.extend(c.escape_unicode()),
            None => shown.push(c),
        }
    }
    shown
}

/// Whether a character is a control, turns the direction of the text, ends a line, or hides in it.
///
/// The joiners U+200C and U+200D stay: Persian words and many emoji are written with them.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
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
            prop_assert!(!line.chars().any(is_harmful), "{:?}", line);
            prop_assert_eq!(escape_controls(&line), line);
        }

        #[test]
        fn escaped_json_keeps_its_meaning(text in "[\u{0}-\u{2100}]*|.*") {
            let json = serde_json::json!({ "error": text });
            let written = format!("{json}\n");
            let shown = escape_json_controls(&written);
            prop_assert!(!shown.trim_end().chars().any(is_harmful), "{:?}", shown);
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), json);
        }
    }
}
