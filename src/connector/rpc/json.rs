//! JSON in which no object names a member twice: two values contradict each other, and readers disagree about which one counts.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The longest name of a member that an error repeats, in characters.
const LONGEST_NAME: usize = 64;

/// A document, in which the first value of a repeated member counts.
pub(super) struct JsonDocument {
    /// Its value.
    pub(super) value: Value,
    /// The members that are repeated, at any depth.
    pub(super) repeated: RepeatedMembers,
}

/// Members that an object names more than once.
#[derive(Default)]
pub(super) struct RepeatedMembers {
    /// The first one.
    first: Option<String>,
    /// Those of the outermost object.
    outermost: Vec<String>,
}

impl RepeatedMembers {
    /// Why the document is refused; nothing if no member is repeated.
    pub(super) fn describe_problem(&self) -> Option<String> {
        let name = self.first.as_ref()?;
        Some(match name.chars().count() {
            0..=LONGEST_NAME => format!("the member `{}` appears twice", crate::finding::escape_to_one_line(name)),
            _ => "a member appears twice".to_owned(),
        })
    }

    /// Whether the outermost object repeats this member.
    pub(super) fn has_outermost(&self, name: &str) -> bool {
        self.outermost.iter().any(|repeated| repeated == name)
    }
}

/// Reads a document.
///
/// # Errors
/// When it is not JSON.
pub(super) fn read_document(body: &[u8]) -> serde_json::Result<JsonDocument> {
    let mut repeated = RepeatedMembers::default();
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = JsonReader { repeated: &mut repeated, depth: 0 }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(JsonDocument { value, repeated })
}

/// Reads one value.
struct JsonReader<'r> {
    repeated: &'r mut RepeatedMembers,
    depth: usize,
}

impl JsonReader<'_> {
    fn nested(&mut self) -> JsonReader<'_> {
        JsonReader { repeated: self.repeated, depth: self.depth + 1 }
    }
}

impl<'de> DeserializeSeed<'de> for JsonReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(self.nested())? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(self.nested())?;
            if !object.contains_key(&name) {
                object.insert(name, value);
                continue;
            }
            if self.depth == 0 {
                self.repeated.outermost.push(name.clone());
            }
            self.repeated.first.get_or_insert(name);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn repeated_member_is_found_at_any_depth() {
        for (body, name) in [
            (r#"{"a": 1, "a": 1}"#, "`a`"),
            (r#"{"a": {"b": [{"c": 1, "d": 2, "c": 3}]}}"#, "`c`"),
            (r#"{"phone": 1, "ph\u006fne": 2}"#, "`phone`"),
            (r#"{"a\nb": 1, "a\nb": 2}"#, "`a⏎b`"),
        ] {
            let problem = read_document(body.as_bytes()).unwrap().repeated.describe_problem();
            assert_eq!(problem, Some(format!("the member {name} appears twice")), "{body}");
        }
        let long = format!(r#"{{"{0}": 1, "{0}": 2}}"#, "x".repeat(65));
        let problem = read_document(long.as_bytes()).unwrap().repeated.describe_problem();
        assert_eq!(problem.as_deref(), Some("a member appears twice"));
        let nested = read_document(br#"{"id": 1, "a": {"id": 1, "id": 2}}"#).unwrap().repeated;
        assert!(nested.describe_problem().is_some() && !nested.has_outermost("id"));
        assert!(read_document(br#"{"id": 1, "id": 2}"#).unwrap().repeated.has_outermost("id"));
        assert_eq!(read_document(br#"[{"a": 1}, {"a": 1}]"#).unwrap().repeated.describe_problem(), None);
    }

    #[test]
    fn invalid_json_is_rejected() {
        for body in [&b"{"[..], b"", b"{} {}", b"\"\xff\"", b"{\"a\": 1,}"] {
            assert!(read_document(body).is_err(), "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn document_without_repeats_reads_like_serde_json(
            numbers in prop::collection::vec(any::<f64>(), 0..4),
            texts in prop::collection::btree_map(any::<String>(), any::<Option<i64>>(), 0..4),
        ) {
            let body = json!({ "numbers": numbers, "texts": texts, "yes": true }).to_string();
            let JsonDocument { value, repeated } = read_document(body.as_bytes()).unwrap();
            prop_assert_eq!(value, serde_json::from_str::<Value>(&body).unwrap());
            prop_assert_eq!(repeated.describe_problem(), None);
        }
    }
}
