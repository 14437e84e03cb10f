//! Links without `https://`.

use crate::domain::NamedTemplate;
use crate::finding::{Finding, Rule, RuleText};
use crate::message::{TextProblem, constant_parts, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "insecure-link",
    RuleText {
        cause: "A link does not start with `https://`. Phones warn about it, or do not show it as a link.",
        example: &["message: \"Sale: http://shop.example\""],
        fix: "write the whole address with `https://`",
    },
);

/// How links begin that are meant.
const INSECURE_PREFIXES: [&str; 2] = ["http://", "www."];

/// The links of a text that everybody gets.
pub(super) fn check_insecure_links(text: &NamedTemplate) -> Vec<TextProblem> {
    let parts = constant_parts(text).flat_map(|(part, at)| {
        let lower = part.to_ascii_lowercase();
        let found = INSECURE_PREFIXES.iter().flat_map(|beginning| {
            let starts =
                lower.match_indices(beginning).map(|(start, _)| start).filter(|start| begins_a_word(part, *start));
            starts.collect::<Vec<_>>()
        });
        found.map(|start| at.start + start..at.start + start + link_length(&part[start..])).collect::<Vec<_>>()
    });
    let mut spans: Vec<_> = parts.collect();
    spans.sort_by_key(|span| span.start);
    let problem = |span: std::ops::Range<usize>| {
        let message = format!("the link `{}` does not start with `https://`", &text.source[span.clone()]);
        problem_at(text, span, &RULE, message, "write the link with `https://`, and check that it opens")
    };
    spans.into_iter().map(problem).collect()
}

/// The links of cells that stand in messages.
pub(super) fn report_rows(column: &str, rows: &str) -> Finding {
    let message = format!("the column `{column}` contains links that do not start with `https://` in {rows}");
    Finding::new(&RULE, message).help("write these links with `https://` in the list, and check that they open")
}

/// Whether a cell is such a link.
pub(in crate::check) fn is_insecure_link(cell: &str) -> bool {
    let begins =
        |beginning: &&str| cell.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning));
    INSECURE_PREFIXES.iter().any(begins)
}

fn begins_a_word(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '=' | '@'))
}

fn link_length(link: &str) -> usize {
    link.find(char::is_whitespace).unwrap_or(link.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_without_https_are_found_and_others_are_not() {
        let found = |source: &str| -> Vec<String> {
            let text = NamedTemplate { name: "t".into(), source: source.into() };
            check_insecure_links(&text).into_iter().map(|problem| problem.message).collect()
        };
        assert_eq!(
            found("see http://a.example/x and www.b.example"),
            [
                "the link `http://a.example/x` does not start with `https://`",
                "the link `www.b.example` does not start with `https://`",
            ]
        );
        assert_eq!(found("https://www.a.example https://a.example/?to=http://b.example {{ 'http://x' }}"), [""; 0]);
        assert!(is_insecure_link("HTTP://a") && !is_insecure_link("https://a") && !is_insecure_link("що"));
    }
}
