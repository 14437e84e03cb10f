//! Branches of conditions that the message of a row takes, so that samples can show each of them.
//!
//! The texts are filled once more, with a marker at the beginning of each branch. Conditions read real values, so the
//! control flow stays that of the message. Blocks of `set` and `filter` get no marker, because texts can compare what they hold.

use std::collections::BTreeSet;

use tera::{Context, Tera};

use super::engine::engine;
use super::lex::{Kind, Token, tokens};
use super::messages::{Messages, Piece};
use super::render::fill;
use crate::domain::Row;

/// The first marker; that of a branch is its number further. They are private characters of plane 16, which stand in no text.
const FIRST: u32 = 0x10_0000;
/// The most branches that are told apart.
const MOST: u32 = u64::BITS;

/// Finds the branches that the messages of one row after another take.
pub struct BranchFinder<'m> {
    messages: &'m Messages,
    tera: Tera,
    /// The templates that tera fills.
    keys: BTreeSet<&'m str>,
    context: Context,
    buffer: Vec<u8>,
}

impl Messages {
    /// Finds branches; make one for many rows. `None` if no text has a condition.
    #[must_use]
    pub fn branch_finder(&self) -> Option<BranchFinder<'_>> {
        let keys: BTreeSet<&str> = self.texts.iter().filter_map(|text| filled_by_tera(&text.piece)).collect();
        let mut branches = 0;
        let marked: Vec<(&String, String)> =
            self.metered.iter().map(|(key, text)| (key, with_markers(&text.metered.source, &mut branches))).collect();
        if keys.is_empty() || branches == 0 {
            return None;
        }
        let mut tera = engine();
        tera.add_raw_templates(marked).ok()?;
        Some(BranchFinder { messages: self, tera, keys, context: self.context.clone(), buffer: Vec::new() })
    }
}

fn filled_by_tera(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Template { key, segments: None, .. } => Some(key),
        Piece::Template { .. } | Piece::Constant(_) => None,
    }
}

impl BranchFinder<'_> {
    /// The branches that the message of a row takes, a bit for each; `field` gives the cell of a column.
    pub fn find<'f>(&mut self, row: Row, field: impl Fn(usize) -> &'f str) -> u64 {
        if self.messages.cells.bring(&mut self.context, row, field).is_err() {
            return 0;
        }
        let mut taken = 0;
        for key in &self.keys {
            let text = fill(&self.tera, key, &self.context, &mut self.buffer).unwrap_or_default();
            let markers = text.chars().filter_map(|character| u32::from(character).checked_sub(FIRST));
            taken |= markers.filter(|number| *number < MOST).fold(0, |taken, number| taken | 1 << number);
        }
        taken
    }
}

/// The source with a marker behind each tag that begins a branch; `number` is that of the next one.
fn with_markers(source: &str, number: &mut u32) -> String {
    let tokens = tokens(source);
    let (mut rest, mut marked, mut copied, mut held) = (tokens.as_slice(), String::new(), 0, 0_usize);
    while let Some(end) = rest.iter().position(|token| matches!(token.kind, Kind::End { .. })) {
        let (tag, after) = rest.split_at(end + 1);
        rest = after;
        let [Token { kind: Kind::Tag, .. }, Token { kind: Kind::Name(word), .. }, inner @ .., closing] = tag else {
            continue;
        };
        let has_value = inner.iter().any(|token| token.kind == Kind::Symbol("="));
        match *word {
            "set" | "set_global" if !has_value => held += 1,
            "filter" => held += 1,
            "endset" | "endfilter" => held = held.saturating_sub(1),
            "if" | "elif" | "else" if held == 0 && *number < MOST => {
                marked.push_str(&source[copied..closing.span.end]);
                copied = closing.span.end;
                marked.extend(char::from_u32(FIRST + *number));
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
    use crate::message::fixtures::{CELLS, messages};

    #[test]
    fn branch_finder_tells_rows_apart_by_their_branches() {
        for (source, b_is_like_c) in [
            ("{% if code == 'a' %}one{% elif code == 'b' -%} two{% else %}more{% endif %}", false),
            ("Hi{% if code == 'a' %}, {{ code }}{% endif %}", true),
            ("{% for c in 'xy' | split(pat='') %}{% if code == 'a' %}{{ c }}{% endif %}{% endfor %}!", true),
            ("{% set a %}{% if code == 'a' %}1{% endif %}{% endset %}{% if a == '1' %}x{% endif %}!", true),
        ] {
            let compiled = messages(source, &[]);
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
            assert!(messages(source, &[]).branch_finder().is_none(), "{source}");
        }
    }
}
