//! A number that stands in the list twice, where the campaign refuses that.

use crate::domain::{Phone, Row};
use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::{CampaignBrief, DuplicatePolicy};

pub(super) static RULE: Rule = Rule::error(
    "duplicate-number",
    RuleText {
        cause: "The list has the same number twice. With `duplicates: refuse`, that is an error.",
        example: &[
            "recipients: { file: list.csv, duplicates: refuse }",
            "list.csv: phone,first_name",
            "          380501234567,Olena",
            "          380501234567,Taras",
        ],
        fix: "remove the duplicates from the list, or write `duplicates: skip`",
    },
);

/// Refuses a list with a repeated number where the campaign says so; `repeated` is the first row that repeats one, and it.
pub(in crate::check) fn check_duplicate_number(
    brief: &CampaignBrief,
    repeated: Option<(Row, Phone)>,
) -> Option<Finding> {
    let (row, phone) = repeated.filter(|_| brief.duplicates == DuplicatePolicy::Refuse)?;
    let message =
        format!("row {row} has the same number, {}, as an earlier row (row 1 is the header)", phone.format_masked());
    let help = "remove one of the rows from the list, or write `duplicates: skip` to use only the first row with each \
                number";
    Some(Finding::new(&RULE, message).help(help))
}
