//! Compiled messages, and rendering of the message of each row.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use tera::value::Key;
use tera::{Context, Error, Tera, Value};

use super::TextProblem;
use super::comparisons::ColumnName;
use super::engine::{CappedWriter, MAX_BYTES, reset_steps};
use super::failure::{RenderFailure, explain_failure};
use super::library::{MeteredTexts, error_place};
use super::names::{NameMeaning, NameScope, TemplateNames, TemplateNeeds, intern_name};
use super::tables::list_key_spellings;
use super::tokens::{TemplateToken, TokenKind, is_constant, tokenize};
use campaign_core::domain::{
    Channel, ChannelField, MessageContent, NamedTemplate, Row, Stage, TextSource, TextViolation, find_text_violation,
};
use campaign_core::finding::rules;

/// Renders the messages of many rows.
///
/// The renderer holds the cells of the last row, so it has no `Debug`.
pub struct Renderer<'m> {
    messages: &'m CompiledMessages,
    context: Context,
    buffer: Vec<u8>,
    /// The texts of the last row by index, including constant ones.
    texts: Vec<FilledText>,
    /// Whether tera fills some of the texts.
    needs_tera: bool,
}

/// The reason why a row has no message. `Display` explains the reason without quoting cells.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A template fails with this row's values.
    #[error("{} (`{}`, line {}, column {})", .0.message, .0.text, .0.line, .0.column)]
    TemplateFails(Box<TextProblem>),
    /// A message would be longer than any channel accepts.
    #[error("`{text}` is longer than {MAX_BYTES} bytes, which is too long for any channel")]
    TooLong {
        /// The text's name.
        text: String,
    },
    /// A cell is longer than any message.
    #[error("the cell in `{column}` is longer than {MAX_BYTES} bytes, which is too long for any channel")]
    CellTooLong {
        /// The column's template name or header.
        column: String,
    },
    /// The result of a condition is neither true nor false.
    #[error("the result of `{text}` is neither true nor false")]
    NoAnswer {
        /// The condition's name.
        text: String,
    },
    /// A channel rejects the text.
    #[error("{0}")]
    Refused(TextViolation),
}

impl<'m> Renderer<'m> {
    pub(super) fn new(messages: &'m CompiledMessages) -> Self {
        let text = |text: &MessageText| match &text.piece {
            MessagePiece::Constant(constant) => constant.clone(),
            MessagePiece::Template { .. } => FilledText::default(),
        };
        let texts = messages.texts.iter().map(text).collect();
        let needs_tera =
            messages.texts.iter().any(|text| matches!(text.piece, MessagePiece::Template { segments: None, .. }));
        Self { messages, context: messages.context.clone(), buffer: Vec::new(), texts, needs_tera }
    }

    /// Renders the message for a row. `field` returns the cell of a column, or "".
    ///
    /// The message follows the rules of its channels. Constant texts were checked at compile time.
    ///
    /// # Errors
    /// The reason why this row has no message.
    pub fn render<'f>(&mut self, row: Row, field: impl Fn(usize) -> &'f str) -> Result<FilledMessage<'_>, RenderError> {
        let Self { messages, context, buffer, texts, needs_tera } = self;
        if *needs_tera {
            messages.cells.fill_context(context, row, &field)?;
        } else {
            messages.cells.check_lengths(&field)?;
        }
        for (text, filled) in messages.texts.iter().zip(&mut *texts) {
            match &text.piece {
                MessagePiece::Constant(_) => {}
                MessagePiece::Template { segments: Some(segments), name, .. } => {
                    if !segments.fill(row, &field, &mut filled.rendered) {
                        return Err(RenderError::TooLong { text: name.clone() });
                    }
                }
                MessagePiece::Template { key, name, segments: None } => {
                    let rendered = fill_template(&messages.tera, key, context, buffer);
                    filled.rendered = rendered.map_err(|error| to_render_error(&error, name, messages))?;
                }
            }
        }
        for (text, filled) in messages.texts.iter().zip(&mut *texts) {
            if matches!(text.piece, MessagePiece::Template { .. }) {
                let stage = &messages.content.stages[text.stage];
                filled.make_plain(stage, text.field);
                if let Some(violation) = find_text_violation(stage, text.field, filled.sent_text()) {
                    return Err(RenderError::Refused(violation));
                }
            }
        }
        Ok(FilledMessage { messages, texts })
    }
}

/// Renders a template with tera, reusing `buffer`.
pub(super) fn fill_template(tera: &Tera, key: &str, context: &Context, buffer: &mut Vec<u8>) -> Result<String, Error> {
    reset_steps();
    buffer.clear();
    tera.render_to(key, context, CappedWriter(buffer))?;
    Ok(std::str::from_utf8(buffer).map_err(Error::message)?.to_owned())
}

/// The reason why a row has no message, derived from a tera error in the text with this name.
fn to_render_error(error: &Error, name: &str, messages: &CompiledMessages) -> RenderError {
    to_render_error_in(error, name, &messages.metered, &messages.cells)
}

/// Like [`to_render_error`], but for these texts and cells.
pub(super) fn to_render_error_in(
    error: &Error,
    name: &str,
    metered: &MeteredTexts,
    cells: &TemplateCells,
) -> RenderError {
    if matches!(error.kind(), tera::ErrorKind::Io(_)) {
        return RenderError::TooLong { text: name.to_owned() };
    }
    let is_column = |name: &str| cells.by_name.iter().any(|(_, column)| *column == name);
    RenderError::TemplateFails(Box::new(match error_place(error, metered) {
        // Texts with the same source share a template, which has the name of the first one.
        Some((text, span)) => failure_problem(error.kind(), text, span, &is_column),
        None => {
            let text = NamedTemplate { name: name.to_owned(), source: String::new() };
            failure_problem(error.kind(), &text, 0..0, &is_column)
        }
    }))
}

/// The problem with a text that cannot be rendered.
pub(super) fn failure_problem(
    kind: &tera::ErrorKind,
    text: &NamedTemplate,
    span: Range<usize>,
    is_column: &dyn Fn(&str) -> bool,
) -> TextProblem {
    let (RenderFailure { reason, help }, span) = explain_failure(kind, &text.source, span, is_column);
    TextProblem::new(&text.name, &text.source, span, &rules::TEXT_FAILS, reason).with_help(help)
}

/// The messages of a campaign, ready to be filled row by row.
#[derive(Clone)]
pub struct CompiledMessages {
    pub(super) tera: Tera,
    /// The content, with indexes of `texts` instead of texts.
    pub(super) content: MessageContent<usize>,
    /// The texts, by index.
    pub(super) texts: Vec<MessageText>,
    pub(super) metered: MeteredTexts,
    /// Values that are the same for all rows.
    pub(super) context: Context,
    pub(super) cells: TemplateCells,
    pub(super) includes: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub(super) struct MessageText {
    /// The index of its stage.
    pub(super) stage: usize,
    /// The key of the text.
    pub(super) field: &'static ChannelField,
    pub(super) piece: MessagePiece,
}

/// The source of a text.
#[derive(Clone, Debug)]
pub(super) enum MessagePiece {
    /// Text without tags, the same for all recipients.
    Constant(FilledText),
    /// The template key, the author's name of the text, and its segments if it consists of words and names only.
    Template { key: String, name: String, segments: Option<TextSegments> },
}

impl fmt::Debug for CompiledMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledMessages")
            .field("content", &self.content)
            .field("cells", &self.cells)
            .finish_non_exhaustive()
    }
}

impl CompiledMessages {
    /// A renderer with its own buffers, for a whole run.
    pub fn renderer(&self) -> Renderer<'_> {
        Renderer::new(self)
    }

    /// The content: constant texts in their final form, and all other texts by their index.
    pub fn sources(&self) -> MessageContent<TextSource<'_>> {
        self.content.map_texts(|&index| match self.texts.get(index).map(|text| &text.piece) {
            Some(MessagePiece::Constant(text)) => TextSource::Same(text.sent_text()),
            Some(MessagePiece::Template { .. }) | None => TextSource::Filled(index),
        })
    }

    /// The columns that the texts use.
    pub fn used_columns(&self) -> BTreeSet<usize> {
        self.cells.columns().collect()
    }

    /// The column with this template name, if a text uses it.
    pub fn find_column(&self, name: &str) -> Option<usize> {
        self.cells.find_name(name)
    }

    /// The column that an expression names, if a text uses it.
    pub fn find_named_column(&self, column: &ColumnName) -> Option<usize> {
        self.cells.find_column(column)
    }

    /// The names and sources of the texts that were loaded for `include` and `extends`, sorted by name.
    pub fn includes(&self) -> &[(String, String)] {
        &self.includes
    }
}

/// Replaces each text in the content with its index. Returns the content, and the texts in the order of their indexes.
pub(super) fn number_texts(
    content: &MessageContent<NamedTemplate>,
    piece: impl Fn(&NamedTemplate) -> MessagePiece,
) -> (MessageContent<usize>, Vec<MessageText>) {
    let mut pieces = Vec::new();
    let content = content.map_texts(|text| {
        pieces.push(Some(piece(text)));
        pieces.len() - 1
    });
    let mut texts = Vec::with_capacity(pieces.len());
    let stages = content.stages.iter().enumerate();
    for (stage, (field, &index)) in stages.flat_map(|(index, stage)| stage.texts().map(move |text| (index, text))) {
        let Some(mut piece) = pieces.get_mut(index).and_then(Option::take) else { continue };
        if let MessagePiece::Constant(constant) = &mut piece {
            constant.make_plain(&content.stages[stage], field);
        }
        texts.push((index, MessageText { stage, field, piece }));
    }
    texts.sort_by_key(|(index, _)| *index);
    let texts = texts.into_iter().map(|(_, text)| text).collect();
    (content, texts)
}

/// The message of a row, until its renderer renders another.
///
/// The message holds the cells of the row, so it has no `Debug`.
#[derive(Clone, Copy)]
pub struct FilledMessage<'r> {
    pub(super) messages: &'r CompiledMessages,
    /// The texts, by index.
    pub(super) texts: &'r [FilledText],
}

/// A rendered text, and its final form if something is replaced in it.
#[derive(Clone, Debug, Default)]
pub(super) struct FilledText {
    pub(super) rendered: String,
    pub(super) plain: Option<String>,
}

impl FilledText {
    /// The text in its final form, after the author's replacements.
    pub(super) fn sent_text(&self) -> &str {
        self.plain.as_deref().unwrap_or(&self.rendered)
    }

    /// Applies the replacements that the author requested for this field.
    pub(super) fn make_plain<T>(&mut self, stage: &Stage<T>, field: &ChannelField) {
        self.plain = match stage.outgoing_text(field, &self.rendered) {
            Cow::Owned(plain) => Some(plain),
            Cow::Borrowed(_) => None,
        };
    }
}

impl<'r> FilledMessage<'r> {
    /// The final text with this index, or an empty text.
    pub fn text(self, index: usize) -> &'r str {
        self.texts.get(index).map_or("", FilledText::sent_text)
    }

    /// The final texts with their fields.
    pub fn texts(self) -> impl Iterator<Item = (&'static ChannelField, &'r str)> {
        self.messages.texts.iter().zip(self.texts).map(|(text, filled)| (text.field, filled.sent_text()))
    }

    /// The text that is billed in parts, if there is one.
    pub fn billed_text(self) -> Option<&'r str> {
        let index = self.messages.content.stages.iter().find_map(Stage::billed_text)?;
        Some(self.text(*index))
    }

    /// The channels, in fallback order.
    pub fn channels(self) -> impl Iterator<Item = Channel> {
        self.messages.content.stages.iter().map(Stage::channel)
    }

    /// The content for all channels.
    pub fn content(self) -> MessageContent<Cow<'r, str>> {
        let text = |index: &usize| self.texts.get(*index).map_or("", |text| text.rendered.as_str());
        let mut content = self.messages.content.map_texts(|index| Cow::Borrowed(text(index)));
        content.stages.iter_mut().for_each(Stage::make_plain);
        content
    }
}

/// The columns that texts use.
#[derive(Clone, Debug, Default)]
pub(super) struct TemplateCells {
    /// Columns that have a bare name: the column and the name.
    pub(super) by_name: Vec<(usize, &'static str)>,
    /// Columns in `recipient`: the column and a spelling of its header.
    pub(super) by_header: Vec<(usize, Key<'static>)>,
    /// Whether the row's number is used.
    pub(super) row: bool,
}

impl TemplateCells {
    /// The cells that texts need.
    pub(super) fn from_needs(names: &TemplateNames, needs: &TemplateNeeds) -> Self {
        let by_name = needs.columns.iter().filter_map(|&column| Some((column, intern_name(names.names.get(column)?))));
        let all_headers = names.headers.iter().zip(0..).filter(|_| needs.all_headers);
        let headers = needs.headers.iter().map(|(header, column)| (header.clone().into(), *column));
        Self {
            by_name: by_name.collect(),
            by_header: list_key_spellings(all_headers)
                .chain(headers)
                .map(|(header, column)| (column, header))
                .collect(),
            row: needs.row,
        }
    }

    /// The column with this bare name, if it is needed.
    fn find_name(&self, name: &str) -> Option<usize> {
        self.by_name.iter().find(|(_, known)| *known == name).map(|(column, _)| *column)
    }

    /// The column that an expression names, if it is needed.
    pub(super) fn find_column(&self, column: &ColumnName) -> Option<usize> {
        match column {
            ColumnName::Variable(name) => self.find_name(name),
            ColumnName::Header(header) => {
                let header = Key::from(header.clone());
                self.by_header.iter().find(|(_, known)| *known == header).map(|(column, _)| *column)
            }
        }
    }

    /// The columns whose cells the texts need.
    pub(super) fn columns(&self) -> impl Iterator<Item = usize> {
        self.by_name.iter().map(|(column, _)| *column).chain(self.by_header.iter().map(|(column, _)| *column))
    }

    /// Rejects a row with a cell that is longer than any message. Only columns with a bare name are checked.
    pub(super) fn check_lengths<'f>(&self, field: impl Fn(usize) -> &'f str) -> Result<(), RenderError> {
        match self.by_name.iter().find(|(column, _)| field(*column).len() > MAX_BYTES) {
            Some((_, name)) => Err(RenderError::CellTooLong { column: (*name).to_owned() }),
            None => Ok(()),
        }
    }

    /// Puts the cells of a row into a context.
    pub(super) fn fill_context<'f>(
        &self,
        context: &mut Context,
        row: Row,
        field: impl Fn(usize) -> &'f str,
    ) -> Result<(), RenderError> {
        self.check_lengths(&field)?;
        for &(column, name) in &self.by_name {
            context.insert_value(name, Value::normal_string(field(column)));
        }
        if self.row {
            context.insert_value("row", Value::from(row.get()));
        }
        if !self.by_header.is_empty() {
            let entry = |(column, header): &(usize, Key<'static>)| match cell_value(field(*column)) {
                Some(value) => Ok((header.clone(), value)),
                None => Err(RenderError::CellTooLong { column: header.as_str().unwrap_or("").to_owned() }),
            };
            let recipient = self.by_header.iter().map(entry).collect::<Result<tera::Map, _>>()?;
            context.insert_value("recipient", Value::from(recipient));
        }
        Ok(())
    }
}

fn cell_value(text: &str) -> Option<Value> {
    (text.len() <= MAX_BYTES).then(|| Value::normal_string(text))
}

/// A text that consists of words and names only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextSegments(Vec<TextSegment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TextSegment {
    /// Constant words.
    Words(String),
    /// The cell of that column.
    Cell(usize),
    /// The row's number.
    Row,
}

impl TextSegments {
    /// The segments of a text. `None` if it has tags other than `{{ name }}`.
    pub(super) fn parse(source: &str, names: &TemplateNames) -> Option<Self> {
        let (mut segments, mut copied) = (Self(Vec::new()), 0);
        for tag in tokenize(source).chunks(3) {
            let [open, TemplateToken { kind: TokenKind::Name(name), .. }, end] = tag else { return None };
            let is_plain =
                open.kind == TokenKind::Print && open.span.len() == 2 && end.kind == TokenKind::End { trims: false };
            let words = source.get(copied..open.span.start).filter(|words| is_plain && is_constant(words))?;
            segments.push_words(words);
            segments.push_name(name, names)?;
            copied = end.span.end;
        }
        let words = source.get(copied..).filter(|words| is_constant(words))?;
        segments.push_words(words);
        Some(segments)
    }

    /// Renders the text of a row into `text`. Returns false if the text becomes longer than any message can be.
    pub(super) fn fill<'f>(&self, row: Row, field: impl Fn(usize) -> &'f str, text: &mut String) -> bool {
        text.clear();
        for segment in &self.0 {
            match segment {
                TextSegment::Words(words) => text.push_str(words),
                TextSegment::Cell(column) => text.push_str(field(*column)),
                TextSegment::Row => text.push_str(itoa::Buffer::new().format(row.get())),
            }
        }
        text.len() <= MAX_BYTES
    }

    /// Adds a segment for the value of a name. If no kind of segment can hold the value, adds nothing and returns
    /// `None`.
    fn push_name(&mut self, name: &str, names: &TemplateNames) -> Option<()> {
        match names.find_meanings(name, NameScope::Recipient).as_slice() {
            [NameMeaning::Column(column)] => self.0.push(TextSegment::Cell(*column)),
            [NameMeaning::Var(var)] => self.push_words(&names.vars.get(*var)?.1),
            [NameMeaning::BuiltIn] => match name {
                "campaign" => self.push_words(&names.campaign),
                "today" => self.push_words(&names.today),
                "row" => self.0.push(TextSegment::Row),
                _ => return None,
            },
            _ => return None,
        }
        Some(())
    }

    /// Adds constant text.
    fn push_words(&mut self, words: &str) {
        match self.0.last_mut() {
            Some(TextSegment::Words(before)) => before.push_str(words),
            _ if words.is_empty() => {}
            _ => self.0.push(TextSegment::Words(words.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::compile_messages;
    use crate::message::tests::{CELLS, compile_sms, names, render_sms, sms_content};
    use campaign_core::domain::{ExtraProperties, OperationKind, Stage, Telegram};

    #[test]
    fn text_can_use_all_names_and_is_not_escaped() {
        let table = [
            ("plain", "plain"),
            ("{{ first_name }}, {{ code }} & {{ shop }}", "Оля, <A&B> & Olena & Co"),
            ("{{ row }} {{ campaign }} {{ today }}", "7 autumn 2026-11-21"),
            ("{{ recipient[\"Ім'я\"] }} {{ recipient.code }}", "Оля <A&B>"),
            ("{% set k = 'co' ~ 'de' %}{{ recipient[k] }}", "<A&B>"),
            ("{% if Note %}{{ Note }}{% else %}none{% endif %}", "none"),
            ("{{ Note | default(value='friend', boolean=true) }}", "friend"),
            ("{{ gone | default(value='x') }}{% if gone is defined %}y{% endif %}", "x"),
            ("{% set first_name = first_name | upper %}{{ first_name }}", "ОЛЯ"),
            ("{% set a %}<{{ code }}>{% endset %}{{ a | lower }}", "<<a&b>>"),
            (
                "{% for c in 'a,b' | split(pat=',') -%}\n {{ loop.index }}{{ c }}{% if not loop.last %};{% endif %}{% \
                 endfor %}",
                "1a;2b",
            ),
            ("{% for n in range(end=3) %}{% if n == 1 %}{% continue %}{% endif %}{{ n }}{% endfor %}", "02"),
            ("{% raw %}{{ x }}{% endraw %}\r\n{# note #}.", "{{ x }}\r\n."),
            ("{{ {'<A&B>': 'gold'} | get(key=code) }}", "gold"),
            ("{% filter upper %}{{ shop }}{% endfilter %}", "OLENA & CO"),
        ];
        for (source, expected) in table {
            assert_eq!(render_sms(&compile_sms(source, &[]), &CELLS).as_deref(), Ok(expected), "{source}");
        }
    }

    #[test]
    fn texts_include_and_extend_each_other() {
        let texts = [
            ("footer.txt", "-- {{ shop }}{% if k is defined %} {{ k }}{% endif %}"),
            ("base.txt", "Hi {% block body %}all{% endblock %}{% include 'footer.txt' %}"),
            ("middle.txt", "{% extends 'base.txt' %}{% block body %}[{{ super() }}]{% endblock %}"),
            ("set.txt", "{% set k = 'v' %}{% include 'footer.txt' %}"),
        ];
        let table = [
            ("{{ code }} {% set k = 1 %}{% include 'footer.txt' %}", "<A&B> -- Olena & Co 1"),
            ("{% include 'set.txt' %}", "-- Olena & Co v"),
            ("{% extends 'middle.txt' %}", "Hi [all]-- Olena & Co"),
            (
                "{% extends 'base.txt' %}{% block body %}{{ code }}! {{ super() }} {% endblock %}",
                "Hi <A&B>! all -- Olena & Co",
            ),
        ];
        for (source, expected) in table {
            let messages = compile_sms(source, &texts);
            assert_eq!(render_sms(&messages, &CELLS).as_deref(), Ok(expected), "{source}");
            assert!(messages.includes().iter().any(|(name, _)| name == "footer.txt"));
        }
    }

    #[test]
    fn message_is_checked_for_each_stage() {
        let check = |sms: &str, code: &str| {
            let mut content = sms_content("Olena", sms);
            let message = NamedTemplate { name: "telegram.message".into(), source: code.into() };
            let telegram = Telegram { message, lifetime: None, fields: ExtraProperties::new() };
            (content.kind, content.stages) =
                (OperationKind::Pipeline, content.stages.into_iter().chain([Stage::Telegram(telegram)]).collect());
            let messages = compile_messages(&content, &names(), &mut |_| Err("there is none".to_owned())).unwrap();
            let rendered = messages.renderer().render(Row::new(2), |_| "?").map(drop);
            rendered.map_err(|invalid| invalid.to_string())
        };
        assert_eq!(check("Hi", "1234"), Ok(()));
        assert_eq!(check("{{ code }}", "1234"), Ok(()));
        for (sms, code, expected) in [
            ("Hi", "{{ code }}", "the Telegram text must be a code of 4 to 8 digits"),
            ("{{ code | trim(pat='?') }}", "{{ code }}", "the SMS text is empty"),
        ] {
            let error = check(sms, code).unwrap_err();
            assert!(error.contains(expected), "{sms} {code}: {error}");
        }
    }

    #[test]
    fn only_used_columns_are_read() {
        let used = |source| {
            let read_columns = std::cell::RefCell::new(std::collections::BTreeSet::new());
            let field = |column: usize| {
                read_columns.borrow_mut().insert(column);
                CELLS[column]
            };
            // It does not matter here whether the row has a message.
            let _ = compile_sms(source, &[("i.txt", "{{ Note }}")]).renderer().render(Row::new(2), field);
            read_columns.into_inner().into_iter().collect::<Vec<_>>()
        };
        assert_eq!(used("{{ code }} {% include 'i.txt' %} {{ recipient['phone'] }} {{ code }}"), [0, 2, 3]);
        assert_eq!(used("{% set code = 1 %}{{ code }}"), [0; 0]);
        assert_eq!(used("{{ recipient[code] }}"), [0, 1, 2, 3]);
    }

    #[test]
    fn rendered_row_leaves_no_state_for_the_next() {
        let compiled = compile_sms("{% if code %}{% set x = code %}{% else %}{% set x = '-' %}{% endif %}{{ x }}", &[]);
        let mut renderer = compiled.renderer();
        let long = "x".repeat(MAX_BYTES + 1);
        let mut message =
            |code| renderer.render(Row::new(2), |_| code).map(|message| message.billed_text().unwrap().to_owned());
        assert_eq!(message("a").as_deref(), Ok("a"));
        assert_eq!(message("").as_deref(), Ok("-"));
        assert!(message(&long).is_err());
        assert_eq!(message("b").as_deref(), Ok("b"));
    }

    #[test]
    fn rendering_error_has_a_reason_but_no_cell_values() {
        let long = "x".repeat(MAX_BYTES + 1);
        let cells = |code: &'static str| [CELLS[0], CELLS[1], code, CELLS[3]];
        let table = [
            ("{{ code }}", cells(" "), "the SMS text is empty"),
            (
                "\n {{ code | int }}",
                cells("380501234567x"),
                "the cell in `code` is not a number (`sms.message`, line 2, column 5)",
            ),
            ("{% set a = 1 %}{{ code | round }}", cells("380501234567x"), "(`sms.message`, line 1, column 19)"),
            ("{% if not code %}{{ throw(message='no code') }}{% endif %}", cells(""), "no code"),
            ("{% for c in code %}{% set x = c %}{% endfor %}{{ recipient[code] }}", cells("x"), "no value in this row"),
            ("{{ recipient[code] }}{{ code }}", cells("380501234567x"), "no value in this row"),
            (
                "{% if code %}{% set y = 1 %}{% endif %}{{ y }}",
                cells(""),
                "`y` has no value in this row (`sms.message`, line 1, column 43)",
            ),
        ];
        for (source, cells, expected) in table {
            let invalid = render_sms(&compile_sms(source, &[]), &cells).unwrap_err();
            let message = invalid.to_string();
            assert!(message.contains(expected), "{source}: `{message}` does not say `{expected}`");
            assert!(!format!("{message}{invalid:?}").contains("050123"), "{message}");
        }
        let cells = [CELLS[0], CELLS[1], &long, CELLS[3]];
        for source in ["{{ code }}", "{{ recipient['code'] }}"] {
            let message = render_sms(&compile_sms(source, &[]), &cells).unwrap_err().to_string();
            assert!(message.contains("the cell in `code` is longer than"), "{message}");
        }
    }
}

#[cfg(test)]
mod messages_tests {
    use super::*;

    #[test]
    fn messages_can_be_shared_between_threads() {
        fn assert_shareable<T: Send + Sync>() {}
        assert_shareable::<CompiledMessages>();
        assert_shareable::<Renderer<'static>>();
    }
}

#[cfg(test)]
mod segments_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::render::MessagePiece;
    use crate::message::render::fill_template;
    use crate::message::tests::{compile_sms, names};

    /// Renders a text with tera and with segments. `None` if the text cannot be split into segments.
    fn render_both(source: &str, cells: &[&str]) -> Option<(Option<String>, Option<String>)> {
        let messages = compile_sms(source, &[]);
        let MessagePiece::Template { key, segments, .. } = &messages.texts[1].piece else {
            panic!("{source} is a template")
        };
        let mut context = messages.context.clone();
        let row = Row::new(7);
        assert!(messages.cells.fill_context(&mut context, row, |column| cells[column]).is_ok());
        let slow = fill_template(&messages.tera, key, &context, &mut Vec::new()).ok();
        let mut text = "of the row before".to_owned();
        let fast = segments.as_ref()?.fill(row, |column| cells[column], &mut text).then_some(text);
        Some((slow, fast))
    }

    #[test]
    fn only_text_with_plain_variables_has_segments() {
        let has_segments = |source: &str| TextSegments::parse(source, &names()).is_some();
        for source in ["{{ code }}", "a {{first_name}}{{ shop }} b {{ today }}{{ row }}\n", "}} { {{ code }} %} {"] {
            assert!(has_segments(source), "{source}");
        }
        for source in [
            "{{- code }}",
            "{{ code -}}",
            "{{ code | upper }}",
            "{{ code }}{# x #}",
            "{% raw %}{{ code }}{% endraw %}",
            "{% if code %}x{% endif %}",
            "{{ recipient }}",
            "{{ recipient['code'] }}",
            "{{ gone }}",
            "{{ 1 }}",
            "{{ 'a' }}",
            "{{ true }}",
            "{% set code = 1 %}{{ code }}",
            "{{ code }} {{",
        ] {
            assert!(!has_segments(source), "{source}");
        }
    }

    #[test]
    fn adjacent_constants_are_merged_into_one_segment() {
        let segments = TextSegments::parse("Hi {{ shop }} {{ today }}: {{ code }}", &names()).unwrap();
        assert_eq!(segments.0, [TextSegment::Words("Hi Olena & Co 2026-11-21: ".into()), TextSegment::Cell(2)]);
    }

    #[test]
    fn segments_enforce_the_message_size_limit() {
        let (half, more) = ("x".repeat(MAX_BYTES / 2), "x".repeat(MAX_BYTES / 2 + 1));
        for (code, fits) in [(half.as_str(), true), (more.as_str(), false)] {
            let (slow, fast) = render_both("{{ code }}{{ first_name }}", &["1", &half, code, ""]).unwrap();
            assert_eq!(slow.is_some(), fits);
            assert_eq!(fast, slow);
        }
    }

    fn any_piece() -> impl Strategy<Value = String> {
        let name =
            prop::sample::select(vec!["code", "first_name", "Note", "shop", "campaign", "today", "row", "phone"]);
        let blank = prop::sample::select(vec!["", " ", "\n", "  \t"]);
        let tag =
            (name, blank.clone(), blank).prop_map(|(name, before, after)| format!("{{{{{before}{name}{after}}}}}"));
        let words = prop_oneof![
            "[ -~я😀\r\n\t\u{a0}]{0,12}",
            prop::sample::select(vec!["{", "}", "}}", "%}", "#}", "{ {", "\r\n", " -", "&amp;", "\\n", "\"", "\0"])
                .prop_map(str::to_owned)
        ];
        prop_oneof![tag, words]
    }

    fn any_cell() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            prop::sample::select(vec![
                "{{ code }}",
                "{% if",
                "<b>&\"'",
                "",
                " ",
                "\u{fdd0}",
                "null",
                "\\u0041",
                "\0\r\n"
            ])
            .prop_map(str::to_owned),
            (9_990_usize..10_010).prop_map(|length| "я".repeat(length / 2)),
        ]
    }

    proptest! {
        #[test]
        fn segments_render_the_same_text_as_tera(
            pieces in prop::collection::vec(any_piece(), 1..9),
            first_name in any_cell(), code in any_cell(), note in any_cell(),
        ) {
            let source = pieces.concat() + "{{ code }}";
            // A character next to a brace can begin another tag, so some sources do not compile.
            prop_assume!(crate::message::compile_messages(&crate::message::tests::sms_content("Olena", &source), &names(), &mut |_| Err(String::new())).is_ok());
            if let Some((slow, fast)) = render_both(&source, &["380501234567", &first_name, &code, &note]) {
                prop_assert_eq!(fast, slow);
            }
        }
    }
}
