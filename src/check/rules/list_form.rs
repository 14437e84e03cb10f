//! How a list was found to be written, where it is no CSV in UTF-8.

use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::RecipientSource;

pub(super) static RULE: Rule = Rule::note(
    "list-form",
    RuleText {
        cause: "The format of the list was detected. If the detected format is wrong, names are garbled.",
        example: &["`list.csv` is read as follows: encoding Windows-1251, delimiter semicolon"],
        fix: "check a name in `campaign preview`; if it is garbled, set `encoding`, `delimiter` or `sheet` under \
              `recipients`",
    },
);

/// How the list is read, in words such as "in the encoding Windows-1251".
#[must_use]
pub fn list_form_note(list: &RecipientSource, form: &str) -> Finding {
    Finding::new(&RULE, format!("`{}` is read as follows: {form}", list))
}
