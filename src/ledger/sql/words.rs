//! Values of our own enums, as they are stored: by their names.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::change::Failure;
use crate::ledger::LedgerError;

/// The name of a value.
pub(super) fn word<T: Serialize>(value: &T) -> Result<String, Failure> {
    let json = serde_json::to_value(value).map_err(unreadable)?;
    Ok(json.as_str().unwrap_or_default().to_owned())
}

/// The value of that name.
pub(super) fn parse<T: DeserializeOwned>(word: &str) -> Result<T, Failure> {
    serde_json::from_value(word.into()).map_err(unreadable)
}

/// A record that is no JSON of ours.
pub(super) fn unreadable(error: serde_json::Error) -> Failure {
    LedgerError::Unreadable(error.to_string()).into()
}
