//! How the operations of a campaign are written, which differ by identifier, number and some texts: what is the same for all is
//! encoded once.
//!
//! A form is made by encoding an operation that has holes in those places, so it knows nothing of keys and channels; a test
//! holds it to what encoding each operation gives.

use std::cell::{Cell, RefCell};
use std::io;

use serde::{Serialize, Serializer};

use super::json_api;
use crate::domain::{Chain, Content, MessageId, OperationKind, Phone, TextSource};

/// How the operations of a campaign, or of one of its variants, are written.
#[derive(Clone, Debug)]
pub struct OperationForm {
    pub(super) kind: OperationKind,
    pub(super) chain: Chain,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    /// It stands in every operation.
    Json(Vec<u8>),
    /// What is written there is of each operation.
    Hole(Hole),
}

/// What differs between operations.
#[derive(Clone, Copy, Debug)]
enum Hole {
    Id,
    Phone,
    /// The text at this place among those that are filled.
    Text(usize),
}

impl OperationForm {
    /// The form of operations with this content.
    #[must_use]
    pub fn of(content: &Content<TextSource<'_>>) -> Self {
        let seen = Seen::default();
        let hole = |hole| Part::Hole(hole, &seen);
        let parts = content.map(|source| match *source {
            TextSource::Same(text) => Part::Text(text),
            TextSource::Filled(place) => hole(Hole::Text(place)),
        });
        let mut json = Counted { bytes: Vec::new(), count: &seen.count };
        json_api::write(&mut json, (&hole(Hole::Id), &hole(Hole::Phone)), &parts);
        let (mut pieces, mut copied) = (Vec::new(), 0);
        for &(at, hole) in &*seen.holes.borrow() {
            pieces.push(Piece::Json(json.bytes[copied..at].to_vec()));
            pieces.push(Piece::Hole(hole));
            copied = at + FILLING.len();
        }
        pieces.push(Piece::Json(json.bytes[copied..].to_vec()));
        Self { kind: content.kind, chain: content.chain(), pieces }
    }

    /// The operation with this identifier to this number; `text` gives the text at a place among those that are filled.
    pub(super) fn encode<'t>(&self, id: MessageId, phone: Phone, text: impl Fn(usize) -> &'t str) -> Vec<u8> {
        let mut json = Vec::with_capacity(self.length(&text));
        for piece in &self.pieces {
            match piece {
                Piece::Json(bytes) => json.extend_from_slice(bytes),
                Piece::Hole(Hole::Id) => json.extend_from_slice(itoa::Buffer::new().format(id.get()).as_bytes()),
                Piece::Hole(Hole::Phone) => json.extend_from_slice(itoa::Buffer::new().format(phone.get()).as_bytes()),
                Piece::Hole(Hole::Text(place)) => {
                    serde_json::to_writer(&mut json, text(*place)).expect("a string is written to memory");
                }
            }
        }
        json
    }

    /// About how long an operation becomes, with some room for what is escaped and for a webhook's address.
    fn length<'t>(&self, text: impl Fn(usize) -> &'t str) -> usize {
        const ROOM: usize = 16;
        let length = |piece: &Piece| match piece {
            Piece::Json(bytes) => bytes.len(),
            Piece::Hole(Hole::Text(place)) => text(*place).len() + ROOM,
            Piece::Hole(Hole::Id | Hole::Phone) => ROOM,
        };
        self.pieces.iter().map(length).sum()
    }
}

/// What is written into a hole at first.
const FILLING: &str = "0";

/// The holes that were come by, each with the byte at which it stands.
#[derive(Default)]
struct Seen {
    count: Cell<usize>,
    holes: RefCell<Vec<(usize, Hole)>>,
}

/// A part of an operation with holes.
enum Part<'p> {
    Text(&'p str),
    Hole(Hole, &'p Seen),
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Part::Text(text) => serializer.serialize_str(text),
            Part::Hole(hole, seen) => {
                seen.holes.borrow_mut().push((seen.count.get(), *hole));
                serializer.serialize_u8(0)
            }
        }
    }
}

/// Bytes in memory that tell how many they are.
struct Counted<'c> {
    bytes: Vec<u8>,
    count: &'c Cell<usize>,
}

impl io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        self.count.set(self.bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;
    use crate::domain::{Card, Channel, Extra, FieldKind, Operation, Stage, Value, Values};
    use crate::gateway::encode;

    /// A text: the same for everybody, or each their own.
    fn text() -> impl Strategy<Value = (bool, String)> {
        (any::<bool>(), prop_oneof!["[ -~я\n\u{fdd0}]{0,12}", Just("0".to_owned()), any::<String>()])
    }

    /// A stage of a channel with some of its keys; its texts are numbers that say which of the texts they are.
    fn stage(channel: Channel, given: u32, next: &mut usize) -> Option<Stage<usize>> {
        let mut text = || {
            *next += 1;
            *next - 1
        };
        let extra = Extra::from_iter([("x".to_owned(), serde_json::json!({ "y": [0, "0"] }))]);
        let mut values = Values::new(if given & 1 == 1 { extra } else { Extra::new() });
        for (index, field) in channel.facts().fields.iter().enumerate() {
            let value = match field.kind {
                FieldKind::Template | FieldKind::Message | FieldKind::Choice(_) => Value::Text(text()),
                FieldKind::Form(words) | FieldKind::Word(words) => Value::Word(words[0]),
                FieldKind::Seconds { least, .. } | FieldKind::Number { least, .. } => Value::Number(least),
                FieldKind::Flag => Value::Flag(true),
                FieldKind::Cards { .. } => {
                    let caption = (given & 2 == 2).then(&mut text);
                    Value::Cards(vec![Card { caption, image: text(), url: text(), button: text() }])
                }
                FieldKind::Extra => continue,
            };
            if given >> (index + 2) & 1 == 1 || !matches!(value, Value::Cards(_) | Value::Flag(_) | Value::Word(_)) {
                values.set(field, value);
            }
        }
        Stage::of(channel, values)
    }

    proptest! {
        #[test]
        fn a_form_gives_what_encoding_each_operation_gives(
            channels in prop::sample::subsequence(Channel::ALL.to_vec(), 1..4).prop_shuffle(),
            given in any::<u32>(),
            texts in prop::collection::vec(text(), 64),
            id in 0_u64..1 << 53, phone in 10_000_000_000_u64..999_999_999_999_999,
        ) {
            let mut next = 0;
            let stages: Option<Vec<Stage<usize>>> =
                channels.iter().map(|channel| stage(*channel, given, &mut next)).collect();
            let Some(stages) = stages else { return Err(TestCaseError::reject("a channel misses a key")) };
            let content = Content { kind: OperationKind::of(&channels), stages };
            let whole = content.try_map(|text| Ok::<_, ()>(Cow::Borrowed(texts[*text].1.as_str()))).unwrap();
            let source = |text: &usize| {
                let (same, said) = &texts[*text];
                Ok::<_, ()>(if *same { TextSource::Same(said) } else { TextSource::Filled(*text) })
            };
            let form = OperationForm::of(&content.try_map(source).unwrap());
            let (id, phone) = (MessageId::new(id).unwrap(), Phone::new(phone).unwrap());
            let written = form.encode(id, phone, |place| texts[place].1.as_str());
            let expected = encode(&Operation { id, phone, content: whole });
            prop_assert_eq!(String::from_utf8(written).unwrap(), String::from_utf8(expected).unwrap());
        }
    }
}
