//! The status of one message, asked for by a person (contract 2.5 and 4.3 `status`).
//!
//! It tells all that the gateway does, and proves nothing to a run; that is `json_api/status_answer.rs`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Inquiry;
use crate::domain::{MessageId, MsgId, Status};
use crate::gateway::json_api::loose::whole;
use crate::gateway::json_api::words::{Words, record};

/// What the gateway knows of a message; members that it does not tell are nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// Our identifier.
    pub id: Option<MsgId>,
    /// The gateway's identifier.
    pub msg_id: Option<MsgId>,
    /// The channel, in the gateway's word.
    pub channel: Option<String>,
    /// The status.
    pub status: Status,
    /// When it last changed, in the gateway's text (ISO 8601 with offset).
    pub updated: Option<String>,
}

/// Asks for the status of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskStatus {
    /// By our identifier (contract 4.3).
    Id(MessageId),
    /// By the gateway's, which the contract does not show and the platform answers.
    MsgId(MsgId),
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    msg_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    channel: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    updated: Option<&'a RawValue>,
}

impl AskStatus {
    /// The question about the message with our identifier, as it was written; nothing where it is none of ours.
    #[must_use]
    pub fn about_ours(written: &str) -> Option<Self> {
        number(written).map(AskStatus::Id)
    }

    /// The question about the message with the gateway's identifier, as it was written; nothing where it is blank.
    #[must_use]
    pub fn about_theirs(written: &str) -> Option<Self> {
        // A number with leading zeros is a text, of which nothing may be lost.
        let plain = number(written).filter(|number| number.to_string() == written).map(MessageId::get);
        let id = plain.map_or_else(|| MsgId::Text(written.to_owned()), MsgId::Number);
        (!written.trim().is_empty()).then_some(AskStatus::MsgId(id))
    }

    /// Our identifier, if it is asked with that.
    #[must_use]
    pub fn ours(&self) -> Option<MsgId> {
        match self {
            AskStatus::Id(id) => Some(MsgId::Number(id.get())),
            AskStatus::MsgId(_) => None,
        }
    }

    /// The gateway's identifier, if it is asked with that.
    #[must_use]
    pub fn theirs(&self) -> Option<MsgId> {
        match self {
            AskStatus::Id(_) => None,
            AskStatus::MsgId(id) => Some(id.clone()),
        }
    }

    /// Whether the record can be the one of this message; one that names no message can.
    fn fits(&self, record: &Record<'_>, words: &Words<'_>) -> bool {
        match self {
            AskStatus::Id(id) => record.id.is_none_or(|told| whole(told) == Some(id.get())),
            AskStatus::MsgId(asked) => words.id(record.msg_id).is_none_or(|told| told.to_string() == asked.to_string()),
        }
    }
}

fn number(written: &str) -> Option<MessageId> {
    let digits = written.bytes().all(|byte| byte.is_ascii_digit());
    written.parse().ok().filter(|_| digits).and_then(MessageId::new)
}

impl Inquiry for AskStatus {
    type Answer = MessageRecord;
    const READS_ONLY: bool = true;

    fn operation(&self) -> Value {
        match self {
            AskStatus::Id(id) => json!({ "type": "status", "id": id.get() }),
            AskStatus::MsgId(MsgId::Number(number)) => json!({ "type": "status", "msg_id": number }),
            AskStatus::MsgId(MsgId::Text(text)) => json!({ "type": "status", "msg_id": text }),
        }
    }

    fn read(&self, payload: Option<&RawValue>, words: &Words<'_>) -> Result<MessageRecord, &'static str> {
        let record: Record<'_> = record(payload)?;
        if !self.fits(&record, words) {
            return Err("is for a different message");
        }
        let status = words.text(record.status).ok_or("has no status")?;
        Ok(MessageRecord {
            id: words.id(record.id),
            msg_id: words.id(record.msg_id),
            channel: words.text(record.channel),
            status: Status::from_name(&status),
            updated: words.text(record.updated),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::answer;
    use super::*;

    fn by_id() -> AskStatus {
        AskStatus::Id(MessageId::new(7).unwrap())
    }

    #[test]
    fn a_record_is_read_with_numbers_or_strings_and_without_what_is_missing() {
        let full = r#"{"id":"7","msg_id":99,"type":"viber","status":"READ","updated":"2026-11-21T10:00:00+02:00"}"#;
        let record = answer(&by_id(), full).unwrap();
        assert_eq!((record.id, record.msg_id), (Some(MsgId::Text("7".into())), Some(MsgId::Number(99))));
        assert_eq!((record.channel.as_deref(), record.status), (Some("viber"), Status::Read));
        assert_eq!(record.updated.as_deref(), Some("2026-11-21T10:00:00+02:00"));
        let bare = answer(&by_id(), r#"{"status":"Paused"}"#).unwrap();
        assert_eq!(bare.status, Status::Other("Paused".into()));
        assert_eq!((bare.id, bare.msg_id, bare.channel, bare.updated), (None, None, None, None));
    }

    #[test]
    fn the_record_of_another_message_is_never_shown_as_this_one() {
        let by_msg_id = |id| AskStatus::MsgId(id);
        let table = [
            (by_id(), r#"{"id":8,"status":"READ"}"#, false),
            (by_id(), r#"{"id":"x","status":"READ"}"#, false),
            (by_id(), r#"{"id":7.0,"status":"READ"}"#, true),
            (by_id(), r#"{"id":7}"#, false),
            (by_msg_id(MsgId::Number(99)), r#"{"id":"5","msg_id":"99","status":"READ"}"#, true),
            (by_msg_id(MsgId::Text("a-1".into())), r#"{"msg_id":"a-1","status":"READ"}"#, true),
            (by_msg_id(MsgId::Number(99)), r#"{"msg_id":98,"status":"READ"}"#, false),
        ];
        for (asked, data, fits) in table {
            assert_eq!(answer(&asked, data).is_ok(), fits, "{asked:?} {data}");
        }
    }

    #[test]
    fn an_identifier_is_asked_about_as_what_it_is_said_to_be() {
        let ours = |number| Some(AskStatus::Id(MessageId::new(number).unwrap()));
        let number = |number| Some(AskStatus::MsgId(MsgId::Number(number)));
        let text = |text: &str| Some(AskStatus::MsgId(MsgId::Text(text.into())));
        let table = [
            ("7", false, ours(7)),
            ("007", false, ours(7)),
            ("9007199254740992", false, None),
            ("+7", false, None),
            ("a-1", false, None),
            ("", false, None),
            ("7", true, number(7)),
            ("007", true, text("007")),
            ("9007199254740993", true, text("9007199254740993")),
            ("a-1", true, text("a-1")),
            (" ", true, None),
        ];
        for (typed, is_gateways, expected) in table {
            let asked = if is_gateways { AskStatus::about_theirs(typed) } else { AskStatus::about_ours(typed) };
            assert_eq!(asked, expected, "{typed} {is_gateways}");
        }
    }
}
