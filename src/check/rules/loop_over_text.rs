//! Loops over the letters of a cell that holds a list.

use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::warning(
    "loop-over-text",
    "A cell is text, and a loop goes through it letter by letter, even if the cell holds a list.",
    "Split the cell into a list with `split`, as in `{% for item in items | split(pat=',') %}`.",
);

/// Cells with a list in a looped column; `example` is the separator of its items.
pub(super) fn in_rows(name: &str, example: &str, rows: &str) -> Finding {
    let message = format!("a loop over `{name}` goes through its letters in {rows}, but the cell holds a list");
    Finding::new(&RULE, message).help(format!("write `{name} | split(pat=\"{example}\")` in the loop"))
}
