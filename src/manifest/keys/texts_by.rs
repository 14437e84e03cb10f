//! Texts by a column without the keys `by` or `texts`.

use super::campaign::TEXT_FILE;
use super::structure::head_span;
use super::{find_key, key_names};
use crate::finding::{Finding, did_you_mean, join_names, rules};
use crate::manifest::report::FindingCollector;
use crate::manifest::yaml::{MapEntry, Node};

/// Reports a map of texts, such as those of languages, without `texts` and perhaps without `by`. False if it is not one.
pub(super) fn report_bare_texts(entry: &MapEntry, report: &mut FindingCollector) -> bool {
    let Some(texts) = find_bare_texts(&entry.value) else { return false };
    let (owner, by) = (&entry.key, find_column(&entry.value));
    let texts: Vec<&str> = texts.iter().map(|text| text.key.as_str()).collect();
    let form = texts.iter().map(|name| format!("{name}: …")).collect::<Vec<_>>().join(", ");
    let (message, help) = match by {
        Some(column) => (
            format!("in `{owner}`, {} must be nested under `texts`", join_names(texts.iter().copied())),
            format!("write `{owner}: {{ by: {column}, texts: {{ {form} }} }}`"),
        ),
        None => (
            format!("`{owner}` has {}, but no `by` to select one of them", join_names(texts.iter().copied())),
            format!(
                "write `{owner}: {{ by: language, texts: {{ {form} }} }}`, with the name of your column instead of \
                 `language`"
            ),
        ),
    };
    report.add(&head_span(&entry.value), Finding::new(&rules::MISSING_KEY, message).help(help));
    true
}

/// Whether a map contains texts directly, without `texts`.
pub(crate) fn has_bare_texts(node: &Node) -> bool {
    find_bare_texts(node).is_some()
}

/// The texts that a map contains directly. `None` if some of its keys can be misspellings of its regular keys.
fn find_bare_texts(node: &Node) -> Option<Vec<&MapEntry>> {
    let entries = node.as_entries()?;
    let beside = |entry: &&MapEntry| matches!(entry.key.as_str(), "by" | "else");
    let texts: Vec<&MapEntry> = entries.iter().filter(|entry| !beside(entry)).collect();
    let is_text = |node: &Node| match node.as_entries().filter(|_| !node.is_null()) {
        Some(keys) => matches!(keys, [one] if one.key == "file"),
        None => node.as_scalar().is_some_and(|text| !text.is_null()),
    };
    let is_own = |entry: &&MapEntry| {
        find_key(TEXT_FILE, &entry.key).is_none()
            && did_you_mean(&entry.key, key_names(TEXT_FILE).filter(|name| name.len() > 2)).is_none()
    };
    (!texts.is_empty() && texts.iter().all(|entry| is_own(entry) && is_text(&entry.value))).then_some(texts)
}

/// The column that the map names.
fn find_column(node: &Node) -> Option<&str> {
    let column = node.find_entry("by")?.value.as_scalar()?.text.trim();
    (!column.is_empty()).then_some(column)
}
