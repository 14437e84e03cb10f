//! Messages with a hole: their text uses a cell that is empty.

use super::rows::describe_first;
use crate::check::prepare::to_finding;
use crate::check::{EmptyCells, Survey};
use crate::finding::{Finding, Rule, RuleText, join_names};
use crate::manifest::SourceMap;
use crate::message::problem_at;

pub(super) static RULE: Rule = Rule::warning(
    "empty-cell",
    RuleText {
        cause: "A cell that the message uses is empty. The message has a gap: “Hello, !”.",
        example: &["message: \"Hello, {{ first_name }}!\"", "list.csv: phone,first_name", "          380501234567,"],
        fix: "fill the cell, or set a default: `{{ first_name | default(value=\"friend\", boolean=true) }}`",
    },
);

/// The columns whose empty cells a text shows, with the place in the text, how many rows and the first.
#[must_use]
pub fn check_empty_cells(survey: &Survey, places: &SourceMap) -> Vec<Finding> {
    let of_text = |EmptyCells { place, messages, rows }: &EmptyCells| {
        let name = &place.name;
        let messages: Vec<String> = messages.iter().map(|(channel, key)| format!("{channel}.{key}")).collect();
        let messages = join_names(messages.iter().map(String::as_str));
        let message = format!("`{name}` is empty in {}, which leaves a gap in {messages}", describe_first(rows));
        let help = format!("fill the cells, or set a default: `{{{{ {name} | default(value='…', boolean=true) }}}}`");
        to_finding(problem_at(&place.text, place.span.clone(), &RULE, message, &help), Some(places))
    };
    survey.empty.iter().map(of_text).collect()
}
