//! Texts of words and `{{ name }}` alone, which need no interpreter: most texts are such, and each row is filled twice.
//!
//! What is the same for everybody is among the words already. A test holds this to what tera makes of the same texts.

use super::engine::MAX_BYTES;
use super::lex::{TemplateToken, TokenKind, is_constant, tokenize};
use super::names::{NameMeaning, NameScope, TemplateNames};
use crate::domain::Row;

/// A text of words and names alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextSegments(Vec<TextSegment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TextSegment {
    /// They stand in everybody's text.
    Words(String),
    /// The cell of that column.
    Cell(usize),
    /// The row's number.
    Row,
}

impl TextSegments {
    /// The segments of a text that was compiled with these names; nothing where it has other tags than `{{ name }}`.
    pub(super) fn parse(source: &str, names: &TemplateNames) -> Option<Self> {
        let (mut segments, mut copied) = (Self(Vec::new()), 0);
        for tag in tokenize(source).chunks(3) {
            let [open, TemplateToken { kind: TokenKind::Name(name), .. }, end] = tag else { return None };
            let plain =
                open.kind == TokenKind::Print && open.span.len() == 2 && end.kind == TokenKind::End { trims: false };
            let words = source.get(copied..open.span.start).filter(|words| plain && is_constant(words))?;
            segments.push_words(words);
            segments.push_name(name, names)?;
            copied = end.span.end;
        }
        let words = source.get(copied..).filter(|words| is_constant(words))?;
        segments.push_words(words);
        Some(segments)
    }

    /// Makes `text` that of one row, unless it becomes longer than any message.
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

    /// Adds what the name stands for.
    fn push_name(&mut self, name: &str, names: &TemplateNames) -> Option<()> {
        match names.find_meanings(name, NameScope::Recipient).as_slice() {
            [NameMeaning::Column(column)] => self.0.push(TextSegment::Cell(*column)),
            [NameMeaning::Var(var)] => self.push_words(&names.vars.get(*var)?.1),
            [NameMeaning::Ours] => match name {
                "campaign" => self.push_words(&names.campaign),
                "today" => self.push_words(&names.today),
                "row" => self.0.push(TextSegment::Row),
                _ => return None,
            },
            _ => return None,
        }
        Some(())
    }

    /// Adds words for everybody.
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
    use proptest::prelude::*;

    use super::*;
    use crate::message::fixtures::{compile_sms, names};
    use crate::message::messages::MessagePiece;
    use crate::message::render::fill_template;

    /// What tera makes of the text with these cells, and what its segments make of it; nothing where it has none.
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
    fn only_text_of_words_and_names_has_segments() {
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
    fn constant_words_are_one_segment() {
        let segments = TextSegments::parse("Hi {{ shop }} {{ today }}: {{ code }}", &names()).unwrap();
        assert_eq!(segments.0, [TextSegment::Words("Hi Olena & Co 2026-11-21: ".into()), TextSegment::Cell(2)]);
    }

    #[test]
    fn text_can_be_as_long_as_a_message() {
        let (half, more) = ("x".repeat(MAX_BYTES / 2), "x".repeat(MAX_BYTES / 2 + 1));
        for (code, fits) in [(half.as_str(), true), (more.as_str(), false)] {
            let (slow, fast) = render_both("{{ code }}{{ first_name }}", &["1", &half, code, ""]).unwrap();
            assert_eq!(slow.is_some(), fits);
            assert_eq!(fast, slow);
        }
    }

    fn piece() -> impl Strategy<Value = String> {
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

    fn cell() -> impl Strategy<Value = String> {
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
        fn segments_render_like_tera(
            pieces in prop::collection::vec(piece(), 1..9),
            first_name in cell(), code in cell(), note in cell(),
        ) {
            let source = pieces.concat() + "{{ code }}";
            // What stands beside a brace may begin another tag.
            prop_assume!(crate::message::compile_messages(&crate::message::fixtures::sms_content("Olena", &source), &names(), &mut |_| Err(String::new())).is_ok());
            if let Some((slow, fast)) = render_both(&source, &["380501234567", &first_name, &code, &note]) {
                prop_assert_eq!(fast, slow);
            }
        }
    }
}
