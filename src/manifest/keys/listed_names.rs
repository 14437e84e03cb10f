//! Lists instead of a map of names, such as `variants`: the items contain the names.

use std::collections::BTreeSet;

use super::hint::hint;
use super::structure::head;
use super::{Key, Shape, find};
use crate::finding::{Finding, rules};
use crate::manifest::report::Report;
use crate::manifest::yaml::{Entry, Node};

/// The key that names an item in other programs.
const NAME: &str = "name";

/// Reports a list whose items have names that must be keys, and keys that no item can have. False if an item has no name.
pub(super) fn listed_names(of: &Key, entry: &Entry, items: &[Node], report: &mut Report) -> bool {
    let (Shape::Map(keys), owner) = (of.shape, &entry.key) else { return false };
    let named: Option<Vec<(&str, Vec<&Entry>)>> = items.iter().map(named).collect();
    let Some(named) = named.filter(|named| !named.is_empty()) else { return false };
    let written = named.iter().map(|(name, inner)| {
        let known = inner.iter().filter_map(|entry| Some(written(find(keys, &entry.key)?, entry)));
        format!("{name}: {{ {} }}", known.collect::<Vec<_>>().join(", "))
    });
    let written: Vec<String> = written.collect();
    let message = format!("`{owner}` must be a map, but is a list");
    let help =
        format!("write the name of each {} as a key, without a dash: `{owner}: {{ {} }}`", of.name, written.join(", "));
    report.at(&head(&entry.value), Finding::new(&rules::WRONG_TYPE, message).help(help));
    let mut told = BTreeSet::new();
    for (name, inner) in named {
        for entry in inner.into_iter().filter(|entry| find(keys, &entry.key).is_none()) {
            if told.insert(&entry.key) {
                let finding = Finding::new(&rules::UNKNOWN_KEY, format!("unknown key `{}` under `{name}`", entry.key));
                report.at(&entry.key_span, finding.help(hint(&entry.key, keys, report.root)));
            }
        }
    }
    true
}

/// The name of an item and its other keys: it stands under `name`, or is the only key with a map under it.
fn named(item: &Node) -> Option<(&str, Vec<&Entry>)> {
    let entries = item.entries()?;
    match (item.get(NAME), entries) {
        (Some(name), _) => {
            Some((name.value.scalar()?.text.trim(), entries.iter().filter(|entry| entry.key != NAME).collect()))
        }
        (None, [one]) => Some((&one.key, one.value.entries().filter(|_| !one.value.is_null())?.iter().collect())),
        (None, _) => None,
    }
}

/// The correct form of an item's key.
fn written(key: &Key, entry: &Entry) -> String {
    match (key.shape, entry.value.scalar().map(|value| value.text.trim())) {
        (Shape::Share, Some(share)) if share.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{}: {share}%", key.name)
        }
        (_, Some(value)) if !value.contains('\n') => format!("{}: {value}", key.name),
        _ => format!("{}: …", key.name),
    }
}
