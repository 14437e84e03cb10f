//! The arguments of a call, after the tool's schema took them.

use serde_json::{Map, Value};

use crate::audience::parse;

use super::error::ToolError;
use crate::domain::{MessageId, Phone};

/// Arguments that agree with the schema of their tool.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Arguments that were held against the schema.
    pub(super) fn judged(arguments: Map<String, Value>) -> Self {
        Self(arguments)
    }

    /// A whole number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    /// What was said.
    pub(super) fn members(&self) -> &Map<String, Value> {
        &self.0
    }

    /// A text; empty where there is none.
    pub(super) fn text(&self, name: &str) -> String {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// Whether something is wanted.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    /// A number of a phone: a text of digits, with a plus sign or without, or a whole number.
    pub(super) fn phone(&self) -> Result<Phone, ToolError> {
        let wrong = || ToolError::argument("`phone` is no international number: digits with the code of the country");
        self.0.get("phone").and_then(phone_in).ok_or_else(wrong)
    }

    /// Our identifier of a message, where the caller brings one.
    pub(super) fn optional_id(&self) -> Result<Option<MessageId>, ToolError> {
        if self.0.contains_key("id") { self.id().map(Some) } else { Ok(None) }
    }

    /// Our identifier of a message.
    pub(super) fn id(&self) -> Result<MessageId, ToolError> {
        let wrong = || ToolError::argument("`id` is no identifier that a sending tool returned");
        self.number("id").and_then(MessageId::new).ok_or_else(wrong)
    }
}

/// The number that a value is, if there is such a number; the code of a country stands at its beginning.
fn phone_in(value: &Value) -> Option<Phone> {
    let digits = match value {
        Value::String(text) => text.trim_start_matches('+').to_owned(),
        number => number.as_u64()?.to_string(),
    };
    // A plus sign, so that no number is read as one of a country.
    parse(&format!("+{digits}"), None).ok()
}

/// A number of which only the last four digits are shown, as far as the value is one.
pub(super) fn masked(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let digits: Vec<char> = text.chars().filter(char::is_ascii_digit).collect();
    let last: String = digits[digits.len().saturating_sub(4)..].iter().collect();
    format!("…{last}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_is_read_with_the_code_of_its_country_or_not_at_all() {
        let read = |value: Value| phone_in(&value).map(Phone::get);
        for value in [json!("380501234567"), json!("+380501234567"), json!(380_501_234_567_u64)] {
            assert_eq!(read(value), Some(380_501_234_567));
        }
        for value in
            [json!("0501234567"), json!("12345678"), json!(["380501234567"]), json!(null), json!(1.5), json!("")]
        {
            assert_eq!(read(value.clone()), None, "{value}");
        }
    }

    #[test]
    fn a_masked_number_shows_its_last_four_digits_alone() {
        assert_eq!(masked(&json!("+380 50 123 45 67")), "…4567");
        assert_eq!(masked(&json!(380_501_234_567_u64)), "…4567");
        assert_eq!((masked(&json!("12")), masked(&json!({}))), ("…12".to_owned(), "…".to_owned()));
    }
}
