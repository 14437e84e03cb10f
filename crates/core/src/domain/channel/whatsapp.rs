//! The WhatsApp channel, which is available only as a stage of a pipeline (contract 1 and 2.1).

use serde::{Deserialize, Serialize};

use super::field::{FieldValueIter, present_values, text_value};
use super::{ChannelFacts, ChannelField, StageValues, TextLimit};
use crate::domain::ExtraProperties;

const SIGNATURE: ChannelField = ChannelField::signature("signature");
const MESSAGE: ChannelField = ChannelField::message("message").required().with_limit(TextLimit::AtMost(4096));

pub(super) const FACTS: ChannelFacts = ChannelFacts {
    title: "WhatsApp",
    example: "{ signature: OlenaCo, message: \"Hello\" }",
    doc: "A WhatsApp message, always sent as a stage of a pipeline.",
    fields: &[SIGNATURE, MESSAGE, ChannelField::extra()],
    empty: "is empty, but the gateway would accept it, charge for it and deliver an empty message",
    enabled_by_hand: true,
    price_example: "1.00",
    price_doc: "The price of a WhatsApp message.",
    mobile: true,
    ..ChannelFacts::PLAIN
};

/// A WhatsApp message. An empty one is charged and arrives empty, so both texts are required.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Whatsapp<T> {
    /// The sender name.
    pub signature: T,
    /// The text.
    pub message: T,
    /// Extra properties.
    pub fields: ExtraProperties,
}

impl<T> Whatsapp<T> {
    pub(super) fn of(mut values: StageValues<T>) -> Option<Self> {
        let (signature, message) = (values.take_text(&SIGNATURE)?, values.take_text(&MESSAGE)?);
        Some(Self { signature, message, fields: values.fields })
    }

    pub(super) fn values(&self) -> FieldValueIter<'_, T> {
        present_values([text_value(&SIGNATURE, &self.signature), text_value(&MESSAGE, &self.message)])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Whatsapp<U>, E> {
        Ok(Whatsapp { signature: f(&self.signature)?, message: f(&self.message)?, fields: self.fields.clone() })
    }
}
