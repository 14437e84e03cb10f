//! What an expression uses: each name in it is a variable, a filter, a test, a function, an
//! attribute, an argument or a keyword, and the tokens beside it tell which.

use super::lex::{TemplateToken, TokenKind};
use super::outline::{OutlineAction, OutlineReader, TableLookup, VariableUse};
use crate::domain::variable::{LITERALS, OPERATORS};

impl OutlineReader {
    pub(super) fn read_expression(&mut self, tokens: &[TemplateToken<'_>]) {
        for (index, token) in tokens.iter().enumerate() {
            let (before, after) = (&tokens[..index], &tokens[index + 1..]);
            match token.kind {
                TokenKind::Name(name) => self.read_name(name, token, before, after),
                TokenKind::Symbol("...") => self.push_event(OutlineAction::Unsupported("spreads"), &token.span),
                // Where a value must begin, `<` calls a component; elsewhere it compares.
                TokenKind::Symbol("<") if !ends_with_value(before) => {
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
            (Some(TokenKind::Name("not")), _) if is_not(before) => {
                self.push_event(OutlineAction::Test(name.to_owned()), span)
            }
            (_, Some(TokenKind::Symbol("("))) if !LITERALS.contains(&name) && !OPERATORS.contains(&name) => {
                match name {
                    "super" if !self.is_in_block() => self.push_event(OutlineAction::StraySuper, span),
                    _ => self.push_event(OutlineAction::Function(name.to_owned()), span),
                }
            }
            _ if name == "not" || LITERALS.contains(&name) => {}
            // Where a value must begin, tera reads every other word as the name of a variable.
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

/// What of a name is looked up by what follows it: `[key].column`.
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
    let (key, behind) = (text(&inner[..end]), &inner[end + 1..]);
    let (column, rest) = match behind {
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
    let softly = |token: Option<&TemplateToken<'_>>| {
        token.is_some_and(|token| matches!(token.kind, TokenKind::Symbol("?." | "?[")))
    };
    let optional = softly(Some(first)) || softly(behind.first()) || has_default(rest) || is_tested_for_presence(rest);
    Some(TableLookup { key, column, optional })
}

/// Whether `| default(…)` follows, which does not mind a missing value.
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
fn is_not(tokens: &[TemplateToken<'_>]) -> bool {
    matches!(
        tokens,
        [.., TemplateToken { kind: TokenKind::Name("is"), .. }, TemplateToken { kind: TokenKind::Name("not"), .. }]
    )
}

/// Whether the tokens end with a value, so that an operator follows.
pub(super) fn ends_with_value(tokens: &[TemplateToken<'_>]) -> bool {
    let [before @ .., last] = tokens else { return false };
    let is_attribute = before.last().is_some_and(|token| matches!(token.kind, TokenKind::Symbol("." | "?.")));
    match last.kind {
        TokenKind::Name(_) if is_attribute => true,
        // The first half of `not in`, if a value stands before it.
        TokenKind::Name("not") => ends_with_value(before),
        TokenKind::Name(name) => !OPERATORS.contains(&name),
        TokenKind::Text(_) | TokenKind::Number | TokenKind::Symbol(")" | "]" | "}") => true,
        _ => false,
    }
}
