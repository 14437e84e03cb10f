//! The pieces of a tag, even of one that tera cannot read.

use std::ops::Range;

/// Operators of other languages, each with its counterpart here. Longer operators come before their prefixes.
pub(super) const OPERATORS: [(&str, &str); 9] = [
    ("===", "=="),
    ("!==", "!="),
    ("&&", "and"),
    ("||", "or"),
    ("<>", "!="),
    ("=<", "<="),
    ("=>", ">="),
    ("&", "and"),
    ("=", "=="),
];
/// Operators that the template language shares, so their parts are not separate operators.
const KNOWN: [&str; 6] = ["==", "!=", ">=", "<=", "//", "**"];

/// What a piece of a tag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    Word,
    Text,
    /// A text between curly quotes.
    CurlyText,
    Blank,
    Sign,
}

#[derive(Clone, Debug)]
pub(super) struct TagPiece {
    pub(super) kind: PieceKind,
    pub(super) span: Range<usize>,
}

/// The start of the next tag, after comments and raw text.
pub(super) fn find_opening(source: &str, mut at: usize) -> Option<usize> {
    loop {
        let start = at + source.as_bytes()[at..].windows(2).position(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))?;
        let rest = &source[start..];
        let is_raw =
            rest.strip_prefix("{%").is_some_and(|tag| tag.trim_start_matches('-').trim_start().starts_with("raw"));
        at = match rest.as_bytes()[1] {
            b'#' => start + rest.find("#}")? + 2,
            b'%' if is_raw => start + rest.find("endraw")?,
            _ => return Some(start),
        };
    }
}

/// The pieces of a tag and the position of its end. `None` if the tag is not closed.
pub(super) fn split_pieces(source: &str, begin: usize, end: &str) -> Option<(Vec<TagPiece>, usize)> {
    let (mut pieces, mut at) = (Vec::new(), begin);
    loop {
        let rest = source.get(at..)?;
        let first = rest.chars().next()?;
        if rest.starts_with(end) {
            return Some((pieces, at));
        }
        let (sort, length) = match first {
            ' ' | '\t' | '\r' | '\n' => {
                at += 1;
                continue;
            }
            '\'' | '"' | '`' => (PieceKind::Text, straight_quote_length(rest, first)?),
            '“' | '”' | '„' | '«' | '‘' | '’' | '‚' => match curly_quote_length(rest, first, end) {
                Some(length) => (PieceKind::CurlyText, length),
                None => (PieceKind::Sign, first.len_utf8()),
            },
            c if is_blank(c) => {
                let length = rest.find(|c: char| !is_blank(c)).unwrap_or(rest.len());
                (PieceKind::Blank, length)
            }
            c if c == '_' || c.is_alphanumeric() => {
                let is_inner = |c: char| c == '_' || c.is_alphanumeric();
                (PieceKind::Word, rest.find(|c: char| !is_inner(c)).unwrap_or(rest.len()))
            }
            c => {
                let long =
                    OPERATORS.iter().map(|(theirs, _)| *theirs).chain(KNOWN).filter(|sign| rest.starts_with(sign));
                (PieceKind::Sign, long.map(str::len).max().unwrap_or(c.len_utf8()))
            }
        };
        pieces.push(TagPiece { kind: sort, span: at..at + length });
        at += length;
    }
}

/// The length of a text between straight quotes.
fn straight_quote_length(rest: &str, quote: char) -> Option<usize> {
    let mut characters = rest.char_indices().skip(1);
    loop {
        match characters.next()? {
            (at, c) if c == quote => return Some(at + c.len_utf8()),
            (_, '\\') => drop(characters.next()),
            _ => {}
        }
    }
}

/// The length of a text between curly quotes that ends in its tag.
fn curly_quote_length(rest: &str, quote: char, end: &str) -> Option<usize> {
    let closing = if "‘’‚".contains(quote) { "’‘'" } else { "”“»\"" };
    let tag = &rest[..rest.find(end)?];
    let inner = tag.char_indices().skip(1);
    inner.filter(|(_, c)| closing.contains(*c)).map(|(at, c)| at + c.len_utf8()).next()
}

/// A blank that tera does not skip.
fn is_blank(c: char) -> bool {
    !c.is_ascii() && c.is_whitespace() || matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}')
}
