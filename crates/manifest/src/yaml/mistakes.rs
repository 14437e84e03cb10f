//! Explanations of YAML syntax errors, and typing mistakes that change the meaning of a file.
//!
//! The parser reports where it failed; the mistake itself is guessed from the kind of error and the line. Unrecognized
//! errors keep the parser's message. Only files with errors are searched for typing mistakes, such as a no-break space,
//! a long dash or a missing space after a colon.

use std::ops::Range;

use granit_parser::{ErrorKind, ScanError};

use super::fixes::{self, KnownKeys};
use campaign_core::finding::{Finding, Fix, Severity, SourceLocation, SourceText, rules};

const QUOTE_HELP: &str = "put the whole value in double quotes; write `\\\"` for a quote inside it";
const ALIGN_HELP: &str =
    "start keys at the same level in the same column; indent keys inside another key by two spaces";

/// The finding for a syntax error.
pub(super) fn explain_error(error: &ScanError, source: &SourceText, keys: KnownKeys<'_>) -> Finding {
    let at = error.marker().byte_offset().unwrap_or(0);
    let spot = ErrorPosition::new(source.text(), at);
    let (finding, span) = find_cause(error, &spot);
    let fix = fixes::fix_error(error, source.text(), &span, keys);
    finding.fix(fix).at(SourceLocation::new(source, span))
}

fn find_cause(error: &ScanError, spot: &ErrorPosition<'_>) -> (Finding, Range<usize>) {
    use ErrorKind as E;
    match error.kind() {
        E::TabNotAllowed
        | E::TabInBlockIndentation
        | E::TabInIndentation
        | E::TabInPlainScalar
        | E::TabAtBlockScalarStart => (
            Finding::new(&rules::YAML_TAB, "a tab is not allowed here; YAML requires spaces")
                .help(spot.suggest_tab_replacement()),
            spot.tab_span(),
        ),
        E::MappingValueNotAllowed | E::InvalidColonPlacement => spot.explain_colon(),
        E::ExpectedBlockMappingKey if spot.is_in_indentation() => spot.explain_indentation(),
        E::ExpectedBlockMappingKey => (
            Finding::new(&rules::YAML_QUOTE, "YAML reads a value that starts with a bracket as a list or a map")
                .help(QUOTE_HELP),
            spot.value_span(),
        ),
        E::InvalidIndentation
        | E::ExpectedBlockSequenceEntry
        | E::InvalidBlockScalarIndent
        | E::InvalidFlowScalarIndent
        | E::MappingKeyNotAllowed => spot.explain_indentation(),
        E::InvalidTrailingSingleQuotedScalar => (
            Finding::new(
                &rules::YAML_QUOTE,
                "the quoted value ends at the second `'`, but more text follows on the line",
            )
            .help("double each apostrophe inside single quotes (`''`), or put the value in double quotes"),
            spot.rest_of_line(),
        ),
        E::InvalidTrailingDoubleQuotedScalar => (
            Finding::new(
                &rules::YAML_QUOTE,
                "the quoted value ends at the second `\"`, but more text follows on the line",
            )
            .help("write a quote inside double quotes as `\\\"`, or put the value in single quotes"),
            spot.rest_of_line(),
        ),
        E::UnclosedQuotedScalar | E::InvalidQuotedScalarIndent | E::DocumentIndicatorInQuotedScalar => (
            Finding::new(&rules::YAML_QUOTE, "the closing quote of this value is missing")
                .help("add the closing quote; for multi-line text, write `|` and indent the text below it"),
            spot.opening_quote(),
        ),
        E::UnexpectedEofBlockMapping
        | E::UnexpectedCharacter { .. }
        | E::MissingAnchorOrAliasName
        | E::UnknownAnchor
        | E::UndeclaredTagHandle
        | E::InvalidBlockScalarHeader
        | E::BlockSequenceEntryNotAllowed
        | E::MisplacedFlowCollectionEnd => spot.explain_first_character(),
        E::SimpleKeyExpected | E::InvalidSimpleKey => spot.explain_missing_key(),
        E::ExpectedFlowMappingSeparator
        | E::ExpectedFlowSequenceSeparator
        | E::UnclosedFlowCollection { .. }
        | E::MismatchedFlowCollectionEnd { .. }
        | E::UnexpectedEofFlowMapping
        | E::UnexpectedEofFlowSequence
        | E::UnexpectedEofImplicitFlowMapping => (
            Finding::new(&rules::YAML_SYNTAX, "a `{` or `[` is not closed, or a comma is missing inside it")
                .help("close the bracket with `}` or `]`; if a value contains brackets or commas, put it in quotes"),
            spot.character_span(),
        ),
        E::UnknownQuotedScalarEscape | E::InvalidQuotedScalarHexEscape | E::InvalidUnicodeEscape => (
            Finding::new(&rules::YAML_QUOTE, "a `\\` inside double quotes starts an invalid escape sequence")
                .help("write `\\\\` for a backslash, or put the value in single quotes"),
            spot.value_span(),
        ),
        E::RecursionLimitExceeded => (
            Finding::new(&rules::FILE_TOO_COMPLEX, "lists and maps are nested too deeply").help(ALIGN_HELP),
            spot.character_span(),
        ),
        _ => (
            Finding::new(&rules::YAML_SYNTAX, format!("invalid YAML: {}", error.info()))
                .help("check this line and the line above for a missing quote or wrong indentation"),
            spot.character_span(),
        ),
    }
}

/// The character boundary at or before `at`.
pub(super) fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A line above the line with an error.
struct LineAbove<'t> {
    /// The column of its key.
    column: usize,
    key: &'t str,
    /// Whether the line ends with a colon, so that its value is on the lines below.
    ends_with_colon: bool,
}

/// The position of an error and the line that contains it.
struct ErrorPosition<'t> {
    text: &'t str,
    at: usize,
    line: Range<usize>,
}

impl<'t> ErrorPosition<'t> {
    fn new(text: &'t str, at: usize) -> Self {
        let mut at = floor_boundary(text, at);
        // At the end of the file, the last non-empty line matters.
        if text[at..].trim().is_empty() {
            at = at.min(text.trim_end().len());
        }
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        Self { text, at, line: start..end }
    }

    fn line_text(&self) -> &'t str {
        &self.text[self.line.clone()]
    }

    fn text_before(&self) -> &'t str {
        &self.text[self.line.start..self.at]
    }

    /// The span of the character at the error.
    fn character_span(&self) -> Range<usize> {
        let length = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        self.at..self.at + length
    }

    /// The span from the error to the end of the line.
    fn rest_of_line(&self) -> Range<usize> {
        self.at..self.at + self.text[self.at..self.line.end].trim_end().len()
    }

    fn trimmed_line(&self) -> Range<usize> {
        let start = self.line.end - self.line_text().trim_start().len();
        start..start + self.text[start..self.line.end].trim_end().len()
    }

    /// The part of the line after the first `: `, or after `- ` at the start; the whole line if it has neither.
    fn value_span(&self) -> Range<usize> {
        let line = self.trimmed_line();
        let text = &self.text[line.clone()];
        let skip = text.find(": ").map(|colon| colon + 2).or_else(|| text.strip_prefix("- ").map(|_| 2)).unwrap_or(0);
        let value = &text[skip..];
        line.end - value.trim_start().len()..line.end
    }

    /// Whether only indentation or a dash comes before the error.
    fn is_in_indentation(&self) -> bool {
        self.text_before().trim_start_matches([' ', '-', '\u{feff}']).is_empty()
    }

    fn tab_span(&self) -> Range<usize> {
        let tab = self.line_text().find('\t').map_or(self.at, |tab| self.line.start + tab);
        tab..(tab + 1).min(self.line.end).max(tab)
    }

    /// The span of the last quote before the error that opens a value, or else of the character at the error.
    fn opening_quote(&self) -> Range<usize> {
        let before = &self.text[..self.character_span().end];
        let openers = [": \"", ": '", "- \"", "- '", "[\"", "['", "{ \"", "{ '"];
        let quote = openers.iter().filter_map(|opener| Some(before.rfind(opener)? + opener.len() - 1)).max();
        quote.map_or_else(|| self.character_span(), |quote| quote..quote + 1)
    }

    fn explain_indentation(&self) -> (Finding, Range<usize>) {
        let finding =
            Finding::new(&rules::YAML_INDENTATION, "the indentation of this line does not match any line above it");
        let help = match self.find_line_above() {
            // Aligning a key with the lines of a text would make it part of the text.
            Some(previous) if !previous.ends_with_colon && !self.is_after_block_text() => {
                let (key, spaces) = (previous.key, previous.column);
                format!("{ALIGN_HELP}; to align with `{key}`, use {spaces} spaces")
            }
            _ => ALIGN_HELP.to_owned(),
        };
        (finding.help(help), self.trimmed_line())
    }

    /// Whether the line above is in a text of several lines, which begins after `key: |` or `key: >`.
    fn is_after_block_text(&self) -> bool {
        let mut block_indent = None;
        for line in self.text[..self.line.start].lines().filter(|line| !line.trim().is_empty()) {
            let indent = line.len() - line.trim_start_matches(' ').len();
            if block_indent.is_some_and(|key_indent| indent > key_indent) {
                continue;
            }
            let value = line.split_once(": ").or_else(|| line.split_once("- ")).map_or("", |(_, value)| value.trim());
            // At most two indicators can follow, as in `|2-`.
            let opens_block = value.starts_with(['|', '>']) && value.len() <= 3;
            block_indent = opens_block.then_some(indent);
        }
        block_indent.is_some()
    }

    /// The last non-empty line above the line with the error.
    fn find_line_above(&self) -> Option<LineAbove<'t>> {
        let line = self.text[..self.line.start].lines().rev().find(|line| !line.trim().is_empty())?;
        let text = line.trim_start_matches([' ', '-', '\u{feff}']);
        let (column, key) = (line.len() - text.len(), text.split(':').next().unwrap_or_default().trim());
        Some(LineAbove { column, key, ends_with_colon: text.trim_end().ends_with(':') })
    }

    /// The remedy for a tab.
    fn suggest_tab_replacement(&self) -> String {
        if !self.line_text()[..self.tab_span().start - self.line.start].trim().is_empty() {
            return "use a space instead".to_owned();
        }
        let spaces = match self.find_line_above() {
            Some(LineAbove { column, ends_with_colon: true, .. }) => format!("{} spaces", column + 2),
            Some(LineAbove { column, .. }) if column > 0 => format!("{column} spaces"),
            _ => "spaces".to_owned(),
        };
        format!(
            "start this line with {spaces} instead of a tab, and correct the other lines that start with \
            tabs"
        )
    }

    fn explain_missing_key(&self) -> (Finding, Range<usize>) {
        let finding = Finding::new(&rules::YAML_SYNTAX, "this line is neither `key: value` nor part of a longer value");
        let help = "if this line is a key, add `: ` after it; if it continues the value above, indent it deeper than \
                    that value's key";
        (finding.help(help), self.trimmed_line())
    }

    /// Explains a second colon, which is either in a text that needs quotes or after a key that is indented too deeply.
    fn explain_colon(&self) -> (Finding, Range<usize>) {
        if self.text_before().contains(": ") {
            let finding = Finding::new(
                &rules::YAML_QUOTE,
                "YAML reads a `:` followed by a space as the end of a key, even inside a value without quotes",
            );
            return (finding.help(QUOTE_HELP), self.value_span());
        }
        if self.trimmed_line().start == self.line.start && self.line.start > 0 {
            let previous = ErrorPosition::new(self.text, self.text[..self.line.start].trim_end().len());
            return previous.explain_missing_key();
        }
        let message = "this line is indented deeper than the line above, which is already complete";
        (Finding::new(&rules::YAML_INDENTATION, message).help(ALIGN_HELP), self.trimmed_line())
    }

    /// Explains a value that begins with a character that has a special meaning in YAML or is not allowed.
    fn explain_first_character(&self) -> (Finding, Range<usize>) {
        match self.text[self.at..].chars().next() {
            Some(c) if c.is_control() => {
                let message = format!("the character U+{:04X} is not allowed in a YAML file", u32::from(c));
                (
                    Finding::new(&rules::YAML_SYNTAX, message).help("remove the character, or type the text again"),
                    self.character_span(),
                )
            }
            Some('-') => {
                let finding = Finding::new(&rules::YAML_SYNTAX, "a list cannot start on the same line as its key");
                let help = "start each item with `- ` on its own line; if the value is text that starts with \
                    `-`, put it in quotes";
                (finding.help(help), self.value_span())
            }
            Some(c @ ('|' | '>')) => {
                let finding = Finding::new(&rules::YAML_QUOTE, format!("no text can follow `{c}` on the same line"));
                (
                    finding.help("start the text on the next line, indented, or put the whole value in quotes"),
                    self.value_span(),
                )
            }
            Some(c) => {
                let finding = Finding::new(&rules::YAML_QUOTE, format!("a value that starts with `{c}` needs quotes"));
                (finding.help(QUOTE_HELP), self.rest_of_line())
            }
            None => {
                let finding = Finding::new(&rules::YAML_SYNTAX, "the file ends unexpectedly");
                (finding.help("check for a missing quote or bracket above"), self.character_span())
            }
        }
    }
}

/// The typing mistakes in a file, each with its span; `is_key` tells whether a name is a key of the file.
pub(crate) fn find_slips(text: &str, is_key: impl Fn(&str) -> bool) -> Vec<(Range<usize>, Finding)> {
    let mut slips = Vec::new();
    let (mut start, mut block_indent) = (0, None);
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        let is_blank = line.trim().is_empty();
        // The lines of a block scalar, after `|` or `>`, are free text.
        if block_indent.is_some_and(|key_indent| is_blank || indent > key_indent) {
            start += line.len();
            continue;
        }
        block_indent = opens_block(line).then_some(indent);
        if let Some((span, finding)) = find_slip(line, &is_key).filter(|_| !is_blank) {
            let span = start + span.start..start + span.end;
            let fix = fix_slip(text, start, line, &span, &is_key);
            slips.push((span, finding.fix(fix)));
        }
        start += line.len();
    }
    slips
}

/// Whether a text of several lines begins below this line.
fn opens_block(line: &str) -> bool {
    let end = line.trim_end().trim_end_matches(['+', '-']);
    end.ends_with(": |") || end.ends_with(": >")
}

/// The fix for the slip at `span` in the line that begins at `start`.
///
/// The fix keeps the key and its value as they are typed. There is no fix for a line that might continue a text.
fn fix_slip(text: &str, start: usize, line: &str, span: &Range<usize>, is_key: &impl Fn(&str) -> bool) -> Option<Fix> {
    let content = line.trim_start();
    let indentation = &line[..line.len() - content.len()];
    match &text[span.clone()] {
        ":" => {
            let column = line.len() - line.trim_start_matches([' ', '-']).len();
            let fix = Fix::replace("add a space after the colon", span.end..span.end, " ");
            Some(fix).filter(|_| !fixes::continues_text(text, start, column))
        }
        space if space.trim().is_empty() => fixes::replace_no_break_spaces(text, start, indentation),
        dash => {
            // A dash can also begin a line of a text.
            let key = content.strip_prefix(dash)?.trim_start().split_once(':')?.0;
            let fix = Fix::replace("replace the dash with a hyphen", span.clone(), "-");
            let is_item = is_key(key) || content.trim_end().ends_with(':');
            Some(fix).filter(|_| is_item && !fixes::continues_text(text, start, indentation.len()))
        }
    }
}

fn find_slip(line: &str, is_key: &impl Fn(&str) -> bool) -> Option<(Range<usize>, Finding)> {
    let first = line.find(|character: char| !character.is_whitespace())?;
    let (indentation, rest) = line.split_at(first);
    if let Some((at, space)) = indentation.char_indices().find(|(_, character)| !character.is_ascii_whitespace()) {
        let message =
            format!("this line starts with a kind of space that YAML does not accept (U+{:04X})", u32::from(space));
        let finding = Finding::new(&rules::YAML_INDENTATION, message);
        return Some((at..at + space.len_utf8(), finding.help("retype the spaces at the start of the line")));
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

/// Finds a known key whose value is in typographic quotes and contains text that YAML reads as a key or a comment.
/// `rest` is the line without its indentation of `indent` bytes.
fn find_curly_quotes(indent: usize, rest: &str, is_key: &impl Fn(&str) -> bool) -> Option<(Range<usize>, Finding)> {
    let skipped = rest.len() - rest.trim_start_matches(['-', ' ']).len();
    let (key, value) = rest[skipped..].split_once(": ")?;
    let text = value.trim();
    let opens = text.starts_with(['\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '\u{2018}', '\u{2019}']);
    (opens && is_key(key) && (text.contains(": ") || text.contains(" #"))).then(|| {
        let finding = Finding::new(&rules::TYPOGRAPHIC_QUOTES, "YAML does not treat curly quotes as quotes");
        let start = indent + skipped + key.len() + ": ".len() + (value.len() - value.trim_start().len());
        let finding = Finding { severity: Severity::Error, ..finding };
        (start..start + text.len(), finding.help("replace both curly quotes with `\"`; a text editor put them there"))
    })
}

/// Finds a known key whose value follows the colon without a space. `rest` is the line without its indentation of
/// `indent` bytes.
fn find_stuck_value(indent: usize, rest: &str, is_key: &impl Fn(&str) -> bool) -> Option<(Range<usize>, Finding)> {
    let skipped = rest.len() - rest.trim_start_matches(['-', ' ']).len();
    let (key, value) = rest[skipped..].split_once(':')?;
    let is_stuck = value.starts_with(|character: char| !character.is_whitespace()) && !value.starts_with("//");
    (is_stuck && is_key(key)).then(|| {
        let colon = indent + skipped + key.len();
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
    fn slip_is_reported_at_its_position() {
        for (text, at, message) in [
            ("recipients:\n  file:clients.csv\n", ":", "after `file:`"),
            ("  - sms:\n      signature:\"x\"\n", ":", "after `signature:`"),
            ("  - file:x\n", ":", "after `file:`"),
            ("recipients:\n\u{a0}\u{a0}file: x\n", "\u{a0}", "U+00A0"),
            ("channels:\n  – sms:\n", "–", "must start with a hyphen"),
            ("message: “Hi: there”\n", "“Hi: there”", "curly quotes"),
            ("  - message: „Sale #1“ \n", "„Sale #1“", "curly quotes"),
        ] {
            let found = find_texts(text);
            assert!(found.len() == 1 && found[0].0 == at && found[0].1.contains(message), "{text:?}: {found:?}");
        }
    }

    #[test]
    fn key_after_a_block_text_is_not_aligned_with_the_text() {
        let explain = |text: &str| {
            let position = ErrorPosition::new(text, text.find("where").expect("a key"));
            position.explain_indentation().0.help.expect("a remedy")
        };
        let channels = "channels:\n  - sms:\n      message: ";
        assert_eq!(explain(&format!("{channels}|\n       20% off\n  where: city\n")), ALIGN_HELP);
        let help = explain(&format!("{channels}Hello\n     where: city\n"));
        assert!(help.ends_with("to align with `message`, use 6 spaces"), "{help}");
        let help = explain(&format!("{channels}>-\n       20% off\n      signature: OlenaCo\n     where: city\n"));
        assert!(help.ends_with("to align with `signature`, use 6 spaces"), "{help}");
    }

    #[test]
    fn block_text_and_other_values_have_no_slips() {
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
        fn slip_search_never_panics(text in "[a-z:\\-– \u{a0}\n|>\"]{0,60}") {
            let _ = find_texts(&text);
        }
    }
}
