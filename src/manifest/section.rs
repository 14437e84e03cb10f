//! A map of a file, read by the names of its keys.

use std::ops::Range;
use std::str::FromStr;

use crate::domain::FrequencyCap;
use crate::manifest::keys::{KeySpec, ValueShape, find_key, find_meant_key};
use crate::manifest::value::parse_cap;
use crate::manifest::yaml::{MapEntry, Node, Scalar, scalar_to_json};

/// A map with the table of its keys; a map that is not there has every default.
///
/// It reads what the structure check found well formed and is silent about everything else.
#[derive(Clone, Copy)]
pub(crate) struct ConfigSection<'n> {
    node: Option<&'n Node>,
    keys: &'static [KeySpec],
}

impl<'n> ConfigSection<'n> {
    pub(crate) fn new(node: Option<&'n Node>, keys: &'static [KeySpec]) -> Self {
        Self { node, keys }
    }

    /// The same table over another map.
    pub(crate) fn with_node(self, node: Option<&'n Node>) -> Self {
        Self { node, ..self }
    }

    /// The key as it stands in the file.
    pub(crate) fn entry(&self, key: &str) -> Option<&'n MapEntry> {
        self.node?.find_entry(key)
    }

    /// The value of a key, if there is one.
    pub(crate) fn find_value(&self, key: &str) -> Option<&'n Node> {
        self.entry(key).map(|entry| &entry.value).filter(|value| !value.is_null())
    }

    /// Whether there is a misspelling of this key, which is reported as an unknown key.
    pub(crate) fn has_misspelt(&self, key: &str) -> bool {
        let entries = self.node.and_then(Node::as_entries).unwrap_or_default();
        let unknown = |entry: &&MapEntry| find_key(self.keys, &entry.key).is_none();
        entries.iter().filter(unknown).any(|entry| find_meant_key(&entry.key, self.keys) == Some(key))
    }

    /// The unknown keys.
    pub(crate) fn unknown_entries(&self) -> impl Iterator<Item = &'n MapEntry> {
        let (entries, keys) = (self.node.and_then(Node::as_entries).unwrap_or_default(), self.keys);
        entries.iter().filter(move |entry| find_key(keys, &entry.key).is_none())
    }

    /// Whether the key is there with a value.
    pub(crate) fn has_value(&self, key: &str) -> bool {
        self.find_value(key).is_some()
    }

    /// The text of a key as it was typed, without its default, and where it stands.
    pub(crate) fn typed_text(&self, key: &str) -> Option<(&'n str, &'n Range<usize>)> {
        let node = self.find_value(key)?;
        Some((node.as_scalar()?.text.trim(), &node.span))
    }

    /// The text of a key, or its default.
    pub(crate) fn text(&self, key: &str) -> Option<&'n str> {
        match self.typed_text(key) {
            Some((text, _)) => Some(text),
            None => find_key(self.keys, key)?.default,
        }
    }

    /// The cap under a key.
    pub(crate) fn parse_cap(&self, key: &str) -> Option<FrequencyCap> {
        parse_cap(self.typed_text(key)?.0).ok()
    }

    /// What a key means, or its default.
    pub(crate) fn parse_value<T: FromStr>(&self, key: &str) -> Option<T> {
        match self.find_value(key) {
            Some(node) => parse_scalar(node.as_scalar()?),
            None => self.text(key)?.parse().ok(),
        }
    }

    /// The texts of the list under a key, or of its default.
    pub(crate) fn list_items(&self, key: &str) -> Vec<&'n str> {
        let typed = self.find_value(key).and_then(Node::as_items);
        match typed {
            Some(items) => items.iter().filter_map(|item| Some(item.as_scalar()?.text.trim())).collect(),
            None => find_key(self.keys, key).and_then(|key| key.default).map(split_default_list).unwrap_or_default(),
        }
    }

    /// What the items of the list under a key mean, or those of its default.
    pub(crate) fn parse_items<T: FromStr>(&self, key: &str) -> Vec<T> {
        match self.find_value(key).and_then(Node::as_items) {
            Some(items) => items.iter().filter_map(|item| parse_scalar(item.as_scalar()?)).collect(),
            None => self.list_items(key).into_iter().filter_map(|text| text.parse().ok()).collect(),
        }
    }

    /// The map under a key.
    pub(crate) fn subsection(&self, key: &str) -> ConfigSection<'n> {
        let keys: &'static [KeySpec] = match find_key(self.keys, key).map(|key| key.shape) {
            Some(ValueShape::Map(keys)) => keys,
            _ => &[],
        };
        ConfigSection { node: self.find_value(key), keys }
    }
}

/// What a value means: as it was typed, or as YAML's core schema reads it (`True`, `0x1F`).
fn parse_scalar<T: FromStr>(scalar: &Scalar) -> Option<T> {
    scalar.text.trim().parse().ok().or_else(|| scalar_to_json(scalar).to_string().parse().ok())
}

/// The items of a default list: plain words between brackets, as in `[Not enough money, No route]`.
fn split_default_list(list: &'static str) -> Vec<&'static str> {
    let inner = list.trim_start_matches('[').trim_end_matches(']');
    inner.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::keys::PROFILE;

    #[test]
    fn missing_list_has_its_default_items() {
        let nothing = ConfigSection::new(None, PROFILE);
        assert_eq!(nothing.list_items("fatal_errors"), ["Not enough money"]);
        assert_eq!(nothing.list_items("sender_verified"), ["Checked"]);
        assert!(nothing.list_items("trust_status").is_empty());
        assert_eq!(split_default_list("[No route, Not enough money]"), ["No route", "Not enough money"]);
        assert!(split_default_list("[]").is_empty());
    }
}
