//! A number that stands in the list twice, where the campaign refuses that.

use crate::domain::Row;
use crate::finding::{Finding, Rule};
use crate::manifest::{Brief, Duplicates};

pub(super) static RULE: Rule = Rule::error(
    "duplicate-number",
    "With `duplicates: refuse` a number that stands in the list twice is a mistake of the list.",
    "Remove the duplicates from the list, or set `duplicates: skip`.",
);

/// Refuses a list with a repeated number where the campaign says so; `repeated` is the first row that repeats one.
pub(in crate::check) fn judge(brief: &Brief, repeated: Option<Row>) -> Option<Finding> {
    let row = repeated.filter(|_| brief.duplicates == Duplicates::Refuse)?;
    let finding = Finding::new(&RULE, format!("row {row} repeats the number of an earlier row"));
    Some(finding.help("remove the duplicates from the list, or set `duplicates: skip`"))
}
