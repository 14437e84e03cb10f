//! Cells in which a program wrote that there is nothing.

use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::warning(
    "placeholder-value",
    "Programs write `None`, `nan`, `null`, `undefined`, `#N/A` or `#REF!` where they have nothing, and it would be sent: \u{201c}Hello, None!\u{201d}.",
    "Empty the cells where the list comes from, and give the text another word for these rows with `default(value='…', boolean=true)`.",
);

/// The cells of a column that say so and stand in messages.
pub(super) fn in_rows(column: &str, value: &str, rows: &str) -> Finding {
    let message = format!("`{value}` stands in the message of {rows}; it comes from the column `{column}`");
    let help = if value.starts_with('#') {
        "mend the formula in the spreadsheet, and save the list anew".to_owned()
    } else if value.contains(['{', '}', '%']) {
        "put the values into the cells: what stands in a cell is sent as it stands".to_owned()
    } else {
        "empty these cells, and give the text another word for them: where it says `{{ NAME }}` of this column, write \
         `{{ NAME | default(value='…', boolean=true) }}`"
            .to_owned()
    };
    Finding::new(&RULE, message).help(help)
}
