//! Loops over the letters of a cell that holds a list.

use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "loop-over-text",
    RuleText {
        cause: "A loop splits a cell into single characters. Cells are always text, even if they look like a list.",
        example: &[
            "message: \"{% for item in code %}{{ item }} {% endfor %}\"",
            "list.csv: phone,code",
            "          380501234567,\"bread,milk\"",
        ],
        fix: "split the cell: `{% for item in code | split(pat=\",\") %}`",
    },
);

/// Cells with a list in a looped column; `example` is the separator of its items.
pub(super) fn report_rows(name: &str, example: &str, rows: &str) -> Finding {
    let message = format!(
        "the loop over `{name}` splits the cell into single characters in {rows}, although the cell looks like a list"
    );
    Finding::new(&RULE, message).help(format!("write `{name} | split(pat=\"{example}\")` in the loop"))
}
