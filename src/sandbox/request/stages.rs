//! What each kind of message requires of its fields (contract 4.3), both as an operation and as a stage of a pipeline.

use super::Fields;
use crate::domain::{Channel, sms_text};
use crate::sandbox::platform::{Refusal, Stage};

/// What a message is: its stages in the order in which they are tried, and the sender names that it uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// At least one.
    pub stages: Vec<Stage>,
    /// Those that have to be the account's.
    pub signatures: Vec<Box<str>>,
}

/// What was read of one stage, and the sender name that it uses.
type Leg<'a> = (Stage, Option<&'a str>);

impl Load {
    fn add(&mut self, (stage, signature): Leg) {
        self.stages.push(stage);
        self.signatures.extend(signature.map(Box::from));
    }
}

/// Reads an operation that tries these channels in order, each under its own prefix.
pub(crate) fn combined(channels: &[Channel], fields: &Fields) -> Result<Load, Refusal> {
    let mut load = Load::default();
    for name in channels {
        load.add(channel(*name, fields)?);
    }
    fields.optional_url("hook")?;
    Ok(load)
}

/// Reads a pipeline: known channels without a repeat, each with the object of its name; other objects are ignored.
pub(crate) fn pipeline(fields: &Fields) -> Result<Load, Refusal> {
    let mut load = Load::default();
    for name in fields.array("pipeline")? {
        let new = |channel: &Channel| load.stages.iter().all(|stage| stage.channel != *channel);
        let channel = name.as_str().and_then(Channel::from_name).filter(new);
        let channel = channel.ok_or_else(|| fields.wrong("pipeline"))?;
        load.add(stage(channel, fields)?);
    }
    fields.optional_url("hook")?;
    if load.stages.is_empty() { Err(fields.missing("pipeline")) } else { Ok(load) }
}

/// Reads one channel of an operation that is no pipeline.
fn channel<'a>(channel: Channel, fields: &Fields<'a>) -> Result<Leg<'a>, Refusal> {
    match channel {
        Channel::Sms => fields.optional_flag("short_link").and_then(|_| sms(&fields.prefixed("sms_"))),
        Channel::Viber => fields.optional_flag("short_link").and_then(|_| viber(&fields.prefixed("viber_"))),
        Channel::Rcs => fields.optional_flag("short_link").and_then(|_| rcs(&fields.prefixed("rcs_"))),
        Channel::Telegram => {
            let lifetime = fields.prefixed("telegram_").optional_lifetime(60..=u64::MAX)?;
            telegram(fields, lifetime)
        }
        Channel::Voice => fields.text("message").and_then(|_| voice(fields)),
        // No operation carries these in this way (contract 2.1).
        Channel::Whatsapp | Channel::Hlr | Channel::CallOtp => Err(fields.wrong("type")),
    }
}

/// Reads one stage of a pipeline.
fn stage<'a>(channel: Channel, fields: &Fields<'a>) -> Result<Leg<'a>, Refusal> {
    let name = channel.name();
    let stage = || fields.object(name)?.ok_or_else(|| fields.missing(name));
    match channel {
        Channel::Sms => sms(&stage()?),
        Channel::Viber => viber_stage(&stage()?),
        Channel::Rcs => rcs_stage(&stage()?),
        Channel::Telegram => telegram(&stage()?, None),
        Channel::Voice => voice(&stage()?),
        // Nothing of it is checked: it is taken and charged even when it is empty (contract 4.3).
        Channel::Whatsapp => Ok((Stage::new(channel, 1, None), None)),
        Channel::Hlr | Channel::CallOtp => Err(fields.wrong("pipeline")),
    }
}

fn sms<'a>(fields: &Fields<'a>) -> Result<Leg<'a>, Refusal> {
    let signature = fields.alpha_name()?;
    let text = fields.text("message").map_err(|_| Refusal::SMS_TEXT)?;
    let lifetime = fields.optional_lifetime(3_600..=259_200)?;
    let parts = u32::try_from(sms_text(text).parts).unwrap_or(u32::MAX);
    Ok((Stage::new(Channel::Sms, parts, lifetime), Some(signature)))
}

fn viber<'a>(fields: &Fields<'a>) -> Result<Leg<'a>, Refusal> {
    let signature = fields.signature()?;
    let lifetime = fields.optional_lifetime(60..=172_800)?;
    let message = || fields.text("message").map(|_| ());
    let image = || fields.url("image");
    let button = || fields.text("button").and_then(|_| fields.url("link"));
    match fields.text("type")? {
        "text" => message(),
        "image" => image(),
        "text+link" => message().and_then(|()| button()),
        "text+image+link" => message().and_then(|()| image()).and_then(|()| button()),
        "carousel" => fields.free_text("message").and_then(|()| carousel(fields)),
        _ => Err(fields.wrong("type")),
    }?;
    Ok((Stage::new(Channel::Viber, 1, lifetime), Some(signature)))
}

fn carousel(fields: &Fields) -> Result<(), Refusal> {
    let cards = fields.objects("carousel")?;
    if !(2..=5).contains(&cards.len()) {
        return Err(fields.wrong("carousel"));
    }
    for card in &cards {
        card.free_text("caption")?;
        card.url("image")?;
        card.url("url")?;
        card.text("button")?;
    }
    Ok(())
}

fn rcs<'a>(fields: &Fields<'a>) -> Result<Leg<'a>, Refusal> {
    let (_, signature) = rcs_stage(fields)?;
    fields.url("image")?;
    fields.text("button")?;
    fields.url("link")?;
    Ok((Stage::new(Channel::Rcs, 1, fields.optional_lifetime(60..=u64::MAX)?), signature))
}

fn rcs_stage<'a>(fields: &Fields<'a>) -> Result<Leg<'a>, Refusal> {
    let signature = fields.signature()?;
    fields.text("message").map(|_| (Stage::new(Channel::Rcs, 1, None), Some(signature)))
}

/// A code of 4 to 8 digits: Telegram carries nothing else.
fn telegram<'a>(fields: &Fields<'a>, lifetime: Option<u64>) -> Result<Leg<'a>, Refusal> {
    let code = fields.digits("message")?.len();
    let leg = (Stage::new(Channel::Telegram, 1, lifetime), None);
    if (4..=8).contains(&code) { Ok(leg) } else { Err(fields.wrong("message")) }
}

/// A spoken message. A stage is shown without the text, so here it may be absent.
fn voice<'a>(fields: &Fields<'a>) -> Result<Leg<'a>, Refusal> {
    fields.optional_text("message")?;
    let dtmf = fields.optional_flag("dtmf")?.unwrap_or_default();
    // The voice stands in an object of its own, or, in a stage as the contract shows it, beside the text.
    let voice = fields.object("voice")?.unwrap_or_else(|| fields.clone());
    match voice.optional_text("gender")? {
        None | Some("male" | "female") => {}
        Some(_) => return Err(voice.wrong("gender")),
    }
    voice.optional_text("language")?;
    voice.optional_text("name").map(|_| (Stage::new(Channel::Voice, 1, None).waiting_for_a_digit(dtmf), None))
}

fn viber_stage<'a>(fields: &Fields<'a>) -> Result<Leg<'a>, Refusal> {
    let signature = fields.signature()?;
    fields.text("message")?;
    fields.text("type").map(|_| (Stage::new(Channel::Viber, 1, None), Some(signature)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{Item, Kind, Operation};
    use super::*;
    use crate::sandbox::platform::plan::longest;

    /// Reads a message with fields of a good one replaced, or with `null` taken away.
    fn read_with(kind: Kind, changes: Value) -> Result<Load, Refusal> {
        let mut fields = good(kind);
        if let (Some(fields), Value::Object(changes)) = (fields.as_object_mut(), changes) {
            fields.insert("phone".into(), "380501234567".into());
            fields.extend(changes);
        }
        let item = Item::read(kind, fields.as_object().expect("an object"));
        item.operation.map(|operation| match operation {
            Operation::Send(load) => load,
            other => panic!("{other:?} is no message"),
        })
    }

    fn good(kind: Kind) -> Value {
        let viber = json!({"viber_type": "text", "viber_signature": "Olena Co", "viber_message": "Hi"});
        let rcs = json!({"rcs_signature": "OlenaCo", "rcs_message": "Hi", "rcs_image": "https://a/b.png",
            "rcs_button": "Shop", "rcs_link": "https://a"});
        let sms = json!({"sms_signature": "OlenaCo", "sms_message": "Hi"});
        let of = |all: &[&Value]| {
            Value::Object(all.iter().filter_map(|value| value.as_object().cloned()).flatten().collect())
        };
        match kind {
            Kind::Sms => sms,
            Kind::Viber => viber,
            Kind::Rcs => rcs,
            Kind::ViberSms => of(&[&viber, &sms]),
            Kind::RcsSms => of(&[&rcs, &sms]),
            Kind::RcsViberSms => of(&[&rcs, &viber, &sms]),
            Kind::Telegram => json!({"message": "012345"}),
            Kind::Voice => json!({"message": "Hello", "voice": {"gender": "female"}, "dtmf": false}),
            _ => json!({"pipeline": ["viber", "sms"],
                "viber": {"signature": "Olena Co", "message": "Hi", "type": "text"},
                "sms": {"signature": "OlenaCo", "message": "Hi"}}),
        }
    }

    #[test]
    fn a_message_is_taken_with_the_channels_that_it_tries_and_the_names_that_it_uses() {
        let (sms, viber) = ("OlenaCo", "Olena Co");
        for (kind, channels, signatures) in [
            (Kind::Sms, &[Channel::Sms][..], &[sms][..]),
            (Kind::Viber, &[Channel::Viber], &[viber]),
            (Kind::Rcs, &[Channel::Rcs], &[sms]),
            (Kind::Voice, &[Channel::Voice], &[]),
            (Kind::Telegram, &[Channel::Telegram], &[]),
            (Kind::ViberSms, &[Channel::Viber, Channel::Sms], &[viber, sms]),
            (Kind::RcsSms, &[Channel::Rcs, Channel::Sms], &[sms, sms]),
            (Kind::RcsViberSms, &[Channel::Rcs, Channel::Viber, Channel::Sms], &[sms, viber, sms]),
            (Kind::Pipeline, &[Channel::Viber, Channel::Sms], &[viber, sms]),
        ] {
            let stages = channels.iter().map(|channel| Stage::new(*channel, 1, None)).collect();
            let signatures = signatures.iter().map(|name| Box::from(*name)).collect();
            let load = Ok(Load { stages, signatures });
            assert_eq!(read_with(kind, json!({})), load, "{}", kind.name());
            let extra = json!({"anything": {"else": [1]}, "hook": "https://a/?token=1"});
            assert_eq!(read_with(kind, extra), load, "{}", kind.name());
        }
    }

    #[test]
    fn a_lifetime_belongs_to_its_channel() {
        for (kind, changes, channels) in [
            (Kind::Sms, json!({"sms_lifetime": 3_600}), vec![(Channel::Sms, 3_600)]),
            (Kind::Viber, json!({"viber_lifetime": 60}), vec![(Channel::Viber, 60)]),
            (Kind::Sms, json!({"sms_lifetime": 86_400.0}), vec![(Channel::Sms, 86_400)]),
            (Kind::Telegram, json!({"telegram_lifetime": 61}), vec![(Channel::Telegram, 61)]),
            (Kind::RcsSms, json!({"rcs_lifetime": 62}), vec![(Channel::Rcs, 62), (Channel::Sms, 172_800)]),
            (Kind::ViberSms, json!({"sms_lifetime": 4_000}), vec![(Channel::Viber, 172_800), (Channel::Sms, 4_000)]),
        ] {
            let read = read_with(kind, changes.clone()).expect("well-formed").stages;
            let read: Vec<_> = read.iter().map(|stage| (stage.channel, stage.lifetime().as_secs())).collect();
            assert_eq!(read, channels, "{changes}");
        }
    }

    #[test]
    fn the_longest_stage_gives_the_parts() {
        for kind in [Kind::Sms, Kind::ViberSms, Kind::RcsSms, Kind::RcsViberSms] {
            let long = json!({"sms_message": "я".repeat(71)});
            assert_eq!(read_with(kind, long).map(|load| longest(&load.stages)), Ok(2), "{}", kind.name());
        }
        let long = json!({"sms": {"signature": "OlenaCo", "message": "я".repeat(71)}});
        assert_eq!(read_with(Kind::Pipeline, long).map(|load| longest(&load.stages)), Ok(2));
    }

    #[test]
    fn a_field_that_is_missing_or_wrong_is_refused() {
        let (alpha, text) = ("Error in Alpha-name", "Please enter SMS text");
        for (kind, changes, error) in [
            (Kind::Sms, json!({"sms_signature": null}), alpha),
            (Kind::Sms, json!({"sms_signature": "too long a name"}), alpha),
            (Kind::Sms, json!({"sms_signature": "Крамниця"}), alpha),
            (Kind::Sms, json!({"sms_message": null}), text),
            (Kind::Sms, json!({"sms_message": " "}), text),
            (Kind::Sms, json!({"sms_message": 5}), text),
            (Kind::Sms, json!({"sms_lifetime": 3599}), "Error in sms_lifetime"),
            (Kind::Sms, json!({"short_link": "yes"}), "Error in short_link"),
            (Kind::Sms, json!({"hook": "not an address"}), "Error in hook"),
            (Kind::Viber, json!({"viber_signature": ""}), alpha),
            (Kind::Viber, json!({"viber_type": null}), "Please enter viber_type"),
            (Kind::Viber, json!({"viber_type": "video"}), "Error in viber_type"),
            (Kind::Viber, json!({"viber_message": null}), "Please enter viber_message"),
            (Kind::Viber, json!({"viber_type": "image"}), "Please enter viber_image"),
            (Kind::Viber, json!({"viber_type": "text+link"}), "Please enter viber_button"),
            (Kind::Viber, json!({"viber_type": "text+link", "viber_button": "Go"}), "Please enter viber_link"),
            (Kind::Viber, json!({"viber_type": "text+image+link"}), "Please enter viber_image"),
            (Kind::Viber, json!({"viber_type": "carousel"}), "Please enter viber_carousel"),
            (Kind::Viber, json!({"viber_type": "carousel", "viber_carousel": [{}]}), "Error in viber_carousel"),
            (
                Kind::Viber,
                json!({"viber_type": "carousel", "viber_carousel": [{}, {}]}),
                "Please enter viber_carousel[0].image",
            ),
            (Kind::Viber, json!({"viber_lifetime": 59}), "Error in viber_lifetime"),
            (Kind::Rcs, json!({"rcs_signature": null}), alpha),
            (Kind::Rcs, json!({"rcs_message": null}), "Please enter rcs_message"),
            (Kind::Rcs, json!({"rcs_image": null}), "Please enter rcs_image"),
            (Kind::Rcs, json!({"rcs_image": "b.png"}), "Error in rcs_image"),
            (Kind::Rcs, json!({"rcs_button": null}), "Please enter rcs_button"),
            (Kind::Rcs, json!({"rcs_link": null}), "Please enter rcs_link"),
            (Kind::Rcs, json!({"rcs_lifetime": 59}), "Error in rcs_lifetime"),
            (Kind::RcsSms, json!({"sms_message": null}), text),
            (Kind::RcsViberSms, json!({"viber_message": null}), "Please enter viber_message"),
            (Kind::Telegram, json!({"message": null}), "Please enter message"),
            (Kind::Telegram, json!({"message": "123"}), "Error in message"),
            (Kind::Telegram, json!({"message": "123456789"}), "Error in message"),
            (Kind::Telegram, json!({"message": "code 1234"}), "Error in message"),
            (Kind::Telegram, json!({"message": 123}), "Error in message"),
            (Kind::Telegram, json!({"message": -1234}), "Error in message"),
            (Kind::Telegram, json!({"telegram_lifetime": 59}), "Error in telegram_lifetime"),
            (Kind::Voice, json!({"message": null}), "Please enter message"),
            (Kind::Voice, json!({"voice": {"gender": "robot"}}), "Error in voice.gender"),
            (Kind::Voice, json!({"dtmf": 1}), "Error in dtmf"),
            (Kind::Pipeline, json!({"pipeline": null}), "Please enter pipeline"),
            (Kind::Pipeline, json!({"pipeline": []}), "Please enter pipeline"),
            (Kind::Pipeline, json!({"pipeline": ["viber", "viber"]}), "Error in pipeline"),
            (Kind::Pipeline, json!({"pipeline": ["pigeon"]}), "Error in pipeline"),
            (Kind::Pipeline, json!({"pipeline": "sms"}), "Error in pipeline"),
            (Kind::Pipeline, json!({"viber": null}), "Please enter viber"),
            (Kind::Pipeline, json!({"sms": {"signature": "OlenaCo"}}), text),
            (Kind::Pipeline, json!({"pipeline": ["voice"], "voice": {"gender": "it"}}), "Error in voice.gender"),
            (
                Kind::Pipeline,
                json!({"pipeline": ["telegram"], "telegram": {"message": "x"}}),
                "Error in telegram.message",
            ),
        ] {
            let refused = read_with(kind, changes.clone()).expect_err(error);
            assert_eq!(refused.text(), error, "{} {changes}", kind.name());
        }
    }

    #[test]
    fn what_says_nothing_is_taken_for_absent() {
        let card = json!({"caption": "", "image": "https://a/b.png", "url": "https://a", "button": "Go"});
        let carousel = json!({"viber_type": "carousel", "viber_message": "", "viber_carousel": [card, card]});
        for (kind, changes) in [
            (Kind::Sms, json!({"hook": ""})),
            (Kind::Pipeline, json!({"hook": ""})),
            (Kind::Telegram, json!({"message": 12_345})),
            (Kind::Telegram, json!({"message": 12_345.0})),
            (Kind::Viber, carousel),
        ] {
            assert!(read_with(kind, changes.clone()).is_ok(), "{} {changes}", kind.name());
        }
    }

    #[test]
    fn a_pipeline_takes_what_the_contract_leaves_free() {
        for changes in [
            json!({"pipeline": ["whatsapp"]}),
            json!({"pipeline": ["whatsapp"], "whatsapp": {"message": ""}}),
            json!({"pipeline": ["sms"], "viber": "ignored"}),
            json!({"pipeline": ["voice"], "voice": {"gender": "male", "language": "uk-UA", "name": "x"}}),
            json!({"pipeline": ["voice"], "voice": {"message": "Hi", "voice": {"gender": "male"}, "dtmf": false}}),
            json!({"pipeline": ["rcs"], "rcs": {"signature": "OlenaCo", "message": "Hi"}}),
        ] {
            assert!(read_with(Kind::Pipeline, changes.clone()).is_ok(), "{changes}");
        }
    }
}
