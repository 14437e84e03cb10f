//! Markup in a text that would be sent literally, reported in one finding.

use std::ops::Range;

use crate::domain::NamedTemplate;
use crate::finding::{Rule, join_names};
use crate::message::{TextProblem, problem_at};

/// How many signs a finding names at most.
const MAX_NAMED: usize = 8;
/// How many characters of a sign are shown at most.
const MAX_CHARS: usize = 60;

/// A finding at the first of these signs that names each sign once. `None` without signs.
pub(super) fn markup_finding(
    text: &NamedTemplate,
    spans: &[Range<usize>],
    rule: &'static Rule,
    help: impl FnOnce(&[&str]) -> String,
) -> Option<TextProblem> {
    let first = spans.first()?.clone();
    let mut signs: Vec<&str> = Vec::new();
    for sign in spans.iter().map(|span| &text.source[span.clone()]) {
        if !signs.contains(&sign) {
            signs.push(sign);
        }
    }
    let more = signs.len().saturating_sub(MAX_NAMED);
    signs.truncate(MAX_NAMED);
    let named: Vec<String> = signs.iter().map(|sign| shorten(sign)).collect();
    let named = join_names(named.iter().map(String::as_str));
    let message = match more {
        0 => format!("{named} would be sent literally"),
        more => format!("{named}, and {more} more, would be sent literally"),
    };
    Some(problem_at(text, first, rule, message, &help(&signs)))
}

/// The first characters of a long sign.
fn shorten(sign: &str) -> String {
    match sign.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &sign[..end]),
        None => sign.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::RULE_TEXT;

    static RULE: Rule = Rule::warning("sign", RULE_TEXT);

    #[test]
    fn finding_names_each_sign_once_and_few_of_many() {
        let told = |source: &str, spans: &[Range<usize>]| {
            let text = NamedTemplate { name: "t".into(), source: source.into() };
            markup_finding(&text, spans, &RULE, |signs| signs.join(" ")).map(|problem| problem.message)
        };
        assert_eq!(told("ab", &[]), None);
        let one = |end: usize| vec![Range { start: 0, end }];
        assert_eq!(told("ab", &one(1)).as_deref(), Some("`a` would be sent literally"));
        assert_eq!(told("aba", &[0..1, 1..2, 2..3]).as_deref(), Some("`a` and `b` would be sent literally"));
        let each: Vec<Range<usize>> = (0..10).map(|at| at..at + 1).collect();
        assert!(told("abcdefghij", &each).unwrap().ends_with("`h`, and 2 more, would be sent literally"));
        let long = format!("<{}>", "є".repeat(80));
        assert!(told(&long, &one(long.len())).unwrap().contains("є…`"));
    }
}
