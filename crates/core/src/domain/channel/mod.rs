//! The list of messaging channels, and a file for each channel or group of similar channels.
//!
//! A channel's file defines its keys, where operations carry them, and the limits of its texts. It also defines whether
//! the channel can be combined with others, and whether a duplicate message does harm. Everything common to all
//! channels is derived from the list.

mod field;
mod messengers;
mod number_services;
mod sms;
mod text_limit;
mod voice;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ExtraProperties;

pub use field::{ChannelField, FieldKind, FieldRequirement, FieldValue, StageValues, WirePlace};
pub use messengers::{Card, Carousel, Rcs, Telegram, Viber, ViberKind, Whatsapp};
pub use number_services::{CallOtp, Hlr};
pub use sms::Sms;
pub use text_limit::{TextLimit, TextViolation, find_text_violation};
pub use voice::Voice;

/// The properties of a channel.
#[derive(Clone, Copy, Debug)]
pub struct ChannelFacts {
    /// The name for people: `SMS`, `verification call`.
    pub title: &'static str,
    /// An example of the channel's keys.
    pub example: &'static str,
    /// A description.
    pub doc: &'static str,
    /// The keys, in the order of the documentation.
    pub fields: &'static [ChannelField],
    /// The forms of messages, starting with the one that a pipeline carries; empty if there is only one.
    pub forms: &'static [MessageForm],
    /// Whether the channel is a service for a single number. Such a channel cannot be combined with others, and its
    /// answer has its own form.
    pub single: bool,
    /// Whether a second message does harm beyond being a duplicate: a repeated code or call confuses recipients or
    /// costs them money.
    pub personal: bool,
    /// Whether the channel reaches only mobile phones.
    pub mobile: bool,
    /// Whether the provider must first enable the channel for an account.
    pub enabled_by_hand: bool,
    /// Whether the gateway's list of sender names includes the sender names of this channel.
    pub senders_listed: bool,
    /// Whether the price is per part instead of per message.
    pub billed_by_part: bool,
    /// The message about an empty text.
    pub empty: &'static str,
    /// An example price for the profile, such as `0.80`.
    pub price_example: &'static str,
    /// A description of the price.
    pub price_doc: &'static str,
}

/// A form of a channel's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageForm {
    /// The name of the form on the wire and in campaign files.
    pub name: &'static str,
    /// The keys that every message of this form must have.
    pub required_keys: &'static [&'static str],
    pub(crate) optional_keys: &'static [&'static str],
}

impl ChannelFacts {
    /// The form that follows from the given keys: the smallest form that allows all of them, or else the last form.
    /// `None` if the channel has only one form.
    pub fn find_form(&self, keys: &[&str]) -> Option<&'static MessageForm> {
        let fits = |form: &&MessageForm| keys.iter().all(|key| form.allows_key(key));
        self.forms.iter().filter(fits).min_by_key(|form| form.required_keys.len()).or(self.forms.last())
    }

    /// The keys that depend on the form.
    pub fn form_keys(&self) -> impl Iterator<Item = &'static str> {
        let (fields, forms) = (self.fields, self.forms);
        fields.iter().map(|field| field.key).filter(|key| forms.iter().any(|form| form.required_keys.contains(key)))
    }

    /// Defaults for a channel without special properties.
    const PLAIN: Self = Self {
        title: "",
        example: "{}",
        doc: "",
        fields: &[],
        forms: &[],
        single: false,
        personal: false,
        mobile: false,
        enabled_by_hand: false,
        senders_listed: false,
        billed_by_part: false,
        empty: "is empty",
        price_example: "",
        price_doc: "",
    };
}

impl MessageForm {
    /// Whether a message of this form can have the key.
    pub fn allows_key(&self, key: &str) -> bool {
        self.required_keys.contains(&key) || self.optional_keys.contains(&key)
    }
}

/// Generates everything that is the same for all channels.
macro_rules! channels {
    ($($(#[$doc:meta])* $channel:ident($message:ty) = $name:literal, $facts:expr;)*) => {
        /// A way to reach a recipient: a messaging channel or a service for a number (contract 1 and 4.3).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Channel {
            $($(#[$doc])* #[serde(rename = $name)] $channel,)*
        }

        impl Channel {
            /// Every channel, in the order of the documentation.
            pub const ALL: [Channel; [$($name),*].len()] = [$(Channel::$channel),*];

            /// The channel's name in campaign files and in a pipeline.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Channel::$channel => $name,)*
                }
            }

            /// The properties of the channel.
            pub const fn facts(self) -> &'static ChannelFacts {
                match self {
                    $(Channel::$channel => &$facts,)*
                }
            }
        }

        /// The content for one channel.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Stage<T> {
            $($(#[$doc])* $channel($message),)*
        }

        impl<T> Stage<T> {
            /// The channel of this stage.
            pub fn channel(&self) -> Channel {
                match self {
                    $(Stage::$channel(_) => Channel::$channel,)*
                }
            }

            /// The stage of a channel with these values; `None` if a required value is missing.
            pub fn of(channel: Channel, values: StageValues<T>) -> Option<Self> {
                match channel {
                    $(Channel::$channel => <$message>::of(values).map(Stage::$channel),)*
                }
            }

            /// The keys that have a value, each with that value, in the order of sending and without extra properties.
            pub fn values(&self) -> impl Iterator<Item = (&'static ChannelField, FieldValue<&T>)> {
                match self {
                    $(Stage::$channel(message) => message.values(),)*
                }
            }

            /// The extra properties of this stage.
            pub fn fields(&self) -> &ExtraProperties {
                match self {
                    $(Stage::$channel(message) => &message.fields,)*
                }
            }

            /// Converts each text of the stage with `f`.
            ///
            /// # Errors
            /// The first error of `f`.
            pub fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<Stage<U>, E> {
                Ok(match self {
                    $(Stage::$channel(message) => Stage::$channel(message.try_map(f)?),)*
                })
            }
        }
    };
}

// Stored by position: only append channels. A ledger stores the number of a channel with its receipts.
channels! {
    /// A text message.
    Sms(Sms<T>) = "sms", sms::FACTS;
    /// A Viber business message.
    Viber(Viber<T>) = "viber", messengers::VIBER_FACTS;
    /// A rich message (RCS).
    Rcs(Rcs<T>) = "rcs", messengers::RCS_FACTS;
    /// A one-time code sent through Telegram.
    Telegram(Telegram<T>) = "telegram", messengers::TELEGRAM_FACTS;
    /// A spoken message.
    Voice(Voice<T>) = "voice", voice::FACTS;
    /// A WhatsApp message; only as a stage of a pipeline.
    Whatsapp(Whatsapp<T>) = "whatsapp", messengers::WHATSAPP_FACTS;
    /// A number lookup; sends no message.
    Hlr(Hlr) = "hlr", number_services::HLR_FACTS;
    /// A call whose last four digits are a one-time code.
    CallOtp(CallOtp) = "call/otp", number_services::CALL_OTP_FACTS;
}

impl Channel {
    /// The channel with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.name() == name)
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl<T> Stage<T> {
    /// The texts of this stage with their keys, in the order of sending; the texts of cards are at the position of the
    /// cards.
    pub fn texts(&self) -> impl Iterator<Item = (&'static ChannelField, &T)> {
        self.values().flat_map(|(field, value)| {
            let (text, cards) = match value {
                FieldValue::Text(text) => (Some((field, text)), Vec::new()),
                FieldValue::Cards(cards) => (None, cards),
                FieldValue::Word(_) | FieldValue::Number(_) | FieldValue::Flag(_) => (None, Vec::new()),
            };
            text.into_iter().chain(cards.into_iter().flat_map(Card::into_texts))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stage with a value for every key.
    fn full_stage(channel: Channel) -> Stage<&'static str> {
        let mut values = StageValues::new(ExtraProperties::new());
        for field in channel.facts().fields {
            let card = Card { caption: Some("Coats"), image: "image", url: "url", button: "button" };
            match field.kind {
                FieldKind::Template | FieldKind::Message | FieldKind::Choice(_) => {
                    values.set_value(field, FieldValue::Text(field.key));
                }
                FieldKind::Form(words) | FieldKind::Word(words) => values.set_value(field, FieldValue::Word(words[0])),
                FieldKind::Seconds { least, .. } | FieldKind::Number { least, .. } => {
                    values.set_value(field, FieldValue::Number(least));
                }
                FieldKind::Flag => values.set_value(field, FieldValue::Flag(true)),
                FieldKind::Cards { .. } => values.set_value(field, FieldValue::Cards(vec![card])),
                FieldKind::Extra => {}
            }
        }
        Stage::of(channel, values).expect("a stage that has everything")
    }

    #[test]
    fn stage_returns_every_key_of_its_channel() {
        for channel in Channel::ALL {
            let stage = full_stage(channel);
            assert_eq!(stage.channel(), channel);
            let values: Vec<_> = stage.values().collect();
            let keys = || channel.facts().fields.iter().filter(|field| field.kind != FieldKind::Extra);
            assert_eq!(values.len(), keys().count(), "{channel}");
            for field in keys() {
                let value = values.iter().find(|(known, _)| *known == field).map(|(_, value)| value);
                match value {
                    Some(FieldValue::Text(text)) => assert_eq!(**text, field.key, "{channel}"),
                    Some(FieldValue::Word(word)) => match field.kind {
                        FieldKind::Word(words) => assert_eq!(*word, words[0], "{channel}"),
                        _ => assert_eq!(*word, channel.facts().forms[0].name, "{channel}"),
                    },
                    Some(FieldValue::Number(_) | FieldValue::Flag(true) | FieldValue::Cards(_)) => {}
                    other => panic!("`{}` of {channel} is {other:?}", field.key),
                }
            }
            let mut same = |text: &&'static str| Ok::<_, ()>(*text);
            assert_eq!(stage.try_map(&mut same), Ok(stage.clone()), "{channel}");
        }
    }

    #[test]
    fn viber_form_is_inferred_from_the_given_keys() {
        let cases: [(&[&str], &str); 12] = [
            (&["message"], "text"),
            (&["image"], "image"),
            (&["link"], "text+link"),
            (&["message", "button"], "text+link"),
            (&["message", "link", "button"], "text+link"),
            (&["image", "link"], "text+image+link"),
            (&["message", "image", "link", "button"], "text+image+link"),
            (&["message", "image"], "text+image+link"),
            (&["carousel", "message"], "carousel"),
            (&["carousel"], "carousel"),
            (&["carousel", "image"], "carousel"),
            (&[], "text"),
        ];
        for (keys, name) in cases {
            let form = Channel::Viber.facts().find_form(keys);
            assert_eq!(form.map(|form| form.name), Some(name), "{keys:?}");
        }
        assert_eq!(Channel::Sms.facts().find_form(&["message"]), None);
    }

    #[test]
    fn channel_is_serialized_by_name() {
        for channel in Channel::ALL {
            assert_eq!(serde_json::to_value(channel).unwrap(), channel.name());
            assert_eq!(Channel::from_name(channel.name()), Some(channel));
        }
        let record = |stage: Stage<&'static str>| serde_json::to_value(stage).unwrap();
        assert_eq!(record(full_stage(Channel::CallOtp)), serde_json::json!({ "callotp": { "fields": {} } }));
        assert_eq!(record(full_stage(Channel::Hlr)), serde_json::json!({ "hlr": { "fields": {} } }));
    }
}
