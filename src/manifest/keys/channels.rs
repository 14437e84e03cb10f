//! The keys of the channels and of their prices, made from the vocabulary: a channel's own file names its keys.

use super::{Key, Mark, Shape};
use crate::domain::{Card, Channel, Field, FieldKind, Need};

const CHANNELS_COUNT: usize = Channel::ALL.len();
/// Room for the keys of any channel.
const ROOM: usize = 16;
/// What fills the room.
const NO_KEY: Key = Key::new("", Shape::Line, "");

/// The channels, each with its keys.
pub(crate) static CHANNELS: &[Key] = &{
    let mut channels = [NO_KEY; CHANNELS_COUNT];
    let mut at = 0;
    while at < CHANNELS_COUNT {
        let (channel, facts) = (Channel::ALL[at], Channel::ALL[at].facts());
        let (keys, _) = KEYS[at].split_at(facts.fields.len());
        channels[at] = Key::new(channel.name(), Shape::Map(keys), facts.example).doc(facts.doc);
        at += 1;
    }
    channels
};

/// A price for each channel.
pub(super) static PRICES: &[Key] = &{
    let mut prices = [NO_KEY; CHANNELS_COUNT];
    let mut at = 0;
    while at < CHANNELS_COUNT {
        let (channel, facts) = (Channel::ALL[at], Channel::ALL[at].facts());
        prices[at] = Key::new(channel.name(), Shape::Amount, facts.price_example).doc(facts.price_doc);
        at += 1;
    }
    prices
};

static KEYS: [[Key; ROOM]; CHANNELS_COUNT] = {
    let mut channels = [[NO_KEY; ROOM]; CHANNELS_COUNT];
    let mut at = 0;
    while at < CHANNELS_COUNT {
        channels[at] = keys(Channel::ALL[at].facts().fields);
        at += 1;
    }
    channels
};

static CARD: Key =
    Key::new("card", Shape::Map(CARD_KEYS), "{ image: …, url: …, button: … }").doc("One card of a carousel.");

static CARD_KEYS: &[Key] = keys::<{ Card::<()>::FIELDS.len() }>(&Card::<()>::FIELDS).as_slice();

/// The keys that these fields have in a file.
const fn keys<const N: usize>(fields: &[Field]) -> [Key; N] {
    assert!(fields.len() <= N, "there is no room for that many keys");
    let mut keys = [NO_KEY; N];
    let mut at = 0;
    while at < fields.len() {
        keys[at] = key(&fields[at]);
        at += 1;
    }
    keys
}

const fn key(field: &Field) -> Key {
    let mark = if matches!(field.need, Need::Always) { Mark::Required } else { Mark::Optional };
    let Field { key: name, example, doc, default, .. } = *field;
    Key { name, shape: shape(field.kind), example, doc, default, mark }
}

const fn shape(kind: FieldKind) -> Shape {
    match kind {
        FieldKind::Template | FieldKind::Choice(_) => Shape::Template,
        FieldKind::Message => Shape::Message,
        FieldKind::Form(words) | FieldKind::Word(words) => Shape::OneOf(words),
        FieldKind::Seconds { least, most } => Shape::Seconds { least, most },
        FieldKind::Number { least, most } => Shape::Integer { least, most },
        FieldKind::Flag => Shape::Bool,
        FieldKind::Cards { least, most } => Shape::List { of: &CARD, least, most },
        FieldKind::Extra => Shape::Properties,
    }
}
