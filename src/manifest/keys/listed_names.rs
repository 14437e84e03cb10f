//! Lists instead of a map of names, such as `variants`: the items contain the names.

use std::collections::BTreeSet;

use super::hint::suggest_key_fix;
use super::structure::head_span;
use super::{KeySpec, ValueShape, find_key};
use crate::finding::{Finding, rules};
use crate::manifest::report::FindingCollector;
use crate::manifest::yaml::{MapEntry, Node};

/// The key that names an item in other programs.
const NAME_KEY: &str = "name";

/// Reports a list whose items have names that must be keys, and keys that no item can have. False if an item has no name.
pub(super) fn report_listed_names(
    of: &KeySpec,
    entry: &MapEntry,
    items: &[Node],
    report: &mut FindingCollector,
) -> bool {
    let (ValueShape::Map(keys), owner) = (of.shape, &entry.key) else { return false };
    let named: Option<Vec<(&str, Vec<&MapEntry>)>> = items.iter().map(split_named_item).collect();
    let Some(named) = named.filter(|named| !named.is_empty()) else { return false };
    let written = named.iter().map(|(name, inner)| {
        let known = inner.iter().filter_map(|entry| Some(format_item(find_key(keys, &entry.key)?, entry)));
        format!("{name}: {{ {} }}", known.collect::<Vec<_>>().join(", "))
    });
    let written: Vec<String> = written.collect();
    let message = format!("`{owner}` must be a map, but is a list");
    let help =
        format!("write the name of each {} as a key, without a dash: `{owner}: {{ {} }}`", of.name, written.join(", "));
    report.add(&head_span(&entry.value), Finding::new(&rules::WRONG_TYPE, message).help(help));
    let mut told = BTreeSet::new();
    for (name, inner) in named {
        for entry in inner.into_iter().filter(|entry| find_key(keys, &entry.key).is_none()) {
            if told.insert(&entry.key) {
                let finding = Finding::new(&rules::UNKNOWN_KEY, format!("unknown key `{}` under `{name}`", entry.key));
                report.add(&entry.key_span, finding.help(suggest_key_fix(&entry.key, keys, report.root)));
            }
        }
    }
    true
}

/// The name of an item and its other keys: it stands under `name`, or is the only key with a map under it.
fn split_named_item(item: &Node) -> Option<(&str, Vec<&MapEntry>)> {
    let entries = item.as_entries()?;
    match (item.find_entry(NAME_KEY), entries) {
        (Some(name), _) => {
            Some((name.value.as_scalar()?.text.trim(), entries.iter().filter(|entry| entry.key != NAME_KEY).collect()))
        }
        (None, [one]) => Some((&one.key, one.value.as_entries().filter(|_| !one.value.is_null())?.iter().collect())),
        (None, _) => None,
    }
}

/// The correct form of an item's key.
fn format_item(key: &KeySpec, entry: &MapEntry) -> String {
    match (key.shape, entry.value.as_scalar().map(|value| value.text.trim())) {
        (ValueShape::Share, Some(share)) if share.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{}: {share}%", key.name)
        }
        (_, Some(value)) if !value.contains('\n') => format!("{}: {value}", key.name),
        _ => format!("{}: …", key.name),
    }
}
