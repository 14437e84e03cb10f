//! Encoding of operations and envelopes as JSON, exactly as in contract 4.3.
//!
//! Apart from an author's own `fields`, only keys from the contract (or, where it is silent, from the platform's
//! documentation) are written. Identifiers and phone numbers are JSON numbers.
//!
//! The operations of a campaign differ only in identifier, phone number and some texts, so the rest is encoded once.
//! The result is a form: an encoded operation with holes for these parts. The form knows nothing about keys or
//! channels; a test compares it with direct encoding.

use std::cell::{Cell, RefCell};
use std::io;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use campaign_core::domain::{
    Card, Chain, ExtraProperties, FieldValue, MessageContent, MessageId, Operation, OperationKind, Phone, Stage,
    TextSource, WirePlace,
};

/// Encodes an operation as a JSON item of `data[]`.
pub fn encode_operation(operation: &Operation<'_>) -> Vec<u8> {
    let mut json = Vec::with_capacity(384);
    let (id, phone) = (operation.id.get(), operation.phone.to_u64());
    write_operation(&mut json, &id, &phone, &operation.content);
    json
}

/// Writes an operation to memory. Identifier, phone number and texts are generic, so that holes can be written instead.
fn write_operation(
    out: impl io::Write,
    id: &impl Serialize,
    phone: &impl Serialize,
    content: &MessageContent<impl Serialize>,
) {
    serde_json::to_writer(out, &WireOperation { id, phone, content })
        .expect("an operation is strings, numbers and JSON values; writing them to memory cannot fail");
}

/// The body of a request: the key, then the operations (contract 2.1).
pub(super) fn build_body<'a>(key: &str, operations: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
    let size: usize = operations.clone().map(|json| json.len() + 1).sum();
    let mut body = Vec::with_capacity(size + key.len() + 32);
    body.extend_from_slice(br#"{"auth":"#);
    serde_json::to_writer(&mut body, key).expect("a string is written to memory");
    body.extend_from_slice(br#","data":["#);
    for (index, json) in operations.enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(json);
    }
    body.extend_from_slice(b"]}");
    body
}

struct WireOperation<'o, I, P, T> {
    id: &'o I,
    phone: &'o P,
    content: &'o MessageContent<T>,
}

impl<I: Serialize, P: Serialize, T: Serialize> Serialize for WireOperation<'_, I, P, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let MessageContent { kind, stages } = self.content;
        let kind = *kind;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", kind.name())?;
        map.serialize_entry("id", self.id)?;
        map.serialize_entry("phone", self.phone)?;
        if kind == OperationKind::Pipeline {
            map.serialize_entry("pipeline", &ChannelNames(stages))?;
            for stage in stages {
                map.serialize_entry(stage.channel().name(), &PipelineStage(stage))?;
            }
            return map.end();
        }
        for stage in stages {
            write_keys(&mut map, kind, stage)?;
        }
        write_shared_keys(&mut map, kind, stages)?;
        for stage in stages {
            write_extra_fields(&mut map, stage.fields())?;
        }
        map.end()
    }
}

/// Writes the keys of one stage to the places where an operation of `kind` carries them.
fn write_keys<M: SerializeMap, T: Serialize>(
    map: &mut M,
    kind: OperationKind,
    stage: &Stage<T>,
) -> Result<(), M::Error> {
    let mut last_object: Option<&str> = None;
    for (field, value) in stage.values() {
        match field.place_in(kind) {
            WirePlace::Under(name) => map.serialize_entry(name, &WireValue(value))?,
            WirePlace::Within(object, _) if last_object != Some(object) => {
                last_object = Some(object);
                map.serialize_entry(object, &StageObject { object, kind, stage })?;
            }
            WirePlace::Within(..) | WirePlace::Shared(_) | WirePlace::LocalOnly => {}
            // The manifest check rejects such a field.
            WirePlace::Nowhere(_) => {}
        }
    }
    Ok(())
}

/// Writes the keys that all channels of an operation share. The value of each key comes from the first channel that
/// sets the key.
fn write_shared_keys<M: SerializeMap, T: Serialize>(
    map: &mut M,
    kind: OperationKind,
    stages: &[Stage<T>],
) -> Result<(), M::Error> {
    let mut last_name: Option<&str> = None;
    for (field, value) in stages.iter().flat_map(Stage::values) {
        if let WirePlace::Shared(name) = field.place_in(kind)
            && last_name != Some(name)
        {
            last_name = Some(name);
            map.serialize_entry(name, &WireValue(value))?;
        }
    }
    Ok(())
}

fn write_extra_fields<M: SerializeMap>(map: &mut M, fields: &ExtraProperties) -> Result<(), M::Error> {
    fields.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))
}

struct ChannelNames<'o, T>(&'o [Stage<T>]);

impl<T> Serialize for ChannelNames<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|stage| stage.channel().name()))
    }
}

/// The parameters of one channel inside a pipeline (contract 4.3 `pipeline`).
struct PipelineStage<'o, T>(&'o Stage<T>);

impl<T: Serialize> Serialize for PipelineStage<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_keys(&mut map, OperationKind::Pipeline, self.0)?;
        write_extra_fields(&mut map, self.0.fields())?;
        map.end()
    }
}

/// The keys of a stage in a nested object.
struct StageObject<'o, T> {
    object: &'static str,
    kind: OperationKind,
    stage: &'o Stage<T>,
}

impl<T: Serialize> Serialize for StageObject<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (field, value) in self.stage.values() {
            match field.place_in(self.kind) {
                WirePlace::Within(object, name) if object == self.object => {
                    map.serialize_entry(name, &WireValue(value))?
                }
                _ => {}
            }
        }
        map.end()
    }
}

/// The value of a key.
struct WireValue<'s, T>(FieldValue<&'s T>);

impl<T: Serialize> Serialize for WireValue<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            FieldValue::Text(text) => text.serialize(serializer),
            FieldValue::Word(word) => word.serialize(serializer),
            FieldValue::Number(number) => number.serialize(serializer),
            FieldValue::Flag(flag) => flag.serialize(serializer),
            FieldValue::Cards(cards) => serializer.collect_seq(cards.iter().map(WireCard)),
        }
    }
}

struct WireCard<'v, 's, T>(&'v Card<&'s T>);

impl<T: Serialize> Serialize for WireCard<'_, '_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let WireCard(card) = self;
        let mut map = serializer.serialize_map(None)?;
        for (field, text) in (*card).clone().into_texts() {
            map.serialize_entry(field.key, text)?;
        }
        map.end()
    }
}

/// The form of the operations of a campaign or of a variant.
#[derive(Clone, Debug)]
pub struct OperationForm {
    pub(crate) kind: OperationKind,
    pub(crate) chain: Chain,
    pieces: Vec<FormPiece>,
}

#[derive(Clone, Debug)]
enum FormPiece {
    /// A part that is the same in every operation.
    Json(Vec<u8>),
    /// A part that is different in each operation.
    Hole(FormHole),
}

/// A part that differs between operations.
#[derive(Clone, Copy, Debug)]
enum FormHole {
    Id,
    Phone,
    /// The rendered text at this index.
    Text(usize),
}

impl OperationForm {
    /// The form of operations with `content`: JSON with holes for the identifier, the phone number and the texts
    /// that differ by recipient.
    pub fn from_content(content: &MessageContent<TextSource<'_>>) -> Self {
        let recorder = HoleRecorder::default();
        let hole = |hole| FormPart::Hole(hole, &recorder);
        let parts = content.map_texts(|source| match *source {
            TextSource::Same(text) => FormPart::Text(text),
            TextSource::Filled(place) => hole(FormHole::Text(place)),
        });
        let mut json = CountingWriter { bytes: Vec::new(), byte_count: &recorder.byte_count };
        write_operation(&mut json, &hole(FormHole::Id), &hole(FormHole::Phone), &parts);
        let (mut pieces, mut copied) = (Vec::new(), 0);
        for &(at, hole) in &*recorder.holes.borrow() {
            pieces.push(FormPiece::Json(json.bytes[copied..at].to_vec()));
            pieces.push(FormPiece::Hole(hole));
            copied = at + PLACEHOLDER.len();
        }
        pieces.push(FormPiece::Json(json.bytes[copied..].to_vec()));
        Self { kind: content.kind, chain: content.channel_chain(), pieces }
    }

    /// Encodes an operation with the given identifier and phone number as JSON. `text` returns the rendered text at an
    /// index.
    pub(crate) fn encode_operation<'t>(&self, id: MessageId, phone: Phone, text: impl Fn(usize) -> &'t str) -> Vec<u8> {
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

    /// The estimated length of an operation, with some room for escapes and the webhook address.
    fn estimate_length<'t>(&self, text: impl Fn(usize) -> &'t str) -> usize {
        const VALUE_LENGTH: usize = 16;
        let length = |piece: &FormPiece| match piece {
            FormPiece::Json(bytes) => bytes.len(),
            FormPiece::Hole(FormHole::Text(place)) => text(*place).len() + VALUE_LENGTH,
            FormPiece::Hole(FormHole::Id | FormHole::Phone) => VALUE_LENGTH,
        };
        self.pieces.iter().map(length).sum()
    }
}

/// The temporary content of a hole.
const PLACEHOLDER: &str = "0";

/// The holes that were serialized, with their byte positions.
#[derive(Default)]
struct HoleRecorder {
    /// The number of bytes written so far.
    byte_count: Cell<usize>,
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
            FormPart::Hole(hole, recorder) => {
                recorder.holes.borrow_mut().push((recorder.byte_count.get(), *hole));
                serializer.serialize_u8(0)
            }
        }
    }
}

/// A writer to memory that counts its bytes.
struct CountingWriter<'c> {
    bytes: Vec<u8>,
    byte_count: &'c Cell<usize>,
}

impl io::Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        self.byte_count.set(self.bytes.len());
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
    use crate::encode_operation;
    use campaign_core::domain::{Card, Channel, ExtraProperties, FieldKind, FieldValue, Operation, Stage, StageValues};

    /// A strategy for texts. The flag says whether the text is the same for all recipients.
    fn any_text() -> impl Strategy<Value = (bool, String)> {
        (any::<bool>(), prop_oneof!["[ -~я\n\u{fdd0}]{0,12}", Just("0".to_owned()), any::<String>()])
    }

    /// A stage of a channel. `value_mask` selects its optional keys; texts and numbers are always set. Consecutive
    /// numbers stand for the texts of the stage.
    fn build_stage(channel: Channel, value_mask: u32, next: &mut usize) -> Option<Stage<usize>> {
        let mut text = || {
            *next += 1;
            *next - 1
        };
        let extra = ExtraProperties::from_iter([("x".to_owned(), serde_json::json!({ "y": [0, "0"] }))]);
        let mut values = StageValues::new(if value_mask & 1 == 1 { extra } else { ExtraProperties::new() });
        for (index, field) in channel.facts().fields.iter().enumerate() {
            let value = match field.kind {
                FieldKind::Template | FieldKind::Message | FieldKind::Choice(_) => FieldValue::Text(text()),
                FieldKind::Form(words) | FieldKind::Word(words) => FieldValue::Word(words[0]),
                FieldKind::Seconds { least, .. } | FieldKind::Number { least, .. } => FieldValue::Number(least),
                FieldKind::Flag => FieldValue::Flag(true),
                FieldKind::Cards { .. } => {
                    let caption = (value_mask & 2 == 2).then(&mut text);
                    FieldValue::Cards(vec![Card { caption, image: text(), url: text(), button: text() }])
                }
                FieldKind::Extra => continue,
            };
            if value_mask >> (index + 2) & 1 == 1
                || !matches!(value, FieldValue::Cards(_) | FieldValue::Flag(_) | FieldValue::Word(_))
            {
                values.set_value(field, value);
            }
        }
        Stage::of(channel, values)
    }

    proptest! {
        #[test]
        fn form_encoding_matches_direct_encoding(
            channels in prop::sample::subsequence(Channel::ALL.to_vec(), 1..4).prop_shuffle(),
            value_mask in any::<u32>(),
            texts in prop::collection::vec(any_text(), 64),
            id in 0_u64..1 << 53, phone in 10_000_000_000_u64..999_999_999_999_999,
        ) {
            let mut next = 0;
            let stages: Option<Vec<Stage<usize>>> =
                channels.iter().map(|channel| build_stage(*channel, value_mask, &mut next)).collect();
            let Some(stages) = stages else { return Err(TestCaseError::reject("a channel lacks a key")) };
            let content = MessageContent { kind: OperationKind::for_channels(&channels), stages };
            let whole = content.try_map_texts(|text| Ok::<_, ()>(Cow::Borrowed(texts[*text].1.as_str()))).unwrap();
            let source = |text: &usize| {
                let (same, value) = &texts[*text];
                Ok::<_, ()>(if *same { TextSource::Same(value) } else { TextSource::Filled(*text) })
            };
            let form = OperationForm::from_content(&content.try_map_texts(source).unwrap());
            let (id, phone) = (MessageId::new(id).unwrap(), Phone::new(phone).unwrap());
            let written = form.encode_operation(id, phone, |place| texts[place].1.as_str());
            let expected = encode_operation(&Operation { id, phone, content: whole });
            prop_assert_eq!(String::from_utf8(written).unwrap(), String::from_utf8(expected).unwrap());
        }
    }
}
