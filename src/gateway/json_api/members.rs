//! The members of an answer, each kept raw, so that one of a wrong type does not hide the others.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The top level of an answer (contract 2.2 and 2.3).
#[derive(Deserialize)]
pub(super) struct Top<'a> {
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
pub(super) struct Item<'a> {
    #[serde(borrow)]
    pub(super) success: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
}
