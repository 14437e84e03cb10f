//! Where each character of a text stands in the YAML that it was written in.
//!
//! Quotes, escapes, folded lines and indentation make the two differ. Both are walked together;
//! where they cannot be brought together the answer is that they cannot, never a wrong place.

use std::iter::Peekable;
use std::str::CharIndices;

use super::yaml::{Scalar, Style};

/// For each character of `scalar`'s text its byte in `raw`, the YAML that it was written in.
pub(super) fn align_characters(raw: &str, scalar: &Scalar) -> Option<Vec<usize>> {
    let quoted = matches!(scalar.style, Style::SingleQuoted | Style::DoubleQuoted);
    let mut written = RawText { raw, chars: raw.char_indices().peekable(), style: scalar.style };
    if quoted {
        written.chars.next();
    }
    scalar.text.chars().map(|wanted| written.find_character(wanted)).collect()
}

struct RawText<'r> {
    raw: &'r str,
    chars: Peekable<CharIndices<'r>>,
    style: Style,
}

impl RawText<'_> {
    /// The byte at which the next character of the text was written.
    ///
    /// White space that is only indentation or folding is passed over.
    fn find_character(&mut self, wanted: char) -> Option<usize> {
        loop {
            let (at, c) = self.next()?;
            if c == Some(wanted) {
                return Some(at);
            }
            let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
            match c {
                Some(c) if blank(c) && blank(wanted) => {
                    while self.chars.next_if(|&(_, c)| blank(c)).is_some() {}
                    return Some(at);
                }
                Some(c) if !blank(c) => return None,
                _ => {}
            }
        }
    }

    /// The next character as it was meant; nothing where an escape stands for no character.
    fn next(&mut self) -> Option<(usize, Option<char>)> {
        let (at, c) = self.chars.next()?;
        match (self.style, c) {
            (Style::SingleQuoted, '\'') => self.chars.next_if(|&(_, c)| c == '\'').map(|_| (at, Some(c))),
            (Style::DoubleQuoted, '\\') => Some((at, self.read_escape())),
            _ => Some((at, Some(c))),
        }
    }

    /// What an escape inside double quotes stands for (YAML 1.2, 5.7).
    fn read_escape(&mut self) -> Option<char> {
        let (at, c) = self.chars.next()?;
        let digits = match c {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => return simple_escape(c),
        };
        let code = u32::from_str_radix(self.raw.get(at + 1..at + 1 + digits)?, 16).ok()?;
        for _ in 0..digits {
            self.chars.next();
        }
        char::from_u32(code)
    }
}

fn simple_escape(c: char) -> Option<char> {
    Some(match c {
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        't' | '\t' => '\t',
        'n' => '\n',
        'v' => '\u{b}',
        'f' => '\u{c}',
        'r' => '\r',
        'e' => '\u{1b}',
        ' ' | '"' | '/' | '\\' => c,
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::report::FindingCollector;
    use super::super::yaml::read_tree;
    use super::*;
    use crate::finding::SourceText;

    /// What stands in the YAML where `part` stands in the value of `m`.
    fn find_part(yaml: &str, part: &str) -> Option<String> {
        let mut report = FindingCollector::new(&SourceText::new("a.yaml", yaml));
        let root = read_tree(&mut report).unwrap();
        let node = &root.find_entry("m").unwrap().value;
        let scalar = node.as_scalar().unwrap();
        let raw = &yaml[node.span.clone()];
        let places = align_characters(raw, scalar)?;
        let first = scalar.text[..scalar.text.find(part).unwrap()].chars().count();
        let last = first + part.chars().count() - 1;
        Some(raw[places[first]..=places[last]].to_owned())
    }

    #[test]
    fn part_of_a_text_is_found_in_any_yaml_style() {
        let cases = [
            ("m: Hi {{ x }} you", "{{ x }}", "{{ x }}"),
            ("m: \"Hi {{ x }}\"", "{{ x }}", "{{ x }}"),
            ("m: \"a\\\"b\\n\\u00e9 {{ x }}\"", "{{ x }}", "{{ x }}"),
            ("m: 'it''s {{ x }}'", "{{ x }}", "{{ x }}"),
            ("m: 'привіт {{ x }}'", "{{ x }}", "{{ x }}"),
            ("m: |\n  one\n    two\n  {{ x }} three\n", "{{ x }}", "{{ x }}"),
            ("m: >\n  one\n  two\n\n  {{ x }}\n  three\n", "{{ x }}", "{{ x }}"),
            ("m: one\n  two {{ x }}\n", "{{ x }}", "{{ x }}"),
            ("m: \"one\n  two \\\n  {{ x }}\"\n", "{{ x }}", "{{ x }}"),
            ("m: |\r\n  one\r\n  {{ x }}\r\n", "{{ x }}", "{{ x }}"),
        ];
        for (yaml, part, raw) in cases {
            assert_eq!(find_part(yaml, part).as_deref(), Some(raw), "{yaml:?}");
        }
    }
}
