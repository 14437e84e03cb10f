//! JSON members of answers: tolerant reading, and removal of secrets from texts.
//!
//! Members are kept raw, so that one of the wrong type does not hide the others. The key is removed from the gateway's
//! texts before they are stored or shown. Phone numbers are masked in texts that are displayed and logged. Long texts
//! are truncated, because a gateway could send megabytes for each message.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{Envelope, GatewayReply, Signal};
use campaign_core::domain::{GatewayMessageId, OperationOutcome};

/// The top level of an answer (contract 2.2 and 2.3).
#[derive(Deserialize)]
pub(super) struct AnswerBody<'a> {
    #[serde(borrow)]
    pub(super) success: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) request_id: Option<&'a RawValue>,
}

/// One result item (contract 2.2).
#[derive(Default, Deserialize)]
pub(super) struct AnswerItem<'a> {
    #[serde(borrow)]
    pub(super) success: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
}

impl<'a> AnswerBody<'a> {
    /// Reads a body. `None` if it is not a JSON object.
    pub(super) fn read(body: &'a [u8]) -> Option<Self> {
        read_object(std::str::from_utf8(body).ok()?)
    }
}

impl<'a> AnswerItem<'a> {
    /// Reads an item. `None` if it is not a JSON object, or repeats a member.
    pub(super) fn read(raw: &'a RawValue) -> Option<Self> {
        read_object(raw.get())
    }
}

/// Reads a record, but only from a JSON object: `serde_json` would also accept a JSON array of the record's values.
pub(super) fn read_object<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
    let json = json.trim_ascii_start();
    if json.starts_with('{') { serde_json::from_str(json).ok() } else { None }
}

/// The `success` member, which must be a boolean (contract 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SuccessFlag {
    True,
    False,
    /// Missing, or not a boolean.
    Unclear,
}

impl SuccessFlag {
    pub(super) fn read(raw: Option<&RawValue>) -> Self {
        match raw.map(RawValue::get) {
            Some("true") => SuccessFlag::True,
            Some("false") => SuccessFlag::False,
            _ => SuccessFlag::Unclear,
        }
    }
}

/// Reads a whole number: a JSON integer, digits in a string, or a float without a fraction. `None` for other values.
pub(super) fn read_whole_number(raw: &RawValue) -> Option<u64> {
    /// 2^53, below which a float represents every whole number exactly.
    const EXACT_FLOATS_END: f64 = 9_007_199_254_740_992.0;
    let text = raw.get();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    if text.starts_with('"') {
        let digits: String = serde_json::from_str(text).ok()?;
        return if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None };
    }
    let float: f64 = text.parse().ok()?;
    ((0.0..EXACT_FLOATS_END).contains(&float) && float.fract() == 0.0).then_some(float as u64)
}

/// The member, if it is present and not `null`.
pub(super) fn non_null(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| raw.get() != "null")
}

/// Reads a gateway identifier. `None` if the member is missing, empty, or neither a string nor a number.
pub(super) fn read_msg_id(raw: Option<&RawValue>) -> Option<GatewayMessageId> {
    let raw = non_null(raw)?;
    if raw.get().starts_with('"') {
        let text: String = serde_json::from_str(raw.get()).ok()?;
        return (!text.trim().is_empty()).then(|| GatewayMessageId::Text(truncate(text)));
    }
    if !raw.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return None;
    }
    Some(
        read_whole_number(raw)
            .map_or_else(|| GatewayMessageId::Text(truncate(raw.get().to_owned())), GatewayMessageId::Number),
    )
}

/// A text, truncated if it is too long to store. `None` if the member is missing or blank. A value that is not a string
/// is returned as JSON text.
pub(super) fn read_text(raw: Option<&RawValue>) -> Option<String> {
    read_whole_text(raw).map(truncate)
}

/// Like [`read_text`], but without truncation.
pub(super) fn read_whole_text(raw: Option<&RawValue>) -> Option<String> {
    let raw = non_null(raw)?;
    let text = serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
    (!text.trim().is_empty()).then_some(text)
}

/// Reads a time with an offset (contract 2.4 and 2.5), truncated to whole milliseconds.
pub(super) fn read_timestamp(raw: Option<&RawValue>) -> Option<Timestamp> {
    let instant: Timestamp = read_text(raw)?.trim().parse().ok()?;
    Timestamp::from_millisecond(instant.as_millisecond()).ok()
}

/// Whether any object in a JSON text, at any depth, has the given key.
pub(super) fn has_key(body: &[u8], key: &str) -> bool {
    // A body that cannot be read, for example because it is nested too deeply, proves nothing. So it counts as if it
    // had the key.
    let mut json = serde_json::Deserializer::from_slice(body);
    KeySearch(key).deserialize(&mut json).unwrap_or(true)
}

/// Searches a JSON value for a key, including repeated members.
struct KeySearch<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for KeySearch<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<bool, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeySearch<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            found |= name == self.0;
            found |= members.next_value_seed(KeySearch(self.0))?;
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(item_has_key) = items.next_element_seed(KeySearch(self.0))? {
            found |= item_has_key;
        }
        Ok(found)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }
}

/// Reads texts of an answer, and removes the key that an answer could repeat.
pub struct RedactingReader<'k> {
    key: &'k str,
}

impl<'k> RedactingReader<'k> {
    /// A reader for the answer to a request with `key`, which the reader removes from texts.
    pub fn new(key: &'k str) -> Self {
        Self { key }
    }

    /// A text, truncated if too long. `None` if the member is missing or blank. A value that is not a string is
    /// returned as JSON text.
    pub(super) fn read_text(&self, raw: Option<&RawValue>) -> Option<String> {
        let mut text = read_text(raw)?;
        redact_text(&mut text, self.key);
        Some(text)
    }

    /// Like [`RedactingReader::read_text`], but without truncation, for the user's own texts, which are never stored.
    pub(super) fn read_whole_text(&self, raw: Option<&RawValue>) -> Option<String> {
        let mut text = read_whole_text(raw)?;
        redact_text(&mut text, self.key);
        Some(text)
    }

    /// Reads a gateway identifier. `None` if the member is missing, empty, or neither a string nor a number.
    pub(super) fn read_id(&self, raw: Option<&RawValue>) -> Option<GatewayMessageId> {
        let mut id = read_msg_id(raw)?;
        if let GatewayMessageId::Text(text) = &mut id {
            redact_text(text, self.key);
        }
        Some(id)
    }
}

/// The records of a payload that is a list of objects.
///
/// # Errors
/// If the payload is not a list, or an item is not an object.
pub(super) fn read_records<'a, R: Deserialize<'a>>(payload: Option<&'a RawValue>) -> Result<Vec<R>, &'static str> {
    let items = payload.and_then(|payload| serde_json::from_str::<Vec<&RawValue>>(payload.get()).ok());
    let records = items.ok_or("contains no list")?.into_iter().map(|item| read_object(item.get()));
    records.collect::<Option<_>>().ok_or("does not contain a list of objects")
}

/// The record of a payload that is an object.
///
/// # Errors
/// If the payload is not an object.
pub(super) fn read_record<'a, R: Deserialize<'a>>(payload: Option<&'a RawValue>) -> Result<R, &'static str> {
    payload.and_then(|payload| read_object(payload.get())).ok_or("contains no object")
}

/// The replacement for the key.
const CONCEALED: &str = "[key]";

/// Removes the key from all texts of a reply that can quote the request.
///
/// A key shorter than eight characters is not a secret, and removing it would garble our own words.
pub(super) fn redact_key(reply: &mut GatewayReply, key: &str) {
    key_spellings(key).iter().for_each(|key| redact_spelling(reply, key));
}

/// Removes the key from one text. Keys shorter than eight characters are not removed.
pub(super) fn redact_text(text: &mut String, key: &str) {
    key_spellings(key).iter().for_each(|key| replace_key(text, key));
}

/// Possible spellings of the key in an answer. Empty if the key is too short to be a secret.
fn key_spellings(key: &str) -> Vec<String> {
    const MIN_KEY_LENGTH: usize = 8;
    if key.len() < MIN_KEY_LENGTH {
        return Vec::new();
    }
    // Some JSON writers escape slashes.
    let escaped = key.contains('/').then(|| key.replace('/', r"\/"));
    [Some(key.to_owned()), escaped].into_iter().flatten().collect()
}

/// Masks the phone numbers of an envelope in the text of the signal, which is displayed and logged. The outcomes keep
/// the gateway's text unchanged.
pub(super) fn redact_numbers(reply: &mut GatewayReply, envelope: &Envelope) {
    let Some(text) = signal_text(&mut reply.signal) else { return };
    for operation in envelope.operations() {
        if let Cow::Owned(hidden) = operation.phone.hide_in_text(text, &operation.phone.format_hint()) {
            *text = hidden;
        }
    }
}

/// The text of a signal. `None` for `Go`, which has no text.
fn signal_text(signal: &mut Signal) -> Option<&mut String> {
    match signal {
        Signal::Go => None,
        Signal::Warn(text)
        | Signal::Unreachable(text)
        | Signal::Broken(text)
        | Signal::Strange(text)
        | Signal::Slow { reason: text, .. }
        | Signal::Split(text)
        | Signal::Stop(_, text) => Some(text),
    }
}

/// Removes one spelling of the key from all texts of a reply.
fn redact_spelling(reply: &mut GatewayReply, key: &str) {
    reply.outcomes.iter_mut().for_each(|outcome| match outcome {
        OperationOutcome::Accepted { answer: Some(text), .. } | OperationOutcome::Rejected { error: text } => {
            replace_key(text, key)
        }
        OperationOutcome::NotSent { reason } | OperationOutcome::InDoubt { reason } => {
            let mut text = reason.to_string();
            replace_key(&mut text, key);
            if *text != **reason {
                *reason = Arc::from(text);
            }
        }
        OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. } => {}
    });
    if let Some(text) = signal_text(&mut reply.signal) {
        replace_key(text, key);
    }
    if let Some(evidence) = &mut reply.evidence {
        replace_key(evidence, key);
        // A long body might have been cut within the key.
        evidence.truncate(evidence.len() - partial_key_length(evidence, key));
    }
}

/// The length of the longest proper prefix of the key with which a text ends.
fn partial_key_length(text: &str, key: &str) -> usize {
    key.char_indices().rev().map(|(at, _)| at).find(|at| text.ends_with(&key[..*at])).unwrap_or(0)
}

/// Replaces the key in a text, and removes a part of the key where the text was truncated.
fn replace_key(text: &mut String, key: &str) {
    if text.contains(key) {
        *text = text.replace(key, CONCEALED);
    }
    // A long text might have been cut within the key.
    if let Some(end) = find_cut(text) {
        text.replace_range(end - partial_key_length(&text[..end], key)..end, "");
    }
}

/// The maximum length of a stored text in characters.
const MAX_CHARACTERS: usize = 500;
/// The maximum size of a stored answer to a lookup or verification call, in bytes.
const MAX_ANSWER: usize = 4 << 10;
/// The maximum number of digits in a phone number. A number is never cut in two, because half of it would not be
/// recognized and masked.
const MAX_DIGITS: usize = 15;
/// The beginning of the note at the end of a truncated text. The original number of characters follows.
const CUT: &str = "… (cut, ";

/// The text or, if it is too long, its beginning with a note that it was truncated.
pub(super) fn truncate(mut text: String) -> String {
    let Some((end, next)) = text.char_indices().nth(MAX_CHARACTERS) else { return text };
    let characters = text.chars().count();
    let before_number = text[..end].trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let splits_number = next.is_ascii_digit() && end - before_number <= MAX_DIGITS;
    text.truncate(if splits_number { before_number } else { end });
    text.push_str(&format!("{CUT}{characters} characters)"));
    text.shrink_to_fit();
    text
}

/// The byte position at which a text was truncated. `None` if the text is complete.
pub(super) fn find_cut(text: &str) -> Option<usize> {
    text.rfind(CUT).filter(|_| text.ends_with(" characters)"))
}

/// The answer to a lookup or verification call as JSON. If the answer is very long, only its beginning is returned, as
/// a JSON string.
pub(super) fn truncate_answer(object: &RawValue) -> String {
    let whole = object.get().to_owned();
    if whole.len() <= MAX_ANSWER { whole } else { serde_json::Value::String(truncate(whole)).to_string() }
}

#[cfg(test)]
mod reading_tests {
    use super::*;

    #[test]
    fn whole_number_is_read_in_any_json_notation() {
        let table = [
            ("17", Some(17)),
            (r#""17""#, Some(17)),
            (r#""017""#, Some(17)),
            ("17.0", Some(17)),
            ("1.7e1", Some(17)),
            ("17.5", None),
            ("-17", None),
            (r#""17a""#, None),
            (r#""""#, None),
            ("1e300", None),
            ("true", None),
            ("[17]", None),
        ];
        for (json, expected) in table {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            assert_eq!(read_whole_number(&raw), expected, "{json}");
        }
    }
}

#[cfg(test)]
mod search_tests {
    use super::*;

    #[test]
    fn json_key_is_found_at_any_depth_even_if_escaped() {
        for json in [
            r#"{"msg_id":1}"#,
            r#"[[{"a":{"msg_id":null}}]]"#,
            r#"{"msg\u005fid":1}"#,
            r#"{"a":{"msg_id":1},"a":null}"#,
            "not JSON",
        ] {
            assert!(has_key(json.as_bytes(), "msg_id"), "{json}");
        }
        for json in [r#"{"id":[1,-1,1.5,true,null,"msg_id"]}"#, "{}", r#"{"error":"no msg_id"}"#] {
            assert!(!has_key(json.as_bytes(), "msg_id"), "{json}");
        }
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        assert!(has_key(deep.as_bytes(), "msg_id"), "a body that cannot be searched might have the key");
    }
}

#[cfg(test)]
mod redaction_tests {
    use super::truncate;
    use super::*;
    use crate::StopCause;

    #[test]
    fn truncated_body_keeps_no_part_of_the_key() {
        for (body, expected) in [("x s3cr", "x "), ("x s", "x "), ("x s3cret/key", "x [key]"), ("x y", "x y")] {
            let mut reply = GatewayReply {
                outcomes: Vec::new(),
                signal: Signal::Go,
                evidence: Some(body.to_owned()),
                deviations: Vec::new(),
            };
            redact_key(&mut reply, "s3cret/key");
            assert_eq!(reply.evidence.as_deref(), Some(expected));
        }
    }

    #[test]
    fn truncated_text_keeps_no_part_of_the_key() {
        let mut text = truncate(format!("{} s3cret/key", "x".repeat(494)));
        assert!(text.contains("s3cre"), "{text}");
        redact_text(&mut text, "s3cret/key");
        assert_eq!(text, format!("{} … (cut, 505 characters)", "x".repeat(494)));
    }

    #[test]
    fn reply_texts_never_contain_the_key() {
        let quoting = || "wrong key `s3cret/key`".to_owned();
        let outcomes = vec![
            OperationOutcome::Accepted { msg_id: None, parts: None, answer: Some(quoting()) },
            OperationOutcome::Rejected { error: quoting() },
            OperationOutcome::NotSent { reason: quoting().into() },
            OperationOutcome::InDoubt { reason: quoting().into() },
        ];
        for signal in [
            Signal::Warn(quoting()),
            Signal::Slow { reason: quoting(), retry_after: None },
            Signal::Stop(StopCause::EnvelopeRefused, quoting()),
        ] {
            let mut reply =
                GatewayReply { outcomes: outcomes.clone(), signal, evidence: Some(quoting()), deviations: Vec::new() };
            redact_key(&mut reply, "s3cret/key");
            let output = format!("{reply:?}");
            assert!(!output.contains("s3cret/key"), "{output}");
            assert_eq!(output.matches("wrong key `[key]`").count(), 6, "{output}");
        }
    }
}

#[cfg(test)]
mod truncation_tests {
    use super::*;

    #[test]
    fn text_over_500_characters_is_marked_as_cut() {
        for whole in ["", "No route", &"ї".repeat(500)] {
            assert_eq!(truncate(whole.to_owned()), whole);
            assert_eq!(find_cut(whole), None);
        }
        let text = truncate("ї".repeat(7_000_000));
        assert_eq!(text, format!("{}… (cut, 7000000 characters)", "ї".repeat(500)));
        assert_eq!(find_cut(&text), Some(1_000));
        assert!(text.capacity() < 2_000, "the removed text is not kept in memory");
    }

    #[test]
    fn phone_number_is_never_split_by_truncation() {
        let text = truncate(format!("{}380501234567 {}", "x".repeat(495), "y".repeat(500)));
        assert_eq!(text, format!("{}… (cut, 1008 characters)", "x".repeat(495)));
        assert!(truncate("7".repeat(600)).starts_with(&"7".repeat(500)), "text without a number keeps its beginning");
    }

    #[test]
    fn truncated_answer_is_still_valid_json() {
        let raw = |json: String| serde_json::from_str::<Box<RawValue>>(&json).unwrap();
        assert_eq!(truncate_answer(&raw(r#"{"code":"0042"}"#.into())), r#"{"code":"0042"}"#);
        let long: String =
            serde_json::from_str(&truncate_answer(&raw(format!(r#"{{"x":"{}"}}"#, "a".repeat(9_000))))).unwrap();
        assert!(long.starts_with(r#"{"x":"aaa"#) && long.ends_with("… (cut, 9008 characters)"), "{long}");
    }
}
