//! YAML with locations: a tree whose nodes know their bytes in the file.
//!
//! It knows nothing about campaigns. Values stay as typed; only [`node_to_json`] gives them the types of YAML 1.2's
//! core schema.

mod mistakes;
mod read;
#[cfg(test)]
mod tests;

use std::ops::Range;

use serde_json::{Map, Number, Value};

pub(crate) use granit_parser::ScalarStyle as Style;
pub(crate) use mistakes::find_slips;
pub(crate) use read::read_tree;

/// A value with its bytes in the file.
#[derive(Clone, Debug)]
pub struct Node {
    /// The content.
    pub(crate) content: NodeContent,
    /// Its bytes in the file.
    pub span: Range<usize>,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub(crate) enum NodeContent {
    /// A single value, such as a text or a number.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A map, with keys in order and without duplicates.
    Map(Vec<MapEntry>),
}

/// A single value as typed, with quotes and escapes removed.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The text; empty for a missing value.
    pub text: String,
    /// The style in which it was written.
    pub(crate) style: Style,
}

/// A key of a map with its value.
#[derive(Clone, Debug)]
pub struct MapEntry {
    /// The key.
    pub key: String,
    /// The key's bytes in the file.
    pub key_span: Range<usize>,
    /// The value.
    pub value: Node,
}

impl Scalar {
    /// Whether the scalar was written without quotes on the line of its key.
    pub(crate) fn is_plain(&self) -> bool {
        self.style == Style::Plain
    }

    /// Whether the scalar was written as a block after `|` or `>`.
    pub(crate) fn is_block(&self) -> bool {
        matches!(self.style, Style::Literal | Style::Folded)
    }

    /// Whether the scalar has no value: empty, `~` or `null`.
    pub(crate) fn is_null(&self) -> bool {
        self.is_plain() && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }
}

impl Node {
    /// The value, if it is a single value.
    pub fn as_scalar(&self) -> Option<&Scalar> {
        match &self.content {
            NodeContent::Scalar(scalar) => Some(scalar),
            NodeContent::List(_) | NodeContent::Map(_) => None,
        }
    }

    /// The entries, if it is a map; empty if there is no value.
    pub fn as_entries(&self) -> Option<&[MapEntry]> {
        match &self.content {
            NodeContent::Map(entries) => Some(entries),
            NodeContent::Scalar(scalar) if scalar.is_null() => Some(&[]),
            NodeContent::Scalar(_) | NodeContent::List(_) => None,
        }
    }

    /// The items, if it is a list.
    pub fn as_items(&self) -> Option<&[Node]> {
        match &self.content {
            NodeContent::List(items) => Some(items),
            NodeContent::Scalar(_) | NodeContent::Map(_) => None,
        }
    }

    /// The entry of a map with this key.
    pub(crate) fn find_entry(&self, key: &str) -> Option<&MapEntry> {
        self.as_entries()?.iter().find(|entry| entry.key == key)
    }

    /// Whether there is no value.
    pub fn is_null(&self) -> bool {
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

    /// The number of nodes, and the depth of their nesting.
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

/// The largest whole number that every JSON reader keeps exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A node as JSON.
///
/// A number stays text if it would lose something: a leading zero or plus sign (phone numbers, codes), more digits than
/// JSON readers keep, or an infinite value.
pub(crate) fn node_to_json(node: &Node) -> Value {
    match &node.content {
        NodeContent::Scalar(scalar) => scalar_to_json(scalar),
        NodeContent::List(items) => items.iter().map(node_to_json).collect(),
        NodeContent::Map(entries) => Value::Object(
            entries.iter().map(|entry| (entry.key.clone(), node_to_json(&entry.value))).collect::<Map<_, _>>(),
        ),
    }
}

/// A single value as JSON.
pub(crate) fn scalar_to_json(scalar: &Scalar) -> Value {
    if !scalar.is_plain() {
        return Value::String(scalar.text.clone());
    }
    match scalar.text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        text => parse_number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn parse_number(text: &str) -> Option<Number> {
    let whole = |digits: &str, radix| {
        let number = u64::from_str_radix(digits, radix).ok().filter(|&number| number <= MAX_SAFE_INTEGER);
        number.filter(|_| !digits.starts_with('+'))
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return whole(digits, 16).map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return whole(digits, 8).map(Number::from);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let leading_zero = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if leading_zero || !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        whole(digits, 10)?;
        return text.parse::<i64>().ok().map(Number::from);
    }
    let looks_decimal =
        digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    text.parse::<f64>().ok().filter(|_| looks_decimal).and_then(Number::from_f64)
}

#[cfg(test)]
mod json_tests {
    use super::Style;
    use super::*;

    #[test]
    fn values_have_yaml_types_and_lossy_numbers_stay_text() {
        let cases = [
            ("null", "null"),
            ("~", "null"),
            ("true", "true"),
            ("yes", "\"yes\""),
            ("12", "12"),
            ("-3", "-3"),
            ("0", "0"),
            ("0.5", "0.5"),
            ("1e3", "1000.0"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("0501234567", "\"0501234567\""),
            ("+380501234567", "\"+380501234567\""),
            ("9007199254740991", "9007199254740991"),
            ("9007199254740992", "\"9007199254740992\""),
            ("1e999", "\"1e999\""),
            (".inf", "\".inf\""),
            ("1.2.3", "\"1.2.3\""),
            ("-", "\"-\""),
            ("0x+1", "\"0x+1\""),
        ];
        for (typed, json) in cases {
            let scalar = Scalar { text: typed.into(), style: Style::Plain };
            assert_eq!(scalar_to_json(&scalar).to_string(), json, "{typed}");
        }
        let quoted = Scalar { text: "12".into(), style: Style::DoubleQuoted };
        assert_eq!(scalar_to_json(&quoted).to_string(), "\"12\"");
    }
}
