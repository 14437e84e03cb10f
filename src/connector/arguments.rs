//! The arguments of a call, after the tool's schema took them.

use serde_json::{Map, Value};

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

    /// A number of a phone: a text of digits, with a plus sign or without, or a whole number.
    pub(super) fn phone(&self) -> Result<Phone, ToolError> {
        let digits = match self.0.get("phone") {
            Some(Value::String(text)) => text.trim_start_matches('+').parse().ok(),
            Some(number) => number.as_u64(),
            None => None,
        };
        let wrong = || ToolError::argument("`phone` is no international number: digits with the code of the country");
        digits.and_then(Phone::new).ok_or_else(wrong)
    }

    /// Our identifier of a message.
    pub(super) fn id(&self) -> Result<MessageId, ToolError> {
        let wrong = || ToolError::argument("`id` is no identifier that a sending tool returned");
        self.number("id").and_then(MessageId::new).ok_or_else(wrong)
    }
}
