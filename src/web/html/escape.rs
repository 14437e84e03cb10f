//! How every word of others is written into a page: as text, whatever it is.
//!
//! The templates have it called for each value that they print, so no template can forget it. Besides the signs of HTML it
//! makes visible what commands, reorders or hides, as the terminal shows it too, and what no HTML may hold.

use std::io::{self, Write};

use crate::finding::escape_controls;

/// Writes a value into a page, between tags or between the quotes of an attribute.
pub(super) fn write_escaped(value: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut text = String::with_capacity(value.len());
    for c in escape_controls(value).chars() {
        match c {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\'' => text.push_str("&#39;"),
            c if is_noncharacter(c) => text.push(char::REPLACEMENT_CHARACTER),
            c => text.push(c),
        }
    }
    out.write_all(text.as_bytes())
}

/// Whether Unicode keeps the code for the inside of programs, so that a page that has it is wrong.
fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_characters_and_control_codes_become_text() {
        let table = [
            ("<b a='x'>&amp;\"", "&lt;b a=&#39;x&#39;&gt;&amp;amp;&quot;"),
            ("Привіт,\n\t👋", "Привіт,\n\t👋"),
            ("a\0b\r\u{7f}", "a\\u{0}b\\u{d}\\u{7f}"),
            ("\u{202e}abc\u{200b}", "\\u{202e}abc\\u{200b}"),
            ("\u{fdd0}\u{ffff}\u{1fffe}", "\u{fffd}\u{fffd}\u{fffd}"),
        ];
        for (value, written) in table {
            let mut out = Vec::new();
            write_escaped(value, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }
}
