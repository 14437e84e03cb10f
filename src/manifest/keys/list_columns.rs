//! The map of a list's columns: names with their headers, and one or several headers under `phone`.

use super::structure::check_text;
use crate::finding::{Finding, rules};
use crate::manifest::report::FindingCollector;
use crate::manifest::yaml::Node;

/// The name of the phone columns.
pub(crate) const PHONE_COLUMN: &str = "phone";
/// The most phone columns of a list.
pub(crate) const MAX_PHONE_COLUMNS: usize = 10;

pub(super) fn check_columns(node: &Node, report: &mut FindingCollector) {
    for entry in node.as_entries().unwrap_or_default() {
        let Some(headers) = entry.value.as_items().filter(|_| entry.key == PHONE_COLUMN) else {
            check_text(entry, report);
            continue;
        };
        let is_text = |item: &Node| item.as_scalar().is_some_and(|scalar| !scalar.is_null());
        if !(1..=MAX_PHONE_COLUMNS).contains(&headers.len()) || !headers.iter().all(is_text) {
            let message = format!("`{PHONE_COLUMN}` must be one header, or a list of 1 to {MAX_PHONE_COLUMNS} headers");
            let finding = Finding::new(&rules::WRONG_TYPE, message);
            report.add(
                &entry.key_span,
                finding.help("list the headers with the preferred one first: `phone: [Mobile, Home]`"),
            );
        }
    }
}
