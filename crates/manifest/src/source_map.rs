//! Source map of a campaign: the location of every key and of every part of a text in its file.
//!
//! Quotes, escapes, folding and indentation make a text differ from its YAML source, so both are walked together. If
//! they cannot be aligned, the location is unknown rather than wrong.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Range;
use std::path::Path;
use std::str::CharIndices;

use super::yaml::{Node, NodeContent, Scalar, Style};
use campaign_core::finding::{SourceLocation, SourceText};

/// Locations of a campaign's keys and texts.
#[derive(Clone, Debug)]
pub struct SourceMap {
    source: SourceText,
    root: Node,
    files: BTreeMap<String, SourceText>,
    /// Included texts, by the names under which other texts include them.
    included: BTreeMap<String, SourceText>,
}

impl SourceMap {
    pub(super) fn new(source: SourceText, root: Node, files: BTreeMap<String, SourceText>) -> Self {
        Self { source, root, files, included: BTreeMap::new() }
    }

    /// Sets the texts that other texts include, so that parts of included texts can be located too.
    pub fn set_included_texts(&mut self, texts: BTreeMap<String, SourceText>) {
        self.included = texts;
    }

    /// The location of a key by its path, such as `vars.shop` or `channels[0].sms.message`.
    ///
    /// For a scalar, this is the location of the value; for a list or a map, it is the location of the key.
    pub fn locate_key(&self, path: &str) -> Option<SourceLocation> {
        let (key_span, node) = find_value(&self.root, path)?;
        let span = if node.as_scalar().is_some() && !node.is_null() { &node.span } else { key_span };
        Some(SourceLocation::new(&self.source, trim_span(&self.source, span)))
    }

    /// The tree of the campaign file.
    pub(super) fn root_node(&self) -> &Node {
        &self.root
    }

    /// The campaign file as it was read.
    pub fn source(&self) -> &str {
        self.source.text()
    }

    /// The contents of the text files, by name.
    pub fn file_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(name, file)| (name.as_str(), file.text()))
    }

    /// The paths of the text files that were read.
    pub fn text_files(&self) -> impl Iterator<Item = &Path> {
        self.files.values().map(SourceText::path)
    }

    /// The location of a part of a text: `line` and `column` from 1, `column` and `length` in characters.
    ///
    /// `name` is the name of the text. If the part cannot be located, the location is the whole text.
    pub fn locate_text(&self, name: &str, line: usize, column: usize, length: usize) -> Option<SourceLocation> {
        if let Some(file) = self.files.get(name).or_else(|| self.included.get(name)) {
            let start = count_chars_before(file.text(), line, column);
            let byte_at = |chars: usize| file.text().char_indices().nth(chars).map_or(file.text().len(), |(at, _)| at);
            return Some(SourceLocation::new(file, byte_at(start)..byte_at(start.saturating_add(length))));
        }
        let (_, node) = find_value(&self.root, name)?;
        let Some(scalar) = node.as_scalar() else { return self.locate_key(name) };
        let raw = self.source.text().get(node.span.clone())?;
        let exact = align_characters(raw, scalar).and_then(|char_offsets| {
            let first = count_chars_before(&scalar.text, line, column);
            let start = *char_offsets.get(first)?;
            let last = *char_offsets.get(first.checked_add(length.max(1))? - 1)?;
            let width = raw[last..].chars().next().map_or(0, char::len_utf8);
            Some(node.span.start + start..node.span.start + last + width)
        });
        Some(SourceLocation::new(&self.source, exact.unwrap_or_else(|| trim_span(&self.source, &node.span))))
    }
}

/// The span without the trailing white space that spans of blocks include.
fn trim_span(source: &SourceText, span: &Range<usize>) -> Range<usize> {
    let text = source.text().get(span.clone()).unwrap_or("");
    span.start..span.start + text.trim_end().len()
}

/// The number of characters of `text` before this line and column.
fn count_chars_before(text: &str, line: usize, column: usize) -> usize {
    let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
    lines.map(|line| line.chars().count()).sum::<usize>() + column.saturating_sub(1)
}

/// The value at a path of keys, with the location of its key.
fn find_value<'n>(root: &'n Node, path: &str) -> Option<(&'n Range<usize>, &'n Node)> {
    let (mut span, mut node) = (&root.span, root);
    for step in path.split('.') {
        let (key, index) = match step.strip_suffix(']').and_then(|step| step.split_once('[')) {
            Some((key, index)) => (key, Some(index.parse::<usize>().ok()?)),
            None => (step, None),
        };
        let entry = node.find_entry(key)?;
        (span, node) = (&entry.key_span, &entry.value);
        if let Some(index) = index {
            let NodeContent::List(items) = &node.content else { return None };
            node = items.get(index)?;
            span = &node.span;
        }
    }
    Some((span, node))
}

/// Maps each character of `scalar`'s text to its byte in `raw`, the YAML source. `None` if the text and the source do
/// not match.
pub(super) fn align_characters(raw: &str, scalar: &Scalar) -> Option<Vec<usize>> {
    let is_quoted = matches!(scalar.style, Style::SingleQuoted | Style::DoubleQuoted);
    let mut written = RawText { raw, chars: raw.char_indices().peekable(), style: scalar.style };
    if is_quoted {
        written.chars.next();
    }
    scalar.text.chars().map(|character| written.find_character(character)).collect()
}

/// The YAML source of a scalar, read character by character.
struct RawText<'r> {
    raw: &'r str,
    chars: Peekable<CharIndices<'r>>,
    style: Style,
}

impl RawText<'_> {
    /// The byte in the source at which the text's next character, `character`, begins.
    ///
    /// Skips white space that is only indentation or folding.
    fn find_character(&mut self, character: char) -> Option<usize> {
        loop {
            let (at, c) = self.next_character()?;
            if c == Some(character) {
                return Some(at);
            }
            let is_blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
            match c {
                Some(c) if is_blank(c) && is_blank(character) => {
                    while self.chars.next_if(|&(_, c)| is_blank(c)).is_some() {}
                    return Some(at);
                }
                Some(c) if !is_blank(c) => return None,
                _ => {}
            }
        }
    }

    /// The next character that the source encodes; its value is `None` if an escape stands for no character.
    fn next_character(&mut self) -> Option<(usize, Option<char>)> {
        let (at, c) = self.chars.next()?;
        match (self.style, c) {
            (Style::SingleQuoted, '\'') => self.chars.next_if(|&(_, c)| c == '\'').map(|_| (at, Some(c))),
            (Style::DoubleQuoted, '\\') => Some((at, self.read_escape())),
            _ => Some((at, Some(c))),
        }
    }

    /// The meaning of an escape inside double quotes (YAML 1.2, 5.7).
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
    use super::*;
    use crate::document::FindingCollector;
    use crate::yaml::read_tree;

    const YAML: &str = "vars: { shop: \"Olena & Co\" }\nchannels:\n  - sms:\n      message: |\n        Hi,\n        it is {{ nme }}\n  - hlr\n";

    fn source_map() -> SourceMap {
        let source = SourceText::new("a.yaml", YAML);
        let root = read_tree(&mut FindingCollector::new(&source)).unwrap();
        let file = SourceText::new("templates/a.txt", "Привіт,\n{{ nme }}");
        SourceMap::new(source, root, BTreeMap::from([("a.txt".to_owned(), file)]))
    }

    fn excerpt(place: Option<SourceLocation>) -> Option<(String, usize, usize)> {
        place.map(|place| {
            (place.source.text()[place.span.clone()].to_owned(), place.line_number(), place.column_number())
        })
    }

    #[test]
    fn key_is_found_by_path() {
        let cases = [
            ("vars.shop", Some(("\"Olena & Co\"", 1, 15))),
            ("vars", Some(("vars", 1, 1))),
            ("channels[0].sms", Some(("sms", 3, 5))),
            ("channels[1]", Some(("hlr", 7, 5))),
            ("vars.none", None),
            ("channels[9]", None),
            ("channels[x]", None),
            ("", None),
        ];
        for (path, place) in cases {
            let place = place.map(|(text, line, column)| (text.to_owned(), line, column));
            assert_eq!(excerpt(source_map().locate_key(path)), place, "{path}");
        }
    }

    #[test]
    fn part_of_a_text_is_found_in_its_file() {
        let at = |line, column| source_map().locate_text("channels[0].sms.message", line, column, 3);
        assert_eq!(excerpt(at(2, 10)), Some(("nme".into(), 6, 18)));
        assert_eq!(excerpt(source_map().locate_text("a.txt", 2, 4, 3)), Some(("nme".into(), 2, 4)));
        assert_eq!(excerpt(at(9, 9)).map(|(_, line, _)| line), Some(5), "a place outside is the whole text");
        assert_eq!(excerpt(source_map().locate_text("b.txt", 1, 1, 1)), None);
    }
}

#[cfg(test)]
mod alignment_tests {
    use super::*;
    use crate::document::FindingCollector;
    use crate::yaml::read_tree;
    use campaign_core::finding::SourceText;

    /// The YAML source of `part` in the value of `m`.
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
