//! Values of our own enums, as they are stored: by their names.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::change::StatementError;
use crate::ledger::LedgerError;

/// The name of a value.
pub(super) fn serialize_name<T: Serialize>(value: &T) -> Result<String, StatementError> {
    let json = serde_json::to_value(value).map_err(unreadable_json)?;
    Ok(json.as_str().unwrap_or_default().to_owned())
}

/// The value of that name.
pub(super) fn parse_name<T: DeserializeOwned>(word: &str) -> Result<T, StatementError> {
    serde_json::from_value(word.into()).map_err(unreadable_json)
}

/// A record that is no JSON of ours.
pub(super) fn unreadable_json(error: serde_json::Error) -> StatementError {
    LedgerError::Unreadable(error.to_string()).into()
}
