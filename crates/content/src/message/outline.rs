//! Outline of a template: the names that it uses and defines, in order.
//!
//! An outline is built from the tokens of a source. Tera checks the syntax, so this module does not. An outline knows
//! nothing about columns; `names` compares it with the available names. The tokens around a name show what the name is:
//! a variable, a filter, a test, a function, an attribute, an argument or a keyword.

use std::ops::Range;

use super::tokens::{TemplateToken, TokenKind};
use campaign_core::domain::variable::{LITERALS, OPERATORS};

/// An event of a template, with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutlineEvent {
    pub(super) action: OutlineAction,
    pub(super) span: Range<usize>,
}

/// An action of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OutlineAction {
    /// Reads a variable.
    Use(VariableUse),
    /// Tests whether a variable exists: `is defined` or `is undefined`.
    Ask(String),
    /// Reads `recipient["key"]`.
    Key {
        key: String,
        optional: bool,
    },
    /// Reads `recipient[…]` with a key that is computed at rendering.
    AnyKey,
    /// Sets a variable, in the innermost loop or for the rest of the text.
    Define {
        name: String,
        global: bool,
    },
    /// Begins a loop, and with it the scope of its variables.
    Enter,
    /// Ends a loop, and with it the scope of its variables.
    Leave,
    /// `{% include "name" %}`
    Include(String),
    /// `{% extends "name" %}`
    Extends(String),
    /// `{% block name %}`; only an outermost block must exist in a parent.
    Block {
        name: String,
        outermost: bool,
    },
    Filter(String),
    Test(String),
    Function(String),
    /// `super()` outside of a block.
    StraySuper,
    /// A tera construct that messages do not support, with its name.
    Unsupported(&'static str),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct VariableUse {
    pub(super) name: String,
    /// Whether the variable can be missing: `| default(…)`.
    pub(super) optional: bool,
    /// Whether an attribute is read: `name.part`.
    pub(super) dotted: bool,
    /// The lookup: `name[…]`.
    pub(super) lookup: Option<TableLookup>,
}

/// A lookup in a table: `name[key].column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableLookup {
    /// The key, if it is a text instead of a name.
    pub(super) key: Option<String>,
    pub(super) column: Option<String>,
    /// Whether the value can be missing: `?.`, `| default(…)`, `is defined`.
    pub(super) optional: bool,
}

/// A loop, with the cost of one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TemplateLoop {
    /// Bytes of the body.
    pub(super) body: Range<usize>,
    /// Whether the tag removes the following white space.
    pub(super) trims: bool,
    /// Tokens in the body.
    pub(super) tokens: usize,
    /// Events of the body.
    pub(super) events: Range<usize>,
}

/// A value that is set. Its size is limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SetValue {
    /// `{% set a = value %}`: the bytes of the value.
    Value(Range<usize>),
    /// `{% set a %} … {% endset %}`: the end of the opening tag.
    Block(usize),
}

/// The names that a text uses and defines, its blocks and its loops, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) events: Vec<OutlineEvent>,
    pub(super) loops: Vec<TemplateLoop>,
    pub(super) set_values: Vec<SetValue>,
    /// Tokens in all tags.
    pub(super) tokens: usize,
    /// The number of `elif` tags, each of which uses stack.
    pub(super) elifs: usize,
    /// The nesting depth of blocks, which also uses stack.
    pub(super) block_depth: usize,
}

impl Outline {
    /// Builds the outline of a source from its tokens.
    pub(super) fn from_tokens(tokens: &[TemplateToken<'_>]) -> Self {
        let mut reader =
            OutlineReader { outline: Self { tokens: tokens.len(), ..Self::default() }, ..OutlineReader::default() };
        let mut rest = tokens;
        while let Some(end) = rest.iter().position(|token| matches!(token.kind, TokenKind::End { .. })) {
            let (tag, after) = rest.split_at(end + 1);
            reader.read_tag(tag, tokens.len() - after.len());
            rest = after;
        }
        reader.outline
    }

    /// Texts that are included or extended, with the location of the name.
    pub(super) fn find_loaded_texts(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.events.iter().filter_map(|event| match &event.action {
            OutlineAction::Include(name) | OutlineAction::Extends(name) => Some((name.as_str(), event.span.clone())),
            _ => None,
        })
    }

    /// The parent that the text extends.
    pub(super) fn find_parent(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match &event.action {
            OutlineAction::Extends(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// Builds an outline from tags.
#[derive(Default)]
pub(super) struct OutlineReader {
    outline: Outline,
    /// Open loops: the index in `outline.loops`, and the tokens before the body.
    open_loops: Vec<(usize, usize)>,
    /// The number of open blocks.
    blocks: usize,
}

impl OutlineReader {
    pub(super) fn push_event(&mut self, action: OutlineAction, span: &Range<usize>) {
        self.outline.events.push(OutlineEvent { action, span: span.clone() });
    }

    pub(super) fn is_in_loop(&self) -> bool {
        !self.open_loops.is_empty()
    }

    pub(super) fn is_in_block(&self) -> bool {
        self.blocks > 0
    }

    /// Reads a tag. `tokens_read` is the number of source tokens up to the end of the tag.
    fn read_tag(&mut self, tag: &[TemplateToken<'_>], tokens_read: usize) {
        let [opening, inner @ .., end] = tag else { return };
        if opening.kind == TokenKind::Print {
            return self.read_expression(inner);
        }
        let [first, arguments @ ..] = inner else { return };
        match first.kind {
            TokenKind::Name("for") => self.open_loop(arguments, end, tokens_read),
            TokenKind::Name("endfor") => self.close_loop(opening, tokens_read - tag.len()),
            TokenKind::Name("set") => self.read_set(arguments, end, false),
            TokenKind::Name("set_global") => self.read_set(arguments, end, true),
            TokenKind::Name("include") => self.read_include(arguments, OutlineAction::Include),
            TokenKind::Name("extends") => self.read_include(arguments, OutlineAction::Extends),
            TokenKind::Name("block") => self.open_block(arguments),
            TokenKind::Name("endblock") => self.blocks = self.blocks.saturating_sub(1),
            TokenKind::Name("elif") => {
                self.outline.elifs += 1;
                self.read_expression(arguments);
            }
            TokenKind::Name("if") => self.read_expression(arguments),
            TokenKind::Name("filter") => self.read_filters(arguments),
            TokenKind::Name("component") | TokenKind::Symbol("<") => {
                let span = first.span.start..arguments.last().map_or(first.span.end, |last| last.span.end);
                self.push_event(OutlineAction::Unsupported("components"), &span);
            }
            _ => {}
        }
    }

    fn open_loop(&mut self, arguments: &[TemplateToken<'_>], end: &TemplateToken<'_>, tokens_read: usize) {
        let Some(at) = arguments.iter().position(|token| token.kind == TokenKind::Name("in")) else { return };
        self.read_expression(&arguments[at + 1..]);
        self.push_event(OutlineAction::Enter, &end.span);
        for token in &arguments[..at] {
            if let TokenKind::Name(name) = token.kind {
                self.push_event(OutlineAction::Define { name: name.to_owned(), global: false }, &token.span);
            }
        }
        let (start, events) = (end.span.end, self.outline.events.len());
        self.open_loops.push((self.outline.loops.len(), tokens_read));
        let trims = end.kind == TokenKind::End { trims: true };
        self.outline.loops.push(TemplateLoop { body: start..start, trims, tokens: 0, events: events..events });
    }

    fn close_loop(&mut self, opening: &TemplateToken<'_>, tokens_read: usize) {
        let Some((index, before)) = self.open_loops.pop() else { return };
        let events = self.outline.events.len();
        let closed = &mut self.outline.loops[index];
        closed.body.end = opening.span.start;
        closed.tokens = tokens_read.saturating_sub(before);
        closed.events.end = events;
        self.push_event(OutlineAction::Leave, &opening.span);
    }

    fn read_set(&mut self, arguments: &[TemplateToken<'_>], end: &TemplateToken<'_>, global: bool) {
        let [TemplateToken { kind: TokenKind::Name(name), span }, value @ ..] = arguments else { return };
        match value {
            [TemplateToken { kind: TokenKind::Symbol("="), span }, value @ ..] => {
                self.outline.set_values.push(SetValue::Value(span.end..end.span.start));
                self.read_expression(value);
            }
            filters => {
                self.outline.set_values.push(SetValue::Block(end.span.start));
                self.read_expression(filters);
            }
        }
        self.push_event(OutlineAction::Define { name: (*name).to_owned(), global }, span);
    }

    fn read_include(&mut self, arguments: &[TemplateToken<'_>], action: impl FnOnce(String) -> OutlineAction) {
        if let [TemplateToken { kind: TokenKind::Text(name), span }, ..] = arguments {
            self.push_event(action(name.clone()), span);
        }
    }

    fn open_block(&mut self, arguments: &[TemplateToken<'_>]) {
        if let [TemplateToken { kind: TokenKind::Name(name), span }, ..] = arguments {
            self.push_event(OutlineAction::Block { name: (*name).to_owned(), outermost: self.blocks == 0 }, span);
        }
        self.blocks += 1;
        self.outline.block_depth = self.outline.block_depth.max(self.blocks);
    }

    /// Reads the filters of `{% filter a | b %}`. The first filter has no preceding `|`.
    fn read_filters(&mut self, arguments: &[TemplateToken<'_>]) {
        if let [TemplateToken { kind: TokenKind::Name(name), span }, rest @ ..] = arguments {
            self.push_event(OutlineAction::Filter((*name).to_owned()), span);
            self.read_expression(rest);
        }
    }
}

impl OutlineReader {
    pub(super) fn read_expression(&mut self, tokens: &[TemplateToken<'_>]) {
        for (index, token) in tokens.iter().enumerate() {
            let (preceding, after) = (&tokens[..index], &tokens[index + 1..]);
            match token.kind {
                TokenKind::Name(name) => self.read_name(name, token, preceding, after),
                TokenKind::Symbol("...") => self.push_event(OutlineAction::Unsupported("spreads"), &token.span),
                // Where a value is expected, `<` calls a component; elsewhere it compares.
                TokenKind::Symbol("<") if !ends_with_value(preceding) => {
                    self.push_event(OutlineAction::Unsupported("components"), &token.span);
                }
                _ => {}
            }
        }
    }

    fn read_name(
        &mut self,
        name: &str,
        token: &TemplateToken<'_>,
        before: &[TemplateToken<'_>],
        after: &[TemplateToken<'_>],
    ) {
        let span = &token.span;
        let previous = before.last().map(|token| &token.kind);
        let next = after.first().map(|token| &token.kind);
        match (previous, next) {
            // An attribute, or the name of an argument.
            (Some(TokenKind::Symbol("." | "?.")), _) | (_, Some(TokenKind::Symbol("="))) => {}
            (Some(TokenKind::Symbol("|")), _) => self.push_event(OutlineAction::Filter(name.to_owned()), span),
            (Some(TokenKind::Name("is")), _) if name != "not" => {
                self.push_event(OutlineAction::Test(name.to_owned()), span)
            }
            (Some(TokenKind::Name("not")), _) if ends_with_is_not(before) => {
                self.push_event(OutlineAction::Test(name.to_owned()), span)
            }
            (_, Some(TokenKind::Symbol("("))) if !LITERALS.contains(&name) && !OPERATORS.contains(&name) => {
                match name {
                    "super" if !self.is_in_block() => self.push_event(OutlineAction::StraySuper, span),
                    _ => self.push_event(OutlineAction::Function(name.to_owned()), span),
                }
            }
            _ if name == "not" || LITERALS.contains(&name) => {}
            // Where a value is expected, tera reads even an operator such as `in` as a variable.
            _ if OPERATORS.contains(&name) && ends_with_value(before) => {
                if name == "for" {
                    self.push_event(OutlineAction::Unsupported("list comprehensions"), span);
                }
            }
            (_, Some(TokenKind::Symbol("."))) if name == "loop" && self.is_in_loop() => {}
            _ if name == "recipient" => self.read_recipient(token, after),
            _ if is_tested_for_presence(after) => self.push_event(OutlineAction::Ask(name.to_owned()), span),
            _ => {
                let optional = has_default(after) || matches!(next, Some(TokenKind::Symbol("?." | "?[")));
                let dotted = matches!(next, Some(TokenKind::Symbol(".")));
                self.push_event(
                    OutlineAction::Use(VariableUse {
                        name: name.to_owned(),
                        optional,
                        dotted,
                        lookup: parse_lookup(after),
                    }),
                    span,
                );
            }
        }
    }

    fn read_recipient(&mut self, token: &TemplateToken<'_>, after: &[TemplateToken<'_>]) {
        let (key, last, rest) = match after {
            [
                TemplateToken { kind: TokenKind::Symbol("[" | "?["), .. },
                key,
                end @ TemplateToken { kind: TokenKind::Symbol("]"), .. },
                rest @ ..,
            ] => match &key.kind {
                TokenKind::Text(text) => (text.clone(), end, rest),
                _ => return self.push_event(OutlineAction::AnyKey, &token.span),
            },
            [
                TemplateToken { kind: TokenKind::Symbol("." | "?."), .. },
                key @ TemplateToken { kind: TokenKind::Name(name), .. },
                rest @ ..,
            ] => ((*name).to_owned(), key, rest),
            [TemplateToken { kind: TokenKind::Symbol("[" | "?["), .. }, ..] => {
                return self.push_event(OutlineAction::AnyKey, &token.span);
            }
            _ => {
                let name = "recipient".to_owned();
                return self
                    .push_event(OutlineAction::Use(VariableUse { name, ..VariableUse::default() }), &token.span);
            }
        };
        let optional = has_default(rest) || is_tested_for_presence(rest);
        self.push_event(OutlineAction::Key { key, optional }, &(token.span.start..last.span.end));
    }
}

/// Parses the lookup that follows a name: `[key].column`.
fn parse_lookup(after: &[TemplateToken<'_>]) -> Option<TableLookup> {
    let opens = |token: &TemplateToken<'_>| matches!(token.kind, TokenKind::Symbol("[" | "?["));
    let (first, inner) = after.split_first().filter(|(first, _)| opens(first))?;
    let mut depth = 1;
    let end = inner.iter().position(|token| {
        depth += usize::from(opens(token));
        depth -= usize::from(token.kind == TokenKind::Symbol("]"));
        depth == 0
    })?;
    let text = |tokens: &[TemplateToken<'_>]| match tokens {
        [TemplateToken { kind: TokenKind::Text(text), .. }] => Some(text.clone()),
        _ => None,
    };
    let (key, following) = (text(&inner[..end]), &inner[end + 1..]);
    let (column, rest) = match following {
        [
            TemplateToken { kind: TokenKind::Symbol("." | "?."), .. },
            TemplateToken { kind: TokenKind::Name(name), .. },
            rest @ ..,
        ] => (Some((*name).to_owned()), rest),
        [open, column, TemplateToken { kind: TokenKind::Symbol("]"), .. }, rest @ ..] if opens(open) => {
            (text(std::slice::from_ref(column)), rest)
        }
        rest => (None, rest),
    };
    let is_tolerant = |token: Option<&TemplateToken<'_>>| {
        token.is_some_and(|token| matches!(token.kind, TokenKind::Symbol("?." | "?[")))
    };
    let optional =
        is_tolerant(Some(first)) || is_tolerant(following.first()) || has_default(rest) || is_tested_for_presence(rest);
    Some(TableLookup { key, column, optional })
}

/// Whether `| default(…)` follows, which accepts a missing value.
fn has_default(after: &[TemplateToken<'_>]) -> bool {
    matches!(
        after,
        [
            TemplateToken { kind: TokenKind::Symbol("|"), .. },
            TemplateToken { kind: TokenKind::Name("default"), .. },
            ..
        ]
    )
}

/// Whether `is defined` or `is undefined` follows, with or without `not`.
fn is_tested_for_presence(after: &[TemplateToken<'_>]) -> bool {
    let [TemplateToken { kind: TokenKind::Name("is"), .. }, rest @ ..] = after else { return false };
    let rest = rest.iter().find(|token| token.kind != TokenKind::Name("not"));
    rest.is_some_and(|token| matches!(token.kind, TokenKind::Name("defined" | "undefined")))
}

/// Whether the tokens end with `is not`.
fn ends_with_is_not(tokens: &[TemplateToken<'_>]) -> bool {
    matches!(
        tokens,
        [.., TemplateToken { kind: TokenKind::Name("is"), .. }, TemplateToken { kind: TokenKind::Name("not"), .. }]
    )
}

/// Whether the tokens end with a value, which means that an operator follows.
pub(super) fn ends_with_value(tokens: &[TemplateToken<'_>]) -> bool {
    let [before @ .., last] = tokens else { return false };
    let is_attribute = before.last().is_some_and(|token| matches!(token.kind, TokenKind::Symbol("." | "?.")));
    match last.kind {
        TokenKind::Name(_) if is_attribute => true,
        // The first half of `not in`, if a value precedes it.
        TokenKind::Name("not") => ends_with_value(before),
        TokenKind::Name(name) => !OPERATORS.contains(&name),
        TokenKind::Text(_) | TokenKind::Number | TokenKind::Symbol(")" | "]" | "}") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tokens::tokenize;

    fn outline(source: &str) -> Outline {
        Outline::from_tokens(&tokenize(source))
    }

    fn used_names(source: &str) -> Vec<String> {
        let name = |event: OutlineEvent| match event.action {
            OutlineAction::Use(VariableUse { name, optional, .. }) => {
                Some(if optional { format!("{name}?") } else { name })
            }
            OutlineAction::Key { key, optional } => Some(format!("[{key}]{}", if optional { "?" } else { "" })),
            OutlineAction::AnyKey => Some("[]".into()),
            OutlineAction::Ask(name) => Some(format!("{name}?")),
            _ => None,
        };
        outline(source).events.into_iter().filter_map(name).collect()
    }

    #[test]
    fn variables_are_distinguished_from_other_names() {
        let table: [(&str, &[&str]); 15] = [
            ("{{ a }}{{b.c.d}}{{ 1 + e }}", &["a", "b", "e"]),
            ("{{ a | title | replace(from=b, to='c') }}", &["a", "b"]),
            ("{% if a is containing(pat=b) and not c in d %}{% elif e %}{% endif %}", &["a", "b", "c", "d", "e"]),
            ("{{ a if b else c }}", &["a", "b", "c"]),
            ("{{ [a, {'k': b}][c] }}", &["a", "b", "c"]),
            ("{% for k, v in a %}{{ loop.index }}{{ v }}{% endfor %}{{ loop.index }}", &["a", "v", "loop"]),
            ("{% set x = a ~ 'b' %}{% set y | trim %}{{ c }}{% endset %}", &["a", "c"]),
            ("{% filter upper | replace(from=a, to='') %}b{% endfilter %}", &["a"]),
            (
                "{{ a | default(value=b) }}{{ c is defined }}{{ d is not defined }}{{ e is undefined }}",
                &["a?", "b", "c?", "d?", "e?"],
            ),
            (
                "{{ recipient['A b'] }}{{ recipient.c }}{{ recipient[d] }}{{ recipient['e' ~ f] }}",
                &["[A b]", "[c]", "[]", "d", "[]", "f"],
            ),
            ("{{ recipient['A'] | default(value='') }}{{ recipient }}", &["[A]?", "recipient"]),
            ("{{ none }}{{ True }}{{ false }}{{ not a }}", &["a"]),
            ("{{ if }}{{ not in }}{{ [for, 1] }}{{ a.or and b }}", &["if", "in", "for", "a", "b"]),
            ("{{ throw(message=a) }}{{ (b) }}{{ not(c) }}", &["a", "b", "c"]),
            ("{% block a %}{% endblock a %}{% raw %}{{ b }}{% endraw %}{# {{ c }} #}d", &[]),
        ];
        for (source, expected) in table {
            assert_eq!(used_names(source), expected, "{source}");
        }
    }

    #[test]
    fn filters_tests_and_functions_are_found() {
        let source = "{{ a | f1(x=1) | f2 }}{% filter f3 | f4 %}{% endfilter %}{{ b is t1 or b is not t2 }}{{ g() }}";
        let mut names = Vec::new();
        for event in outline(source).events {
            if let OutlineAction::Filter(name) | OutlineAction::Test(name) | OutlineAction::Function(name) =
                event.action
            {
                assert_eq!(name, source[event.span]);
                names.push(name);
            }
        }
        assert_eq!(names, ["f1", "f2", "f3", "f4", "t1", "t2", "g"]);
    }

    #[test]
    fn unsupported_constructs_are_named() {
        let table = [
            ("{{ [x for x in a] }}", "list comprehensions"),
            ("{{ [...a] }}", "spreads"),
            ("{{ <Button /> }}", "components"),
            ("{% <Card> %}{% </Card> %}", "components"),
            ("{% component Card(a) %}{% endcomponent %}", "components"),
        ];
        for (source, expected) in table {
            let found = outline(source).events.into_iter().find_map(|event| match event.action {
                OutlineAction::Unsupported(construct) => Some(construct),
                _ => None,
            });
            assert_eq!(found, Some(expected), "{source}");
        }
        let compares = outline("{% if a < b and 'c' < d %}{% endif %}").events;
        assert!(!compares.iter().any(|event| matches!(event.action, OutlineAction::Unsupported(_))));
    }

    #[test]
    fn outline_records_the_body_of_each_loop() {
        let source = "{% for a in b -%}{{ a }}{% for c in a %}{{ c }}{% endfor %}{% endfor %}";
        let outline = outline(source);
        let bodies: Vec<_> = outline.loops.iter().map(|l| (&source[l.body.clone()], l.tokens, l.trims)).collect();
        assert_eq!(bodies[0], ("{{ a }}{% for c in a %}{{ c }}{% endfor %}", 15, true));
        assert_eq!(bodies[1], ("{{ c }}", 3, false));
    }
}
