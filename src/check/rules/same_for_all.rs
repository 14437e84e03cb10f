//! Names in the list, and the same message for everybody.

use crate::check::Survey;
use crate::domain::OperationKind;
use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::note(
    "same-for-all",
    RuleText {
        cause: "All recipients get the same message. The list has names, so you might have forgotten a greeting.",
        example: &[
            "message: \"-20% on everything\"",
            "list.csv: phone,first_name",
            "          380501234567,Olena",
            "          380671234567,Taras",
        ],
        fix: "add the name, for example `{{ first_name }}`, unless everyone should get the same message",
    },
);

/// How headers of names begin or end, in small letters.
const NAMES: [&str; 12] =
    ["name", "ім'я", "ім’я", "імя", "имя", "піб", "фио", "vorname", "prénom", "prenom", "nombre", "imię"];

/// That everybody gets the same although the list has names.
#[must_use]
pub(super) fn check_constant_message(survey: &Survey, kind: OperationKind) -> Option<Finding> {
    if kind.is_single() || survey.columns.iter().any(|column| column.is_used) || survey.count_planned() < 2 {
        return None;
    }
    let column = survey.columns.iter().find(|column| is_name(&column.header))?;
    let message =
        format!("all recipients get the same message, although the column `{}` contains names", column.header);
    Some(Finding::new(&RULE, message).help("to greet recipients by name, use the column in the message"))
}

fn is_name(header: &str) -> bool {
    let header = header.trim().to_lowercase();
    NAMES.iter().any(|name| header.starts_with(name) || header.ends_with(name)) && !header.contains("file")
}
