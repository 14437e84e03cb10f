//! Slips of the keyboard that make a file mean something else, found by its lines where reading it went wrong.
//!
//! A space that is no space, a typesetter's dash, a key without the space behind its colon: YAML takes each for part of a
//! text, and the trouble shows lines later. Nothing here is asked about a file without errors.

use std::ops::Range;

use crate::finding::{Finding, Severity, rules};

/// The slips of a file, each with the bytes that it is about; `is_key` knows the keys that the file may have.
pub(crate) fn find_slips(text: &str, is_key: impl Fn(&str) -> bool) -> Vec<(Range<usize>, Finding)> {
    let mut found = Vec::new();
    let (mut start, mut block) = (0, None);
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        let is_blank = line.trim().is_empty();
        // The lines of a text behind `|` or `>` are its own matter.
        if block.is_some_and(|deeper| is_blank || indent > deeper) {
            start += line.len();
            continue;
        }
        block = opens_block(line).then_some(indent);
        if let Some((span, finding)) = find_slip(line, &is_key).filter(|_| !is_blank) {
            found.push((start + span.start..start + span.end, finding));
        }
        start += line.len();
    }
    found
}

/// Whether a text of several lines begins below this one.
fn opens_block(line: &str) -> bool {
    let end = line.trim_end().trim_end_matches(['+', '-']);
    end.ends_with(": |") || end.ends_with(": >")
}

fn find_slip(line: &str, is_key: &impl Fn(&str) -> bool) -> Option<(Range<usize>, Finding)> {
    let first = line.find(|character: char| !character.is_whitespace())?;
    let (indentation, rest) = line.split_at(first);
    if let Some((at, space)) = indentation.char_indices().find(|(_, character)| !character.is_ascii_whitespace()) {
        let message =
            format!("this line starts with a kind of space that YAML does not accept (U+{:04X})", u32::from(space));
        let finding = Finding::new(&rules::YAML_INDENTATION, message);
        return Some((at..at + space.len_utf8(), finding.help("type the spaces at the start of the line again")));
    }
    let item =
        rest.trim_start_matches(['\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2015}', '\u{2212}']);
    if item.len() < rest.len() && item.starts_with(' ') {
        let finding = Finding::new(&rules::YAML_SYNTAX, "a list item must start with a hyphen, `-`");
        let finding = finding.help("type the hyphen again; a text editor has replaced it with a longer dash");
        return Some((first..line.len() - item.len(), finding));
    }
    find_curly_quotes(first, rest, is_key).or_else(|| find_stuck_value(first, rest, is_key))
}

/// A known key with a value in typesetter's quotes, inside which YAML sees a key or a comment.
fn find_curly_quotes(first: usize, rest: &str, is_key: &impl Fn(&str) -> bool) -> Option<(Range<usize>, Finding)> {
    let skipped = rest.len() - rest.trim_start_matches(['-', ' ']).len();
    let (key, value) = rest[skipped..].split_once(": ")?;
    let text = value.trim();
    let opens = text.starts_with(['\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '\u{2018}', '\u{2019}']);
    (opens && is_key(key) && (text.contains(": ") || text.contains(" #"))).then(|| {
        let finding = Finding::new(&rules::TYPOGRAPHIC_QUOTES, "YAML does not treat curly quotes as quotes");
        let start = first + skipped + key.len() + ": ".len() + (value.len() - value.trim_start().len());
        let finding = Finding { severity: Severity::Error, ..finding };
        (
            start..start + text.len(),
            finding.help("type `\"` again at both ends; a text editor has replaced the straight quotes"),
        )
    })
}

/// A known key with its value right behind the colon.
fn find_stuck_value(first: usize, rest: &str, is_key: &impl Fn(&str) -> bool) -> Option<(Range<usize>, Finding)> {
    let skipped = rest.len() - rest.trim_start_matches(['-', ' ']).len();
    let (key, value) = rest[skipped..].split_once(':')?;
    let is_stuck = value.starts_with(|character: char| !character.is_whitespace()) && !value.starts_with("//");
    (is_stuck && is_key(key)).then(|| {
        let colon = first + skipped + key.len();
        let finding = Finding::new(&rules::YAML_SYNTAX, format!("missing space after `{key}:`"));
        (colon..colon + 1, finding.help(format!("write `{key}: {}`", value.trim())))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn find_texts(text: &str) -> Vec<(&str, String)> {
        let slips = find_slips(text, |key| ["file", "signature", "message"].contains(&key));
        slips.into_iter().map(|(span, finding)| (&text[span], finding.message)).collect()
    }

    #[test]
    fn slip_is_reported_at_its_place() {
        for (text, at, said) in [
            ("recipients:\n  file:clients.csv\n", ":", "after `file:`"),
            ("  - sms:\n      signature:\"x\"\n", ":", "after `signature:`"),
            ("  - file:x\n", ":", "after `file:`"),
            ("recipients:\n\u{a0}\u{a0}file: x\n", "\u{a0}", "U+00A0"),
            ("channels:\n  – sms:\n", "–", "must start with a hyphen"),
            ("message: “Hi: there”\n", "“Hi: there”", "curly quotes"),
            ("  - message: „Sale #1“ \n", "„Sale #1“", "curly quotes"),
        ] {
            let found = find_texts(text);
            assert!(found.len() == 1 && found[0].0 == at && found[0].1.contains(said), "{text:?}: {found:?}");
        }
    }

    #[test]
    fn text_blocks_have_no_slips() {
        for text in [
            "message: |\n  file:x\n  – one\n\n  \u{a0}two\nfile: x\n",
            "file: a:b\n",
            "link:x\n",
            "message: “Hi”\n",
            "message: >-\n      signature:\"x\"\n",
            "file://x\n",
        ] {
            assert_eq!(find_texts(text), [], "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z:\\-– \u{a0}\n|>\"]{0,60}") {
            let _ = find_texts(&text);
        }
    }
}
