//! The SMS channel: text messages that are billed per part.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::field::{FieldValueIter, flag_value, number_value, present_values, text_value, word_value};
use super::{ChannelFacts, ChannelField, FieldKind, Stage, StageValues, TextLimit, WirePlace};
use crate::domain::{ExtraProperties, OperationKind, PlainMode};

const SIGNATURE: ChannelField = ChannelField::signature("sms_signature").with_limit(TextLimit::AlphaName);
const MESSAGE: ChannelField = ChannelField::message("sms_message").required().with_limit(TextLimit::Parts);
const NO_LIFETIME: &str = "it has no field for the SMS lifetime";
const LIFETIME: ChannelField = ChannelField::lifetime("sms_lifetime", 3_600, 259_200).with_unsupported_kinds(&[
    (OperationKind::ViberSms, NO_LIFETIME),
    (OperationKind::RcsSms, NO_LIFETIME),
    (OperationKind::RcsViberSms, NO_LIFETIME),
]);
const SHORT_LINK: ChannelField = ChannelField::short_link();
const NO_UNSUBSCRIBE_LINK: &str = "only a plain `sms` has a field for this key";
const UNSUBSCRIBE_LINK: ChannelField = ChannelField::new("unsubscribe_link", FieldKind::Flag)
    .with_docs("true", "Lets the gateway add an unsubscribe link, which can make the message longer.")
    .with_flat_place(WirePlace::Under("unsubscribe_link"))
    .with_stage_place(WirePlace::Nowhere(NO_UNSUBSCRIBE_LINK))
    .with_unsupported_kinds(&[
        (OperationKind::ViberSms, NO_UNSUBSCRIBE_LINK),
        (OperationKind::RcsSms, NO_UNSUBSCRIBE_LINK),
        (OperationKind::RcsViberSms, NO_UNSUBSCRIBE_LINK),
    ]);
const MAX_PARTS: ChannelField = ChannelField::new("max_parts", FieldKind::Number { least: 1, most: 255 })
    .with_docs("3", "The maximum number of billed parts. A longer message makes its row invalid.")
    .with_default("3");
const PLAIN: ChannelField = ChannelField::new("plain", FieldKind::Word(&PlainMode::NAMES)).with_docs(
    "quotes",
    "Replaces characters that increase the number of billed parts. `quotes` replaces typographic quotation marks, \
     dashes, spaces and ellipses, but not letters. `latin` also replaces letters; it transliterates Cyrillic \
     according to the official Ukrainian table of 2010.",
);

pub(super) const FACTS: ChannelFacts = ChannelFacts {
    title: "SMS",
    example: "{ signature: OlenaCo, message: \"Hello\" }",
    doc: "An SMS message.",
    fields: &[SIGNATURE, MESSAGE, LIFETIME, SHORT_LINK, UNSUBSCRIBE_LINK, MAX_PARTS, PLAIN, ChannelField::extra()],
    senders_listed: true,
    billed_by_part: true,
    price_example: "0.80",
    price_doc: "The price of one part of an SMS.",
    mobile: true,
    ..ChannelFacts::PLAIN
};

/// An SMS (contract 4.3 `sms`; the fields are in the platform's documentation).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sms<T> {
    /// The sender name.
    pub signature: T,
    /// The text.
    pub message: T,
    /// The number of seconds for which delivery is attempted.
    pub lifetime: Option<u32>,
    /// Whether links are shortened and tracked.
    pub short_link: Option<bool>,
    /// Whether the gateway adds a link to unsubscribe; only in a plain SMS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsubscribe_link: Option<bool>,
    /// The maximum number of billed parts; not sent.
    pub max_parts: u32,
    /// The replacement mode; in a rendered message, the one that was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain: Option<PlainMode>,
    /// Extra properties.
    pub fields: ExtraProperties,
}

impl<T> Sms<T> {
    pub(super) fn of(mut values: StageValues<T>) -> Option<Self> {
        Some(Self {
            signature: values.take_text(&SIGNATURE)?,
            message: values.take_text(&MESSAGE)?,
            lifetime: values.take_number(&LIFETIME),
            short_link: values.take_flag(&SHORT_LINK),
            unsubscribe_link: values.take_flag(&UNSUBSCRIBE_LINK),
            max_parts: values.take_number(&MAX_PARTS)?,
            plain: values.take_word(&PLAIN).and_then(PlainMode::from_name),
            fields: values.fields,
        })
    }

    pub(super) fn values(&self) -> FieldValueIter<'_, T> {
        present_values([
            text_value(&SIGNATURE, &self.signature),
            text_value(&MESSAGE, &self.message),
            number_value(&LIFETIME, self.lifetime),
            flag_value(&SHORT_LINK, self.short_link),
            flag_value(&UNSUBSCRIBE_LINK, self.unsubscribe_link),
            number_value(&MAX_PARTS, Some(self.max_parts)),
            word_value(&PLAIN, self.plain.map(PlainMode::name)),
        ])
    }

    pub(super) fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Sms<U>, E> {
        Ok(Sms {
            signature: f(&self.signature)?,
            message: f(&self.message)?,
            lifetime: self.lifetime,
            short_link: self.short_link,
            unsubscribe_link: self.unsubscribe_link,
            max_parts: self.max_parts,
            plain: self.plain,
            fields: self.fields.clone(),
        })
    }
}

impl<T> Stage<T> {
    /// The maximum number of billed parts, if parts are billed.
    pub(super) fn max_parts(&self) -> Option<u32> {
        match self {
            Stage::Sms(sms) => Some(sms.max_parts),
            _ => None,
        }
    }

    /// The text that is billed in parts, if there is one.
    pub fn billed_text(&self) -> Option<&T> {
        match self {
            Stage::Sms(sms) => Some(&sms.message),
            _ => None,
        }
    }

    /// The text of the key `field` as it is sent, after the replacements that the author requested.
    pub fn outgoing_text<'t>(&self, field: &ChannelField, text: &'t str) -> Cow<'t, str> {
        let plain = match self {
            Stage::Sms(sms) if *field == MESSAGE => sms.plain,
            _ => None,
        };
        plain.and_then(|plain| plain.replace_in_text(text)).map_or(Cow::Borrowed(text), Cow::Owned)
    }
}

impl Stage<Cow<'_, str>> {
    /// Replaces characters as the author requested, and records whether any character changed.
    pub fn make_plain(&mut self) {
        if let Stage::Sms(sms) = self
            && let Some(plain) = sms.plain.take()
            && let Some(text) = plain.replace_in_text(&sms.message)
        {
            (sms.message, sms.plain) = (Cow::Owned(text), Some(plain));
        }
    }
}
