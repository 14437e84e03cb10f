//! A map of a file, read by the names of its keys.

use std::ops::Range;
use std::str::FromStr;

use crate::domain::Cap;
use crate::manifest::keys::{Key, Shape, find, meant};
use crate::manifest::value::cap;
use crate::manifest::yaml::{Entry, Node, Scalar, core_scalar};

/// A map with the table of its keys; a map that is not there has every default.
///
/// It reads what the structure check found well formed and is silent about everything else.
#[derive(Clone, Copy)]
pub(crate) struct Section<'n> {
    node: Option<&'n Node>,
    keys: &'static [Key],
}

impl<'n> Section<'n> {
    pub(crate) fn new(node: Option<&'n Node>, keys: &'static [Key]) -> Self {
        Self { node, keys }
    }

    /// The same table over another map.
    pub(crate) fn with(self, node: Option<&'n Node>) -> Self {
        Self { node, ..self }
    }

    /// The key as it stands in the file.
    pub(crate) fn entry(&self, key: &str) -> Option<&'n Entry> {
        self.node?.get(key)
    }

    /// The value of a key, if there is one.
    pub(crate) fn value(&self, key: &str) -> Option<&'n Node> {
        self.entry(key).map(|entry| &entry.value).filter(|value| !value.is_null())
    }

    /// Whether there is a misspelling of this key, which is reported as an unknown key.
    pub(crate) fn has_misspelt(&self, key: &str) -> bool {
        let entries = self.node.and_then(Node::entries).unwrap_or_default();
        let unknown = |entry: &&Entry| find(self.keys, &entry.key).is_none();
        entries.iter().filter(unknown).any(|entry| meant(&entry.key, self.keys) == Some(key))
    }

    /// The unknown keys.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = &'n Entry> {
        let (entries, keys) = (self.node.and_then(Node::entries).unwrap_or_default(), self.keys);
        entries.iter().filter(move |entry| find(keys, &entry.key).is_none())
    }

    /// Whether the key is there with a value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// The text of a key as it was typed, without its default, and where it stands.
    pub(crate) fn typed(&self, key: &str) -> Option<(&'n str, &'n Range<usize>)> {
        let node = self.value(key)?;
        Some((node.scalar()?.text.trim(), &node.span))
    }

    /// The text of a key, or its default.
    pub(crate) fn text(&self, key: &str) -> Option<&'n str> {
        match self.typed(key) {
            Some((text, _)) => Some(text),
            None => find(self.keys, key)?.default,
        }
    }

    /// The cap under a key.
    pub(crate) fn cap(&self, key: &str) -> Option<Cap> {
        cap(self.typed(key)?.0).ok()
    }

    /// What a key means, or its default.
    pub(crate) fn parsed<T: FromStr>(&self, key: &str) -> Option<T> {
        match self.value(key) {
            Some(node) => meaning(node.scalar()?),
            None => self.text(key)?.parse().ok(),
        }
    }

    /// The texts of the list under a key, or of its default.
    pub(crate) fn items(&self, key: &str) -> Vec<&'n str> {
        let typed = self.value(key).and_then(Node::items);
        match typed {
            Some(items) => items.iter().filter_map(|item| Some(item.scalar()?.text.trim())).collect(),
            None => find(self.keys, key).and_then(|key| key.default).map(words).unwrap_or_default(),
        }
    }

    /// What the items of the list under a key mean, or those of its default.
    pub(crate) fn parsed_items<T: FromStr>(&self, key: &str) -> Vec<T> {
        match self.value(key).and_then(Node::items) {
            Some(items) => items.iter().filter_map(|item| meaning(item.scalar()?)).collect(),
            None => self.items(key).into_iter().filter_map(|text| text.parse().ok()).collect(),
        }
    }

    /// The map under a key.
    pub(crate) fn section(&self, key: &str) -> Section<'n> {
        let keys: &'static [Key] = match find(self.keys, key).map(|key| key.shape) {
            Some(Shape::Map(keys)) => keys,
            _ => &[],
        };
        Section { node: self.value(key), keys }
    }
}

/// What a value means: as it was typed, or as YAML's core schema reads it (`True`, `0x1F`).
fn meaning<T: FromStr>(scalar: &Scalar) -> Option<T> {
    scalar.text.trim().parse().ok().or_else(|| core_scalar(scalar).to_string().parse().ok())
}

/// The items of a default list: plain words between brackets, as in `[Not enough money, No route]`.
fn words(list: &'static str) -> Vec<&'static str> {
    let inner = list.trim_start_matches('[').trim_end_matches(']');
    inner.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::keys::PROFILE;

    #[test]
    fn a_list_that_is_not_there_has_the_items_of_its_default() {
        let nothing = Section::new(None, PROFILE);
        assert_eq!(nothing.items("fatal_errors"), ["Not enough money"]);
        assert_eq!(nothing.items("sender_verified"), ["Checked"]);
        assert!(nothing.items("trust_status").is_empty());
        assert_eq!(words("[No route, Not enough money]"), ["No route", "Not enough money"]);
        assert!(words("[]").is_empty());
    }
}
