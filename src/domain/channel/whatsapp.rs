//! WhatsApp: only a stage of a pipeline (contract 1 and 2.1).

use serde::{Deserialize, Serialize};

use super::value::{FieldValues, filled, text};
use super::{Facts, Field, TextLimit, Values};
use crate::domain::Extra;

const SIGNATURE: Field = Field::signature("signature");
const MESSAGE: Field = Field::message("message").required().limit(TextLimit::AtMost(4096));

pub(super) const FACTS: Facts = Facts {
    title: "WhatsApp",
    example: "{ signature: OlenaCo, message: \"Hello\" }",
    doc: "A WhatsApp message, always sent as a stage of a pipeline.",
    fields: &[SIGNATURE, MESSAGE, Field::extra()],
    empty: "is empty, but the gateway would accept it, charge for it and deliver a message without text",
    enabled_by_hand: true,
    price_example: "1.00",
    price_doc: "The price of a WhatsApp message.",
    mobile: true,
    ..Facts::PLAIN
};

/// A WhatsApp message. An empty one is charged and arrives empty, so both texts are required here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Whatsapp<T> {
    /// The sender name.
    pub signature: T,
    /// The text.
    pub message: T,
    /// Extra properties.
    pub fields: Extra,
}

impl<T> Whatsapp<T> {
    pub(super) fn of(mut values: Values<T>) -> Option<Self> {
        let (signature, message) = (values.text(&SIGNATURE)?, values.text(&MESSAGE)?);
        Some(Self { signature, message, fields: values.fields })
    }

    pub(super) fn values(&self) -> FieldValues<'_, T> {
        filled([text(&SIGNATURE, &self.signature), text(&MESSAGE, &self.message)])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Whatsapp<U>, E> {
        Ok(Whatsapp { signature: f(&self.signature)?, message: f(&self.message)?, fields: self.fields.clone() })
    }
}
