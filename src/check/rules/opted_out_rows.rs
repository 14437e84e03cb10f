//! Columns of the list by which planned recipients opted out.

use super::rows::describe_first;
use crate::check::{DistinctValues, OptedOutCells, Survey};
use crate::domain::NamedTemplate;
use crate::domain::variable::is_variable;
use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::CampaignBrief;

pub(super) static RULE: Rule = Rule::warning(
    "opted-out-rows",
    RuleText {
        cause: "A column marks recipients as opted out. Messages would still be sent to them.",
        example: &["list.csv: phone,status", "          380501234567,unsubscribed", "          380671234567,active"],
        fix: "skip these rows with `recipients.where`, or add their numbers to the suppression list",
    },
);

/// One warning for each column that says of planned rows that their recipients opted out.
///
/// Service messages are not held back by opt-outs, so they get no warning.
#[must_use]
pub fn check_opted_out_rows(survey: &Survey, brief: &CampaignBrief) -> Vec<Finding> {
    let columns = survey.opted_out.iter().filter(|cells| !cells.rows.is_empty() && brief.purpose.is_marketing());
    columns.map(|cells| opted_out_finding(cells, brief.condition.as_ref())).collect()
}

fn opted_out_finding(cells: &OptedOutCells, condition: Option<&NamedTemplate>) -> Finding {
    let OptedOutCells { header, rows, values, .. } = cells;
    let example = values.values.first().map_or("", String::as_str);
    let message = format!(
        "the column `{header}` marks recipients as opted out (`{example}`), but the campaign would still send to \
         them: {}",
        describe_first(rows)
    );
    let help = match (suggest_condition(cells), condition) {
        (Some(reachable), None) => format!("add `where: {reachable}` to `recipients`"),
        (Some(reachable), Some(present)) if present.source.split_whitespace().any(|word| word == "or") => {
            format!("enclose the `where` expression in parentheses, and add `and {reachable}` after it")
        }
        (Some(reachable), Some(_)) => format!("add `and {reachable}` to `where`"),
        (None, _) => format!("skip these rows with a `where` condition on `{}`", cells.name),
    };
    Finding::new(&RULE, message).help(format!("{help}, or add their numbers to a `suppress` file"))
}

/// The condition that the rows of other people pass; nothing if there are too many values.
///
/// A column of dates gets a new date with each opt-out, so the condition names no date.
fn suggest_condition(OptedOutCells { name, values, has_dates, others, .. }: &OptedOutCells) -> Option<String> {
    let cell = if is_variable(name) { name.clone() } else { format!("recipient[{}]", quote(name)) };
    let list = |values: &DistinctValues| values.values.iter().map(|value| quote(value)).collect::<Vec<_>>().join(", ");
    if *has_dates {
        let others = DistinctValues {
            values: others.values.iter().cloned().chain([String::new()]).collect(),
            has_more: others.has_more,
        };
        return match others.single_value() {
            Some(_) => Some(format!("{cell} == \"\"")),
            None => (!others.has_more).then(|| format!("{cell} in [{}]", list(&others))),
        };
    }
    match (values.single_value(), others.single_value()) {
        (Some(value), _) => Some(format!("{cell} != {}", quote(value))),
        _ if !values.has_more => Some(format!("not ({cell} in [{}])", list(values))),
        (_, Some(value)) => Some(format!("{cell} == {}", quote(value))),
        _ if !others.has_more && !others.values.is_empty() => Some(format!("{cell} in [{}]", list(others))),
        _ => None,
    }
}

/// A text as an expression writes it.
fn quote(text: &str) -> String {
    let mark = if text.contains('"') { '\'' } else { '"' };
    format!("{mark}{text}{mark}")
}
