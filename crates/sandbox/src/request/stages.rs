//! Required fields of each kind of message (contract 4.3), as an operation and as a stage of a pipeline.

use super::OperationFields;
use crate::platform::{ChannelStage, OperationError};
use campaign_core::domain::{Channel, measure_sms};

/// The content of a message: its stages in order, and the sender names that it uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendRequest {
    /// At least one.
    pub(crate) stages: Vec<ChannelStage>,
    /// The sender names that the account must own.
    pub(crate) signatures: Vec<Box<str>>,
}

/// A parsed stage and its sender name.
type StageReading<'a> = (ChannelStage, Option<&'a str>);

impl SendRequest {
    fn add_stage(&mut self, (stage, signature): StageReading) {
        self.stages.push(stage);
        self.signatures.extend(signature.map(Box::from));
    }
}

/// Reads an operation for these channels in order, each with its own prefix.
pub(crate) fn read_combined(channels: &[Channel], fields: &OperationFields) -> Result<SendRequest, OperationError> {
    let mut load = SendRequest::default();
    for name in channels {
        load.add_stage(read_channel(*name, fields)?);
    }
    fields.check_optional_url("hook")?;
    Ok(load)
}

/// Reads a pipeline: distinct known channels, each with the object of its name. Other objects are ignored.
pub(crate) fn read_pipeline(fields: &OperationFields) -> Result<SendRequest, OperationError> {
    let mut load = SendRequest::default();
    for name in fields.required_array("pipeline")? {
        let new = |channel: &Channel| load.stages.iter().all(|stage| stage.channel != *channel);
        let channel = name.as_str().and_then(Channel::from_name).filter(new);
        let channel = channel.ok_or_else(|| fields.invalid_field("pipeline"))?;
        load.add_stage(read_stage(channel, fields)?);
    }
    fields.check_optional_url("hook")?;
    if load.stages.is_empty() { Err(fields.missing_field("pipeline")) } else { Ok(load) }
}

/// Reads one channel of an operation other than a pipeline.
fn read_channel<'a>(channel: Channel, fields: &OperationFields<'a>) -> Result<StageReading<'a>, OperationError> {
    match channel {
        Channel::Sms => {
            fields.optional_flag("short_link")?;
            fields.optional_flag("unsubscribe_link")?;
            read_sms(&fields.with_prefix("sms_"))
        }
        Channel::Viber => fields.optional_flag("short_link").and_then(|_| read_viber(&fields.with_prefix("viber_"))),
        Channel::Rcs => fields.optional_flag("short_link").and_then(|_| read_rcs(&fields.with_prefix("rcs_"))),
        Channel::Telegram => {
            let lifetime = fields.with_prefix("telegram_").optional_lifetime(60..=u64::MAX)?;
            read_telegram(fields, lifetime)
        }
        Channel::Voice => fields.required_text("message").and_then(|_| read_voice(fields)),
        // No operation of this kind contains these channels (contract 2.1).
        Channel::Whatsapp | Channel::Hlr | Channel::CallOtp => Err(fields.invalid_field("type")),
    }
}

/// Reads one stage of a pipeline.
fn read_stage<'a>(channel: Channel, fields: &OperationFields<'a>) -> Result<StageReading<'a>, OperationError> {
    let name = channel.name();
    let stage = || fields.optional_object(name)?.ok_or_else(|| fields.missing_field(name));
    match channel {
        Channel::Sms => read_sms(&stage()?),
        Channel::Viber => read_viber_stage(&stage()?),
        Channel::Rcs => read_rcs_stage(&stage()?),
        Channel::Telegram => read_telegram(&stage()?, None),
        Channel::Voice => read_voice(&stage()?),
        // WhatsApp is not checked: even an empty message is accepted and charged (contract 4.3).
        Channel::Whatsapp => Ok((ChannelStage::new(channel, 1, None), None)),
        Channel::Hlr | Channel::CallOtp => Err(fields.invalid_field("pipeline")),
    }
}

fn read_sms<'a>(fields: &OperationFields<'a>) -> Result<StageReading<'a>, OperationError> {
    let signature = fields.required_alpha_name()?;
    let text = fields.required_text("message").map_err(|_| OperationError::SMS_TEXT)?;
    let lifetime = fields.optional_lifetime(3_600..=259_200)?;
    let parts = u32::try_from(measure_sms(text).parts).unwrap_or(u32::MAX);
    Ok((ChannelStage::new(Channel::Sms, parts, lifetime), Some(signature)))
}

fn read_viber<'a>(fields: &OperationFields<'a>) -> Result<StageReading<'a>, OperationError> {
    let signature = fields.required_signature()?;
    let lifetime = fields.optional_lifetime(60..=172_800)?;
    let message = || fields.required_text("message").map(|_| ());
    let image = || fields.check_url("image");
    let button = || fields.required_text("button").and_then(|_| fields.check_url("link"));
    match fields.required_text("type")? {
        "text" => message(),
        "image" => image(),
        "text+link" => message().and_then(|()| button()),
        "text+image+link" => message().and_then(|()| image()).and_then(|()| button()),
        "carousel" => fields.check_free_text("message").and_then(|()| check_carousel(fields)),
        _ => Err(fields.invalid_field("type")),
    }?;
    Ok((ChannelStage::new(Channel::Viber, 1, lifetime), Some(signature)))
}

fn check_carousel(fields: &OperationFields) -> Result<(), OperationError> {
    let cards = fields.object_list("carousel")?;
    if !(2..=5).contains(&cards.len()) {
        return Err(fields.invalid_field("carousel"));
    }
    for card in &cards {
        card.check_free_text("caption")?;
        card.check_url("image")?;
        card.check_url("url")?;
        card.required_text("button")?;
    }
    Ok(())
}

fn read_rcs<'a>(fields: &OperationFields<'a>) -> Result<StageReading<'a>, OperationError> {
    let (_, signature) = read_rcs_stage(fields)?;
    fields.check_url("image")?;
    fields.required_text("button")?;
    fields.check_url("link")?;
    Ok((ChannelStage::new(Channel::Rcs, 1, fields.optional_lifetime(60..=u64::MAX)?), signature))
}

fn read_rcs_stage<'a>(fields: &OperationFields<'a>) -> Result<StageReading<'a>, OperationError> {
    let signature = fields.required_signature()?;
    fields.required_text("message").map(|_| (ChannelStage::new(Channel::Rcs, 1, None), Some(signature)))
}

/// A code of 4 to 8 digits, the only content that Telegram accepts.
fn read_telegram<'a>(fields: &OperationFields<'a>, lifetime: Option<u64>) -> Result<StageReading<'a>, OperationError> {
    let code = fields.required_digits("message")?.len();
    let leg = (ChannelStage::new(Channel::Telegram, 1, lifetime), None);
    if (4..=8).contains(&code) { Ok(leg) } else { Err(fields.invalid_field("message")) }
}

/// A spoken message. The text is optional, because the contract shows a stage without it.
fn read_voice<'a>(fields: &OperationFields<'a>) -> Result<StageReading<'a>, OperationError> {
    fields.optional_text("message")?;
    let dtmf = fields.optional_flag("dtmf")?.unwrap_or_default();
    // The voice is in a nested object, or, in a stage as the contract shows it, next to the text.
    let voice = fields.optional_object("voice")?.unwrap_or_else(|| fields.clone());
    match voice.optional_text("gender")? {
        None | Some("male" | "female") => {}
        Some(_) => return Err(voice.invalid_field("gender")),
    }
    voice.optional_text("language")?;
    voice.optional_text("name").map(|_| (ChannelStage::new(Channel::Voice, 1, None).with_dtmf(dtmf), None))
}

fn read_viber_stage<'a>(fields: &OperationFields<'a>) -> Result<StageReading<'a>, OperationError> {
    let signature = fields.required_signature()?;
    fields.required_text("message")?;
    fields.required_text("type").map(|_| (ChannelStage::new(Channel::Viber, 1, None), Some(signature)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{OperationType, RequestItem, RequestedOperation};
    use super::*;
    use crate::platform::messages::most_parts;

    /// Reads a valid message with these changes; `null` removes a field.
    fn read_with(kind: OperationType, changes: Value) -> Result<SendRequest, OperationError> {
        let mut fields = valid_fields(kind);
        if let (Some(fields), Value::Object(changes)) = (fields.as_object_mut(), changes) {
            fields.insert("phone".into(), "380501234567".into());
            fields.extend(changes);
        }
        let item = RequestItem::from_json(kind, fields.as_object().expect("an object"));
        item.operation.map(|operation| match operation {
            RequestedOperation::Send(load) => load,
            other => panic!("{other:?} is no message"),
        })
    }

    fn valid_fields(kind: OperationType) -> Value {
        let viber = json!({"viber_type": "text", "viber_signature": "Olena Co", "viber_message": "Hi"});
        let rcs = json!({"rcs_signature": "OlenaCo", "rcs_message": "Hi", "rcs_image": "https://a/b.png",
            "rcs_button": "Shop", "rcs_link": "https://a"});
        let sms = json!({"sms_signature": "OlenaCo", "sms_message": "Hi"});
        let of = |all: &[&Value]| {
            Value::Object(all.iter().filter_map(|value| value.as_object().cloned()).flatten().collect())
        };
        match kind {
            OperationType::Sms => sms,
            OperationType::Viber => viber,
            OperationType::Rcs => rcs,
            OperationType::ViberSms => of(&[&viber, &sms]),
            OperationType::RcsSms => of(&[&rcs, &sms]),
            OperationType::RcsViberSms => of(&[&rcs, &viber, &sms]),
            OperationType::Telegram => json!({"message": "012345"}),
            OperationType::Voice => json!({"message": "Hello", "voice": {"gender": "female"}, "dtmf": false}),
            _ => json!({"pipeline": ["viber", "sms"],
                "viber": {"signature": "Olena Co", "message": "Hi", "type": "text"},
                "sms": {"signature": "OlenaCo", "message": "Hi"}}),
        }
    }

    #[test]
    fn send_request_has_its_channels_and_sender_names() {
        let (sms, viber) = ("OlenaCo", "Olena Co");
        for (kind, channels, signatures) in [
            (OperationType::Sms, &[Channel::Sms][..], &[sms][..]),
            (OperationType::Viber, &[Channel::Viber], &[viber]),
            (OperationType::Rcs, &[Channel::Rcs], &[sms]),
            (OperationType::Voice, &[Channel::Voice], &[]),
            (OperationType::Telegram, &[Channel::Telegram], &[]),
            (OperationType::ViberSms, &[Channel::Viber, Channel::Sms], &[viber, sms]),
            (OperationType::RcsSms, &[Channel::Rcs, Channel::Sms], &[sms, sms]),
            (OperationType::RcsViberSms, &[Channel::Rcs, Channel::Viber, Channel::Sms], &[sms, viber, sms]),
            (OperationType::Pipeline, &[Channel::Viber, Channel::Sms], &[viber, sms]),
        ] {
            let stages = channels.iter().map(|channel| ChannelStage::new(*channel, 1, None)).collect();
            let signatures = signatures.iter().map(|name| Box::from(*name)).collect();
            let load = Ok(SendRequest { stages, signatures });
            assert_eq!(read_with(kind, json!({})), load, "{}", kind.name());
            let extra = json!({"anything": {"else": [1]}, "hook": "https://a/?token=1"});
            assert_eq!(read_with(kind, extra), load, "{}", kind.name());
        }
    }

    #[test]
    fn lifetime_applies_to_its_own_channel() {
        for (kind, changes, channels) in [
            (OperationType::Sms, json!({"sms_lifetime": 3_600}), vec![(Channel::Sms, 3_600)]),
            (OperationType::Viber, json!({"viber_lifetime": 60}), vec![(Channel::Viber, 60)]),
            (OperationType::Sms, json!({"sms_lifetime": 86_400.0}), vec![(Channel::Sms, 86_400)]),
            (OperationType::Telegram, json!({"telegram_lifetime": 61}), vec![(Channel::Telegram, 61)]),
            (OperationType::RcsSms, json!({"rcs_lifetime": 62}), vec![(Channel::Rcs, 62), (Channel::Sms, 172_800)]),
            (
                OperationType::ViberSms,
                json!({"sms_lifetime": 4_000}),
                vec![(Channel::Viber, 172_800), (Channel::Sms, 4_000)],
            ),
        ] {
            let read = read_with(kind, changes.clone()).expect("well-formed").stages;
            let read: Vec<_> = read.iter().map(|stage| (stage.channel, stage.lifetime().as_secs())).collect();
            assert_eq!(read, channels, "{changes}");
        }
    }

    #[test]
    fn parts_come_from_the_longest_stage() {
        for kind in [OperationType::Sms, OperationType::ViberSms, OperationType::RcsSms, OperationType::RcsViberSms] {
            let long = json!({"sms_message": "я".repeat(71)});
            assert_eq!(read_with(kind, long).map(|load| most_parts(&load.stages)), Ok(2), "{}", kind.name());
        }
        let long = json!({"sms": {"signature": "OlenaCo", "message": "я".repeat(71)}});
        assert_eq!(read_with(OperationType::Pipeline, long).map(|load| most_parts(&load.stages)), Ok(2));
    }

    #[test]
    fn missing_or_invalid_field_is_rejected() {
        let (alpha, text) = ("Error in Alpha-name", "Please enter SMS text");
        for (kind, changes, error) in [
            (OperationType::Sms, json!({"sms_signature": null}), alpha),
            (OperationType::Sms, json!({"sms_signature": "too long a name"}), alpha),
            (OperationType::Sms, json!({"sms_signature": "Крамниця"}), alpha),
            (OperationType::Sms, json!({"sms_message": null}), text),
            (OperationType::Sms, json!({"sms_message": " "}), text),
            (OperationType::Sms, json!({"sms_message": 5}), text),
            (OperationType::Sms, json!({"sms_lifetime": 3599}), "Error in sms_lifetime"),
            (OperationType::Sms, json!({"short_link": "yes"}), "Error in short_link"),
            (OperationType::Sms, json!({"hook": "not an address"}), "Error in hook"),
            (OperationType::Viber, json!({"viber_signature": ""}), alpha),
            (OperationType::Viber, json!({"viber_type": null}), "Please enter viber_type"),
            (OperationType::Viber, json!({"viber_type": "video"}), "Error in viber_type"),
            (OperationType::Viber, json!({"viber_message": null}), "Please enter viber_message"),
            (OperationType::Viber, json!({"viber_type": "image"}), "Please enter viber_image"),
            (OperationType::Viber, json!({"viber_type": "text+link"}), "Please enter viber_button"),
            (OperationType::Viber, json!({"viber_type": "text+link", "viber_button": "Go"}), "Please enter viber_link"),
            (OperationType::Viber, json!({"viber_type": "text+image+link"}), "Please enter viber_image"),
            (OperationType::Viber, json!({"viber_type": "carousel"}), "Please enter viber_carousel"),
            (
                OperationType::Viber,
                json!({"viber_type": "carousel", "viber_carousel": [{}]}),
                "Error in viber_carousel",
            ),
            (
                OperationType::Viber,
                json!({"viber_type": "carousel", "viber_carousel": [{}, {}]}),
                "Please enter viber_carousel[0].image",
            ),
            (OperationType::Viber, json!({"viber_lifetime": 59}), "Error in viber_lifetime"),
            (OperationType::Rcs, json!({"rcs_signature": null}), alpha),
            (OperationType::Rcs, json!({"rcs_message": null}), "Please enter rcs_message"),
            (OperationType::Rcs, json!({"rcs_image": null}), "Please enter rcs_image"),
            (OperationType::Rcs, json!({"rcs_image": "b.png"}), "Error in rcs_image"),
            (OperationType::Rcs, json!({"rcs_button": null}), "Please enter rcs_button"),
            (OperationType::Rcs, json!({"rcs_link": null}), "Please enter rcs_link"),
            (OperationType::Rcs, json!({"rcs_lifetime": 59}), "Error in rcs_lifetime"),
            (OperationType::RcsSms, json!({"sms_message": null}), text),
            (OperationType::RcsViberSms, json!({"viber_message": null}), "Please enter viber_message"),
            (OperationType::Telegram, json!({"message": null}), "Please enter message"),
            (OperationType::Telegram, json!({"message": "123"}), "Error in message"),
            (OperationType::Telegram, json!({"message": "123456789"}), "Error in message"),
            (OperationType::Telegram, json!({"message": "code 1234"}), "Error in message"),
            (OperationType::Telegram, json!({"message": 123}), "Error in message"),
            (OperationType::Telegram, json!({"message": -1234}), "Error in message"),
            (OperationType::Telegram, json!({"telegram_lifetime": 59}), "Error in telegram_lifetime"),
            (OperationType::Voice, json!({"message": null}), "Please enter message"),
            (OperationType::Voice, json!({"voice": {"gender": "robot"}}), "Error in voice.gender"),
            (OperationType::Voice, json!({"dtmf": 1}), "Error in dtmf"),
            (OperationType::Pipeline, json!({"pipeline": null}), "Please enter pipeline"),
            (OperationType::Pipeline, json!({"pipeline": []}), "Please enter pipeline"),
            (OperationType::Pipeline, json!({"pipeline": ["viber", "viber"]}), "Error in pipeline"),
            (OperationType::Pipeline, json!({"pipeline": ["pigeon"]}), "Error in pipeline"),
            (OperationType::Pipeline, json!({"pipeline": "sms"}), "Error in pipeline"),
            (OperationType::Pipeline, json!({"viber": null}), "Please enter viber"),
            (OperationType::Pipeline, json!({"sms": {"signature": "OlenaCo"}}), text),
            (
                OperationType::Pipeline,
                json!({"pipeline": ["voice"], "voice": {"gender": "it"}}),
                "Error in voice.gender",
            ),
            (
                OperationType::Pipeline,
                json!({"pipeline": ["telegram"], "telegram": {"message": "x"}}),
                "Error in telegram.message",
            ),
        ] {
            let refused = read_with(kind, changes.clone()).expect_err(error);
            assert_eq!(refused.text(), error, "{} {changes}", kind.name());
        }
    }

    #[test]
    fn empty_optional_field_counts_as_absent() {
        let card = json!({"caption": "", "image": "https://a/b.png", "url": "https://a", "button": "Go"});
        let carousel = json!({"viber_type": "carousel", "viber_message": "", "viber_carousel": [card, card]});
        for (kind, changes) in [
            (OperationType::Sms, json!({"hook": ""})),
            (OperationType::Pipeline, json!({"hook": ""})),
            (OperationType::Telegram, json!({"message": 12_345})),
            (OperationType::Telegram, json!({"message": 12_345.0})),
            (OperationType::Viber, carousel),
        ] {
            assert!(read_with(kind, changes.clone()).is_ok(), "{} {changes}", kind.name());
        }
    }

    #[test]
    fn pipeline_accepts_what_the_contract_leaves_open() {
        for changes in [
            json!({"pipeline": ["whatsapp"]}),
            json!({"pipeline": ["whatsapp"], "whatsapp": {"message": ""}}),
            json!({"pipeline": ["sms"], "viber": "ignored"}),
            json!({"pipeline": ["voice"], "voice": {"gender": "male", "language": "uk-UA", "name": "x"}}),
            json!({"pipeline": ["voice"], "voice": {"message": "Hi", "voice": {"gender": "male"}, "dtmf": false}}),
            json!({"pipeline": ["rcs"], "rcs": {"signature": "OlenaCo", "message": "Hi"}}),
        ] {
            assert!(read_with(OperationType::Pipeline, changes.clone()).is_ok(), "{changes}");
        }
    }
}
