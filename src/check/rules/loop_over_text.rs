//! A loop over a cell that holds a list, which goes through the letters of the cell.

use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::warning(
    "loop-over-text",
    "A cell is text, and a loop over text goes through it letter by letter, also if the cell holds a list.",
    "Make a list of the cell with `split`, as in `{% for item in items | split(pat=',') %}`.",
);

/// The cells of a looped column that hold a list; `example` is what stands between its items.
pub(super) fn in_rows(name: &str, example: &str, rows: &str) -> Finding {
    let message = format!("a loop over `{name}` goes through its letters in {rows}, where the cell holds a list");
    Finding::new(&RULE, message).help(format!("write `{name} | split(pat=\"{example}\")` in the loop"))
}
