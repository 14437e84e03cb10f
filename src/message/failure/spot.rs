//! The place of a failure in its text: the value that it is about, the filter, the sides of an operator.

use std::ops::Range;

use crate::message::lex::{Kind, Token};

/// The place of a failure in its text.
pub(super) struct Spot<'s> {
    pub(super) source: &'s str,
    pub(super) span: Range<usize>,
    pub(super) tokens: Vec<Token<'s>>,
    pub(super) is_column: &'s dyn Fn(&str) -> bool,
}

/// A value that a failure is about.
pub(super) struct Subject<'s> {
    /// What is written for it.
    pub(super) written: &'s str,
    /// How a sentence calls it.
    pub(super) title: String,
}

/// The filter that makes a number of text, beside a number of that type or spelling.
fn number_filter(other: &str) -> &'static str {
    if other == "f64" || other.contains('.') { "float" } else { "int" }
}

impl<'s> Spot<'s> {
    /// What is written at the place.
    pub(super) fn written(&self) -> &'s str {
        self.source.get(self.span.clone()).unwrap_or("").trim()
    }

    /// The tokens of the place.
    pub(super) fn inner(&self) -> &[Token<'s>] {
        let of = |at: usize| self.tokens.partition_point(|token| token.span.start < at);
        &self.tokens[of(self.span.start)..of(self.span.end).max(of(self.span.start))]
    }

    /// The tokens of the tag before the place.
    fn before(&self) -> &[Token<'s>] {
        let end = self.tokens.partition_point(|token| token.span.start < self.span.start);
        let opens = |token: &Token<'_>| matches!(token.kind, Kind::Print | Kind::Tag | Kind::End { .. });
        let start = self.tokens[..end].iter().rposition(opens).map_or(0, |open| open + 1);
        &self.tokens[start..end]
    }

    /// The value at the place, or the nearest one before it in its tag: a filter is named behind its value.
    pub(super) fn subject(&self) -> Subject<'s> {
        self.subject_in(self.inner()).or_else(|| self.last_subject(self.before())).unwrap_or_else(|| {
            let written = self.written();
            let title = if written.is_empty() { "a value".to_owned() } else { format!("`{written}`") };
            Subject { written, title }
        })
    }

    /// The first value among some tokens that is a column, or else any name.
    fn subject_in(&self, tokens: &[Token<'s>]) -> Option<Subject<'s>> {
        let all = (0..tokens.len()).filter_map(|at| self.value_at(tokens, at));
        let (columns, others): (Vec<_>, Vec<_>) = all.partition(|(is_column, _)| *is_column);
        columns.into_iter().chain(others).next().map(|(_, subject)| subject)
    }

    fn last_subject(&self, tokens: &[Token<'s>]) -> Option<Subject<'s>> {
        (0..tokens.len()).rev().find_map(|at| self.value_at(tokens, at)).map(|(_, subject)| subject)
    }

    /// The value that begins at a token, and whether it is a column.
    fn value_at(&self, tokens: &[Token<'s>], at: usize) -> Option<(bool, Subject<'s>)> {
        const WORDS: [&str; 12] = ["and", "or", "not", "in", "is", "if", "elif", "else", "true", "false", "for", "set"];
        let Kind::Name(name) = tokens[at].kind else { return None };
        let follows = at > 0 && matches!(tokens[at - 1].kind, Kind::Symbol("|" | "." | "?.") | Kind::Name("is"));
        let after: Vec<&Kind<'_>> = tokens[at + 1..].iter().map(|token| &token.kind).take(3).collect();
        let is_argument = matches!(after.first(), Some(Kind::Symbol("=" | "(")));
        if follows || is_argument || WORDS.contains(&name) {
            return None;
        }
        let cell = |header: &str, last: usize| {
            let written = &self.source[tokens[at].span.start..tokens[last].span.end];
            Some((true, Subject { written, title: format!("the cell of `{header}`") }))
        };
        match (name, after.as_slice()) {
            ("recipient", [Kind::Symbol("[" | "?["), Kind::Text(header), Kind::Symbol("]")]) => cell(header, at + 3),
            ("recipient", [Kind::Symbol("." | "?."), Kind::Name(header), ..]) => cell(header, at + 2),
            _ if (self.is_column)(name) => cell(name, at),
            _ => Some((false, Subject { written: name, title: format!("`{name}`") })),
        }
    }

    /// The filter or the test at the place, or behind it.
    pub(super) fn filter(&self) -> Option<&'s str> {
        if let Some(Token { kind: Kind::Name(name), .. }) = self.inner().first()
            && matches!(self.before().last().map(|token| &token.kind), Some(Kind::Symbol("|") | Kind::Name("is")))
        {
            return Some(*name);
        }
        let end = self.tokens.partition_point(|token| token.span.start < self.span.end);
        let mut behind = self.tokens[end..]
            .iter()
            .map(|token| &token.kind)
            .skip_while(|kind| matches!(kind, Kind::Symbol(")" | "|") | Kind::Name("is" | "not")));
        match behind.next() {
            Some(Kind::Name(name)) => Some(*name),
            _ => None,
        }
    }

    /// The two sides of an operator at the place, and the operator.
    pub(super) fn sides(&self, operators: &[&str]) -> Option<(Spot<'s>, &'s str, Spot<'s>)> {
        let inner = self.inner();
        let mut depth = 0_usize;
        let at = inner.iter().position(|token| {
            match token.kind {
                Kind::Symbol("(" | "[") => depth += 1,
                Kind::Symbol(")" | "]") => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(&token.kind, Kind::Symbol(symbol) if operators.contains(symbol))
        })?;
        let Kind::Symbol(operator) = inner[at].kind else { return None };
        let side = |span: Range<usize>| Spot {
            source: self.source,
            span,
            tokens: self.tokens.clone(),
            is_column: self.is_column,
        };
        let operator_span = &inner[at].span;
        let left = side(self.span.start..operator_span.start);
        Some((left, operator, side(operator_span.end..self.span.end)))
    }

    /// What is written at the place, as a number.
    pub(super) fn as_number(&self, other: &str) -> String {
        match self.inner() {
            [Token { kind: Kind::Text(text), .. }] if text.trim().parse::<f64>().is_ok() => text.trim().to_owned(),
            _ => format!("{} | {}", self.written(), number_filter(other)),
        }
    }
}
