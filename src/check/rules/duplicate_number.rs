//! A number that stands in the list twice, where the campaign refuses that.

use crate::domain::{Phone, Row};
use crate::finding::{Finding, Rule};
use crate::manifest::{Brief, Duplicates};

pub(super) static RULE: Rule = Rule::error(
    "duplicate-number",
    "With `duplicates: refuse` a number that stands in the list twice is a mistake of the list.",
    "Remove the duplicates from the list, or set `duplicates: skip`.",
);

/// Refuses a list with a repeated number where the campaign says so; `repeated` is the first row that repeats one, and it.
pub(in crate::check) fn judge(brief: &Brief, repeated: Option<(Row, Phone)>) -> Option<Finding> {
    let (row, phone) = repeated.filter(|_| brief.duplicates == Duplicates::Refuse)?;
    let message = format!("row {row} has the number of an earlier row, {}; the header is row 1", phone.masked());
    let help =
        "remove one of them from the list, or write `duplicates: skip`, by which the first row of each number counts";
    Some(Finding::new(&RULE, message).help(help))
}
