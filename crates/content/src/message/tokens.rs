//! Tokens of the tags in a template.
//!
//! Tera does not expose its syntax tree and reports one problem at a time. The names that a text uses are therefore
//! read from its tokens. The lexer follows tera's but never rejects anything: if tera cannot parse a source, the tokens
//! end early and tera reports the error.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind<'s> {
    /// The start of an expression that is printed: `{{` or `{{-`.
    Print,
    /// The start of a statement: `{%` or `{%-`.
    Tag,
    /// `}}`, `%}`, or either with a dash, which removes the following white space.
    End {
        /// Whether there is a dash.
        trims: bool,
    },
    /// A name or a keyword.
    Name(&'s str),
    /// A string without its quotes.
    Text(String),
    /// A number; its value does not matter here.
    Number,
    /// An operator or a bracket.
    Symbol(&'s str),
}

/// A token and the bytes of the source that it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TemplateToken<'s> {
    pub(super) kind: TokenKind<'s>,
    pub(super) span: Range<usize>,
}

/// Whether the source has neither tags nor comments, and is therefore the same for all recipients.
pub(super) fn is_constant(source: &str) -> bool {
    find_marker(source, 0).is_none()
}

/// The tokens of all tags.
pub(super) fn tokenize(source: &str) -> Vec<TemplateToken<'_>> {
    Lexer::lex(source).tokens
}

/// The byte ranges of a source that are outside tags and comments.
pub(super) fn find_literals(source: &str) -> Vec<Range<usize>> {
    let mut literals = Lexer::lex(source).literals;
    literals.retain(|literal| !literal.is_empty());
    literals
}

/// Symbols of two and three characters. They take precedence over their first character.
const LONG_SYMBOLS: [&str; 10] = ["...", "//", "**", "==", "!=", ">=", "<=", "</", "?.", "?["];

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    tokens: Vec<TemplateToken<'s>>,
    literals: Vec<Range<usize>>,
}

impl<'s> Lexer<'s> {
    fn lex(source: &'s str) -> Self {
        let mut lexer = Lexer { source, at: 0, tokens: Vec::new(), literals: Vec::new() };
        // Reading ends at the end of the source or at the first unknown token.
        let _ = lexer.read_tags();
        lexer
    }

    /// Reads all tags. `None` if a token is unknown, or if a tag or comment is not closed.
    fn read_tags(&mut self) -> Option<()> {
        while let Some(start) = find_marker(self.source, self.at) {
            self.literals.push(self.at..start);
            self.at = start;
            match self.source.as_bytes()[start + 1] {
                b'#' => self.skip_comment()?,
                b'%' if self.skip_raw()? => {}
                b'%' => self.read_tag(TokenKind::Tag, "%}")?,
                _ => self.read_tag(TokenKind::Print, "}}")?,
            }
        }
        self.literals.push(self.at..self.source.len());
        Some(())
    }

    fn remaining(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn push_token(&mut self, kind: TokenKind<'s>, length: usize) {
        self.tokens.push(TemplateToken { kind, span: self.at..self.at + length });
        self.at += length;
    }

    /// The length of an opening marker with its dash.
    fn opening_length(&self) -> usize {
        2 + usize::from(self.remaining().as_bytes().get(2) == Some(&b'-'))
    }

    fn skip_comment(&mut self) -> Option<()> {
        self.at += self.opening_length();
        self.at += self.remaining().find("#}")? + 2;
        Some(())
    }

    /// Skips `{% raw %} … {% endraw %}` at this position, and returns whether it was found. `None` if `{% endraw %}` is
    /// missing.
    fn skip_raw(&mut self) -> Option<bool> {
        let Some(begin) = lone_tag_length(self.remaining(), "raw") else { return Some(false) };
        let mut body = begin;
        loop {
            body += self.remaining()[body..].find("{%")?;
            match lone_tag_length(&self.remaining()[body..], "endraw") {
                Some(length) => {
                    self.literals.push(self.at + begin..self.at + body);
                    self.at += body + length;
                    return Some(true);
                }
                None => body += 2,
            }
        }
    }

    fn read_tag(&mut self, kind: TokenKind<'s>, end: &str) -> Option<()> {
        self.push_token(kind, self.opening_length());
        loop {
            self.at += self.remaining().bytes().take_while(u8::is_ascii_whitespace).count();
            let rest = self.remaining();
            let trims = rest.starts_with('-') && rest[1..].starts_with(end);
            if trims || rest.starts_with(end) {
                self.push_token(TokenKind::End { trims }, end.len() + usize::from(trims));
                return Some(());
            }
            self.read_token()?;
        }
    }

    fn read_token(&mut self) -> Option<()> {
        let rest = self.remaining();
        if let Some(symbol) = LONG_SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            self.push_token(TokenKind::Symbol(&rest[..symbol.len()]), symbol.len());
            return Some(());
        }
        match rest.bytes().next()? {
            b'+' | b'-' | b'*' | b'/' | b'%' | b'!' | b'.' | b',' | b':' | b'~' | b'|' | b'=' | b'>' | b'<' | b'('
            | b')' | b'[' | b']' | b'{' | b'}' | b'@' => self.push_token(TokenKind::Symbol(&rest[..1]), 1),
            quote @ (b'\'' | b'"' | b'`') => self.read_string(quote)?,
            b'0'..=b'9' => self.read_number(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let length = rest.bytes().take_while(|&byte| byte == b'_' || byte.is_ascii_alphanumeric()).count();
                self.push_token(TokenKind::Name(&rest[..length]), length);
            }
            _ => return None,
        }
        Some(())
    }

    fn read_number(&mut self) {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let whole = digits(self.remaining());
        let fraction = self.remaining()[whole..].strip_prefix('.').map_or(0, |rest| 1 + digits(rest));
        self.push_token(TokenKind::Number, whole + fraction);
    }

    fn read_string(&mut self, quote: u8) -> Option<()> {
        let mut text = String::new();
        let mut characters = self.remaining().char_indices().skip(1);
        loop {
            match characters.next()? {
                (end, c) if c == char::from(quote) => {
                    self.push_token(TokenKind::Text(text), end + 1);
                    return Some(());
                }
                (_, '\\') => text.push(match characters.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other => other,
                }),
                (_, c) => text.push(c),
            }
        }
    }
}

/// The position of the next `{{`, `{%` or `{#`, from `at` on.
fn find_marker(source: &str, at: usize) -> Option<usize> {
    let pairs = source.as_bytes()[at..].windows(2);
    pairs.into_iter().position(|pair| matches!(pair, b"{{" | b"{%" | b"{#")).map(|offset| at + offset)
}

/// The length of the tag `{% name %}` at the beginning of `text`, if present.
fn lone_tag_length(text: &str, name: &str) -> Option<usize> {
    let rest = text.strip_prefix("{%")?;
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let rest = rest.trim_ascii_start().strip_prefix(name)?.trim_ascii_start();
    let rest = rest.strip_prefix('-').unwrap_or(rest).strip_prefix("%}")?;
    Some(text.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token_texts(source: &str) -> Vec<&str> {
        tokenize(source).into_iter().map(|token| &source[token.span]).collect()
    }

    #[test]
    fn only_tags_become_tokens() {
        let source = "Hi {{- name|title }}, {% if a.b != 1.5 -%}x{% endif %} {# {{ no }} #}{{'}}'}}";
        let expected = [
            "{{-", "name", "|", "title", "}}", "{%", "if", "a", ".", "b", "!=", "1.5", "-%}", "{%", "endif", "%}",
            "{{", "'}}'", "}}",
        ];
        assert_eq!(token_texts(source), expected);
    }

    #[test]
    fn raw_block_is_text() {
        assert_eq!(token_texts("{% raw %}{{ a }}{% if %}{%- endraw -%}{{ b }}"), ["{{", "b", "}}"]);
        assert_eq!(token_texts("{% raw %}{{ a }}"), [""; 0]);
    }

    #[test]
    fn literals_exclude_tags_and_comments() {
        let literals =
            |source: &'static str| -> Vec<&str> { find_literals(source).into_iter().map(|at| &source[at]).collect() };
        assert_eq!(literals("Hi {{- name }}, {# no #}x{% if a %}y{% endif %}"), ["Hi ", ", ", "x", "y"]);
        assert_eq!(literals("a{% raw %}{{ b }}{% endraw %}c"), ["a", "{{ b }}", "c"]);
        assert_eq!(literals("plain"), ["plain"]);
        assert_eq!(literals("a{{ 'b"), ["a"], "tera reports the unreadable rest");
    }

    #[test]
    fn strings_are_read_without_quotes_and_escapes() {
        let texts: Vec<_> = tokenize(r#"{{ "a\"b" ~ 'я\n' ~ `c` }}"#)
            .into_iter()
            .filter_map(|token| if let TokenKind::Text(text) = token.kind { Some(text) } else { None })
            .collect();
        assert_eq!(texts, ["a\"b", "я\n", "c"]);
    }

    #[test]
    fn tokenizing_stops_at_unreadable_source() {
        for (source, count) in [("{{ № }}", 1), ("{{ 'a", 1), ("{{ a", 2), ("{# a {{ b }}", 0), ("{", 0)] {
            assert_eq!(tokenize(source).len(), count, "{source}");
        }
    }

    #[test]
    fn text_without_tags_is_constant() {
        for (source, constant) in [("", true), ("{ a } }} #} %}", true), ("a{#b#}", false), ("{{", false)] {
            assert_eq!(is_constant(source), constant, "{source}");
        }
    }
}
