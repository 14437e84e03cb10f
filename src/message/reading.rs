//! What a text says and asks by itself, for rules that judge texts before any row is known.

use std::collections::BTreeSet;
use std::ops::Range;

use super::engine::{FILTERS, arguments};
use super::lex::{Kind, Token, literals, tokens};
use super::problem::TextProblem;
use crate::domain::Text;
use crate::finding::Rule;

/// What a condition asks of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Whether it is something: `{% if vip %}`.
    Whether,
    /// Whether it is this text: `{% if plan == "gold" %}`.
    IsText(String),
    /// Whether it is `true` or `false` without quotes, which no cell is.
    IsBool(bool),
    /// Whether it equals, exceeds or is below a number without quotes, which no cell does; with the source of the comparison.
    IsNumber(String),
}

/// A question that a text asks of a bare name in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The name.
    pub name: String,
    /// What is asked.
    pub asked: Asked,
    /// Where it stands: bytes of the text's source.
    pub span: Range<usize>,
}

/// The parts of a text that everybody gets as they stand, with their places: bytes of its source.
pub fn said(text: &Text) -> impl Iterator<Item = (&str, Range<usize>)> {
    literals(&text.source).into_iter().map(|at| (&text.source[at.clone()], at))
}

/// The source with `x` for each byte of its tags, so that positions in it are positions in the source.
#[must_use]
pub fn masked(text: &Text) -> String {
    let mut masked = String::with_capacity(text.source.len());
    for literal in literals(&text.source) {
        masked.extend(std::iter::repeat_n('x', literal.start - masked.len()));
        masked += &text.source[literal];
    }
    masked.extend(std::iter::repeat_n('x', text.source.len() - masked.len()));
    masked
}

/// What the tags of a text mention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Names and keywords.
    pub names: BTreeSet<String>,
    /// Names of texts that it includes or extends.
    pub texts: BTreeSet<String>,
}

/// What the tags of a text mention.
#[must_use]
pub fn mentions(text: &Text) -> Mentions {
    let mut mentions = Mentions::default();
    for tag in tokens(&text.source).split_inclusive(|token| matches!(token.kind, Kind::End { .. })) {
        let includes = matches!(tag, [_, Token { kind: Kind::Name("include" | "extends" | "import"), .. }, ..]);
        for token in tag {
            match &token.kind {
                Kind::Name(name) => drop(mentions.names.insert((*name).to_owned())),
                Kind::Text(name) if includes => drop(mentions.texts.insert(name.clone())),
                _ => {}
            }
        }
    }
    mentions
}

/// The questions that a text asks of bare names in its conditions, as far as they are simple ones.
#[must_use]
pub fn questions(text: &Text) -> Vec<Question> {
    let tokens = tokens(&text.source);
    let mut questions = Vec::new();
    for tag in tokens.split_inclusive(|token| matches!(token.kind, Kind::End { .. })) {
        let [Token { kind: Kind::Tag, .. }, Token { kind: Kind::Name("if" | "elif"), .. }, condition @ .., _] = tag
        else {
            continue;
        };
        questions.extend(simple_questions(condition, &text.source));
    }
    questions
}

/// The questions that a condition asks of bare names, as far as they are simple ones.
pub(super) fn simple_questions(condition: &[Token<'_>], source: &str) -> Vec<Question> {
    let joins = |token: &Token<'_>| matches!(token.kind, Kind::Name("and" | "or" | "not") | Kind::Symbol("(" | ")"));
    let named = |name: &str| condition.iter().filter(|token| token.kind == Kind::Name(name)).count();
    let asked = condition.split(joins).filter_map(|condition| question(condition, source));
    // Who asks more of a name in the same breath, such as `points and points | int > 0`, knows what a cell is.
    asked.filter(|question| question.asked != Asked::Whether || named(&question.name) == 1).collect()
}

/// The remedy for a name that is compared with a number; `written` is the correct comparison.
#[must_use]
pub fn remedy_of_number(name: &str, written: &str) -> String {
    format!("write `{written}`, or `{name} != '' and {written}` if some cells are empty")
}

/// The comparisons of names with numbers by `<` or `>`: no cell is a number, so each of them fails.
#[must_use]
pub fn number_orders(text: &Text) -> Vec<Question> {
    let is_order = |question: &Question| {
        let written = &text.source[question.span.clone()];
        matches!(question.asked, Asked::IsNumber(_)) && written.contains(['<', '>'])
    };
    questions(text).into_iter().filter(is_order).collect()
}

/// The question that a condition without `and`, `or` and `not` asks, if it is a simple one.
fn question(condition: &[Token<'_>], source: &str) -> Option<Question> {
    let (first, last) = (condition.first()?, condition.last()?);
    let as_number = || {
        let [left, operator, right] = condition else { return None };
        let number = [right, left].into_iter().find(|side| side.kind == Kind::Number)?;
        let number = &source[number.span.clone()];
        let [left_side, right_side] = [left, right].map(|side| match side.kind {
            Kind::Name(name) => {
                let filter = if number.contains('.') { "float" } else { "int" };
                format!("{name} | {filter}")
            }
            _ => source[side.span.clone()].to_owned(),
        });
        Some(Asked::IsNumber(format!("{left_side} {} {right_side}", &source[operator.span.clone()])))
    };
    let (name, asked) = match condition {
        [Token { kind: Kind::Name(name), .. }] => (name, Asked::Whether),
        [Token { kind: Kind::Name(name), .. }, Token { kind: Kind::Symbol("==" | "!="), .. }, value] => {
            (name, asked(value).or_else(as_number)?)
        }
        [value, Token { kind: Kind::Symbol("==" | "!="), .. }, Token { kind: Kind::Name(name), .. }] => {
            (name, asked(value).or_else(as_number)?)
        }
        // Only numbers are asked for their order: that of texts is seldom meant, and never refused.
        [
            Token { kind: Kind::Name(name), .. },
            Token { kind: Kind::Symbol(sign), .. },
            Token { kind: Kind::Number, .. },
        ]
        | [
            Token { kind: Kind::Number, .. },
            Token { kind: Kind::Symbol(sign), .. },
            Token { kind: Kind::Name(name), .. },
        ] if matches!(*sign, "<" | ">" | "<=" | ">=") => (name, as_number()?),
        _ => return None,
    };
    Some(Question { name: (*name).to_owned(), asked, span: first.span.start..last.span.end })
}

fn asked(value: &Token<'_>) -> Option<Asked> {
    match &value.kind {
        Kind::Text(text) => Some(Asked::IsText(text.clone())),
        Kind::Name("true" | "True") => Some(Asked::IsBool(true)),
        Kind::Name("false" | "False") => Some(Asked::IsBool(false)),
        _ => None,
    }
}

/// The filter of an expression, with its arguments as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterCall {
    /// The filter.
    pub name: String,
    /// Where its name stands: bytes of the text's source.
    pub span: Range<usize>,
    /// The names of its arguments, with their places.
    pub arguments: Vec<(String, Range<usize>)>,
    /// The arguments that it requires.
    pub required: &'static [&'static str],
    /// The others that it has.
    pub optional: &'static [&'static str],
}

/// The calls of existing filters in a text.
#[must_use]
pub fn filter_calls(text: &Text) -> Vec<FilterCall> {
    let tokens = tokens(&text.source);
    let calls = tokens.windows(2).enumerate().filter_map(|(at, pair)| match pair {
        [Token { kind: Kind::Symbol("|"), .. }, Token { kind: Kind::Name(name), span }] if FILTERS.contains(name) => {
            let (required, optional) = arguments(name);
            let given = given(&tokens[at + 2..]);
            Some(FilterCall { name: (*name).to_owned(), span: span.clone(), arguments: given, required, optional })
        }
        _ => None,
    });
    calls.collect()
}

/// The names of the arguments in the brackets that some tokens begin with.
fn given(tokens: &[Token<'_>]) -> Vec<(String, Range<usize>)> {
    let (mut depth, mut given) = (0_usize, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Symbol("(" | "[" | "{") => depth += 1,
            Kind::Symbol(")" | "]" | "}") => depth = depth.saturating_sub(1),
            Kind::Name(name)
                if depth == 1 && matches!(tokens.get(at + 1).map(|token| &token.kind), Some(Kind::Symbol("="))) =>
            {
                given.push((name.to_owned(), token.span.clone()));
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    given
}

/// The plain names that loops of a text go over, with their places.
#[must_use]
pub fn looped_names(text: &Text) -> Vec<(String, Range<usize>)> {
    let tokens = tokens(&text.source);
    let tags = tokens.split_inclusive(|token| matches!(token.kind, Kind::End { .. }));
    let name = |tag: &[Token<'_>]| match tag {
        [
            Token { kind: Kind::Tag, .. },
            Token { kind: Kind::Name("for"), .. },
            ..,
            Token { kind: Kind::Name("in"), .. },
            Token { kind: Kind::Name(name), span },
            Token { kind: Kind::End { .. }, .. },
        ] => Some(((*name).to_owned(), span.clone())),
        _ => None,
    };
    tags.filter_map(name).collect()
}

/// A problem of some bytes of a text.
#[must_use]
pub fn problem_at(text: &Text, span: Range<usize>, rule: &'static Rule, message: String, help: &str) -> TextProblem {
    TextProblem::new(&text.name, &text.source, span, rule, message).help(help.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_by(source: &str) -> Vec<(String, Asked)> {
        let text = Text { name: "t".into(), source: source.into() };
        questions(&text).into_iter().map(|question| (question.name, question.asked)).collect()
    }

    #[test]
    fn masked_text_keeps_the_places_of_its_words() {
        for (source, shown) in [("Hi", "Hi"), ("a{{ b }}є{# c #}", "axxxxxxxєxxxxxxx"), ("{{ b }}c", "xxxxxxxc")] {
            assert_eq!(masked(&Text { name: "t".into(), source: source.into() }), shown);
        }
    }

    #[test]
    fn the_simple_questions_of_conditions_are_read() {
        let whether = |name: &str| (name.to_owned(), Asked::Whether);
        let is = |name: &str, text: &str| (name.to_owned(), Asked::IsText(text.to_owned()));
        assert_eq!(
            asked_by("{% if vip %}a{% elif not old and plan == \"gold\" %}b{% endif %}"),
            [whether("vip"), whether("old"), is("plan", "gold"),]
        );
        assert_eq!(
            asked_by("{% if 'x' != a or b == true %}{% endif %}"),
            [is("a", "x"), ("b".to_owned(), Asked::IsBool(true)),]
        );
        for other in [
            "{{ a == 'x' }}",
            "{% if a | length > 3 %}",
            "{% if a.b %}",
            "{% if a is defined %}",
            "{% for a in b %}",
            "{% if a and a | int > 0 %}",
        ] {
            assert_eq!(asked_by(other), [], "{other}");
        }
    }
}
