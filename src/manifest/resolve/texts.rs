//! Texts of channels: inline or from a text file, and the slips of YAML that would send garbage.

use super::Resolver;
use super::placeholders::find_placeholders;
use crate::domain::NamedTemplate;
use crate::finding::{Finding, SourceLocation, SourceText, rules};
use crate::manifest::align::align_characters;
use crate::manifest::day::{CampaignDay, has_placeholder};
use crate::manifest::yaml::{MapEntry, Node, Scalar};

/// The most bytes of an inline text, as many as a text file may have.
const MAX_BYTES: usize = 64 * 1024;
/// Endings by which the name of a text file is told from a text.
const ENDINGS: [&str; 6] = [".txt", ".tera", ".md", ".html", ".j2", ".tpl"];

/// What stands for a text that is to come.
const PENDING_TEXT: &str = "…";

impl Resolver<'_> {
    /// The text under a key; `path` is the path of keys that becomes its name.
    pub(super) fn resolve_text(&mut self, path: String, entry: &MapEntry) -> Option<NamedTemplate> {
        match entry.value.as_scalar() {
            Some(scalar) if !scalar.is_null() => self.resolve_inline_text(path, entry, scalar),
            Some(_) => None,
            None if entry.value.find_entry("by").is_some() => self.resolve_chosen_text(&path, entry),
            None => self.resolve_text_file(entry),
        }
    }

    fn resolve_inline_text(&mut self, path: String, entry: &MapEntry, scalar: &Scalar) -> Option<NamedTemplate> {
        self.refuse_cut_text(&path, &entry.value);
        if scalar.text.trim().is_empty() {
            let finding = Finding::new(&rules::EMPTY_TEXT, format!("`{}` is empty", entry.key)).help("write a message");
            self.report.add(&entry.key_span, finding);
            return None;
        }
        // The end of a block is a line break that nobody typed to have it sent.
        let text = if scalar.is_block() { scalar.text.strip_suffix('\n') } else { None }.unwrap_or(&scalar.text);
        let text = text.replace('\r', "");
        if matches!(entry.key.as_str(), "message" | "caption") && is_file_name(&text) {
            let message = format!("`{text}` looks like a file name, but is sent as the message text");
            let help = format!("write `{}: {{ file: {text} }}`", entry.key);
            self.report.add(&entry.value.span, Finding::new(&rules::LOOKS_LIKE_A_FILE, message).help(help));
        }
        if text.len() > MAX_BYTES {
            let finding = Finding::new(&rules::TEXT_TOO_LONG, format!("`{}` is longer than 64 KiB", entry.key));
            self.report.add(
                &entry.key_span,
                finding.help("check whether a closing quote is missing; messages are much shorter"),
            );
            return None;
        }
        self.warn_of_placeholders(&entry.value, scalar, &text);
        Some(NamedTemplate { name: path, source: text })
    }

    fn resolve_text_file(&mut self, entry: &MapEntry) -> Option<NamedTemplate> {
        let file = &entry.value.find_entry("file")?.value;
        for other in ["texts", "else"].iter().filter_map(|key| entry.value.find_entry(key)) {
            let message = format!("`{}` has both `file` and `{}`", entry.key, other.key);
            let help = format!(
                "keep one of them; `{}` belongs to `by: COLUMN`, which selects one of several message texts",
                other.key
            );
            self.report.add(&other.key_span, Finding::new(&rules::ONE_OF_TWO, message).help(help));
        }
        let written = file.as_scalar().filter(|scalar| !scalar.is_null())?.text.trim();
        let name = &self.resolve_dated_name(written, &file.span)?;
        let found = match self.folders.find_text(name) {
            Ok(found) => found,
            // Whoever looks at a day to come knows the text of no day; the day itself does.
            Err(_) if matches!(self.day, CampaignDay::Coming(_)) && has_placeholder(written) => {
                return Some(NamedTemplate { name: name.clone(), source: PENDING_TEXT.to_owned() });
            }
            Err(problem) => {
                self.report.add(&file.span, Finding::new(&rules::TEXT_FILE, problem.message).help(problem.help));
                return None;
            }
        };
        if found.text.trim().is_empty() {
            let finding =
                Finding::new(&rules::EMPTY_TEXT, format!("the text file `{}` is empty", found.path.display()));
            self.report.add(&file.span, finding.help("write the message text in this file"));
            return None;
        }
        let source = SourceText::new(found.path, found.text.as_str());
        for placeholder in find_placeholders(&found.text, &self.columns) {
            let finding =
                placeholder.to_finding(&found.text, &self.columns).at(SourceLocation::new(&source, placeholder.span));
            self.report.findings.push(finding);
        }
        self.files.insert(name.clone(), source);
        Some(NamedTemplate { name: name.clone(), source: found.text })
    }

    /// Tells a text without quotes that a ` #` cuts off.
    ///
    /// Behind a sender name, a comment that stands apart, two blanks or more away, is taken for one;
    /// behind words it is more likely that a part of them is lost.
    pub(super) fn refuse_cut_text(&mut self, name: &str, node: &Node) {
        if !node.as_scalar().is_some_and(Scalar::is_plain) {
            return;
        }
        let end = node.span.end;
        let rest = self.report.source.text()[end..].lines().next().unwrap_or("");
        let apart = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let comment = apart > 1 && name.ends_with(".signature");
        if apart > 0 && !comment && rest.trim_start().starts_with('#') {
            let cut = end..end + rest.trim_end().len();
            let finding = Finding::new(
                &rules::CUT_TEXT,
                "YAML reads the part after ` #` as a comment, so the message is cut off there",
            );
            let help = "put the whole value in quotes; a comment can follow the closing quote";
            self.report.add(&cut, finding.help(help));
        }
    }

    /// Warns of names that are written as other programs have them, each at its place if that can be told.
    fn warn_of_placeholders(&mut self, node: &Node, scalar: &Scalar, text: &str) {
        let found = find_placeholders(text, &self.columns);
        if found.is_empty() {
            return;
        }
        let bytes = align_characters(self.report.source_slice(&node.span), scalar);
        let chars = |to: usize| text.get(..to).map_or(0, |text| text.chars().count());
        for placeholder in found {
            let span = &placeholder.span;
            let exact = bytes.as_ref().and_then(|bytes| {
                let (first, last) = (*bytes.get(chars(span.start))?, *bytes.get(chars(span.end) - 1)?);
                Some(node.span.start + first..node.span.start + last + 1)
            });
            self.report.add(&exact.unwrap_or_else(|| node.span.clone()), placeholder.to_finding(text, &self.columns));
        }
    }
}

fn is_file_name(text: &str) -> bool {
    let one_word = !text.contains(|c: char| c.is_whitespace() || c == '{');
    one_word
        && !text.contains("://")
        && ENDINGS.iter().any(|ending| text.ends_with(ending) && text.len() > ending.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_distinguished_from_texts() {
        for name in ["welcome.sms.txt", "templates/a.txt", "вітання.md"] {
            assert!(is_file_name(name), "{name}");
        }
        for text in ["see a.txt", ".txt", "https://x.example/a.html", "{{ file }}.txt", "Sale"] {
            assert!(!is_file_name(text), "{text}");
        }
    }
}
