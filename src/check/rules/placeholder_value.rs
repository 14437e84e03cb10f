//! Cells in which a program wrote that there is nothing.

use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "placeholder-value",
    RuleText {
        cause: "A cell contains a word for “no value”. Recipients would read “Hello, None!”.",
        example: &[
            "message: \"Hello, {{ first_name }}!\"",
            "list.csv: phone,first_name",
            "          380501234567,None",
        ],
        fix: "empty such cells, and set a default: `{{ first_name | default(value=\"friend\", boolean=true) }}`",
    },
);

/// The cells of a column that say so and stand in messages.
pub(super) fn report_rows(column: &str, value: &str, rows: &str) -> Finding {
    let message = format!("the column `{column}` contains `{value}` in {rows}, and recipients would see this value");
    let help = if value.starts_with('#') {
        "correct the formula in the spreadsheet, and export the list again".to_owned()
    } else if value.contains(['{', '}', '%']) {
        "replace the placeholders with values: cells are sent as they are".to_owned()
    } else {
        "empty such cells, and set a default in the message: `{{ NAME | default(value='…', boolean=true) }}`".to_owned()
    };
    Finding::new(&RULE, message).help(help)
}
