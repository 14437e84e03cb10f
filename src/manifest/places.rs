//! Where keys and texts of a campaign stand, for findings that other rooms make later.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use super::align::align_characters;
use super::yaml::{Node, NodeContent};
use crate::finding::{SourceLocation, SourceText};

/// The places of a campaign's keys and texts.
#[derive(Clone, Debug)]
pub struct SourceMap {
    source: SourceText,
    root: Node,
    files: BTreeMap<String, SourceText>,
}

impl SourceMap {
    pub(super) fn new(source: SourceText, root: Node, files: BTreeMap<String, SourceText>) -> Self {
        Self { source, root, files }
    }

    /// The place of a key by its path, such as `vars.shop` or `channels[0].sms.message`.
    ///
    /// It is the value where one value stands, the key where a list or a map does.
    #[must_use]
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
    #[must_use]
    pub fn source(&self) -> &str {
        self.source.text()
    }

    /// The texts of the text files that were read, by their names.
    pub fn file_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(name, file)| (name.as_str(), file.text()))
    }

    /// The text files that were read.
    pub fn text_files(&self) -> impl Iterator<Item = &Path> {
        self.files.values().map(SourceText::path)
    }

    /// The place of a part of a text: `line` and `column` from 1, `column` and `length` in characters.
    ///
    /// `name` is the text's name. Where the part cannot be told from the rest of the text, it is
    /// the whole text.
    #[must_use]
    pub fn locate_text(&self, name: &str, (line, column): (usize, usize), length: usize) -> Option<SourceLocation> {
        if let Some(file) = self.files.get(name) {
            let start = count_chars_before(file.text(), line, column);
            let bytes = |chars: usize| file.text().char_indices().nth(chars).map_or(file.text().len(), |(at, _)| at);
            return Some(SourceLocation::new(file, bytes(start)..bytes(start.saturating_add(length))));
        }
        let (_, node) = find_value(&self.root, name)?;
        let Some(scalar) = node.as_scalar() else { return self.locate_key(name) };
        let raw = self.source.text().get(node.span.clone())?;
        let exact = align_characters(raw, scalar).and_then(|bytes| {
            let first = count_chars_before(&scalar.text, line, column);
            let start = *bytes.get(first)?;
            let last = *bytes.get(first.checked_add(length.max(1))? - 1)?;
            let width = raw[last..].chars().next().map_or(0, char::len_utf8);
            Some(node.span.start + start..node.span.start + last + width)
        });
        Some(SourceLocation::new(&self.source, exact.unwrap_or_else(|| trim_span(&self.source, &node.span))))
    }
}

/// The span without blank space at its end, which blocks have.
fn trim_span(source: &SourceText, span: &Range<usize>) -> Range<usize> {
    let text = source.text().get(span.clone()).unwrap_or("");
    span.start..span.start + text.trim_end().len()
}

/// How many characters of `text` stand before that line and column.
fn count_chars_before(text: &str, line: usize, column: usize) -> usize {
    let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
    lines.map(|line| line.chars().count()).sum::<usize>() + column.saturating_sub(1)
}

/// The value at a path of keys, with the place of its key.
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

#[cfg(test)]
mod tests {
    use super::super::report::FindingCollector;
    use super::super::yaml::read_tree;
    use super::*;

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
        let at = |line, column| source_map().locate_text("channels[0].sms.message", (line, column), 3);
        assert_eq!(excerpt(at(2, 10)), Some(("nme".into(), 6, 18)));
        assert_eq!(excerpt(source_map().locate_text("a.txt", (2, 4), 3)), Some(("nme".into(), 2, 4)));
        assert_eq!(excerpt(at(9, 9)).map(|(_, line, _)| line), Some(5), "a place outside is the whole text");
        assert_eq!(excerpt(source_map().locate_text("b.txt", (1, 1), 1)), None);
    }
}
