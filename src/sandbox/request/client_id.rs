//! Identifiers as clients send them.

use std::fmt;

use serde::Serialize;
use serde_json::{Number, Value};

/// An identifier as a client sent it, a number or a string; it goes back in the same form (contract 2.2).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum ClientId {
    /// A whole number that is not negative.
    Whole(u64),
    /// Any other number.
    Odd(Number),
    /// A string.
    Text(Box<str>),
}

/// What two spellings of the same identifier have in common: `7`, `"7"`, `"007"` and `7.0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientIdKey {
    Number(u64),
    Text(Box<str>),
}

impl ClientId {
    /// The identifier in this JSON value, if it is a number or a string.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => {
                Some(number.as_u64().map_or_else(|| ClientId::Odd(number.clone()), ClientId::Whole))
            }
            Value::String(text) => Some(ClientId::Text(text.as_str().into())),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// What the identifier is found by, however it is spelt.
    pub(crate) fn to_key(&self) -> ClientIdKey {
        match self {
            ClientId::Whole(number) => ClientIdKey::Number(*number),
            ClientId::Odd(number) => {
                // A float prints as `7.0`; PHP clients send such after arithmetic.
                let text = number.to_string();
                ClientIdKey::from_text(text.strip_suffix(".0").unwrap_or(&text))
            }
            ClientId::Text(text) => ClientIdKey::from_text(text),
        }
    }
}

impl ClientIdKey {
    fn from_text(text: &str) -> Self {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => ClientIdKey::Number(number),
            _ => ClientIdKey::Text(text.into()),
        }
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientId::Whole(number) => number.fmt(f),
            ClientId::Odd(number) => number.fmt(f),
            ClientId::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn client_id_serializes_as_it_was_sent() {
        for value in
            [json!(7), json!("7"), json!("007"), json!(-3), json!(1.5), json!(u64::MAX), json!(""), json!("a b")]
        {
            let id = ClientId::from_json(&value).expect("an id");
            assert_eq!(serde_json::to_value(&id).expect("JSON"), value);
        }
    }

    #[test]
    fn spellings_of_one_number_share_a_key() {
        for value in [json!(7), json!("7"), json!("007"), json!(7.0)] {
            assert_eq!(ClientId::from_json(&value).expect("an id").to_key(), ClientIdKey::Number(7), "{value}");
        }
        for value in [json!("7a"), json!("+7"), json!(-7), json!(7.5), json!(""), json!("99999999999999999999999")] {
            assert!(matches!(ClientId::from_json(&value).expect("an id").to_key(), ClientIdKey::Text(_)), "{value}");
        }
    }
}
