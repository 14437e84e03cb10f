//! Telegram: one-time codes.

use serde::{Deserialize, Serialize};

use super::value::{self, FieldValues, filled, text};
use super::{Facts, Field, TextLimit, Values};
use crate::domain::Extra;

const MESSAGE: Field = Field::message("message").required().limit(TextLimit::Digits { least: 4, most: 8 });
const LIFETIME: Field = Field::lifetime("telegram_lifetime", 60, u32::MAX);

pub(super) const FACTS: Facts = Facts {
    title: "Telegram",
    example: "{ message: \"{{ code }}\" }",
    doc: "A one-time code sent through Telegram.",
    fields: &[MESSAGE, LIFETIME, Field::extra()],
    personal: true,
    price_example: "0.40",
    price_doc: "The price of a one-time code sent through Telegram.",
    mobile: true,
    ..Facts::PLAIN
};

/// A one-time code by Telegram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Telegram<T> {
    /// The code, 4 to 8 digits.
    pub message: T,
    /// Seconds for which delivery is tried; at least 60.
    pub lifetime: Option<u32>,
    /// Extra properties.
    pub fields: Extra,
}

impl<T> Telegram<T> {
    pub(super) fn of(mut values: Values<T>) -> Option<Self> {
        let (message, lifetime) = (values.text(&MESSAGE)?, values.number(&LIFETIME));
        Some(Self { message, lifetime, fields: values.fields })
    }

    pub(super) fn values(&self) -> FieldValues<'_, T> {
        filled([text(&MESSAGE, &self.message), value::number(&LIFETIME, self.lifetime)])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Telegram<U>, E> {
        Ok(Telegram { message: f(&self.message)?, lifetime: self.lifetime, fields: self.fields.clone() })
    }
}
