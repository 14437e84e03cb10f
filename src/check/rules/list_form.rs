//! How a list was found to be written, where it is no CSV in UTF-8.

use crate::finding::{Finding, Rule};
use crate::manifest::Recipients;

pub(super) static RULE: Rule = Rule::note(
    "list-form",
    "A list that is read in another encoding than its own, or from another sheet than was meant, has other names than it should.",
    "Look at a name in `campaign preview`; where it is wrong, say `encoding`, `delimiter` or `sheet` under `recipients`.",
);

/// How the list is read, in words such as "in the encoding Windows-1251".
#[must_use]
pub fn list_form(list: &Recipients, form: &str) -> Finding {
    Finding::new(&RULE, format!("`{}` is read as: {form}", list))
}
