//! How the operations of a campaign are written, which differ by identifier, number and some texts: what is the same for all is
//! encoded once.
//!
//! A form is made by encoding an operation that has holes in those places, so it knows nothing of keys and channels; a test
//! holds it to what encoding each operation gives.

use std::cell::{Cell, RefCell};
use std::io;

use serde::{Serialize, Serializer};

use super::json_api;
use crate::domain::{Chain, MessageContent, MessageId, OperationKind, Phone, TextSource};

/// How the operations of a campaign, or of one of its variants, are written.
#[derive(Clone, Debug)]
pub struct OperationForm {
    pub(super) kind: OperationKind,
    pub(super) chain: Chain,
    pieces: Vec<FormPiece>,
}

#[derive(Clone, Debug)]
enum FormPiece {
    /// It stands in every operation.
    Json(Vec<u8>),
    /// What is written there is of each operation.
    Hole(FormHole),
}

/// What differs between operations.
#[derive(Clone, Copy, Debug)]
enum FormHole {
    Id,
    Phone,
    /// The text at this place among those that are filled.
    Text(usize),
}

impl OperationForm {
    /// The form of operations with this content.
    #[must_use]
    pub fn from_content(content: &MessageContent<TextSource<'_>>) -> Self {
        let seen = HoleRecorder::default();
        let hole = |hole| FormPart::Hole(hole, &seen);
        let parts = content.map_texts(|source| match *source {
            TextSource::Same(text) => FormPart::Text(text),
            TextSource::Filled(place) => hole(FormHole::Text(place)),
        });
        let mut json = CountingWriter { bytes: Vec::new(), count: &seen.count };
        json_api::write_operation(&mut json, (&hole(FormHole::Id), &hole(FormHole::Phone)), &parts);
        let (mut pieces, mut copied) = (Vec::new(), 0);
        for &(at, hole) in &*seen.holes.borrow() {
            pieces.push(FormPiece::Json(json.bytes[copied..at].to_vec()));
            pieces.push(FormPiece::Hole(hole));
            copied = at + PLACEHOLDER.len();
        }
        pieces.push(FormPiece::Json(json.bytes[copied..].to_vec()));
        Self { kind: content.kind, chain: content.channel_chain(), pieces }
    }

    /// The operation with this identifier to this number; `text` gives the text at a place among those that are filled.
    pub(super) fn encode_operation<'t>(&self, id: MessageId, phone: Phone, text: impl Fn(usize) -> &'t str) -> Vec<u8> {
        let mut json = Vec::with_capacity(self.estimate_length(&text));
        for piece in &self.pieces {
            match piece {
                FormPiece::Json(bytes) => json.extend_from_slice(bytes),
                FormPiece::Hole(FormHole::Id) => {
                    json.extend_from_slice(itoa::Buffer::new().format(id.get()).as_bytes())
                }
                FormPiece::Hole(FormHole::Phone) => {
                    json.extend_from_slice(itoa::Buffer::new().format(phone.to_u64()).as_bytes())
                }
                FormPiece::Hole(FormHole::Text(place)) => {
                    serde_json::to_writer(&mut json, text(*place)).expect("a string is written to memory");
                }
            }
        }
        json
    }

    /// About how long an operation becomes, with some room for what is escaped and for a webhook's address.
    fn estimate_length<'t>(&self, text: impl Fn(usize) -> &'t str) -> usize {
        const ROOM: usize = 16;
        let length = |piece: &FormPiece| match piece {
            FormPiece::Json(bytes) => bytes.len(),
            FormPiece::Hole(FormHole::Text(place)) => text(*place).len() + ROOM,
            FormPiece::Hole(FormHole::Id | FormHole::Phone) => ROOM,
        };
        self.pieces.iter().map(length).sum()
    }
}

/// What is written into a hole at first.
const PLACEHOLDER: &str = "0";

/// The holes that were come by, each with the byte at which it stands.
#[derive(Default)]
struct HoleRecorder {
    count: Cell<usize>,
    holes: RefCell<Vec<(usize, FormHole)>>,
}

/// A part of an operation with holes.
enum FormPart<'p> {
    Text(&'p str),
    Hole(FormHole, &'p HoleRecorder),
}

impl Serialize for FormPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            FormPart::Text(text) => serializer.serialize_str(text),
            FormPart::Hole(hole, seen) => {
                seen.holes.borrow_mut().push((seen.count.get(), *hole));
                serializer.serialize_u8(0)
            }
        }
    }
}

/// Bytes in memory that tell how many they are.
struct CountingWriter<'c> {
    bytes: Vec<u8>,
    count: &'c Cell<usize>,
}

impl io::Write for CountingWriter<'_> {
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
    use crate::domain::{Card, Channel, ExtraProperties, FieldKind, FieldValue, Operation, Stage, StageValues};
    use crate::gateway::encode_operation;

    /// A text: the same for everybody, or each their own.
    fn any_text() -> impl Strategy<Value = (bool, String)> {
        (any::<bool>(), prop_oneof!["[ -~я\n\u{fdd0}]{0,12}", Just("0".to_owned()), any::<String>()])
    }

    /// A stage of a channel with some of its keys; its texts are numbers that say which of the texts they are.
    fn build_stage(channel: Channel, given: u32, next: &mut usize) -> Option<Stage<usize>> {
        let mut text = || {
            *next += 1;
            *next - 1
        };
        let extra = ExtraProperties::from_iter([("x".to_owned(), serde_json::json!({ "y": [0, "0"] }))]);
        let mut values = StageValues::new(if given & 1 == 1 { extra } else { ExtraProperties::new() });
        for (index, field) in channel.facts().fields.iter().enumerate() {
            let value = match field.kind {
                FieldKind::Template | FieldKind::Message | FieldKind::Choice(_) => FieldValue::Text(text()),
                FieldKind::Form(words) | FieldKind::Word(words) => FieldValue::Word(words[0]),
                FieldKind::Seconds { least, .. } | FieldKind::Number { least, .. } => FieldValue::Number(least),
                FieldKind::Flag => FieldValue::Flag(true),
                FieldKind::Cards { .. } => {
                    let caption = (given & 2 == 2).then(&mut text);
                    FieldValue::Cards(vec![Card { caption, image: text(), url: text(), button: text() }])
                }
                FieldKind::Extra => continue,
            };
            if given >> (index + 2) & 1 == 1
                || !matches!(value, FieldValue::Cards(_) | FieldValue::Flag(_) | FieldValue::Word(_))
            {
                values.set_value(field, value);
            }
        }
        Stage::of(channel, values)
    }

    proptest! {
        #[test]
        fn form_encodes_like_direct_encoding(
            channels in prop::sample::subsequence(Channel::ALL.to_vec(), 1..4).prop_shuffle(),
            given in any::<u32>(),
            texts in prop::collection::vec(any_text(), 64),
            id in 0_u64..1 << 53, phone in 10_000_000_000_u64..999_999_999_999_999,
        ) {
            let mut next = 0;
            let stages: Option<Vec<Stage<usize>>> =
                channels.iter().map(|channel| build_stage(*channel, given, &mut next)).collect();
            let Some(stages) = stages else { return Err(TestCaseError::reject("a channel misses a key")) };
            let content = MessageContent { kind: OperationKind::for_channels(&channels), stages };
            let whole = content.try_map_texts(|text| Ok::<_, ()>(Cow::Borrowed(texts[*text].1.as_str()))).unwrap();
            let source = |text: &usize| {
                let (same, said) = &texts[*text];
                Ok::<_, ()>(if *same { TextSource::Same(said) } else { TextSource::Filled(*text) })
            };
            let form = OperationForm::from_content(&content.try_map_texts(source).unwrap());
            let (id, phone) = (MessageId::new(id).unwrap(), Phone::new(phone).unwrap());
            let written = form.encode_operation(id, phone, |place| texts[place].1.as_str());
            let expected = encode_operation(&Operation { id, phone, content: whole });
            prop_assert_eq!(String::from_utf8(written).unwrap(), String::from_utf8(expected).unwrap());
        }
    }
}
