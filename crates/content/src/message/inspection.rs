//! Parts of a text that rules look for: filters, loops, mentioned names and constant parts.

use std::collections::BTreeSet;
use std::ops::Range;

use super::engine::{FILTERS, filter_arguments};
use super::tokens::{TemplateToken, TokenKind, find_literals, tokenize};
use campaign_core::domain::NamedTemplate;

/// The filter of an expression, with its arguments as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterCall {
    /// The filter.
    pub name: String,
    /// The byte range of its name in the source.
    pub span: Range<usize>,
    /// The names of its arguments, with their locations.
    pub arguments: Vec<(String, Range<usize>)>,
    /// The arguments that it requires.
    pub required: &'static [&'static str],
    /// The optional arguments.
    pub optional: &'static [&'static str],
}

/// The calls of existing filters in a text.
pub fn find_filter_calls(text: &NamedTemplate) -> Vec<FilterCall> {
    let tokens = tokenize(&text.source);
    let calls = tokens.windows(2).enumerate().filter_map(|(at, pair)| match pair {
        [TemplateToken { kind: TokenKind::Symbol("|"), .. }, TemplateToken { kind: TokenKind::Name(name), span }]
            if FILTERS.contains(name) =>
        {
            let (required, optional) = filter_arguments(name);
            let arguments = argument_names(&tokens[at + 2..]);
            Some(FilterCall { name: (*name).to_owned(), span: span.clone(), arguments, required, optional })
        }
        _ => None,
    });
    calls.collect()
}

/// The names of the arguments in the brackets at the beginning of `tokens`.
fn argument_names(tokens: &[TemplateToken<'_>]) -> Vec<(String, Range<usize>)> {
    let (mut depth, mut arguments) = (0_usize, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Symbol("(" | "[" | "{") => depth += 1,
            TokenKind::Symbol(")" | "]" | "}") => depth = depth.saturating_sub(1),
            TokenKind::Name(name)
                if depth == 1
                    && matches!(tokens.get(at + 1).map(|token| &token.kind), Some(TokenKind::Symbol("="))) =>
            {
                arguments.push((name.to_owned(), token.span.clone()));
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    arguments
}

/// The plain names that a text loops over, with their locations.
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

/// Names and texts that a text mentions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Names and keywords.
    pub names: BTreeSet<String>,
    /// Names of texts that it includes or extends.
    pub texts: BTreeSet<String>,
}

/// The names and texts that the tags of a text mention.
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

/// The constant parts of a text, with their byte ranges in the source.
pub fn constant_parts(text: &NamedTemplate) -> impl Iterator<Item = (&str, Range<usize>)> {
    find_literals(&text.source).into_iter().map(|span| (&text.source[span.clone()], span))
}

/// Masks each byte of the tags with `x`, so that byte positions stay the same as in the source.
pub fn mask_tags(text: &NamedTemplate) -> String {
    let mut masked = String::with_capacity(text.source.len());
    for literal in find_literals(&text.source) {
        masked.extend(std::iter::repeat_n('x', literal.start - masked.len()));
        masked += &text.source[literal];
    }
    masked.extend(std::iter::repeat_n('x', text.source.len() - masked.len()));
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_text_keeps_word_positions() {
        for (source, expected) in [("Hi", "Hi"), ("a{{ b }}є{# c #}", "axxxxxxxєxxxxxxx"), ("{{ b }}c", "xxxxxxxc")] {
            assert_eq!(mask_tags(&NamedTemplate { name: "t".into(), source: source.into() }), expected);
        }
    }
}
