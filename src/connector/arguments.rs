//! The arguments of a call, after the tool's schema took them.

use serde_json::{Map, Value};

use super::error::ToolError;
use crate::audience::{ValidNumber, parse_number};
use crate::domain::{MessageId, Phone};

/// The digits that an international number has at least and at most.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

/// Arguments that agree with the schema of their tool.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolArguments(Map<String, Value>);

impl ToolArguments {
    /// Arguments that were held against the schema.
    pub(super) fn from_checked(arguments: Map<String, Value>) -> Self {
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
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    /// The number of the recipient.
    pub(super) fn parse_phone(&self) -> Result<Phone, ToolError> {
        let value = self.0.get("phone").unwrap_or(&Value::Null);
        read_phone(value).map(|number| number.phone).map_err(ToolError::invalid_argument)
    }

    /// Our identifier of a message, where the caller brings one.
    pub(super) fn parse_optional_id(&self) -> Result<Option<MessageId>, ToolError> {
        if self.0.contains_key("id") { self.parse_id().map(Some) } else { Ok(None) }
    }

    /// Our identifier of a message.
    pub(super) fn parse_id(&self) -> Result<MessageId, ToolError> {
        let wrong = || ToolError::invalid_argument("`id` is not an identifier returned by a sending tool");
        self.number("id").and_then(MessageId::new).ok_or_else(wrong)
    }
}

/// The phone number that a value is: a text of digits, with a plus sign or without, or a whole number.
///
/// # Errors
/// What is wrong with it and what to do, without the number.
pub(super) fn read_phone(value: &Value) -> Result<ValidNumber, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_u64() => number.to_string(),
        _ => {
            return Err(
                "`phone` must be one phone number: digits with the country code, such as 380671112233".to_owned()
            );
        }
    };
    let digits = text.strip_prefix('+').unwrap_or(&text);
    let count = digits.chars().count();
    let (least, most) = (PHONE_DIGITS.start(), PHONE_DIGITS.end());
    let problem = if digits.chars().any(char::is_whitespace) {
        Some("has spaces; write the digits without spaces".to_owned())
    } else if digits.chars().any(char::is_alphabetic) {
        Some("has letters; write digits only, with the country code first, for example 380671112233".to_owned())
    } else if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        Some(
            "has characters other than digits; write digits only, with the country code first, for example 380671112233"
                .to_owned(),
        )
    } else if digits.starts_with('0') {
        Some("starts with 0; write the country code first, for example 380671112233 instead of 0671112233".to_owned())
    } else if count < *least {
        Some(format!("has {count} digits; a number with its country code has {least} to {most}"))
    } else if count > *most {
        Some(format!("has {count} digits; a number has at most {most}"))
    } else {
        None
    };
    if let Some(problem) = problem {
        return Err(format!("`phone` {problem}"));
    }
    // A plus sign, so that no number is read as one of a country.
    let invalid = |problem| format!("`phone` is not a valid phone number: {problem}; ask the person you work for");
    parse_number(&format!("+{digits}"), None).map_err(invalid)
}

/// What is wrong with a phone number; nothing if it is one.
pub(super) fn phone_problem(value: &Value) -> Option<String> {
    read_phone(value).err()
}

/// A number of which only the last four digits are shown, as far as the value is one.
pub(super) fn mask_phone(value: &Value) -> String {
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
    fn phone_is_read_with_its_country_code() {
        for value in [json!("380501234567"), json!("+380501234567"), json!(380_501_234_567_u64)] {
            assert_eq!(read_phone(&value).map(|number| number.phone.to_u64()), Ok(380_501_234_567));
        }
    }

    #[test]
    fn phone_problem_says_what_to_do_without_the_number() {
        for (value, words) in [
            (json!("38050abc4567"), "has letters; write digits"),
            (json!("38О501234567"), "has letters"),
            (json!("380 50 123 45 67"), "has spaces; write the digits without spaces"),
            (json!("380-50-123-45-67"), "has characters other than digits"),
            (json!("3.8e11"), "has letters"),
            (json!("0501234567"), "starts with 0; write the country code first"),
            (json!("00380501234567"), "starts with 0"),
            (json!(501_239), "has 6 digits"),
            (json!(""), "has 0 digits"),
            (json!("+"), "has 0 digits"),
            (json!("3805012345673805"), "has 16 digits; a number has at most 15"),
            (json!("380001234567"), "is not a valid phone number"),
            (json!("12345678"), "is not a valid phone number"),
            (json!(["380501234567"]), "must be one phone number"),
            (json!(null), "must be one phone number"),
            (json!(1.5), "must be one phone number"),
            (json!(-380_501_234_567_i64), "must be one phone number"),
        ] {
            let problem = read_phone(&value).unwrap_err();
            assert!(problem.starts_with("`phone` ") && problem.contains(words), "{value}: {problem}");
            assert!(!problem.contains("50123"), "{problem}");
        }
    }

    #[test]
    fn masked_number_shows_only_its_last_four_digits() {
        assert_eq!(mask_phone(&json!("+380 50 123 45 67")), "…4567");
        assert_eq!(mask_phone(&json!(380_501_234_567_u64)), "…4567");
        assert_eq!((mask_phone(&json!("12")), mask_phone(&json!({}))), ("…12".to_owned(), "…".to_owned()));
    }
}
