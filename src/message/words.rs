//! Explanations of grammar errors in texts, for authors: the messages of tera are for programmers.

use std::ops::Range;

use tera::{ErrorKind, ReportError};

use super::names::TemplateNames;
use super::unclosed::find_unclosed;
use crate::finding::did_you_mean;

/// The tags that a text may use.
pub(super) const TAGS: [&str; 19] = [
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

const UNEXPECTED_END: &str = "Unexpected end of input";

/// What is wrong with a source that tera cannot read, and what to do.
pub(super) fn explain_syntax(report: &ReportError, source: &str, names: &TemplateNames) -> (String, Option<String>) {
    let span = &report.span().range;
    let meant = source.get(span.clone()).unwrap_or("");
    let header = enclosing_tag(source, span).and_then(|inner| names.help_for_inner(inner));
    match report.message() {
        UNEXPECTED_END => {
            let Some((opened, closes)) = find_unclosed(source) else {
                let help = "close `{{` with `}}`, `{%` with `%}`, and each block with its `{% end… %}`";
                return ("the template ends inside a tag or block".into(), Some(help.into()));
            };
            let help = match closes.as_str() {
                "{% endif %}" => {
                    "add `{% endif %}` after the text that depends on the condition; all recipients get the text after \
                        `{% endif %}`"
                        .to_owned()
                }
                _ => format!("add `{closes}` where the tag or block ends"),
            };
            (format!("`{opened}` is not closed; `{closes}` is missing"), Some(help))
        }
        "Unexpected character" => {
            let character = source.get(span.start..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
            let help = match character {
                '“' | '”' | '„' | '«' | '»' | '‘' | '’' => "use straight quotes, `\"` or `'`",
                _ => "use Latin letters, digits and `_` in names; for other headers, write `recipient[\"Header\"]`",
            };
            (format!("`{character}` is not allowed in a tag"), header.or_else(|| Some(help.into())))
        }
        "Unknown tag" => {
            let help = match did_you_mean(meant, TAGS) {
                Some(tag) => format!("did you mean `{tag}`?"),
                None => "to print a value, write it between `{{` and `}}`".into(),
            };
            (format!("unknown tag `{meant}`"), Some(help))
        }
        message => match message.strip_prefix("Found ").and_then(|rest| rest.split_once(" but expected ")) {
            Some((_, expected)) => {
                let expected =
                    expected.trim_end_matches('.').replace("ident,", "a name,").replace("identifier", "a name");
                let argument = source.get(..span.start).unwrap_or("").trim_end().ends_with('(') && expected == "a name";
                let help = match expected.trim_matches('`') {
                    "}}" => Some("close the tag with `}}`, as in `{{ first_name }}`".to_owned()),
                    "%}" => Some("close the tag with `%}`, as in `{% endif %}`".to_owned()),
                    _ => argument.then(|| "name the arguments, as in `default(value=\"friend\")`".to_owned()),
                };
                (format!("`{meant}` is not allowed here; expected {}", quote_token(&expected)), header.or(help))
            }
            None => (lowercase_first(message.trim_end_matches('.')), header),
        },
    }
}

/// The bytes of a source that tera means; where it ends too soon, its end.
pub(super) fn error_span(report: &ReportError) -> Range<usize> {
    let Range { start, end } = report.span().range;
    if report.message() == UNEXPECTED_END { end..end } else { start..end }
}

/// Why tera does not take a template that could be read.
pub(super) fn explain_rejection(kind: &ErrorKind) -> String {
    let message = match kind {
        ErrorKind::RenderingError(report) | ErrorKind::SyntaxError(report) => report.message().to_owned(),
        other => other.to_string(),
    };
    lowercase_first(message.trim_end_matches('.'))
}

/// What stands in the tag around a place, without its braces.
fn enclosing_tag<'s>(source: &'s str, span: &Range<usize>) -> Option<&'s str> {
    let start = source.get(..span.start)?.rfind("{{")? + 2;
    let end = start + source[start..].find("}}")?;
    Some(source[start..end].trim_matches('-').trim())
}

/// A token that tera names as it is, such as `]`, in backticks.
fn quote_token(expected: &str) -> String {
    let bare = !expected.contains([' ', '`']) && !expected.bytes().any(|byte| byte.is_ascii_alphabetic());
    if bare { format!("`{expected}`") } else { expected.to_owned() }
}

fn lowercase_first(message: &str) -> String {
    let mut characters = message.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
