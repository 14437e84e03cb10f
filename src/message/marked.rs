//! Messages with the parts marked that came from the recipient's row of the list.
//!
//! Marked is what an expression of a text printed that uses a column of the list, or the row's number: directly, or
//! through a name that was set by one, or by a loop over one. What stands in a text as it is stays unmarked, also where a
//! condition on a column chose it; so does what is the same for everybody, such as the campaign's own constants.
//!
//! It is found by filling the texts once more, with a filter around each such expression. Where that changes what the text
//! says (it counts the characters of what it printed before, say), nobody can tell the parts apart, and all of it is marked.
//! This is for looking at messages; what is sent never passes here.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use tera::{Context, Kwargs, State, Tera, Value};

use super::engine::create_engine;
use super::lex::{TokenKind, tokenize};
use super::messages::{CompiledMessages, MessagePiece};
use super::outline::{Outline, OutlineAction, OutlineEvent, VariableUse};
use super::render::fill_template;
use crate::domain::{MessageContent, PlainMode, Row};

/// The filter around expressions, and what it puts around what they print: characters that stand in no text.
const MARK: &str = "__mark";
const OPEN: char = '\u{fdd0}';
const CLOSE: char = '\u{fdd1}';

/// A text that somebody gets, and which bytes of it came from their row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkedText {
    /// The text.
    pub text: String,
    /// What came from the row: ranges in their order, none of them empty.
    pub from_row: Vec<Range<usize>>,
}

/// Marks the messages of one row after another.
pub struct Marker<'m> {
    messages: &'m CompiledMessages,
    /// The texts with their filters; nothing where tera does not take them.
    tera: Option<Tera>,
    context: Context,
    buffer: Vec<u8>,
}

impl MarkedText {
    /// One that is the same for everybody.
    #[must_use]
    pub fn from_constant(text: &str) -> Self {
        Self { text: text.to_owned(), from_row: Vec::new() }
    }

    /// One of which nobody can tell the parts apart.
    fn from_row_text(text: &str) -> Self {
        let mut all = Self::from_constant("");
        all.push_piece(text, true);
        all
    }

    /// Adds a piece of the text.
    fn push_piece(&mut self, piece: &str, from_row: bool) {
        let start = self.text.len();
        self.text.push_str(piece);
        if !from_row || piece.is_empty() {
            return;
        }
        match self.from_row.last_mut() {
            Some(last) if last.end == start => last.end = self.text.len(),
            _ => self.from_row.push(start..self.text.len()),
        }
    }
}

impl MessageContent<MarkedText> {
    /// A message of which nobody asks what came from where.
    #[must_use]
    pub fn unmarked(content: &MessageContent<Cow<'_, str>>) -> Self {
        content.map_texts(|text| MarkedText::from_constant(text))
    }
}

impl CompiledMessages {
    /// Marks what came from the rows; make one for many rows.
    #[must_use]
    pub fn marker(&self) -> Marker<'_> {
        let mut tera = create_engine();
        tera.register_filter(MARK, |value: &Value, _: Kwargs, _: &State| format!("{OPEN}{value}{CLOSE}"));
        let personal = self.find_row_names();
        let marked = self.metered.iter().map(|(key, text)| (key, add_marks(&text.metered.source, &personal)));
        let tera = tera.add_raw_templates(marked).is_ok().then_some(tera);
        Marker { messages: self, tera, context: self.context.clone(), buffer: Vec::new() }
    }

    /// The names whose values come from the rows, in whatever text they are set.
    fn find_row_names(&self) -> HashSet<String> {
        let mut names = HashSet::from(["row".to_owned(), "recipient".to_owned()]);
        names.extend(self.cells.by_name.iter().map(|(_, name)| (*name).to_owned()));
        let tags: Vec<Vec<OutlineEvent>> =
            self.metered.values().flat_map(|text| split_tags(&text.metered.source)).map(|tag| tag.events).collect();
        loop {
            let known = names.len();
            for events in &tags {
                if events.iter().any(|event| uses_names(event, &names)) {
                    names.extend(events.iter().filter_map(|event| match &event.what {
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
    /// The message of a row with its marks, as it was rendered; `field` gives the cell of a column.
    pub fn mark_content<'f>(
        &mut self,
        row: Row,
        field: impl Fn(usize) -> &'f str,
        content: &MessageContent<Cow<'_, str>>,
    ) -> MessageContent<MarkedText> {
        let known = self.messages.cells.fill_context(&mut self.context, row, field).is_ok();
        // Texts are numbered in the order in which a content of the same form has them.
        let mut pieces = self.messages.texts.iter().map(|text| &text.piece);
        content.map_texts(|text| match pieces.next() {
            Some(MessagePiece::Template { key, .. }) => {
                let again = if known { self.fill_template(key) } else { None };
                again.and_then(|again| match_marks(&again, text)).unwrap_or_else(|| MarkedText::from_row_text(text))
            }
            Some(MessagePiece::Constant(_)) | None => MarkedText::from_constant(text),
        })
    }

    fn fill_template(&mut self, key: &str) -> Option<String> {
        fill_template(self.tera.as_ref()?, key, &self.context, &mut self.buffer).ok()
    }
}

/// A tag: the bytes between its braces, whether it prints, and what it does.
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
    match &event.what {
        OutlineAction::Use(VariableUse { name, .. }) => names.contains(name),
        OutlineAction::Key { .. } | OutlineAction::AnyKey => true,
        _ => false,
    }
}

/// The source with a filter around each expression that prints something of a row.
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

/// The text with its marks, if what was filled once more says the same.
fn match_marks(again: &str, text: &str) -> Option<MarkedText> {
    let pieces = split_marks(again)?;
    // What a message's author wants replaced was replaced after it was filled.
    let forms = [None].into_iter().chain(PlainMode::ALL.map(Some));
    let mut forms = forms.map(|plain| {
        let mut fitted = MarkedText::default();
        for (piece, from_row) in &pieces {
            let replaced = plain.and_then(|plain: PlainMode| plain.replace_in_text(piece));
            fitted.push_piece(replaced.as_deref().unwrap_or(piece), *from_row);
        }
        fitted
    });
    forms.find(|fitted| fitted.text == text)
}

/// The pieces between marks, and whether each came from the row; nothing where the marks do not pair.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::Stage;
    use crate::message::compile_messages;
    use crate::message::fixtures::{CELLS, compile_sms, names, sms_content};

    /// The text with `[` and `]` around what is marked.
    fn show_marks(marked: &MarkedText) -> String {
        let (mut shown, mut copied) = (String::new(), 0);
        for range in &marked.from_row {
            shown += &format!("{}[{}]", &marked.text[copied..range.start], &marked.text[range.clone()]);
            copied = range.end;
        }
        shown + &marked.text[copied..]
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
    fn inseparable_text_is_marked_whole() {
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
    fn marks_survive_replaced_characters() {
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
                // `marked_with` compares the texts.
                mark_cells(&compile_sms(source, &[]), &[CELLS[0], &name, &code, ""]);
            }
        }
    }
}
