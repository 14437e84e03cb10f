//! Messages with a hole: their text uses a cell that is empty.

use super::rows::first_of;
use crate::check::prepare::finding;
use crate::check::{EmptyCells, Survey};
use crate::domain::one_or;
use crate::finding::{Finding, Rule, list_all};
use crate::manifest::Places;
use crate::message::problem_at;

pub(super) static RULE: Rule = Rule::warning(
    "empty-cell",
    "If a text uses a column and the cell of a row is empty, the message has a hole: \u{201c}Hello, !\u{201d}. A condition protects only the uses inside it.",
    "Fill the cells, or give the text another word for these rows with `default(value='…', boolean=true)`. Without `boolean=true`, `default` keeps an empty cell.",
);

/// The columns whose empty cells a text shows, with the place in the text, how many rows and the first.
#[must_use]
pub fn empty_cells(survey: &Survey, places: &Places) -> Vec<Finding> {
    let of_text = |EmptyCells { place, messages, rows }: &EmptyCells| {
        let name = &place.name;
        let messages: Vec<String> = messages.iter().map(|(channel, key)| format!("{channel}.{key}")).collect();
        let have = one_or(messages.len() as u64, "has", "have");
        let messages = list_all(messages.iter().map(String::as_str));
        let message = format!("`{name}` is empty in {}; {messages} {have} a hole there", first_of(rows));
        let help = format!(
            "fill the cells, or write `{{{{ {name} | default(value='…', boolean=true) }}}}` with another word for these rows"
        );
        finding(problem_at(&place.text, place.span.clone(), &RULE, message, &help), Some(places))
    };
    survey.empty.iter().map(of_text).collect()
}
