//! SMS.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::value::{self, FieldValues, filled, text};
use super::{Facts, Field, FieldKind, Stage, TextLimit, Values};
use crate::domain::{Extra, OperationKind, Plain};

const SIGNATURE: Field = Field::signature("sms_signature").limit(TextLimit::AlphaName);
const MESSAGE: Field = Field::message("sms_message").required().limit(TextLimit::Parts);
const NO_LIFETIME: &str = "it has no field for the SMS lifetime";
const LIFETIME: Field = Field::lifetime("sms_lifetime", 3_600, 259_200).nowhere(&[
    (OperationKind::ViberSms, NO_LIFETIME),
    (OperationKind::RcsSms, NO_LIFETIME),
    (OperationKind::RcsViberSms, NO_LIFETIME),
]);
const SHORT_LINK: Field = Field::short_link();
const MAX_PARTS: Field = Field::new("max_parts", FieldKind::Number { least: 1, most: 255 })
    .about("3", "The maximum number of billed parts. A longer message makes its row invalid.")
    .default("3");
const PLAIN: Field = Field::new("plain", FieldKind::Word(&Plain::NAMES)).about(
    "quotes",
    "Replaces characters that increase the number of billed parts. `quotes` replaces typographic quotation marks, \
     dashes, spaces and ellipses, but not letters. `latin` also replaces letters; it transliterates Cyrillic according \
     to the official Ukrainian table from 2010.",
);

pub(super) const FACTS: Facts = Facts {
    title: "SMS",
    example: "{ signature: OlenaCo, message: \"Hello\" }",
    doc: "An SMS message.",
    fields: &[SIGNATURE, MESSAGE, LIFETIME, SHORT_LINK, MAX_PARTS, PLAIN, Field::extra()],
    senders_listed: true,
    billed_by_part: true,
    price_example: "0.80",
    price_doc: "The price of one part of an SMS.",
    mobile: true,
    ..Facts::PLAIN
};

/// An SMS (contract 4.3 `sms`; the fields are in the platform's documentation).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sms<T> {
    /// The sender name.
    pub signature: T,
    /// The text.
    pub message: T,
    /// Seconds for which delivery is tried.
    pub lifetime: Option<u32>,
    /// Whether links are shortened and tracked.
    pub short_link: Option<bool>,
    /// The most billed parts that the author allows; not sent.
    pub max_parts: u32,
    /// What is replaced in the text; of a rendered message, what was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain: Option<Plain>,
    /// Extra properties.
    pub fields: Extra,
}

impl<T> Sms<T> {
    pub(super) fn of(mut values: Values<T>) -> Option<Self> {
        Some(Self {
            signature: values.text(&SIGNATURE)?,
            message: values.text(&MESSAGE)?,
            lifetime: values.number(&LIFETIME),
            short_link: values.flag(&SHORT_LINK),
            max_parts: values.number(&MAX_PARTS)?,
            plain: values.word(&PLAIN).and_then(Plain::from_name),
            fields: values.fields,
        })
    }

    pub(super) fn values(&self) -> FieldValues<'_, T> {
        filled([
            text(&SIGNATURE, &self.signature),
            text(&MESSAGE, &self.message),
            value::number(&LIFETIME, self.lifetime),
            value::flag(&SHORT_LINK, self.short_link),
            value::number(&MAX_PARTS, Some(self.max_parts)),
            value::word(&PLAIN, self.plain.map(Plain::name)),
        ])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Sms<U>, E> {
        Ok(Sms {
            signature: f(&self.signature)?,
            message: f(&self.message)?,
            lifetime: self.lifetime,
            short_link: self.short_link,
            max_parts: self.max_parts,
            plain: self.plain,
            fields: self.fields.clone(),
        })
    }
}

impl<T> Stage<T> {
    /// The most billed parts that the author allows, where parts are billed.
    pub(super) fn max_parts(&self) -> Option<u32> {
        match self {
            Stage::Sms(sms) => Some(sms.max_parts),
            _ => None,
        }
    }

    /// The text that is billed by its parts, where one is.
    pub fn billed_text(&self) -> Option<&T> {
        match self {
            Stage::Sms(sms) => Some(&sms.message),
            _ => None,
        }
    }

    /// A text under that key as it leaves.
    #[must_use]
    pub fn sent<'t>(&self, field: &Field, text: &'t str) -> Cow<'t, str> {
        let plain = match self {
            Stage::Sms(sms) if *field == MESSAGE => sms.plain,
            _ => None,
        };
        plain.and_then(|plain| plain.replaced(text)).map_or(Cow::Borrowed(text), Cow::Owned)
    }
}

impl Stage<Cow<'_, str>> {
    /// Replaces what its author wants replaced, and keeps whether anything was.
    pub fn make_plain(&mut self) {
        if let Stage::Sms(sms) = self
            && let Some(plain) = sms.plain.take()
            && let Some(text) = plain.replaced(&sms.message)
        {
            (sms.message, sms.plain) = (Cow::Owned(text), Some(plain));
        }
    }
}
