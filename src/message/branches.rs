//! Branches of conditions that the message of a row takes, so that samples can show each of them.
//!
//! The texts are filled once more, with a marker at the beginning of each branch. Conditions read real values, so the
//! control flow stays that of the message. Blocks of `set` and `filter` get no marker, because texts can compare what they hold.

use std::collections::BTreeSet;

use tera::{Context, Tera};

use super::engine::create_engine;
use super::lex::{TemplateToken, TokenKind, tokenize};
use super::messages::{CompiledMessages, MessagePiece};
use super::render::fill_template;
use crate::domain::Row;

/// The first marker; that of a branch is its number further. They are private characters of plane 16, which stand in no text.
const FIRST_MARKER: u32 = 0x10_0000;
/// The most branches that are told apart.
const MAX_BRANCHES: u32 = u64::BITS;

/// Finds the branches that the messages of one row after another take.
pub struct BranchFinder<'m> {
    messages: &'m CompiledMessages,
    tera: Tera,
    /// The templates that tera fills.
    keys: BTreeSet<&'m str>,
    context: Context,
    buffer: Vec<u8>,
}

impl CompiledMessages {
    /// Finds branches; make one for many rows. `None` if no text has a condition.
    #[must_use]
    pub fn branch_finder(&self) -> Option<BranchFinder<'_>> {
        let keys: BTreeSet<&str> = self.texts.iter().filter_map(|text| tera_key(&text.piece)).collect();
        let mut branches = 0;
        let marked: Vec<(&String, String)> =
            self.metered.iter().map(|(key, text)| (key, add_markers(&text.metered.source, &mut branches))).collect();
        if keys.is_empty() || branches == 0 {
            return None;
        }
        let mut tera = create_engine();
        tera.add_raw_templates(marked).ok()?;
        Some(BranchFinder { messages: self, tera, keys, context: self.context.clone(), buffer: Vec::new() })
    }
}

fn tera_key(piece: &MessagePiece) -> Option<&str> {
    match piece {
        MessagePiece::Template { key, segments: None, .. } => Some(key),
        MessagePiece::Template { .. } | MessagePiece::Constant(_) => None,
    }
}

impl BranchFinder<'_> {
    /// The branches that the message of a row takes, a bit for each; `field` gives the cell of a column.
    pub fn find<'f>(&mut self, row: Row, field: impl Fn(usize) -> &'f str) -> u64 {
        if self.messages.cells.fill_context(&mut self.context, row, field).is_err() {
            return 0;
        }
        let mut taken = 0;
        for key in &self.keys {
            let text = fill_template(&self.tera, key, &self.context, &mut self.buffer).unwrap_or_default();
            let markers = text.chars().filter_map(|character| u32::from(character).checked_sub(FIRST_MARKER));
            taken |= markers.filter(|number| *number < MAX_BRANCHES).fold(0, |taken, number| taken | 1 << number);
        }
        taken
    }
}

/// The source with a marker behind each tag that begins a branch; `number` is that of the next one.
fn add_markers(source: &str, number: &mut u32) -> String {
    let tokens = tokenize(source);
    let (mut rest, mut marked, mut copied, mut held) = (tokens.as_slice(), String::new(), 0, 0_usize);
    while let Some(end) = rest.iter().position(|token| matches!(token.kind, TokenKind::End { .. })) {
        let (tag, after) = rest.split_at(end + 1);
        rest = after;
        let [
            TemplateToken { kind: TokenKind::Tag, .. },
            TemplateToken { kind: TokenKind::Name(word), .. },
            inner @ ..,
            closing,
        ] = tag
        else {
            continue;
        };
        let has_value = inner.iter().any(|token| token.kind == TokenKind::Symbol("="));
        match *word {
            "set" | "set_global" if !has_value => held += 1,
            "filter" => held += 1,
            "endset" | "endfilter" => held = held.saturating_sub(1),
            "if" | "elif" | "else" if held == 0 && *number < MAX_BRANCHES => {
                marked.push_str(&source[copied..closing.span.end]);
                copied = closing.span.end;
                marked.extend(char::from_u32(FIRST_MARKER + *number));
                *number += 1;
            }
            _ => {}
        }
    }
    marked + &source[copied..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::fixtures::{CELLS, compile_sms};

    #[test]
    fn branch_finder_tells_rows_apart() {
        for (source, b_is_like_c) in [
            ("{% if code == 'a' %}one{% elif code == 'b' -%} two{% else %}more{% endif %}", false),
            ("Hi{% if code == 'a' %}, {{ code }}{% endif %}", true),
            ("{% for c in 'xy' | split(pat='') %}{% if code == 'a' %}{{ c }}{% endif %}{% endfor %}!", true),
            ("{% set a %}{% if code == 'a' %}1{% endif %}{% endset %}{% if a == '1' %}x{% endif %}!", true),
        ] {
            let compiled = compile_sms(source, &[]);
            let mut finder = compiled.branch_finder().unwrap_or_else(|| panic!("{source}"));
            let mut of =
                |code: &'static str| finder.find(Row::new(2), |column| if column == 2 { code } else { CELLS[column] });
            let (a, b, c) = (of("a"), of("b"), of("c"));
            assert!(a != b && a != c && (b == c) == b_is_like_c, "{source}: {a:b} {b:b} {c:b}");
        }
    }

    #[test]
    fn text_without_conditions_has_no_branches() {
        for source in ["Hello", "{{ code }}", "{% set x = code %}{{ x | upper }}"] {
            assert!(compile_sms(source, &[]).branch_finder().is_none(), "{source}");
        }
    }
}
