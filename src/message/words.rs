//! Tera's complaints in words for the author of a text.
//!
//! Tera speaks to programmers, and some of its messages quote a cell. What is said here does not.

use std::ops::Range;

use tera::{ErrorKind, ReportError};

use super::engine::MAX_BYTES;
use super::names::Names;
use super::unclosed::unclosed;
use crate::finding::did_you_mean;

/// The tags that a text may use.
const TAGS: [&str; 19] = [
    "if",
    "elif",
    "else",
    "endif",
    "for",
    "endfor",
    "break",
    "continue",
    "set",
    "set_global",
    "endset",
    "include",
    "extends",
    "block",
    "endblock",
    "filter",
    "endfilter",
    "raw",
    "endraw",
];

/// How tera's messages begin that quote a value or speak of its types, and what is said instead.
const OURS: [(&str, &str); 10] = [
    ("The string `", "a value is not a number"),
    ("The float ", "a value is not a whole number"),
    ("Number `", "a number is too large"),
    ("Value `", "a value is too large, or of a kind that does not fit here"),
    ("Unable to perform ", "a calculation goes beyond what numbers can hold"),
    ("Map does not have a key ", "a map does not have the key that is asked for"),
    ("Invalid type for the value", "a filter or a test gets a value of a kind that it does not take"),
    ("Math operations can only", "arithmetic needs numbers, and a cell is text until `| int` or `| float`"),
    ("`+` requires both", "`+` adds numbers; to join texts write `~`, and for numbers `| int`"),
    ("Tried to render a variable that is undefined", "a value is not defined"),
];

const UNEXPECTED_END: &str = "Unexpected end of input";

/// What is wrong with a source that tera cannot read, and what to do.
pub(super) fn syntax(report: &ReportError, source: &str, names: &Names) -> (String, Option<String>) {
    let span = &report.span().range;
    let meant = source.get(span.clone()).unwrap_or("");
    let header = around(source, span).and_then(|inner| names.help_for_inner(inner));
    match report.message() {
        UNEXPECTED_END => {
            let Some((opened, closes)) = unclosed(source) else {
                let help = "close `{{` with `}}`, `{%` with `%}`, and each block with its `{% end… %}`";
                return ("the text ends before a tag or a block is closed".into(), Some(help.into()));
            };
            let help = match closes.as_str() {
                "{% endif %}" => {
                    "write `{% endif %}` behind the last words that depend on the condition: what comes after it, everybody gets"
                        .to_owned()
                }
                _ => format!("write `{closes}` where it ends"),
            };
            (format!("`{opened}` is not closed: `{closes}` is missing"), Some(help))
        }
        "Unexpected character" => {
            let character = source.get(span.start..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
            let help = match character {
                '“' | '”' | '„' | '«' | '»' | '‘' | '’' => "write straight quotes, `\"` or `'`",
                _ => "names have Latin letters, digits and `_`; for other headers write `recipient[\"Header\"]`",
            };
            (format!("`{character}` cannot stand here in a tag"), header.or_else(|| Some(help.into())))
        }
        "Unknown tag" => {
            let help = match did_you_mean(meant, TAGS) {
                Some(tag) => format!("did you mean `{tag}`?"),
                None => "to print a value write it between `{{` and `}}`".into(),
            };
            (format!("unknown tag `{meant}`"), Some(help))
        }
        message => match message.strip_prefix("Found ").and_then(|rest| rest.split_once(" but expected ")) {
            Some((_, expected)) => {
                let expected =
                    expected.trim_end_matches('.').replace("ident,", "a name,").replace("identifier", "a name");
                let argument = source.get(..span.start).unwrap_or("").trim_end().ends_with('(') && expected == "a name";
                let help = match expected.trim_matches('`') {
                    "}}" => Some("close it with `}}`, as in `{{ first_name }}`".to_owned()),
                    "%}" => Some("close it with `%}`, as in `{% endif %}`".to_owned()),
                    _ => argument.then(|| "arguments have names, as in `default(value=\"friend\")`".to_owned()),
                };
                (format!("`{meant}` cannot stand here; expected {}", quoted(&expected)), header.or(help))
            }
            None => (lowercase_first(message.trim_end_matches('.')), header),
        },
    }
}

/// The bytes of a source that tera means; where it ends too soon, its end.
pub(super) fn span(report: &ReportError) -> Range<usize> {
    let Range { start, end } = report.span().range;
    if report.message() == UNEXPECTED_END { end..end } else { start..end }
}

/// Why a template could not be filled with one row's values.
pub(super) fn runtime(kind: &ErrorKind) -> String {
    if matches!(kind, ErrorKind::Io(_)) {
        return format!("the text becomes longer than {MAX_BYTES} bytes");
    }
    let message = match kind {
        ErrorKind::RenderingError(report) | ErrorKind::SyntaxError(report) => report.message().to_owned(),
        other => other.to_string(),
    };
    // Tera goes on with lists of names, and quotes the text that is no number.
    let message = message.split(" Available ").next().unwrap_or("").trim_end_matches('.');
    let ours = OURS.iter().find(|(theirs, _)| message.starts_with(theirs));
    ours.map_or_else(|| lowercase_first(message), |(_, ours)| (*ours).to_owned())
}

/// That a table has no row for what a text looks up, where that is why it could not be filled; `meant` is what tera points at.
pub(super) fn no_row(kind: &ErrorKind, meant: &str) -> Option<String> {
    let ErrorKind::RenderingError(report) = kind else { return None };
    let theirs = ["Field `", "Cannot index into an undefined value"];
    let nothing = theirs.iter().any(|theirs| report.message().starts_with(theirs));
    let meant = meant.trim_end_matches(']');
    (nothing && meant.contains('[')).then(|| format!("`{meant}]` is nothing: the table has no row for that"))
}

/// What stands in the tag around a place, without its braces.
fn around<'s>(source: &'s str, span: &Range<usize>) -> Option<&'s str> {
    let start = source.get(..span.start)?.rfind("{{")? + 2;
    let end = start + source[start..].find("}}")?;
    Some(source[start..end].trim_matches('-').trim())
}

/// A token that tera names as it is, such as `]`, in backticks.
fn quoted(expected: &str) -> String {
    let bare = !expected.contains([' ', '`']) && !expected.bytes().any(|byte| byte.is_ascii_alphabetic());
    if bare { format!("`{expected}`") } else { expected.to_owned() }
}

fn lowercase_first(message: &str) -> String {
    let mut characters = message.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_not_quoted() {
        for message in [
            "The string `380501234567x` cannot be converted to an int in base 10",
            "The float 380501234567.5 cannot be converted to an int (non-integer or out of i128 range)",
            "Value `380501234567` is not a container; cannot check for containment",
            "Value `380501234567` is out of range for `u8`",
            "Number `380501234567` is out of range for i128",
            "Unable to perform 380501234567 ** 380501234567",
            "Map does not have a key 380501234567 and no default values were defined",
        ] {
            let shown = runtime(&ErrorKind::Msg(message.into()));
            assert!(!shown.contains("050"), "{shown}");
        }
        let kind = ErrorKind::Msg("Field `x` is not defined. Available fields: a, b".into());
        assert_eq!(runtime(&kind), "field `x` is not defined");
    }
}
