//! Parts of a message that came from the recipient's row, and the template branches that were taken.
//!
//! A part is marked if the expression that printed it uses a column of the list or the row number, even through
//! variables or loops. Constant text stays unmarked, even if a condition on a column selected it. The campaign's
//! constants stay unmarked, too.
//!
//! The texts are rendered again, with a filter around each such expression, or with a marker at the beginning of each
//! branch. If this changes the text (for example, because the template counts characters), the parts cannot be told
//! apart and the whole text is marked. Blocks of `set` and `filter` get no branch marker, because texts can compare
//! their content. This module is only for viewing messages; messages to be sent never pass through it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use tera::{Context, Kwargs, State, Tera, Value};

use super::engine::create_engine;
use super::outline::{Outline, OutlineAction, OutlineEvent, VariableUse};
use super::render::{CompiledMessages, MessagePiece, fill_template};
use super::tokens::{TemplateToken, TokenKind, tokenize};
use campaign_core::domain::{MessageContent, PlainMode, Row};

/// The filter that puts [`OPEN`] and [`CLOSE`] around the output of an expression.
const MARK: &str = "__mark";
/// The beginning of a marked part. No text contains this noncharacter.
const OPEN: char = '\u{fdd0}';
/// The end of a marked part. No text contains this noncharacter.
const CLOSE: char = '\u{fdd1}';

/// A text of a recipient, with the bytes that came from the row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedText {
    /// The text without marks, as the recipient gets it.
    pub text: String,
    /// The ranges that came from the row, in order and never empty.
    pub from_row: Vec<Range<usize>>,
}

/// Marks the messages of many rows.
pub struct Marker<'m> {
    messages: &'m CompiledMessages,
    /// The texts with their filters. `None` if tera rejects them.
    tera: Option<Tera>,
    context: Context,
    buffer: Vec<u8>,
}

impl MarkedText {
    /// A text that is the same for all recipients.
    pub(crate) fn from_constant(text: &str) -> Self {
        Self { text: text.to_owned(), from_row: Vec::new() }
    }

    /// A text that is marked as a whole, because its parts cannot be distinguished.
    fn from_row_text(text: &str) -> Self {
        let mut marked = Self::from_constant("");
        marked.push_piece(text, true);
        marked
    }

    /// Appends a piece of text, and records whether the piece comes from the row.
    fn push_piece(&mut self, piece: &str, is_from_row: bool) {
        let start = self.text.len();
        self.text.push_str(piece);
        if !is_from_row || piece.is_empty() {
            return;
        }
        match self.from_row.last_mut() {
            Some(last) if last.end == start => last.end = self.text.len(),
            _ => self.from_row.push(start..self.text.len()),
        }
    }
}

impl CompiledMessages {
    /// Creates a marker that can be used for many rows.
    pub fn marker(&self) -> Marker<'_> {
        let mut tera = create_engine();
        tera.register_filter(MARK, |value: &Value, _: Kwargs, _: &State| format!("{OPEN}{value}{CLOSE}"));
        let personal = self.find_row_names();
        let marked = self.metered.iter().map(|(key, text)| (key, add_marks(&text.metered.source, &personal)));
        let tera = tera.add_raw_templates(marked).is_ok().then_some(tera);
        Marker { messages: self, tera, context: self.context.clone(), buffer: Vec::new() }
    }

    /// The names whose values come from the row, including names that any text sets from such values.
    fn find_row_names(&self) -> HashSet<String> {
        let mut names = HashSet::from(["row".to_owned(), "recipient".to_owned()]);
        names.extend(self.cells.by_name.iter().map(|(_, name)| (*name).to_owned()));
        let tags: Vec<Vec<OutlineEvent>> =
            self.metered.values().flat_map(|text| split_tags(&text.metered.source)).map(|tag| tag.events).collect();
        loop {
            let known = names.len();
            for events in &tags {
                if events.iter().any(|event| uses_names(event, &names)) {
                    names.extend(events.iter().filter_map(|event| match &event.action {
                        OutlineAction::Define { name, .. } => Some(name.clone()),
                        _ => None,
                    }));
                }
            }
            if names.len() == known {
                return names;
            }
        }
    }
}

impl Marker<'_> {
    /// Marks the parts of a row's rendered message that come from the row. `field` returns the cell of a column.
    pub fn mark_content<'f>(
        &mut self,
        row: Row,
        field: impl Fn(usize) -> &'f str,
        content: &MessageContent<Cow<'_, str>>,
    ) -> MessageContent<MarkedText> {
        let is_filled = self.messages.cells.fill_context(&mut self.context, row, field).is_ok();
        // The pieces are in the order in which `map_texts` visits the texts.
        let mut pieces = self.messages.texts.iter().map(|text| &text.piece);
        content.map_texts(|text| match pieces.next() {
            Some(MessagePiece::Template { key, .. }) => {
                let marked = if is_filled { self.fill_template(key) } else { None };
                let marked = marked.and_then(|marked| match_marks(&marked, text));
                marked.unwrap_or_else(|| MarkedText::from_row_text(text))
            }
            Some(MessagePiece::Constant(_)) | None => MarkedText::from_constant(text),
        })
    }

    fn fill_template(&mut self, key: &str) -> Option<String> {
        fill_template(self.tera.as_ref()?, key, &self.context, &mut self.buffer).ok()
    }
}

/// A tag: its bytes between the braces, whether it prints, and its events.
struct SourceTag {
    inner: Range<usize>,
    prints: bool,
    events: Vec<OutlineEvent>,
}

fn split_tags(source: &str) -> Vec<SourceTag> {
    let tokens = tokenize(source);
    let mut rest = tokens.as_slice();
    let mut tags = Vec::new();
    while let Some(end) = rest.iter().position(|token| matches!(token.kind, TokenKind::End { .. })) {
        let (tag, after) = rest.split_at(end + 1);
        let (opening, closing) = (&tag[0], &tag[end]);
        tags.push(SourceTag {
            inner: opening.span.end..closing.span.start,
            prints: opening.kind == TokenKind::Print,
            events: Outline::from_tokens(tag).events,
        });
        rest = after;
    }
    tags
}

fn uses_names(event: &OutlineEvent, names: &HashSet<String>) -> bool {
    match &event.action {
        OutlineAction::Use(VariableUse { name, .. }) => names.contains(name),
        OutlineAction::Key { .. } | OutlineAction::AnyKey => true,
        _ => false,
    }
}

/// Puts a marking filter around each expression that prints row data.
fn add_marks(source: &str, names: &HashSet<String>) -> String {
    let (mut marked, mut copied) = (String::with_capacity(source.len()), 0);
    for SourceTag { inner, prints, events } in split_tags(source) {
        if prints && events.iter().any(|event| uses_names(event, names)) {
            marked.push_str(&source[copied..inner.start]);
            marked.push_str(&format!("({})|{MARK}", &source[inner.clone()]));
            copied = inner.end;
        }
    }
    marked + &source[copied..]
}

/// Parses a rendering with marks. `None` if it differs from `text` in more than the marks and the replacements that the
/// author requested.
fn match_marks(marked: &str, text: &str) -> Option<MarkedText> {
    let pieces = split_marks(marked)?;
    // Replacements that the author requested are made after rendering.
    let forms = [None].into_iter().chain(PlainMode::ALL.map(Some));
    let mut forms = forms.map(|plain| {
        let mut fitted = MarkedText::default();
        for (piece, is_from_row) in &pieces {
            let replaced = plain.and_then(|plain: PlainMode| plain.replace_in_text(piece));
            fitted.push_piece(replaced.as_deref().unwrap_or(piece), *is_from_row);
        }
        fitted
    });
    forms.find(|fitted| fitted.text == text)
}

/// The pieces between marks, and whether each piece comes from the row. `None` if the marks are not balanced.
fn split_marks(marked: &str) -> Option<Vec<(&str, bool)>> {
    let (mut pieces, mut depth, mut begin) = (Vec::new(), 0_usize, 0);
    for (at, mark) in marked.match_indices([OPEN, CLOSE]) {
        pieces.push((&marked[begin..at], depth > 0));
        begin = at + mark.len();
        depth = if mark.starts_with(OPEN) { depth + 1 } else { depth.checked_sub(1)? };
    }
    pieces.push((&marked[begin..], false));
    (depth == 0).then_some(pieces)
}

/// The first marker; each branch adds its number. Markers are private characters of plane 16, which no text contains.
const FIRST_MARKER: u32 = 0x10_0000;
/// The maximum number of branches that are distinguished.
const MAX_BRANCHES: u32 = u64::BITS;

/// Finds the branches that the message of each row takes.
pub struct BranchFinder<'m> {
    messages: &'m CompiledMessages,
    tera: Tera,
    /// The templates that tera fills.
    keys: BTreeSet<&'m str>,
    context: Context,
    buffer: Vec<u8>,
}

impl CompiledMessages {
    /// Creates a finder that can be used for many rows. `None` if no text has a branch to mark, or if tera rejects the
    /// marked texts.
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
    /// The branches that the message for a row takes, one bit each; 0 if the row has a cell that is too long. `field`
    /// returns the cell of a column.
    pub fn find<'f>(&mut self, row: Row, field: impl Fn(usize) -> &'f str) -> u64 {
        if self.messages.cells.fill_context(&mut self.context, row, field).is_err() {
            return 0;
        }
        let mut branches = 0;
        for key in &self.keys {
            let text = fill_template(&self.tera, key, &self.context, &mut self.buffer).unwrap_or_default();
            let markers = text.chars().filter_map(|character| u32::from(character).checked_sub(FIRST_MARKER));
            branches |= markers.filter(|number| *number < MAX_BRANCHES).fold(0, |bits, number| bits | 1 << number);
        }
        branches
    }
}

/// Adds a marker after each tag that begins a branch. `number` is the number of the next branch.
fn add_markers(source: &str, number: &mut u32) -> String {
    let tokens = tokenize(source);
    let (mut rest, mut marked, mut copied, mut open_blocks) = (tokens.as_slice(), String::new(), 0, 0_usize);
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
            "set" | "set_global" if !has_value => open_blocks += 1,
            "filter" => open_blocks += 1,
            "endset" | "endfilter" => open_blocks = open_blocks.saturating_sub(1),
            "if" | "elif" | "else" if open_blocks == 0 && *number < MAX_BRANCHES => {
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
mod mark_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::compile_messages;
    use crate::message::tests::{CELLS, compile_sms, names, sms_content};
    use campaign_core::domain::Stage;

    /// The text with `[` and `]` around marked parts.
    fn show_marks(marked: &MarkedText) -> String {
        let (mut output, mut copied) = (String::new(), 0);
        for range in &marked.from_row {
            output += &format!("{}[{}]", &marked.text[copied..range.start], &marked.text[range.clone()]);
            copied = range.end;
        }
        output + &marked.text[copied..]
    }

    fn mark_cells(messages: &CompiledMessages, cells: &[&str]) -> Option<String> {
        let mut renderer = messages.renderer();
        let content = renderer.render(Row::new(7), |column| cells[column]).ok()?.content();
        let marked = messages.marker().mark_content(Row::new(7), |column| cells[column], &content);
        match (&marked.stages[0], &content.stages[0]) {
            (Stage::Sms(marked), Stage::Sms(sent)) => {
                assert_eq!(marked.message.text, sent.message);
                assert_eq!(show_marks(&marked.signature), "Olena");
                Some(show_marks(&marked.message))
            }
            other => panic!("{other:?}"),
        }
    }

    fn mark_source(source: &str, texts: &[(&str, &str)]) -> String {
        mark_cells(&compile_sms(source, texts), &CELLS).unwrap()
    }

    #[test]
    fn only_text_from_columns_is_marked() {
        let table = [
            ("plain", "plain"),
            ("Hi {{ first_name }}, {{ shop }} {{ today }} {{ campaign }}", "Hi [Оля], Olena & Co 2026-11-21 autumn"),
            ("{{ first_name | upper }}!{{ shop | upper }}", "[ОЛЯ]!OLENA & CO"),
            ("{{ recipient[\"Ім'я\"] }} {{ recipient.code }} {{ row }}", "[Оля] [<A&B>] [7]"),
            ("{% if first_name == 'Оля' %}Olia{% else %}you{% endif %}", "Olia"),
            ("{% if first_name %}{{ first_name }}{% else %}friend{% endif %}", "[Оля]"),
            ("{{ 'dear' if Note else first_name }}", "[Оля]"),
            ("{% set n = first_name | lower %}{% set m = n ~ '!' %}{{ m }} {{ shop }}", "[оля!] Olena & Co"),
            ("{% set s = shop %}{{ s }}", "Olena & Co"),
            ("{% set a %}<{{ code }}>{% endset %}{{ a }} {{ a | lower }}", "<[<A&B>]> <[<a&b>]>"),
            ("{% filter upper %}hi {{ first_name }}{% endfilter %}", "HI [ОЛЯ]"),
            ("{% for c in code | split(pat='&') %}{{ c }}{{ loop.index }} {% endfor %}", "[<A]1 [B>]2 "),
            ("{% for n in range(end=2) %}{{ n }}{{ first_name -}} {% endfor %}", "0[Оля]1[Оля]"),
            ("a {{- first_name -}} b", "a[Оля]b"),
            ("{{ Note }}{{ Note | default(value='friend', boolean=true) }}", "[friend]"),
            ("{{ {'<A&B>': 'gold'} | get(key=code) }}", "[gold]"),
            ("{{ first_name }}{{ code }}", "[Оля<A&B>]"),
            ("{% raw %}{{ x }}{% endraw %}{# {{ first_name }} #}", "{{ x }}"),
        ];
        for (source, expected) in table {
            assert_eq!(mark_source(source, &[]), expected, "{source}");
        }
    }

    #[test]
    fn included_and_extended_texts_are_marked() {
        let texts = [
            ("footer.txt", "-- {{ shop }} {{ first_name }}{% if k is defined %} {{ k }}{% endif %}"),
            ("base.txt", "Hi {% block body %}all{% endblock %}"),
        ];
        assert_eq!(mark_source("{% set k = code %}{% include 'footer.txt' %}", &texts), "-- Olena & Co [Оля] [<A&B>]");
        let child = "{% extends 'base.txt' %}{% block body %}{{ code }} {{ super() }}{% endblock %}";
        assert_eq!(mark_source(child, &texts), "Hi [<A&B>] all");
    }

    #[test]
    fn inseparable_text_is_marked_as_a_whole() {
        let table = [
            ("{% set a %}{{ code }}{% endset %}Hi {{ a | length }}", "[Hi 5]"),
            ("{% set a %}{{ code }}{% endset %}{% if a == '<A&B>' %}yes{% else %}no{% endif %}", "[yes]"),
        ];
        for (source, expected) in table {
            assert_eq!(mark_source(source, &[]), expected, "{source}");
        }
        let cells = [CELLS[0], "x\u{fdd1}y\u{fdd0}", CELLS[2], CELLS[3]];
        assert_eq!(mark_cells(&compile_sms("Hi {{ first_name }}", &[]), &cells).unwrap(), "[Hi x\u{fdd1}y\u{fdd0}]");
    }

    #[test]
    fn marks_survive_the_replacement_of_characters() {
        for (plain, expected) in
            [(PlainMode::Latin, "Pryvit, [Olia] - \"tak\""), (PlainMode::Quotes, "Привіт, [Оля] - \"так\"")]
        {
            let mut content = sms_content("Olena", "Привіт, {{ first_name }} — «так»");
            if let Stage::Sms(sms) = &mut content.stages[0] {
                sms.plain = Some(plain);
            }
            let messages = compile_messages(&content, &names(), &mut |_: &str| Err(String::new())).unwrap();
            assert_eq!(mark_cells(&messages, &CELLS).unwrap(), expected);
        }
    }

    proptest! {
        #[test]
        fn marked_text_equals_the_sent_text(
            name in any::<String>(), code in "[\u{fdd0}\u{fdd1}a-c{}%]{0,8}",
        ) {
            for source in ["Hi {{ first_name }}{{ code }}!", "{% set a %}{{ code | upper }}{% endset %}x{{ a ~ first_name }}"] {
                // `mark_cells` asserts that the marked text equals the sent text.
                mark_cells(&compile_sms(source, &[]), &[CELLS[0], &name, &code, ""]);
            }
        }
    }
}

#[cfg(test)]
mod branches_tests {
    use super::*;
    use crate::message::tests::{CELLS, compile_sms};

    #[test]
    fn branch_finder_distinguishes_rows() {
        for (source, b_is_like_c) in [
            ("{% if code == 'a' %}one{% elif code == 'b' -%} two{% else %}more{% endif %}", false),
            ("Hi{% if code == 'a' %}, {{ code }}{% endif %}", true),
            ("{% for c in 'xy' | split(pat='') %}{% if code == 'a' %}{{ c }}{% endif %}{% endfor %}!", true),
            ("{% set a %}{% if code == 'a' %}1{% endif %}{% endset %}{% if a == '1' %}x{% endif %}!", true),
        ] {
            let compiled = compile_sms(source, &[]);
            let mut finder = compiled.branch_finder().unwrap_or_else(|| panic!("{source}"));
            let mut branches =
                |code: &'static str| finder.find(Row::new(2), |column| if column == 2 { code } else { CELLS[column] });
            let (a, b, c) = (branches("a"), branches("b"), branches("c"));
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
