//! Empty cells that leave a hole in a message, such as "Hello, !".
//!
//! A condition protects only the uses inside it. Conditions are not analysed to find the protected uses. Instead, the
//! same engine renders the texts of a row with an empty cell a second time. The control flow is the same, but each use
//! of an empty cell prints a marker. A marker in the output is a hole. So branches, loops, `set`, `include`,
//! `extends`, filters and conditions of any form need no rules of their own. `default(value='…')` without
//! `boolean=true` keeps an empty cell, so it still produces a hole.
//!
//! Every value has two forms: the real one, and a traced one with a marker for each empty cell. Conditions read
//! real values, tags print traced values, and a variable that a text sets has its traced value in a second
//! variable.
//!
//! A use whose value is not printed (a condition, the key of a table) has no marker. An author who writes
//! `{{ a if a else "" }}` or `default(value='', boolean=true)` accepts the hole. A text that cannot be rendered with
//! markers counts as having no holes; rows without a message are not checked.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use tera::{Context, Kwargs, State, Tera, TeraResult, Value};

use super::engine::{KEEP, create_engine};
use super::outline::{Outline, OutlineAction, VariableUse, ends_with_value};
use super::render::{CompiledMessages, MessagePiece, fill_template};
use super::tokens::{TemplateToken, TokenKind, tokenize};
use campaign_core::domain::variable::ROW_VARIABLES;
use campaign_core::domain::{Channel, NamedTemplate, Row};

/// The first marker; each use adds its number. Markers are private characters of plane 16, which no text contains.
const FIRST_MARKER: u32 = 0x10_0000;
/// The maximum number of uses with a marker.
const MAX_USES: usize = 0xfffd;

/// A use of an empty cell, identified by the number of its text and its own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EmptyCellUse {
    /// The text, counted from 0.
    text: usize,
    /// The use, counted from 0 over all texts.
    number: usize,
}

/// The location where a text uses an empty cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyCellPlace {
    /// The column name in the text.
    pub name: String,
    /// The channel of the message.
    pub channel: Channel,
    /// The key of its text, for example `message`.
    pub key: &'static str,
    /// The text that uses the column: the text of the channel, or an included text.
    pub text: NamedTemplate,
    /// The byte range in the text.
    pub span: std::ops::Range<usize>,
}

/// Finds the empty cells that the message of each row shows.
pub struct EmptyCellFinder<'m> {
    messages: &'m CompiledMessages,
    /// The texts with markers. `None` if tera rejects them.
    tera: Option<Tera>,
    uses: Vec<ColumnUse>,
    columns: BTreeSet<usize>,
    context: Context,
    buffer: Vec<u8>,
}

impl CompiledMessages {
    /// Creates a finder that can be used for many rows.
    pub fn empty_cell_finder(&self) -> EmptyCellFinder<'_> {
        let headers = self.cells.by_header.iter();
        let locals: HashSet<String> =
            self.metered.values().flat_map(|text| find_defined_names(&text.text.source)).collect();
        let known_locals =
            locals.iter().filter(|name| self.context.contains_key(name) || ROW_VARIABLES.contains(&name.as_str()));
        let mut instrumenter = Instrumenter {
            columns: self.cells.by_name.iter().map(|(column, name)| (*name, *column)).collect(),
            headers: headers.filter_map(|(column, header)| Some((header.as_str()?, *column))).collect(),
            known_locals: known_locals.cloned().collect(),
            locals,
            uses: Vec::new(),
        };
        let sources: Vec<(&String, String)> =
            self.metered.iter().map(|(key, text)| (key, instrumenter.add_markers(key, &text.text.source))).collect();
        let uses = instrumenter.uses;
        let mut tera = create_engine();
        tera.register_filter(FILL, mark_if_empty);
        tera.register_filter(TRACE, trace_markers);
        tera.register_filter(STRIP, |value: &Value, _: Kwargs, _: &State| strip_markers(value));
        let added = tera.add_raw_templates(sources);
        if let Err(error) = &added {
            tracing::debug!("cannot trace empty cells in these templates: {error}");
        }
        let tera = (added.is_ok() && uses.len() <= MAX_USES).then_some(tera);
        let columns = uses.iter().map(|column_use| column_use.column).collect();
        EmptyCellFinder { messages: self, tera, uses, columns, context: self.context.clone(), buffer: Vec::new() }
    }
}

impl EmptyCellFinder<'_> {
    /// Finds the uses of empty cells that are visible in the message for a row. `field` returns the cell of a column.
    pub fn find<'f>(&mut self, row: Row, field: impl Fn(usize) -> &'f str) -> Vec<EmptyCellUse> {
        let is_empty = |column: usize| field(column).chars().all(char::is_whitespace);
        if !self.columns.iter().any(|&column| is_empty(column)) {
            return Vec::new();
        }
        let mut numbers_by_key: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        let mut is_context_filled = None;
        let mut shown_uses = Vec::new();
        for (index, text) in self.messages.texts.iter().enumerate() {
            let MessagePiece::Template { key, segments, .. } = &text.piece else { continue };
            let numbers = numbers_by_key.entry(key).or_insert_with(|| match segments {
                // The template consists only of literal text and variables, so every variable is shown.
                Some(_) => (0..self.uses.len()).filter(|&number| self.uses[number].template == *key).collect(),
                None => {
                    let context = &mut self.context;
                    let is_filled = *is_context_filled
                        .get_or_insert_with(|| self.messages.cells.fill_context(context, row, &field).is_ok());
                    let tera = self.tera.as_ref().filter(|_| is_filled);
                    let output = tera.and_then(|tera| fill_template(tera, key, context, &mut self.buffer).ok());
                    output.map(|text| text.chars().filter_map(marker_number).collect()).unwrap_or_default()
                }
            });
            let empty_uses =
                numbers.iter().filter(|&&number| self.uses.get(number).is_some_and(|used| is_empty(used.column)));
            shown_uses.extend(empty_uses.map(|&number| EmptyCellUse { text: index, number }));
        }
        shown_uses
    }

    /// The location at which a text uses an empty cell.
    pub fn find_place(&self, EmptyCellUse { text, number }: EmptyCellUse) -> Option<EmptyCellPlace> {
        let (text, ColumnUse { name, template, span, .. }) = (self.messages.texts.get(text)?, self.uses.get(number)?);
        let mut source = self.messages.metered.get(template)?.text.clone();
        // Texts with the same source share one template, but each has its own name.
        if let MessagePiece::Template { key, name, .. } = &text.piece
            && key == template
        {
            source.name.clone_from(name);
        }
        let channel = self.messages.content.stages.get(text.stage)?.channel();
        Some(EmptyCellPlace { name: name.clone(), channel, key: text.field.key, text: source, span: span.clone() })
    }
}

fn marker(number: usize) -> Option<char> {
    char::from_u32(FIRST_MARKER + u32::try_from(number).ok()?)
}

fn marker_number(character: char) -> Option<usize> {
    usize::try_from(u32::from(character).checked_sub(FIRST_MARKER)?).ok()
}

/// The value, or the marker of this use if the value is empty.
fn mark_if_empty(value: &Value, kwargs: Kwargs, _: &State) -> TeraResult<Value> {
    let number: usize = kwargs.must_get("use")?;
    let is_empty = value.as_str().is_some_and(|text| text.trim().is_empty());
    let marker = marker(number).filter(|_| is_empty);
    Ok(marker.map_or_else(|| value.clone(), |marker| Value::from(marker.to_string())))
}

/// Adds markers to the real value: the markers of each traced form that otherwise differs only in white space. If the
/// real value is not text, the result is the form with the most markers.
fn trace_markers(real: &Value, kwargs: Kwargs, _: &State) -> TeraResult<Value> {
    let forms: &[Value] = kwargs.must_get("forms")?;
    let mut real_text = String::new();
    write_value(real, &mut real_text);
    let real_words = remove_markers_and_white_space(&real_text);
    let is_list = kwargs.get("list")?.unwrap_or(false);
    if is_list && real.as_array().is_none() {
        return Ok(real.clone());
    }
    let (mut markers, mut marked, mut max_markers) = (BTreeSet::new(), real, 0);
    for form in forms {
        let mut text = String::new();
        write_value(form, &mut text);
        if remove_markers_and_white_space(&text) == real_words {
            let in_form: BTreeSet<char> =
                text.chars().filter(|&character| marker_number(character).is_some()).collect();
            (marked, max_markers) =
                if in_form.len() > max_markers { (form, in_form.len()) } else { (marked, max_markers) };
            markers.extend(in_form);
        }
    }
    Ok(match real.as_str() {
        Some(text) => Value::from(text.chars().chain(markers).collect::<String>()),
        None => marked.clone(),
    })
}

/// Writes a value as text. Unlike tera, this function keeps markers in lists.
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
    } else if let Some(string) = value.as_str() {
        text.push_str(string);
    } else {
        text.push_str(&value.to_string());
    }
}

/// The text without markers and white space.
fn remove_markers_and_white_space(text: &str) -> String {
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

/// Replaces an empty cell with the marker of its use.
pub(super) const FILL: &str = "__fill";
/// Copies the markers of traced values that differ from the real value only by markers.
pub(super) const TRACE: &str = "__trace";
/// Removes markers.
pub(super) const STRIP: &str = "__strip";
/// The prefix of variables with traced values.
const TRACED: &str = "__traced_";
/// The maximum number of uses in a tag that are traced separately. Any others are traced together.
const MAX_SEPARATE_USES: usize = 16;

/// A location where a text uses a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnUse {
    pub(super) column: usize,
    /// The column name in the text.
    pub(super) name: String,
    /// The key of the template.
    pub(super) template: String,
    /// The byte range in the template's source.
    pub(super) span: Range<usize>,
}

/// Adds markers to sources. The index of a use in `uses` is the number of its marker.
#[derive(Debug, Default)]
pub(super) struct Instrumenter<'n> {
    /// Columns by their bare names.
    pub(super) columns: HashMap<&'n str, usize>,
    /// Columns by their headers.
    pub(super) headers: HashMap<&'n str, usize>,
    /// Names that have a value even if no text sets them.
    pub(super) known_locals: HashSet<String>,
    /// Names that texts set.
    pub(super) locals: HashSet<String>,
    pub(super) uses: Vec<ColumnUse>,
}

/// A replacement for a use in an expression: bytes of the source, and the new text.
type Replacement = (Range<usize>, String);

/// The names that a source defines with `set` or `for`.
pub fn find_defined_names(source: &str) -> impl Iterator<Item = String> {
    Outline::from_tokens(&tokenize(source)).events.into_iter().filter_map(|event| match event.action {
        OutlineAction::Define { name, .. } => Some(name),
        _ => None,
    })
}

impl Instrumenter<'_> {
    /// Adds markers to the source of the template with the key `template`.
    pub(super) fn add_markers(&mut self, template: &str, source: &str) -> String {
        let tokens = tokenize(source);
        let (mut rest, mut rewritten, mut copied) = (tokens.as_slice(), String::new(), 0);
        // The variables of open `set` blocks, each with the keyword of its tag.
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

    /// The replacements for the uses in a tag whose values become part of the result of the tag. Uses in conditions and
    /// keys, and uses with an empty default, are left unchanged.
    fn find_replacements(&mut self, template: &str, source: &str, tag: &[TemplateToken<'_>]) -> Vec<Replacement> {
        let indirect = find_indirect_tokens(tag);
        let mut replacements = Vec::new();
        for event in Outline::from_tokens(tag).events {
            let Some(last) = tag.iter().position(|token| token.span.end == event.span.end) else { continue };
            let Some(first) = tag.iter().position(|token| token.span.start == event.span.start) else { continue };
            if indirect[first] || ends_with_key_argument(&tag[..first]) || has_empty_default(&tag[last + 1..]) {
                continue;
            }
            let (column, text) = match &event.action {
                OutlineAction::Use(VariableUse { name, dotted, lookup, .. }) => {
                    let (column, local) = (self.columns.get(name.as_str()), self.locals.contains(name));
                    let text = match (column, local) {
                        (None, true) if !self.known_locals.contains(name) => format!("{TRACED}{name}"),
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

/// An expression that traces the value at the bytes `value`; if `list` is set, the value stays a list that a loop can
/// iterate over.
fn trace_expression(source: &str, value: Range<usize>, uses: &[Replacement], list: bool) -> String {
    let real = &source[value.clone()];
    if uses.is_empty() {
        return format!("({real})");
    }
    let replace_uses = |uses: &[Replacement]| {
        let (mut text, mut copied) = (String::new(), value.start);
        for (span, replacement) in uses {
            text.push_str(&source[copied..span.start]);
            text.push_str(replacement);
            copied = span.end;
        }
        format!("({}{})", text, &source[copied..value.end])
    };
    let separate = uses.len().min(MAX_SEPARATE_USES);
    let (one_by_one, together) = uses.split_at(separate);
    let mut forms: Vec<String> = one_by_one.chunks(1).map(replace_uses).collect();
    forms.extend((!together.is_empty()).then(|| replace_uses(together)));
    // In a list such as `[a, b]`, replacing one value can have a different effect from replacing all of them.
    forms.extend((uses.len() > 1 && together.is_empty()).then(|| replace_uses(uses)));
    format!("(({real}) | {TRACE}(list={list}, forms=[{}]))", forms.join(", "))
}

/// Rewrites a `for` tag so that each loop variable also has a traced value. `None` if the tag has no `in`.
fn trace_loop(source: &str, tag: Range<usize>, head: &[TemplateToken<'_>], uses: &[Replacement]) -> Option<String> {
    let in_index = head.iter().position(|token| token.kind == TokenKind::Name("in"))?;
    let names: Vec<&str> = head[..in_index]
        .iter()
        .filter_map(|token| if let TokenKind::Name(name) = token.kind { Some(name) } else { None })
        .collect();
    let list_start = head[in_index].span.end;
    let list_end = head.last()?.span.end;
    match names.as_slice() {
        // The loop runs over the traced list, and the variable gets the value without its trace.
        [name] if !uses.is_empty() => {
            let traced = trace_expression(source, list_start..list_end, uses, true);
            let tag_end = source[list_end..tag.end].trim_start();
            Some(format!("{{% for {TRACED}{name} in {traced} {tag_end}{{% set {name} = {TRACED}{name} | {STRIP} %}}"))
        }
        // The loop is unchanged, and the traced variables are copies.
        names => {
            let sets = names.iter().map(|name| format!("{{% set {TRACED}{name} = {name} %}}"));
            Some(format!("{}{}", &source[tag], sets.collect::<String>()))
        }
    }
}

/// For each token, whether it is part of a condition (`x if CONDITION else y`) or selects an item (`x[KEY]`).
fn find_indirect_tokens(tag: &[TemplateToken<'_>]) -> Vec<bool> {
    // A context consists of two flags: whether the enclosing brackets are indirect, and whether a condition is open.
    let (mut open_contexts, mut context) = (Vec::new(), (false, false));
    let mut indirect = Vec::with_capacity(tag.len());
    for (at, token) in tag.iter().enumerate() {
        let (outside, condition) = context;
        indirect.push(outside || condition);
        match token.kind {
            TokenKind::Symbol("(" | "{") => {
                open_contexts.push(context);
                context = (outside || condition, false);
            }
            TokenKind::Symbol("[" | "?[") => {
                open_contexts.push(context);
                context = (outside || condition || ends_with_value(&tag[..at]), false);
            }
            TokenKind::Symbol(")" | "]" | "}") => context = open_contexts.pop().unwrap_or(context),
            TokenKind::Name("if") => context.1 = true,
            TokenKind::Name("else") => context.1 = false,
            _ => {}
        }
    }
    indirect
}

/// Whether the tokens end with `key=`, after which the key of `| get(key=…)` follows.
fn ends_with_key_argument(before: &[TemplateToken<'_>]) -> bool {
    matches!(
        before,
        [.., TemplateToken { kind: TokenKind::Name("key"), .. }, TemplateToken { kind: TokenKind::Symbol("="), .. }]
    )
}

/// Whether a following filter deliberately replaces an empty value with an empty text: `default(value='',
/// boolean=true)`.
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
        let (arguments, following) = rest.split_at(arguments.count());
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
        after = following;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::compile_messages;
    use crate::message::tests::{CELLS, compile_sms, names, sms_content};
    use campaign_core::domain::{ExtraProperties, MessageContent, OperationKind, Stage, Telegram};

    /// The uses of empty cells that a message shows: the text, the byte and the name.
    fn find_shown_uses(messages: &CompiledMessages, cells: [&str; 4]) -> Vec<(String, usize, String)> {
        let row = Row::new(7);
        assert!(messages.renderer().render(row, |column| cells[column]).is_ok(), "a row without a message");
        let mut finder = messages.empty_cell_finder();
        let found = finder.find(row, |column| cells[column]);
        let places = found.into_iter().filter_map(|cell_use| finder.find_place(cell_use));
        places.map(|place| (place.text.name, place.span.start, place.name)).collect()
    }

    /// Checks where an SMS with this source shows the empty cell `Note`: at the bytes after `^`.
    fn assert_shown_uses(source: &str, texts: &[(&str, &str)]) {
        let plain = source.replace('^', "");
        let marks = source.match_indices('^').enumerate().map(|(before, (at, _))| at - before);
        let found = find_shown_uses(&compile_sms(&plain, texts), CELLS);
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
            assert_shown_uses(source, &[]);
        }
    }

    #[test]
    fn empty_cell_in_an_expression_is_found_unless_replaced() {
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
            assert_shown_uses(source, &[]);
        }
    }

    #[test]
    fn empty_cell_shown_through_a_variable_is_found() {
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
            assert_shown_uses(source, &[]);
        }
        let endless = "x{% set n = Note %}{% for i in range(end=900) %}{% set_global n = n ~ n %}{% endfor %}";
        assert_eq!(find_shown_uses(&compile_sms(endless, &[]), CELLS), [], "markers grow no further than values may");
    }

    #[test]
    fn empty_cell_in_an_included_text_is_reported_there() {
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
            let found = find_shown_uses(&compile_sms(source, &texts), CELLS);
            let found: Vec<(&str, usize)> = found.iter().map(|(text, at, _)| (text.as_str(), *at)).collect();
            assert_eq!(found, expected, "{source}");
        }
    }

    #[test]
    fn condition_in_one_text_does_not_protect_another() {
        let find_places = |first: &str, second: &str| {
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
            let places = found.into_iter().filter_map(|cell_use| finder.find_place(cell_use));
            places.map(|place| (place.channel.name(), place.text.name, place.span.start)).collect::<Vec<_>>()
        };
        let guarded = "1234{% if Note %}{{ Note }}{% endif %}";
        let sms_place = ("sms", "sms.message".to_owned(), 6);
        let telegram_place = ("telegram", "telegram.message".to_owned(), 6);
        assert_eq!(find_places(guarded, "Hi {{ Note }}"), std::slice::from_ref(&sms_place));
        assert_eq!(find_places("12 {{ Note }}", guarded), std::slice::from_ref(&telegram_place));
        assert_eq!(find_places("12 {{ Note }}", "12 {{ Note }}"), [telegram_place, sms_place], "identical texts");
        assert_eq!(find_places(guarded, guarded), []);
    }

    #[test]
    fn blank_cell_counts_as_empty() {
        let blank = [CELLS[0], CELLS[1], CELLS[2], " \t"];
        let filled = [CELLS[0], CELLS[1], CELLS[2], "x"];
        for source in ["Hi {{ Note }}", "Hi {{ Note | upper }}", "{% if Note %}Hi {{ Note }}{% endif %}"] {
            assert_eq!(find_shown_uses(&compile_sms(source, &[]), blank).len(), 1, "{source}");
            assert_eq!(find_shown_uses(&compile_sms(source, &[]), filled), [], "{source}");
        }
    }
}
