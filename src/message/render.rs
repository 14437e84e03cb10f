//! Filling messages with the cells of one row.

use std::ops::Range;

use tera::{Context, Error, Tera};

use super::cells::TemplateCells;
use super::engine::{CappedWriter, MAX_BYTES, reset_steps};
use super::failure::{RenderFailure, explain_failure};
use super::filled::{FilledMessage, FilledText};
use super::messages::{CompiledMessages, MessagePiece, MessageText};
use super::metered_text::{MeteredTexts, error_place};
use super::problem::TextProblem;
use crate::domain::{NamedTemplate, Row, TextViolation, find_text_violation};
use crate::finding::rules;

/// Fills the messages for one row after another.
///
/// It holds the last row's cells, so it has no `Debug`.
pub struct Renderer<'m> {
    messages: &'m CompiledMessages,
    context: Context,
    buffer: Vec<u8>,
    /// The texts of the last row by their places, and those that everybody gets.
    texts: Vec<FilledText>,
    /// Whether tera fills some of them.
    interprets: bool,
}

/// Why a row has no message; `Display` gives the reason in plain words, without any cell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A template fails with this row's values.
    #[error("{} (`{}`, line {}, column {})", .0.message, .0.text, .0.line, .0.column)]
    TemplateFails(Box<TextProblem>),
    /// A message would be longer than any channel takes.
    #[error("`{text}` is longer than {MAX_BYTES} bytes, which is too long for every channel")]
    TooLong {
        /// The text's name.
        text: String,
    },
    /// A cell is longer than any message.
    #[error("the cell in `{column}` is longer than {MAX_BYTES} bytes, which is too long for every channel")]
    CellTooLong {
        /// The column's template name or header.
        column: String,
    },
    /// A condition gives something else than true or false.
    #[error("the result of `{text}` is neither true nor false")]
    NoAnswer {
        /// The condition's name.
        text: String,
    },
    /// A channel would not take the text.
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
        let interprets =
            messages.texts.iter().any(|text| matches!(text.piece, MessagePiece::Template { segments: None, .. }));
        Self { messages, context: messages.context.clone(), buffer: Vec::new(), texts, interprets }
    }

    /// The message for one row; `field` gives the cell of a column, "" where there is none.
    ///
    /// The rules of the channels hold for what is returned: texts that everybody gets were judged when they were compiled.
    ///
    /// # Errors
    /// Why this row has no message.
    pub fn render<'f>(&mut self, row: Row, field: impl Fn(usize) -> &'f str) -> Result<FilledMessage<'_>, RenderError> {
        let Self { messages, context, buffer, texts, interprets } = self;
        if *interprets {
            messages.cells.fill_context(context, row, &field)?;
        } else {
            messages.cells.check_lengths(&field)?;
        }
        for (text, filled) in messages.texts.iter().zip(&mut *texts) {
            match &text.piece {
                MessagePiece::Constant(_) => {}
                MessagePiece::Template { segments: Some(segments), name, .. } => {
                    if !segments.fill(row, &field, &mut filled.filled) {
                        return Err(RenderError::TooLong { text: name.clone() });
                    }
                }
                MessagePiece::Template { key, name, segments: None } => {
                    let text = fill_template(&messages.tera, key, context, buffer);
                    filled.filled = text.map_err(|error| render_error(&error, name, messages))?;
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

/// Has tera fill a template; `buffer` is reused.
pub(super) fn fill_template(tera: &Tera, key: &str, context: &Context, buffer: &mut Vec<u8>) -> Result<String, Error> {
    reset_steps();
    buffer.clear();
    tera.render_to(key, context, CappedWriter(buffer))?;
    Ok(std::str::from_utf8(buffer).map_err(Error::message)?.to_owned())
}

/// The reason why a row has no message, if tera cannot render the text of that name.
fn render_error(error: &Error, name: &str, messages: &CompiledMessages) -> RenderError {
    render_error_in(error, name, (&messages.metered, &messages.cells))
}

/// The same of texts with these cells.
pub(super) fn render_error_in(
    error: &Error,
    name: &str,
    (metered, cells): (&MeteredTexts, &TemplateCells),
) -> RenderError {
    if matches!(error.kind(), tera::ErrorKind::Io(_)) {
        return RenderError::TooLong { text: name.to_owned() };
    }
    let is_column = |name: &str| cells.by_name.iter().any(|(_, column)| *column == name);
    RenderError::TemplateFails(Box::new(match error_place(error, metered) {
        // A shared template has the name of the first text that has its source.
        Some((text, span)) => failure_problem(error.kind(), text, span, &is_column),
        None => {
            let text = NamedTemplate { name: name.to_owned(), source: String::new() };
            failure_problem(error.kind(), &text, 0..0, &is_column)
        }
    }))
}

/// The problem of a text that cannot be rendered.
pub(super) fn failure_problem(
    kind: &tera::ErrorKind,
    text: &NamedTemplate,
    span: Range<usize>,
    is_column: &dyn Fn(&str) -> bool,
) -> TextProblem {
    let (RenderFailure { reason, help }, span) = explain_failure(kind, &text.source, span, is_column);
    TextProblem::new(&text.name, &text.source, span, &rules::TEXT_FAILS, reason).with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ExtraProperties, OperationKind, Stage, Telegram};
    use crate::message::compile_messages;
    use crate::message::fixtures::{CELLS, compile_sms, names, render_sms, sms_content};

    #[test]
    fn text_sees_all_names_and_nothing_is_escaped() {
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
                "{% for c in 'a,b' | split(pat=',') -%}\n {{ loop.index }}{{ c }}{% if not loop.last %};{% endif %}{% endfor %}",
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
        let judged = |sms: &str, code: &str| {
            let mut content = sms_content("Olena", sms);
            let message = NamedTemplate { name: "telegram.message".into(), source: code.into() };
            let telegram = Telegram { message, lifetime: None, fields: ExtraProperties::new() };
            (content.kind, content.stages) =
                (OperationKind::Pipeline, content.stages.into_iter().chain([Stage::Telegram(telegram)]).collect());
            let messages = compile_messages(&content, &names(), &mut |_| Err("there is none".to_owned())).unwrap();
            let rendered = messages.renderer().render(Row::new(2), |_| "?").map(drop);
            rendered.map_err(|invalid| invalid.to_string())
        };
        assert_eq!(judged("Hi", "1234"), Ok(()));
        assert_eq!(judged("{{ code }}", "1234"), Ok(()));
        for (sms, code, refused) in [
            ("Hi", "{{ code }}", "the Telegram text is not a code of 4 to 8 digits"),
            ("{{ code | trim(pat='?') }}", "{{ code }}", "the SMS text is empty"),
        ] {
            let why = judged(sms, code).unwrap_err();
            assert!(why.contains(refused), "{sms} {code}: {why}");
        }
    }

    #[test]
    fn only_used_columns_are_read() {
        let used = |source| {
            let asked = std::cell::RefCell::new(std::collections::BTreeSet::new());
            let field = |column: usize| {
                asked.borrow_mut().insert(column);
                CELLS[column]
            };
            // Whether the row has a message does not matter here.
            let _ = compile_sms(source, &[("i.txt", "{{ Note }}")]).renderer().render(Row::new(2), field);
            asked.into_inner().into_iter().collect::<Vec<_>>()
        };
        assert_eq!(used("{{ code }} {% include 'i.txt' %} {{ recipient['phone'] }} {{ code }}"), [0, 2, 3]);
        assert_eq!(used("{% set code = 1 %}{{ code }}"), [0; 0]);
        assert_eq!(used("{{ recipient[code] }}"), [0, 1, 2, 3]);
    }

    #[test]
    fn row_leaves_nothing_for_the_next_row() {
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
    fn row_without_a_message_has_a_reason_without_cells() {
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
            let shown = invalid.to_string();
            assert!(shown.contains(expected), "{source}: `{shown}` does not say `{expected}`");
            assert!(!format!("{shown}{invalid:?}").contains("050123"), "{shown}");
        }
        let cells = [CELLS[0], CELLS[1], &long, CELLS[3]];
        for source in ["{{ code }}", "{{ recipient['code'] }}"] {
            let shown = render_sms(&compile_sms(source, &[]), &cells).unwrap_err().to_string();
            assert!(shown.contains("the cell in `code` is longer than"), "{shown}");
        }
    }
}
