//! The map of a list's columns: names with their headers, and one or several headers under `phone`.

use super::structure::text;
use crate::finding::{Finding, rules};
use crate::manifest::report::Report;
use crate::manifest::yaml::Node;

/// The name of the phone columns.
pub(crate) const PHONE: &str = "phone";
/// The most phone columns of a list.
pub(crate) const MOST_PHONE_COLUMNS: usize = 10;

pub(super) fn columns(node: &Node, report: &mut Report) {
    for entry in node.entries().unwrap_or_default() {
        let Some(headers) = entry.value.items().filter(|_| entry.key == PHONE) else {
            text(entry, report);
            continue;
        };
        let is_text = |item: &Node| item.scalar().is_some_and(|scalar| !scalar.is_null());
        if !(1..=MOST_PHONE_COLUMNS).contains(&headers.len()) || !headers.iter().all(is_text) {
            let message = format!("`{PHONE}` must be one header, or a list of 1 to {MOST_PHONE_COLUMNS} headers");
            let finding = Finding::new(&rules::WRONG_TYPE, message);
            report.at(
                &entry.key_span,
                finding.help("list the headers with the preferred one first: `phone: [Mobile, Home]`"),
            );
        }
    }
}
