//! Operations and envelopes as JSON, exactly as contract 4.3 shows them.
//!
//! Besides an author's own `fields` no key is written that the contract (or, where it is silent,
//! the platform's documentation) does not show. Identifiers and phones are numbers.

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use crate::domain::{Card, Extra, Operation, OperationKind, Rcs, Sms, Stage, Telegram, Viber, Voice, Whatsapp};

type Text<'a> = Cow<'a, str>;

/// One operation as it stands in `data[]`.
#[must_use]
pub fn encode(operation: &Operation<'_>) -> Vec<u8> {
    let mut json = Vec::with_capacity(384);
    serde_json::to_writer(&mut json, &Wire(operation))
        .expect("an operation is strings, numbers and JSON values; writing them to memory cannot fail");
    json
}

/// The body of a request: the key, then the operations (contract 2.1).
pub(super) fn body<'a>(key: &str, operations: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
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

struct Wire<'o, 'a>(&'o Operation<'a>);

impl Serialize for Wire<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Wire(operation) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", operation.content.kind.name())?;
        map.serialize_entry("id", &operation.id.get())?;
        map.serialize_entry("phone", &operation.phone.get())?;
        let stages = &operation.content.stages;
        if operation.content.kind == OperationKind::Pipeline {
            map.serialize_entry("pipeline", &Channels(stages))?;
            for stage in stages {
                map.serialize_entry(stage.channel().name(), &PipelineStage(stage))?;
            }
            return map.end();
        }
        for stage in stages {
            flat(&mut map, stage)?;
        }
        // In a combined type one `short_link` serves all channels.
        option(&mut map, "short_link", stages.iter().find_map(short_link).as_ref())?;
        for stage in stages {
            extra(&mut map, stage.fields())?;
        }
        map.end()
    }
}

/// The keys of a stage outside a pipeline, with the channel's prefix.
fn flat<M: SerializeMap>(map: &mut M, stage: &Stage<Text<'_>>) -> Result<(), M::Error> {
    match stage {
        Stage::Sms(Sms { signature, message, lifetime, .. }) => {
            map.serialize_entry("sms_signature", signature)?;
            map.serialize_entry("sms_message", message)?;
            option(map, "sms_lifetime", lifetime.as_ref())
        }
        Stage::Viber(viber) => flat_viber(map, viber),
        Stage::Rcs(Rcs { signature, message, image, button, link, lifetime, .. }) => {
            map.serialize_entry("rcs_signature", signature)?;
            map.serialize_entry("rcs_message", message)?;
            option(map, "rcs_image", image.as_ref())?;
            option(map, "rcs_button", button.as_ref())?;
            option(map, "rcs_link", link.as_ref())?;
            option(map, "rcs_lifetime", lifetime.as_ref())
        }
        Stage::Telegram(Telegram { message, lifetime, .. }) => {
            map.serialize_entry("message", message)?;
            option(map, "telegram_lifetime", lifetime.as_ref())
        }
        Stage::Voice(voice) => {
            map.serialize_entry("message", &voice.message)?;
            map.serialize_entry("voice", &Speaker(voice))?;
            option(map, "dtmf", voice.dtmf.as_ref())
        }
        // Only a stage of a pipeline (contract 1 and 2.1); the manifest never builds it alone.
        Stage::Whatsapp(_) | Stage::Hlr { .. } | Stage::CallOtp { .. } => Ok(()),
    }
}

fn flat_viber<M: SerializeMap>(map: &mut M, viber: &Viber<Text<'_>>) -> Result<(), M::Error> {
    map.serialize_entry("viber_type", viber.kind.name())?;
    map.serialize_entry("viber_signature", &viber.signature)?;
    option(map, "viber_message", viber.message.as_ref())?;
    option(map, "viber_image", viber.image.as_ref())?;
    option(map, "viber_link", viber.link.as_ref())?;
    option(map, "viber_button", viber.button.as_ref())?;
    if !viber.carousel.is_empty() {
        map.serialize_entry("viber_carousel", &Cards(&viber.carousel))?;
    }
    option(map, "viber_lifetime", viber.lifetime.as_ref())
}

fn short_link(stage: &Stage<Text<'_>>) -> Option<bool> {
    match stage {
        Stage::Sms(sms) => sms.short_link,
        Stage::Viber(viber) => viber.short_link,
        Stage::Rcs(rcs) => rcs.short_link,
        _ => None,
    }
}

fn option<M: SerializeMap, T: Serialize>(map: &mut M, key: &'static str, value: Option<&T>) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, value))
}

fn extra<M: SerializeMap>(map: &mut M, fields: &Extra) -> Result<(), M::Error> {
    fields.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))
}

struct Channels<'o, 'a>(&'o [Stage<Text<'a>>]);

impl Serialize for Channels<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for stage in self.0 {
            list.serialize_element(stage.channel().name())?;
        }
        list.end()
    }
}

/// The parameters of one channel inside a pipeline (contract 4.3 `pipeline`).
struct PipelineStage<'o, 'a>(&'o Stage<Text<'a>>);

impl Serialize for PipelineStage<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.0 {
            Stage::Sms(Sms { signature, message, .. })
            | Stage::Rcs(Rcs { signature, message, .. })
            | Stage::Whatsapp(Whatsapp { signature, message, .. }) => {
                map.serialize_entry("signature", signature)?;
                map.serialize_entry("message", message)?;
            }
            Stage::Viber(viber) => {
                map.serialize_entry("type", viber.kind.name())?;
                map.serialize_entry("signature", &viber.signature)?;
                option(&mut map, "message", viber.message.as_ref())?;
            }
            Stage::Telegram(Telegram { message, .. }) => map.serialize_entry("message", message)?,
            Stage::Voice(voice) => {
                map.serialize_entry("message", &voice.message)?;
                speaker(&mut map, voice)?;
            }
            Stage::Hlr { .. } | Stage::CallOtp { .. } => {}
        }
        extra(&mut map, self.0.fields())?;
        map.end()
    }
}

struct Speaker<'o, 'a>(&'o Voice<Text<'a>>);

impl Serialize for Speaker<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        speaker(&mut map, self.0)?;
        map.end()
    }
}

fn speaker<M: SerializeMap>(map: &mut M, voice: &Voice<Text<'_>>) -> Result<(), M::Error> {
    option(map, "gender", voice.gender.as_ref())?;
    option(map, "language", voice.language.as_ref())?;
    option(map, "name", voice.name.as_ref())
}

struct Cards<'o, 'a>(&'o [Card<Text<'a>>]);

impl Serialize for Cards<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(WireCard))
    }
}

struct WireCard<'o, 'a>(&'o Card<Text<'a>>);

impl Serialize for WireCard<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let WireCard(card) = self;
        let mut map = serializer.serialize_map(None)?;
        option(&mut map, "caption", card.caption.as_ref())?;
        map.serialize_entry("image", &card.image)?;
        map.serialize_entry("url", &card.url)?;
        map.serialize_entry("button", &card.button)?;
        map.end()
    }
}
