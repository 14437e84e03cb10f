//! Uses of empty cells that a message shows: holes such as "Hello, !".
//!
//! A condition protects the uses inside it and no other. Whether it does is not read from the condition: the texts of a
//! row with an empty cell are filled once more, by the same engine and with the same control flow, with a marker where
//! an empty cell is used (see `instrument`). A marker in the output is a hole. So branches, loops, `set`, `include`,
//! `extends`, filters and conditions of any form need no rules of their own, and `default(value='…')` without
//! `boolean=true`, which keeps an empty cell, shows its hole.
//!
//! A use whose value only decides something (a condition, the key of a table) shows nothing. An author who writes
//! `{{ a if a else "" }}` or `default(value='', boolean=true)` wants nothing there. A text that cannot be filled with
//! markers has no holes; rows without a message never come here.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tera::{Context, Kwargs, State, Tera, TeraResult, Value};

use super::engine::create_engine;
use super::instrument::{ColumnUse, FILL, Instrument, STRIP, TRACE, find_defined_names};
use super::messages::{CompiledMessages, MessagePiece};
use super::render::fill_template;
use crate::domain::variable::ROW_VARIABLES;
use crate::domain::{Channel, NamedTemplate, Row};

/// The first marker; that of a use is its number further. They are private characters of plane 16, which stand in no text.
const FIRST_MARKER: u32 = 0x10_0000;
/// The most uses that have a marker.
const MAX_USES: usize = 0xfffd;

/// A use of an empty cell in a text of a message, by the numbers of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EmptyCellUse {
    /// The text, counted from 0.
    text: usize,
    /// The use, counted from 0 over all texts.
    number: usize,
}

/// Where a text uses an empty cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyCellPlace {
    /// The column, as the text names it.
    pub name: String,
    /// The channel of the message that has the hole.
    pub channel: Channel,
    /// The key of its text, such as `message`.
    pub key: &'static str,
    /// The text that uses the column: that of the channel, or one that it includes.
    pub text: NamedTemplate,
    /// The bytes of it.
    pub span: std::ops::Range<usize>,
}

/// Finds the empty cells that the messages of one row after another show.
pub struct EmptyCellFinder<'m> {
    messages: &'m CompiledMessages,
    /// The texts with markers; nothing if tera refuses them.
    tera: Option<Tera>,
    uses: Vec<ColumnUse>,
    columns: BTreeSet<usize>,
    context: Context,
    buffer: Vec<u8>,
}

impl CompiledMessages {
    /// Finds empty cells; make one for many rows.
    #[must_use]
    pub fn empty_cell_finder(&self) -> EmptyCellFinder<'_> {
        let headers = self.cells.by_header.iter();
        let locals: HashSet<String> =
            self.metered.values().flat_map(|text| find_defined_names(&text.text.source)).collect();
        let given =
            locals.iter().filter(|name| self.context.contains_key(name) || ROW_VARIABLES.contains(&name.as_str()));
        let mut instrument = Instrument {
            columns: self.cells.by_name.iter().map(|(column, name)| (*name, *column)).collect(),
            headers: headers.filter_map(|(column, header)| Some((header.as_str()?, *column))).collect(),
            given: given.cloned().collect(),
            locals,
            uses: Vec::new(),
        };
        let sources: Vec<(&String, String)> =
            self.metered.iter().map(|(key, text)| (key, instrument.add_markers(key, &text.text.source))).collect();
        let uses = instrument.uses;
        let mut tera = create_engine();
        tera.register_filter(FILL, mark_if_empty);
        tera.register_filter(TRACE, trace_markers);
        tera.register_filter(STRIP, |value: &Value, _: Kwargs, _: &State| strip_markers(value));
        let read = tera.add_raw_templates(sources);
        if let Err(error) = &read {
            tracing::debug!("cannot trace empty cells in these templates: {error}");
        }
        let tera = (read.is_ok() && uses.len() <= MAX_USES).then_some(tera);
        let columns = uses.iter().map(|of| of.column).collect();
        EmptyCellFinder { messages: self, tera, uses, columns, context: self.context.clone(), buffer: Vec::new() }
    }
}

impl EmptyCellFinder<'_> {
    /// The uses of empty cells that the message of a row shows; `field` gives the cell of a column.
    pub fn find<'f>(&mut self, row: Row, field: impl Fn(usize) -> &'f str) -> Vec<EmptyCellUse> {
        let is_empty = |column: usize| field(column).trim().is_empty();
        if !self.columns.iter().any(|&column| is_empty(column)) {
            return Vec::new();
        }
        let mut filled: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        let mut known = None;
        let mut found = Vec::new();
        for (text, of) in self.messages.texts.iter().enumerate() {
            let MessagePiece::Template { key, segments, .. } = &of.piece else { continue };
            let numbers = filled.entry(key).or_insert_with(|| match segments {
                // Words and names alone: every name is shown.
                Some(_) => (0..self.uses.len()).filter(|&number| self.uses[number].template == *key).collect(),
                None => {
                    let context = &mut self.context;
                    let known =
                        *known.get_or_insert_with(|| self.messages.cells.fill_context(context, row, &field).is_ok());
                    let tera = self.tera.as_ref().filter(|_| known);
                    let shown = tera.and_then(|tera| fill_template(tera, key, context, &mut self.buffer).ok());
                    shown.map(|shown| shown.chars().filter_map(marker_number).collect()).unwrap_or_default()
                }
            });
            let shown = numbers.iter().filter(|&&number| self.uses.get(number).is_some_and(|of| is_empty(of.column)));
            found.extend(shown.map(|&number| EmptyCellUse { text, number }));
        }
        found
    }

    /// Where a use stands.
    #[must_use]
    pub fn find_place(&self, EmptyCellUse { text, number }: EmptyCellUse) -> Option<EmptyCellPlace> {
        let (of, ColumnUse { name, template, span, .. }) = (self.messages.texts.get(text)?, self.uses.get(number)?);
        let mut source = self.messages.metered.get(template)?.text.clone();
        // Texts that say the same are one template, and each has its own name.
        if let MessagePiece::Template { key, name, .. } = &of.piece
            && key == template
        {
            source.name.clone_from(name);
        }
        let channel = self.messages.content.stages.get(of.stage)?.channel();
        Some(EmptyCellPlace { name: name.clone(), channel, key: of.field.key, text: source, span: span.clone() })
    }
}

fn marker(number: usize) -> Option<char> {
    char::from_u32(FIRST_MARKER + u32::try_from(number).ok()?)
}

fn marker_number(character: char) -> Option<usize> {
    usize::try_from(u32::from(character).checked_sub(FIRST_MARKER)?).ok()
}

/// The value, or the marker of the use if it is empty.
fn mark_if_empty(value: &Value, kwargs: Kwargs, _: &State) -> TeraResult<Value> {
    let number: usize = kwargs.must_get("use")?;
    let is_empty = value.as_str().is_some_and(|text| text.trim().is_empty());
    let marker = marker(number).filter(|_| is_empty);
    Ok(marker.map_or_else(|| value.clone(), |marker| Value::from(marker.to_string())))
}

/// The real value with the markers of its traced forms, of those that say the same otherwise.
fn trace_markers(real: &Value, kwargs: Kwargs, _: &State) -> TeraResult<Value> {
    let forms: &[Value] = kwargs.must_get("forms")?;
    let mut shown = String::new();
    write_value(real, &mut shown);
    let real_words = plain_words(&shown);
    let list = kwargs.get("list")?.unwrap_or(false);
    if list && real.as_array().is_none() {
        return Ok(real.clone());
    }
    let (mut markers, mut marked, mut most) = (BTreeSet::new(), real, 0);
    for form in forms {
        let mut shown = String::new();
        write_value(form, &mut shown);
        if plain_words(&shown) == real_words {
            let own: BTreeSet<char> = shown.chars().filter(|&character| marker_number(character).is_some()).collect();
            (marked, most) = if own.len() > most { (form, own.len()) } else { (marked, most) };
            markers.extend(own);
        }
    }
    Ok(match real.as_str() {
        Some(text) => Value::from(text.chars().chain(markers).collect::<String>()),
        None => marked.clone(),
    })
}

/// Writes what a value says; other than tera's own writing, it leaves markers in lists as they are.
fn write_value(value: &Value, text: &mut String) {
    if let Some(items) = value.as_array() {
        items.iter().for_each(|item| {
            write_value(item, text);
            text.push('\0');
        });
    } else if let Some(entries) = value.as_map() {
        for (key, item) in entries {
            text.push_str(key.as_str().unwrap_or_default());
            text.push('\0');
            write_value(item, text);
        }
    } else if let Some(own) = value.as_str() {
        text.push_str(own);
    } else {
        text.push_str(&value.to_string());
    }
}

/// What a text says without markers and white space.
fn plain_words(text: &str) -> String {
    text.chars().filter(|character| marker_number(*character).is_none() && !character.is_whitespace()).collect()
}

fn strip_markers(value: &Value) -> Value {
    match value.as_str() {
        Some(text) => {
            Value::from(text.chars().filter(|&character| marker_number(character).is_none()).collect::<String>())
        }
        None => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ExtraProperties, MessageContent, OperationKind, Stage, Telegram};
    use crate::message::compile_messages;
    use crate::message::fixtures::{CELLS, compile_sms, names, sms_content};

    /// The uses of empty cells that a message shows: the text, the byte and the name.
    fn shown_uses(messages: &CompiledMessages, cells: [&str; 4]) -> Vec<(String, usize, String)> {
        let row = Row::new(7);
        assert!(messages.renderer().render(row, |column| cells[column]).is_ok(), "a row without a message");
        let mut finder = messages.empty_cell_finder();
        let found = finder.find(row, |column| cells[column]);
        let places = found.into_iter().filter_map(|of| finder.find_place(of));
        places.map(|place| (place.text.name, place.span.start, place.name)).collect()
    }

    /// Where an SMS of this source shows `Note`, which is empty: the bytes behind `^` in the source.
    fn check(source: &str, texts: &[(&str, &str)]) {
        let plain = source.replace('^', "");
        let marks = source.match_indices('^').enumerate().map(|(before, (at, _))| at - before);
        let found = shown_uses(&compile_sms(&plain, texts), CELLS);
        assert_eq!(found.iter().map(|(_, at, _)| *at).collect::<Vec<_>>(), marks.collect::<Vec<_>>(), "{source}");
    }

    #[test]
    fn condition_protects_only_uses_inside_it() {
        for source in [
            "Hi {{ ^Note }}",
            "x{{ ^Note }} {% if Note %}{{ Note }}{% endif %} {{ ^Note }}",
            "x{% if Note %}{{ Note }}{% endif %}",
            "{% if Note %}a{% else %}b{{ ^Note }}{% endif %}",
            "{% if not Note %}b{{ ^Note }}{% else %}{{ Note }}{% endif %}",
            "{% if Note == '' %}b{{ ^Note }}{% else %}{{ Note }}{% endif %}",
            "x{% if Note != '' %}{{ Note }}{% endif %}",
            "x{% if Note and code %}{{ Note }}{{ code }}{% endif %}",
            "x{% if Note or code %}{{ ^Note }}{{ code }}{% endif %}",
            "x{% if Note | length > 0 %}{{ Note }}{% endif %}",
            "x{% if Note | trim | upper == 'A' %}{{ Note }}{% elif code %}{{ ^Note }}{% else %}{{ Note }}{% endif %}",
            "x{% if code %}{% if Note %}{{ Note }}{% else %}{{ ^Note }}{% endif %}{% endif %}",
            "x{% if code %}{{ ^Note }}{% endif %}",
            "x{% if code is containing(pat='zz') %}{{ Note }}{% endif %}",
            "x{% if Note is defined %}{{ ^Note }}{% endif %}",
            "x{{ ^recipient['Note'] }}{% if recipient.Note %}{{ recipient.Note }}{% endif %}",
            "x{{ recipient?.gone | default(value='y') }}",
        ] {
            check(source, &[]);
        }
    }

    #[test]
    fn expression_shows_an_empty_cell_unless_replaced() {
        for source in [
            "{{ Note | default(value='friend', boolean=true) }}",
            "x{{ Note | default(value='', boolean=true) }}",
            "x{{ Note | trim | default(value='', boolean=true) }}",
            "{{ Note | trim | default(value='friend', boolean=true) | upper }}",
            "x{{ ^Note | default(value='friend') }}",
            "x{{ ^Note | default(value=code) }}",
            "{{ 'Hi ' ~ ^Note }}",
            "{{ 'Hi ' ~ ^Note ~ ' ' ~ (Note | default(value='x', boolean=true)) }}",
            "{{ ('Hi ' ~ Note) if Note else 'Hi' }}",
            "x{{ Note if Note else '' }}",
            "{{ ('Hi ' ~ ^Note) if code else 'Hi' }}",
            "{{ 0 if Note == '' else Note | int }}",
            "{{ 'x' if Note is defined and Note == '' else Note }}",
            "x{{ ^Note | upper | truncate(length=3) }}",
            "x{{ [code, ^Note] | join(sep=', ') }}",
            "{{ Note | length }}",
            "{{ Note == '' }}",
            "{{ {'': 'none', 'gold': 'dear'} | get(key=Note) }}",
            "{{ {'': 'none', 'gold': 'dear'}[Note] }}",
            "{{ 'Hi NAME' | replace(from='NAME', to=^Note) }}",
            "{{- ^Note -}} x",
        ] {
            check(source, &[]);
        }
    }

    #[test]
    fn variable_shows_the_empty_cell_it_was_set_from() {
        for source in [
            "x{% set n = ^Note %}{{ n }}",
            "x{% set n = Note %}{% if n %}{{ n }}{% endif %}",
            "x{% set n = Note %}",
            "{% set n = Note | default(value='friend', boolean=true) %}{{ n }}",
            "{% set n = Note %}{{ n | default(value='friend', boolean=true) }}",
            "{% set n = 'Hi ' ~ ^Note %}{{ n }}",
            "{% set n = 'Hi ' ~ Note %}{% if not Note %}{% set n = 'Hi' %}{% endif %}{{ n }}",
            "{% set n = '' %}{% if Note %}{% set n = ', ' ~ Note %}{% endif %}Hello{{ n }}!",
            "x{% set n = ^Note %}{% set m = n | upper %}{{ m }}",
            "x{% set Note = ^Note | trim %}{{ Note }}",
            "{% set Note = Note | default(value='x', boolean=true) %}{{ Note }}",
            "{% set n %}<{{ ^Note }}>{% endset %}{{ n }}",
            "x{% set n %}{{ Note }}{% endset %}{% if n | trim %}{{ n }}{% endif %}",
            "x{% set n | upper %}{{ ^Note }}{% endset %}{{ n }}",
            "x{% for part in ^Note | split(pat=',') %}{{ part }};{% endfor %}",
            "x{% for part in Note | split(pat=',') %}{% if part %}{{ part }};{% endif %}{% endfor %}",
            "x{% set parts = [^Note, first_name, ^Note] %}{% for part in parts %}{{ part }}{% endfor %}",
            "x{% set parts = ^Note | split(pat=',') %}{% for part in parts %}{{ loop.index }}{{ part }}{% endfor %}",
            "x{% for c in code | split(pat='&') %}{{ c }}{{ ^Note }}{% endfor %}",
            "x{% for n in range(end=2) %}{% set_global m = ^Note %}{% endfor %}{{ m }}",
            "x{% filter upper %}{{ ^Note }}{% endfilter %}",
            "x{% set n = ^Note %}{{ n | default(value='y') }}",
        ] {
            check(source, &[]);
        }
        let endless = "x{% set n = Note %}{% for i in range(end=900) %}{% set_global n = n ~ n %}{% endfor %}";
        assert_eq!(shown_uses(&compile_sms(endless, &[]), CELLS), [], "markers grow no further than values may");
    }

    #[test]
    fn included_text_reports_empty_cells_at_its_own_place() {
        let texts = [
            ("hi.txt", "Hi {{ Note }}"),
            ("if.txt", "{% if Note %}{{ Note }}{% endif %}"),
            ("set.txt", "<{{ n }}>"),
            ("base.txt", "Hi {% block body %}{{ Note }}{% endblock %}"),
        ];
        for (source, expected) in [
            ("{% include 'hi.txt' %}", vec![("hi.txt", 6)]),
            ("{% if Note %}{% include 'hi.txt' %}{% else %}x{% endif %}", vec![]),
            ("x{% include 'if.txt' %}", vec![]),
            ("{% set n = Note %}{% include 'set.txt' %}", vec![("sms.message", 11)]),
            ("{% extends 'base.txt' %}{% block body %}x{% endblock %}", vec![]),
            ("{% extends 'base.txt' %}{% block body %}x{{ super() }}{% endblock %}", vec![("base.txt", 22)]),
        ] {
            let found = shown_uses(&compile_sms(source, &texts), CELLS);
            let found: Vec<(&str, usize)> = found.iter().map(|(text, at, _)| (text.as_str(), *at)).collect();
            assert_eq!(found, expected, "{source}");
        }
    }

    #[test]
    fn condition_in_one_text_does_not_protect_another() {
        let found = |first: &str, second: &str| {
            let mut content: MessageContent<NamedTemplate> = sms_content("Olena", second);
            let message = NamedTemplate { name: "telegram.message".into(), source: first.into() };
            content
                .stages
                .insert(0, Stage::Telegram(Telegram { message, lifetime: None, fields: ExtraProperties::new() }));
            content.kind = OperationKind::Pipeline;
            let messages = compile_messages(&content, &names(), &mut |_: &str| Err(String::new())).unwrap();
            let mut finder = messages.empty_cell_finder();
            let row = Row::new(7);
            let found = finder.find(row, |column| CELLS[column]);
            let places = found.into_iter().filter_map(|of| finder.find_place(of));
            places.map(|place| (place.channel.name(), place.text.name, place.span.start)).collect::<Vec<_>>()
        };
        let guarded = "1234{% if Note %}{{ Note }}{% endif %}";
        let of_sms = ("sms", "sms.message".to_owned(), 6);
        let of_telegram = ("telegram", "telegram.message".to_owned(), 6);
        assert_eq!(found(guarded, "Hi {{ Note }}"), std::slice::from_ref(&of_sms));
        assert_eq!(found("12 {{ Note }}", guarded), std::slice::from_ref(&of_telegram));
        assert_eq!(found("12 {{ Note }}", "12 {{ Note }}"), [of_telegram, of_sms], "texts that say the same");
        assert_eq!(found(guarded, guarded), []);
    }

    #[test]
    fn blank_cell_counts_as_empty() {
        let blank = [CELLS[0], CELLS[1], CELLS[2], " \t"];
        let filled = [CELLS[0], CELLS[1], CELLS[2], "x"];
        for source in ["Hi {{ Note }}", "Hi {{ Note | upper }}", "{% if Note %}Hi {{ Note }}{% endif %}"] {
            assert_eq!(shown_uses(&compile_sms(source, &[]), blank).len(), 1, "{source}");
            assert_eq!(shown_uses(&compile_sms(source, &[]), filled), [], "{source}");
        }
    }
}
