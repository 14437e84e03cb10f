//! Texts of words and `{{ name }}` alone, which need no interpreter: most texts are such, and each row is filled twice.
//!
//! What is the same for everybody is among the words already. A test holds this to what tera makes of the same texts.

use super::engine::MAX_BYTES;
use super::lex::{Kind, Token, is_constant, tokens};
use super::names::{Meaning, Names, Reach};
use crate::domain::Row;

/// A text of words and names alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segments(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// They stand in everybody's text.
    Words(String),
    /// The cell of that column.
    Cell(usize),
    /// The row's number.
    Row,
}

impl Segments {
    /// The segments of a text that was compiled with these names; nothing where it has other tags than `{{ name }}`.
    pub(super) fn of(source: &str, names: &Names) -> Option<Self> {
        let (mut segments, mut copied) = (Self(Vec::new()), 0);
        for tag in tokens(source).chunks(3) {
            let [open, Token { kind: Kind::Name(name), .. }, end] = tag else { return None };
            let plain = open.kind == Kind::Print && open.span.len() == 2 && end.kind == Kind::End { trims: false };
            let words = source.get(copied..open.span.start).filter(|words| plain && is_constant(words))?;
            segments.say(words);
            segments.name(name, names)?;
            copied = end.span.end;
        }
        let words = source.get(copied..).filter(|words| is_constant(words))?;
        segments.say(words);
        Some(segments)
    }

    /// Makes `text` that of one row, unless it becomes longer than any message.
    pub(super) fn fill<'f>(&self, row: Row, field: impl Fn(usize) -> &'f str, text: &mut String) -> bool {
        text.clear();
        for segment in &self.0 {
            match segment {
                Segment::Words(words) => text.push_str(words),
                Segment::Cell(column) => text.push_str(field(*column)),
                Segment::Row => text.push_str(itoa::Buffer::new().format(row.get())),
            }
        }
        text.len() <= MAX_BYTES
    }

    /// Adds what the name stands for.
    fn name(&mut self, name: &str, names: &Names) -> Option<()> {
        match names.meanings(name, Reach::Recipient).as_slice() {
            [Meaning::Column(column)] => self.0.push(Segment::Cell(*column)),
            [Meaning::Var(var)] => self.say(&names.vars.get(*var)?.1),
            [Meaning::Ours] => match name {
                "campaign" => self.say(&names.campaign),
                "today" => self.say(&names.today),
                "row" => self.0.push(Segment::Row),
                _ => return None,
            },
            _ => return None,
        }
        Some(())
    }

    /// Adds words for everybody.
    fn say(&mut self, words: &str) {
        match self.0.last_mut() {
            Some(Segment::Words(before)) => before.push_str(words),
            _ if words.is_empty() => {}
            _ => self.0.push(Segment::Words(words.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::fixtures::{messages, names};
    use crate::message::messages::Piece;
    use crate::message::render::fill;

    /// What tera makes of the text with these cells, and what its segments make of it; nothing where it has none.
    fn both(source: &str, cells: &[&str]) -> Option<(Option<String>, Option<String>)> {
        let messages = messages(source, &[]);
        let Piece::Template { key, segments, .. } = &messages.texts[1].piece else { panic!("{source} is a template") };
        let mut context = messages.context.clone();
        let row = Row::new(7);
        assert!(messages.cells.bring(&mut context, row, |column| cells[column]).is_ok());
        let slow = fill(&messages.tera, key, &context, &mut Vec::new()).ok();
        let mut text = "of the row before".to_owned();
        let fast = segments.as_ref()?.fill(row, |column| cells[column], &mut text).then_some(text);
        Some((slow, fast))
    }

    #[test]
    fn a_text_of_words_and_names_has_segments_and_any_other_has_none() {
        let has_segments = |source: &str| Segments::of(source, &names()).is_some();
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
    fn words_that_are_the_same_for_everybody_are_one_segment() {
        let segments = Segments::of("Hi {{ shop }} {{ today }}: {{ code }}", &names()).unwrap();
        assert_eq!(segments.0, [Segment::Words("Hi Olena & Co 2026-11-21: ".into()), Segment::Cell(2)]);
    }

    #[test]
    fn a_text_may_be_as_long_as_a_message_and_no_longer() {
        let (half, more) = ("x".repeat(MAX_BYTES / 2), "x".repeat(MAX_BYTES / 2 + 1));
        for (code, fits) in [(half.as_str(), true), (more.as_str(), false)] {
            let (slow, fast) = both("{{ code }}{{ first_name }}", &["1", &half, code, ""]).unwrap();
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
        fn segments_say_what_tera_says(
            pieces in prop::collection::vec(piece(), 1..9),
            first_name in cell(), code in cell(), note in cell(),
        ) {
            let source = pieces.concat() + "{{ code }}";
            // What stands beside a brace may begin another tag.
            prop_assume!(crate::message::compile(&crate::message::fixtures::sms("Olena", &source), &names(), &mut |_| Err(String::new())).is_ok());
            if let Some((slow, fast)) = both(&source, &["380501234567", &first_name, &code, &note]) {
                prop_assert_eq!(fast, slow);
            }
        }
    }
}
