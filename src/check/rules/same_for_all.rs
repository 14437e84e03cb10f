//! Names in the list, and the same message for everybody.

use crate::check::Survey;
use crate::domain::OperationKind;
use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::note(
    "same-for-all",
    "A list with names is often meant for a message that greets people by them, and a forgotten name is seen by everybody.",
    "Write the name into the text, such as `{{ first_name }}`; if it is meant so, all is well.",
);

/// How headers of names begin or end, in small letters.
const NAMES: [&str; 12] =
    ["name", "ім'я", "ім’я", "імя", "имя", "піб", "фио", "vorname", "prénom", "prenom", "nombre", "imię"];

/// That everybody gets the same although the list has names.
#[must_use]
pub(super) fn judge(survey: &Survey, kind: OperationKind) -> Option<Finding> {
    if kind.is_single() || survey.columns.iter().any(|column| column.used) || survey.planned() < 2 {
        return None;
    }
    let column = survey.columns.iter().find(|column| is_name(&column.header))?;
    let message = format!("everybody gets the same message, and the list has names: the column `{}`", column.header);
    Some(Finding::new(&RULE, message).help("write the name into the text if it is meant to be there"))
}

fn is_name(header: &str) -> bool {
    let header = header.trim().to_lowercase();
    NAMES.iter().any(|name| header.starts_with(name) || header.ends_with(name)) && !header.contains("file")
}
