//! Explanations of syntax errors for authors, because tera's own messages are written for programmers.

use std::ops::Range;

use tera::{ErrorKind, ReportError};

use super::names::TemplateNames;
use super::tokens::{TokenKind, tokenize};
use campaign_core::domain::transliteration::is_apostrophe;
use campaign_core::domain::variable::is_variable;
use campaign_core::finding::did_you_mean;

/// The tags that a text can use.
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

/// How a template names the column whose header begins a text, such as `recipient["Місто"]`. `None` if the text does
/// not begin with a word that needs this form.
pub(super) fn column_reference(text: &str) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || is_apostrophe(c);
    let header = text.split(|c| !is_word(c)).next().unwrap_or_default().trim_end_matches(is_apostrophe);
    let needs_quotes = header.chars().any(|c| c.is_alphabetic() && !c.is_ascii());
    needs_quotes.then(|| format!("recipient[\"{header}\"]"))
}

/// The explanation of a tera syntax error, and its remedy.
pub(super) fn explain_syntax(report: &ReportError, source: &str, names: &TemplateNames) -> (String, Option<String>) {
    let span = &report.span().range;
    let offending = source.get(span.clone()).unwrap_or("");
    let braces_help = help_for_third_brace(source, span)
        .or_else(|| enclosing_tag(source, span).and_then(|inner| names.help_for_braced_header(inner)));
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
                _ => format!("add `{closes}` where the tag or block should end"),
            };
            (format!("`{opened}` is not closed; `{closes}` is missing"), Some(help))
        }
        "Unexpected character" => {
            let character = source.get(span.start..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
            let header = source.get(span.start..).and_then(column_reference).unwrap_or("recipient[\"Header\"]".into());
            let help = match character {
                '“' | '”' | '„' | '«' | '»' | '‘' | '’' => "use straight quotes, `\"` or `'`".to_owned(),
                _ => format!("use Latin letters, digits and `_` in names; for other headers, write `{header}`"),
            };
            (format!("`{character}` is not allowed in a tag"), braces_help.or(Some(help)))
        }
        "Unknown tag" => {
            let help = match did_you_mean(offending, TAGS) {
                Some(tag) => format!("did you mean `{tag}`?"),
                None => "to print a value, write it between `{{` and `}}`".into(),
            };
            (format!("unknown tag `{offending}`"), Some(help))
        }
        message => match message.strip_prefix("Found ").and_then(|rest| rest.split_once(" but expected ")) {
            Some((_, expected)) => {
                let expected =
                    expected.trim_end_matches('.').replace("ident,", "a name,").replace("identifier", "a name");
                let is_argument =
                    source.get(..span.start).unwrap_or("").trim_end().ends_with('(') && expected == "a name";
                let help = match expected.trim_matches('`') {
                    "}}" => Some(help_for_extra_word(source, span, offending)),
                    "%}" => Some("close the tag with `%}`, as in `{% endif %}`".to_owned()),
                    _ => is_argument.then(|| "name the arguments, as in `default(value=\"friend\")`".to_owned()),
                };
                (
                    format!("`{offending}` is not allowed here; expected {}", quote_token(&expected)),
                    braces_help.or(help),
                )
            }
            None => (lowercase_first(message.trim_end_matches('.')), braces_help),
        },
    }
}

/// The bytes of a syntax error. If the source ends too early, this is the end of the source.
pub(super) fn error_span(report: &ReportError) -> Range<usize> {
    let Range { start, end } = report.span().range;
    if report.message() == UNEXPECTED_END { end..end } else { start..end }
}

/// The reason why tera rejects a template that it could parse.
pub(super) fn explain_rejection(kind: &ErrorKind) -> String {
    let message = match kind {
        ErrorKind::RenderingError(report) | ErrorKind::SyntaxError(report) => report.message().to_owned(),
        other => other.to_string(),
    };
    lowercase_first(message.trim_end_matches('.'))
}

/// The content of the tag around a location, without braces.
fn enclosing_tag<'s>(source: &'s str, span: &Range<usize>) -> Option<&'s str> {
    let start = source.get(..span.start)?.rfind("{{")? + 2;
    let end = start + source[start..].find("}}")?;
    Some(source[start..end].trim_matches('-').trim())
}

/// The remedy for a word at which a tag should have ended.
fn help_for_extra_word(source: &str, span: &Range<usize>, offending: &str) -> String {
    let Some(inner) = enclosing_tag(source, span) else {
        return "close the tag with `}}`, as in `{{ first_name }}`".to_owned();
    };
    let words: Vec<&str> = inner.split_whitespace().collect();
    let are_plain = words.iter().all(|word| is_variable(word));
    match words.first() {
        Some(&keyword @ ("if" | "elif" | "for" | "set" | "include")) => {
            format!("write `{{% {keyword} … %}}`: only values are written between `{{{{` and `}}}}`")
        }
        _ if are_plain => format!("write `{{{{ {} }}}}`, because names contain no spaces", words.join("_")),
        _ if offending == ":" && inner.contains("default") => {
            "write the value in parentheses, as in `default(value=\"friend\", boolean=true)`".to_owned()
        }
        _ => format!("remove `{offending}` from the tag, or write it after `}}}}`"),
    }
}

/// The remedy for a tag that begins with three braces, as in other template languages.
fn help_for_third_brace(source: &str, span: &Range<usize>) -> Option<String> {
    let start = source.get(..=span.start)?.rfind("{{{")?;
    let inner = source[start + 3..].split("}}").next()?.trim();
    let is_open = !source[start..span.start].contains("}}");
    is_open.then(|| format!("remove the third brace: write `{{{{ {inner} }}}}`"))
}

/// Puts an expected token in backticks if tera names the token literally, such as `]`.
fn quote_token(expected: &str) -> String {
    let is_literal = !expected.contains([' ', '`']) && !expected.bytes().any(|byte| byte.is_ascii_alphabetic());
    if is_literal { format!("`{expected}`") } else { expected.to_owned() }
}

fn lowercase_first(message: &str) -> String {
    let mut characters = message.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

/// Tags that open a block.
const BLOCKS: [&str; 4] = ["if", "for", "block", "filter"];

/// The innermost unclosed tag or block, and its closing tag.
pub(super) fn find_unclosed(source: &str) -> Option<(String, String)> {
    let (mut blocks, mut tag, mut word) = (Vec::new(), None, "");
    for token in tokenize(source) {
        match token.kind {
            TokenKind::Print | TokenKind::Tag => (tag, word) = (Some(token), ""),
            TokenKind::Name(name) if word.is_empty() => word = name,
            TokenKind::End { .. } => {
                let Some(opened) = tag.take().filter(|opened| opened.kind == TokenKind::Tag) else { continue };
                match word.strip_prefix("end") {
                    None if BLOCKS.contains(&word) => blocks.push((&source[opened.span.start..token.span.end], word)),
                    Some(ended) if blocks.last().is_some_and(|(_, word)| *word == ended) => drop(blocks.pop()),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    match tag {
        Some(opened) => {
            let closes = if opened.kind == TokenKind::Tag { "%}" } else { "}}" };
            Some((shorten(&source[opened.span.start..]), closes.to_owned()))
        }
        None => blocks.pop().map(|(tag, word)| (tag.to_owned(), format!("{{% end{word} %}}"))),
    }
}

/// Shortens an unclosed tag to its beginning.
fn shorten(text: &str) -> String {
    const MAX_CHARACTERS: usize = 24;
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unclosed_tag_is_reported_with_the_missing_closing_tag() {
        for (source, opened, closes) in [
            ("{% if a %}x{% else %}y", "{% if a %}", "{% endif %}"),
            ("{% if a %}{% for b in c %}x{% endfor %}", "{% if a %}", "{% endif %}"),
            ("{% if a %}{% if b %}x{% endif %}", "{% if a %}", "{% endif %}"),
            ("{%- for b in c -%}{{ b }}", "{%- for b in c -%}", "{% endfor %}"),
            ("Hello, {{ first_name", "{{ first_name", "}}"),
            ("Hello, {{ first_name and many more words", "{{ first_name and many m…", "}}"),
            ("x {% if a", "{% if a", "%}"),
        ] {
            assert_eq!(find_unclosed(source), Some((opened.to_owned(), closes.to_owned())), "{source}");
        }
        for closed in ["", "{{ a }}", "{% if a %}x{% endif %}", "{% raw %}{{ a {% endraw %}{{ b }}", "{# {% if #}"] {
            assert_eq!(find_unclosed(closed), None, "{closed}");
        }
    }
}
