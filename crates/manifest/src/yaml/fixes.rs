//! Fixes for mistakes in YAML: quotes around a text, spaces instead of tabs, and repeated lines.
//!
//! Each fix keeps every value as its author typed it, so it cannot change who gets which message. A file with two
//! possible readings gets no fix.

use std::ops::Range;

use granit_parser::{ErrorKind, Event, Parser, ScanError, options};

use super::{MAX_DEPTH, mistakes};
use campaign_core::finding::Fix;

/// The names of keys in the files of one kind.
#[derive(Clone, Copy)]
pub(crate) struct KnownKeys<'k> {
    /// Whether a key with this name exists anywhere.
    pub(crate) is_key: &'k dyn Fn(&str) -> bool,
    /// Whether every key with this name has a text as its value.
    pub(crate) is_text: &'k dyn Fn(&str) -> bool,
}

/// The widths that a tab can have in an editor.
const TAB_WIDTHS: [usize; 6] = [2, 4, 8, 3, 1, 6];

/// The fix for a syntax error that is reported at `span`. `None` if there is no unambiguous fix, or if the parser would
/// not get further with the fix.
pub(super) fn fix_error(error: &ScanError, text: &str, span: &Range<usize>, keys: KnownKeys<'_>) -> Option<Fix> {
    use ErrorKind as E;
    let fix = match error.kind() {
        E::TabNotAllowed
        | E::TabInBlockIndentation
        | E::TabInIndentation
        | E::TabInPlainScalar
        | E::TabAtBlockScalarStart => replace_tabs(text, span),
        E::InvalidTrailingSingleQuotedScalar => escape_quotes(text, span.start, '\'', keys),
        E::InvalidTrailingDoubleQuotedScalar => escape_quotes(text, span.start, '"', keys),
        E::MappingValueNotAllowed
        | E::InvalidColonPlacement
        | E::ExpectedBlockMappingKey
        | E::UnexpectedEofBlockMapping
        | E::UnexpectedCharacter { .. }
        | E::MissingAnchorOrAliasName
        | E::UnknownAnchor
        | E::UndeclaredTagHandle
        | E::BlockSequenceEntryNotAllowed => quote_value(text, span.start, keys),
        _ => None,
    };
    fix.filter(|fix| reads_further(text, fix))
}

/// Whether the fixed file has no syntax error, or has its first syntax error further down than before.
fn reads_further(text: &str, fix: &Fix) -> bool {
    let (fixed, _) = campaign_core::finding::apply_fixes(text, [fix]);
    let growth = fixed.len().saturating_sub(text.len());
    match (find_error(text), find_error(&fixed)) {
        (Some(before), Some(after)) => after > before + growth,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// The position of the first syntax error, in bytes.
fn find_error(text: &str) -> Option<usize> {
    let error = read_events(text).err()?;
    Some(mistakes::floor_boundary(text, error.marker().byte_offset().unwrap_or(0)))
}

/// Parses a file and returns the events without their locations.
fn read_events(text: &str) -> Result<Vec<Event<'_>>, ScanError> {
    let options = options! { emit_anchor_events: true, flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH };
    Parser::new_from_str_with_options(text, options).map(|event| event.map(|(event, _)| event)).collect()
}

/// Puts the text that begins at `start` in quotes, which keep it as it is typed.
///
/// The text must be the whole value of a known key on one line. A text that contains a possible comment or another key
/// is ambiguous and gets no fix.
pub(super) fn quote_value(text: &str, start: usize, keys: KnownKeys<'_>) -> Option<Fix> {
    let value = find_text_value(text, start, keys)?;
    let written = &text[value.clone()];
    let has_own_key = written.split_once(": ").is_some_and(|(word, _)| (keys.is_key)(word.trim()));
    if has_own_key || written.starts_with(['"', '\'', '|', '>', '#']) {
        return None;
    }
    let quote = if !written.contains(['"', '\\']) {
        "\""
    } else if !written.contains('\'') {
        "'"
    } else {
        return None;
    };
    let edits = [(value.start..value.start, quote.to_owned()), (value.end..value.end, quote.to_owned())];
    Some(Fix::new("put the value in quotes", edits))
}

/// Escapes the quotes inside a quoted text that begins on the line that contains the byte `at`.
fn escape_quotes(text: &str, at: usize, quote: char, keys: KnownKeys<'_>) -> Option<Fix> {
    let line = line_around(text, at);
    let colon = text[line.clone()].find(": ")? + line.start;
    let after_colon = colon + ": ".len();
    let start = after_colon + count_spaces(&text[after_colon..line.end]);
    let value = find_text_value(text, start, keys)?;
    let inner = text[value.clone()].strip_prefix(quote)?.strip_suffix(quote)?;
    let doubled_quote = quote.to_string().repeat(2);
    // A quote that is already escaped, or that is next to a closing quote, is ambiguous.
    if inner.contains('\\') || inner.contains(&doubled_quote) || inner.ends_with(quote) {
        return None;
    }
    let escape = if quote == '"' { "\\" } else { "'" };
    let inner_start = value.start + quote.len_utf8();
    let edits = inner.match_indices(quote).map(|(at, _)| (inner_start + at..inner_start + at, escape.to_owned()));
    Some(Fix::new("escape the quotes inside the value", edits.collect::<Vec<_>>()))
}

/// The span of the value at `start`, if it is the entire one-line value of a key that takes a text.
fn find_text_value(text: &str, start: usize, keys: KnownKeys<'_>) -> Option<Range<usize>> {
    let line = line_around(text, start);
    let before = text.get(line.start..start)?.trim_start_matches('\u{feff}');
    let written = before.trim_start_matches([' ', '-']);
    let key = written.trim_end_matches(' ').strip_suffix(':')?;
    let column = before.len() - written.len();
    let value = text[start..line.end].trim_end();
    let is_text_value = written.ends_with(' ') && (keys.is_text)(key) && !value.is_empty();
    // A tab or ` #` is ambiguous, and a more deeply indented line might continue the text.
    let is_plain = !value.contains(" #") && !value.contains(|character: char| character.is_control());
    let next_line = text[line.end..].lines().find(|line| !line.trim().is_empty());
    let continues = next_line.is_some_and(|next_line| next_line.len() - next_line.trim_start().len() > column);
    (is_text_value && is_plain && !continues).then(|| start..start + value.len())
}

/// Replaces the tab after a key, or all tabs in the indentation of the file, with spaces.
fn replace_tabs(text: &str, span: &Range<usize>) -> Option<Fix> {
    let line = line_around(text, span.start);
    let is_after_text = text[span.start..].starts_with('\t') && !text[line.start..span.start].trim().is_empty();
    if is_after_text { replace_tab_after_key(text, span.start, &line) } else { replace_indentation_tabs(text) }
}

/// Replaces the white space around a tab after `key:` or `-` with one space.
fn replace_tab_after_key(text: &str, tab: usize, line: &Range<usize>) -> Option<Fix> {
    let before = text[line.start..tab].trim_end();
    if !before.ends_with(':') && before.trim_start() != "-" {
        return None;
    }
    let after = text[tab..line.end].trim_start_matches([' ', '\t']);
    let gap = line.start + before.len()..line.end - after.len();
    Some(Fix::replace("replace the tab with a space", gap, " "))
}

/// Replaces all tabs in the indentation of the file with spaces.
///
/// There is no fix if YAML would read the file differently for different tab widths. If the file has further errors,
/// only the lines above the next error are compared, and they must contain all tabs.
fn replace_indentation_tabs(text: &str) -> Option<Fix> {
    let fixes = TAB_WIDTHS.map(|width| expand_tabs(text, width));
    let last_tab = fixes.iter().flat_map(|fix| &fix.edits).map(|edit| edit.span.start).max()?;
    let expand = |fix| {
        let (expanded, _) = campaign_core::finding::apply_fixes(text, [fix]);
        let readable_lines = find_error(&expanded).map_or(usize::MAX, |at| expanded[..at].matches('\n').count());
        (fix, expanded, readable_lines)
    };
    let candidates: Vec<(&Fix, String, usize)> = fixes.iter().map(expand).collect();
    let furthest = candidates.iter().map(|(.., readable_lines)| *readable_lines).max()?;
    if furthest <= text[..last_tab].matches('\n').count() {
        return None;
    }
    let best = candidates.iter().filter(|(.., readable_lines)| *readable_lines == furthest);
    let mut readings = best.map(|(fix, expanded, _)| {
        let end = expanded.split_inclusive('\n').take(furthest).map(str::len).sum();
        Some((*fix, read_events(&expanded[..end]).ok()?))
    });
    let (fix, reading) = readings.next()??;
    readings.all(|other| other.is_some_and(|(_, other)| other == reading)).then(|| fix.clone())
}

/// Replaces each tab in the indentation of the file with spaces.
fn expand_tabs(text: &str, width: usize) -> Fix {
    let (mut edits, mut start) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
        let tabs = line[..indentation].match_indices('\t').map(|(at, _)| start + at);
        edits.extend(tabs.map(|at| (at..at + 1, " ".repeat(width))));
        start += line.len();
    }
    Fix::new("indent with spaces instead of tabs", edits)
}

/// Replaces no-break spaces in the indentation of a line with ordinary spaces, which look the same.
pub(super) fn replace_no_break_spaces(text: &str, line_start: usize, indentation: &str) -> Option<Fix> {
    // Other kinds of space have other widths.
    let is_same_width = |character: char| matches!(character, ' ' | '\u{a0}' | '\u{202f}');
    let is_unambiguous =
        indentation.chars().all(is_same_width) && !continues_text(text, line_start, indentation.chars().count());
    let other_spaces = indentation.char_indices().filter(|&(_, character)| character != ' ');
    let edits = other_spaces.map(|(at, space)| (line_start + at..line_start + at + space.len_utf8(), " ".to_owned()));
    is_unambiguous.then(|| Fix::new("indent with ordinary spaces", edits.collect::<Vec<_>>()))
}

/// Whether a line might continue a text of several lines, because the line above it with less indentation already has a
/// value.
pub(super) fn continues_text(text: &str, line_start: usize, column: usize) -> bool {
    let mut previous_lines = text[..line_start].lines().rev().filter(|line| !line.trim().is_empty());
    let parent_line = previous_lines.find_map(|line| {
        let line = line.trim_start_matches('\u{feff}');
        let content = line.trim_start_matches([' ', '-']);
        (line.chars().count() - content.chars().count() < column).then_some(content)
    });
    parent_line.is_some_and(|content| !content.trim_end().ends_with(':'))
}

/// Removes a line that repeats a key with the same value. `None` if the line contains anything else.
pub(super) fn remove_line(text: &str, key_span: &Range<usize>, value_span: &Range<usize>) -> Option<Fix> {
    let line = line_around(text, key_span.start);
    let line_with_break = line.start..text[line.end..].find('\n').map_or(text.len(), |newline| line.end + newline + 1);
    let is_alone = text[line.start..key_span.start].bytes().all(|byte| byte == b' ')
        && value_span.end <= line.end
        && text.get(value_span.end..line.end)?.trim().is_empty();
    is_alone.then(|| Fix::replace("remove the repeated line", line_with_break, ""))
}

/// The line around a byte, without its line break.
fn line_around(text: &str, at: usize) -> Range<usize> {
    let at = mistakes::floor_boundary(text, at);
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    start..end
}

fn count_spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::document::FindingCollector;
    use crate::keys::check_root;
    use crate::yaml::read_tree;
    use campaign_core::finding::{SourceText, apply_fixes};

    /// The file after all fixes. `None` if no finding has a fix.
    fn fix_yaml(yaml: &str) -> Option<String> {
        let mut report = FindingCollector::new(&SourceText::new("a.yaml", yaml));
        let root = read_tree(&mut report);
        root.iter().for_each(|root| check_root(root, "the campaign", &mut report));
        report.replace_slip_findings(root.is_some());
        let findings = report.into_findings();
        let fixes: Vec<_> = findings.iter().filter_map(|finding| finding.placed_fix()).map(|(_, fix)| fix).collect();
        (!fixes.is_empty()).then(|| apply_fixes(yaml, fixes).0)
    }

    #[test]
    fn value_of_a_text_key_is_quoted() {
        for (value, quoted) in [
            ("Sale: today", "\"Sale: today\""),
            ("@home", "\"@home\""),
            ("%off", "\"%off\""),
            ("`code`", "\"`code`\""),
            ("[Sale] now", "\"[Sale] now\""),
            ("*all*", "\"*all*\""),
            ("!Important news", "\"!Important news\""),
            ("&Co says hi", "\"&Co says hi\""),
            ("{{ first_name }}, hi", "\"{{ first_name }}, hi\""),
            ("Say \"hi\": now", "'Say \"hi\": now'"),
            ("'It's here'", "'It''s here'"),
            ("\"A \"big\" sale\"", "\"A \\\"big\\\" sale\""),
        ] {
            for (before, after) in
                [("channels:\n  - sms:\n      message: ", "\n"), ("x:\n  - message: ", "\r\nname: a\r\n")]
            {
                let yaml = format!("{before}{value}{after}");
                assert_eq!(fix_yaml(&yaml), Some(format!("{before}{quoted}{after}")), "{yaml:?}");
            }
        }
    }

    #[test]
    fn ambiguous_value_is_not_quoted() {
        for yaml in [
            "message: Sale: today # or tomorrow\n",
            "message: Sale: today\n  and tomorrow\n",
            "message: file: promo.txt\n",
            "recipients: file: list.csv\n",
            "vars:\n  promo: a: b\n",
            "message: \"It's\": 'x'\n",
            "message: 'It''s John's'\n",
            "message: \"a \\\" b\" c\"\n",
            "- sms: { message: @home }\n",
        ] {
            assert_eq!(fix_yaml(yaml), None, "{yaml:?}");
        }
    }

    #[test]
    fn tabs_become_spaces_if_their_width_does_not_matter() {
        for (yaml, fixed) in [
            ("recipients:\n\tfile: a.csv\n", Some("recipients:\n  file: a.csv\n")),
            ("a:\n\tb:\n\t\tc: d\n\te: f\n", Some("a:\n  b:\n    c: d\n  e: f\n")),
            ("a:\n    b: c\n\td: e\n", Some("a:\n    b: c\n    d: e\n")),
            ("a:\n  b:\n\tc: d\n", None),
            ("a:\n\tb:\n    c: d\n", None),
            ("a:\n  b:\n\tc: d\nmessage: @x\n", None),
            ("a:\n\tb: c\nd: @x\n", Some("a:\n  b: c\nd: @x\n")),
        ] {
            assert_eq!(fix_yaml(yaml).as_deref(), fixed, "{yaml:?}");
        }
    }

    #[test]
    fn typing_mistakes_have_fixes() {
        for (yaml, fixed) in [
            ("recipients:\n  file:clients.csv\n", Some("recipients:\n  file: clients.csv\n")),
            ("recipients:\n\u{a0}\u{a0}file: x\n  a: b\n", Some("recipients:\n  file: x\n  a: b\n")),
            ("name: a\nname: a\nchannels: [\n", Some("name: a\nchannels: [\n")),
            ("message: Hello\n  link:x\n  b: c\n", None),
        ] {
            assert_eq!(fix_yaml(yaml).as_deref(), fixed, "{yaml:?}");
        }
    }

    #[test]
    fn repeated_line_is_removed_only_if_its_value_is_the_same() {
        for (yaml, fixed) in [
            ("name: a\nregion: UA\r\nname: a\r\n", Some("name: a\nregion: UA\r\n")),
            ("name: a\nname: b\n", None),
            ("name: a\nname: \"a\"\n", None),
            ("{ name: a, name: a }\n", None),
        ] {
            assert_eq!(fix_yaml(yaml).as_deref(), fixed, "{yaml:?}");
        }
    }

    proptest! {
        #[test]
        fn fixing_terminates_and_never_panics(text in "[a-z: \t\n\"'{}@#\\-\u{a0}–]{0,80}") {
            let mut text = format!("message: {text}");
            for _ in 0..200 {
                let Some(fixed) = fix_yaml(&text) else { return Ok(()) };
                text = fixed;
            }
            prop_assert!(false, "{text:?}");
        }
    }
}
