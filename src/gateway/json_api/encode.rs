//! Operations and envelopes as JSON, exactly as contract 4.3 shows them.
//!
//! Besides an author's own `fields` no key is written that the contract (or, where it is silent,
//! the platform's documentation) does not show. Identifiers and phones are numbers.

use std::io;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::domain::{Card, ExtraProperties, FieldValue, MessageContent, Operation, OperationKind, Stage, WirePlace};

/// One operation as it stands in `data[]`.
#[must_use]
pub fn encode_operation(operation: &Operation<'_>) -> Vec<u8> {
    let mut json = Vec::with_capacity(384);
    let (id, phone) = (operation.id.get(), operation.phone.to_u64());
    write_operation(&mut json, (&id, &phone), &operation.content);
    json
}

/// Writes an operation to memory; identifier, phone and texts are what they are written as.
pub(in crate::gateway) fn write_operation(
    out: impl io::Write,
    (id, phone): (&impl Serialize, &impl Serialize),
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

/// The keys of one stage, wherever an operation of `kind` carries them.
fn write_keys<M: SerializeMap, T: Serialize>(
    map: &mut M,
    kind: OperationKind,
    stage: &Stage<T>,
) -> Result<(), M::Error> {
    let mut objects: Option<&str> = None;
    for (field, value) in stage.values() {
        match field.place_in(kind) {
            WirePlace::Under(name) => map.serialize_entry(name, &WireValue(value))?,
            WirePlace::Within(object, _) if objects != Some(object) => {
                objects = Some(object);
                map.serialize_entry(object, &StageObject { object, kind, stage })?;
            }
            WirePlace::Within(..) | WirePlace::Shared(_) | WirePlace::LocalOnly => {}
            // The manifest refused it.
            WirePlace::Nowhere(_) => {}
        }
    }
    Ok(())
}

/// The keys that an operation has once for all its channels: the first channel that has a value gives it.
fn write_shared_keys<M: SerializeMap, T: Serialize>(
    map: &mut M,
    kind: OperationKind,
    stages: &[Stage<T>],
) -> Result<(), M::Error> {
    let mut written: Option<&str> = None;
    for (field, value) in stages.iter().flat_map(Stage::values) {
        if let WirePlace::Shared(name) = field.place_in(kind)
            && written != Some(name)
        {
            written = Some(name);
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

/// The keys of a stage that stand in an object of their own.
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
