//! What an expression uses: each name in it is a variable, a filter, a test, a function, an
//! attribute, an argument or a keyword, and the tokens beside it tell which.

use super::lex::{Kind, Token};
use super::outline::{Lookup, Reader, Use, What};
use crate::domain::variable::{OPERATORS, VALUES};

impl Reader {
    pub(super) fn expression(&mut self, tokens: &[Token<'_>]) {
        for (index, token) in tokens.iter().enumerate() {
            let (before, after) = (&tokens[..index], &tokens[index + 1..]);
            match token.kind {
                Kind::Name(name) => self.name(name, token, before, after),
                Kind::Symbol("...") => self.event(What::Unsupported("spreads"), &token.span),
                // Where a value must begin, `<` calls a component; elsewhere it compares.
                Kind::Symbol("<") if !ends_a_value(before) => {
                    self.event(What::Unsupported("components"), &token.span);
                }
                _ => {}
            }
        }
    }

    fn name(&mut self, name: &str, token: &Token<'_>, before: &[Token<'_>], after: &[Token<'_>]) {
        let span = &token.span;
        let previous = before.last().map(|token| &token.kind);
        let next = after.first().map(|token| &token.kind);
        match (previous, next) {
            // An attribute, or the name of an argument.
            (Some(Kind::Symbol("." | "?.")), _) | (_, Some(Kind::Symbol("="))) => {}
            (Some(Kind::Symbol("|")), _) => self.event(What::Filter(name.to_owned()), span),
            (Some(Kind::Name("is")), _) if name != "not" => self.event(What::Test(name.to_owned()), span),
            (Some(Kind::Name("not")), _) if is_not(before) => self.event(What::Test(name.to_owned()), span),
            (_, Some(Kind::Symbol("("))) if !VALUES.contains(&name) && !OPERATORS.contains(&name) => match name {
                "super" if !self.is_in_block() => self.event(What::StraySuper, span),
                _ => self.event(What::Function(name.to_owned()), span),
            },
            _ if name == "not" || VALUES.contains(&name) => {}
            // Where a value must begin, tera reads every other word as the name of a variable.
            _ if OPERATORS.contains(&name) && ends_a_value(before) => {
                if name == "for" {
                    self.event(What::Unsupported("list comprehensions"), span);
                }
            }
            (_, Some(Kind::Symbol("."))) if name == "loop" && self.is_in_loop() => {}
            _ if name == "recipient" => self.recipient(token, after),
            _ if is_asked_for(after) => self.event(What::Ask(name.to_owned()), span),
            _ => {
                let optional = has_default(after) || matches!(next, Some(Kind::Symbol("?." | "?[")));
                let dotted = matches!(next, Some(Kind::Symbol(".")));
                self.event(What::Use(Use { name: name.to_owned(), optional, dotted, lookup: lookup(after) }), span);
            }
        }
    }

    fn recipient(&mut self, token: &Token<'_>, after: &[Token<'_>]) {
        let (key, last, rest) = match after {
            [
                Token { kind: Kind::Symbol("[" | "?["), .. },
                key,
                end @ Token { kind: Kind::Symbol("]"), .. },
                rest @ ..,
            ] => match &key.kind {
                Kind::Text(text) => (text.clone(), end, rest),
                _ => return self.event(What::AnyKey, &token.span),
            },
            [Token { kind: Kind::Symbol("." | "?."), .. }, key @ Token { kind: Kind::Name(name), .. }, rest @ ..] => {
                ((*name).to_owned(), key, rest)
            }
            [Token { kind: Kind::Symbol("[" | "?["), .. }, ..] => return self.event(What::AnyKey, &token.span),
            _ => {
                let name = "recipient".to_owned();
                return self.event(What::Use(Use { name, ..Use::default() }), &token.span);
            }
        };
        let optional = has_default(rest) || is_asked_for(rest);
        self.event(What::Key { key, optional }, &(token.span.start..last.span.end));
    }
}

/// What of a name is looked up by what follows it: `[key].column`.
fn lookup(after: &[Token<'_>]) -> Option<Lookup> {
    let opens = |token: &Token<'_>| matches!(token.kind, Kind::Symbol("[" | "?["));
    let (first, inner) = after.split_first().filter(|(first, _)| opens(first))?;
    let mut depth = 1;
    let end = inner.iter().position(|token| {
        depth += usize::from(opens(token));
        depth -= usize::from(token.kind == Kind::Symbol("]"));
        depth == 0
    })?;
    let text = |tokens: &[Token<'_>]| match tokens {
        [Token { kind: Kind::Text(text), .. }] => Some(text.clone()),
        _ => None,
    };
    let (key, behind) = (text(&inner[..end]), &inner[end + 1..]);
    let (column, rest) = match behind {
        [Token { kind: Kind::Symbol("." | "?."), .. }, Token { kind: Kind::Name(name), .. }, rest @ ..] => {
            (Some((*name).to_owned()), rest)
        }
        [open, column, Token { kind: Kind::Symbol("]"), .. }, rest @ ..] if opens(open) => {
            (text(std::slice::from_ref(column)), rest)
        }
        rest => (None, rest),
    };
    let softly = |token: Option<&Token<'_>>| token.is_some_and(|token| matches!(token.kind, Kind::Symbol("?." | "?[")));
    let optional = softly(Some(first)) || softly(behind.first()) || has_default(rest) || is_asked_for(rest);
    Some(Lookup { key, column, optional })
}

/// Whether `| default(…)` follows, which does not mind a missing value.
fn has_default(after: &[Token<'_>]) -> bool {
    matches!(after, [Token { kind: Kind::Symbol("|"), .. }, Token { kind: Kind::Name("default"), .. }, ..])
}

/// Whether `is defined` or `is undefined` follows, with or without `not`.
fn is_asked_for(after: &[Token<'_>]) -> bool {
    let [Token { kind: Kind::Name("is"), .. }, rest @ ..] = after else { return false };
    let rest = rest.iter().find(|token| token.kind != Kind::Name("not"));
    rest.is_some_and(|token| matches!(token.kind, Kind::Name("defined" | "undefined")))
}

/// Whether the tokens end with `is not`.
fn is_not(tokens: &[Token<'_>]) -> bool {
    matches!(tokens, [.., Token { kind: Kind::Name("is"), .. }, Token { kind: Kind::Name("not"), .. }])
}

/// Whether the tokens end with a value, so that an operator follows.
pub(super) fn ends_a_value(tokens: &[Token<'_>]) -> bool {
    let [before @ .., last] = tokens else { return false };
    let is_attribute = before.last().is_some_and(|token| matches!(token.kind, Kind::Symbol("." | "?.")));
    match last.kind {
        Kind::Name(_) if is_attribute => true,
        // The first half of `not in`, if a value stands before it.
        Kind::Name("not") => ends_a_value(before),
        Kind::Name(name) => !OPERATORS.contains(&name),
        Kind::Text(_) | Kind::Number | Kind::Symbol(")" | "]" | "}") => true,
        _ => false,
    }
}
