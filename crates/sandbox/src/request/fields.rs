//! Fields of an operation or a pipeline stage: which are required for each kind of message (contract 4.3), and which
//! values are well-formed. Only this module decides that.

use std::fmt;
use std::ops::RangeInclusive;

use campaign_core::domain::{Channel, Phone, measure_sms};
use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::platform::{ChannelStage, OperationError};

/// The maximum number of recipients in one `phone`.
const MAX_PHONES: usize = 1_000;

/// The fields of an operation or a nested object, whose names begin with `prefix`.
///
/// A `null` field counts as missing.
#[derive(Clone)]
pub(crate) struct OperationFields<'a> {
    map: &'a Map<String, Value>,
    prefix: &'static str,
    /// The path to `map` including the last dot; only for errors.
    place: String,
}

impl<'a> OperationFields<'a> {
    /// The fields of an operation.
    pub(crate) fn from_map(map: &'a Map<String, Value>) -> Self {
        Self { map, prefix: "", place: String::new() }
    }

    /// The fields of the same object whose names begin with `prefix`.
    pub(crate) fn with_prefix(&self, prefix: &'static str) -> Self {
        Self { map: self.map, prefix, place: self.place.clone() }
    }

    /// The fields of a nested object.
    pub(crate) fn optional_object(&self, key: &str) -> Result<Option<Self>, OperationError> {
        match self.field(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self { map, prefix: "", place: format!("{}.", self.full_path(key)) })),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// The fields of each object in an array.
    pub(crate) fn object_list(&self, key: &str) -> Result<Vec<Self>, OperationError> {
        let items = self.required_array(key)?.iter().enumerate();
        items
            .map(|(index, item)| {
                let place = format!("{}[{index}]", self.full_path(key));
                let Value::Object(map) = item else { return Err(OperationError::invalid_field(&place)) };
                Ok(Self { map, prefix: "", place: format!("{place}.") })
            })
            .collect()
    }

    pub(crate) fn required_array(&self, key: &str) -> Result<&'a [Value], OperationError> {
        match self.field(key) {
            None => Err(self.missing_field(key)),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// A required string that must not be blank.
    pub(crate) fn required_text(&self, key: &str) -> Result<&'a str, OperationError> {
        self.optional_text(key)?.ok_or_else(|| self.missing_field(key))
    }

    /// An optional string that must not be blank.
    pub(crate) fn optional_text(&self, key: &str) -> Result<Option<&'a str>, OperationError> {
        match self.field(key) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Err(self.missing_field(key)),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// Checks an optional text, which can be blank.
    pub(crate) fn check_free_text(&self, key: &str) -> Result<(), OperationError> {
        match self.field(key) {
            None | Some(Value::String(_)) => Ok(()),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// Required digits, which can be sent as a number.
    pub(crate) fn required_digits(&self, key: &str) -> Result<String, OperationError> {
        let digits = match self.field(key) {
            Some(Value::Number(number)) => whole_number(number).ok_or_else(|| self.invalid_field(key))?.to_string(),
            _ => self.required_text(key)?.to_owned(),
        };
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { Ok(digits) } else { Err(self.invalid_field(key)) }
    }

    /// A required sender name: any text.
    pub(crate) fn required_signature(&self) -> Result<&'a str, OperationError> {
        self.required_text("signature").map_err(|_| OperationError::ALPHA_NAME)
    }

    /// A required sender name in the format of SMS operators.
    pub(crate) fn required_alpha_name(&self) -> Result<&'a str, OperationError> {
        let name = self.required_signature()?;
        if is_alpha_name(name) { Ok(name) } else { Err(OperationError::ALPHA_NAME) }
    }

    /// Checks a required URL.
    pub(crate) fn check_url(&self, key: &str) -> Result<(), OperationError> {
        if is_url(self.required_text(key)?) { Ok(()) } else { Err(self.invalid_field(key)) }
    }

    /// Checks an optional URL; an empty text counts as missing.
    pub(crate) fn check_optional_url(&self, key: &str) -> Result<(), OperationError> {
        if self.field(key).is_some_and(|value| value != "") { self.check_url(key) } else { Ok(()) }
    }

    /// The exact URL in a field, if it is valid.
    pub(crate) fn usable_url(&self, key: &str) -> Option<&'a str> {
        self.field(key).and_then(Value::as_str).filter(|text| is_url(text))
    }

    /// An optional boolean.
    pub(crate) fn optional_flag(&self, key: &str) -> Result<Option<bool>, OperationError> {
        match self.field(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// An optional lifetime in whole seconds.
    pub(crate) fn optional_lifetime(&self, range: RangeInclusive<u64>) -> Result<Option<u64>, OperationError> {
        let Some(value) = self.field("lifetime") else { return Ok(None) };
        let seconds = value.as_number().and_then(whole_number).filter(|seconds| range.contains(seconds));
        seconds.map(Some).ok_or_else(|| self.invalid_field("lifetime"))
    }

    /// The identifier in a field, if present.
    pub(crate) fn optional_id(&self, key: &str) -> Result<Option<ClientId>, OperationError> {
        self.field(key).map(|value| ClientId::from_json(value).ok_or_else(|| self.invalid_field(key))).transpose()
    }

    /// Reads the recipients: a number, or a string of one or more phone numbers separated by commas.
    pub(crate) fn read_phones(&self) -> Result<Vec<Phone>, OperationError> {
        let phones = match self.field("phone") {
            Some(Value::Number(number)) => whole_number(number).and_then(Phone::new).map(|phone| vec![phone]),
            Some(Value::String(text)) => phones_from_text(text),
            _ => None,
        };
        phones.ok_or(OperationError::PHONE)
    }

    /// The error for an invalid value.
    pub(crate) fn invalid_field(&self, key: &str) -> OperationError {
        OperationError::invalid_field(&self.full_path(key))
    }

    /// The error for a missing required field.
    pub(crate) fn missing_field(&self, key: &str) -> OperationError {
        OperationError::missing_field(&self.full_path(key))
    }

    fn field(&self, key: &str) -> Option<&'a Value> {
        let value = if self.prefix.is_empty() { self.map.get(key) } else { self.map.get(&self.prefixed_name(key)) };
        value.filter(|value| !value.is_null())
    }

    fn prefixed_name(&self, key: &str) -> String {
        [self.prefix, key].concat()
    }

    fn full_path(&self, key: &str) -> String {
        [&self.place, self.prefix, key].concat()
    }
}

/// A whole number in any notation: clients that compute the value send `86400.0`.
fn whole_number(number: &Number) -> Option<u64> {
    // Above this value, a float represents several integers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let to_float = || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..EXACT).contains(float));
    number.as_u64().or_else(|| to_float().map(|float| float as u64))
}

/// Parses phone numbers separated by commas; a trailing comma is allowed.
fn phones_from_text(text: &str) -> Option<Vec<Phone>> {
    let text = text.trim();
    let parts = text.strip_suffix(',').unwrap_or(text).split(',');
    // One more than the limit is enough to detect an excess.
    let phones: Option<Vec<Phone>> = parts.take(MAX_PHONES + 1).map(|part| phone_from_text(part.trim())).collect();
    phones.filter(|phones| phones.len() <= MAX_PHONES)
}

/// Parses a phone number that consists of digits and does not start with 0.
fn phone_from_text(text: &str) -> Option<Phone> {
    let is_international = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_international { text.parse().ok().and_then(Phone::new) } else { None }
}

/// Whether SMS operators accept a sender name: 3 to 11 permitted characters, with at least one letter.
fn is_alpha_name(name: &str) -> bool {
    (3..=11).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_ ".contains(&byte))
        && name.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn is_url(text: &str) -> bool {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let is_web = ["https", "http"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    is_web
        && !rest.is_empty()
        && !rest.starts_with(['/', '?', '#'])
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// A client's identifier, a number or a string; it is returned in the same form (contract 2.2).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum ClientId {
    /// A whole number that is not negative.
    Whole(u64),
    /// Any other number.
    Odd(Number),
    /// A string.
    Text(Box<str>),
}

/// The common key of all spellings of an identifier: `7`, `"7"`, `"007"` and `7.0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientIdKey {
    Number(u64),
    Text(Box<str>),
}

impl ClientId {
    /// The identifier in this JSON value, if it is a number or a string.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => {
                Some(number.as_u64().map_or_else(|| ClientId::Odd(number.clone()), ClientId::Whole))
            }
            Value::String(text) => Some(ClientId::Text(text.as_str().into())),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The lookup key, equal for all spellings of the identifier.
    pub(crate) fn to_key(&self) -> ClientIdKey {
        match self {
            ClientId::Whole(number) => ClientIdKey::Number(*number),
            ClientId::Odd(number) => {
                // A float is printed as `7.0`; PHP clients send such values after arithmetic.
                let text = number.to_string();
                ClientIdKey::from_text(text.strip_suffix(".0").unwrap_or(&text))
            }
            ClientId::Text(text) => ClientIdKey::from_text(text),
        }
    }
}

impl ClientIdKey {
    fn from_text(text: &str) -> Self {
        let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if is_digits => ClientIdKey::Number(number),
            _ => ClientIdKey::Text(text.into()),
        }
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientId::Whole(number) => number.fmt(f),
            ClientId::Odd(number) => number.fmt(f),
            ClientId::Text(text) => f.write_str(text),
        }
    }
}

/// The content of a message: its stages in order, and the sender names that it uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendRequest {
    /// The stages; at least one.
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

/// Reads an operation for these channels, in order; the fields of each channel have a prefix.
pub(crate) fn read_combined(channels: &[Channel], fields: &OperationFields) -> Result<SendRequest, OperationError> {
    let mut send = SendRequest::default();
    for channel in channels {
        send.add_stage(read_channel(*channel, fields)?);
    }
    fields.check_optional_url("hook")?;
    Ok(send)
}

/// Reads a pipeline: distinct known channels, each with settings in an object of the channel's name. Objects for other
/// channels are ignored.
pub(crate) fn read_pipeline(fields: &OperationFields) -> Result<SendRequest, OperationError> {
    let mut send = SendRequest::default();
    for name in fields.required_array("pipeline")? {
        let is_new = |channel: &Channel| send.stages.iter().all(|stage| stage.channel != *channel);
        let channel = name.as_str().and_then(Channel::from_name).filter(is_new);
        let channel = channel.ok_or_else(|| fields.invalid_field("pipeline"))?;
        send.add_stage(read_stage(channel, fields)?);
    }
    fields.check_optional_url("hook")?;
    if send.stages.is_empty() { Err(fields.missing_field("pipeline")) } else { Ok(send) }
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

/// Reads a code of 4 to 8 digits, the only content that Telegram accepts.
fn read_telegram<'a>(fields: &OperationFields<'a>, lifetime: Option<u64>) -> Result<StageReading<'a>, OperationError> {
    let digit_count = fields.required_digits("message")?.len();
    let reading = (ChannelStage::new(Channel::Telegram, 1, lifetime), None);
    if (4..=8).contains(&digit_count) { Ok(reading) } else { Err(fields.invalid_field("message")) }
}

/// Reads a spoken message. The text is optional, because the contract shows a stage without a text.
fn read_voice<'a>(fields: &OperationFields<'a>) -> Result<StageReading<'a>, OperationError> {
    fields.optional_text("message")?;
    let dtmf = fields.optional_flag("dtmf")?.unwrap_or_default();
    // The voice settings are in a nested object or, in a stage like the contract's example, next to the text.
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
    use serde_json::json;

    use super::*;

    fn read_phone_field(value: Value) -> Option<Vec<u64>> {
        let map = Map::from_iter([("phone".to_owned(), value)]);
        OperationFields::from_map(&map).read_phones().ok().map(|phones| phones.into_iter().map(Phone::to_u64).collect())
    }

    #[test]
    fn phone_is_parsed_only_in_formats_that_clients_send() {
        assert_eq!(read_phone_field(json!(380_501_234_567_u64)), Some(vec![380_501_234_567]));
        assert_eq!(read_phone_field(json!(380_501_234_567.0)), Some(vec![380_501_234_567]));
        assert_eq!(read_phone_field(json!("380501234567")), Some(vec![380_501_234_567]));
        assert_eq!(read_phone_field(json!("380501234567, 380671234567")), Some(vec![380_501_234_567, 380_671_234_567]));
        assert_eq!(read_phone_field(json!("380501234567, ")), Some(vec![380_501_234_567]));
        assert_eq!(read_phone_field(json!("380501234567,".repeat(MAX_PHONES))).map(|all| all.len()), Some(MAX_PHONES));
        for wrong in [
            json!(null),
            json!(true),
            json!([380_501_234_567_u64]),
            json!(1),
            json!(-380_501_234_567_i64),
            json!(380_501_234_567.5),
            json!(1_234_567_890_123_456_u64),
            json!(""),
            json!("+380501234567"),
            json!("0501234567"),
            json!(","),
            json!("380501234567,,"),
            json!("380501234567,nobody"),
            json!("380501234567,".repeat(MAX_PHONES + 1)),
            json!("99999999999999999999999999"),
        ] {
            assert_eq!(read_phone_field(wrong.clone()), None, "{wrong}");
        }
    }

    #[test]
    fn sender_name_follows_operator_rules() {
        for good in ["Abc", "Olena.Co-1_", "Shop 24", "1234567890a"] {
            assert!(is_alpha_name(good), "{good}");
        }
        for bad in ["", "ab", "abcdefghijkl", "12345", "Крамниця", "shop!"] {
            assert!(!is_alpha_name(bad), "{bad}");
        }
    }

    #[test]
    fn url_must_be_an_absolute_web_address() {
        for good in
            ["https://a", "HTTPS://a", "Http://a", "http://127.0.0.1:80/x?token=1&b=2#c", "https://приклад.укр/"]
        {
            assert!(is_url(good), "{good}");
        }
        for bad in ["", "a.example", "https://", "https:///x", "ftp://a", "https://a b", "javascript:alert(1)"] {
            assert!(!is_url(bad), "{bad}");
        }
    }

    #[test]
    fn error_names_the_full_field_path() {
        let operation = json!({"voice": {"gender": 1}, "cards": [{}, {"image": 5}]});
        let fields = OperationFields::from_map(operation.as_object().expect("an object"));
        let voice = fields.optional_object("voice").expect("well-formed").expect("present");
        assert_eq!(voice.optional_text("gender"), Err(OperationError::invalid_field("voice.gender")));
        let cards = fields.object_list("cards").expect("well-formed");
        assert_eq!(cards[0].check_url("image"), Err(OperationError::missing_field("cards[0].image")));
        assert_eq!(
            fields.with_prefix("viber_").required_text("message"),
            Err(OperationError::missing_field("viber_message"))
        );
    }
}

#[cfg(test)]
mod client_id_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn client_id_serializes_as_it_was_sent() {
        for value in
            [json!(7), json!("7"), json!("007"), json!(-3), json!(1.5), json!(u64::MAX), json!(""), json!("a b")]
        {
            let id = ClientId::from_json(&value).expect("an id");
            assert_eq!(serde_json::to_value(&id).expect("JSON"), value);
        }
    }

    #[test]
    fn equal_ids_in_different_notations_share_a_key() {
        for value in [json!(7), json!("7"), json!("007"), json!(7.0)] {
            assert_eq!(ClientId::from_json(&value).expect("an id").to_key(), ClientIdKey::Number(7), "{value}");
        }
        for value in [json!("7a"), json!("+7"), json!(-7), json!(7.5), json!(""), json!("99999999999999999999999")] {
            assert!(matches!(ClientId::from_json(&value).expect("an id").to_key(), ClientIdKey::Text(_)), "{value}");
        }
    }
}

#[cfg(test)]
mod stages_tests {
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
            RequestedOperation::Send(send) => send,
            other => panic!("{other:?} is not a message"),
        })
    }

    fn valid_fields(kind: OperationType) -> Value {
        let viber = json!({"viber_type": "text", "viber_signature": "Olena Co", "viber_message": "Hi"});
        let rcs = json!({"rcs_signature": "OlenaCo", "rcs_message": "Hi", "rcs_image": "https://a/b.png",
            "rcs_button": "Shop", "rcs_link": "https://a"});
        let sms = json!({"sms_signature": "OlenaCo", "sms_message": "Hi"});
        let merge = |all: &[&Value]| {
            Value::Object(all.iter().filter_map(|value| value.as_object().cloned()).flatten().collect())
        };
        match kind {
            OperationType::Sms => sms,
            OperationType::Viber => viber,
            OperationType::Rcs => rcs,
            OperationType::ViberSms => merge(&[&viber, &sms]),
            OperationType::RcsSms => merge(&[&rcs, &sms]),
            OperationType::RcsViberSms => merge(&[&rcs, &viber, &sms]),
            OperationType::Telegram => json!({"message": "012345"}),
            OperationType::Voice => json!({"message": "Hello", "voice": {"gender": "female"}, "dtmf": false}),
            _ => json!({"pipeline": ["viber", "sms"],
                "viber": {"signature": "Olena Co", "message": "Hi", "type": "text"},
                "sms": {"signature": "OlenaCo", "message": "Hi"}}),
        }
    }

    #[test]
    fn operation_type_determines_channels_and_sender_names() {
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
            let send = Ok(SendRequest { stages, signatures });
            assert_eq!(read_with(kind, json!({})), send, "{}", kind.name());
            let extra = json!({"anything": {"else": [1]}, "hook": "https://a/?token=1"});
            assert_eq!(read_with(kind, extra), send, "{}", kind.name());
        }
    }

    #[test]
    fn lifetime_applies_only_to_its_channel() {
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
    fn part_count_comes_from_the_longest_stage() {
        for kind in [OperationType::Sms, OperationType::ViberSms, OperationType::RcsSms, OperationType::RcsViberSms] {
            let long = json!({"sms_message": "я".repeat(71)});
            assert_eq!(read_with(kind, long).map(|send| most_parts(&send.stages)), Ok(2), "{}", kind.name());
        }
        let long = json!({"sms": {"signature": "OlenaCo", "message": "я".repeat(71)}});
        assert_eq!(read_with(OperationType::Pipeline, long).map(|send| most_parts(&send.stages)), Ok(2));
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
            let rejection = read_with(kind, changes.clone()).expect_err(error);
            assert_eq!(rejection.text(), error, "{} {changes}", kind.name());
        }
    }

    #[test]
    fn empty_optional_fields_and_numeric_codes_are_accepted() {
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
    fn pipeline_accepts_fields_the_contract_does_not_specify() {
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
