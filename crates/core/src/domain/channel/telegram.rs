//! Telegram: one-time codes.

use serde::{Deserialize, Serialize};

use super::field::{FieldValueIter, number_value, present_values, text_value};
use super::{ChannelFacts, ChannelField, StageValues, TextLimit};
use crate::domain::ExtraProperties;

const MESSAGE: ChannelField =
    ChannelField::message("message").required().with_limit(TextLimit::Digits { least: 4, most: 8 });
const LIFETIME: ChannelField = ChannelField::lifetime("telegram_lifetime", 60, u32::MAX);

pub(super) const FACTS: ChannelFacts = ChannelFacts {
    title: "Telegram",
    example: "{ message: \"{{ code }}\" }",
    doc: "A one-time code sent through Telegram.",
    fields: &[MESSAGE, LIFETIME, ChannelField::extra()],
    personal: true,
    price_example: "0.40",
    price_doc: "The price of a one-time code sent through Telegram.",
    mobile: true,
    ..ChannelFacts::PLAIN
};

/// A one-time code by Telegram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Telegram<T> {
    /// The code, 4 to 8 digits.
    pub message: T,
    /// Seconds for which delivery is tried; at least 60.
    pub lifetime: Option<u32>,
    /// Extra properties.
    pub fields: ExtraProperties,
}

impl<T> Telegram<T> {
    pub(super) fn of(mut values: StageValues<T>) -> Option<Self> {
        let (message, lifetime) = (values.take_text(&MESSAGE)?, values.take_number(&LIFETIME));
        Some(Self { message, lifetime, fields: values.fields })
    }

    pub(super) fn values(&self) -> FieldValueIter<'_, T> {
        present_values([text_value(&MESSAGE, &self.message), number_value(&LIFETIME, self.lifetime)])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Telegram<U>, E> {
        Ok(Telegram { message: f(&self.message)?, lifetime: self.lifetime, fields: self.fields.clone() })
    }
}
