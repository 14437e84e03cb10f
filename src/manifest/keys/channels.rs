//! The keys of the channels and of their prices, made from the vocabulary: a channel's own file names its keys.

use super::{KeyPresence, KeySpec, ValueShape};
use crate::domain::{Card, Channel, ChannelField, FieldKind, FieldRequirement};

const CHANNELS_COUNT: usize = Channel::ALL.len();
/// Room for the keys of any channel.
const MAX_KEYS: usize = 16;
/// What fills the room.
const NO_KEY: KeySpec = KeySpec::new("", ValueShape::Line, "");

/// The channels, each with its keys.
pub(crate) static CHANNELS: &[KeySpec] = &{
    let mut channels = [NO_KEY; CHANNELS_COUNT];
    let mut at = 0;
    while at < CHANNELS_COUNT {
        let (channel, facts) = (Channel::ALL[at], Channel::ALL[at].facts());
        let (keys, _) = KEYS[at].split_at(facts.fields.len());
        channels[at] = KeySpec::new(channel.name(), ValueShape::Map(keys), facts.example).with_doc(facts.doc);
        at += 1;
    }
    channels
};

/// A price for each channel.
pub(super) static PRICES: &[KeySpec] = &{
    let mut prices = [NO_KEY; CHANNELS_COUNT];
    let mut at = 0;
    while at < CHANNELS_COUNT {
        let (channel, facts) = (Channel::ALL[at], Channel::ALL[at].facts());
        prices[at] = KeySpec::new(channel.name(), ValueShape::Amount, facts.price_example).with_doc(facts.price_doc);
        at += 1;
    }
    prices
};

static KEYS: [[KeySpec; MAX_KEYS]; CHANNELS_COUNT] = {
    let mut channels = [[NO_KEY; MAX_KEYS]; CHANNELS_COUNT];
    let mut at = 0;
    while at < CHANNELS_COUNT {
        channels[at] = field_keys(Channel::ALL[at].facts().fields);
        at += 1;
    }
    channels
};

static CARD: KeySpec = KeySpec::new("card", ValueShape::Map(CARD_KEYS), "{ image: …, url: …, button: … }")
    .with_doc("One card of a carousel.");

static CARD_KEYS: &[KeySpec] = field_keys::<{ Card::<()>::FIELDS.len() }>(&Card::<()>::FIELDS).as_slice();

/// The keys that these fields have in a file.
const fn field_keys<const N: usize>(fields: &[ChannelField]) -> [KeySpec; N] {
    assert!(fields.len() <= N, "there is no room for that many keys");
    let mut keys = [NO_KEY; N];
    let mut at = 0;
    while at < fields.len() {
        keys[at] = field_key(&fields[at]);
        at += 1;
    }
    keys
}

const fn field_key(field: &ChannelField) -> KeySpec {
    let mark =
        if matches!(field.need, FieldRequirement::Always) { KeyPresence::Required } else { KeyPresence::Optional };
    let ChannelField { key: name, example, doc, default, .. } = *field;
    KeySpec { name, shape: field_shape(field.kind), example, doc, default, presence: mark }
}

const fn field_shape(kind: FieldKind) -> ValueShape {
    match kind {
        FieldKind::Template | FieldKind::Choice(_) => ValueShape::Template,
        FieldKind::Message => ValueShape::Message,
        FieldKind::Form(words) | FieldKind::Word(words) => ValueShape::OneOf(words),
        FieldKind::Seconds { least, most } => ValueShape::Seconds { least, most },
        FieldKind::Number { least, most } => ValueShape::Integer { least, most },
        FieldKind::Flag => ValueShape::Bool,
        FieldKind::Cards { least, most } => ValueShape::List { of: &CARD, least, most },
        FieldKind::Extra => ValueShape::Properties,
    }
}
