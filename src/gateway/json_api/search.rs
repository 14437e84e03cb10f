//! Looking for a key in an answer, however deep it is.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

/// Whether any object of a JSON text, however deep, has this key.
pub(super) fn has_key(body: &[u8], key: &str) -> bool {
    // A body that cannot be read in depth (nested too deep) proves nothing: treat it as if it had the key.
    let mut json = serde_json::Deserializer::from_slice(body);
    KeySearch(key).deserialize(&mut json).unwrap_or(true)
}

/// Looks for a key in a JSON value, in each of several members of one name too.
struct KeySearch<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for KeySearch<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<bool, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeySearch<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            found |= name == self.0;
            found |= members.next_value_seed(KeySearch(self.0))?;
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(within) = items.next_element_seed(KeySearch(self.0))? {
            found |= within;
        }
        Ok(found)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_found_at_any_depth_and_in_any_spelling() {
        for json in [
            r#"{"msg_id":1}"#,
            r#"[[{"a":{"msg_id":null}}]]"#,
            r#"{"msg\u005fid":1}"#,
            r#"{"a":{"msg_id":1},"a":null}"#,
            "not JSON",
        ] {
            assert!(has_key(json.as_bytes(), "msg_id"), "{json}");
        }
        for json in [r#"{"id":[1,-1,1.5,true,null,"msg_id"]}"#, "{}", r#"{"error":"no msg_id"}"#] {
            assert!(!has_key(json.as_bytes(), "msg_id"), "{json}");
        }
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        assert!(has_key(deep.as_bytes(), "msg_id"), "what cannot be looked through may hold it");
    }
}
