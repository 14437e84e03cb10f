//! Tokens of the tags of a template, and conditions and filters that rules look for in them.
//!
//! Tera does not expose its syntax tree and reports one problem at a time, so the uses in a text are read from its
//! tokens. The lexer follows that of tera but never rejects anything: in a source that tera cannot parse, the
//! tokens end early and tera reports the error.

use std::collections::BTreeSet;
use std::ops::Range;

use super::engine::{FILTERS, filter_arguments};
use super::syntax_errors::TextProblem;
use campaign_core::domain::NamedTemplate;
use campaign_core::finding::Rule;

/// The kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind<'s> {
    /// `{{` or `{{-`
    Print,
    /// `{%` or `{%-`
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

/// Whether the source has neither tags nor comments, so that it is the same for all recipients.
pub(super) fn is_constant(source: &str) -> bool {
    find_marker(source, 0).is_none()
}

/// The tokens of all tags.
pub(super) fn tokenize(source: &str) -> Vec<TemplateToken<'_>> {
    Lexer::lex(source).tokens
}

/// The byte ranges of a source outside tags and comments.
pub(super) fn find_literals(source: &str) -> Vec<Range<usize>> {
    let mut literals = Lexer::lex(source).literals;
    literals.retain(|literal| !literal.is_empty());
    literals
}

/// Symbols of two and three characters; the longer ones win.
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

    /// Skips `{% raw %} … {% endraw %}` if it begins here. `None` if it does not end.
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

/// The kind of a condition on a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionKind {
    /// Whether it has a value: `{% if vip %}`.
    IsTruthy,
    /// Compares it with this text: `{% if plan == "gold" %}`.
    IsText(String),
    /// Compares it with `true` or `false` without quotes, which no cell equals.
    IsBool(bool),
    /// Compares it with a number without quotes, which no cell is; with the source of the comparison.
    IsNumber(String),
}

/// A condition on a bare name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionCheck {
    /// The name.
    pub name: String,
    /// The kind of the check.
    pub kind: ConditionKind,
    /// The byte range in the source.
    pub span: Range<usize>,
}

/// The constant parts of a text, with their byte ranges in the source.
pub fn constant_parts(text: &NamedTemplate) -> impl Iterator<Item = (&str, Range<usize>)> {
    find_literals(&text.source).into_iter().map(|at| (&text.source[at.clone()], at))
}

/// The source with `x` for each byte of its tags, so that positions in it are positions in the source.
#[must_use]
pub fn mask_tags(text: &NamedTemplate) -> String {
    let mut masked = String::with_capacity(text.source.len());
    for literal in find_literals(&text.source) {
        masked.extend(std::iter::repeat_n('x', literal.start - masked.len()));
        masked += &text.source[literal];
    }
    masked.extend(std::iter::repeat_n('x', text.source.len() - masked.len()));
    masked
}

/// Names and texts that a text mentions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Names and keywords.
    pub names: BTreeSet<String>,
    /// Names of texts that it includes or extends.
    pub texts: BTreeSet<String>,
}

/// The names and texts that the tags of a text mention.
#[must_use]
pub fn find_mentions(text: &NamedTemplate) -> Mentions {
    let mut mentions = Mentions::default();
    for tag in tokenize(&text.source).split_inclusive(|token| matches!(token.kind, TokenKind::End { .. })) {
        let includes =
            matches!(tag, [_, TemplateToken { kind: TokenKind::Name("include" | "extends" | "import"), .. }, ..]);
        for token in tag {
            match &token.kind {
                TokenKind::Name(name) => drop(mentions.names.insert((*name).to_owned())),
                TokenKind::Text(name) if includes => drop(mentions.texts.insert(name.clone())),
                _ => {}
            }
        }
    }
    mentions
}

/// The simple conditions on bare names in a text.
#[must_use]
pub fn find_condition_checks(text: &NamedTemplate) -> Vec<ConditionCheck> {
    let tokens = tokenize(&text.source);
    let mut questions = Vec::new();
    for tag in tokens.split_inclusive(|token| matches!(token.kind, TokenKind::End { .. })) {
        let [
            TemplateToken { kind: TokenKind::Tag, .. },
            TemplateToken { kind: TokenKind::Name("if" | "elif"), .. },
            condition @ ..,
            _,
        ] = tag
        else {
            continue;
        };
        questions.extend(simple_checks(condition, &text.source));
    }
    questions
}

/// The simple conditions on bare names in a compound condition.
pub(super) fn simple_checks(condition: &[TemplateToken<'_>], source: &str) -> Vec<ConditionCheck> {
    let joins = |token: &TemplateToken<'_>| {
        matches!(token.kind, TokenKind::Name("and" | "or" | "not") | TokenKind::Symbol("(" | ")"))
    };
    let named = |name: &str| condition.iter().filter(|token| token.kind == TokenKind::Name(name)).count();
    let asked = condition.split(joins).filter_map(|condition| parse_check(condition, source));
    // An author who also converts the name, as in `points and points | int > 0`, knows what a cell is.
    asked.filter(|question| question.kind != ConditionKind::IsTruthy || named(&question.name) == 1).collect()
}

/// The remedy for a name that is compared with a number. `written` is the correct comparison.
#[must_use]
pub fn number_remedy(name: &str, written: &str) -> String {
    format!("write `{written}`, or `{name} != '' and {written}` if some cells are empty")
}

/// The comparisons of names with numbers by `<` or `>`: no cell is a number, so each of them fails.
#[must_use]
pub fn find_number_comparisons(text: &NamedTemplate) -> Vec<ConditionCheck> {
    let is_order = |question: &ConditionCheck| {
        let written = &text.source[question.span.clone()];
        matches!(question.kind, ConditionKind::IsNumber(_)) && written.contains(['<', '>'])
    };
    find_condition_checks(text).into_iter().filter(is_order).collect()
}

/// The check in a condition without `and`, `or` and `not`, if it is simple.
fn parse_check(condition: &[TemplateToken<'_>], source: &str) -> Option<ConditionCheck> {
    let (first, last) = (condition.first()?, condition.last()?);
    let as_number = || {
        let [left, operator, right] = condition else { return None };
        let number = [right, left].into_iter().find(|side| side.kind == TokenKind::Number)?;
        let number = &source[number.span.clone()];
        let [left_side, right_side] = [left, right].map(|side| match side.kind {
            TokenKind::Name(name) => {
                let filter = if number.contains('.') { "float" } else { "int" };
                format!("{name} | {filter}")
            }
            _ => source[side.span.clone()].to_owned(),
        });
        Some(ConditionKind::IsNumber(format!("{left_side} {} {right_side}", &source[operator.span.clone()])))
    };
    let (name, asked) = match condition {
        [TemplateToken { kind: TokenKind::Name(name), .. }] => (name, ConditionKind::IsTruthy),
        [
            TemplateToken { kind: TokenKind::Name(name), .. },
            TemplateToken { kind: TokenKind::Symbol("==" | "!="), .. },
            value,
        ] => (name, parse_kind(value).or_else(as_number)?),
        [
            value,
            TemplateToken { kind: TokenKind::Symbol("==" | "!="), .. },
            TemplateToken { kind: TokenKind::Name(name), .. },
        ] => (name, parse_kind(value).or_else(as_number)?),
        // Only comparisons with numbers count: comparing the order of texts is rare and never fails.
        [
            TemplateToken { kind: TokenKind::Name(name), .. },
            TemplateToken { kind: TokenKind::Symbol(sign), .. },
            TemplateToken { kind: TokenKind::Number, .. },
        ]
        | [
            TemplateToken { kind: TokenKind::Number, .. },
            TemplateToken { kind: TokenKind::Symbol(sign), .. },
            TemplateToken { kind: TokenKind::Name(name), .. },
        ] if matches!(*sign, "<" | ">" | "<=" | ">=") => (name, as_number()?),
        _ => return None,
    };
    Some(ConditionCheck { name: (*name).to_owned(), kind: asked, span: first.span.start..last.span.end })
}

fn parse_kind(value: &TemplateToken<'_>) -> Option<ConditionKind> {
    match &value.kind {
        TokenKind::Text(text) => Some(ConditionKind::IsText(text.clone())),
        TokenKind::Name("true" | "True") => Some(ConditionKind::IsBool(true)),
        TokenKind::Name("false" | "False") => Some(ConditionKind::IsBool(false)),
        _ => None,
    }
}

/// The filter of an expression, with its arguments as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterCall {
    /// The filter.
    pub name: String,
    /// The byte range of its name in the source.
    pub span: Range<usize>,
    /// The names of its arguments, with their places.
    pub arguments: Vec<(String, Range<usize>)>,
    /// The arguments that it requires.
    pub required: &'static [&'static str],
    /// The optional arguments.
    pub optional: &'static [&'static str],
}

/// The calls of existing filters in a text.
#[must_use]
pub fn find_filter_calls(text: &NamedTemplate) -> Vec<FilterCall> {
    let tokens = tokenize(&text.source);
    let calls = tokens.windows(2).enumerate().filter_map(|(at, pair)| match pair {
        [TemplateToken { kind: TokenKind::Symbol("|"), .. }, TemplateToken { kind: TokenKind::Name(name), span }]
            if FILTERS.contains(name) =>
        {
            let (required, optional) = filter_arguments(name);
            let given = argument_names(&tokens[at + 2..]);
            Some(FilterCall { name: (*name).to_owned(), span: span.clone(), arguments: given, required, optional })
        }
        _ => None,
    });
    calls.collect()
}

/// The names of the arguments in the brackets that some tokens begin with.
fn argument_names(tokens: &[TemplateToken<'_>]) -> Vec<(String, Range<usize>)> {
    let (mut depth, mut given) = (0_usize, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Symbol("(" | "[" | "{") => depth += 1,
            TokenKind::Symbol(")" | "]" | "}") => depth = depth.saturating_sub(1),
            TokenKind::Name(name)
                if depth == 1
                    && matches!(tokens.get(at + 1).map(|token| &token.kind), Some(TokenKind::Symbol("="))) =>
            {
                given.push((name.to_owned(), token.span.clone()));
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    given
}

/// The plain names that a text loops over, with their places.
#[must_use]
pub fn find_looped_names(text: &NamedTemplate) -> Vec<(String, Range<usize>)> {
    let tokens = tokenize(&text.source);
    let tags = tokens.split_inclusive(|token| matches!(token.kind, TokenKind::End { .. }));
    let name = |tag: &[TemplateToken<'_>]| match tag {
        [
            TemplateToken { kind: TokenKind::Tag, .. },
            TemplateToken { kind: TokenKind::Name("for"), .. },
            ..,
            TemplateToken { kind: TokenKind::Name("in"), .. },
            TemplateToken { kind: TokenKind::Name(name), span },
            TemplateToken { kind: TokenKind::End { .. }, .. },
        ] => Some(((*name).to_owned(), span.clone())),
        _ => None,
    };
    tags.filter_map(name).collect()
}

/// A problem with some bytes of a text.
#[must_use]
pub fn problem_at(
    text: &NamedTemplate,
    span: Range<usize>,
    rule: &'static Rule,
    message: String,
    help: &str,
) -> TextProblem {
    TextProblem::new(&text.name, &text.source, span, rule, message).with_help(help.to_owned())
}

#[cfg(test)]
mod lexer_tests {
    use super::*;

    fn shown_tokens(source: &str) -> Vec<&str> {
        tokenize(source).into_iter().map(|token| &source[token.span]).collect()
    }

    #[test]
    fn only_tags_become_tokens() {
        let source = "Hi {{- name|title }}, {% if a.b != 1.5 -%}x{% endif %} {# {{ no }} #}{{'}}'}}";
        let expected = [
            "{{-", "name", "|", "title", "}}", "{%", "if", "a", ".", "b", "!=", "1.5", "-%}", "{%", "endif", "%}",
            "{{", "'}}'", "}}",
        ];
        assert_eq!(shown_tokens(source), expected);
    }

    #[test]
    fn raw_block_is_text() {
        assert_eq!(shown_tokens("{% raw %}{{ a }}{% if %}{%- endraw -%}{{ b }}"), ["{{", "b", "}}"]);
        assert_eq!(shown_tokens("{% raw %}{{ a }}"), [""; 0]);
    }

    #[test]
    fn literals_exclude_tags_and_comments() {
        let shown =
            |source: &'static str| -> Vec<&str> { find_literals(source).into_iter().map(|at| &source[at]).collect() };
        assert_eq!(shown("Hi {{- name }}, {# no #}x{% if a %}y{% endif %}"), ["Hi ", ", ", "x", "y"]);
        assert_eq!(shown("a{% raw %}{{ b }}{% endraw %}c"), ["a", "{{ b }}", "c"]);
        assert_eq!(shown("plain"), ["plain"]);
        assert_eq!(shown("a{{ 'b"), ["a"], "tera reports what cannot be read");
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
    fn unreadable_source_ends_the_tokens() {
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

#[cfg(test)]
mod condition_tests {
    use super::*;

    fn check_kinds(source: &str) -> Vec<(String, ConditionKind)> {
        let text = NamedTemplate { name: "t".into(), source: source.into() };
        find_condition_checks(&text).into_iter().map(|question| (question.name, question.kind)).collect()
    }

    #[test]
    fn masked_text_keeps_word_positions() {
        for (source, shown) in [("Hi", "Hi"), ("a{{ b }}є{# c #}", "axxxxxxxєxxxxxxx"), ("{{ b }}c", "xxxxxxxc")] {
            assert_eq!(mask_tags(&NamedTemplate { name: "t".into(), source: source.into() }), shown);
        }
    }

    #[test]
    fn simple_condition_checks_are_found() {
        let whether = |name: &str| (name.to_owned(), ConditionKind::IsTruthy);
        let is = |name: &str, text: &str| (name.to_owned(), ConditionKind::IsText(text.to_owned()));
        assert_eq!(
            check_kinds("{% if vip %}a{% elif not old and plan == \"gold\" %}b{% endif %}"),
            [whether("vip"), whether("old"), is("plan", "gold"),]
        );
        assert_eq!(
            check_kinds("{% if 'x' != a or b == true %}{% endif %}"),
            [is("a", "x"), ("b".to_owned(), ConditionKind::IsBool(true)),]
        );
        for other in [
            "{{ a == 'x' }}",
            "{% if a | length > 3 %}",
            "{% if a.b %}",
            "{% if a is defined %}",
            "{% for a in b %}",
            "{% if a and a | int > 0 %}",
        ] {
            assert_eq!(check_kinds(other), [], "{other}");
        }
    }
}
