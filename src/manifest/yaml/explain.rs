//! What a syntax error probably means, in the words of somebody who writes campaigns.
//!
//! The parser tells where it got lost; the slip itself is guessed from the kind of error and
//! the line. Whatever is not recognised keeps the parser's words.

use std::ops::Range;

use granit_parser::{ErrorKind, ScanError};

use crate::finding::{Finding, SourceLocation, SourceText, rules};

const QUOTE_HELP: &str = "put the whole value in double quotes; write `\\\"` for a quote inside it";
const ALIGN_HELP: &str =
    "start keys at the same level in the same column; indent keys inside another key by two spaces";

/// The finding for a syntax error.
pub(super) fn explain_error(error: &ScanError, source: &SourceText) -> Finding {
    let at = error.marker().byte_offset().unwrap_or(0);
    let spot = ErrorPosition::new(source.text(), at);
    let (finding, span) = find_cause(error, &spot);
    finding.at(SourceLocation::new(source, span))
}

fn find_cause(error: &ScanError, spot: &ErrorPosition<'_>) -> (Finding, Range<usize>) {
    use ErrorKind as E;
    match error.kind() {
        E::TabNotAllowed
        | E::TabInBlockIndentation
        | E::TabInIndentation
        | E::TabInPlainScalar
        | E::TabAtBlockScalarStart => (
            Finding::new(&rules::YAML_TAB, "a tab is not allowed here; YAML requires spaces").help(spot.replace_tab()),
            spot.tab_span(),
        ),
        E::MappingValueNotAllowed | E::InvalidColonPlacement => spot.explain_colon(),
        E::ExpectedBlockMappingKey if spot.is_indentation() => spot.explain_indentation(),
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
                .help("add the closing quote; for text on several lines, write `|` and indent the text below it"),
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

/// A line above that of an error.
struct LineAbove<'t> {
    /// Where its key begins.
    column: usize,
    key: &'t str,
    /// Whether what belongs to it stands below.
    opens: bool,
}

/// The place of an error and its line.
struct ErrorPosition<'t> {
    text: &'t str,
    at: usize,
    line: Range<usize>,
}

impl<'t> ErrorPosition<'t> {
    fn new(text: &'t str, at: usize) -> Self {
        let mut at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        // Where the file simply ends, the last line with something in it is the one to look at.
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

    /// The one character at the place.
    fn character_span(&self) -> Range<usize> {
        let length = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        self.at..self.at + length
    }

    /// From the place to the end of the line.
    fn rest_of_line(&self) -> Range<usize> {
        self.at..self.at + self.text[self.at..self.line.end].trim_end().len()
    }

    fn trimmed_line(&self) -> Range<usize> {
        let start = self.line.end - self.line_text().trim_start().len();
        start..start + self.text[start..self.line.end].trim_end().len()
    }

    /// What stands behind the first `: ` or `- ` of the line; the whole line without one.
    fn value_span(&self) -> Range<usize> {
        let line = self.trimmed_line();
        let text = &self.text[line.clone()];
        let skip = text.find(": ").map(|colon| colon + 2).or_else(|| text.strip_prefix("- ").map(|_| 2)).unwrap_or(0);
        let value = &text[skip..];
        line.end - value.trim_start().len()..line.end
    }

    fn is_indentation(&self) -> bool {
        self.text_before().trim_start_matches([' ', '-', '\u{feff}']).is_empty()
    }

    fn tab_span(&self) -> Range<usize> {
        let tab = self.line_text().find('\t').map_or(self.at, |tab| self.line.start + tab);
        tab..(tab + 1).min(self.line.end).max(tab)
    }

    fn opening_quote(&self) -> Range<usize> {
        let before = &self.text[..self.character_span().end];
        let opens = [": \"", ": '", "- \"", "- '", "[\"", "['", "{ \"", "{ '"];
        let quote = opens.iter().filter_map(|open| Some(before.rfind(open)? + open.len() - 1)).max();
        quote.map_or_else(|| self.character_span(), |quote| quote..quote + 1)
    }

    fn explain_indentation(&self) -> (Finding, Range<usize>) {
        let finding =
            Finding::new(&rules::YAML_INDENTATION, "the indentation of this line does not match any line above it");
        let help = match self.find_line_above() {
            Some(above) if !above.opens => {
                let (key, spaces) = (above.key, above.column);
                format!("{ALIGN_HELP}; to align with `{key}`, use {spaces} spaces")
            }
            _ => ALIGN_HELP.to_owned(),
        };
        (finding.help(help), self.trimmed_line())
    }

    /// The last line above it that has something in it.
    fn find_line_above(&self) -> Option<LineAbove<'t>> {
        let line = self.text[..self.line.start].lines().rev().find(|line| !line.trim().is_empty())?;
        let text = line.trim_start_matches([' ', '-', '\u{feff}']);
        let (column, key) = (line.len() - text.len(), text.split(':').next().unwrap_or_default().trim());
        Some(LineAbove { column, key, opens: text.trim_end().ends_with(':') })
    }

    /// What to write instead of a tab.
    fn replace_tab(&self) -> String {
        if !self.line_text()[..self.tab_span().start - self.line.start].trim().is_empty() {
            return "use a space instead".to_owned();
        }
        let spaces = match self.find_line_above() {
            Some(LineAbove { column, opens: true, .. }) => format!("{} spaces", column + 2),
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
            the key of that value";
        (finding.help(help), self.trimmed_line())
    }

    /// A second colon: in a text that needs quotes, or a key indented under a finished value.
    fn explain_colon(&self) -> (Finding, Range<usize>) {
        if self.text_before().contains(": ") {
            let finding = Finding::new(
                &rules::YAML_QUOTE,
                "YAML reads a `:` followed by a space as the end of a key, even inside a value without quotes",
            );
            return (finding.help(QUOTE_HELP), self.value_span());
        }
        if self.trimmed_line().start == self.line.start && self.line.start > 0 {
            let above = ErrorPosition::new(self.text, self.text[..self.line.start].trim_end().len());
            return above.explain_missing_key();
        }
        let message = "this line is indented deeper than the line above, which is already complete";
        (Finding::new(&rules::YAML_INDENTATION, message).help(ALIGN_HELP), self.trimmed_line())
    }

    /// A value that begins with a character that means something to YAML.
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
                let help = "start each item with `- ` on its own line; if it is a value that starts with `-`, \
                    put it in quotes";
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
