//! The gateway's words as a person may see them: without the key, whatever the gateway repeats.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::conceal::conceal_text;
use super::{loose, members};
use crate::domain::GatewayMessageId;

/// Reads texts of an answer; the key that an answer may repeat is taken out of each.
pub struct RedactingReader<'k> {
    key: &'k str,
}

impl<'k> RedactingReader<'k> {
    /// Words of an answer to a request with this key.
    pub(crate) fn new(key: &'k str) -> Self {
        Self { key }
    }

    /// A text, cut where it is too long; nothing when the member is absent or blank. A value that is no string is kept as JSON.
    pub(super) fn read_text(&self, raw: Option<&RawValue>) -> Option<String> {
        let mut text = loose::read_text(raw)?;
        conceal_text(&mut text, self.key);
        Some(text)
    }

    /// The same, however long it is: for texts that are the user's own, and are never stored.
    pub(super) fn read_whole_text(&self, raw: Option<&RawValue>) -> Option<String> {
        let mut text = loose::read_whole_text(raw)?;
        conceal_text(&mut text, self.key);
        Some(text)
    }

    /// An identifier of the gateway; nothing when it is absent, empty, or neither string nor number.
    pub(super) fn read_id(&self, raw: Option<&RawValue>) -> Option<GatewayMessageId> {
        let mut id = loose::read_msg_id(raw)?;
        if let GatewayMessageId::Text(text) = &mut id {
            conceal_text(text, self.key);
        }
        Some(id)
    }
}

/// The records of a payload that is a list; each of them is an object.
///
/// # Errors
/// When the payload is no list, or one of its items is no object.
pub(super) fn read_records<'a, R: Deserialize<'a>>(payload: Option<&'a RawValue>) -> Result<Vec<R>, &'static str> {
    let items = payload.and_then(|payload| serde_json::from_str::<Vec<&RawValue>>(payload.get()).ok());
    let records = items.ok_or("contains no list")?.into_iter().map(|item| members::read_object(item.get()));
    records.collect::<Option<_>>().ok_or("does not contain a list of objects")
}

/// The record of a payload that is an object.
///
/// # Errors
/// When the payload is no object.
pub(super) fn read_record<'a, R: Deserialize<'a>>(payload: Option<&'a RawValue>) -> Result<R, &'static str> {
    payload.and_then(|payload| members::read_object(payload.get())).ok_or("contains no object")
}
