//! Texts of channels: inline or from a text file, and the slips of YAML that would send garbage.

use std::ops::Range;

use super::Resolver;
use crate::domain::Text;
use crate::finding::{Finding, Place, Source, rules};
use crate::manifest::align::align;
use crate::manifest::yaml::{Entry, Node, Scalar};

/// The most bytes of an inline text, as many as a text file may have.
const LARGEST: usize = 64 * 1024;
/// Endings by which the name of a text file is told from a text.
const ENDINGS: [&str; 6] = [".txt", ".tera", ".md", ".html", ".j2", ".tpl"];

impl Resolver<'_> {
    /// The text under a key; `path` is the path of keys that becomes its name.
    pub(super) fn text(&mut self, path: String, entry: &Entry) -> Option<Text> {
        match entry.value.scalar() {
            Some(scalar) if !scalar.is_null() => self.inline(path, entry, scalar),
            Some(_) => None,
            None => self.file(entry),
        }
    }

    fn inline(&mut self, path: String, entry: &Entry, scalar: &Scalar) -> Option<Text> {
        self.refuse_cut(&path, &entry.value);
        if scalar.text.trim().is_empty() {
            let finding = Finding::new(&rules::EMPTY_TEXT, format!("`{}` is empty", entry.key)).help("write a text");
            self.report.at(&entry.key_span, finding);
            return None;
        }
        // The end of a block is a line break that nobody typed to have it sent.
        let text = if scalar.is_block() { scalar.text.strip_suffix('\n') } else { None }.unwrap_or(&scalar.text);
        let text = text.replace('\r', "");
        if matches!(entry.key.as_str(), "message" | "caption") && names_a_file(&text) {
            let message = format!("`{text}` would be sent as it stands, but looks like the name of a text file");
            let help = format!("write `{}: {{ file: {text} }}`", entry.key);
            self.report.at(&entry.value.span, Finding::new(&rules::LOOKS_LIKE_A_FILE, message).help(help));
        }
        if text.len() > LARGEST {
            let finding = Finding::new(&rules::TEXT_TOO_LONG, format!("`{}` is longer than 64 KiB", entry.key));
            self.report.at(&entry.key_span, finding.help("a message is short; is a quote missing?"));
            return None;
        }
        self.inline_braces(&entry.value, scalar, &text);
        Some(Text { name: path, source: text })
    }

    fn file(&mut self, entry: &Entry) -> Option<Text> {
        let file = &entry.value.get("file")?.value;
        let name = file.scalar().filter(|scalar| !scalar.is_null())?.text.trim();
        let found = match self.folders.find(name) {
            Ok(found) => found,
            Err(problem) => {
                self.report.at(&file.span, Finding::new(&rules::TEXT_FILE, problem.message).help(problem.help));
                return None;
            }
        };
        if found.text.trim().is_empty() {
            let finding =
                Finding::new(&rules::EMPTY_TEXT, format!("the text file `{}` is empty", found.path.display()));
            self.report.at(&file.span, finding.help("write a text into it"));
            return None;
        }
        let source = Source::new(found.path, found.text.as_str());
        for braces in single_braces(&found.text) {
            let finding = braces_finding(&found.text, &braces).at(Place::new(&source, braces));
            self.report.findings.push(finding);
        }
        self.files.insert(name.to_owned(), source);
        Some(Text { name: name.to_owned(), source: found.text })
    }

    /// Tells a text without quotes that a ` #` cuts off.
    ///
    /// Behind a sender name, a comment that stands apart, two blanks or more away, is taken for one;
    /// behind words it is more likely that a part of them is lost.
    pub(super) fn refuse_cut(&mut self, name: &str, node: &Node) {
        if !node.scalar().is_some_and(Scalar::is_plain) {
            return;
        }
        let end = node.span.end;
        let rest = self.report.source.text()[end..].lines().next().unwrap_or("");
        let apart = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let comment = apart > 1 && name.ends_with(".signature");
        if apart > 0 && !comment && rest.trim_start().starts_with('#') {
            let cut = end..end + rest.trim_end().len();
            let finding = Finding::new(&rules::CUT_TEXT, "YAML cuts this text off at ` #`, as if a comment began");
            let help = "put the whole text in quotes; a comment may follow the closing quote";
            self.report.at(&cut, finding.help(help));
        }
    }

    /// Warns of names in single braces, each at its place if that can be told.
    fn inline_braces(&mut self, node: &Node, scalar: &Scalar, text: &str) {
        let found = single_braces(text);
        if found.is_empty() {
            return;
        }
        let bytes = align(self.report.slice(&node.span), scalar);
        let chars = |to: usize| text.get(..to).map_or(0, |text| text.chars().count());
        for braces in found {
            let exact = bytes.as_ref().and_then(|bytes| {
                let (first, last) = (*bytes.get(chars(braces.start))?, *bytes.get(chars(braces.end) - 1)?);
                Some(node.span.start + first..node.span.start + last + 1)
            });
            self.report.at(&exact.unwrap_or_else(|| node.span.clone()), braces_finding(text, &braces));
        }
    }
}

fn names_a_file(text: &str) -> bool {
    let one_word = !text.contains(|c: char| c.is_whitespace() || c == '{');
    one_word
        && !text.contains("://")
        && ENDINGS.iter().any(|ending| text.ends_with(ending) && text.len() > ending.len())
}

fn braces_finding(text: &str, braces: &Range<usize>) -> Finding {
    let written = &text[braces.clone()];
    let name = written.trim_matches(['{', '}']).trim();
    Finding::new(&rules::SINGLE_BRACES, format!("`{written}` is sent as it stands"))
        .help(format!("write `{{{{ {name} }}}}` if the recipient's value is meant"))
}

/// The bytes of each `{name}` outside the tags of the template language.
fn single_braces(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|open| at + open) {
        let tag =
            [("{{", "}}"), ("{%", "%}"), ("{#", "#}")].into_iter().find(|(begin, _)| text[open..].starts_with(begin));
        let Some((_, end)) = tag else {
            let close = text[open..].find('}').map(|close| open + close);
            let named = |&close: &usize| is_name(&text[open + 1..close]);
            found.extend(close.filter(named).map(|close| open..close + 1));
            at = open + 1;
            continue;
        };
        match text[open + 2..].find(end) {
            Some(close) => at = open + 2 + close + 2,
            None => break,
        }
    }
    found
}

fn is_name(inner: &str) -> bool {
    let name = inner.trim();
    let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    starts && name.chars().count() <= 64 && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ' ' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_single_braces_is_noticed_and_tags_are_not() {
        let cases: [(&str, &[&str]); 8] = [
            ("Hi {name}!", &["{name}"]),
            ("Hi { first name }, {ім'я}", &["{ first name }"]),
            ("{{ name }} {% if x %}{# {c} #}{% endif %}", &[]),
            ("{{ {a} }} {b}", &["{b}"]),
            ("{}", &[]),
            ("{1}", &[]),
            ("{ {{ name }} }", &[]),
            ("{name", &[]),
        ];
        for (text, expected) in cases {
            let found: Vec<&str> = single_braces(text).into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn the_name_of_a_file_is_told_from_a_text() {
        for name in ["welcome.sms.txt", "templates/a.txt", "вітання.md"] {
            assert!(names_a_file(name), "{name}");
        }
        for text in ["see a.txt", ".txt", "https://x.example/a.html", "{{ file }}.txt", "Sale"] {
            assert!(!names_a_file(text), "{text}");
        }
    }
}
