//! Words that stand for a text which is still to come.

use crate::domain::NamedTemplate;
use crate::finding::{Rule, RuleText};
use crate::message::{TextProblem, constant_parts, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "unfinished-text",
    RuleText {
        cause: "A placeholder for missing text would be sent.",
        example: &["message: \"TODO: ask Olena for the text\""],
        fix: "write the final text",
    },
);

const PLACEHOLDER_WORDS: [&str; 6] = ["TODO", "FIXME", "TBD", "XXX", "XXXX", "ХХХ"];

/// The words of a text that everybody gets.
pub(super) fn check_unfinished_text(text: &NamedTemplate) -> Vec<TextProblem> {
    let mut problems = Vec::new();
    for (part, at) in constant_parts(text) {
        let lorem = part.to_ascii_lowercase().find("lorem ipsum").map(|start| (start, "lorem ipsum".len()));
        let words = part.split(|c: char| !c.is_alphanumeric()).filter(|word| PLACEHOLDER_WORDS.contains(word));
        let words = words.map(|word| (word.as_ptr() as usize - part.as_ptr() as usize, word.len()));
        for (start, length) in lorem.into_iter().chain(words) {
            let span = at.start + start..at.start + start + length;
            let message = format!("`{}` would be sent literally", &text.source[span.clone()]);
            problems.push(problem_at(text, span, &RULE, message, "write the final text"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_words_are_found() {
        let found =
            |source: &str| check_unfinished_text(&NamedTemplate { name: "t".into(), source: source.into() }).len();
        assert_eq!(found("Hello {{ name }}, TODO: price. Lorem ipsum"), 2);
        assert_eq!(found("Todo incluido, size XXXL, TODOS {# TODO #}"), 0);
    }
}
