//! Template sources with markers that show where an empty cell reaches the output.
//!
//! Every value has two forms: the real one, and a traced one in which a marker stands for each empty cell. Conditions
//! read real values, so control flow stays that of the message. Tags print traced values. A variable that a text sets
//! has its traced value in a second variable beside it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::engine::KEEP;
use super::expression::ends_with_value;
use super::lex::{TemplateToken, TokenKind, tokenize};
use super::outline::{Outline, OutlineAction, VariableUse};

/// Gives the marker of a use if its cell is empty.
pub(super) const FILL: &str = "__fill";
/// Takes the markers over from traced values that differ from the real value by markers alone.
pub(super) const TRACE: &str = "__trace";
/// Removes markers.
pub(super) const STRIP: &str = "__strip";
/// What the name of a variable with a traced value begins with.
const TRACED: &str = "__traced_";
/// The most uses of one tag that are traced one by one; the rest of them are traced together.
const SEPARATE: usize = 16;

/// A place at which a text uses a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnUse {
    pub(super) column: usize,
    /// The column as the text names it.
    pub(super) name: String,
    /// The template's key, and the bytes of its source.
    pub(super) template: String,
    pub(super) span: Range<usize>,
}

/// Rewrites sources; the index of a use in `uses` is the number of its marker.
#[derive(Debug, Default)]
pub(super) struct Instrument<'n> {
    /// Columns by their bare names and by their headers.
    pub(super) columns: HashMap<&'n str, usize>,
    pub(super) headers: HashMap<&'n str, usize>,
    /// Names that stand for something without a text that sets them.
    pub(super) given: HashSet<String>,
    /// Names that texts set.
    pub(super) locals: HashSet<String>,
    pub(super) uses: Vec<ColumnUse>,
}

/// What stands for a use in an expression: bytes of the source.
type Replacement = (Range<usize>, String);

/// The names that a source defines by `set` or `for`.
pub fn find_defined_names(source: &str) -> impl Iterator<Item = String> {
    Outline::from_tokens(&tokenize(source)).events.into_iter().filter_map(|event| match event.what {
        OutlineAction::Define { name, .. } => Some(name),
        _ => None,
    })
}

impl Instrument<'_> {
    /// The source with markers; `template` is its key.
    pub(super) fn add_markers(&mut self, template: &str, source: &str) -> String {
        let tokens = tokenize(source);
        let (mut rest, mut rewritten, mut copied) = (tokens.as_slice(), String::new(), 0);
        // The variables of open blocks of `set`, with the word of the tag.
        let mut blocks: Vec<(&str, &str)> = Vec::new();
        while let Some(end) = rest.iter().position(|token| matches!(token.kind, TokenKind::End { .. })) {
            let (tag, after) = rest.split_at(end + 1);
            let [opening, inner @ .., closing] = tag else { break };
            let whole = opening.span.start..closing.span.end;
            let (open, close) = (&source[opening.span.clone()], &source[closing.span.clone()]);
            let uses = self.find_replacements(template, source, tag);
            let replaced = match inner {
                _ if opening.kind == TokenKind::Print => {
                    let value = opening.span.end..closing.span.start;
                    (!uses.is_empty())
                        .then(|| format!("{open} {} {close}", trace_expression(source, value, &uses, false)))
                }
                [TemplateToken { kind: TokenKind::Name(word @ ("set" | "set_global")), .. }, name, value @ ..] => {
                    let local = &source[name.span.clone()];
                    match value.first() {
                        Some(TemplateToken { kind: TokenKind::Symbol("="), span }) => {
                            let value = span.end..closing.span.start;
                            let traced = trace_expression(source, value, &uses, false);
                            let real = &source[whole.clone()];
                            Some(format!("{{% {word} {TRACED}{local} = {traced} | {KEEP} %}}{real}"))
                        }
                        _ => {
                            blocks.push((word, local));
                            let filters = &source[name.span.end..closing.span.start];
                            Some(format!("{open} {word} {TRACED}{local}{filters} | {KEEP} {close}"))
                        }
                    }
                }
                [TemplateToken { kind: TokenKind::Name("endset"), .. }, ..] => {
                    let real = |(word, local): (&str, &str)| {
                        format!("{}{{% {word} {local} = {TRACED}{local} | {STRIP} %}}", &source[whole.clone()])
                    };
                    blocks.pop().map(real)
                }
                [TemplateToken { kind: TokenKind::Name("for"), .. }, head @ ..] => {
                    trace_loop(source, whole.clone(), head, &uses)
                }
                _ => None,
            };
            if let Some(replaced) = replaced {
                rewritten.push_str(&source[copied..whole.start]);
                rewritten.push_str(&replaced);
                copied = whole.end;
            }
            rest = after;
        }
        rewritten + &source[copied..]
    }

    /// What stands for the uses of a tag whose values it passes on.
    fn find_replacements(&mut self, template: &str, source: &str, tag: &[TemplateToken<'_>]) -> Vec<Replacement> {
        let followed = find_indirect_tokens(tag);
        let mut replacements = Vec::new();
        for event in Outline::from_tokens(tag).events {
            let Some(last) = tag.iter().position(|token| token.span.end == event.span.end) else { continue };
            let Some(first) = tag.iter().position(|token| token.span.start == event.span.start) else { continue };
            if followed[first] || is_key(&tag[..first]) || has_empty_default(&tag[last + 1..]) {
                continue;
            }
            let (column, text) = match &event.what {
                OutlineAction::Use(VariableUse { name, dotted, lookup, .. }) => {
                    let (column, local) = (self.columns.get(name.as_str()), self.locals.contains(name));
                    let text = match (column, local) {
                        (None, true) if !self.given.contains(name) => format!("{TRACED}{name}"),
                        _ if *dotted || lookup.is_some() => continue,
                        (None, true) => format!("({TRACED}{name} | default(value={name}))"),
                        (Some(_), true) => {
                            format!("({TRACED}{name} | default(value=({name} | {FILL}(use={}))))", self.uses.len())
                        }
                        (Some(_), false) => format!("({name} | {FILL}(use={}))", self.uses.len()),
                        (None, false) => continue,
                    };
                    (column, text)
                }
                OutlineAction::Key { key, .. } if !self.locals.contains("recipient") => {
                    let Some(column) = self.headers.get(key.as_str()) else { continue };
                    let name = &source[event.span.clone()];
                    (Some(column), format!("({name} | {FILL}(use={}))", self.uses.len()))
                }
                _ => continue,
            };
            if let Some(&column) = column {
                let name = source[event.span.clone()].to_owned();
                let (template, span) = (template.to_owned(), event.span.clone());
                self.uses.push(ColumnUse { column, name, template, span });
            }
            replacements.push((event.span, text));
        }
        replacements
    }
}

/// An expression for the traced value of the bytes `value`; that of a loop stays a list.
fn trace_expression(source: &str, value: Range<usize>, uses: &[Replacement], list: bool) -> String {
    let real = &source[value.clone()];
    if uses.is_empty() {
        return format!("({real})");
    }
    let with = |uses: &[Replacement]| {
        let (mut text, mut copied) = (String::new(), value.start);
        for (span, replacement) in uses {
            text.push_str(&source[copied..span.start]);
            text.push_str(replacement);
            copied = span.end;
        }
        format!("({}{})", text, &source[copied..value.end])
    };
    let separate = uses.len().min(SEPARATE);
    let (one_by_one, together) = uses.split_at(separate);
    let mut forms: Vec<String> = one_by_one.chunks(1).map(with).collect();
    forms.extend((!together.is_empty()).then(|| with(together)));
    // Each alone may differ from the whole of a list: `[a, b]`.
    forms.extend((uses.len() > 1 && together.is_empty()).then(|| with(uses)));
    format!("(({real}) | {TRACE}(list={list}, forms=[{}]))", forms.join(", "))
}

/// A loop whose variable has a traced value: it goes over the traced list.
fn trace_loop(source: &str, tag: Range<usize>, head: &[TemplateToken<'_>], uses: &[Replacement]) -> Option<String> {
    let at = head.iter().position(|token| token.kind == TokenKind::Name("in"))?;
    let names: Vec<&str> = head[..at]
        .iter()
        .filter_map(|token| if let TokenKind::Name(name) = token.kind { Some(name) } else { None })
        .collect();
    let end = head.last()?.span.end;
    let start = head[at].span.end;
    match names.as_slice() {
        [name] if !uses.is_empty() => {
            let traced = trace_expression(source, start..end, uses, true);
            let close = source[end..tag.end].trim_start();
            Some(format!("{{% for {TRACED}{name} in {traced} {close}{{% set {name} = {TRACED}{name} | {STRIP} %}}"))
        }
        names => {
            let sets = names.iter().map(|name| format!("{{% set {TRACED}{name} = {name} %}}"));
            Some(format!("{}{}", &source[tag], sets.collect::<String>()))
        }
    }
}

/// For each token, whether it stands in a condition (`x if CONDITION else y`) or chooses an item (`x[KEY]`).
fn find_indirect_tokens(tag: &[TemplateToken<'_>]) -> Vec<bool> {
    let (mut open, mut asks) = (Vec::new(), (false, false));
    let mut followed = Vec::with_capacity(tag.len());
    for (at, token) in tag.iter().enumerate() {
        let (outside, condition) = asks;
        followed.push(outside || condition);
        match token.kind {
            TokenKind::Symbol("(" | "{") => {
                open.push(asks);
                asks = (outside || condition, false);
            }
            TokenKind::Symbol("[" | "?[") => {
                open.push(asks);
                asks = (outside || condition || ends_with_value(&tag[..at]), false);
            }
            TokenKind::Symbol(")" | "]" | "}") => asks = open.pop().unwrap_or(asks),
            TokenKind::Name("if") => asks.1 = true,
            TokenKind::Name("else") => asks.1 = false,
            _ => {}
        }
    }
    followed
}

/// Whether the tokens end with `key=`, so that what follows is the key of `| get(key=…)`.
fn is_key(before: &[TemplateToken<'_>]) -> bool {
    matches!(
        before,
        [.., TemplateToken { kind: TokenKind::Name("key"), .. }, TemplateToken { kind: TokenKind::Symbol("="), .. }]
    )
}

/// Whether filters follow of which one gives nothing for an empty value, as its author wrote: `default(value='', boolean=true)`.
fn has_empty_default(mut after: &[TemplateToken<'_>]) -> bool {
    while let [
        TemplateToken { kind: TokenKind::Symbol("|"), .. },
        TemplateToken { kind: TokenKind::Name(filter), .. },
        rest @ ..,
    ] = after
    {
        let mut depth = 0_usize;
        let arguments = rest.iter().take_while(|token| {
            let begins = depth == 0;
            depth += usize::from(matches!(token.kind, TokenKind::Symbol("(" | "[" | "{")));
            depth -= usize::from(matches!(token.kind, TokenKind::Symbol(")" | "]" | "}")) && depth > 0);
            !begins || token.kind == TokenKind::Symbol("(")
        });
        let (arguments, behind) = rest.split_at(arguments.count());
        let argument = |name: &str, holds: fn(&TokenKind<'_>) -> bool| {
            arguments.windows(3).any(|three| {
                three[0].kind == TokenKind::Name(name)
                    && three[1].kind == TokenKind::Symbol("=")
                    && holds(&three[2].kind)
            })
        };
        let is_blank = |kind: &TokenKind<'_>| matches!(kind, TokenKind::Text(text) if text.trim().is_empty());
        let is_true = |kind: &TokenKind<'_>| matches!(kind, TokenKind::Name("true" | "True"));
        if *filter == "default" && argument("value", is_blank) && argument("boolean", is_true) {
            return true;
        }
        after = behind;
    }
    false
}
