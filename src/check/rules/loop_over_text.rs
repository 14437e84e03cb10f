//! A loop over a cell, which goes through its letters.

use crate::domain::Text;
use crate::finding::Rule;
use crate::message::{TextProblem, looped_names, problem_at};

pub(super) static RULE: Rule = Rule::warning(
    "loop-over-text",
    "A cell is text, and a loop over text goes through it letter by letter.",
    "Make a list of the cell with `split`, as in `{% for item in items | split(pat=',') %}`.",
);

/// The loops of a text over cells; `is_column` tells which names are columns.
pub(super) fn judge(text: &Text, is_column: impl Fn(&str) -> bool) -> Vec<TextProblem> {
    let looped = looped_names(text).into_iter().filter(|(name, _)| is_column(name));
    let problem = |(name, span): (String, _)| {
        let message = format!("a loop over `{name}` goes through its letters: a cell is text");
        problem_at(text, span, &RULE, message, &format!("write `{name} | split(pat=\",\")`"))
    };
    looped.map(problem).collect()
}
