//! The members of an answer, each kept raw, so that one of a wrong type does not hide the others.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The top level of an answer (contract 2.2 and 2.3).
#[derive(Deserialize)]
pub(super) struct AnswerBody<'a> {
    #[serde(borrow)]
    pub(super) success: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) request_id: Option<&'a RawValue>,
}

/// One result item (contract 2.2).
#[derive(Default, Deserialize)]
pub(super) struct AnswerItem<'a> {
    #[serde(borrow)]
    pub(super) success: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
}

impl<'a> AnswerBody<'a> {
    /// Reads a body; nothing when it is no JSON object.
    pub(super) fn read(body: &'a [u8]) -> Option<Self> {
        read_object(std::str::from_utf8(body).ok()?)
    }
}

impl<'a> AnswerItem<'a> {
    /// Reads an item; nothing when it is no JSON object, or names a member twice.
    pub(super) fn read(raw: &'a RawValue) -> Option<Self> {
        read_object(raw.get())
    }
}

/// Reads a record from a JSON object alone: left to itself the library takes a list for one, its members in their order.
pub(super) fn read_object<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
    let json = json.trim_ascii_start();
    if json.starts_with('{') { serde_json::from_str(json).ok() } else { None }
}
