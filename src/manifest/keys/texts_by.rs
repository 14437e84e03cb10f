//! Texts by a column without the keys `by` or `texts`.

use super::campaign::TEXT_FILE;
use super::structure::head;
use super::{find, names};
use crate::finding::{Finding, did_you_mean, list_all, rules};
use crate::manifest::report::Report;
use crate::manifest::yaml::{Entry, Node};

/// Reports a map of texts, such as those of languages, without `texts` and perhaps without `by`. False if it is not one.
pub(super) fn bare_texts(entry: &Entry, report: &mut Report) -> bool {
    let Some(texts) = texts_of(&entry.value) else { return false };
    let (owner, by) = (&entry.key, column_of(&entry.value));
    let texts: Vec<&str> = texts.iter().map(|text| text.key.as_str()).collect();
    let form = texts.iter().map(|name| format!("{name}: …")).collect::<Vec<_>>().join(", ");
    let (message, help) = match by {
        Some(column) => (
            format!("in `{owner}`, {} must be nested under `texts`", list_all(texts.iter().copied())),
            format!("write `{owner}: {{ by: {column}, texts: {{ {form} }} }}`"),
        ),
        None => (
            format!("`{owner}` has {}, but no `by` to select one of them", list_all(texts.iter().copied())),
            format!(
                "write `{owner}: {{ by: language, texts: {{ {form} }} }}`, with the name of your column instead of \
                 `language`"
            ),
        ),
    };
    report.at(&head(&entry.value), Finding::new(&rules::MISSING_KEY, message).help(help));
    true
}

/// Whether a map contains texts directly, without `texts`.
pub(crate) fn has_bare_texts(node: &Node) -> bool {
    texts_of(node).is_some()
}

/// The texts that a map contains directly. `None` if some of its keys can be misspellings of its regular keys.
fn texts_of(node: &Node) -> Option<Vec<&Entry>> {
    let entries = node.entries()?;
    let beside = |entry: &&Entry| matches!(entry.key.as_str(), "by" | "else");
    let texts: Vec<&Entry> = entries.iter().filter(|entry| !beside(entry)).collect();
    let is_text = |node: &Node| match node.entries().filter(|_| !node.is_null()) {
        Some(keys) => matches!(keys, [one] if one.key == "file"),
        None => node.scalar().is_some_and(|text| !text.is_null()),
    };
    let is_own = |entry: &&Entry| {
        find(TEXT_FILE, &entry.key).is_none()
            && did_you_mean(&entry.key, names(TEXT_FILE).filter(|name| name.len() > 2)).is_none()
    };
    (!texts.is_empty() && texts.iter().all(|entry| is_own(entry) && is_text(&entry.value))).then_some(texts)
}

/// The column that the map names.
fn column_of(node: &Node) -> Option<&str> {
    let column = node.get("by")?.value.scalar()?.text.trim();
    (!column.is_empty()).then_some(column)
}
