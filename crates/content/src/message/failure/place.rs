//! Location of a failure in its text: the value, the filter or the operands that caused it.

use std::ops::Range;

use crate::message::tokens::{TemplateToken, TokenKind, tokenize};

/// The location of a failure in its text.
pub(super) struct FailurePlace<'s> {
    pub(super) source: &'s str,
    pub(super) span: Range<usize>,
    /// The filter or test that the error points to.
    pub(super) own_filter: Option<&'s str>,
    pub(super) tokens: Vec<TemplateToken<'s>>,
    pub(super) is_column: &'s dyn Fn(&str) -> bool,
}

/// A value that a failure is about.
pub(super) struct FailureSubject<'s> {
    /// The source text of the value.
    pub(super) source: &'s str,
    /// The name of the value in a sentence.
    pub(super) title: String,
}

/// The filter that converts text to a number of the same type as the other operand: `float` or `int`. `other_operand`
/// is the operand's source text, or the name of its type, such as `f64`. If it is empty, the filter is `int`.
fn number_filter(other_operand: &str) -> &'static str {
    if other_operand == "f64" || other_operand.contains('.') { "float" } else { "int" }
}

/// The index of the first token of the value before `end`: a name with its parts and calls, a bracketed expression, or
/// a single token.
fn find_operand_start(tokens: &[TemplateToken<'_>], end: usize) -> usize {
    let is_symbol =
        |at: usize, symbols: &[&str]| matches!(&tokens[at].kind, TokenKind::Symbol(symbol) if symbols.contains(symbol));
    let mut at = end;
    while at > 0 {
        at -= 1;
        if is_symbol(at, &[")", "]", "}"]) {
            let mut depth = 1;
            while at > 0 && depth > 0 {
                at -= 1;
                depth += i32::from(is_symbol(at, &[")", "]", "}"])) - i32::from(is_symbol(at, &["(", "[", "{"]));
            }
            let continues_operand = at > 0
                && !is_symbol(at, &["{"])
                && (matches!(tokens[at - 1].kind, TokenKind::Name(_)) || is_symbol(at - 1, &[")", "]"]));
            if !continues_operand {
                return at;
            }
        } else if at > 0 && is_symbol(at - 1, &[".", "?."]) {
            at -= 1;
        } else {
            return at;
        }
    }
    at
}

/// The index of the first token of the value to which the filter or test at token `at` applies, before all filters in
/// the chain.
fn find_chain_start(tokens: &[TemplateToken<'_>], at: usize) -> Option<usize> {
    let mut first = at;
    while let Some(joint) = first.checked_sub(1) {
        let joint = match tokens[joint].kind {
            TokenKind::Symbol("|") | TokenKind::Name("is") => joint,
            TokenKind::Name("not") if joint > 0 && tokens[joint - 1].kind == TokenKind::Name("is") => joint - 1,
            _ => break,
        };
        first = find_operand_start(tokens, joint);
    }
    (first < at).then_some(first)
}

impl<'s> FailurePlace<'s> {
    /// The location of these bytes. Tera points to the name of a filter, so the location also includes the input of
    /// that filter.
    pub(super) fn new(source: &'s str, span: Range<usize>, is_column: &'s dyn Fn(&str) -> bool) -> Self {
        let tokens = tokenize(source);
        let at = tokens.partition_point(|token| token.span.start < span.start);
        let named = match tokens.get(at).map(|token| &token.kind) {
            Some(TokenKind::Name(name)) => find_chain_start(&tokens, at).map(|first| (*name, first)),
            _ => None,
        };
        match named {
            Some((name, first)) => {
                let span = tokens[first].span.start..span.end;
                Self { source, span, own_filter: Some(name), tokens, is_column }
            }
            None => Self { source, span, own_filter: None, tokens, is_column },
        }
    }

    /// The source text at the location.
    pub(super) fn source_text(&self) -> &'s str {
        self.source.get(self.span.clone()).unwrap_or("").trim()
    }

    /// The tokens that start within the span of the location.
    pub(super) fn inner_tokens(&self) -> &[TemplateToken<'s>] {
        let index_at = |offset: usize| self.tokens.partition_point(|token| token.span.start < offset);
        let start = index_at(self.span.start);
        &self.tokens[start..index_at(self.span.end).max(start)]
    }

    /// The tokens between the beginning of the tag and the location.
    fn preceding_tokens(&self) -> &[TemplateToken<'s>] {
        let end = self.tokens.partition_point(|token| token.span.start < self.span.start);
        let opens =
            |token: &TemplateToken<'_>| matches!(token.kind, TokenKind::Print | TokenKind::Tag | TokenKind::End { .. });
        let start = self.tokens[..end].iter().rposition(opens).map_or(0, |open| open + 1);
        &self.tokens[start..end]
    }

    /// The value at the location, or else the nearest value before the location in the same tag, because a filter's
    /// name follows its value.
    pub(super) fn find_subject(&self) -> FailureSubject<'s> {
        self.first_subject(self.inner_tokens()).or_else(|| self.last_subject(self.preceding_tokens())).unwrap_or_else(
            || {
                let source = self.source_text();
                let title = if source.is_empty() { "a value".to_owned() } else { format!("`{source}`") };
                FailureSubject { source, title }
            },
        )
    }

    /// The first column among the values of these tokens, or else the first value.
    fn first_subject(&self, tokens: &[TemplateToken<'s>]) -> Option<FailureSubject<'s>> {
        let values = (0..tokens.len()).filter_map(|at| self.value_at(tokens, at));
        let (columns, others): (Vec<_>, Vec<_>) = values.partition(|(is_column, _)| *is_column);
        columns.into_iter().chain(others).next().map(|(_, subject)| subject)
    }

    fn last_subject(&self, tokens: &[TemplateToken<'s>]) -> Option<FailureSubject<'s>> {
        (0..tokens.len()).rev().find_map(|at| self.value_at(tokens, at)).map(|(_, subject)| subject)
    }

    /// The value that begins at a token, and whether it is a column.
    fn value_at(&self, tokens: &[TemplateToken<'s>], at: usize) -> Option<(bool, FailureSubject<'s>)> {
        const WORDS: [&str; 12] = ["and", "or", "not", "in", "is", "if", "elif", "else", "true", "false", "for", "set"];
        let TokenKind::Name(name) = tokens[at].kind else { return None };
        let is_attribute_or_filter =
            at > 0 && matches!(tokens[at - 1].kind, TokenKind::Symbol("|" | "." | "?.") | TokenKind::Name("is"));
        let after: Vec<&TokenKind<'_>> = tokens[at + 1..].iter().map(|token| &token.kind).take(3).collect();
        let is_argument = matches!(after.first(), Some(TokenKind::Symbol("=" | "(")));
        if is_attribute_or_filter || is_argument || WORDS.contains(&name) {
            return None;
        }
        let cell = |header: &str, last: usize| {
            let source = &self.source[tokens[at].span.start..tokens[last].span.end];
            Some((true, FailureSubject { source, title: format!("the cell in `{header}`") }))
        };
        match (name, after.as_slice()) {
            ("recipient", [TokenKind::Symbol("[" | "?["), TokenKind::Text(header), TokenKind::Symbol("]")]) => {
                cell(header, at + 3)
            }
            ("recipient", [TokenKind::Symbol("." | "?."), TokenKind::Name(header), ..]) => cell(header, at + 2),
            _ if (self.is_column)(name) => cell(name, at),
            _ => Some((false, FailureSubject { source: name, title: format!("`{name}`") })),
        }
    }

    /// The filter or test that follows the value.
    pub(super) fn next_filter(&self) -> Option<&'s str> {
        let mut following = self.tokens.iter().skip_while(|token| token.span.start < self.span.end).peekable();
        // Skips the arguments of a filter at the end of the location.
        let mut depth = 0_usize;
        while let Some(token) = following.next_if(|token| depth > 0 || token.kind == TokenKind::Symbol("(")) {
            match token.kind {
                TokenKind::Symbol("(") => depth += 1,
                TokenKind::Symbol(")") => depth -= 1,
                _ => {}
            }
        }
        let joins = |token: &&TemplateToken<'_>| {
            matches!(token.kind, TokenKind::Symbol(")" | "|") | TokenKind::Name("is" | "not"))
        };
        match following.find(|token| !joins(token))?.kind {
            TokenKind::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Splits the location at the first of these operators. Returns the left operand, the operator and the right
    /// operand.
    pub(super) fn split_operands(&self, operators: &[&str]) -> Option<(FailurePlace<'s>, &'s str, FailurePlace<'s>)> {
        let inner = self.inner_tokens();
        let mut depth = 0_usize;
        let at = inner.iter().position(|token| {
            match token.kind {
                TokenKind::Symbol("(" | "[") => depth += 1,
                TokenKind::Symbol(")" | "]") => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(&token.kind, TokenKind::Symbol(symbol) if operators.contains(symbol))
        })?;
        let TokenKind::Symbol(operator) = inner[at].kind else { return None };
        let side = |span: Range<usize>| FailurePlace {
            source: self.source,
            span,
            own_filter: None,
            tokens: self.tokens.clone(),
            is_column: self.is_column,
        };
        let operator_span = &inner[at].span;
        let left = side(self.span.start..operator_span.start);
        Some((left, operator, side(operator_span.end..self.span.end)))
    }

    /// Suggests source text that converts the value at the location to a number.
    pub(super) fn suggest_number(&self, other: &str) -> String {
        match self.inner_tokens() {
            [TemplateToken { kind: TokenKind::Text(text), .. }] if text.trim().parse::<f64>().is_ok() => {
                text.trim().to_owned()
            }
            _ => format!("{} | {}", self.source_text(), number_filter(other)),
        }
    }
}
