//! Parts of a text that rules look for: conditions, filters, loops, mentioned names and constant parts.

use std::collections::BTreeSet;
use std::ops::Range;

use super::engine::{FILTERS, filter_arguments};
use super::tokens::{TemplateToken, TokenKind, find_literals, tokenize};
use campaign_core::domain::NamedTemplate;

/// The kind of a condition on a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionKind {
    /// Whether it has a value: `{% if vip %}`.
    IsTruthy,
    /// Compares it with this text: `{% if plan == "gold" %}`.
    IsText(String),
    /// Compares it with `true` or `false` without quotes, which no cell equals.
    IsBool(bool),
    /// Compares it with a number without quotes, which no cell is; with the source of the comparison.
    IsNumber(String),
}

/// A condition on a bare name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionCheck {
    /// The name.
    pub name: String,
    /// The kind of the check.
    pub kind: ConditionKind,
    /// The byte range in the source.
    pub span: Range<usize>,
}

/// The simple conditions in a text, each of which tests a bare name.
pub fn find_condition_checks(text: &NamedTemplate) -> Vec<ConditionCheck> {
    let tokens = tokenize(&text.source);
    let mut checks = Vec::new();
    for tag in tokens.split_inclusive(|token| matches!(token.kind, TokenKind::End { .. })) {
        let [
            TemplateToken { kind: TokenKind::Tag, .. },
            TemplateToken { kind: TokenKind::Name("if" | "elif"), .. },
            condition @ ..,
            _,
        ] = tag
        else {
            continue;
        };
        checks.extend(list_simple_checks(condition, &text.source));
    }
    checks
}

/// The simple conditions in a compound condition, each of which tests a bare name.
pub(super) fn list_simple_checks(condition: &[TemplateToken<'_>], source: &str) -> Vec<ConditionCheck> {
    let joins = |token: &TemplateToken<'_>| {
        matches!(token.kind, TokenKind::Name("and" | "or" | "not") | TokenKind::Symbol("(" | ")"))
    };
    let named = |name: &str| condition.iter().filter(|token| token.kind == TokenKind::Name(name)).count();
    let simple = condition.split(joins).filter_map(|condition| parse_check(condition, source));
    // An author who also converts the value, as in `points and points | int > 0`, knows that cells are text.
    simple.filter(|check| check.kind != ConditionKind::IsTruthy || named(&check.name) == 1).collect()
}

/// Parses a condition without `and`, `or` and `not`. `None` if the condition is not simple.
fn parse_check(condition: &[TemplateToken<'_>], source: &str) -> Option<ConditionCheck> {
    let (first, last) = (condition.first()?, condition.last()?);
    let as_number = || {
        let [left, operator, right] = condition else { return None };
        let number = [right, left].into_iter().find(|side| side.kind == TokenKind::Number)?;
        let number = &source[number.span.clone()];
        let [left_side, right_side] = [left, right].map(|side| match side.kind {
            TokenKind::Name(name) => {
                let filter = if number.contains('.') { "float" } else { "int" };
                format!("{name} | {filter}")
            }
            _ => source[side.span.clone()].to_owned(),
        });
        Some(ConditionKind::IsNumber(format!("{left_side} {} {right_side}", &source[operator.span.clone()])))
    };
    let (name, kind) = match condition {
        [TemplateToken { kind: TokenKind::Name(name), .. }] => (name, ConditionKind::IsTruthy),
        [
            TemplateToken { kind: TokenKind::Name(name), .. },
            TemplateToken { kind: TokenKind::Symbol("==" | "!="), .. },
            value,
        ] => (name, parse_kind(value).or_else(as_number)?),
        [
            value,
            TemplateToken { kind: TokenKind::Symbol("==" | "!="), .. },
            TemplateToken { kind: TokenKind::Name(name), .. },
        ] => (name, parse_kind(value).or_else(as_number)?),
        // Only comparisons with numbers count: comparing texts by their order is rare and never fails.
        [
            TemplateToken { kind: TokenKind::Name(name), .. },
            TemplateToken { kind: TokenKind::Symbol(sign), .. },
            TemplateToken { kind: TokenKind::Number, .. },
        ]
        | [
            TemplateToken { kind: TokenKind::Number, .. },
            TemplateToken { kind: TokenKind::Symbol(sign), .. },
            TemplateToken { kind: TokenKind::Name(name), .. },
        ] if matches!(*sign, "<" | ">" | "<=" | ">=") => (name, as_number()?),
        _ => return None,
    };
    Some(ConditionCheck { name: (*name).to_owned(), kind, span: first.span.start..last.span.end })
}

fn parse_kind(value: &TemplateToken<'_>) -> Option<ConditionKind> {
    match &value.kind {
        TokenKind::Text(text) => Some(ConditionKind::IsText(text.clone())),
        TokenKind::Name("true" | "True") => Some(ConditionKind::IsBool(true)),
        TokenKind::Name("false" | "False") => Some(ConditionKind::IsBool(false)),
        _ => None,
    }
}

/// The comparisons of a name with a number by `<` or `>`, which always fail because no cell is a number.
pub fn find_number_comparisons(text: &NamedTemplate) -> Vec<ConditionCheck> {
    let is_order = |check: &ConditionCheck| {
        let written = &text.source[check.span.clone()];
        matches!(check.kind, ConditionKind::IsNumber(_)) && written.contains(['<', '>'])
    };
    find_condition_checks(text).into_iter().filter(is_order).collect()
}

/// The remedy for a name that is compared with a number. `written` is the correct comparison.
pub fn suggest_number_comparison(name: &str, written: &str) -> String {
    format!("write `{written}`, or `{name} != '' and {written}` if some cells are empty")
}

/// The filter of an expression, with its arguments as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterCall {
    /// The filter.
    pub name: String,
    /// The byte range of its name in the source.
    pub span: Range<usize>,
    /// The names of its arguments, with their places.
    pub arguments: Vec<(String, Range<usize>)>,
    /// The arguments that it requires.
    pub required: &'static [&'static str],
    /// The optional arguments.
    pub optional: &'static [&'static str],
}

/// The calls of existing filters in a text.
pub fn find_filter_calls(text: &NamedTemplate) -> Vec<FilterCall> {
    let tokens = tokenize(&text.source);
    let calls = tokens.windows(2).enumerate().filter_map(|(at, pair)| match pair {
        [TemplateToken { kind: TokenKind::Symbol("|"), .. }, TemplateToken { kind: TokenKind::Name(name), span }]
            if FILTERS.contains(name) =>
        {
            let (required, optional) = filter_arguments(name);
            let given = argument_names(&tokens[at + 2..]);
            Some(FilterCall { name: (*name).to_owned(), span: span.clone(), arguments: given, required, optional })
        }
        _ => None,
    });
    calls.collect()
}

/// The names of the arguments in the brackets at the beginning of `tokens`.
fn argument_names(tokens: &[TemplateToken<'_>]) -> Vec<(String, Range<usize>)> {
    let (mut depth, mut given) = (0_usize, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Symbol("(" | "[" | "{") => depth += 1,
            TokenKind::Symbol(")" | "]" | "}") => depth = depth.saturating_sub(1),
            TokenKind::Name(name)
                if depth == 1
                    && matches!(tokens.get(at + 1).map(|token| &token.kind), Some(TokenKind::Symbol("="))) =>
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

/// The plain names that a text loops over, with their places.
pub fn find_looped_names(text: &NamedTemplate) -> Vec<(String, Range<usize>)> {
    let tokens = tokenize(&text.source);
    let tags = tokens.split_inclusive(|token| matches!(token.kind, TokenKind::End { .. }));
    let name = |tag: &[TemplateToken<'_>]| match tag {
        [
            TemplateToken { kind: TokenKind::Tag, .. },
            TemplateToken { kind: TokenKind::Name("for"), .. },
            ..,
            TemplateToken { kind: TokenKind::Name("in"), .. },
            TemplateToken { kind: TokenKind::Name(name), span },
            TemplateToken { kind: TokenKind::End { .. }, .. },
        ] => Some(((*name).to_owned(), span.clone())),
        _ => None,
    };
    tags.filter_map(name).collect()
}

/// Names and texts that a text mentions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Names and keywords.
    pub names: BTreeSet<String>,
    /// Names of texts that it includes or extends.
    pub texts: BTreeSet<String>,
}

/// The names and texts that the tags of a text mention.
pub fn find_mentions(text: &NamedTemplate) -> Mentions {
    let mut mentions = Mentions::default();
    for tag in tokenize(&text.source).split_inclusive(|token| matches!(token.kind, TokenKind::End { .. })) {
        let includes =
            matches!(tag, [_, TemplateToken { kind: TokenKind::Name("include" | "extends" | "import"), .. }, ..]);
        for token in tag {
            match &token.kind {
                TokenKind::Name(name) => drop(mentions.names.insert((*name).to_owned())),
                TokenKind::Text(name) if includes => drop(mentions.texts.insert(name.clone())),
                _ => {}
            }
        }
    }
    mentions
}

/// The constant parts of a text, with their byte ranges in the source.
pub fn constant_parts(text: &NamedTemplate) -> impl Iterator<Item = (&str, Range<usize>)> {
    find_literals(&text.source).into_iter().map(|at| (&text.source[at.clone()], at))
}

/// Masks each byte of the tags with `x`, so that byte positions stay the same as in the source.
pub fn mask_tags(text: &NamedTemplate) -> String {
    let mut masked = String::with_capacity(text.source.len());
    for literal in find_literals(&text.source) {
        masked.extend(std::iter::repeat_n('x', literal.start - masked.len()));
        masked += &text.source[literal];
    }
    masked.extend(std::iter::repeat_n('x', text.source.len() - masked.len()));
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_check_kinds(source: &str) -> Vec<(String, ConditionKind)> {
        let text = NamedTemplate { name: "t".into(), source: source.into() };
        find_condition_checks(&text).into_iter().map(|check| (check.name, check.kind)).collect()
    }

    #[test]
    fn masked_text_keeps_word_positions() {
        for (source, shown) in [("Hi", "Hi"), ("a{{ b }}є{# c #}", "axxxxxxxєxxxxxxx"), ("{{ b }}c", "xxxxxxxc")] {
            assert_eq!(mask_tags(&NamedTemplate { name: "t".into(), source: source.into() }), shown);
        }
    }

    #[test]
    fn simple_condition_checks_are_found() {
        let whether = |name: &str| (name.to_owned(), ConditionKind::IsTruthy);
        let is = |name: &str, text: &str| (name.to_owned(), ConditionKind::IsText(text.to_owned()));
        assert_eq!(
            list_check_kinds("{% if vip %}a{% elif not old and plan == \"gold\" %}b{% endif %}"),
            [whether("vip"), whether("old"), is("plan", "gold"),]
        );
        assert_eq!(
            list_check_kinds("{% if 'x' != a or b == true %}{% endif %}"),
            [is("a", "x"), ("b".to_owned(), ConditionKind::IsBool(true)),]
        );
        for other in [
            "{{ a == 'x' }}",
            "{% if a | length > 3 %}",
            "{% if a.b %}",
            "{% if a is defined %}",
            "{% for a in b %}",
            "{% if a and a | int > 0 %}",
        ] {
            assert_eq!(list_check_kinds(other), [], "{other}");
        }
    }
}
