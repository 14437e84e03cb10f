//! The tree of nodes.

use std::ops::Range;

pub(crate) use granit_parser::ScalarStyle as Style;

/// A value with the bytes of the file that it stands in.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// What it is.
    pub(crate) content: NodeContent,
    /// Its bytes in the file.
    pub(crate) span: Range<usize>,
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum NodeContent {
    /// A text, a number, anything that is one value.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A map, its keys in their order and without repeats.
    Map(Vec<MapEntry>),
}

/// One value as it was typed, quotes and escapes removed.
#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    /// Its text; empty where nothing was written.
    pub(crate) text: String,
    /// How it was written.
    pub(crate) style: Style,
}

/// A key of a map with its value.
#[derive(Clone, Debug)]
pub(crate) struct MapEntry {
    /// The key.
    pub(crate) key: String,
    /// The key's bytes in the file.
    pub(crate) key_span: Range<usize>,
    /// The value.
    pub(crate) value: Node,
}

impl Scalar {
    /// Whether it was written without quotes on the line of its key.
    pub(crate) fn is_plain(&self) -> bool {
        self.style == Style::Plain
    }

    /// Whether it was written as a block after `|` or `>`.
    pub(crate) fn is_block(&self) -> bool {
        matches!(self.style, Style::Literal | Style::Folded)
    }

    /// Whether it is no value at all: nothing, `~` or `null`.
    pub(crate) fn is_null(&self) -> bool {
        self.is_plain() && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }
}

impl Node {
    /// The value, if it is one value.
    pub(crate) fn as_scalar(&self) -> Option<&Scalar> {
        match &self.content {
            NodeContent::Scalar(scalar) => Some(scalar),
            NodeContent::List(_) | NodeContent::Map(_) => None,
        }
    }

    /// The entries, if it is a map; none if nothing was written.
    pub(crate) fn as_entries(&self) -> Option<&[MapEntry]> {
        match &self.content {
            NodeContent::Map(entries) => Some(entries),
            NodeContent::Scalar(scalar) if scalar.is_null() => Some(&[]),
            NodeContent::Scalar(_) | NodeContent::List(_) => None,
        }
    }

    /// The items, if it is a list.
    pub(crate) fn as_items(&self) -> Option<&[Node]> {
        match &self.content {
            NodeContent::List(items) => Some(items),
            NodeContent::Scalar(_) | NodeContent::Map(_) => None,
        }
    }

    /// The entry of a map with that key.
    pub(crate) fn find_entry(&self, key: &str) -> Option<&MapEntry> {
        self.as_entries()?.iter().find(|entry| entry.key == key)
    }

    /// Whether nothing was written where a value belongs.
    pub(crate) fn is_null(&self) -> bool {
        self.as_scalar().is_some_and(Scalar::is_null)
    }

    /// Adds the missing keys from another map, if both are maps.
    pub(crate) fn merge_missing(&mut self, other: Node) {
        let (NodeContent::Map(own), NodeContent::Map(others)) = (&mut self.content, other.content) else { return };
        for entry in others {
            match own.iter_mut().find(|known| known.key == entry.key) {
                Some(known) => known.value.merge_missing(entry.value),
                None => own.push(entry),
            }
        }
    }

    /// The bytes of all its keys and values.
    pub(crate) fn count_bytes(&self) -> usize {
        match &self.content {
            NodeContent::Scalar(scalar) => scalar.text.len(),
            NodeContent::List(items) => items.iter().map(Node::count_bytes).sum(),
            NodeContent::Map(entries) => entries.iter().map(|entry| entry.key.len() + entry.value.count_bytes()).sum(),
        }
    }

    /// How many nodes it is made of, and how deep they lie in each other.
    pub(crate) fn measure_size(&self) -> (usize, usize) {
        let children: Box<dyn Iterator<Item = &Node>> = match &self.content {
            NodeContent::Scalar(_) => return (1, 1),
            NodeContent::List(items) => Box::new(items.iter()),
            NodeContent::Map(entries) => Box::new(entries.iter().map(|entry| &entry.value)),
        };
        let (count, depth) = children
            .map(Node::measure_size)
            .fold((0, 0), |(count, depth), (inner, deep)| (count + inner, depth.max(deep)));
        (count + 1, depth + 1)
    }
}
